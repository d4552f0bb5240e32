// SPDX-License-Identifier: MIT
/// \file
/// Kernels of the matrix product that hold their sums in registers: in plain C++, for the target that the compiler was given,
/// on vector types that g++ and clang map to its registers, elsewhere on arrays that the compiler may vectorise; in vectors of
/// each instruction set, see register_tiles.inl and bfloat16_dot_tiles.inl; and in the tiles of AMX.
#pragma once

#include <mp/config.hpp>
#include <mp/linalg/gemm/product_kernel.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/select_target.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace portable {

#if defined(__GNUC__) && !defined(__CUDACC__)
typedef float four_floats __attribute__((vector_size(16)));  // NOLINT(modernize-use-using)
#else
/// Four floats that are added and multiplied lane by lane.
struct four_floats {
    float lane[4];

    friend constexpr four_floats operator*(float factor, four_floats v) {
        for (float& x : v.lane) x *= factor;
        return v;
    }
    constexpr four_floats& operator+=(const four_floats& other) {
        for (int i = 0; i < 4; ++i) lane[i] += other.lane[i];
        return *this;
    }
};
#endif

inline constexpr int tile_vectors = 2;
inline constexpr int tile_width = 4 * tile_vectors;
#if defined(__aarch64__)
inline constexpr int tile_rows = 8;  // of 32 registers
#else
inline constexpr int tile_rows = 6;  // of 16
#endif

/// The sums of Rows x tile_vectors vectors, written out for each of them by the folds: this is what keeps
/// them in registers at every optimisation level, where loops over them do so only at -O3.
template <int Rows>
struct register_tile {
    four_floats sums[std::size_t{Rows * tile_vectors}];

    template <int... Index>
    MP_ALWAYS_INLINE void clear(std::integer_sequence<int, Index...> /*all*/) {
        ((sums[Index] = four_floats{}), ...);
    }
    template <int... Index>
    MP_ALWAYS_INLINE void read(const float* tile, std::ptrdiff_t stride,
                               std::integer_sequence<int, Index...> /*all*/) {
        (std::memcpy(&sums[Index], tile + Index / tile_vectors * stride + Index % tile_vectors * 4,
                     sizeof(four_floats)),
         ...);
    }
    template <int... Index>
    MP_ALWAYS_INLINE void write(float* tile, std::ptrdiff_t stride,
                                std::integer_sequence<int, Index...> /*all*/) const {
        (std::memcpy(tile + Index / tile_vectors * stride + Index % tile_vectors * 4, &sums[Index],
                     sizeof(four_floats)),
         ...);
    }
    template <int... Index>
    MP_ALWAYS_INLINE void add(const float* a, const four_floats (&b)[tile_vectors],
                              std::integer_sequence<int, Index...> /*all*/) {
        constexpr auto row = static_cast<std::ptrdiff_t>(a_row_bytes / sizeof(float));
        ((sums[Index] += a[Index / tile_vectors * row] * b[Index % tile_vectors]), ...);
    }
};

/// Each sum is a chain of sum += a * b in ascending k, of which the compiler makes fused multiply-adds where
/// the target has them.
template <int Rows>
void multiply_rows(const tile_product& p) {
    using all = std::make_integer_sequence<int, Rows * tile_vectors>;
    register_tile<Rows> registers;
    if (p.resume) {
        registers.read(p.tile, p.tile_stride, all{});
    } else {
        registers.clear(all{});
    }
    const auto* a = static_cast<const float*>(p.a);
    const auto* b = static_cast<const std::byte*>(p.b);
    for (std::ptrdiff_t step = 0; step < p.k; ++step) {
        four_floats row[tile_vectors];
        std::memcpy(row, b, sizeof row);
        registers.add(a, row, all{});
        ++a;
        b += p.b_step;
    }
    registers.write(p.tile, p.tile_stride, all{});
}

/// multiply_rows() with fused multiply-adds, from the C library where the target has no instruction for them.
template <int Rows>
void multiply_rows_fused(const tile_product& p) {
    float sums[std::size_t{Rows}][std::size_t{tile_width}] = {};
    for (int r = 0; p.resume && r < Rows; ++r)
        std::memcpy(sums[r], p.tile + r * p.tile_stride, sizeof sums[r]);
    const auto* b = static_cast<const std::byte*>(p.b);
    for (std::ptrdiff_t step = 0; step < p.k; ++step) {
        float row[tile_width];
        std::memcpy(row, b, sizeof row);
        for (int r = 0; r < Rows; ++r) {
            const float element = static_cast<const float*>(
                p.a)[r * (a_row_bytes / static_cast<std::ptrdiff_t>(sizeof(float))) + step];
            for (int j = 0; j < tile_width; ++j) sums[r][j] = fused_multiply_add(element, row[j], sums[r][j]);
        }
        b += p.b_step;
    }
    for (int r = 0; r < Rows; ++r) std::memcpy(p.tile + r * p.tile_stride, sums[r], sizeof sums[r]);
}

inline constexpr product_kernel float_kernel = {.name = "cpu.f32.portable",
                                                .rows = tile_rows,
                                                .width = tile_width,
                                                .block_rows = 96,
                                                .choices = {{1, &multiply_rows<1>},
                                                            {2, &multiply_rows<2>},
                                                            {4, &multiply_rows<4>},
                                                            {tile_rows, &multiply_rows<tile_rows>}}};
inline constexpr product_kernel fused_kernel = {
    .name = "cpu.f32.portable_fused",
    .rows = 4,
    .width = tile_width,
    .block_rows = 96,
    .choices = {{1, &multiply_rows_fused<1>}, {4, &multiply_rows_fused<4>}}};

}}}  // namespace mp::detail::portable

