// SPDX-License-Identifier: MIT
// Gradients that are finite and too large for a step: what checks count on every instruction set, after clipping and
// over ranks, and what results and events say.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/nn/scaling/event_log.hpp>
#include <mp/optim.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "nn/optim/executors.hpp"
#include "nn/scaling/thread_ranks.hpp"

namespace {

using mp::bfloat16, mp::half;

/// Weights and gradients of two parameters, of which the second receives large gradients.
template <class Weight, class Gradient = Weight>
struct network {
    std::vector<Weight> first = std::vector<Weight>(5000, Weight(1.0F));
    std::vector<Weight> second = first;
    std::vector<Gradient> d_first = std::vector<Gradient>(5000, Gradient(0.5F));
    std::vector<Gradient> d_second = d_first;
    std::vector<mp::parameter<Weight, Gradient>> parameters = {{"first", first, d_first},
                                                               {"second", second, d_second}};
};

/// What a check has to count among gradient * inverse, each product rounded to float.
template <class Gradient>
mp::non_finite_report counted(const std::vector<Gradient>& gradient, float inverse, float limit) {
    mp::non_finite_report report;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
        volatile float product = static_cast<float>(gradient[i]) * inverse;
        const float magnitude = std::fabs(product);
        if (std::isnan(magnitude) || std::isinf(magnitude)) {
            ++(std::isnan(magnitude) ? report.nans : report.infinities);
            report.first_index = std::min(report.first_index, i);
        } else if (magnitude > limit) {
            ++report.too_large;
            report.first_too_large = std::min(report.first_too_large, i);
        }
    }
    return report;
}

mp::static_loss_scaler plain_scaler() {
    return mp::static_loss_scaler(mp::static_policy{.initial_scale = 1.0F});
}

}  // namespace

TEST_CASE_TEMPLATE("every instruction set counts what is above a limit", Gradient, float, bfloat16, half,
                   mp::float8_e4m3fn, mp::float8_e5m2, mp::float8_e4m3fnuz) {
    std::mt19937 random(7);
    for (const float inverse : {1.0F, 0.5F, 0x1p-12F, 3.7e-3F, 4.0F, 1.1F}) {
        for (const float limit : {1e-3F, 1.75F, 250.5F, 6e4F, 1.3e19F, std::numeric_limits<float>::max()}) {
            std::vector<Gradient> gradient(6000);
            std::uniform_real_distribution<float> near(0.98F, 1.02F);
            for (std::size_t i = 0; i < gradient.size(); ++i) {
                const float center = i % 7 == 0 ? limit / inverse : std::min(1.0F, limit / inverse / 2);
                const Gradient value(i % 7 == 0 && i > 2000 ? std::min(center, 1e37F) * near(random)
                                                            : center / 4);
                gradient[i] = i % 2 == 0 ? value : -value;
            }
            gradient[4321] = Gradient(std::numeric_limits<float>::infinity());
            const mp::non_finite_report expected = counted(gradient, inverse, limit);
            for (const mp::cpu& exec : optimizer_executors()) {
                CAPTURE(mp::name_of(exec.instructions));
                CAPTURE(inverse);
                CAPTURE(limit);
                const auto bits = std::bit_cast<std::uint32_t>(limit);
                const auto& type = mp::detail::gradient_record<Gradient>::record;
                const auto check = mp::detail::select_check(type, exec.instructions, inverse);
                CHECK(check(gradient.data(), gradient.size(), inverse, bits) == expected);
                std::vector<float> unscaled(gradient.size());
                const auto pass =
                    mp::detail::select_unscale(type, exec.instructions, inverse, false, gradient.size());
                CHECK(pass(gradient.data(), unscaled.data(), gradient.size(), inverse, bits) == expected);
            }
        }
    }
}

