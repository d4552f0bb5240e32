// SPDX-License-Identifier: MIT
#include <mp/device/gpu/gemm_grouped.hpp>

#include <mp/float8.hpp>
#include <mp/gemm.hpp>
#include <mp/simt.hpp>
#include <mp/tensor_core.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "device/gpu/watched.hpp"
#include "linalg/gemm/arrays.hpp"

namespace {

using gemm_test::numbers;
using gemm_test::same;
using mp::float8_e4m3fn;
using mp::gpu_gemm_kernel;
using offsets = std::vector<std::int32_t>;

/// Rows of each of several groups, or all of them; k of more than one block, the last one not whole.
constexpr std::ptrdiff_t rows = 272, k = 272, blocks = 3, out = 144, count = 3;

/// With `few` rows on average if that is not zero.
template <gpu_gemm_kernel Kernel, mp::arch Arch>
void check(unsigned number, bool masked, std::ptrdiff_t few = 0) {
    std::mt19937 random(number);
    const auto x = numbers<float8_e4m3fn>(count * rows * k, random),
               w = numbers<float8_e4m3fn>(count * k * out, random);
    const auto x_scales = numbers<float>(count * rows * blocks, random),
               w_scales = numbers<float>(count * blocks * 9, random);
    const mp::matrix_batch a{mp::row_major(x.data(), rows, k), rows * k},
        b{mp::column_major(w.data(), k, out), k * out};
    const std::ptrdiff_t per_scale = number % 2 == 0 ? 128 : 16;
    const std::ptrdiff_t across = (out + per_scale - 1) / per_scale;
    // Groups of rows begin anywhere, so their rows have a scale each.
    const std::ptrdiff_t rows_per_scale = masked && number % 2 == 0 ? 16 : 1;
    const mp::k_block_scales_batch of_a{
        {mp::row_major(x_scales.data(), rows / rows_per_scale, blocks), rows_per_scale}, rows * blocks},
        of_b{{mp::column_major(w_scales.data(), blocks, across), per_scale}, blocks * across};
    std::vector<float> y(count * rows * out, 3.0F), expected = y;
    const mp::simulated_gpu<Arch> gpu = gpu_test::watched(
        mp::simulated_gpu<Arch>{.seed = number, .multiprocessors = number % 2 == 0 ? 1 : 3});
    const mp::emulated<Arch> model{};
    const auto run = [&](auto multiply, std::vector<float>& to) {
        const mp::matrix_batch c{mp::row_major(to.data(), rows, out), rows * out};
        multiply(c);
    };
    if (masked) {
        run(
            [&](auto c) {
                mp::gemm_scaled_masked<Kernel>(gpu, 1.5F, a, of_a, b, of_b, offsets{130, -3, 1000}, 0, c,
                                               mp::identity_epilogue{}, few);
            },
            y);
        run(
            [&](auto c) {
                mp::gemm_scaled_masked(model, 1.5F, a, of_a, b, of_b, offsets{130, 0, rows}, 0, c);
            },
            expected);
    } else {
        const std::ptrdiff_t all = few == 0 ? rows : few * count;
        const auto last = static_cast<std::int32_t>(all - 1);
        const offsets begins =
            number % 2 == 0 ? offsets{0, 1, 1, last - 1} : offsets{3, last / 2, last / 2 + last / 4, last};
        const auto top = [&](auto view) { return view.block(0, 0, all, view.columns); };
        const mp::k_block_scales of_rows{top(of_a.first.values)};
        run(
            [&](auto c) {
                mp::gemm_scaled_grouped_m<Kernel>(gpu, 1.5F, top(a.first), of_rows, b, of_b, begins, 0.5F,
                                                  top(c.first));
            },
            y);
        run(
            [&](auto c) {
                mp::gemm_scaled_grouped_m(model, 1.5F, top(a.first), of_rows, b, of_b, begins, 0.5F,
                                          top(c.first));
            },
            expected);
    }
    CAPTURE(number);
    CHECK(same(y, expected));
}

TEST_CASE("groups with scales by mma.sync and by wgmma have the bits of the model") {
    for (unsigned number = 1; number < 3; ++number) {
        check<gpu_gemm_kernel::automatic, mp::arch::sm_89>(number, false);
        check<gpu_gemm_kernel::wgmma, mp::arch::sm_90>(number, false);
        check<gpu_gemm_kernel::wgmma, mp::arch::sm_90>(number, true);
        // The transpose of C, with 16 and with 64 of its rows.
        check<gpu_gemm_kernel::wgmma, mp::arch::sm_90>(number, false, number == 1 ? 12 : 60);
        check<gpu_gemm_kernel::wgmma, mp::arch::sm_90>(number, true, number == 1 ? 60 : 12);
    }
}

/// Groups of tokens along k; those that begin or end within a block of scales become NaN.
template <gpu_gemm_kernel Kernel, mp::arch Arch>
void check_k(unsigned number, bool by_rows) {
    constexpr std::ptrdiff_t tokens = 816, of_tokens = 7, m = 136, n = 80;
    std::mt19937 random(number);
    const auto x = numbers<float8_e4m3fn>(m * tokens, random),
               dy = numbers<float8_e4m3fn>(tokens * n, random);
    const auto x_scales = numbers<float>(m * of_tokens, random),
               dy_scales = numbers<float>(of_tokens * n, random);
    const mp::k_block_scales of_a{mp::row_major(x_scales.data(), m, of_tokens)},
        of_b{mp::column_major(dy_scales.data(), of_tokens, n)};
    std::vector<float> dw(5 * m * n, 2.0F), expected = dw;
    const auto into = [&](std::vector<float>& to) {
        return mp::matrix_batch{by_rows ? mp::row_major(to.data(), m, n) : mp::column_major(to.data(), m, n),
                                m * n};
    };
    const auto run = [&](auto multiply, const offsets& begins, std::vector<float>& to) {
        multiply(mp::row_major(x.data(), m, tokens), mp::column_major(dy.data(), tokens, n), begins,
                 into(to));
    };
    const auto on_gpu = [&](auto a, auto b, const offsets& begins, auto c) {
        mp::gemm_scaled_grouped_k<Kernel>(gpu_test::watched(mp::simulated_gpu<Arch>{
                                              .seed = number, .multiprocessors = number % 2 == 0 ? 1 : 3}),
                                          1.5F, a, of_a, b, of_b, begins, 0.5F, c);
    };
    auto split = dw;
    run(on_gpu, offsets{-4, 128, 384, 384, 640, 9999}, dw);
    run(on_gpu, offsets{-4, 128, 500, 511, 640, 9999}, split);
    run(
        [&](auto a, auto b, const offsets& begins, auto c) {
            mp::gemm_scaled_grouped_k(mp::emulated<Arch>{}, 1.5F, a, of_a, b, of_b, begins, 0.5F, c);
        },
        offsets{0, 128, 384, 384, 640, 816}, expected);
    CAPTURE(number);
    CHECK(same(dw, expected));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < split.size(); ++i) {
        const bool is_split = i >= std::size_t{m * n} && i < std::size_t{4 * m * n};
        wrong += is_split ? !std::isnan(split[i]) : split[i] != expected[i];
    }
    CHECK(wrong == 0);
}

TEST_CASE("groups of blocks of k with scales by mma.sync and by wgmma have the bits of the model") {
    check_k<gpu_gemm_kernel::automatic, mp::arch::sm_89>(1, true);
    check_k<gpu_gemm_kernel::wgmma, mp::arch::sm_90>(2, true);
    check_k<gpu_gemm_kernel::wgmma, mp::arch::sm_90>(3, false);
}

}  // namespace
