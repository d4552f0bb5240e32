// SPDX-License-Identifier: MIT
/// \file
/// Matrix products on the simulated GPU and by the exact model, to compare bits. In several files, because
/// each mix of types is a dozen kernels to compile.
#pragma once

#include <mp/device/gpu/gemm.hpp>

#include <mp/gemm.hpp>
#include <mp/simt.hpp>
#include <mp/tensor_core.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "device/gpu/watched.hpp"

namespace gpu_gemm_test {

using mp::arch;
using mp::gpu_gemm_kernel;

inline constexpr mp::storage_order orders[2] = {mp::storage_order::row_major,
                                                mp::storage_order::column_major};

/// Padding with which lines begin at multiples of 64 bytes.
inline constexpr std::ptrdiff_t aligned_lines = -1;

/// A matrix that begins `shift` elements behind a multiple of 64 bytes, with `padding` elements between its
/// lines, which are NaN and must stay as they are. Kernels that are watched do not even read them.
template <class Value>
struct matrix {
    std::vector<Value> values;
    gpu_test::forbidden_surroundings surroundings;
    mp::matrix_view<Value> view;

    template <class Draw>
    matrix(std::ptrdiff_t rows, std::ptrdiff_t columns, mp::storage_order order, std::ptrdiff_t shift,
           std::ptrdiff_t padding, Draw draw) {
        const bool row_major = order == mp::storage_order::row_major;
        const std::ptrdiff_t length = row_major ? columns : rows;
        const std::ptrdiff_t leading = padding == aligned_lines ? (length + 63) / 64 * 64 : length + padding;
        values.resize(static_cast<std::size_t>(shift + leading * (row_major ? rows : columns)) + 64);
        std::memset(static_cast<void*>(values.data()), 0xFF, values.size() * sizeof(Value));
        auto address = reinterpret_cast<std::uintptr_t>(values.data());
        address = (address + 63) / 64 * 64;
        view = {reinterpret_cast<Value*>(address) + shift, rows, columns, leading, order};
        for (std::ptrdiff_t i = 0; i < rows; ++i) {
            for (std::ptrdiff_t j = 0; j < columns; ++j) view(i, j) = Value(draw());
        }
        surroundings.add(values, view);
    }
    matrix(const matrix&) = delete;
    matrix& operator=(const matrix&) = delete;
};

struct shape {
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t k;
};

struct setting {
    mp::storage_order a_order = orders[0];
    mp::storage_order b_order = orders[0];
    mp::storage_order c_order = orders[0];
    std::ptrdiff_t shift = 0;
    std::ptrdiff_t padding = 0;
    float alpha = 1;
    float beta = 0;
    std::uint64_t seed = 0;
    int multiprocessors =
        0;  ///< fewer of them than tiles: with wgmma blocks then have several; 0 leaves it to the GPU
    int cluster_blocks = 0;  ///< of wgmma: 2 are the largest tiles, 1 are the others, 0 leaves it to the plan
    int tile_rows = 0;       ///< of mma: 64 or 16; 0 leaves it to the plan
    bool ping_pong = false;  ///< of wgmma: warpgroups take turns with tiles of 64 x 256, in clusters of two
    int swapped_rows = 0;    ///< of wgmma's tiles with swapped operands: 64 or 16; 0 leaves it to the plan
};

/// Bytes of everything that a matrix has, its padding included; a NaN is a NaN.
template <class Value>
bool same(const matrix<Value>& a, const matrix<Value>& b) {
    for (std::ptrdiff_t i = 0; i < a.view.rows; ++i) {
        for (std::ptrdiff_t j = 0; j < a.view.columns; ++j) {
            const Value x = a.view(i, j);
            const Value y = b.view(i, j);
            const bool both_nan = std::isnan(static_cast<float>(x)) && std::isnan(static_cast<float>(y));
            if (!both_nan && std::memcmp(&x, &y, sizeof x) != 0) return false;
        }
    }
    return true;
}

/// What the tensor cores of the architecture return, by the model, or ordinary instructions.
template <gpu_gemm_kernel Kernel, arch Arch, class A, class B, class C, class Epilogue>
void reference_gemm(float alpha, mp::matrix_view<const A> a, mp::matrix_view<const B> b, float beta,
                    mp::matrix_view<C> c, const Epilogue& epilogue) {
    if constexpr (Kernel == gpu_gemm_kernel::simt) {
        mp::gemm(mp::cpu{.products = mp::accumulation::ordered}, alpha, a, b, beta, c, epilogue);
    } else {
        constexpr auto unit = mp::has_float8_through_half(Arch) && Kernel != gpu_gemm_kernel::wgmma
                                  ? mp::float8_unit::through_half
                                  : mp::float8_unit::native;
        mp::gemm(mp::emulated<Arch>{.float8 = unit}, alpha, a, b, beta, c, epilogue);
    }
}

/// Has a plan for wgmma take its large tiles, in clusters of two, or the others.
template <class Input>
void take_clusters(mp::gpu_gemm_plan& plan, int cluster_blocks) {
    plan.cluster_blocks = cluster_blocks;
    plan.swapped = false;
    plan.tile_rows = 128;
    plan.tile_columns = cluster_blocks == 2 && sizeof(Input) != 1 ? 256 : 128;
}

/// Has a plan for wgmma take the tiles that warpgroups compute by turns.
inline void take_turns(mp::gpu_gemm_plan& plan) {
    plan.cluster_blocks = 2;
    plan.swapped = false;
    plan.ping_pong = true;
    plan.tile_rows = 64;
    plan.tile_columns = 256;
}

/// Multiplies on the simulated GPU and by the model, and compares all bits.
template <gpu_gemm_kernel Kernel, arch Arch, class A, class B, class C, class Draw,
          class Epilogue = mp::identity_epilogue>
void check(const shape& size, const setting& with, Draw draw, Epilogue epilogue = {}) {
    const matrix<A> a(size.rows, size.k, with.a_order, with.shift, with.padding, draw);
    const matrix<B> b(size.k, size.columns, with.b_order, with.shift, with.padding, draw);
    matrix<C> c(size.rows, size.columns, with.c_order, with.shift, with.padding, [] { return 0.0F; });
    matrix<C> expected(size.rows, size.columns, with.c_order, with.shift, with.padding, [] { return 0.0F; });
    for (std::ptrdiff_t i = 0; i < size.rows; ++i) {
        for (std::ptrdiff_t j = 0; j < size.columns; ++j) expected.view(i, j) = c.view(i, j) = C(draw());
    }
    const mp::simulated_gpu<Arch> gpu = gpu_test::watched(mp::simulated_gpu<Arch>{.seed = with.seed});
    auto plan = mp::plan_gemm<A, Kernel>(gpu, size.rows, size.columns, size.k);
    if (with.multiprocessors != 0) plan.gpu.multiprocessors = with.multiprocessors;
    if (with.cluster_blocks != 0) take_clusters<A>(plan, with.cluster_blocks);
    if (with.ping_pong) take_turns(plan);
    if (with.tile_rows != 0) {
        plan.tile_rows = with.tile_rows;
        plan.tile_columns = with.tile_rows == 16 ? 32 : 64;
    }
    if (with.swapped_rows != 0) {
        plan.swapped = true;
        plan.tile_rows = with.swapped_rows;
        plan.tile_columns = 64;
        plan.cluster_blocks = 1;
    }
    mp::gemm<Kernel>(gpu, plan, with.alpha, mp::matrix_view<const A>(a.view),
                     mp::matrix_view<const B>(b.view), with.beta, c.view, epilogue);
    reference_gemm<Kernel, Arch, A, B>(with.alpha, mp::matrix_view<const A>(a.view),
                                       mp::matrix_view<const B>(b.view), with.beta, expected.view, epilogue);
    const std::string name = plan.kernel_name();
    CHECK_MESSAGE(same(c, expected), name, " ", size.rows, " x ", size.columns, " x ", size.k, ", seed ",
                  with.seed, ", shift ", with.shift, ", padding ", with.padding);
}

class normal_numbers {
public:
    explicit normal_numbers(unsigned seed) : random_(seed) {}
    float operator()() { return distribution_(random_); }

private:
    std::mt19937 random_;
    std::normal_distribution<float> distribution_;
};

/// Every layout of the three matrices, aligned and not; with so much k that copies go around the ring of stages.
template <gpu_gemm_kernel Kernel, arch Arch, class A, class B, class C>
void check_layouts() {
    unsigned number = 0;
    for (const auto a_order : orders) {
        for (const auto b_order : orders) {
            for (const auto c_order : orders) {
                for (const std::ptrdiff_t padding : {std::ptrdiff_t{0}, std::ptrdiff_t{2}, aligned_lines}) {
                    ++number;
                    const std::ptrdiff_t k =
                        padding == aligned_lines ? 490 / static_cast<int>(sizeof(A)) : 70;
                    setting with{.a_order = a_order,
                                 .b_order = b_order,
                                 .c_order = c_order,
                                 .shift = padding == 2 ? 1 : 0,
                                 .padding = padding,
                                 .alpha = 1.5F,
                                 .beta = number % 3 == 0 ? 0.0F : -0.75F,
                                 .seed = number};
                    const shape size{37, number % 2 == 0 ? 48 : 45, k};
                    constexpr bool has_tiles = Kernel == gpu_gemm_kernel::mma;
                    if (has_tiles) with.tile_rows = 64;
                    check<Kernel, Arch, A, B, C>(size, with, normal_numbers(number));
                    if (has_tiles) {
                        with.tile_rows = 16;
                        check<Kernel, Arch, A, B, C>(size, with, normal_numbers(number));
                    }
                }
            }
        }
    }
}

}  // namespace gpu_gemm_test
