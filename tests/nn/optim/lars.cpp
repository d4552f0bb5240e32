// SPDX-License-Identifier: MIT
// LARS against Apex's LARC in torch, plain loops in long double, and by hand.
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

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// The paper's step with the options of torch.optim.SGD, for one parameter.
struct reference {
    mp::lars_options options;
    std::vector<long double> weights;
    std::vector<long double> buffer = {};
    long double ratio = 1.0L;

    void step(std::vector<long double> g) {
        const auto decay = static_cast<long double>(options.weight_decay);
        const auto momentum = static_cast<long double>(options.momentum);
        const auto rate = static_cast<long double>(options.learning_rate);
        const long double w_norm = norm_of(weights);
        const long double g_norm = norm_of(g);
        ratio = 1.0L;
        if (w_norm > 0.0L && g_norm > 0.0L && options.layer_adaptation) {
            ratio = static_cast<long double>(options.trust_coefficient) * w_norm /
                    (g_norm + decay * w_norm + static_cast<long double>(options.epsilon));
            if (options.clip) ratio = std::min(ratio / rate, 1.0L);
        }
        const bool first = buffer.empty();
        buffer.resize(g.size());
        for (std::size_t i = 0; i < g.size(); ++i) {
            const long double scaled = ratio * (g[i] + decay * weights[i]);
            buffer[i] = momentum * buffer[i] +
                        (first ? 1.0L : 1.0L - static_cast<long double>(options.dampening)) * scaled;
            weights[i] -= rate * (options.nesterov ? scaled + momentum * buffer[i] : buffer[i]);
        }
    }
};

/// One step of four weights of 0.5, whose norm is 1, by a rate of 1 without momentum or decay.
std::vector<float> one_step(std::vector<float> weights, std::vector<float> gradient, mp::lars_options options,
                            double* ratio = nullptr) {
    options.momentum = 0.0;
    options.weight_decay = 0.0;
    mp::lars<float> optimizer({{"w", weights, gradient}}, options);
    optimizer.step();
    if (ratio != nullptr) *ratio = optimizer.trust_ratio(0);
    return weights;
}

}  // namespace

TEST_CASE("LARS is Apex's LARC around torch.optim.SGD") {
    // apex/parallel/LARC.py with torch 2 in float64.
    const mp::lars_options options{
        .learning_rate = 4.0, .momentum = 0.875, .weight_decay = 0.0625, .trust_coefficient = 0.02};
    check_close(five_steps<mp::lars<float>>(options, options),
                {-0.653676576, 0.250107222, 0.53010297, -0.183594107, 0.44602243, -0.423579821, 0.0374026309,
                 -1.40440913, -0.0943384567});
    mp::lars_options nesterov = options;
    nesterov.nesterov = true;
    check_close(five_steps<mp::lars<float>>(nesterov, nesterov),
                {-0.635022418, 0.235673652, 0.480047252, -0.184066218, 0.459573963, -0.417307767,
                 -0.0188283938, -1.39164484, -0.227807628});
    mp::lars_options clipped{.learning_rate = 0.25,
                             .momentum = 0.5,
                             .dampening = 0.25,
                             .weight_decay = 0.0625,
                             .trust_coefficient = 0.5,
                             .clip = true};
    check_close(five_steps<mp::lars<float>>(clipped, clipped),
                {-0.617980928, 0.173860702, 0.706493933, -0.230909437, 0.494631784, -0.543399307,
                 0.0988963665, -1.46822606, -0.390696438});
    clipped.dampening = 0.0;
    clipped.trust_coefficient = 0.02;
    check_close(five_steps<mp::lars<float>>(clipped, clipped),
                {-0.626328549, 0.138599615, 0.823708902, -0.242661171, 0.494365093, -0.600988171, 0.428916843,
                 -1.49802335, 0.188904126});
}

TEST_CASE("parameters of many chunks follow the paper's step, with the same bits for all threads") {
    check_by_reference<mp::lars<float>, reference>(mp::lars_options{.learning_rate = 2.0}, 1e-5);
    check_by_reference<mp::lars<float>, reference>(
        mp::lars_options{.dampening = 0.5, .weight_decay = 0.25, .trust_coefficient = 0.1}, 1e-5);
    check_by_reference<mp::lars<float>, reference>(
        mp::lars_options{.nesterov = true, .trust_coefficient = 0.02, .clip = true}, 1e-5);
}

