// SPDX-License-Identifier: MIT
/// \file
/// sin, cos, tan, and sinpi, cospi, tanpi, whose argument counts half turns.
///
/// The argument is reduced to a number of quarter turns and a rest of at most an eighth of a turn. For sinpi
/// and so on that is exact. For radians it takes the bits of 2/pi that matter for the exponent at hand (M.
/// Payne and R. Hanek, "Radian reduction for trigonometric functions", 1983), 192 of them, so that the rest
/// has 64 good bits even if it is as small as 2^-60.
#pragma once

#include <mp/format/basic_float.hpp>
#include <mp/format/math/evaluation.hpp>

namespace mp {

namespace detail {

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
    const bool past_middle = fraction >> 127 != 0;
    if (past_middle) {
        fraction = ~fraction + 1;
        ++quarters;
    }
    approximation rest = approximate(fraction, -128) * half_pi;
    rest.negative = past_middle != negative;
    return {(negative ? 0 - quarters : quarters) & 3, rest};
}

// The bits of 2/pi after 64 zeros, in a table where the host finds it without building it up first.
#define MP_BITS_OF_TWO_OVER_PI                                                                              \
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,     \
        0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, \
        0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, \
        0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, \
        0xf0cfbc209af4361d, 0xa9e391615ee61b08, 0x6599855f14a06840, 0x8dffd8804d732731, 0x06061556ca73a8c9, \
        0x60e27bc08c6b47c4, 0x19c367cddce8092a, 0x8359c4768b961ca6, 0xddaf44d15719053e, 0xa5ff07053f7e33e8, \
        0x32c2de4f98327dbb, 0xc33d26ef6b1e5ef8, 0x9f3a1f35caf27f1d, 0x87f121907c7c246a, 0xfa6ed5772d30433b, \
        0x15c614b59d19c3c2, 0xc4ad414d2c5d000c, 0x467d862d71e39ac6, 0x9b0062337cd2b497, 0xa7b4d55537f63ed7, \
        0x1810a3fc764d2a9d
inline constexpr std::uint64_t bits_of_two_over_pi[] = {MP_BITS_OF_TWO_OVER_PI};

/// 64 bits of 2/pi from the one of weight 2^(-64 index) on; there are none before index 1.
MP_HOST_DEVICE constexpr std::uint64_t two_over_pi(int index) {
#if MP_DEVICE_CODE
    constexpr std::uint64_t words[] = {MP_BITS_OF_TWO_OVER_PI};
    return words[index];
#else
    return bits_of_two_over_pi[index];
#endif
}
#undef MP_BITS_OF_TWO_OVER_PI

/// Reduces an angle of at least 1/2 and less than 2^2260 in radians; the significand has at most 32 bits.
///
/// x 2/pi = significand * 2^exponent * 2/pi. Bits of 2/pi with weights above 2^(1 - exponent) contribute
/// multiples of four quarter turns. From there on 192 bits are multiplied by the significand, modulo 2^192;
/// what is cut off is less than 2^(32 - 190).
MP_HOST_DEVICE constexpr reduced_angle reduce_radians(const exact_value& x) {
    const int first_bit = x.exponent - 2 + 64;
    const int index = first_bit / 64;
    const int shift = first_bit % 64;
    std::uint64_t window[3]{};
    for (int i = 0; i < 3; ++i) {
        const std::uint64_t high = two_over_pi(index + i);
        const std::uint64_t low = two_over_pi(index + i + 1);
        window[i] = shift == 0 ? high : high << shift | low >> (64 - shift);
    }
    const std::uint64_t low = multiply_high(window[2], x.significand);
    const uint128 middle = static_cast<uint128>(window[1]) * x.significand + low;
    const uint128 product = middle + (static_cast<uint128>(window[0] * x.significand) << 64);
    return reduce_quarters(product, x.negative);
}

/// Reduces an angle in half turns, exactly but for the product with pi/2.
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

/// Angles below 1/2 are left as they are.
MP_HOST_DEVICE constexpr reduced_angle reduce(const exact_value& x) {
    const approximation y = approximate(x);
    if (y.top() < -1) return {0, y};
    return reduce_radians(x);
}

// The sine, cosine and tangent of an algebraic number other than zero are transcendental. That of a fraction
// of a turn is algebraic, and rational only for 0, 1/2 and 1 (I. Niven, "Irrational Numbers", 1956; tangent 0
// and 1), so that among fractions with a power of two below the line those of whole quarter turns, and for
// the tangent eighths, are all exact cases.

enum class trigonometric : unsigned char { sine, cosine, tangent };

template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> trigonometric_bits(storage_of<Format> a, trigonometric function,
                                                               Context&& context) {
    a = operand<Format>(a, context);
    switch (categorize<Format>(a)) {
        case category::zero:
            return function == trigonometric::cosine ? round_exact<Format>(false, 1, 0, context) : a;
        case category::infinite:
            return invalid_operation<Format>(context);
        case category::nan:
            return convert_nan<Format, Format>(a, context);
        case category::finite:
            break;
    }
    const exact_value x = unpack<Format>(a);
    const reduced_angle angle = reduce(x);
    switch (function) {
        case trigonometric::sine:
            return round_inexact<Format>(sin_of(angle), context);
        case trigonometric::cosine:
            return round_inexact<Format>(sin_of(angle, 1), context);
        case trigonometric::tangent:
            break;
    }
    // x + x^3/3, which must not become x
    if (angle.quarters == 0 && angle.rest.top() < -16) {
        constexpr approximation third{false, -65, 0xaaaaaaaaaaaaaaaa};
        const approximation& r = angle.rest;
        return round_inexact<Format>(r + r * r * r * third, context);
    }
    return round_inexact<Format>(tan_of(angle), context);
}

/// Eighths of a turn modulo one turn, if x half turns are some; else -1.
MP_HOST_DEVICE constexpr int whole_eighths(const exact_value& argument) {
    const exact_value x = without_trailing_zeros(argument);
    if (x.exponent < -2) return -1;
    const auto eighths = static_cast<int>(x.exponent > 0 ? 0 : (x.significand << (x.exponent + 2)) & 7);
    return (x.negative ? -eighths : eighths) & 7;
}

template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> half_turns_bits(storage_of<Format> a, trigonometric function,
                                                            Context&& context) {
    a = operand<Format>(a, context);
    switch (categorize<Format>(a)) {
        case category::zero:
            return function == trigonometric::cosine ? round_exact<Format>(false, 1, 0, context) : a;
        case category::infinite:
            return invalid_operation<Format>(context);
        case category::nan:
            return convert_nan<Format, Format>(a, context);
        case category::finite:
            break;
    }
    const exact_value x = unpack<Format>(a);
    const int eighths = whole_eighths(x);
    if (eighths >= 0 && function == trigonometric::tangent) {
        // For positive x there are +0, +infinity, -0, -infinity at 0, 1/2, 1, 3/2 (IEEE 754-2019, 9.2.1).
        const int of_magnitude = x.negative ? (8 - eighths) % 8 : eighths;
        const bool negative = (of_magnitude >= 4) != x.negative;
        if (eighths % 4 == 0) return pack_zero<Format>(negative, context);
        if (eighths % 4 == 2) return pole<Format>(negative, context);
        return round_exact<Format>(eighths % 4 == 3, 1, 0, context);
    }
    if (eighths >= 0 && eighths % 2 == 0) {
        const int quarters = (eighths / 2 + (function == trigonometric::cosine ? 1 : 0)) % 4;
        if (quarters % 2 != 0) return round_exact<Format>(quarters == 3, 1, 0, context);
        return pack_zero<Format>(function == trigonometric::sine && x.negative, context);
    }
    const reduced_angle angle = reduce_half_turns(x);
    switch (function) {
        case trigonometric::sine:
            return round_inexact<Format>(sin_of(angle), context);
        case trigonometric::cosine:
            return round_inexact<Format>(sin_of(angle, 1), context);
        case trigonometric::tangent:
            break;
    }
    return round_inexact<Format>(tan_of(angle), context);
}

}  // namespace detail

