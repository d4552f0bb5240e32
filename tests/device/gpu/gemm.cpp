// SPDX-License-Identifier: MIT
#include "device/gpu/gemm_cases.hpp"

#include <mp/error.hpp>
#include <mp/half.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace {

using gpu_gemm_test::check;
using gpu_gemm_test::matrix;
using gpu_gemm_test::normal_numbers;
using gpu_gemm_test::orders;
using gpu_gemm_test::same;
using gpu_gemm_test::setting;
using gpu_gemm_test::shape;
using mp::arch;
using mp::gpu_gemm_kernel;

TEST_CASE("products of all sizes around the tiles have the bits of the model") {
    std::mt19937 random(5);
    const auto size = [&](std::ptrdiff_t most) {
        return std::uniform_int_distribution<std::ptrdiff_t>(1, most)(random);
    };
    for (unsigned i = 0; i < 24; ++i) {
        const setting with{.a_order = orders[i % 2],
                           .b_order = orders[i / 2 % 2],
                           .c_order = orders[i / 4 % 2],
                           .shift = size(3) - 1,
                           .padding = size(5) - 1,
                           .seed = i};
        check<gpu_gemm_kernel::mma, arch::sm_80, mp::half, mp::half, float>({size(130), size(130), size(130)},
                                                                            with, normal_numbers(i));
    }
    for (const shape& edge : {shape{1, 1, 1}, shape{64, 64, 32}, shape{65, 63, 33}, shape{128, 1, 64},
                              shape{1, 200, 31}, shape{130, 130, 5}}) {
        check<gpu_gemm_kernel::mma, arch::sm_80, mp::half, mp::half, float>(edge, {}, normal_numbers(1));
    }
}

TEST_CASE("tiles of every size have the bits of the model") {
    const mp::simulated_gpu<arch::sm_80> gpu{.seed = 3};
    normal_numbers draw(8);
    for (const auto& tile : {std::pair{128, 256}, std::pair{128, 128}, std::pair{64, 64}}) {
        const matrix<mp::half> a(130, 100, orders[0], 0, 4, draw);
        const matrix<mp::half> b(100, 270, orders[0], 0, 2, draw);
        matrix<float> c(130, 270, orders[0], 0, 2, draw);
        matrix<float> expected(130, 270, orders[0], 0, 2, draw);
        auto plan = mp::plan_gemm<mp::half>(gpu, 130, 270, 100);
        plan.tile_rows = tile.first;
        plan.tile_columns = tile.second;
        mp::gemm(gpu, plan, 1, a.view, b.view, 0, c.view);
        mp::gemm(mp::emulated<arch::sm_80>{}, 1, a.view, b.view, 0, expected.view);
        CHECK(same(c, expected));
    }
}

TEST_CASE("with beta zero C is not read, with alpha zero the operands are not") {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<mp::half> ones(64, mp::half(1));
    const std::vector<mp::half> nans(64, mp::half(nan));
    const mp::simulated_gpu<arch::sm_80> gpu{};
    std::vector<float> c(64, nan);
    mp::gemm(gpu, 1, mp::row_major(ones.data(), 8, 8), mp::row_major(ones.data(), 8, 8), 0,
             mp::row_major(c.data(), 8, 8));
    CHECK(c == std::vector<float>(64, 8.0F));
    mp::gemm(gpu, 0, mp::row_major(nans.data(), 8, 8), mp::row_major(nans.data(), 8, 8), 2,
             mp::row_major(c.data(), 8, 8));
    CHECK(c == std::vector<float>(64, 16.0F));
    mp::gemm(gpu, 1, mp::row_major(nans.data(), 8, 0), mp::row_major(nans.data(), 0, 8), 0.5F,
             mp::row_major(c.data(), 8, 8));
    CHECK(c == std::vector<float>(64, 8.0F));
}

