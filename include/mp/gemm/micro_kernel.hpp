// SPDX-License-Identifier: MIT
/// \file
/// The innermost part of the matrix product: a tile of the result, held in registers, over packed panels.
/// Plain C++ on vector types that g++ and clang map to the registers of the target; elsewhere on arrays that
/// the compiler may vectorise.
#pragma once

#include <mp/config.hpp>

#include <bit>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

namespace mp::detail {

/// Lanes floats that are added and multiplied lane by lane; the stand-in where the compiler has no vector
/// types.
template <int Lanes>
struct plain_vector {
    float lane[Lanes];

    friend constexpr plain_vector operator*(float factor, plain_vector v) {
        for (int i = 0; i < Lanes; ++i) v.lane[i] *= factor;
        return v;
    }
    constexpr plain_vector& operator+=(const plain_vector& other) {
        for (int i = 0; i < Lanes; ++i) lane[i] += other.lane[i];
        return *this;
    }
};

/// Shape of a register tile: Rows rows of A by Vectors vectors of Lanes columns of B. With it go the shapes
/// of the packed panels: `rows` floats of A and `width` floats of B for every step along the depth.
template <class Vector, int Rows, int Vectors>
struct tile_shape {
    using vector = Vector;
    static constexpr int lanes = static_cast<int>(sizeof(Vector) / sizeof(float));
    static constexpr int rows = Rows;
    static constexpr int vectors = Vectors;
    static constexpr int width = lanes * Vectors;
};

/// The kernel in standard C++, on any target.
struct portable_kernel : tile_shape<plain_vector<4>, 4, 2> {
    static constexpr std::string_view name = "cpu.f32.portable.4x8";
};

#if defined(__GNUC__) && !defined(__CUDACC__)

template <int Lanes>
struct register_vector {
    typedef float type __attribute__((vector_size(Lanes * sizeof(float))));  // NOLINT(modernize-use-using)
};

// One kernel an instruction set. Its registers hold rows * vectors accumulators, the vectors of B and one
// element of A; the tile takes as many of them as there are, because every element loaded is then used more
// often. Each can be compiled for any target, where the compiler makes do with what there is.
struct avx512_kernel : tile_shape<register_vector<16>::type, 12, 2> {
    static constexpr std::string_view name = "cpu.f32.avx512.12x32";
};
struct avx2_kernel : tile_shape<register_vector<8>::type, 6, 2> {
    static constexpr std::string_view name = "cpu.f32.avx2.6x16";
};
struct avx_kernel : tile_shape<register_vector<8>::type, 4, 3> {
    static constexpr std::string_view name = "cpu.f32.avx.4x24";
};
struct sse2_kernel : tile_shape<register_vector<4>::type, 4, 3> {
    static constexpr std::string_view name = "cpu.f32.sse2.4x12";
};
struct neon_kernel : tile_shape<register_vector<4>::type, 8, 3> {
    static constexpr std::string_view name = "cpu.f32.neon.8x12";
};

#if defined(__AVX512F__)
using native_kernel = avx512_kernel;
#elif defined(__AVX2__) && defined(__FMA__)
using native_kernel = avx2_kernel;
#elif defined(__AVX__)
using native_kernel = avx_kernel;
#elif defined(__SSE2__)
using native_kernel = sse2_kernel;
#elif defined(__ARM_NEON)
using native_kernel = neon_kernel;
#else
using native_kernel = portable_kernel;
#endif

#else  // no vector types: another compiler, or nvcc, whose front end does not take them
using native_kernel = portable_kernel;
#endif

/// The steps of a tile of Rows x Vectors accumulators, written out for each of them by the folds: this is
/// what keeps them in registers at every optimisation level, where loops over them do so only at -O3.
template <class Kernel, int Rows, int Vectors>
struct register_tile {
    using vector = typename Kernel::vector;
    using all = std::make_integer_sequence<int, Rows * Vectors>;
    using one_row = std::make_integer_sequence<int, Vectors>;

