// SPDX-License-Identifier: MIT
/// \file
/// sin, cos, tan, and sinpi, cospi, tanpi, whose argument counts half turns.
///
/// The argument is reduced to a number of quarter turns and a rest of at most an eighth of a turn. For sinpi
/// and so on that is exact. For radians it takes the bits of 2/pi that matter for the exponent at hand (M.
/// Payne and R. Hanek, "Radian reduction for trigonometric functions", 1983), 192 of them, so that the rest
/// has 64 good bits even if it is as small as 2^-60.
#pragma once

#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/format/math/evaluation.hpp>
#include <mp/numbers/format/math/fast_trigonometric.hpp>
#include <mp/numbers/format/math/two_over_pi.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// sin(r) and cos(r) for |r| <= pi/4, with z = r^2: polynomials through the Chebyshev nodes of [0, 0.6175],
/// whose errors are below 2^-66.
MP_HOST_DEVICE constexpr approximation small_sin(const approximation& r, const approximation& z) {
    return r * one_minus(to_fixed(z),
                         alternating_polynomial<0x1555555555555555, 0x01111111111110ff, 0x000680680680664b,
                                                0x0000171de3a545f7, 0x00000035cc8a8219, 0x0000000058485f5f,
                                                0x00000000006ac5ba>(to_fixed(z)));
}
MP_HOST_DEVICE constexpr approximation small_cos(const approximation& z) {
    return one_minus(to_fixed(z),
                     alternating_polynomial<0x4000000000000000, 0x0555555555555555, 0x002d82d82d82d827,
                                            0x0000d00d00d00cac, 0x0000024fc9f6ecfb, 0x000000047bb634bf,
                                            0x00000000064e4f49, 0x000000000006ac24>(to_fixed(z)));
}

/// An angle as quarter turns, of which only the number modulo 4 is kept, and a rest in radians.
struct reduced_angle {
    unsigned quarters;
    approximation rest;
};

/// An angle in quarter turns with 126 bits of fraction, of which only the last two bits of the integer are
/// kept.
MP_HOST_DEVICE constexpr reduced_angle reduce_quarters(uint128 quarters_and_fraction, bool negative) {
    constexpr approximation half_pi{false, -63, 0xc90fdaa22168c234};
    auto quarters = static_cast<unsigned>(quarters_and_fraction >> 126);
    uint128 fraction = quarters_and_fraction << 2;
    const bool past_middle = (fraction >> 127) != 0;
    if (past_middle) {
        fraction = ~fraction + 1;
        ++quarters;
    }
    approximation rest = approximate(fraction, -128) * half_pi;
    rest.negative = past_middle != negative;
    return {(negative ? 0 - quarters : quarters) & 3, rest};
}

/// Reduces an angle of at least 1/2 in radians, less than 2^2260, or else 2^32800; the significand has at
/// most 32 bits.
///
/// x 2/pi = significand * 2^exponent * 2/pi. Bits of 2/pi with weights above 2^(1 - exponent) contribute
/// multiples of four quarter turns. From there on 192 bits are multiplied by the significand, modulo 2^192;
/// what is cut off is less than 2^(32 - 190).
template <bool Long>
MP_HOST_DEVICE constexpr reduced_angle reduce_radians(const exact_value& x) {
    const int first_bit = x.exponent - 2 + 64;
    const int index = first_bit / 64;
    const int shift = first_bit % 64;
    std::uint64_t window[3]{};
    for (int i = 0; i < 3; ++i) {
        const std::uint64_t high = Long ? long_two_over_pi(index + i) : two_over_pi(index + i);
        const std::uint64_t low = Long ? long_two_over_pi(index + i + 1) : two_over_pi(index + i + 1);
        window[i] = shift == 0 ? high : high << shift | low >> (64 - shift);
    }
    const std::uint64_t low = multiply_high(window[2], x.significand);
    const uint128 middle = static_cast<uint128>(window[1]) * x.significand + low;
    const uint128 product = middle + (static_cast<uint128>(window[0] * x.significand) << 64);
    return reduce_quarters(product, x.negative);
}

