// SPDX-License-Identifier: MIT
// LAMB against Apex's FusedLAMB in torch, plain loops in long double, and by hand.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "nn/optim/layerwise_runs.hpp"
#include "nn/scaling/thrown.hpp"
#include "numbers/simd/caller_modes.hpp"

namespace {

/// The two stages of Apex's kernels, for one parameter.
struct reference {
    mp::lamb_options options;
    std::vector<long double> weights;
    std::vector<long double> m = {}, v = {};
    long double ratio = 1.0L;
    int steps = 0;

    void step(std::vector<long double> g) {
        ++steps;
        m.resize(g.size());
        v.resize(g.size());
        const auto beta1 = static_cast<long double>(options.beta1);
        const auto beta2 = static_cast<long double>(options.beta2);
        const auto decay = static_cast<long double>(options.weight_decay);
        const long double beta3 = options.grad_averaging ? 1 - beta1 : 1;
        const long double m_correction = options.bias_correction ? 1 - std::pow(beta1, steps) : 1;
        const long double v_correction = options.bias_correction ? 1 - std::pow(beta2, steps) : 1;
        std::vector<long double> update(g.size());
        for (std::size_t i = 0; i < g.size(); ++i) {
            if (!options.adam_w_mode) g[i] += decay * weights[i];
            m[i] = beta1 * m[i] + beta3 * g[i];
            v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
            update[i] = (m[i] / m_correction) /
                        (std::sqrt(v[i] / v_correction) + static_cast<long double>(options.epsilon));
            if (options.adam_w_mode) update[i] += decay * weights[i];
        }
        const long double w_norm = norm_of(weights);
        const long double u_norm = norm_of(update);
        ratio = 1.0L;
        if ((options.use_nvlamb || options.weight_decay > 0.0) && w_norm > 0 && u_norm > 0) {
            ratio = w_norm / u_norm;
        }
        for (std::size_t i = 0; i < g.size(); ++i) {
            weights[i] -= static_cast<long double>(options.learning_rate) * ratio * update[i];
        }
    }
};

/// A mean of 1 over a root of 1 in the first step, wherever the gradient is positive.
constexpr mp::lamb_options plain{
    .learning_rate = 0.5, .epsilon = 0.0, .weight_decay = 0.0, .use_nvlamb = true};

std::vector<float> one_step(std::vector<float> weights, std::vector<float> gradient,
                            const mp::lamb_options& options, double* ratio = nullptr) {
    mp::lamb<float> optimizer({{"w", weights, gradient}}, options);
    optimizer.step();
    if (ratio != nullptr) *ratio = optimizer.trust_ratio(0);
    return weights;
}

}  // namespace

TEST_CASE("LAMB is Apex's FusedLAMB") {
    // csrc/multi_tensor_lamb.cu, written with tensors of torch 2 in float64.
    mp::lamb_options options{.learning_rate = 0.125};
    mp::lamb_options bias = options;
    bias.weight_decay = 0.0;
    check_close(five_steps<mp::lamb<float>>(options, bias),
                {-0.935765762, 0.440899547, 0.522375933, -0.242538894, 0.680133799, -0.517427984, 0.215266505,
                 -1.39098165, -0.0581372295});
    options.weight_decay = 0.25;
    options.adam_w_mode = false;
    check_close(five_steps<mp::lamb<float>>(options, options),
                {-0.348297054, 0.20344397, 0.505960396, -0.0871018835, 0.208789174, -0.321668082,
                 -0.0523199038, -1.11231114, -0.159883812});
    const mp::lamb_options nvlamb{.learning_rate = 0.125,
                                  .beta1 = 0.75,
                                  .beta2 = 0.9375,
                                  .epsilon = 1e-3,
                                  .weight_decay = 0.1,
                                  .bias_correction = false,
                                  .grad_averaging = false,
                                  .use_nvlamb = true};
    bias = nvlamb;
    bias.weight_decay = 0.0;
    check_close(five_steps<mp::lamb<float>>(nvlamb, bias),
                {-0.886748786, 0.374975937, 0.59073981, -0.260506816, 0.672646814, -0.582368919, 0.0855904365,
                 -1.4689009, -0.185219254});
}

