// SPDX-License-Identifier: MIT
/// \file
/// Sums of squares in an order that no instruction set and no number of threads changes.
///
/// An array is cut into blocks of parameter_layout::chunk elements. In a block, element i counts for lane
/// i mod 16; each lane adds its squares, which are exact in double, in ascending order of the elements,
/// starting from zero. Lanes are then added in pairs: lane l and lane l + 8 for l below 8, of these l and
/// l + 4 for l below 4, and so on. The sum of all arrays adds the blocks in ascending order, array after
/// array.
#pragma once

#include <mp/config.hpp>
#include <mp/optim/parameter_layout.hpp>
#include <mp/simd/floating_point_modes.hpp>
#include <mp/simd/levels.hpp>
#include <mp/simd/vectors.hpp>

#include <cstddef>
#include <cstring>

namespace mp::detail {

inline constexpr std::size_t square_lanes = 16;

/// The value as it would be stored: no compiler changes the order of sums across it.
MP_ALWAYS_INLINE double rounded_double(double x) noexcept {
#if defined(__SSE2__) && defined(__GNUC__) && !defined(__CUDACC__)
    __asm__("" : "+x"(x));
#elif defined(__GNUC__) && !defined(__CUDACC__)
    __asm__("" : "+m"(x));
#endif
    return x;
}

/// The sum of the lanes of a block, in pairs; they are scratch afterwards.
MP_ALWAYS_INLINE double sum_of_lanes(double* lane_sums) noexcept {
    for (std::size_t width = square_lanes / 2; width != 0; width /= 2) {
        for (std::size_t lane = 0; lane < width; ++lane) {
            lane_sums[lane] = rounded_double(lane_sums[lane] + lane_sums[lane + width]);
        }
    }
    return lane_sums[0];
}

/// The sum of the blocks, one after the other.
inline double sum_in_order(const double* values, std::size_t count) noexcept {
    double sum = 0.0;
    for (std::size_t i = 0; i < count; ++i) sum = rounded_double(sum + values[i]);
    return sum;
}

/// sums[k] = the sum of the squares of block k.
inline void square_sums_portable(const float* values, std::size_t count, double* sums) {
    const default_floating_point_modes modes;
    for (std::size_t at = 0; at < count; at += parameter_layout::chunk, ++sums) {
        const std::size_t length =
            count - at < parameter_layout::chunk ? count - at : parameter_layout::chunk;
        double lane_sums[square_lanes] = {};
        std::size_t i = 0;
        for (; i + square_lanes <= length; i += square_lanes) {
            for (std::size_t lane = 0; lane < square_lanes; ++lane) {
                const double value = static_cast<double>(values[at + i + lane]);
                lane_sums[lane] += value * value;
            }
        }
        for (std::size_t lane = 0; i + lane < length; ++lane) {
            const double value = static_cast<double>(values[at + i + lane]);
            lane_sums[lane] += value * value;
        }
        *sums = sum_of_lanes(lane_sums);
    }
}

}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/optim/kernels/square_sums.inl>
#include <mp/simd/for_each_target.hpp>