TEST_CASE(
    "a step is skipped for a gradient that is too large: the scale goes on, and neither weights nor states "
    "change") {
    network<float> net;
    mp::adamw<float> optimizer(net.parameters, {});
    mp::dynamic_loss_scaler scaler({.initial_scale = 8.0F, .growth_interval = 1});
    optimizer.step();
    const std::vector<float> weights = net.second;
    const auto moments = [&] {
        return std::vector<float>{optimizer.gradient_mean(1)[0], optimizer.gradient_mean(1)[4097],
                                  optimizer.gradient_mean_square(1)[0],
                                  optimizer.gradient_mean_square(1)[4097]};
    };
    const std::vector<float> before = moments();
    CHECK(before[0] > 0.0F);
    for (const bool unscales : {false, true}) {
        std::fill(net.d_second.begin(), net.d_second.end(), 1.0F);
        net.d_second[4097] = -2e19F * scaler.current_scale();
        net.d_second[4100] = 2e19F * scaler.current_scale();
        if (unscales) {
            const mp::gradient_report report = scaler.unscale(optimizer);
            CHECK(report.too_large == 2);
            CHECK_FALSE(report.found());
        }
        const float scale = scaler.current_scale();
        const mp::step_result result = scaler.step(optimizer);
        CHECK(result.status == mp::step_status::skipped_too_large);
        CHECK(to_string(result) == "skipped, 2 gradients too large for the states or the weights at scale " +
                                       std::string(unscales ? "16 (next 32)" : "8 (next 16)") +
                                       ", the first in 'second'[4097]");
        scaler.update();
        CHECK(scaler.current_scale() == 2 * scale);  // it was not the reason
        CHECK(optimizer.step_count() == 1);
        CHECK(net.second == weights);
        CHECK(moments() == before);
        const mp::scale_event& event = scaler.last_event();
        CHECK(event.skipped == 1);
        CHECK(event.parameter == 1);
        CHECK(event.element == 4097);
        CHECK(to_string(event) ==
              "iteration " + std::string(unscales ? "1: 16 -> 32" : "0: 8 -> 16") +
                  " grown, 1 optimizer skipped: gradients too large for its states or weights, "
                  "first in 'second'[4097]");
    }
    // Infinities come first.
    net.d_first[3] = 1e20F * scaler.current_scale();
    net.d_second[4100] = std::numeric_limits<float>::infinity();
    const mp::step_result result = scaler.step(optimizer);
    CHECK(result.status == mp::step_status::skipped_infinity);
    CHECK(result.parameter_name == "second");
    CHECK(result.element_index == 4100);
}

TEST_CASE_TEMPLATE("gradients that clipping makes small enough are applied", Gradient, float, bfloat16) {
    for (const int way : {0, 1, 2, 3}) {
        CAPTURE(way);
        network<Gradient> net;
        mp::adamw<Gradient> optimizer(net.parameters, {});
        mp::static_loss_scaler scaler = plain_scaler();
        net.d_second[10] = Gradient(1e25F);
        net.d_second[20] = Gradient(1e21F);
        CHECK(scaler.unscale(optimizer).too_large == 2);
        if (way == 0) optimizer.clip_gradient_norm(1.0);
        if (way == 1) optimizer.clip_gradient_value(1e19);
        if (way == 2) optimizer.unscaled_gradients()[1][10] = optimizer.unscaled_gradients()[1][20] = 3.0F;
        if (way == 3) optimizer.clip_gradient_norm(1e20);  // only the largest remains too large
        const mp::step_result result = scaler.step(optimizer);
        CHECK(static_cast<bool>(result) == (way != 3));
        if (way == 3) {
            CHECK(result.too_large == 1);
            CHECK(result.parameter_name == "second");
            CHECK(result.element_index == 10);
        } else {
            CHECK(result.parameter_index == mp::no_index);
        }
        scaler.update();
        CHECK(scaler.last_event().applied == (way != 3 ? 1U : 0U));
        for (const Gradient w : net.second) REQUIRE(std::isfinite(static_cast<float>(w)));
    }
}