TEST_CASE("parameters of many chunks follow the paper's step, with the same bits for all threads") {
    check_by_reference<mp::lamb<float>, reference>(mp::lamb_options{.learning_rate = 0.01}, 1e-5);
    check_by_reference<mp::lamb<float>, reference>(
        mp::lamb_options{.weight_decay = 0.5, .bias_correction = false, .adam_w_mode = false}, 1e-5);
    check_by_reference<mp::lamb<float>, reference>(
        mp::lamb_options{.weight_decay = 0.0, .grad_averaging = false, .use_nvlamb = true}, 1e-5);
    check_by_reference<mp::lamb<float>, reference>(mp::lamb_options{.weight_decay = 0.0}, 1e-5);
}

TEST_CASE("ratios by hand") {
    const std::vector<float> w = {3.0F, 4.0F, 0.0F, 0.0F};
    const std::vector<float> g = {0.0F, 0.0F, 1.0F, 1.0F};
    double ratio = 0.0;
    mp::lamb_options options = plain;
    options.epsilon = 1e-30;  // 0 / 0 of gradients that are zero
    const auto moved = one_step(w, g, options, &ratio);
    // |w| = 5, |u| = sqrt(2).
    CHECK(ratio == doctest::Approx(5.0 / std::sqrt(2.0)).epsilon(1e-6));
    CHECK(moved[0] == 3.0F);
    CHECK(moved[2] == doctest::Approx(-2.5 / std::sqrt(2.0)).epsilon(1e-6));
    options.use_nvlamb = false;
    CHECK(one_step(w, g, options, &ratio)[2] == doctest::Approx(-0.5).epsilon(1e-6));
    CHECK(ratio == 1.0);
    options.weight_decay = 0.25;  // u = {0.75, 1, 1, 1}
    const auto decayed = one_step(w, g, options, &ratio);
    CHECK(decayed[0] == doctest::Approx(3.0 - 0.5 * ratio * 0.75).epsilon(1e-6));
    CHECK(ratio == doctest::Approx(5.0 / std::sqrt(3.5625)).epsilon(1e-6));
}

TEST_CASE("where a norm is zero, or not finite, the ratio is one") {
    double ratio = 0.0;
    mp::lamb_options options = plain;
    CHECK(one_step({0.0F, 0.0F}, {1.0F, 1.0F}, options, &ratio)[1] == doctest::Approx(-0.5).epsilon(1e-6));
    CHECK(ratio == 1.0);
    options.epsilon = 1.0;
    CHECK(one_step({3.0F, 4.0F}, {0.0F, 0.0F}, options, &ratio) == std::vector<float>{3.0F, 4.0F});
    CHECK(ratio == 1.0);
    const auto w =
        one_step({1.0F, 2.0F, 3.0F}, {1.0F, std::numeric_limits<float>::quiet_NaN(), 1.0F}, plain, &ratio);
    CHECK(w[0] == doctest::Approx(0.5).epsilon(1e-6));
    CHECK(std::isnan(w[1]));
    CHECK(w[2] == doctest::Approx(2.5).epsilon(1e-6));
    CHECK(ratio == 1.0);
}

TEST_CASE("ratios beyond the range of float move weights by the learning rate times their norm") {
    mp::lamb_options options = plain;
    options.epsilon = std::ldexp(1.0, 100);
    double ratio = 0.0;
    const float large = std::ldexp(1.0F, 100);
    // An update of 2^-100 each, and a norm of 2^100: times 2^199 it would be 2^99.
    const auto w = one_step({large, 0.0F}, {0.0F, 1.0F}, options, &ratio);
    CHECK(ratio == doctest::Approx(std::ldexp(1.0, 200)).epsilon(1e-6));
    CHECK(w[0] == large);
    CHECK(w[1] == doctest::Approx(-std::ldexp(1.0, 28)).epsilon(1e-6));  // the largest float times 2^-100
}

TEST_CASE("moments in blocks are summed in the order of floats: the ratio of the first step has its bits") {
    std::mt19937 random(9);
    std::normal_distribution<float> normal;
    std::vector<float> w(50001), g(50001);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = normal(random);
    for (float& it : g) it = normal(random);
    for (const mp::cpu exec : optimizer_executors({1, 3})) {
        std::vector<float> weights = w, other_weights = w;
        mp::lamb<float> floats(exec, {{"w", weights, g}});
        mp::lamb<float, float, float, mp::block_moment> blocks(exec, {{"w", other_weights, g}});
        floats.step();
        blocks.step();
        CHECK(floats.trust_ratio(0) == blocks.trust_ratio(0));
        CHECK(weights == other_weights);
    }
}

