// SPDX-License-Identifier: MIT
#include <device/gpu/optimizer_checks.hpp>
#include <device/gpu/simulated_device.hpp>

#include <mp/loss_scaling.hpp>
#include <mp/nn/scaling/gpu/device_loss_scale.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace {

using gpu_test::check_adamw;
using gpu_test::check_sgd;
using gpu_test::run;
using gpu_test::simulated_device;
using half_parameter = mp::gpu_parameter<mp::half>;
using bfloat16_parameter = mp::gpu_parameter<mp::bfloat16>;
using float_parameter = mp::gpu_parameter<float>;
using mixed_parameter = mp::gpu_parameter<mp::half, float>;
/// Weights without a master copy.
using lone_parameter = mp::gpu_parameter<mp::bfloat16, mp::bfloat16, mp::bfloat16, float>;

constexpr mp::adamw_options adamw_options{.learning_rate = 0.01, .weight_decay = 0.1};
constexpr mp::sgd_options momentum_options{
    .learning_rate = 0.1, .momentum = 0.9, .dampening = 0.25, .weight_decay = 0.01};

TEST_CASE("AdamW has the CPU's and the oracle's bits in every schedule, at every alignment") {
    for (const std::uint64_t seed : {0U, 1U, 2U}) {
        simulated_device device(seed);
        for (const std::size_t shift : {0U, 1U, 4U}) {
            check_adamw<half_parameter>(device, adamw_options, {.shift = shift});
        }
    }
    simulated_device device(4);
    check_adamw<bfloat16_parameter>(device, {}, {.inverse_scale = 1.0F});
    check_adamw<float_parameter>(device, adamw_options, {});
    check_adamw<mixed_parameter>(device, adamw_options, {.shift = 2});
    check_adamw<mp::gpu_parameter<mp::half, mp::half, float, mp::bfloat16>>(device, adamw_options, {});
}

TEST_CASE("SGD has the CPU's and the oracle's bits, with and without momentum, decay and look-ahead") {
    for (const std::uint64_t seed : {0U, 1U}) {
        simulated_device device(seed);
        for (const std::size_t shift : {0U, 3U}) {
            check_sgd<half_parameter>(device, momentum_options, {.shift = shift});
            check_sgd<bfloat16_parameter>(device, {.learning_rate = 0.1}, {.shift = shift});
        }
    }
    simulated_device device(3);
    check_sgd<half_parameter>(device, {.learning_rate = 0.1, .weight_decay = 0.1}, {});
    check_sgd<float_parameter>(
        device, {.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true}, {});
}

TEST_CASE("clipped gradients train as on the CPU, with its norm to the bit") {
    for (const std::uint64_t seed : {0U, 5U}) {
        simulated_device device(seed);
        for (const std::size_t shift : {0U, 1U}) {
            const run clipped{.sizes = {1, 2, 3, 5, 33, 20000, 64, 4099}, .shift = shift, .max_norm = 0.25};
            check_adamw<half_parameter>(device, adamw_options, clipped);
            check_sgd<bfloat16_parameter>(device, momentum_options, clipped);
        }
        check_sgd<float_parameter>(device, momentum_options, {.max_norm = 1e30});
    }
}

TEST_CASE("weights without a master copy are rounded by the CPU's random bits, or keep what rounding took") {
    for (const std::uint64_t seed : {0U, 1U}) {
        simulated_device device(seed);
        for (const std::size_t shift : {0U, 1U}) {
            for (const auto how :
                 {mp::weight_update::nearest, mp::weight_update::stochastic, mp::weight_update::kahan}) {
                check_adamw<lone_parameter>(
                    device, {.learning_rate = 0.01, .low_precision_update = how, .seed = 0x1234567890},
                    {.shift = shift});
                check_sgd<mp::gpu_parameter<mp::half, mp::half, mp::half>>(
                    device, {.learning_rate = 0.1, .momentum = 0.9, .low_precision_update = how, .seed = 3},
                    {.shift = shift});
            }
        }
    }
    simulated_device device(2);
    check_adamw<mp::gpu_parameter<mp::bfloat16, mp::bfloat16, mp::bfloat16>>(
        device, {.learning_rate = 0.01, .low_precision_update = mp::weight_update::stochastic, .seed = 1},
        {});
}