/// Reduces an angle in half turns, exactly except for the product with pi/2.
MP_HOST_DEVICE constexpr reduced_angle reduce_half_turns(const exact_value& x) {
    const approximation y = approximate(x);
    if (y.top() < -4) return {0, y * approximate_pi()};
    const int shift = x.exponent + 1 + 126;  // the factor 2 makes quarter turns
    const uint128 quarters = shift >= 128 ? 0 : static_cast<uint128>(x.significand) << shift;
    return reduce_quarters(quarters, x.negative);
}

/// The sine of an angle, or its cosine, which is the sine a quarter turn later.
MP_HOST_DEVICE constexpr approximation sin_of(const reduced_angle& angle, unsigned quarters_later = 0) {
    const unsigned quarter = (angle.quarters + quarters_later) & 3;
    const approximation z = angle.rest * angle.rest;
    const approximation result = quarter % 2 == 0 ? small_sin(angle.rest, z) : small_cos(z);
    return quarter >= 2 ? -result : result;
}

MP_HOST_DEVICE constexpr approximation tan_of(const reduced_angle& angle) {
    const approximation z = angle.rest * angle.rest;
    const approximation sine = small_sin(angle.rest, z);
    const approximation cosine = small_cos(z);
    return angle.quarters % 2 == 0 ? sine / cosine : -(cosine / sine);
}

/// tan(r) for r so small that it is r + r^3/3, which must not become r.
MP_HOST_DEVICE constexpr approximation small_tan(const approximation& r) {
    constexpr approximation third{false, -65, 0xaaaaaaaaaaaaaaaa};
    return r + r * r * r * third;
}

// The sine, cosine and tangent of an algebraic number other than zero are transcendental. That of a fraction
// of a turn is algebraic, and rational only for 0, 1/2 and 1 (I. Niven, "Irrational Numbers", 1956; tangent 0
// and 1), so that among fractions with a power of two below the line those of whole quarter turns, and for
// the tangent eighths, are all exact cases.

enum class trigonometric : unsigned char { sine, cosine, tangent };

/// The sine, cosine or tangent of an angle in radians. Angles below 1/2 are left as they are; Long tells whether others
/// may be 2^2260 or more, as P3109's closed extended reals may.
template <trigonometric Function, bool Long>
MP_HOST_DEVICE constexpr approximation trigonometric_of(const exact_value& x) {
    const approximation y = approximate(x);
    const reduced_angle angle = y.top() < -1 ? reduced_angle{0, y} : reduce_radians<Long>(x);
    if (Function != trigonometric::tangent) return sin_of(angle, Function == trigonometric::cosine ? 1 : 0);
    return angle.quarters == 0 && angle.rest.top() < -16 ? small_tan(angle.rest) : tan_of(angle);
}
template <trigonometric Function, bool Long = true>
using evaluate_trigonometric =
    math_function<trigonometric_of<Function, Long>,
                  Function == trigonometric::cosine ? special::one : special::signed_zero, special::invalid,
                  special::invalid>;
/// Whether a format has angles that only the long 2/pi reduces.
template <class Format>
inline constexpr bool has_long_angles = layout_of<Format>::max_exponent >= 2260;

/// Eighths of a turn modulo one turn, if x half turns are some; else -1.
MP_HOST_DEVICE constexpr int whole_eighths(const exact_value& argument) {
    const exact_value x = without_trailing_zeros(argument);
    if (x.exponent < -2) return -1;
    const auto eighths = static_cast<int>(x.exponent > 0 ? 0 : (x.significand << (x.exponent + 2)) & 7);
    return (x.negative ? -eighths : eighths) & 7;
}

