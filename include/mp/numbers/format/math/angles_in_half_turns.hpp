// SPDX-License-Identifier: MIT
/// \file
/// asinpi, acospi, atanpi and atan2pi: the inverse functions in half turns.
///
/// Among the angles of points with rational slopes, and among those with rational sines, only those of the
/// axes, and of slope one, are fractions of a turn with a power of two below the line (I. Niven, "Irrational
/// Numbers", 1956; sine 1/2 gives thirds). These are all exact cases. Of others the ratio to pi is
/// irrational.
#pragma once

#include <mp/numbers/format/math/inverse_trigonometric.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The angle of (x, y) in half turns, for positive x and y that differ; relative error below 2^-59. What is
/// near a quarter turn is taken away from it, so that it stays on its side.
MP_HOST_DEVICE constexpr approximation first_quadrant_half_turns(const approximation& y,
                                                                 const approximation& x) {
    constexpr approximation inverse_pi{false, -65, 0xa2f9836e4e441529};
    const approximation difference = y - x;
    if (difference.significand == 0 || difference.negative) return first_octant_angle(y, x) * inverse_pi;
    return approximate_one().scaled(-1) - first_octant_angle(x, y) * inverse_pi;
}

MP_HOST_DEVICE constexpr function_value asinpi_of(const approximation& x) {
    if (is_one(x)) return exact_value{x.negative, -1, 1};
    if (x.top() >= 0) return special::invalid;
    return with_sign(first_quadrant_half_turns(x.magnitude(), other_leg(x)), x.negative);
}
using evaluate_asinpi = math_function<asinpi_of, special::signed_zero, special::invalid, special::invalid>;

MP_HOST_DEVICE constexpr function_value acospi_of(const approximation& x) {
    if (x.significand == 0) return exact_value{false, -1, 1};
    if (is_one(x)) return x.negative ? special::one : special::zero;
    if (x.top() >= 0) return special::invalid;
    const approximation magnitude = x.magnitude();
    return x.negative ? approximate_one().scaled(-1) + first_quadrant_half_turns(magnitude, other_leg(x))
                      : first_quadrant_half_turns(other_leg(x), magnitude);
}
using evaluate_acospi = math_function<acospi_of, special::number, special::invalid, special::invalid>;

MP_HOST_DEVICE constexpr function_value atanpi_of(const approximation& x) {
    if (is_one(x)) return exact_value{x.negative, -2, 1};
    return with_sign(first_quadrant_half_turns(x.magnitude(), approximate_one()), x.negative);
}
using evaluate_atanpi =
    math_function<atanpi_of, special::signed_zero, special::signed_half, special::signed_half>;

/// The angle of (x, y), neither of which is NaN, in half turns.
template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> half_turns_of_point(const number_parts& y, const number_parts& x,
                                                                Context&& context) {
    if (has_no_angle<Format>(y, x)) return invalid_operation<Format>(context);
    const bool left = x.negative;
    if (y.kind == category::zero || (x.kind == category::infinite && y.kind != category::infinite)) {
        const bool negative = y.negative && !layout_of<Format>::follows_p3109;
        return left ? round_exact<Format>(negative, 1, 0, context) : pack_zero<Format>(negative, context);
    }
    if (x.kind == category::zero || (y.kind == category::infinite && x.kind != category::infinite)) {
        return round_exact<Format>(y.negative, 1, -1, context);
    }
    const bool diagonal = y.kind == category::infinite || compare_magnitudes(y.value, x.value) == 0;
    if (diagonal) return round_exact<Format>(y.negative, left ? 3 : 1, -2, context);
    approximation angle =
        first_quadrant_half_turns(approximate(y.value).magnitude(), approximate(x.value).magnitude());
    if (left) angle = approximate_one() - angle;
    angle.negative = y.negative;
    return round_inexact<Format>(angle, context);
}

template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> atan2pi_bits(storage_of<Format> a, storage_of<Format> b,
                                                         Context&& context) {
    a = operand<Format>(a, context);
    b = operand<Format>(b, context);
    if (categorize<Format>(a) == category::nan || categorize<Format>(b) == category::nan)
        return propagate_nan<Format>(a, b, context);
    return half_turns_of_point<Format>(parts_of_code<Format>(a), parts_of_code<Format>(b), context);
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// asin(x) / pi, in [-1/2, 1/2]; NaN beyond [-1, 1]. Correctly rounded in every mode for formats of up to 16
/// bits (all arguments of half, bfloat16 and the 8-bit formats checked); for wider ones the error before
/// rounding is below 2^-55 of the result.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> asinpi(basic_float<Format> x,
                                                                  Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_asinpi>(x, context);
}

/// acos(x) / pi, in [0, 1]; NaN beyond [-1, 1]. Correctly rounded in every mode for formats of up to 16 bits
/// (all arguments checked, as for asinpi).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> acospi(basic_float<Format> x,
                                                                  Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_acospi>(x, context);
}

/// atan(x) / pi, in [-1/2, 1/2]. Correctly rounded in every mode for formats of up to 16 bits (all arguments
/// checked, as for asinpi).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> atanpi(basic_float<Format> x,
                                                                  Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_atanpi>(x, context);
}

/// atan2(y, x) / pi, in [-1, 1], with the zeros and infinities of C's atan2pi. Correctly rounded in every
/// mode for formats of up to 16 bits (random and hard pairs of half and bfloat16, and all pairs of 8-bit
/// formats checked).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> atan2pi(
    basic_float<Format> y, basic_float<Format> x, Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(detail::atan2pi_bits<Format>(y.bits(), x.bits(), context));
}

}}  // namespace mp