TEST_CASE("gradients that lie elsewhere are checked by their own scales") {
    network<float> net;
    mp::adamw<float> optimizer(net.parameters, {});
    mp::static_loss_scaler scaler = plain_scaler();
    std::vector<half> first(5000, half(1.0F)), second(5000, half(1.0F));
    second[7] = half(60000.0F);
    const std::vector<mp::scaled_gradient<half>> elsewhere = {mp::scaled_gradient<half>(first, 1.0F),
                                                              mp::scaled_gradient<half>(second, 0x1p-60F)};
    const auto list = std::span<const mp::scaled_gradient<half>>(elsewhere);
    CHECK(scaler.unscale(optimizer, list).too_large == 1);
    const mp::step_result result = scaler.step(optimizer);
    CHECK(result.status == mp::step_status::skipped_too_large);
    CHECK(result.parameter_index == 1);
    CHECK(result.element_index == 7);
}

TEST_CASE("limits follow the options and learning rates of groups") {
    std::vector<half> w(4, half(1.0F)), v(4, half(1.0F));
    std::vector<float> dw(4, 1.0F), dv(4, 1.0F);
    mp::sgd<half, float, half> optimizer({{"w", w, dw}, {"v", v, dv, 1}},
                                         {{.learning_rate = 1.0}, {.learning_rate = 0.5}});
    const auto count = [&](float large) {
        dw[2] = dv[2] = large;
        return optimizer.check_gradients(1.0F).too_large;
    };
    CHECK(count(32752.0F) == 0);  // half of the largest weight
    CHECK(count(32753.0F) == 1);
    CHECK(count(70000.0F) == 2);
    optimizer.set_learning_rate(0.25, 0);
    CHECK(count(70000.0F) == 1);
    optimizer.set_learning_rate_factor(0.0);
    CHECK(count(1e38F) == 0);
    optimizer.set_options({.learning_rate = 2.0}, 1);
    CHECK(count(16377.0F) == 1);
}

/// The largest gradient of one weight that a check takes.
template <class Optimizer, class Options>
double largest_taken(const Options& options) {
    std::vector<typename Optimizer::weight_type> w(1);
    std::vector<typename Optimizer::gradient_type> dw(1);
    Optimizer optimizer({{"w", w, dw}}, options);
    std::uint32_t low = 0, high = 0x7f800000U;
    while (high - low > 1) {
        const std::uint32_t middle = low + (high - low) / 2;
        dw[0] = std::bit_cast<float>(middle);
        const mp::gradient_report report = optimizer.check_gradients(1.0F);
        (report.too_large == 0 && !report.found() ? low : high) = middle;
    }
    return static_cast<double>(std::bit_cast<float>(low));
}

TEST_CASE("optimizers take gradients up to the bounds of docs/training.md") {
    const auto check = [](double found, double expected) {
        CHECK(found <= expected * (1 + 1e-12));
        CHECK(found >= expected * (1 - 2e-7));
    };
    const double of_float = std::numeric_limits<float>::max(), of_half = 65504.0;
    const auto rounded = [](double beta) { return 1 - 0x1p-22 / (1 - beta); };
    {
        using of_floats = mp::adamw<float, float, float, float>;
        const mp::adamw_options options{.beta2 = 0.99, .weight_decay = 0.1};
        mp::adamw_options coupled = options, plain = options;
        coupled.coupled_decay = plain.coupled_decay = true;
        plain.weight_decay = 0;
        check(largest_taken<of_floats>(options), std::sqrt(of_float * rounded(0.99)));
        check(largest_taken<of_floats>(coupled), std::sqrt(of_float * rounded(0.99)) / 2);
        check(largest_taken<of_floats>(plain), std::sqrt(of_float * rounded(0.99)));
        check(largest_taken<mp::adamw<half, float, float, half>>(options),
              std::sqrt(of_half * rounded(0.99)));
    }
    {
        using of_halves = mp::lamb<half, float, float, half>;
        const mp::lamb_options options{.beta1 = 0.999, .beta2 = 0.99};
        mp::lamb_options whole = options;
        whole.grad_averaging = false;
        check(largest_taken<of_halves>(options), std::sqrt(of_half * rounded(0.99)));
        check(largest_taken<of_halves>(whole), of_half * 0.001 * rounded(0.999));
    }
    check(largest_taken<mp::adafactor<float>>(mp::adafactor_options{}), std::sqrt(of_float / 2));
    check(largest_taken<mp::lion<half, float, float, half>>(mp::lion_options{.beta2 = 0.99}),
          of_half * rounded(0.99));
    {
        using of_halves = mp::sgd<half, float, float, half>;
        using weights = mp::sgd<half, float, half, half>;
        const mp::sgd_options options{.learning_rate = 1e-3, .momentum = 0.9};
        mp::sgd_options decayed = options, fast = options;
        decayed.weight_decay = 0.1;
        fast.learning_rate = 4.0;
        check(largest_taken<of_halves>(options), of_half * 0.1 * rounded(0.9));
        check(largest_taken<of_halves>(decayed), of_half * 0.1 * rounded(0.9) / 2);
        check(largest_taken<weights>(fast), 0.1 * of_half / 2 / 4);
        mp::lars_options same{.learning_rate = 4.0, .momentum = 0.9};
        same.layer_adaptation = false;
        check(largest_taken<mp::lars<half, float, half, half>>(same), 0.1 * of_half / 2 / 4);
        check(largest_taken<mp::lars<float>>(mp::lars_options{}), of_float / 2);
    }
}

