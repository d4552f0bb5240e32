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

/// Whether a finite value is one, apart from its sign.
MP_HOST_DEVICE constexpr bool is_one(const approximation& x) {
    return x.top() == 0 && x.significand == approximate_one().significand;
}

template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> asinpi_bits(storage_of<Format> a, Context&& context) {
    a = operand<Format>(a, context);
    const category kind = categorize<Format>(a);
    if (kind == category::nan) return convert_nan<Format, Format>(a, context);
    if (kind == category::zero) return a;
    if (kind == category::infinite) return invalid_operation<Format>(context);
    const approximation x = approximate(unpack<Format>(a));
    if (is_one(x)) return round_exact<Format>(x.negative, 1, -1, context);
    if (x.top() >= 0) return invalid_operation<Format>(context);
    approximation angle = first_quadrant_half_turns(x.magnitude(), other_leg(x));
    angle.negative = x.negative;
    return round_inexact<Format>(angle, context);
}

template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> acospi_bits(storage_of<Format> a, Context&& context) {
    a = operand<Format>(a, context);
    const category kind = categorize<Format>(a);
    if (kind == category::nan) return convert_nan<Format, Format>(a, context);
    if (kind == category::zero) return round_exact<Format>(false, 1, -1, context);
    if (kind == category::infinite) return invalid_operation<Format>(context);
    const approximation x = approximate(unpack<Format>(a));
    if (is_one(x)) {
        return x.negative ? round_exact<Format>(false, 1, 0, context) : pack_zero<Format>(false, context);
    }
    if (x.top() >= 0) return invalid_operation<Format>(context);
    const approximation magnitude = x.magnitude();
    const approximation angle =
        x.negative ? approximate_one().scaled(-1) + first_quadrant_half_turns(magnitude, other_leg(x))
                   : first_quadrant_half_turns(other_leg(x), magnitude);
    return round_inexact<Format>(angle, context);
}

template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> atanpi_bits(storage_of<Format> a, Context&& context) {
    a = operand<Format>(a, context);
    const category kind = categorize<Format>(a);
    if (kind == category::nan) return convert_nan<Format, Format>(a, context);
    if (kind == category::zero) return a;
    const bool negative = is_negative<Format>(a);
    if (kind == category::infinite) return round_exact<Format>(negative, 1, -1, context);
    const approximation x = approximate(unpack<Format>(a)).magnitude();
    if (is_one(x)) return round_exact<Format>(negative, 1, -2, context);
    approximation angle = first_quadrant_half_turns(x, approximate_one());
    angle.negative = negative;
    return round_inexact<Format>(angle, context);
}

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
    return basic_float<Format>::from_bits(detail::asinpi_bits<Format>(x.bits(), context));
}

/// acos(x) / pi, in [0, 1]; NaN beyond [-1, 1]. Correctly rounded in every mode for formats of up to 16 bits
/// (all arguments checked, as for asinpi).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> acospi(basic_float<Format> x,
                                                                  Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(detail::acospi_bits<Format>(x.bits(), context));
}

/// atan(x) / pi, in [-1/2, 1/2]. Correctly rounded in every mode for formats of up to 16 bits (all arguments
/// checked, as for asinpi).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> atanpi(basic_float<Format> x,
                                                                  Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(detail::atanpi_bits<Format>(x.bits(), context));
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
