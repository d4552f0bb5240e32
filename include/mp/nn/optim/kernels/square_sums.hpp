// SPDX-License-Identifier: MIT
/// \file
/// Sums of squares in an order that no instruction set and no number of threads changes.
///
/// An array is cut into blocks of parameter_layout::chunk elements. In a block, element i counts for lane
/// i mod 16; each lane adds its squares, which are exact in double, in ascending order of the elements,
/// starting from zero. Lanes are then added in pairs: lane l and lane l + 8 for l below 8, of these l and
/// l + 4 for l below 4, and so on. The blocks of all arrays, numbered through array after array, are added in
/// the same way by 256 lanes: block k counts for lane k mod 256. <mp/nn/optim/gpu/gradient_norm.hpp> has the same
/// order.
#pragma once

#include <mp/config.hpp>
#include <mp/nn/optim/parameter.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/select_target.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

inline constexpr std::size_t square_lanes = 16;

/// Lanes that blocks are added in.
inline constexpr std::size_t block_lanes = 256;

/// The sum of lanes, a power of 2, in pairs; they are scratch afterwards.
MP_ALWAYS_INLINE double sum_in_pairs(double* lane_sums, std::size_t lanes) noexcept {
    for (std::size_t width = lanes / 2; width != 0; width /= 2) {
        for (std::size_t lane = 0; lane < width; ++lane) {
            lane_sums[lane] = opt_barrier(lane_sums[lane] + lane_sums[lane + width]);
        }
    }
    return lane_sums[0];
}

/// The sum of the lanes of a block, in pairs; they are scratch afterwards.
MP_ALWAYS_INLINE double sum_of_square_lanes(double* lane_sums) noexcept {
    return sum_in_pairs(lane_sums, square_lanes);
}

/// The sum of the blocks. Of few blocks the upper lanes are zeros, which change no sum of squares.
inline double sum_of_blocks(const double* values, std::size_t count) noexcept {
    const std::size_t lanes = std::bit_ceil((std::min)(block_lanes, count));
    double lane_sums[block_lanes];
    std::fill(lane_sums, lane_sums + lanes, 0.0);
    for (std::size_t at = 0; at < count; at += block_lanes) {
        const std::size_t length = (std::min)(block_lanes, count - at);
        for (std::size_t lane = 0; lane < length; ++lane) {
            lane_sums[lane] = opt_barrier(lane_sums[lane] + values[at + lane]);
        }
    }
    return sum_in_pairs(lane_sums, lanes);
}

/// lane_sums[i] += values[i]^2 for all lanes. The squares are exact; of the sums, none may be put off, which
/// -ffast-math would allow.
inline void add_squares_portable(const float* values, double* lane_sums, std::size_t count) noexcept {
#if defined(__GNUC__) && !defined(__CUDACC__) && (defined(__SSE2__) || defined(__aarch64__))
    typedef float two_floats __attribute__((vector_size(8)));     // NOLINT(modernize-use-using)
    typedef double two_doubles __attribute__((vector_size(16)));  // NOLINT(modernize-use-using)
    constexpr std::size_t pairs = square_lanes / 2;
    two_doubles sums[pairs];
    std::memcpy(sums, lane_sums, sizeof sums);
    for (std::size_t i = 0; i + square_lanes <= count; i += square_lanes) {
        for (std::size_t pair = 0; pair < pairs; ++pair) {
            two_floats narrow;
            std::memcpy(&narrow, values + i + 2 * pair, sizeof narrow);
            const two_doubles x = __builtin_convertvector(narrow, two_doubles);
            sums[pair] += x * x;
#if defined(__SSE2__)
            __asm__("" : "+x"(sums[pair]));
#else
            __asm__("" : "+w"(sums[pair]));
#endif
        }
    }
    std::memcpy(lane_sums, sums, sizeof sums);
#else
    for (std::size_t i = 0; i + square_lanes <= count; i += square_lanes) {
        for (std::size_t lane = 0; lane < square_lanes; ++lane) {
            const double value = static_cast<double>(values[i + lane]);
            lane_sums[lane] = opt_barrier(lane_sums[lane] + value * value);
        }
    }
#endif
}

/// sums[k] = the sum of the squares of block k.
inline void square_sums_portable(const float* values, std::size_t count, double* sums) {
    const default_floating_point_modes modes;
    for (std::size_t at = 0; at < count; at += parameter_layout::chunk, ++sums) {
        const std::size_t length =
            count - at < parameter_layout::chunk ? count - at : parameter_layout::chunk;
        const std::size_t whole = length / square_lanes * square_lanes;
        double lane_sums[square_lanes] = {};
        add_squares_portable(values + at, lane_sums, whole);
        float last[square_lanes] = {};
        std::memcpy(last, values + at + whole, (length - whole) * sizeof(float));
        add_squares_portable(last, lane_sums, square_lanes);
        *sums = sum_of_square_lanes(lane_sums);
    }
}

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/nn/optim/kernels/square_sums.inl>
#include <mp/numbers/simd/for_each_target.inl>