TEST_CASE("the largest gradient that is taken leaves finite states however often it comes") {
    const auto check = []<class Optimizer>(std::type_identity<Optimizer>, const auto& options,
                                           std::size_t states) {
        std::vector<half> w(1);
        std::vector<float> dw = {static_cast<float>(largest_taken<Optimizer>(options))};
        Optimizer optimizer({{"w", w, dw}}, options);
        mp::static_loss_scaler scaler = plain_scaler();
        for (int step = 0; step < 20000; ++step) {
            REQUIRE(scaler.step(optimizer));
            scaler.update();
        }
        std::vector<float> values(1);
        for (std::size_t s = 0; s < states; ++s) {
            optimizer.copy_state(0, s, 0, values);
            CHECK(std::isfinite(values[0]));
            CHECK(values[0] != 0.0F);
        }
    };
    for (const double momentum : {0.9, 0.99}) {
        check(std::type_identity<mp::sgd<half, float, float, half>>(),
              mp::sgd_options{.learning_rate = 1e-6, .momentum = momentum}, 1);
    }
    check(std::type_identity<mp::adamw<half, float, float, half>>(), mp::adamw_options{.learning_rate = 1e-6},
          2);
    check(std::type_identity<mp::lion<half, float, float, half>>(), mp::lion_options{.learning_rate = 1e-6},
          1);
    check(std::type_identity<mp::lamb<half, float, float, half>>(),
          mp::lamb_options{.learning_rate = 1e-6, .beta1 = 0.999, .grad_averaging = false}, 2);
}

TEST_CASE("ranks skip together for a gradient that is too large on one of them") {
    for (const bool unscales : {false, true}) {
        for (const double max_norm : {1e30, 1.0}) {
            thread_ranks::as_ranks(3, [&](int rank, auto& reducer) {
                network<float> net;
                mp::adamw<float> optimizer(net.parameters, {});
                mp::static_loss_scaler scaler = plain_scaler();
                scaler.set_reducer(reducer);
                if (rank == 1) net.d_second[30] = 1e20F;
                if (unscales) {
                    scaler.unscale(optimizer);
                    optimizer.clip_gradient_norm(max_norm);
                }
                const mp::step_result result = scaler.step(optimizer);
                scaler.update();
                const bool skips = !unscales || max_norm > 1.0;
                if (static_cast<bool>(result) == skips) throw std::runtime_error("wrong decision");
                if (!skips) return;
                if (result.found_elsewhere != (rank != 1)) throw std::runtime_error("wrong rank");
                if ((result.parameter_index == 1) != (rank == 1)) throw std::runtime_error("wrong place");
            });
        }
    }
}
