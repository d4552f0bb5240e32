// SPDX-License-Identifier: MIT
#include "device/gpu/gemm_cases.hpp"

#include <mp/error.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/tfloat32.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace {

using gpu_gemm_test::check;
using gpu_gemm_test::matrix;
using gpu_gemm_test::normal_numbers;
using gpu_gemm_test::orders;
using mp::arch;
using mp::gpu_gemm_kernel;

TEST_CASE("products by wgmma of all sizes around the tiles have the bits of the model") {
    for (const gpu_gemm_test::shape& size :
         {gpu_gemm_test::shape{1, 8, 8}, gpu_gemm_test::shape{128, 256, 64},
          gpu_gemm_test::shape{129, 264, 72}, gpu_gemm_test::shape{300, 520, 64},
          gpu_gemm_test::shape{64, 16, 1000}}) {
        for (const int cluster_blocks : {1, 2}) {
            check<gpu_gemm_kernel::wgmma, arch::sm_90, mp::half, mp::half, float>(
                size, {.seed = 3, .cluster_blocks = cluster_blocks}, normal_numbers(4));
        }
    }
}

TEST_CASE("blocks that stay for several tiles give the bits of the model") {
    for (const int multiprocessors : {1, 2, 5}) {
        const mp::simulated_gpu<arch::sm_90> gpu{.seed = 9, .multiprocessors = multiprocessors};
        normal_numbers draw(5);
        const gpu_gemm_test::matrix<mp::half> a(400, 200, orders[0], 0, 0, draw);
        const gpu_gemm_test::matrix<mp::half> b(200, 520, orders[0], 0, 0, draw);
        gpu_gemm_test::matrix<float> c(400, 520, orders[0], 0, 0, draw);
        gpu_gemm_test::matrix<float> expected(400, 520, orders[0], 0, 0, draw);
        mp::gemm<gpu_gemm_kernel::wgmma>(gpu, 1, a.view, b.view, 0, c.view);
        mp::gemm(mp::emulated<arch::sm_90>{}, 1, a.view, b.view, 0, expected.view);
        CHECK(gpu_gemm_test::same(c, expected));
    }
}

TEST_CASE("a batch by wgmma, in slices or not, has the bits of the model") {
    constexpr std::ptrdiff_t rows = 150;
    constexpr std::ptrdiff_t columns = 136;
    constexpr std::ptrdiff_t k = 200;  // 4 steps of 64
    constexpr std::ptrdiff_t count = 3;
    normal_numbers draw(9);
    const gpu_gemm_test::matrix<mp::half> a(rows * count, k, orders[0], 0, 0, draw);
    const gpu_gemm_test::matrix<mp::half> b(k, columns, orders[0], 0, 0, draw);  // the same one each time
    for (const int splits : {1, 2, 3}) {
        for (const int cluster_blocks : {1, 2}) {
            const mp::simulated_gpu<arch::sm_90> gpu{.seed = 1, .multiprocessors = 5};
            const mp::matrix_batch first{a.view.block(0, 0, rows, k), rows * k};
            const mp::matrix_batch second{b.view, 0};
            auto plan = mp::plan_gemm<gpu_gemm_kernel::wgmma>(gpu, count, first, second, {.splits = splits});
            CHECK(plan.splits == splits);
            gpu_gemm_test::take_clusters<mp::half>(plan, cluster_blocks);
            std::vector<float> workspace(plan.workspace_size() + 4);
            std::vector<float> c(rows * columns * count, 1.0F);
            std::vector<float> expected = c;
            mp::gemm_batched<gpu_gemm_kernel::wgmma>(
                gpu, plan, 1, first, second, 0.5F,
                mp::matrix_batch{mp::row_major(c.data(), rows, columns), rows * columns},
                mp::identity_epilogue{}, std::span(workspace));
            // Slices of 4, 2 or 2 steps: the third of three has nothing.
            const std::ptrdiff_t share = splits == 1 ? 256 : 128;
            std::vector<float> slice(rows * columns);
            for (std::ptrdiff_t i = 0; i < count; ++i) {
                std::vector<float> total(rows * columns);
                for (std::ptrdiff_t begin = 0; begin < k; begin += share) {
                    const std::ptrdiff_t length = std::min(share, k - begin);
                    mp::gemm(mp::emulated<arch::sm_90>{}, 1, a.view.block(i * rows, begin, rows, length),
                             b.view.block(begin, 0, length, columns), 0,
                             mp::row_major(slice.data(), rows, columns));
                    for (std::size_t n = 0; n < total.size(); ++n) {
                        total[n] = begin == 0 ? slice[n] : total[n] + slice[n];
                    }
                }
                for (std::size_t n = 0; n < total.size(); ++n) {
                    expected[static_cast<std::size_t>(i) * total.size() + n] = total[n] + 0.5F;
                }
            }
            CHECK_MESSAGE(c == expected, splits, " slices, clusters of ", cluster_blocks);
        }
    }
}