/// The sine of an angle in radians, of any size. Correctly rounded in every mode for formats of up to 16 bits
/// (all arguments of half, bfloat16 and the 8-bit formats checked); for wider ones the error before rounding
/// is below 2^-55 of the result.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> sin(basic_float<Format> x,
                                                               Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(
        detail::trigonometric_bits<Format>(x.bits(), detail::trigonometric::sine, context));
}

/// The cosine of an angle in radians. Correctly rounded in every mode for formats of up to 16 bits (all
/// arguments checked, as for sin).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> cos(basic_float<Format> x,
                                                               Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(
        detail::trigonometric_bits<Format>(x.bits(), detail::trigonometric::cosine, context));
}

/// The tangent of an angle in radians. Correctly rounded in every mode for formats of up to 16 bits (all
/// arguments checked, as for sin).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> tan(basic_float<Format> x,
                                                               Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(
        detail::trigonometric_bits<Format>(x.bits(), detail::trigonometric::tangent, context));
}

/// sin(pi x), exact for whole and half x; zeros have the sign of x. Correctly rounded in every mode for
/// formats of up to 16 bits (all arguments checked, as for sin).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> sinpi(basic_float<Format> x,
                                                                 Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(
        detail::half_turns_bits<Format>(x.bits(), detail::trigonometric::sine, context));
}

/// cos(pi x), exact for whole and half x; zeros are positive. Correctly rounded in every mode for formats of
/// up to 16 bits (all arguments checked, as for sin).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> cospi(basic_float<Format> x,
                                                                 Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(
        detail::half_turns_bits<Format>(x.bits(), detail::trigonometric::cosine, context));
}

/// tan(pi x), exact for multiples of 1/4. At 1/2, 3/2, ... it is infinity with alternating sign and raises
/// divide_by_zero; zeros of whole x alternate in sign as well (IEEE 754-2019, 9.2.1). Correctly rounded in
/// every mode for formats of up to 16 bits (all arguments checked, as for sin).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> tanpi(basic_float<Format> x,
                                                                 Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(
        detail::half_turns_bits<Format>(x.bits(), detail::trigonometric::tangent, context));
}

}  // namespace mp
