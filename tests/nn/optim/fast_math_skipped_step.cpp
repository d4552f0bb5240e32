// SPDX-License-Identifier: MIT
// Compiled with -ffast-math. A step that is skipped leaves every bit of weights, masters, state and
// counts as it was: training that meets bad gradients on the way ends exactly where training without them
// ends.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace {

/// The bytes of everything that a step may change.
template <class Optimizer>
std::string bytes_of(const Optimizer& optimizer) {
    std::string bytes;
    const auto add = [&](auto values) {
        bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    };
    for (std::size_t i = 0; i < optimizer.parameters().size(); ++i) {
        add(optimizer.parameters()[i].weights);
        add(optimizer.master_weights(i));
        add(optimizer.weight_compensation(i));
        if constexpr (requires { optimizer.momentum(i); }) {
            add(optimizer.momentum(i));
        } else {
            add(optimizer.gradient_mean(i));
            add(optimizer.gradient_mean_square(i));
        }
    }
    return bytes + std::to_string(optimizer.step_count()) + " " + std::to_string(optimizer.learning_rate());
}

template <class Gradient>
Gradient bad_value(bool nan) {
    const std::uint32_t bits = nan ? 0x7fc00000U : 0xff800000U;
    return static_cast<Gradient>(std::bit_cast<float>(bits));
}

template <class Optimizer, class Options>
void check_skipped_steps(const Options& options) {
    using weight = typename Optimizer::weight_type;
    using gradient_value = typename Optimizer::gradient_type;
    constexpr std::size_t count = 1300;
    std::vector<weight> weights[2];
    std::vector<gradient_value> gradient[2];
    for (int run = 0; run < 2; ++run) {
        gradient[run].resize(count);
        for (std::size_t i = 0; i < count; ++i) {
            weights[run].push_back(static_cast<weight>(0.01F * static_cast<float>(i % 97)));
        }
    }
    Optimizer disturbed({{"w", weights[0], gradient[0]}}, options);
    Optimizer undisturbed({{"w", weights[1], gradient[1]}}, options);
    mp::static_loss_scaler scaler({.initial_scale = 8.0F});
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    const auto fill = [&](std::vector<gradient_value>& values, int step) {
        for (std::size_t i = 0; i < count; ++i) {
            values[i] = static_cast<gradient_value>(
                0.125F * static_cast<float>((i * 7 + std::size_t(step)) % 31) - 1.5F);
        }
    };
    for (int step = 0; step < 8; ++step) {
        CAPTURE(step);
        fill(gradient[1], step);
        REQUIRE(scaler.step(undisturbed));
        scaler.update();
        // A bad iteration first, with the bad value in another place each time, then the good one.
        fill(gradient[0], step);
        gradient[0][std::size_t(step) * 170] = bad_value<gradient_value>(step % 2 == 0);
        const std::string before = bytes_of(disturbed);
        const bool explicitly = step % 4 < 2;
        if (explicitly) {
            REQUIRE(scaler.unscale(disturbed).found());
            disturbed.clip_gradient_norm(1.0);
        }
        const mp::step_result result = scaler.step(disturbed);
        REQUIRE_FALSE(result);
        REQUIRE(result.element_index == std::size_t(step) * 170);
        REQUIRE(result.nans == (step % 2 == 0 ? 1U : 0U));
        scaler.update();
        REQUIRE(bytes_of(disturbed) == before);
        fill(gradient[0], step);
        if (explicitly) scaler.unscale(disturbed);
        REQUIRE(scaler.step(disturbed));
        scaler.update();
        REQUIRE(bytes_of(disturbed) != before);
        REQUIRE(bytes_of(disturbed) == bytes_of(undisturbed));
    }
}

}  // namespace

TEST_CASE("skipped steps of SGD leave every bit alone") {
    const mp::sgd_options options{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01};
    check_skipped_steps<mp::sgd<mp::half>>(options);
    check_skipped_steps<mp::sgd<mp::bfloat16>>(options);
    check_skipped_steps<mp::sgd<mp::half, mp::half, mp::half>>(options);
    check_skipped_steps<mp::sgd<mp::half, float>>(options);
    check_skipped_steps<mp::sgd<float>>(options);
    for (const auto how : {mp::weight_update::stochastic, mp::weight_update::kahan}) {
        mp::sgd_options alone = options;
        alone.low_precision_update = how;
        check_skipped_steps<mp::sgd<mp::bfloat16, mp::bfloat16, mp::bfloat16>>(alone);
        check_skipped_steps<mp::sgd<mp::half, mp::half, mp::half, float>>(alone);
    }
}

TEST_CASE("skipped steps of AdamW leave every bit alone") {
    const mp::adamw_options options{.learning_rate = 0.01};
    check_skipped_steps<mp::adamw<mp::half>>(options);
    check_skipped_steps<mp::adamw<mp::bfloat16>>(options);
    check_skipped_steps<mp::adamw<mp::bfloat16, mp::bfloat16, mp::bfloat16>>(options);
    check_skipped_steps<mp::adamw<float>>(options);
    for (const auto how : {mp::weight_update::stochastic, mp::weight_update::kahan}) {
        mp::adamw_options alone = options;
        alone.low_precision_update = how;
        check_skipped_steps<mp::adamw<mp::bfloat16, mp::bfloat16, mp::bfloat16, float>>(alone);
    }
}

TEST_CASE("skipped steps of LARS and LAMB leave every bit alone") {
    check_skipped_steps<mp::lars<mp::half>>(mp::lars_options{});
    check_skipped_steps<mp::lars<float>>(mp::lars_options{.trust_coefficient = 0.02, .clip = true});
    check_skipped_steps<mp::lamb<mp::half>>(mp::lamb_options{});
    check_skipped_steps<mp::lamb<mp::bfloat16, mp::bfloat16, mp::bfloat16, float>>(
        mp::lamb_options{.low_precision_update = mp::weight_update::kahan});
}