TEST_CASE("both operands of a batch may differ from product to product, in any order of C") {
    normal_numbers draw(4);
    const gpu_gemm_test::matrix<mp::half> a(40 * 2, 72, orders[0], 0, 0, draw);
    const gpu_gemm_test::matrix<mp::half> b(72 * 2, 24, orders[0], 0, 0, draw);
    const mp::simulated_gpu<arch::sm_90> gpu{.seed = 2};
    for (const auto c_order : orders) {
        gpu_gemm_test::matrix<float> c(40, 24 * 2, orders[1], 0, 0, draw);
        std::vector<float> expected(40 * 24 * 2);
        const mp::matrix_view<float> first{c.view.data, 40, 24, c_order == orders[0] ? 24 : 40, c_order};
        mp::gemm_batched<gpu_gemm_kernel::wgmma>(
            gpu, 2, 1, mp::matrix_batch{a.view.block(0, 0, 40, 72), 40 * 72},
            mp::matrix_batch{b.view.block(0, 0, 72, 24), 72 * 24}, 0, mp::matrix_batch{first, 40 * 24});
        for (std::ptrdiff_t i = 0; i < 2; ++i) {
            mp::gemm(mp::emulated<arch::sm_90>{}, 1, a.view.block(i * 40, 0, 40, 72),
                     b.view.block(i * 72, 0, 72, 24), 0,
                     mp::matrix_view<float>{expected.data() + i * 40 * 24, 40, 24, first.leading_dimension,
                                            c_order});
        }
        CHECK(std::equal(expected.begin(), expected.end(), c.view.data));
    }
}

TEST_CASE("few tiles are small ones, so that more of the device has work") {
    const mp::gpu_properties gpu{90, 132, true, 90};
    constexpr auto wgmma = gpu_gemm_kernel::wgmma;
    CHECK(mp::plan_gemm<mp::half, wgmma>(gpu, 8192, 8192, 8192).kernel_name() == "wgmma.128x256x64.cluster2");
    CHECK(mp::plan_gemm<mp::half, wgmma>(gpu, 1024, 1024, 8192).kernel_name() == "wgmma.128x128x64");
    CHECK(mp::plan_gemm<mp::half, wgmma>(gpu, 1024, 1024, 8192, 64).kernel_name() ==
          "wgmma.128x256x64.cluster2");
    CHECK(mp::plan_gemm<mp::half, wgmma>(gpu, 64, 8192, 1024).kernel_name() == "wgmma.64x64x64.swapped");
    CHECK(mp::plan_gemm<mp::half, wgmma>(gpu, 128, 128, 8192, 1, {.splits = 0}).kernel_name() ==
          "wgmma.128x128x64.split16");
    CHECK(mp::plan_gemm<mp::float8_e4m3fn, wgmma>(gpu, 8192, 8192, 8192).kernel_name() ==
          "wgmma.128x128x128.cluster2");
    CHECK(mp::plan_gemm<mp::float8_e4m3fn, wgmma>(gpu, 64, 8192, 8192).kernel_name() ==
          "wgmma.64x64x128.swapped");
}

TEST_CASE("wgmma is taken automatically where the device and the matrices allow it") {
    constexpr auto either = gpu_gemm_kernel::prefer_wgmma;
    const std::vector<mp::half> halves(1000);
    const std::vector<mp::tfloat32> floats(1000);
    const mp::simulated_gpu<arch::sm_90> gpu{};
    const auto kernel = [&](auto a, auto b) { return mp::plan_gemm<either>(gpu, a, b).kernel; };
    auto* const begin =
        reinterpret_cast<const mp::half*>((reinterpret_cast<std::uintptr_t>(halves.data()) + 15) / 16 * 16);
    auto* const begin_4 = reinterpret_cast<const mp::tfloat32*>(begin);
    CHECK(kernel(mp::row_major(begin, 8, 8), mp::row_major(begin, 8, 8)) == gpu_gemm_kernel::wgmma);
    CHECK(kernel(mp::row_major(begin, 8, 7), mp::row_major(begin, 7, 8)) == gpu_gemm_kernel::mma);
    CHECK(kernel(mp::row_major(begin + 1, 8, 8), mp::row_major(begin, 8, 8)) == gpu_gemm_kernel::mma);
    CHECK(kernel(mp::row_major(begin, 8, 8), mp::row_major(begin + 4, 8, 8)) == gpu_gemm_kernel::mma);
    CHECK(kernel(mp::row_major(begin_4, 8, 8), mp::column_major(begin_4, 8, 8)) == gpu_gemm_kernel::wgmma);
    CHECK(kernel(mp::row_major(begin_4, 8, 8), mp::row_major(begin_4, 8, 8)) == gpu_gemm_kernel::mma);
    const auto batched = [&](std::ptrdiff_t a_stride, std::ptrdiff_t b_stride) {
        return mp::plan_gemm<either>(gpu, 2, mp::matrix_batch{mp::row_major(begin, 8, 8), a_stride},
                                     mp::matrix_batch{mp::row_major(begin, 8, 8), b_stride})
            .kernel;
    };
    CHECK(batched(64, 0) == gpu_gemm_kernel::wgmma);
    CHECK(batched(64, 65) == gpu_gemm_kernel::mma);
    CHECK(batched(-64, 64) == gpu_gemm_kernel::mma);
    // Neither a plan that knows no matrices, nor another device takes it.
    CHECK(mp::plan_gemm<mp::half, either>(gpu, 8, 8, 8).kernel == gpu_gemm_kernel::mma);
    CHECK(mp::plan_gemm<either>(mp::simulated_gpu<arch::sm_80>{}, mp::row_major(begin, 8, 8),
                                mp::row_major(begin, 8, 8))
              .kernel == gpu_gemm_kernel::mma);
    // What is compiled with it.
    using executor = mp::simulated_gpu<arch::sm_90>;
    static_assert(mp::detail::has_kernel<executor, mp::half, either>(gpu_gemm_kernel::wgmma));
    static_assert(mp::detail::has_kernel<executor, mp::half, either>(gpu_gemm_kernel::mma));
    constexpr auto automatic = gpu_gemm_kernel::automatic;
    static_assert(mp::detail::has_kernel<executor, mp::half, automatic>(gpu_gemm_kernel::wgmma));
    static_assert(!mp::detail::has_kernel<executor, mp::float8_e4m3fn, automatic>(gpu_gemm_kernel::wgmma));
    static_assert(!mp::detail::has_kernel<executor, float, automatic>(gpu_gemm_kernel::wgmma));
    static_assert(
        !mp::detail::has_kernel<mp::simulated_gpu<arch::sm_89>, mp::half, either>(gpu_gemm_kernel::wgmma));
}

