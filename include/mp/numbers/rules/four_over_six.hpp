// SPDX-License-Identifier: MIT
/// \file
/// Errors by which one of two scales of a block is chosen (scale_rule::four_over_six_mse and
/// four_over_six_mae), with the same bits on CPUs and GPUs.
#pragma once

#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/block_scales.hpp>

#include <cstddef>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Returns the sum of `Count` terms, a power of two, by halves: terms i and i + Count / 2 first. Overwrites them.
template <std::size_t Count>
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr double sum_by_halves(double (&terms)[Count]) {
    static_assert((Count & (Count - 1)) == 0);
    MP_UNROLL
    for (std::size_t half = Count / 2; half != 0; half /= 2) {
        MP_UNROLL
        for (std::size_t i = 0; i < Count / 2; ++i) {
            if (i < half) terms[i] = double_add(terms[i], terms[i + half]);
        }
    }
    return terms[0];
}

/// Returns the sum of the errors of finite magnitudes, each rounded to the nearest element times `divisor`, which
/// is scale * tensor scale. Every operation is rounded to double; midpoints and values are exact products.
template <class Format, std::size_t Count>
MP_HOST_DEVICE constexpr double block_error(const double (&magnitudes)[Count], double divisor, bool squared) {
    constexpr element_midpoints<Format> midpoints;
    double errors[Count] = {};  // first the values
    MP_UNROLL
    for (int k = 0; k < element_midpoints<Format>::count; ++k) {
        const double middle = double_multiply(midpoints.values[k], divisor);
        const double next = double_multiply(midpoints.above[k], divisor);
        // On a midpoint the even code is the nearest one.
        if (k % 2 == 0) {
            for (std::size_t i = 0; i < Count; ++i) errors[i] = magnitudes[i] > middle ? next : errors[i];
        } else {
            for (std::size_t i = 0; i < Count; ++i) errors[i] = magnitudes[i] >= middle ? next : errors[i];
        }
    }
    for (std::size_t i = 0; i < Count; ++i) {
        const double error = double_subtract(magnitudes[i], errors[i]);
        errors[i] = squared ? double_multiply(error, error) : error < 0 ? -error : error;
    }
    return sum_by_halves(errors);
}

}}  // namespace mp::detail