/// The sine, cosine or tangent of an angle in half turns.
template <trigonometric Function>
MP_HOST_DEVICE constexpr function_value half_turns_of(const exact_value& x) {
    const int eighths = whole_eighths(x);
    if (eighths >= 0 && Function == trigonometric::tangent) {
        // For positive x there are +0, +infinity, -0, -infinity at 0, 1/2, 1, 3/2 (IEEE 754-2019, 9.2.1).
        const int of_magnitude = x.negative ? (8 - eighths) % 8 : eighths;
        const bool negative = (of_magnitude >= 4) != x.negative;
        if (eighths % 2 == 0)
            return {eighths % 4 == 0 ? special::signed_zero : special::two_sided_pole, negative};
        return eighths % 4 == 3 ? special::minus_one : special::one;
    }
    if (eighths >= 0 && eighths % 2 == 0) {
        const int quarters = (eighths / 2 + (Function == trigonometric::cosine ? 1 : 0)) % 4;
        if (quarters % 2 != 0) return quarters == 3 ? special::minus_one : special::one;
        return {special::signed_zero, Function == trigonometric::sine && x.negative};
    }
    const reduced_angle angle = reduce_half_turns(x);
    if (Function == trigonometric::tangent) return tan_of(angle);
    return sin_of(angle, Function == trigonometric::cosine ? 1 : 0);
}
template <trigonometric Function>
using evaluate_half_turns =
    math_function<half_turns_of<Function>,
                  Function == trigonometric::cosine ? special::one : special::signed_zero, special::invalid,
                  special::invalid>;

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The sine of an angle in radians, of any size. Correctly rounded in every mode for formats of up to 16 bits
/// (all arguments of half, bfloat16 and the 8-bit formats checked); for wider ones the error before rounding
/// is below 2^-55 of the result.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> sin(basic_float<Format> x,
                                                               Context&& context = projection{}) noexcept {
    return detail::function_of<
        detail::evaluate_trigonometric<detail::trigonometric::sine, detail::has_long_angles<Format>>,
        detail::fast_sine<detail::fast_radians, 0>>(x, context);
}

/// The cosine of an angle in radians. Correctly rounded in every mode for formats of up to 16 bits (all
/// arguments checked, as for sin).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> cos(basic_float<Format> x,
                                                               Context&& context = projection{}) noexcept {
    return detail::function_of<
        detail::evaluate_trigonometric<detail::trigonometric::cosine, detail::has_long_angles<Format>>,
        detail::fast_sine<detail::fast_radians, 1>>(x, context);
}

/// The tangent of an angle in radians. Correctly rounded in every mode for formats of up to 16 bits (all
/// arguments checked, as for sin).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> tan(basic_float<Format> x,
                                                               Context&& context = projection{}) noexcept {
    return detail::function_of<
        detail::evaluate_trigonometric<detail::trigonometric::tangent, detail::has_long_angles<Format>>,
        detail::fast_tangent<detail::fast_radians>>(x, context);
}

/// sin(pi x), exact for whole and half x; zeros have the sign of x. Correctly rounded in every mode for
/// formats of up to 16 bits (all arguments checked, as for sin).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> sinpi(basic_float<Format> x,
                                                                 Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_half_turns<detail::trigonometric::sine>,
                               detail::fast_sine<detail::fast_half_turns, 0>>(x, context);
}

/// cos(pi x), exact for whole and half x; zeros are positive. Correctly rounded in every mode for formats of
/// up to 16 bits (all arguments checked, as for sin).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> cospi(basic_float<Format> x,
                                                                 Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_half_turns<detail::trigonometric::cosine>,
                               detail::fast_sine<detail::fast_half_turns, 1>>(x, context);
}

/// tan(pi x), exact for multiples of 1/4. At 1/2, 3/2, ... it is infinity with alternating sign and raises
/// divide_by_zero; zeros of whole x alternate in sign as well (IEEE 754-2019, 9.2.1). Correctly rounded in
/// every mode for formats of up to 16 bits (all arguments checked, as for sin).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> tanpi(basic_float<Format> x,
                                                                 Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_half_turns<detail::trigonometric::tangent>,
                               detail::fast_tangent<detail::fast_half_turns>>(x, context);
}

/// sin(x) and cos(x) at once.
template <class Format, detail::context Context = const projection&>
MP_HOST_DEVICE constexpr void sincos(basic_float<Format> x, basic_float<Format>* sine,
                                     basic_float<Format>* cosine, Context&& context = projection{}) noexcept {
    *sine = sin(x, context);
    *cosine = cos(x, context);
}

}}  // namespace mp
