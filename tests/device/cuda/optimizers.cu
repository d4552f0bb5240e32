// SPDX-License-Identifier: MIT
#include <device/cuda/real_device.hpp>
#include <device/gpu/norm_checks.hpp>
#include <device/gpu/optimizer_checks.hpp>

#include <mp/cuda.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <vector>

namespace {

using gpu_test::check_adamw;
using gpu_test::check_norm;
using gpu_test::check_sgd;
using half_parameter = mp::gpu_parameter<mp::half>;
using lone_parameter = mp::gpu_parameter<mp::bfloat16, mp::bfloat16, mp::bfloat16, float>;

const std::vector<std::size_t> sizes{1, 2, 3, 5, 33, 2100, 64, 4099, 1000003};

TEST_CASE("AdamW and SGD: the device trains to the CPU's bits") {
    gpu_test::real_device device;
    for (const std::size_t shift : {0U, 1U, 4U}) {
        const gpu_test::run how{.sizes = sizes, .shift = shift, .steps = 5};
        check_adamw<half_parameter>(device, {.learning_rate = 0.01, .weight_decay = 0.1}, how);
        check_sgd<half_parameter>(
            device, {.learning_rate = 0.1, .momentum = 0.9, .dampening = 0.25, .weight_decay = 0.01}, how);
        check_sgd<mp::gpu_parameter<mp::bfloat16>>(device, {.learning_rate = 0.1}, how);
    }
    // The bias corrections of many steps.
    check_adamw<mp::gpu_parameter<float>>(device, {},
                                          {.sizes = {1, 2, 3, 5, 33, 20}, .steps = 3000, .bad_step = 1000});
}

TEST_CASE("clipping: norm and factor are the CPU's") {
    gpu_test::real_device device;
    check_norm<mp::half>(device, sizes, 0, 1.0F / 3.0F, 2.0);
    check_norm<float>(device, sizes, 1, 0x1p-16F, 1e-4);
    check_norm<mp::bfloat16>(device, {50000000}, 0, 1.0F, std::numeric_limits<double>::infinity());
    check_norm<float>(device, std::vector<std::size_t>(400, 77), 0, 0.5F, 1.0);
    check_adamw<half_parameter>(device, {}, {.sizes = sizes, .max_norm = 0.25});
}

TEST_CASE("weights without a master copy: the device has the CPU's random bits") {
    gpu_test::real_device device;
    for (const auto how :
         {mp::weight_update::nearest, mp::weight_update::stochastic, mp::weight_update::kahan}) {
        for (const std::size_t shift : {0U, 1U}) {
            check_adamw<lone_parameter>(
                device, {.learning_rate = 0.01, .low_precision_update = how, .seed = 0x1234567890},
                {.sizes = sizes, .shift = shift});
            check_sgd<mp::gpu_parameter<mp::half, mp::half, mp::half>>(
                device, {.learning_rate = 0.1, .momentum = 0.9, .low_precision_update = how, .seed = 3},
                {.sizes = sizes, .shift = shift});
        }
    }
}

}  // namespace
