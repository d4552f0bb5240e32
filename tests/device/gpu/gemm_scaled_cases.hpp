// SPDX-License-Identifier: MIT
/// \file
/// Products with scales of blocks of k, on the simulated GPU and by the exact model.
#pragma once

#include "device/gpu/gemm_cases.hpp"

#include <mp/device/gpu/gemm_scaled.hpp>
#include <mp/linalg/gemm/scaled.hpp>
#include <mp/linalg/tensor_core/gemm.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace gpu_gemm_test {

/// What differs from one scaled product to another, beside setting.
struct scale_setting {
    std::ptrdiff_t a_vectors_per_scale = 1;
    std::ptrdiff_t b_vectors_per_scale = 128;
    mp::storage_order a_order = orders[0];
    mp::storage_order b_order = orders[0];
    int splits = 1;
    int tile_rows = 0;  ///< of mma.sync: 128, 64 or 16; 0 leaves it to the plan
};

/// Scales of any significand and a few powers of two.
class random_scales {
public:
    explicit random_scales(unsigned seed) : random_(seed) {}
    float operator()() {
        return std::ldexp(std::uniform_real_distribution<float>(1, 2)(random_),
                          std::uniform_int_distribution<int>(-6, 2)(random_));
    }

private:
    std::mt19937 random_;
};

inline std::ptrdiff_t groups(std::ptrdiff_t size, std::ptrdiff_t of) {
    return (size + of - 1) / of;
}

template <gpu_gemm_kernel Kernel, arch Arch>
auto scaled_reference() {
    if constexpr (Kernel == gpu_gemm_kernel::simt) {
        return mp::cpu{.products = mp::accumulation::ordered};
    } else {
        constexpr auto unit = mp::has_float8_through_half(Arch) && Kernel != gpu_gemm_kernel::wgmma
                                  ? mp::float8_unit::through_half
                                  : mp::float8_unit::native;
        return mp::emulated<Arch>{.float8 = unit};
    }
}