TEST_CASE("automatic plans take what is fastest by estimate: wgmma, unless there are few tiles, or 8 bits") {
    const auto kernel = [](std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t k, auto input) {
        using value = decltype(input);
        const value* const begin = reinterpret_cast<const value*>(std::uintptr_t{4096});  // is not read
        return mp::plan_gemm(mp::simulated_gpu<arch::sm_90>{}, mp::row_major(begin, rows, k),
                             mp::column_major(begin, k, columns))
            .kernel_name();
    };
    CHECK(kernel(8192, 8192, 8192, mp::half()) == "wgmma.128x256x64.cluster2");
    CHECK(kernel(1024, 1024, 8192, mp::half()) == "wgmma.128x128x64");
    CHECK(kernel(4096, 4096, 4096, mp::tfloat32()) == "wgmma.128x256x32.cluster2");
    CHECK(kernel(8192, 8192, 8191, mp::half()) == "mma.128x256x32");
    CHECK(kernel(64, 4096, 4096, mp::half()) == "wgmma.64x64x64.swapped");
    CHECK(kernel(8192, 8192, 8192, mp::float8_e4m3fn()) == "mma.128x128x64");
}

TEST_CASE(
    "slices of k are the same by all kernels, and an automatic plan takes matrices that lie otherwise") {
    normal_numbers draw(12);
    const mp::simulated_gpu<arch::sm_90> gpu{.seed = 4};
    const matrix<mp::half> a(130, 450, orders[0], 0, gpu_gemm_test::aligned_lines, draw);
    const matrix<mp::half> b(450, 140, orders[1], 0, gpu_gemm_test::aligned_lines, draw);
    matrix<mp::half> shifted(130, 450, orders[0], 1, 2, draw);
    for (std::ptrdiff_t i = 0; i < 130; ++i) {
        for (std::ptrdiff_t j = 0; j < 450; ++j) shifted.view(i, j) = a.view(i, j);
    }
    for (const int splits : {1, 3, 5}) {
        auto plan = mp::plan_gemm(gpu, a.view, b.view, {.splits = splits});
        plan.kernel = gpu_gemm_kernel::wgmma;
        plan.tile_k = 64;
        gpu_gemm_test::take_clusters<mp::half>(plan, 1);
        std::vector<float> workspace(plan.workspace_size());
        matrix<float> by_warpgroups(130, 140, orders[0], 0, 0, draw);
        matrix<float> by_warps(130, 140, orders[0], 0, 0, draw);
        mp::gemm(gpu, plan, 1, a.view, b.view, 0, by_warpgroups.view, mp::identity_epilogue{},
                 std::span(workspace));
        mp::gemm(gpu, plan, 1, shifted.view, b.view, 0, by_warps.view, mp::identity_epilogue{},
                 std::span(workspace));
        CHECK(gpu_gemm_test::same(by_warpgroups, by_warps));
    }
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
          "mp::gemm: a's alignment is 2; it must be 16 bytes at the beginning of every vector for wgmma");
    CHECK(product(mp::row_major(floats.data(), 8, 8), mp::row_major(floats.data(), 8, 8)) ==
          "mp::gemm: b is 'vectors across k'; it must have vectors that run along k, for wgmma of "
          "elements that have not 16 bits");
    CHECK_THROWS_AS(static_cast<void>(mp::plan_gemm<mp::half, gpu_gemm_kernel::wgmma>(
                        mp::simulated_gpu<arch::sm_80>{}, 8, 8, 8)),
                    mp::argument_error);
}

}  // namespace