#define MP_KERNEL_FILE <mp/linalg/gemm/kernels/register_tiles.inl>
#include <mp/numbers/simd/for_each_target.inl>

#define MP_HIGHEST_TARGET MP_TARGET_AVX512_BF16
#define MP_KERNEL_FILE <mp/linalg/gemm/kernels/bfloat16_dot_tiles.inl>
#include <mp/numbers/simd/for_each_target.inl>

#if MP_BEST_TARGET >= MP_TARGET_AMX
// 32 x 32 sums in four tiles of 16 x 16, fed from two tiles of 16 rows of A by 32 steps of k and two of 32 steps by 16 columns
// of B.
//
// tdpbf16ps adds to each sum, for 32 steps at a time: the sum of the products of the even steps plus that of the odd ones, both
// begun at zero and formed by fused multiply-adds in ascending order; rounding to nearest even, subnormal operands and results
// taken for zero (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, TDPBF16PS).
namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace amx {

/// Eight tiles of 16 rows of 64 bytes.
struct alignas(64) tile_configuration {
    std::uint8_t palette = 1;
    std::uint8_t start_row = 0;
    std::uint8_t reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

inline void begin_tiles() {
    static constexpr tile_configuration configuration;
    __asm__ volatile("ldtilecfg %0" : : "m"(configuration));
}
inline void end_tiles() {
    __asm__ volatile("tilerelease");
}

/// 32 rows by 32 columns, or the upper 16 rows alone. The tile registers are named here, since compilers do
/// not hand them out: 0 to 3 are the sums, 4 and 5 hold A, 6 and 7 hold B.
template <int Rows>
void multiply_tiles(const tile_product& p) {
    static_assert(Rows == 16 || Rows == 32);
    const std::ptrdiff_t tile_bytes = p.tile_stride * static_cast<std::ptrdiff_t>(sizeof(float));
    // In variables, since the assembly below may write any memory for all that the compiler knows.
    const std::ptrdiff_t a_row = p.a_row;
    const std::ptrdiff_t a_tile = p.a_tile;
    const std::ptrdiff_t b_step = p.b_step;
    const std::ptrdiff_t k = p.k;
    const auto* a = static_cast<const std::byte*>(p.a);
    const auto* b = static_cast<const std::byte*>(p.b);
    float* const lower = p.tile + 16 * p.tile_stride;
    if (p.resume) {
        __asm__ volatile(
            "tileloadd (%0,%1,1), %%tmm0\n\t"
            "tileloadd 64(%0,%1,1), %%tmm1"
            :
            : "r"(p.tile), "r"(tile_bytes)
            : "memory");
        if constexpr (Rows == 32) {
            __asm__ volatile(
                "tileloadd (%0,%1,1), %%tmm2\n\t"
                "tileloadd 64(%0,%1,1), %%tmm3"
                :
                : "r"(lower), "r"(tile_bytes)
                : "memory");
        }
    } else {
        __asm__ volatile("tilezero %tmm0\n\ttilezero %tmm1\n\ttilezero %tmm2\n\ttilezero %tmm3");
    }
    for (std::ptrdiff_t step = 0; step < k; step += 32) {
        if constexpr (Rows == 32) {
            __asm__ volatile(
                "tileloadd (%0,%2,1), %%tmm4\n\t"
                "tileloadd (%3,%4,1), %%tmm6\n\t"
                "tdpbf16ps %%tmm6, %%tmm4, %%tmm0\n\t"
                "tileloadd 64(%3,%4,1), %%tmm7\n\t"
                "tdpbf16ps %%tmm7, %%tmm4, %%tmm1\n\t"
                "tileloadd (%1,%2,1), %%tmm5\n\t"
                "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\n\t"
                "tdpbf16ps %%tmm7, %%tmm5, %%tmm3"
                :
                : "r"(a), "r"(a + 16 * a_row), "r"(a_row), "r"(b), "r"(b_step)
                : "memory");
        } else {
            __asm__ volatile(
                "tileloadd (%0,%1,1), %%tmm4\n\t"
                "tileloadd (%2,%3,1), %%tmm6\n\t"
                "tdpbf16ps %%tmm6, %%tmm4, %%tmm0\n\t"
                "tileloadd 64(%2,%3,1), %%tmm7\n\t"
                "tdpbf16ps %%tmm7, %%tmm4, %%tmm1"
                :
                : "r"(a), "r"(a_row), "r"(b), "r"(b_step)
                : "memory");
        }
        a += a_tile;
        b += 16 * b_step;
    }
    __asm__ volatile(
        "tilestored %%tmm0, (%0,%1,1)\n\t"
        "tilestored %%tmm1, 64(%0,%1,1)"
        :
        : "r"(p.tile), "r"(tile_bytes)
        : "memory");
    if constexpr (Rows == 32) {
        __asm__ volatile(
            "tilestored %%tmm2, (%0,%1,1)\n\t"
            "tilestored %%tmm3, 64(%0,%1,1)"
            :
            : "r"(lower), "r"(tile_bytes)
            : "memory");
    }
}

inline constexpr product_kernel bfloat16_tile_kernel = {
    "cpu.bf16.amx.32x32",
    32,
    32,
    32,
    1024,
    32,
    panel_element::bfloat16_vnni2,
    panel_element::bfloat16_vnni2,
    a_layout::tiles,
    true,
    true,
    {{16, &multiply_tiles<16>}, {32, &multiply_tiles<32>}},
    &begin_tiles,
    &end_tiles};

}}}  // namespace mp::detail::amx
#endif