/// Multiplies on the simulated GPU and by the model, and compares all bits.
template <gpu_gemm_kernel Kernel, arch Arch, class A, class B, class C>
void check_scaled(const shape& size, const setting& with, const scale_setting& scales, unsigned seed) {
    normal_numbers draw(seed);
    random_scales draw_scale(seed + 1);
    const matrix<A> a(size.rows, size.k, with.a_order, with.shift, with.padding, draw);
    const matrix<B> b(size.k, size.columns, with.b_order, with.shift, with.padding, draw);
    matrix<C> c(size.rows, size.columns, with.c_order, with.shift, with.padding, [] { return 0.0F; });
    matrix<C> expected(size.rows, size.columns, with.c_order, with.shift, with.padding, [] { return 0.0F; });
    for (std::ptrdiff_t i = 0; i < size.rows; ++i) {
        for (std::ptrdiff_t j = 0; j < size.columns; ++j) expected.view(i, j) = c.view(i, j) = C(draw());
    }
    const matrix<float> a_scales(groups(size.rows, scales.a_vectors_per_scale), groups(size.k, 128),
                                 scales.a_order, 0, with.padding, draw_scale);
    const matrix<float> b_scales(groups(size.k, 128), groups(size.columns, scales.b_vectors_per_scale),
                                 scales.b_order, 0, with.padding, draw_scale);
    const mp::k_block_scales a_blocks{a_scales.view, scales.a_vectors_per_scale};
    const mp::k_block_scales b_blocks{b_scales.view, scales.b_vectors_per_scale};
    const mp::simulated_gpu<Arch> gpu = gpu_test::watched(mp::simulated_gpu<Arch>{.seed = with.seed});
    auto plan = mp::plan_gemm<A, Kernel>(gpu, size.rows, size.columns, size.k, 1, {.splits = scales.splits});
    if (with.cluster_blocks != 0) take_clusters<A>(plan, with.cluster_blocks);
    if (scales.tile_rows != 0) {
        plan.tile_rows = scales.tile_rows;
        plan.tile_columns = scales.tile_rows == 16 ? 32 : scales.tile_rows;
    }
    std::vector<float> workspace(plan.workspace_size());
    mp::gemm_scaled<Kernel>(gpu, plan, with.alpha, a.view, a_blocks, b.view, b_blocks, with.beta, c.view,
                            mp::identity_epilogue{}, std::span(workspace));
    if (plan.splits == 1) {
        mp::gemm_scaled(scaled_reference<Kernel, Arch>(), with.alpha, mp::matrix_view<const A>(a.view),
                        a_blocks, mp::matrix_view<const B>(b.view), b_blocks, with.beta, expected.view);
    } else {
        // Slices are whole blocks of 128; steps are divided so that the last slice gets what is left.
        const std::ptrdiff_t steps = groups(size.k, plan.tile_k);
        const std::ptrdiff_t share = groups(groups(steps, plan.splits), 128 / plan.tile_k);
        const std::ptrdiff_t all = groups(size.k, 128);
        std::vector<float> total(static_cast<std::size_t>(size.rows * size.columns));
        std::vector<float> slice(total.size());
        for (std::ptrdiff_t begin = 0; begin < all; begin += share) {
            const std::ptrdiff_t blocks = std::min(share, all - begin);
            const std::ptrdiff_t p = begin * 128;
            const std::ptrdiff_t length = std::min(blocks * 128, size.k - p);
            mp::gemm_scaled(
                scaled_reference<Kernel, Arch>(), 1,
                mp::matrix_view<const A>(a.view.block(0, p, size.rows, length)),
                {a_scales.view.block(0, begin, a_scales.view.rows, blocks), scales.a_vectors_per_scale},
                mp::matrix_view<const B>(b.view.block(p, 0, length, size.columns)),
                {b_scales.view.block(begin, 0, blocks, b_scales.view.columns), scales.b_vectors_per_scale}, 0,
                mp::row_major(slice.data(), size.rows, size.columns));
            for (std::size_t i = 0; i < total.size(); ++i) {
                total[i] = begin == 0 ? slice[i] : total[i] + slice[i];
            }
        }
        for (std::ptrdiff_t i = 0; i < size.rows; ++i) {
            for (std::ptrdiff_t j = 0; j < size.columns; ++j) {
                const float product = total[static_cast<std::size_t>(i * size.columns + j)];
                C& to = expected.view(i, j);
                const double sum = static_cast<double>(with.alpha) * static_cast<double>(product) +
                                   static_cast<double>(with.beta) * static_cast<double>(to);
                to = C(static_cast<float>(sum));
            }
        }
    }
    const std::string name = plan.kernel_name();
    CHECK_MESSAGE(same(c, expected), name, " ", size.rows, " x ", size.columns, " x ", size.k, ", seed ",
                  with.seed, ", lines ", scales.a_vectors_per_scale, " and ", scales.b_vectors_per_scale);
}

/// Every layout of the matrices and of the scales, aligned and not.
template <gpu_gemm_kernel Kernel, arch Arch, class A, class B, class C>
void check_scaled_layouts() {
    constexpr std::ptrdiff_t lines[] = {1, 128, 16, 2};
    unsigned number = 0;
    for (const auto a_order : orders) {
        for (const auto b_order : orders) {
            for (const auto c_order : orders) {
                for (const std::ptrdiff_t shift : {0, 1}) {
                    ++number;
                    scale_setting scales{.a_vectors_per_scale = lines[number % 4],
                                         .b_vectors_per_scale = lines[(number / 4 + number) % 4],
                                         .a_order = orders[number / 2 % 2],
                                         .b_order = orders[number / 4 % 2]};
                    const auto check_tile = [&](int tile_rows) {
                        scales.tile_rows = tile_rows;
                        check_scaled<Kernel, Arch, A, B, C>({37, 45, 150 + 64 * (number % 3)},
                                                            {.a_order = a_order,
                                                             .b_order = b_order,
                                                             .c_order = c_order,
                                                             .shift = shift,
                                                             .padding = shift == 0 ? 0 : 2,
                                                             .alpha = 1.5F,
                                                             .beta = number % 3 == 0 ? 0.0F : -0.75F,
                                                             .seed = number},
                                                            scales, number);
                    };
                    constexpr bool has_tiles = Kernel == gpu_gemm_kernel::mma;
                    check_tile(has_tiles ? 64 : 0);
                    if (has_tiles) check_tile(16);
                }
            }
        }
    }
}

}  // namespace gpu_gemm_test
