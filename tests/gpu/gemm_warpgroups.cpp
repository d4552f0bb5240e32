// SPDX-License-Identifier: MIT
#include "gpu/gemm_cases.hpp"

#include <mp/bfloat16.hpp>
#include <mp/error.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/tfloat32.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using gpu_test::check;
using gpu_test::normal_numbers;
using gpu_test::orders;
using mp::arch;
using mp::gpu_gemm_kernel;

constexpr auto column = mp::storage_order::column_major;

/// Padding that brings lines of elements of `size` bytes to multiples of 16.
std::ptrdiff_t padding(std::ptrdiff_t length, std::ptrdiff_t size) {
    const std::ptrdiff_t whole = 16 / size;
    return (whole - length % whole) % whole;
}

TEST_CASE("a product of 16 bits by wgmma has the bits of the model in every layout") {
    std::uint64_t seed = 0;
    for (const auto a_order : orders) {
        for (const auto b_order : orders) {
            for (const auto c_order : orders) {
                // All lengths are 8 n + 4, so one padding serves the three matrices.
                check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::bfloat16, mp::bfloat16, mp::bfloat16>(
                    {132, 276, 140},
                    {.a_order = a_order,
                     .b_order = b_order,
                     .c_order = c_order,
                     .padding = padding(132, 2),
                     .beta = 0.5F,
                     .seed = ++seed},
                    normal_numbers(7));
            }
        }
    }
}

TEST_CASE("products by wgmma of all sizes around the tiles have the bits of the model") {
    for (const gpu_test::shape& size :
         {gpu_test::shape{1, 8, 8}, gpu_test::shape{128, 256, 64}, gpu_test::shape{129, 264, 72},
          gpu_test::shape{300, 520, 64}, gpu_test::shape{64, 16, 1000}}) {
        check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::half, mp::half, float>(size, {.seed = 3},
                                                                              normal_numbers(4));
    }
}

TEST_CASE("blocks that stay for several tiles give the bits of the model") {
    for (const int multiprocessors : {1, 2, 5}) {
        const mp::simulated_gpu<arch::sm_90> gpu{.seed = 9, .multiprocessors = multiprocessors};
        normal_numbers draw(5);
        const gpu_test::matrix<mp::half> a(400, 200, orders[0], 0, 0, draw);
        const gpu_test::matrix<mp::half> b(200, 520, orders[0], 0, 0, draw);
        gpu_test::matrix<float> c(400, 520, orders[0], 0, 0, draw);
        gpu_test::matrix<float> expected(400, 520, orders[0], 0, 0, draw);
        mp::gemm<gpu_gemm_kernel::wgmma>(gpu, 1, a.view, b.view, 0, c.view);
        mp::gemm(mp::emulated<arch::sm_90>{}, 1, a.view, b.view, 0, expected.view);
        CHECK(gpu_test::same(c, expected));
    }
}

TEST_CASE("products by wgmma of tfloat32 and of promoted 8 bits have the bits of the model") {
    check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::tfloat32, mp::tfloat32, float>(
        {140, 300, 100}, {.b_order = column, .seed = 1}, normal_numbers(1));
    check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::float8_e4m3fn, mp::float8_e5m2, float>(
        {140, 160, 400}, {.b_order = column, .seed = 2}, normal_numbers(2));
}

TEST_CASE("what wgmma and TMA do not take is refused by name") {
    const std::vector<mp::half> halves(1000);
    const std::vector<mp::tfloat32> floats(1000);
    std::vector<float> c(100);
    const mp::simulated_gpu<arch::sm_90> gpu{};
    const auto product = [&](auto a, auto b) {
        try {
            mp::gemm<gpu_gemm_kernel::wgmma>(gpu, 1, a, b, 0, mp::row_major(c.data(), 8, 8));
        } catch (const mp::argument_error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    CHECK(product(mp::row_major(halves.data(), 8, 9), mp::row_major(halves.data(), 9, 8)) ==
          "mp::gemm: a's alignment is 2; it must be 16 bytes at the begin of every line for wgmma");
    CHECK(
        product(mp::row_major(floats.data(), 8, 8), mp::row_major(floats.data(), 8, 8)) ==
        "mp::gemm: b is 'lines across the depth'; it must have lines that run along the depth, for wgmma of "
        "elements that have not 16 bits");
    CHECK_THROWS_AS(static_cast<void>(mp::plan_gemm<mp::half, gpu_gemm_kernel::wgmma>(
                        mp::simulated_gpu<arch::sm_80>{}, 8, 8, 8)),
                    mp::argument_error);
    CHECK_THROWS_AS(static_cast<void>(mp::plan_gemm<mp::half, gpu_gemm_kernel::wgmma>(gpu, 8, 8, 8, 2)),
                    mp::argument_error);
}

}  // namespace