TEST_CASE("a product whose k is split has the bits of its slices, added in order") {
    constexpr std::ptrdiff_t rows = 40;
    constexpr std::ptrdiff_t columns = 35;
    constexpr std::ptrdiff_t k = 333;
    normal_numbers draw(6);
    const matrix<mp::half> a(rows, k, orders[0], 0, 3, draw);
    const matrix<mp::half> b(k, columns, orders[1], 0, 3, draw);
    for (const int splits : {2, 3, 5}) {
        const mp::simulated_gpu<arch::sm_80> gpu{.seed = static_cast<std::uint64_t>(splits)};
        const auto plan = mp::plan_gemm<mp::half>(gpu, rows, columns, k, 1, {.splits = splits});
        REQUIRE(plan.splits == splits);
        std::vector<float> workspace(plan.workspace_size());
        matrix<float> c(rows, columns, orders[1], 0, 1, draw);
        mp::gemm(gpu, plan, 2, a.view, b.view, 0, c.view, mp::relu_epilogue{}, std::span(workspace));
        // 6 steps of 64, divided so that the last slice gets what is left.
        const std::ptrdiff_t share = (6 + splits - 1) / splits * 64;
        std::vector<float> total(rows * columns);
        std::vector<float> slice(rows * columns);
        for (std::ptrdiff_t begin = 0; begin < k; begin += share) {
            const std::ptrdiff_t length = std::min(share, k - begin);
            mp::gemm(mp::emulated<arch::sm_80>{}, 1, a.view.block(0, begin, rows, length),
                     b.view.block(begin, 0, length, columns), 0, mp::row_major(slice.data(), rows, columns));
            for (std::size_t i = 0; i < total.size(); ++i) {
                total[i] = begin == 0 ? slice[i] : total[i] + slice[i];
            }
        }
        bool equal = true;
        for (std::ptrdiff_t i = 0; i < rows; ++i) {
            for (std::ptrdiff_t j = 0; j < columns; ++j) {
                const float value = 2 * total[static_cast<std::size_t>(i * columns + j)];
                equal = equal && c.view(i, j) == (value > 0 ? value : 0);
            }
        }
        CHECK_MESSAGE(equal, splits, " slices");
    }
}

TEST_CASE("a batch has the bits of its products, one by one") {
    constexpr std::ptrdiff_t rows = 20;
    constexpr std::ptrdiff_t columns = 36;
    constexpr std::ptrdiff_t k = 50;
    constexpr std::ptrdiff_t count = 3;
    normal_numbers draw(9);
    std::vector<mp::half> a(rows * k * count);
    std::vector<mp::half> b(k * columns);  // the same one each time
    for (mp::half& x : a) x = mp::half(draw());
    for (mp::half& x : b) x = mp::half(draw());
    const mp::simulated_gpu<arch::sm_80> gpu{.seed = 1};
    for (const int splits : {1, 2}) {
        std::vector<float> c(rows * columns * count, 1.0F);
        std::vector<float> expected = c;
        const auto plan = mp::plan_gemm<mp::half>(gpu, rows, columns, k, count, {.splits = splits});
        std::vector<float> workspace(plan.workspace_size());
        mp::gemm_batched(gpu, plan, 1, mp::matrix_batch{mp::row_major(a.data(), rows, k), rows * k},
                         mp::matrix_batch{mp::row_major(b.data(), k, columns), 0}, 1,
                         mp::matrix_batch{mp::row_major(c.data(), rows, columns), rows * columns},
                         mp::identity_epilogue{}, std::span(workspace));
        const auto one = mp::plan_gemm<mp::half>(gpu, rows, columns, k, 1, {.splits = splits});
        for (std::ptrdiff_t i = 0; i < count; ++i) {
            mp::gemm(gpu, one, 1, mp::row_major(a.data() + i * rows * k, rows, k),
                     mp::row_major(b.data(), k, columns), 1,
                     mp::row_major(expected.data() + i * rows * columns, rows, columns),
                     mp::identity_epilogue{}, std::span(workspace));
        }
        CHECK(c == expected);
    }
}

TEST_CASE("a plan for another device or another shape is refused") {
    const std::vector<mp::half> ones(64, mp::half(1));
    std::vector<float> c(64, 5.0F);
    const auto a = mp::row_major(ones.data(), 8, 8);
    const auto plan = mp::plan_gemm<mp::half>(mp::simulated_gpu<arch::sm_90>{}, 8, 8, 8);
    CHECK_THROWS_WITH_AS(
        mp::gemm(mp::simulated_gpu<arch::sm_80>{}, plan, 1, a, a, 0, mp::row_major(c.data(), 8, 8)),
        "mp::gemm: plan.gpu.device is 90; it must be the device of the product, which is 80",
        mp::argument_error);
    const auto other = mp::plan_gemm<mp::half>(mp::simulated_gpu<arch::sm_80>{}, 8, 9, 8);
    CHECK_THROWS_AS(
        mp::gemm(mp::simulated_gpu<arch::sm_80>{}, other, 1, a, a, 0, mp::row_major(c.data(), 8, 8)),
        mp::argument_error);
    CHECK(c == std::vector<float>(64, 5.0F));
}

}  // namespace
