// SPDX-License-Identifier: MIT
#include "gpu/gemm_cases.hpp"

#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/tfloat32.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

namespace {

using gpu_gemm_test::check;
using gpu_gemm_test::normal_numbers;
using gpu_gemm_test::orders;
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
                     .seed = ++seed,
                     .cluster_blocks = seed % 3 == 0 ? 1 : 2},
                    normal_numbers(7));
            }
        }
    }
}

TEST_CASE("products by wgmma of tfloat32 and of promoted 8 bits have the bits of the model") {
    for (const int cluster_blocks : {1, 2}) {
        check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::tfloat32, mp::tfloat32, float>(
            {140, 300, 100}, {.b_order = column, .seed = 1, .cluster_blocks = cluster_blocks},
            normal_numbers(1));
        check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::float8_e4m3fn, mp::float8_e5m2, float>(
            {140, 160, 400}, {.b_order = column, .seed = 2, .cluster_blocks = cluster_blocks},
            normal_numbers(2));
    }
}

}  // namespace
