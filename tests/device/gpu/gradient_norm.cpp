// SPDX-License-Identifier: MIT
#include <device/gpu/norm_checks.hpp>
#include <device/gpu/simulated_device.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace {

using gpu_test::check_norm;
using gpu_test::simulated_device;

TEST_CASE("the norm has the CPU's bits and those of the documented order, in every schedule") {
    const std::vector<std::size_t> sizes{0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 4095, 4096, 4097, 9001};
    for (const std::uint64_t seed : {0U, 1U, 2U, 3U}) {
        simulated_device device(seed);
        for (const std::size_t shift : {0U, 1U}) {
            check_norm<mp::half>(device, sizes, shift, 1.0F / 3.0F, 2.0);
            check_norm<float>(device, sizes, shift, 0x1p-16F, 1e-4);
        }
        check_norm<mp::bfloat16>(device, sizes, 2, 1.0F, std::numeric_limits<double>::infinity());
    }
}

TEST_CASE("lists of more gradients than a launch takes, and of more blocks than there are lanes") {
    simulated_device device(1);
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < 260; ++i) sizes.push_back(1 + i % 5);
    sizes[230] = 300000;
    CHECK(mp::detail::square_sums_kernel<mp::half>::capacity < 200);
    check_norm<mp::half>(device, sizes, 0, 0.5F, 1.0);
}

TEST_CASE("the sums of thousands of blocks are added in the documented order") {
    for (const std::size_t count : {0U, 1U, 255U, 256U, 257U, 2048U, 5003U}) {
        simulated_device device(count);
        std::vector<double> sums;
        for (const float value : gpu_test::normal_values<float>(count, 9)) {
            sums.push_back(static_cast<double>(value) * static_cast<double>(value));
        }
        volatile double lanes[256] = {};
        for (std::size_t i = 0; i < count; ++i) lanes[i % 256] = lanes[i % 256] + sums[i];
        for (int half = 128; half > 0; half /= 2) {
            for (int lane = 0; lane < half; ++lane) lanes[lane] = lanes[lane] + lanes[lane + half];
        }
        mp::device_gradient_norm result;
        launch("test", device.exec(), mp::simt::launch_size{.blocks = 1, .shared_bytes = 2048},
               mp::detail::gradient_norm_kernel{sums.data(), count, 1.0, &result, nullptr});
        CHECK(result.norm == std::sqrt(lanes[0]));
    }
}

TEST_CASE("norms that only double can hold, and none at all") {
    simulated_device device;
    auto result = device.put(std::vector<mp::device_gradient_norm>(1));
    auto workspace = device.put(std::vector<double>(8));
    const auto norm_of = [&](const std::vector<float>& values, double max_norm) {
        auto memory = device.put(values);
        const std::vector<mp::gpu_gradient<float>> list{{memory.span(), {}}};
        mp::gradient_norm(device.exec(), list, nullptr, workspace.span(), result.data(), max_norm);
        return device.get(result)[0];
    };
    auto found = norm_of({3e38F, 3e38F, 3e38F, 3e38F}, 1.0);
    CHECK(found.norm == 2.0 * static_cast<double>(3e38F));
    CHECK(found.clip_factor == static_cast<float>(1.0 / (2.0 * static_cast<double>(3e38F) + 1e-6)));
    found = norm_of({0x1p-149F, 0.0F}, 1.0);
    CHECK(found.norm == 0x1p-149);
    CHECK(found.clip_factor == 1.0F);
    found = norm_of({3.0F, 4.0F}, 5.0);
    CHECK(found.norm == 5.0);
    CHECK(found.clip_factor == static_cast<float>(5.0 / (5.0 + 1e-6)));
    found = norm_of({}, 5.0);
    CHECK(found.norm == 0.0);
    CHECK(found.clip_factor == 1.0F);
    found = norm_of({1.0F, std::numeric_limits<float>::infinity()}, 5.0);
    CHECK(found.norm == std::numeric_limits<double>::infinity());
    CHECK(found.clip_factor == 1.0F);
    found = norm_of({1.0F, std::numeric_limits<float>::quiet_NaN()}, 5.0);
    CHECK(std::isnan(found.norm));
    CHECK(found.clip_factor == 1.0F);
}

TEST_CASE("aligned gradients are read in full sectors") {
    mp::simt::access_statistics statistics;
    simulated_device device(0, &statistics);
    check_norm<mp::half>(device, {4096 * 40, 8192}, 0, 0.5F, 1.0);
    check_norm<float>(device, {4096 * 40}, 0, 0.5F, 1.0);
    CHECK(statistics.wasted_sectors() == 0);
    CHECK(statistics.bank_conflicts() == 0);
}

TEST_CASE("a norm with arguments that make no sense") {
    simulated_device device;
    std::vector<float> gradient(5000);
    std::vector<double> workspace(2);
    mp::device_gradient_norm result;
    const std::vector<mp::gpu_gradient<float>> list{{gradient, {}}};
    CHECK(mp::gradient_norm_workspace(list) == 2);
    CHECK_THROWS_WITH_AS(
        mp::gradient_norm(device.exec(), list, nullptr, std::span(workspace).first(1), &result),
        "mp::gradient_norm: workspace.size() is 1; it must be at least gradient_norm_workspace(gradients), "
        "which is 2",
        mp::argument_error);
    for (const double bad : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
        CHECK_THROWS_AS(mp::gradient_norm(device.exec(), list, nullptr, workspace, &result, bad),
                        mp::argument_error);
    }
    CHECK_THROWS_AS(mp::gradient_norm(device.exec(), list, nullptr, workspace, nullptr), mp::argument_error);
    CHECK(result.norm == 0.0);
    mp::gradient_norm(device.exec(), list, nullptr, workspace, &result);
    CHECK(result.norm == 0.0);
}

}  // namespace