TEST_CASE("a clipped step of scaled half gradients is the float step of those gradients") {
    std::vector<mp::half> w(700), g(700);
    std::vector<float> other_g(700);
    std::vector<mp::half> other_w(700);
    for (std::size_t i = 0; i < 700; ++i) w[i] = other_w[i] = mp::half(static_cast<float>(i % 13) - 5.5F);
    mp::lamb<mp::half> optimizer({{"w", w, g}}, {.learning_rate = 0.01});
    mp::lamb<mp::half, float> other({{"w", other_w, other_g}}, {.learning_rate = 0.01});
    mp::dynamic_loss_scaler scaler({.initial_scale = 8.0F});
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    for (std::size_t step = 0; step < 4; ++step) {
        for (std::size_t i = 0; i < 700; ++i) {
            g[i] = mp::half(static_cast<float>((i * 7 + step) % 31) - 14.5F);
            other_g[i] = static_cast<float>(g[i]);
        }
        mp::training_iteration iteration(scaler, optimizer);
        const double norm = iteration.clip_global_gradient_norm(1.0);
        const auto factor = static_cast<float>(1.0 / (norm + 1e-6));
        for (float& it : other_g) it = it * 0.125F * factor;
        CHECK(iteration.finish());
        other.step();
        CHECK(optimizer.trust_ratio(0) == other.trust_ratio(0));
        for (std::size_t i = 0; i < 700; ++i) {
            REQUIRE(optimizer.master_weights(0)[i] == other.master_weights(0)[i]);
            REQUIRE(optimizer.gradient_mean(0)[i] == other.gradient_mean(0)[i]);
            REQUIRE(optimizer.gradient_mean_square(0)[i] == other.gradient_mean_square(0)[i]);
        }
    }
    CHECK(optimizer.bytes_per_parameter() == 16.0);
}

#if TEST_HAS_MODES

TEST_CASE("modes of rounding and flushing of the caller change no bit, with any threads") {
    const auto trained = [](mp::cpu exec, mode_bits control) {
        std::vector<float> w(70000), g(70000);
        for (std::size_t i = 0; i < w.size(); ++i) {
            w[i] = static_cast<float>(i % 37) * 0x1.8p-70F;
            g[i] = static_cast<float>(i * 11 % 23) * 0x1.8p-66F;  // whose squares are subnormal
        }
        const mode_bits before = current_modes();
        set_modes(control);
        mp::lamb<float> optimizer(exec, {{"w", w, g}}, {.learning_rate = 0.3, .epsilon = 0x1p-80});
        mp::lars<float> another(exec, {{"w", w, g}}, {.learning_rate = 0.3});
        for (int round = 0; round < 3; ++round) {
            optimizer.step(0.3F);
            another.step(0.3F);
        }
        const mode_bits after = current_modes();
        set_modes(before);
        CHECK(after == control);
        return w;
    };
    const auto expected = trained(mp::cpu{1, mp::instruction_set::portable}, default_modes);
    for (const mp::cpu exec : optimizer_executors({1, 3})) {
        for (const mode_bits control : caller_modes) {
            CAPTURE(control);
            CHECK(std::memcmp(trained(exec, control).data(), expected.data(), expected.size() * 4) == 0);
        }
    }
}

#endif

TEST_CASE("options out of range are refused by name") {
    std::vector<float> w(6), g(6);
    const auto message = [&](const mp::lamb_options& options) {
        return thrown<mp::argument_error>([&] { mp::lamb<float> optimizer({{"w", w, g}}, options); });
    };
    CHECK(holds(message({.learning_rate = -1.0}), "mp::lamb: learning_rate is -1"));
    CHECK(holds(message({.beta1 = 1.0}), "mp::lamb: beta1 is 1"));
    CHECK(holds(message({.beta2 = -0.5}), "mp::lamb: beta2 is -0.5"));
    CHECK(holds(message({.epsilon = 1e-50}), "mp::lamb: epsilon is 1e-50"));
    CHECK(holds(message({.weight_decay = std::nan("")}), "mp::lamb: weight_decay is nan"));
    CHECK(
        holds(message({.low_precision_update = mp::weight_update::split}), "mp::lamb: low_precision_update"));
    mp::lamb<float> optimizer({{"w", w, g}});
    CHECK(holds(thrown<mp::argument_error>([&] { optimizer.set_learning_rate_factor(-1.0); }),
                "mp::lamb: factor is -1"));
    CHECK(holds(thrown<mp::argument_error>([&] { static_cast<void>(optimizer.trust_ratio(1)); }),
                "index is 1"));
    CHECK(optimizer.gradient_mean(0).size() == 6);
}
