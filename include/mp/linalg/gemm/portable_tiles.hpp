// SPDX-License-Identifier: MIT
/// \file
/// Kernels of the matrix product in plain C++, for what the compiler was told to aim at: on vector types that
/// g++ and clang map to the registers of the target, elsewhere on arrays that the compiler may vectorise.
#pragma once

#include <mp/config.hpp>
#include <mp/linalg/gemm/product_kernel.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <cstddef>
#include <cstring>
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

inline constexpr product_kernel float_kernel = {"cpu.f32.portable",
                                                tile_rows,
                                                tile_width,
                                                1,
                                                256,
                                                96,
                                                panel_element::float32,
                                                panel_element::float32,
                                                a_layout::rows,
                                                false,
                                                false,
                                                {{1, &multiply_rows<1>},
                                                 {2, &multiply_rows<2>},
                                                 {4, &multiply_rows<4>},
                                                 {tile_rows, &multiply_rows<tile_rows>}}};
inline constexpr product_kernel fused_kernel = {"cpu.f32.portable_fused",
                                                4,
                                                tile_width,
                                                1,
                                                256,
                                                96,
                                                panel_element::float32,
                                                panel_element::float32,
                                                a_layout::rows,
                                                false,
                                                false,
                                                {{1, &multiply_rows_fused<1>}, {4, &multiply_rows_fused<4>}}};

}}}  // namespace mp::detail::portable