TEST_CASE("ratios by hand") {
    const std::vector<float> w = {3.0F, 4.0F, 0.0F, 0.0F};
    const std::vector<float> g = {0.0F, 0.0F, 1.5F, 2.0F};
    double ratio = 0.0;
    // |w| = 5, |g| = 2.5
    CHECK(one_step(w, g, {.learning_rate = 1.0, .epsilon = 0.0, .trust_coefficient = 0.25}, &ratio) ==
          std::vector<float>{3.0F, 4.0F, -0.75F, -1.0F});
    CHECK(ratio == 0.5);
    CHECK(one_step(w, g, {.learning_rate = 2.0, .epsilon = 0.0, .trust_coefficient = 0.25}) ==
          std::vector<float>{3.0F, 4.0F, -1.5F, -2.0F});
    CHECK(one_step(w, g, {.learning_rate = 1.0, .epsilon = 2.5, .trust_coefficient = 0.25}, &ratio) ==
          std::vector<float>{3.0F, 4.0F, -0.375F, -0.5F});
    CHECK(ratio == 0.25);
    // Clipped, the layer's rate is the ratio itself, but at most the learning rate.
    CHECK(one_step(w, g, {.learning_rate = 2.0, .epsilon = 0.0, .trust_coefficient = 0.25, .clip = true},
                   &ratio) == std::vector<float>{3.0F, 4.0F, -0.75F, -1.0F});
    CHECK(ratio == 0.25);
    CHECK(one_step(w, g, {.learning_rate = 0.25, .epsilon = 0.0, .trust_coefficient = 0.25, .clip = true},
                   &ratio) == std::vector<float>{3.0F, 4.0F, -0.375F, -0.5F});
    CHECK(ratio == 1.0);
    CHECK(one_step(w, g, {.learning_rate = 0.0, .trust_coefficient = 0.25, .clip = true}, &ratio) == w);
    CHECK(ratio == 1.0);
    // By the learning rate of the step, after a schedule.
    std::vector<float> scheduled = w;
    std::vector<float> gradient = g;
    mp::lars<float> optimizer({{"w", scheduled, gradient}}, {.learning_rate = 1.0,
                                                             .momentum = 0.0,
                                                             .epsilon = 0.0,
                                                             .weight_decay = 0.0,
                                                             .trust_coefficient = 0.25,
                                                             .clip = true});
    optimizer.set_learning_rate_factor(2.0);
    optimizer.step();
    CHECK(scheduled == std::vector<float>{3.0F, 4.0F, -0.75F, -1.0F});
    CHECK(optimizer.trust_ratio(0) == 0.25);
    // Without adaptation it is SGD.
    CHECK(one_step(w, g, {.learning_rate = 1.0, .layer_adaptation = false}, &ratio) ==
          std::vector<float>{3.0F, 4.0F, -1.5F, -2.0F});
    CHECK(ratio == 1.0);
}

TEST_CASE("where a norm is zero the ratio is one, also where decay moves the weights") {
    const std::vector<float> zeros(4);
    const std::vector<float> g = {0.0F, 0.0F, 1.5F, 2.0F};
    double ratio = 0.0;
    CHECK(one_step(zeros, g, {.learning_rate = 1.0}, &ratio) == std::vector<float>{0.0F, 0.0F, -1.5F, -2.0F});
    CHECK(ratio == 1.0);
    CHECK(one_step(g, zeros, {.learning_rate = 1.0}, &ratio) == g);
    CHECK(ratio == 1.0);
    std::vector<float> w = {4.0F};
    std::vector<float> dw = {0.0F};
    mp::lars<float> decays({{"w", w, dw}}, {.learning_rate = 1.0, .weight_decay = 0.25});
    decays.step();
    CHECK(w[0] == 3.0F);
}

TEST_CASE("norms and ratios beyond the range of float move weights by what the definition says") {
    double ratio = 0.0;
    // Squares that float does not have.
    const float large = std::ldexp(1.0F, 100);
    const float small = std::ldexp(1.0F, -140);
    CHECK(one_step({large, 0.0F}, {0.0F, 1.0F},
                   {.learning_rate = 1.0, .epsilon = 0.0, .trust_coefficient = 0.5},
                   &ratio) == std::vector<float>{large, -large / 2});
    CHECK(ratio == std::ldexp(1.0, 99));
    CHECK(one_step({1.0F, 0.0F}, {0.0F, large},
                   {.learning_rate = 1.0, .epsilon = 0.0, .trust_coefficient = 0.5},
                   &ratio) == std::vector<float>{1.0F, -0.5F});
    CHECK(ratio == std::ldexp(1.0, -101));
    // 2^139 is no float: the largest one does no harm.
    CHECK(one_step({1.0F, 0.0F}, {0.0F, small},
                   {.learning_rate = 1.0, .epsilon = 0.0, .trust_coefficient = 0.5},
                   &ratio) == std::vector<float>{1.0F, -std::ldexp(0x1.fffffep127F, -140)});
    CHECK(ratio == std::ldexp(1.0, 139));
}

TEST_CASE("an infinity or NaN among the gradients changes no other element") {
    for (const float bad : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
        double ratio = 0.0;
        const auto w = one_step({1.0F, 2.0F, 3.0F}, {0.5F, bad, 0.25F}, {.learning_rate = 1.0}, &ratio);
        CHECK(w[0] == 0.5F);
        CHECK_FALSE(std::isfinite(w[1]));
        CHECK(w[2] == 2.75F);
        CHECK(ratio == 1.0);
    }
}