TEST_CASE("masters of two halves have the CPU's and the oracle's bits, and half is refused") {
    for (const std::size_t shift : {0U, 1U}) {
        simulated_device device(shift);
        check_adamw<lone_parameter>(device,
                                    {.learning_rate = 0.01, .low_precision_update = mp::weight_update::split},
                                    {.shift = shift});
        check_sgd<mp::gpu_parameter<mp::bfloat16, mp::half, mp::bfloat16>>(
            device, {.learning_rate = 0.1, .momentum = 0.9, .low_precision_update = mp::weight_update::split},
            {.shift = shift});
    }
    simulated_device device(1);
    const mp::sgd_options options{.low_precision_update = mp::weight_update::split};
    auto optimizer = mp::make_device_optimizer(options);
    const std::vector<mp::gpu_parameter<mp::half, mp::half, mp::half>> none;
    CHECK_THROWS_WITH_AS(mp::sgd_step(device.exec(), none, options, &optimizer),
                         "mp::sgd_step: low_precision_update is 'split'; it must be another: only a bfloat16 "
                         "is half of a float",
                         mp::argument_error);
}

TEST_CASE("more parameters than a launch takes; those without a gradient are left alone") {
    simulated_device device(3);
    run many{.sizes = {}, .steps = 2, .bad_step = -1};
    for (std::size_t i = 0; i < 150; ++i) many.sizes.push_back(1 + i % 9);
    many.sizes[5] = 100;
    check_adamw<half_parameter>(device, adamw_options, many);

    std::vector<mp::half> weights(10, mp::half(1.0F));
    std::vector<float> masters(10, 1.0F);
    const half_parameter alone{.weights = weights, .masters = masters};
    auto optimizer = mp::make_device_optimizer(adamw_options);
    mp::adamw_step(device.exec(), std::vector{alone}, adamw_options, &optimizer);
    CHECK(masters == std::vector<float>(10, 1.0F));
    CHECK(optimizer.steps == 1);
}

TEST_CASE("all arrays move in full sectors, each element once") {
    for (const int what : {0, 1, 2}) {
        mp::simt::access_statistics statistics;
        simulated_device device(0, &statistics);
        const run aligned{.sizes = {2048, 4096, 128, 128, 128, 256}, .steps = 1, .bad_step = -1};
        if (what == 0) check_adamw<half_parameter>(device, adamw_options, aligned);
        if (what == 1) check_sgd<half_parameter>(device, momentum_options, aligned);
        if (what == 2) {
            check_adamw<lone_parameter>(
                device, {.low_precision_update = mp::weight_update::stochastic, .seed = 3}, aligned);
        }
        CHECK(statistics.wasted_sectors() == 0);
        std::uint64_t stored = 0;
        for (const auto& cost : statistics.costs()) {
            if (cost.operation == "store") stored += cost.transactions * 32;
        }
        // Weights of two bytes, and masters and states of four.
        CHECK(stored == (2048 + 4096 + 3 * 128 + 256) * (what == 0 ? 14U : 10U));
    }
}

