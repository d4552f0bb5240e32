// SPDX-License-Identifier: MIT
#include "device/gpu/gemm_cases.hpp"

#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/tfloat32.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

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

TEST_CASE("warpgroups that take turns have the bits of the model") {
    // One cluster has the four tiles, of three steps each, which the four stages do not divide.
    std::uint64_t seed = 0;
    for (const auto a_order : orders) {
        for (const auto b_order : orders) {
            ++seed;
            check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::bfloat16, mp::bfloat16, mp::bfloat16>(
                {132, 276, 140},
                {.a_order = a_order,
                 .b_order = b_order,
                 .c_order = orders[seed / 2 % 2],
                 .padding = padding(132, 2),
                 .alpha = 1.5F,
                 .beta = seed % 2 == 0 ? 0.0F : 0.5F,
                 .seed = seed,
                 .multiprocessors = 2,
                 .ping_pong = true},
                normal_numbers(7));
        }
    }
    // More blocks than tiles; a number of tiles that is odd, of which both groups begin some at each stage.
    check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::tfloat32, mp::tfloat32, float>(
        {140, 300, 100}, {.b_order = column, .seed = 1, .ping_pong = true}, normal_numbers(1));
    check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::tfloat32, mp::tfloat32, float>(
        {576, 40, 36}, {.b_order = column, .seed = 2, .multiprocessors = 2, .ping_pong = true},
        normal_numbers(2));
    // Without a product tiles have no steps.
    check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::tfloat32, mp::tfloat32, float>(
        {300, 40, 36},
        {.b_order = column, .alpha = 0, .beta = 2, .seed = 3, .multiprocessors = 2, .ping_pong = true},
        normal_numbers(3));
}

TEST_CASE("warpgroups that take turns have the same bits in slices of k and in batches") {
    constexpr std::ptrdiff_t rows = 136, columns = 264, k = 312, count = 2;
    normal_numbers draw(3);
    std::vector<mp::bfloat16> a(rows * k * count), b(k * columns * count);
    for (auto& value : a) value = mp::bfloat16(draw());
    for (auto& value : b) value = mp::bfloat16(draw());
    const mp::matrix_batch<const mp::bfloat16> left{mp::row_major(a.data(), rows, k), rows * k};
    const mp::matrix_batch<const mp::bfloat16> right{mp::row_major(b.data(), k, columns), k * columns};
    const auto product = [&](int splits, bool turns) {
        const auto gpu =
            gpu_test::watched(mp::simulated_gpu<arch::sm_90>{.seed = static_cast<std::uint64_t>(splits)});
        auto plan = mp::plan_gemm<mp::bfloat16, gpu_gemm_kernel::wgmma>(gpu, rows, columns, k, count,
                                                                        {.splits = splits});
        REQUIRE(plan.splits == splits);
        plan.gpu.multiprocessors = 4;
        gpu_gemm_test::take_clusters<mp::bfloat16>(plan, 2);
        if (turns) gpu_gemm_test::take_turns(plan);
        std::vector<mp::bfloat16> c(rows * columns * count);
        std::vector<float> workspace(plan.workspace_size());
        mp::gemm_batched<gpu_gemm_kernel::wgmma>(
            gpu, plan, 1, left, right, 0,
            mp::matrix_batch<mp::bfloat16>{mp::row_major(c.data(), rows, columns), rows * columns},
            mp::identity_epilogue{}, workspace);
        return c;
    };
    // Of five steps, two slices have three and two of them, and three slices two, two and one.
    for (const int splits : {1, 2, 3}) {
        const auto turns = product(splits, true);
        const auto together = product(splits, false);
        CHECK_MESSAGE(std::memcmp(turns.data(), together.data(), turns.size() * sizeof turns[0]) == 0, splits,
                      " slices");
    }
}

TEST_CASE("few rows by wgmma, computed as the transpose of C, have the bits of the model") {
    std::uint64_t seed = 0;
    for (const std::ptrdiff_t rows : {1, 7, 16, 17, 33, 64}) {
        for (const auto b_order : orders) {
            ++seed;
            // Lines of C begin at multiples of 16 bytes or not; its edges lie in a chunk and between two.
            const bool even = seed % 3 == 0;
            check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::bfloat16, mp::bfloat16, mp::bfloat16>(
                {rows, even ? 136 : 77, even ? 64 : 141},
                {.b_order = b_order,
                 .padding = even ? 0 : padding(141, 2),
                 .alpha = 1.5F,
                 .beta = seed % 4 < 2 ? 0.0F : 0.5F,
                 .seed = seed,
                 .multiprocessors = seed % 5 == 0 ? 1 : 0},
                normal_numbers(8));
        }
    }
    // Copies go around the ring, and a block has several tiles, of some of which rows are outside.
    const gpu_gemm_test::setting one{
        .b_order = column, .padding = padding(717, 2), .seed = 1, .multiprocessors = 1, .swapped_rows = 16};
    check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::bfloat16, mp::bfloat16, mp::bfloat16>({37, 205, 717}, one,
                                                                                         normal_numbers(9));
    gpu_gemm_test::setting other = one;
    other.swapped_rows = 64;
    check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::bfloat16, mp::bfloat16, mp::bfloat16>(
        {70, 205, 717}, other, normal_numbers(10));
    // What has no such kernels takes other tiles: a column-major C, and rows of A that do not run along k.
    check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::bfloat16, mp::bfloat16, mp::bfloat16>(
        {12, 140, 76}, {.b_order = column, .c_order = column, .padding = 4, .seed = 2, .swapped_rows = 16},
        normal_numbers(11));
    check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::bfloat16, mp::bfloat16, mp::bfloat16>(
        {12, 140, 76}, {.a_order = column, .padding = 4, .seed = 3, .swapped_rows = 16}, normal_numbers(12));
}

TEST_CASE("few rows by wgmma of tfloat32 and of promoted 8 bits have the bits of the model") {
    for (const std::ptrdiff_t rows : {5, 33}) {
        check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::tfloat32, mp::tfloat32, float>(
            {rows, 71, 99}, {.b_order = column, .padding = 1, .beta = 2, .seed = 1}, normal_numbers(1));
        check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::float8_e4m3fn, mp::float8_e5m2, float>(
            {rows, 71, 1415}, {.b_order = column, .padding = padding(1415, 1), .seed = 2}, normal_numbers(2));
    }
}

}  // namespace
