// SPDX-License-Identifier: MIT
#include <device/cuda/real_device.hpp>
#include <device/gpu/convert_checks.hpp>

#include <mp/cuda.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace {

using gpu_test::check_convert;
using gpu_test::check_convert_stochastic;

const std::vector<std::size_t> sizes{0, 1, 7, 64, 1000, 129, 100003};
const std::vector<std::size_t> large{70001};

TEST_CASE("convert: the device gives the CPU's bits at every size and alignment") {
    gpu_test::real_device device;
    for (const std::size_t shift : {0U, 1U, 3U, 4U}) {
        check_convert<float, mp::half>(device, sizes, shift, shift);
        check_convert<float, mp::half>(device, sizes, shift, 0);
        check_convert<mp::half, float>(device, sizes, 0, shift);
        check_convert<mp::bfloat16, mp::half>(device, sizes, shift, shift);
    }
    check_convert<float, mp::bfloat16>(device, {5000001}, 0, 0);
    check_convert<float, mp::half>(device, std::vector<std::size_t>(300, 77), 0, 0);
}

TEST_CASE("convert: numbers that the device converts in pairs are the CPU's, NaN and overflow included") {
    gpu_test::real_device device;
    const mp::projection saturating{mp::rounding::nearest_even, mp::saturation::finite};
    for (const mp::projection& p : {mp::projection{}, saturating}) {
        check_convert<float, mp::float8_e4m3fn>(device, large, 1, 1, p);
        check_convert<float, mp::float8_e5m2>(device, large, 0, 0, p);
        check_convert<float, mp::half>(device, large, 0, 0, p);
        check_convert<float, mp::bfloat16>(device, large, 0, 0, p);
        check_convert<mp::half, mp::float8_e4m3fn>(device, large, 0, 0, p);
        check_convert<mp::half, mp::float8_e5m2>(device, large, 3, 3, p);
        check_convert<mp::float8_e4m3fn, mp::half>(device, large, 0, 0, p);
        check_convert<mp::float8_e5m2, mp::half>(device, large, 0, 0, p);
        check_convert<mp::float8_e4m3fn, float>(device, large, 5, 5, p);
        check_convert<mp::float8_e5m2, float>(device, large, 0, 0, p);
    }
    check_convert<mp::float8_e4m3fn, mp::bfloat16>(device, large, 0, 0);
}

TEST_CASE("convert: every projection is the CPU's") {
    gpu_test::real_device device;
    for (const mp::projection& p : gpu_test::projections()) {
        check_convert<float, mp::half>(device, large, 0, 0, p);
        check_convert<float, mp::bfloat16>(device, large, 0, 0, p);
        check_convert<mp::half, mp::float8_e4m3fn>(device, large, 1, 1, p);
        check_convert<mp::half, mp::float8_e5m2>(device, large, 0, 0, p);
        check_convert<mp::bfloat16, mp::bfloat16>(device, large, 0, 0, p);
        check_convert<double, mp::tfloat32>(device, large, 1, 1, p);
        check_convert<double, float>(device, large, 0, 0, p);
    }
}

TEST_CASE("convert: arrays of 6- and 4-bit numbers in bytes are the CPU's") {
    gpu_test::real_device device;
    for (const mp::projection& p : gpu_test::projections()) {
        if (p.round != mp::rounding::nearest_even) continue;
        check_convert<mp::half, mp::float6_e3m2fn>(device, large, 0, 0, p);
        check_convert<float, mp::float4_e2m1fn>(device, large, 1, 1, p);
    }
    check_convert<mp::float6_e3m2fn, mp::half>(device, large, 0, 0);
    check_convert<mp::float4_e2m1fn, mp::bfloat16>(device, large, 0, 0);
}

TEST_CASE("convert_stochastic: the device has the CPU's random bits") {
    gpu_test::real_device device;
    for (const std::size_t shift : {0U, 1U}) {
        check_convert_stochastic<float, mp::bfloat16>(device, sizes, shift, shift, 0x1234'5678'9abc, 5);
        check_convert_stochastic<float, mp::float8_e5m2>(device, sizes, shift, 0, 7, 0xffff'fffe);
        check_convert_stochastic<double, mp::half>(device, sizes, shift, shift, 1, 3, mp::stochastic(0, 11));
    }
}

}  // namespace