TEST_CASE("a step reads what a loss scale knows, and its policy decides") {
    simulated_device device(1);
    const mp::pytorch_policy policy{.initial_scale = 8.0F};
    auto scale = mp::make_device_loss_scale(policy);
    std::vector<mp::half> weights(300, mp::half(1.0F));
    std::vector<mp::half> gradient(300, mp::half(4.0F));
    std::vector<float> masters(300, 1.0F);
    std::vector<float> momentum(300);
    const std::vector<half_parameter> list{
        {.weights = weights, .gradient = gradient, .masters = masters, .momentum = momentum}};
    auto optimizer = mp::make_device_optimizer(mp::sgd_options{.learning_rate = 0.5, .momentum = 0.5});
    const mp::sgd_options options{.learning_rate = 0.5, .momentum = 0.5};
    // Nothing has been checked, so the policy has no gradients to judge by.
    mp::sgd_step(device.exec(), list, options, &optimizer, policy, &scale);
    CHECK(optimizer.steps == 0);
    CHECK(masters[7] == 1.0F);
    mp::check_gradients(device.exec(), list, &scale);
    mp::sgd_step(device.exec(), list, options, &optimizer, policy, &scale);
    mp::update_scale(device.exec(), policy, &scale);
    CHECK(optimizer.steps == 1);
    CHECK(masters == std::vector<float>(300, 0.75F));
    CHECK(gpu_test::same_bits(weights, std::vector<mp::half>(300, mp::half(0.75F))));
    CHECK(momentum == std::vector<float>(300, 0.5F));
    gradient[299] = mp::half(std::numeric_limits<float>::infinity());
    std::vector<double> workspace(mp::gradient_norm_workspace(list));
    mp::device_gradient_norm norm;
    mp::gradient_norm(device.exec(), list, &scale, workspace, &norm, 1.0);
    mp::sgd_step(device.exec(), list, options, &optimizer, policy, &scale, &norm.clip_factor);
    mp::update_scale(device.exec(), policy, &scale);
    CHECK(optimizer.steps == 1);
    CHECK(masters == std::vector<float>(300, 0.75F));
    CHECK(scale.current_scale() == 4.0F);
    CHECK(scale.events().back().element == 299);
    // A policy that applies every step. The learning rate is that in memory.
    const mp::static_policy always{.initial_scale = 8.0F, .skip_non_finite = false};
    auto fixed = mp::make_device_loss_scale(always);
    mp::check_gradients(device.exec(), list, &fixed);
    optimizer.learning_rate = 0.0;
    mp::sgd_step(device.exec(), list, options, &optimizer, always, &fixed);
    CHECK(optimizer.steps == 2);
    CHECK(masters[0] == 0.75F);
    CHECK(momentum[0] == 0.75F);
    CHECK(gpu_test::is_nan(masters[299]));
}

TEST_CASE("what makes no sense is refused, and nothing is written") {
    simulated_device device;
    auto optimizer = mp::make_device_optimizer(adamw_options);
    std::vector<mp::half> weights(8);
    std::vector<mp::half> gradient(8, mp::half(1.0F));
    std::vector<float> floats(8);
    const half_parameter fine{weights, gradient, floats, floats, floats, {}};
    half_parameter short_state = fine;
    short_state.mean_square = std::span(floats).first(7);
    CHECK_THROWS_WITH_AS(
        mp::adamw_step(device.exec(), std::vector{fine, short_state}, adamw_options, &optimizer),
        "mp::adamw_step: parameters[1].mean_square.size() is 7; it must equal the number of weights, which "
        "is 8",
        mp::argument_error);
    half_parameter null_masters = fine;
    null_masters.masters = {static_cast<float*>(nullptr), 8};
    CHECK_THROWS_WITH_AS(
        mp::adamw_step(device.exec(), std::vector{null_masters}, adamw_options, &optimizer),
        "mp::adamw_step: parameters[0].masters.data() is null; it must point to memory, for the size is 8",
        mp::argument_error);
    CHECK_THROWS_WITH_AS(
        mp::adamw_step(device.exec(), std::vector{fine},
                       {.low_precision_update = mp::weight_update::stochastic}, &optimizer),
        "mp::adamw_step: low_precision_update is 'stochastic'; it must be nearest, for there "
        "is a master copy",
        mp::argument_error);
    CHECK_THROWS_AS(mp::adamw_step(device.exec(), std::vector{fine}, {.beta1 = 1.0}, &optimizer),
                    mp::argument_error);
    CHECK_THROWS_AS(mp::adamw_step(device.exec(), std::vector{fine}, adamw_options, nullptr),
                    mp::argument_error);
    CHECK_THROWS_WITH_AS(static_cast<void>(mp::make_device_optimizer(mp::sgd_options{.nesterov = true})),
                         "mp::make_device_optimizer: momentum is 0; it must not be 0 with nesterov",
                         mp::argument_error);
    CHECK(optimizer.steps == 0);
    CHECK(floats == std::vector<float>(8));
}

}  // namespace