    vector sums[Rows * Vectors];
    vector b[Vectors];

    static constexpr int place(int index) {
        return index / Vectors * Kernel::width + index % Vectors * Kernel::lanes;
    }

    template <int... Index>
    MP_ALWAYS_INLINE void clear(std::integer_sequence<int, Index...> /*all*/) {
        ((sums[Index] = vector{}), ...);
    }
    template <int... Index>
    MP_ALWAYS_INLINE void load(const float* tile, std::integer_sequence<int, Index...> /*all*/) {
        (std::memcpy(&sums[Index], tile + place(Index), sizeof(vector)), ...);
    }
    template <int... Index>
    MP_ALWAYS_INLINE void store(float* tile, std::integer_sequence<int, Index...> /*all*/) const {
        (std::memcpy(tile + place(Index), &sums[Index], sizeof(vector)), ...);
    }
    template <int... Index>
    MP_ALWAYS_INLINE void load_b(const float* b_panel, std::integer_sequence<int, Index...> /*one_row*/) {
        (std::memcpy(&b[Index], b_panel + Index * Kernel::lanes, sizeof(vector)), ...);
    }
    template <int... Index>
    MP_ALWAYS_INLINE void multiply_add(const float* a_panel, std::integer_sequence<int, Index...> /*all*/) {
        ((sums[Index] += a_panel[Index / Vectors] * b[Index % Vectors]), ...);
    }
};

/// tile[r][c] (+)= sum over k of a_panel[k][r] * b_panel[k][c], for the first Rows rows and the first Vectors
/// vectors of columns. Panels and tile have the row lengths of Kernel, whatever part of them is computed.
/// With `resume` the sum goes on from what is in the tile; without, it starts at zero.
///
/// Each element is one chain of accumulator += a * b in ascending k, of which the compiler makes fused
/// multiply-adds where the target has them. The chain does not depend on Rows, on Vectors, on the other
/// elements of the tile or on where the depth was cut, so neither do the bits of the result.
template <class Kernel, int Rows, int Vectors>
#if defined(__clang__)
// Without this, clang cuts 64-byte vectors in halves on targets where it thinks that 32 bytes run faster.
__attribute__((__min_vector_width__(512)))
#endif
void multiply_panels(std::ptrdiff_t depth, const float* a_panel, const float* b_panel, float* tile, bool resume) {
    using tile_type = register_tile<Kernel, Rows, Vectors>;
    tile_type registers;
    if (resume) {
        registers.load(tile, typename tile_type::all{});
    } else {
        registers.clear(typename tile_type::all{});
    }
    for (std::ptrdiff_t k = 0; k < depth; ++k) {
        registers.load_b(b_panel, typename tile_type::one_row{});
        registers.multiply_add(a_panel, typename tile_type::all{});
        a_panel += Kernel::rows;
        b_panel += Kernel::width;
    }
    registers.store(tile, typename tile_type::all{});
}

using panel_product = void (*)(std::ptrdiff_t depth, const float* a_panel, const float* b_panel, float* tile,
                               bool resume);

/// The multiply_panels that computes the fewest elements beyond the first `rows` x `columns` of the tile.
template <class Kernel, int Rows = Kernel::rows, int Vectors = Kernel::vectors>
panel_product product_for(std::ptrdiff_t rows, std::ptrdiff_t columns) {
    if constexpr (Rows > 1) {
        constexpr int fewer = static_cast<int>(std::bit_floor(static_cast<unsigned>(Rows - 1)));
        if (rows <= fewer) return product_for<Kernel, fewer, Vectors>(rows, columns);
    }
    if constexpr (Vectors > 1) {
        if (columns <= (Vectors - 1) * Kernel::lanes)
            return product_for<Kernel, Rows, Vectors - 1>(rows, columns);
    }
    return &multiply_panels<Kernel, Rows, Vectors>;
}

}  // namespace mp::detail
