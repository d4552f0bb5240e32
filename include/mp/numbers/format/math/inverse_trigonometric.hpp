// SPDX-License-Identifier: MIT
/// \file
/// asin, acos, atan and atan2: all are the angle of a point in the plane.
///
/// The angle of (n, d) with 0 <= n <= d is that of one of the slopes 0, 1/4, 1/2, 3/4 and 1 plus the angle
/// between the two, whose tangent is at most 1/8 in magnitude.
#pragma once

#include <mp/numbers/format/math/fast_double.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// atan(t) for |t| <= 1/8 by a polynomial in z = t^2, through the Chebyshev nodes of [0, 1/63]; its error is
/// below 2^-64.
MP_HOST_DEVICE constexpr approximation small_atan(const approximation& t) {
    const std::uint64_t z = to_fixed(t * t);
    return t * one_minus(z, alternating_polynomial<0x2aaaaaaaaaaaaa9a, 0x1999999999981798, 0x1249249243338ef7,
                                                   0x0e38e3856fb22b14, 0x0ba2e28898cfce55, 0x09d65e89ce9c08e3,
                                                   0x08209a9ca8a79f40>(z));
}

/// The angle of a slope of quarters / 4, for quarters from 1 to 4.
MP_HOST_DEVICE constexpr approximation angle_of_quarters(int quarters) {
    switch (quarters) {
        case 1:
            return {false, -66, 0xfadbafc96406eb15};
        case 2:
            return {false, -65, 0xed63382b0dda7b45};
        case 3:
            return {false, -64, 0xa4bc7d1934f70924};
        default:
            return {false, -64, 0xc90fdaa22168c234};
    }
}

/// atan(n / d) for positive n <= d.
MP_HOST_DEVICE constexpr approximation first_octant_angle(const approximation& n, const approximation& d) {
    const approximation slope = n / d;
    // Eighths of the slope, rounded to quarters.
    const int eighths = slope.top() < -3 ? 0 : static_cast<int>(slope.significand >> (-slope.exponent - 3));
    const int quarters = (eighths + 1) / 2;
    if (quarters == 0) return small_atan(slope);
    const approximation c = approximate(quarters).scaled(-2);
    const approximation numerator = n - c * d;
    if (numerator.significand == 0) return angle_of_quarters(quarters);
    return angle_of_quarters(quarters) + small_atan(numerator / (d + c * n));
}

/// The angle of the point (x, y) for positive x and y; relative error below 2^-60.
///
/// For a small slope y / x it is the slope minus its cube / 3. If the slope is a number or midpoint b, then
/// so it is in 64 bits, and the angle stays below. If not, y - b x is at least one unit in the last place of
/// the product, so the slope is farther from b than any cube of something below 2^-16 can reach. For all
/// other slopes, and for pi minus the angle, no pair of half or bfloat16 comes closer than 2^-42 to a number
/// or midpoint; exhaustive/math_pairs.cpp runs through them.
MP_HOST_DEVICE constexpr approximation first_quadrant_angle(const approximation& y, const approximation& x) {
    const approximation difference = y - x;
    if (difference.significand == 0 || difference.negative) return first_octant_angle(y, x);
    return approximate_half_pi() - first_octant_angle(x, y);
}

/// x + x^3 / 6 or x - x^3 / 6, for x so small that more is not seen.
MP_HOST_DEVICE constexpr approximation add_cube_sixth(const approximation& x, bool subtract) {
    constexpr approximation sixth{false, -66, 0xaaaaaaaaaaaaaaaa};
    const approximation correction = x * x * x * sixth;
    return subtract ? x - correction : x + correction;
}

/// sqrt(1 - x^2) for |x| < 1; both factors are exact.
MP_HOST_DEVICE constexpr approximation other_leg(const approximation& x) {
    return square_root((approximate_one() - x) * (approximate_one() + x));
}

// Sines and cosines of algebraic numbers other than zero are transcendental, and so are inverse sines and so
// on except for the zeros.

MP_HOST_DEVICE constexpr function_value asin_of(const approximation& x) {
    if (is_one(x)) return with_sign(approximate_half_pi(), x.negative);
    if (x.top() >= 0) return special::invalid;
    if (x.top() < -16) return add_cube_sixth(x, false);
    return with_sign(first_quadrant_angle(x.magnitude(), other_leg(x)), x.negative);
}
using evaluate_asin = math_function<asin_of, special::signed_zero, special::invalid, special::invalid>;

