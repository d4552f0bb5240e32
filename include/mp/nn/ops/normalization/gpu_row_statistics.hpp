// SPDX-License-Identifier: MIT
/// \file
/// The statistics by which a row is normalized: its center and the inverse of its deviation, in float with the
/// rounding errors compensated, by the threads of a group.
#pragma once

#include <mp/device/gpu/row_access.hpp>
#include <mp/numbers/rules/float_float.hpp>
#include <mp/numbers/rules/float_functions.hpp>
#include <mp/numbers/rules/row_statistics.hpp>

#include <cstddef>
#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// x times the row's factor, less its center.
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE float distance_from_center(
    const ops::normalization_statistics& row, float x) {
    return float_subtract(float_subtract(float_multiply(x, row.factor), row.center), row.center_tail);
}
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE float normalized_float(const ops::normalization_statistics& row,
                                                                     float x) {
    return float_multiply(distance_from_center(row, x), row.inverse);
}

/// The statistics of the row times the factor, and in `variance` the variance (or mean square) + epsilon of
/// that. Two passes: the mean, then the squares of the distances from it.
MP_ANY_EXECUTION_SPACE
template <class Group, int Width, bool Centered, class Thread, class Value>
[[nodiscard]] MP_HOST_DEVICE ops::normalization_statistics statistics_by_factor(
    Thread thread, const row_matrix<Value>& x, std::ptrdiff_t row, std::ptrdiff_t columns, float epsilon,
    float factor, float& variance) {
    ops::normalization_statistics result;
    result.factor = factor;
    const auto count = static_cast<float>(columns);
    if constexpr (Centered) {
        float_float sum{};
        for (std::ptrdiff_t c = Group::rank(thread) * Width; c < columns; c += Group::size * Width) {
            const row_floats<Width> values = load_row_floats<Width>(thread, x, row, c, columns);
            MP_UNROLL
            for (int i = 0; i < Width; ++i) sum = sum + float_multiply(values.values[i], factor);
        }
        const float_float mean = divided(Group::reduce(thread, sum, add_pairs{}), count);
        result.center = mean.high;
        result.center_tail = is_float_finite(mean.low) ? mean.low : 0.0F;
    }
    float_float squares{};
    for (std::ptrdiff_t c = Group::rank(thread) * Width; c < columns; c += Group::size * Width) {
        row_floats<Width> values = load_row_floats<Width>(thread, x, row, c, columns);
        MP_UNROLL
        for (int i = 0; i < Width; ++i) {
            const float distance = distance_from_center(result, values.values[i]);
            values.values[i] = c + i < columns ? float_multiply(distance, distance) : 0.0F;
        }
        squares = squares + sum_of_chunk(values);
    }
    squares = Group::reduce(thread, squares, add_pairs{});
    variance = float_add(float_divide(squares.value(), count),
                         float_multiply(float_multiply(epsilon, factor), factor));
    result.inverse = float_divide(1.0F, float_sqrt(variance));
    return result;
}

/// The statistics of a row. All threads of a group call it for the same row; rows with squares beyond float's
/// range, or so small that they lose digits, are calculated again, scaled so that the largest is about 1.
MP_ANY_EXECUTION_SPACE
template <class Group, int Width, bool Centered, class Thread, class Value>
[[nodiscard]] MP_HOST_DEVICE ops::normalization_statistics float_row_statistics_of(
    Thread thread, const row_matrix<Value>& x, std::ptrdiff_t row, std::ptrdiff_t columns, float epsilon) {
    constexpr float smallest_variance = 0x1p-80F;
    float variance = 0;
    const ops::normalization_statistics plain =
        statistics_by_factor<Group, Width, Centered>(thread, x, row, columns, epsilon, 1.0F, variance);
    // The same for all threads of the group.
    if (is_float_finite(variance) && variance >= smallest_variance) return plain;
    std::uint32_t largest = 0;
    for (std::ptrdiff_t c = Group::rank(thread) * Width; c < columns; c += Group::size * Width) {
        const row_floats<Width> values = load_row_floats<Width>(thread, x, row, c, columns);
        MP_UNROLL
        for (int i = 0; i < Width; ++i) {
            largest = larger_word{}(largest, bit_cast<std::uint32_t>(values.values[i]) & 0x7FFF'FFFFU);
        }
    }
    largest = Group::reduce(thread, largest, larger_word{});
    const int of_row = static_cast<int>(largest >> 23) - 127;
    const int of_epsilon = (static_cast<int>(bit_cast<std::uint32_t>(epsilon) >> 23) - 127) / 2;
    int exponent = of_row < of_epsilon ? of_epsilon : of_row;
    exponent = exponent > 126 ? 126 : exponent < -126 ? -126 : exponent;
    return statistics_by_factor<Group, Width, Centered>(thread, x, row, columns, epsilon,
                                                        float_power_of_two(-exponent), variance);
}

}}  // namespace mp::detail
