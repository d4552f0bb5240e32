// SPDX-License-Identifier: MIT
// Gradients that are finite and too large for a step: what checks count on every instruction set, after clipping and
// over ranks, and what results and events say.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/nn/scaling/event_text.hpp>
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
#include <utility>
#include <vector>

#include "nn/optim/executors.hpp"
#include "nn/scaling/thread_ranks.hpp"

namespace {

using mp::bfloat16, mp::half;

/// Weights and gradients of two parameters, of which the second is the one to spoil.
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
                const auto check = mp::detail::select_check<Gradient>(exec.instructions, inverse);
                CHECK(check(gradient.data(), gradient.size(), inverse, bits) == expected);
                std::vector<float> unscaled(gradient.size());
                const auto pass =
                    mp::detail::select_unscale<Gradient>(exec.instructions, inverse, false, gradient.size());
                CHECK(pass(gradient.data(), unscaled.data(), gradient.size(), inverse, bits) == expected);
            }
        }
    }
}

TEST_CASE("a step is skipped for a gradient that is too large, and neither scale nor state moves") {
    network<float> net;
    mp::adamw<float> optimizer(net.parameters, {});
    mp::dynamic_loss_scaler scaler({.initial_scale = 8.0F, .growth_interval = 1});
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
        CHECK(optimizer.step_count() == 0);
        CHECK(net.second == std::vector<float>(5000, 1.0F));
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