MP_HOST_DEVICE constexpr function_value acos_of(const approximation& x) {
    if (x.significand == 0) return approximate_half_pi();
    if (is_one(x)) return x.negative ? function_value(approximate_pi()) : special::zero;
    if (x.top() >= 0) return special::invalid;
    // The smaller of the two angles of the triangle, so that nothing cancels; for small x it is x itself.
    const approximation magnitude = x.magnitude();
    const approximation angle = x.top() < -16 ? approximate_half_pi() - add_cube_sixth(magnitude, false)
                                              : first_quadrant_angle(other_leg(x), magnitude);
    return x.negative ? approximate_pi() - angle : angle;
}
using evaluate_acos = math_function<acos_of, special::number, special::invalid, special::invalid>;

MP_HOST_DEVICE constexpr approximation atan_of(const approximation& x) {
    return with_sign(first_quadrant_angle(x.magnitude(), approximate_one()), x.negative);
}
using evaluate_atan =
    math_function<atan_of, special::signed_zero, special::signed_half_pi, special::signed_half_pi>;

/// Whether (x, y) has no angle by P3109, as zero and two infinities do not.
template <class Format>
MP_HOST_DEVICE constexpr bool has_no_angle(const number_parts& y, const number_parts& x) {
    return layout_of<Format>::follows_p3109 && y.kind == x.kind && y.kind != category::finite;
}

/// The angle of (x, y), neither of which is NaN, in radians.
template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> radians_of_point(const number_parts& y, const number_parts& x,
                                                             Context&& context) {
    if (has_no_angle<Format>(y, x)) return invalid_operation<Format>(context);
    approximation angle;
    if (y.kind == category::zero || (x.kind == category::infinite && y.kind != category::infinite)) {
        if (!x.negative) return pack_zero<Format>(y.negative, context);
        angle = approximate_pi();
        if (layout_of<Format>::follows_p3109) return round_inexact<Format>(angle, context);
    } else if (x.kind == category::zero || (y.kind == category::infinite && x.kind != category::infinite)) {
        angle = approximate_half_pi();
    } else if (y.kind == category::infinite) {
        constexpr approximation three_quarters_pi{false, -62, 0x96cbe3f9990e91a7};
        angle = x.negative ? three_quarters_pi : approximate_half_pi().scaled(-1);
    } else {
        angle = first_quadrant_angle(approximate(y.value).magnitude(), approximate(x.value).magnitude());
        if (x.negative) angle = approximate_pi() - angle;
    }
    angle.negative = y.negative;
    return round_inexact<Format>(angle, context);
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The angle in [-pi/2, pi/2] whose sine is x; NaN beyond [-1, 1]. Correctly rounded in every mode for
/// formats of up to 16 bits (all arguments of half, bfloat16 and the 8-bit formats checked); for wider ones
/// the error before rounding is below 2^-55 of the result.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> asin(basic_float<Format> x,
                                                                Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_asin>(x, context);
}

/// The angle in [0, pi] whose cosine is x; NaN beyond [-1, 1]. Correctly rounded in every mode for formats of
/// up to 16 bits (all arguments checked, as for asin).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> acos(basic_float<Format> x,
                                                                Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_acos>(x, context);
}

/// The angle in [-pi/2, pi/2] whose tangent is x. Correctly rounded in every mode for formats of up to 16
/// bits (all arguments checked, as for asin).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> atan(basic_float<Format> x,
                                                                Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_atan>(x, context);
}

/// The angle in [-pi, pi] of the point (x, y), with the zeros and infinities of C's atan2: the sign of a zero
/// says on which side of the axis it lies. Correctly rounded in every mode for formats of up to 16 bits (all
/// pairs of half, bfloat16 and the 8-bit formats checked).
///
///     mp::atan2(y, x);                          // the ordinate comes first
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> atan2(basic_float<Format> y, basic_float<Format> x,
                                                                 Context&& context = projection{}) noexcept {
    return detail::function_of_two(y, x, context, [](const auto& v, const auto& w, auto&& c) {
        return detail::radians_of_point<Format>(v, w, c);
    });
}

}}  // namespace mp

// asinpi, acospi, atanpi and atan2pi: the inverse functions in half turns.
//
// Among the angles of points with rational slopes, and among those with rational sines, only those of the
// axes, and of slope one, are fractions of a turn with a power of two below the line (I. Niven, "Irrational
// Numbers", 1956; sine 1/2 gives thirds). These are all exact cases. Of others the ratio to pi is
// irrational.

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
    return detail::function_of_two(y, x, context, [](const auto& v, const auto& w, auto&& c) {
        return detail::half_turns_of_point<Format>(v, w, c);
    });
}

}}  // namespace mp