TEST_CASE("without adaptation the bits are those of mp::sgd") {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    std::vector<mp::half> w(3000), g(3000), other_w(3000);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = other_w[i] = mp::half(normal(random));
    mp::lars<mp::half> lars({{"w", w, g}},
                            {.dampening = 0.25, .weight_decay = 0.1, .layer_adaptation = false});
    mp::sgd<mp::half> sgd({{"w", other_w, g}},
                          {.learning_rate = 0.1, .momentum = 0.9, .dampening = 0.25, .weight_decay = 0.1});
    for (int step = 0; step < 5; ++step) {
        for (mp::half& it : g) it = mp::half(normal(random));
        lars.step(0.3F);
        sgd.step(0.3F);
        CHECK(std::memcmp(lars.master_weights(0).data(), sgd.master_weights(0).data(), 12000) == 0);
        CHECK(std::memcmp(lars.momentum(0).data(), sgd.momentum(0).data(), 12000) == 0);
    }
}

TEST_CASE("norms are of gradients without scale, clipped, and of the weights that are trained") {
    std::vector<mp::bfloat16> w(100, mp::bfloat16(1.0F)), dw(100, mp::bfloat16(8.0F));
    mp::lars<mp::bfloat16> optimizer({{"w", w, dw}}, {.learning_rate = 0.001,
                                                      .momentum = 0.0,
                                                      .epsilon = 0.0,
                                                      .weight_decay = 0.0,
                                                      .trust_coefficient = 1.0});
    mp::static_loss_scaler scaler({.initial_scale = 8.0F});
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    const auto step = [&] {
        const bool applied = static_cast<bool>(scaler.step(optimizer));
        scaler.update();
        return applied;
    };
    CHECK(step());
    CHECK(optimizer.trust_ratio(0) == 1.0);
    // The masters are 0.999 now, the weights 1 still.
    const double master = static_cast<double>(optimizer.master_weights(0)[0]);
    CHECK(master == doctest::Approx(0.999).epsilon(1e-7));
    CHECK(static_cast<float>(w[0]) == 1.0F);
    CHECK(step());
    CHECK(optimizer.trust_ratio(0) == doctest::Approx(master).epsilon(1e-15));
    // A gradient of norm 10 is clipped to 5, so the ratio doubles.
    static_cast<void>(scaler.unscale(optimizer));
    CHECK(optimizer.clip_gradient_norm(5.0) == 10.0);
    const double before = static_cast<double>(optimizer.master_weights(0)[0]);
    CHECK(step());
    CHECK(optimizer.trust_ratio(0) == doctest::Approx(2 * before).epsilon(1e-6));
    // A skipped step is not the last one.
    const double kept = optimizer.trust_ratio(0);
    dw[7] = mp::bfloat16(infinity);
    CHECK_FALSE(step());
    CHECK(optimizer.trust_ratio(0) == kept);
    // Changed options hold from the next step on.
    dw[7] = mp::bfloat16(8.0F);
    mp::lars_options off = optimizer.options();
    off.layer_adaptation = false;
    optimizer.set_options(off);
    CHECK(step());
    CHECK(optimizer.trust_ratio(0) == 1.0);
}

TEST_CASE("options out of range are refused by name") {
    std::vector<float> w(6), g(6);
    const auto message = [&](const mp::lars_options& options) {
        return thrown<mp::argument_error>([&] { mp::lars<float> optimizer({{"w", w, g}}, options); });
    };
    CHECK(message({.trust_coefficient = 0.0}) ==
          "mp::lars: trust_coefficient is 0; it must be greater than 0");
    CHECK(holds(message({.trust_coefficient = std::nan("")}), "mp::lars: trust_coefficient is nan"));
    CHECK(holds(message({.learning_rate = -1.0}), "mp::lars: learning_rate is -1"));
    CHECK(holds(message({.momentum = 1.0}), "mp::lars: momentum is 1"));
    CHECK(holds(message({.dampening = 2.0}), "mp::lars: dampening is 2"));
    CHECK(holds(message({.momentum = 0.0, .nesterov = true}), "mp::lars: momentum is 0"));
    CHECK(holds(message({.epsilon = -1.0}), "mp::lars: epsilon is -1"));
    CHECK(holds(message({.weight_decay = -0.5}), "mp::lars: weight_decay is -0.5"));
    CHECK(
        holds(message({.low_precision_update = mp::weight_update::kahan}), "mp::lars: low_precision_update"));
    mp::lars<float> plain({{"w", w, g}}, {.momentum = 0.0});
    CHECK(plain.momentum(0).empty());
    CHECK(holds(thrown<mp::argument_error>([&] { plain.set_options({.momentum = 0.9}); }),
                "mp::lars: momentum is 0.9; it must be 0, for the optimizer was made without memory for it"));
    CHECK(holds(thrown<mp::argument_error>([&] { static_cast<void>(plain.trust_ratio(1)); }), "index is 1"));
}
