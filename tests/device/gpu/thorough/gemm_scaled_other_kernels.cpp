// SPDX-License-Identifier: MIT
#include "device/gpu/gemm_scaled_cases.hpp"

#include <mp/float8.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

namespace {

using gpu_gemm_test::check_scaled;
using gpu_gemm_test::check_scaled_layouts;
using gpu_gemm_test::orders;
using mp::arch;
using mp::gpu_gemm_kernel;

TEST_CASE("a scaled product by mma.sync of sm_90 has the bits of the way through half") {
    for (const std::ptrdiff_t b_vectors_per_scale : {1, 128}) {
        check_scaled<gpu_gemm_kernel::mma, arch::sm_90, mp::float8_e4m3fn, mp::float8_e4m3fn, float>(
            {70, 90, 300}, {.b_order = orders[1], .seed = 2},
            {.b_vectors_per_scale = b_vectors_per_scale, .tile_rows = b_vectors_per_scale == 1 ? 128 : 0}, 8);
    }
}

TEST_CASE("a scaled product by wgmma has the bits of the model") {
    constexpr auto column = mp::storage_order::column_major;
    std::uint64_t seed = 0;
    for (const auto c_order : orders) {
        for (const std::ptrdiff_t a_vectors_per_scale : {1, 128}) {
            for (const std::ptrdiff_t b_vectors_per_scale : {1, 64, 128}) {
                for (const int cluster_blocks : {1, 2}) {
                    ++seed;
                    // All of them multiples of 16, as the alignment demands.
                    check_scaled<gpu_gemm_kernel::wgmma, arch::sm_90, mp::float8_e4m3fn, mp::float8_e5m2,
                                 float>({150, 200, 16 + 128 * static_cast<std::ptrdiff_t>(seed % 7)},
                                        {.b_order = column,
                                         .c_order = c_order,
                                         .seed = seed,
                                         .cluster_blocks = cluster_blocks},
                                        {.a_vectors_per_scale = a_vectors_per_scale,
                                         .b_vectors_per_scale = b_vectors_per_scale,
                                         .a_order = orders[seed % 2],
                                         .splits = seed % 5 == 0 ? 3 : 1},
                                        static_cast<unsigned>(seed));
                }
            }
        }
    }
}

TEST_CASE("so have few rows, computed as the transpose of C") {
    std::uint64_t seed = 30;
    for (const std::ptrdiff_t rows : {9, 40}) {
        for (const std::ptrdiff_t b_vectors_per_scale : {1, 128}) {
            ++seed;
            check_scaled<gpu_gemm_kernel::wgmma, arch::sm_90, mp::float8_e4m3fn, mp::float8_e5m2, float>(
                {rows, 200, 1424}, {.b_order = mp::storage_order::column_major, .seed = seed},
                {.b_vectors_per_scale = b_vectors_per_scale,
                 .a_order = orders[seed % 2],
                 .splits = seed % 2 == 0 ? 3 : 1},
                static_cast<unsigned>(seed));
        }
    }
}

TEST_CASE("a scaled product by ordinary instructions has the bits of the CPU's ordered one") {
    check_scaled_layouts<gpu_gemm_kernel::simt, arch::sm_80, mp::float8_e4m3fn, mp::float8_e4m3fn, float>();
}

}  // namespace
