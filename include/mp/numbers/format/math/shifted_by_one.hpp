// SPDX-License-Identifier: MIT
/// \file
/// exp2m1, exp10m1, log2p1, log10p1, logp1 and compoundn: powers less one, and functions of 1 + x.
///
/// Exact cases: 2^x - 1 for integers x; 10^x - 1 for integers that are not negative; log2(1 + x) where 1 + x
/// is a power of two, log10(1 + x) where it is one of ten; (1 + x)^n, which is a fraction with a power of two
/// below the line for positive n, where it has few enough digits to be a number or midpoint. All others are
/// irrational or have more digits.
#pragma once

#include <mp/numbers/format/math/power.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// 2^n - 1 for n other than zero; beyond 64 bits, the first of which are ones, the rest is sticky.
MP_HOST_DEVICE constexpr exact_value power_of_two_minus_one(int n) {
    const bool negative = n < 0;
    const int digits = negative ? -n : n;
    if (digits > 63) return {negative, negative ? -64 : n - 64, ~std::uint64_t{0}, true};
    return {negative, negative ? n : 0, (std::uint64_t{1} << digits) - 1};
}

/// x must not be zero.
MP_HOST_DEVICE constexpr exact_value exp2m1_of(const exact_value& argument) {
    const exact_value x = without_trailing_zeros(argument);
    const approximation y = approximate(x);
    if (x.exponent >= 0 && y.top() < 17) {
        const auto magnitude = static_cast<int>(x.significand << x.exponent);
        return power_of_two_minus_one(x.negative ? -magnitude : magnitude);
    }
    if (y.top() < -1) return inexact(expm1_of(y * approximate_ln2()));
    constexpr long_constant one{0x8000000000000000, 0, -127};
    return inexact(exp2_of(y, one) - approximate_one());
}

/// x must not be zero. 10^n - 1 is odd and has more than 33 bits from n = 10 on; up to 19 it is computed.
MP_HOST_DEVICE constexpr exact_value exp10m1_of(const exact_value& argument) {
    const exact_value x = without_trailing_zeros(argument);
    const approximation y = approximate(x);
    if (!x.negative && x.exponent >= 0 && y.top() < 5 && (x.significand << x.exponent) < 20) {
        std::uint64_t power = 1;
        for (std::uint64_t i = 0; i < x.significand << x.exponent; ++i) power *= 10;
        return {false, 0, power - 1};
    }
    constexpr approximation ln10{false, -62, 0x935d8dddaaa8ac16};
    if (y.top() < -3) return inexact(expm1_of(y * ln10));
    return inexact(exp2_of(y, log2_of_ten()) - approximate_one());
}

/// log2(1 + x) for x > -1 other than zero, with a small relative error.
MP_HOST_DEVICE constexpr approximation log2p1_of(const approximation& x) {
    constexpr approximation log2_e{false, -63, 0xb8aa3b295c17f0bb};
    if (x.top() < -2) return log1p_of(x) * log2_e;
    return log2_of(x + approximate_one());
}

/// 1 + x for x > -1 other than zero, as an odd multiple of a power of two; a zero significand where it has
/// more than 40 bits or so.
MP_HOST_DEVICE constexpr exact_value one_plus_exactly(const exact_value& argument) {
    const exact_value x = without_trailing_zeros(argument);
    constexpr std::uint64_t one = 1;
    if (x.exponent < -40 || x.exponent > 40 || approximate(x).top() > 40) return {false, 0, 0};
    if (x.exponent >= 0) return without_trailing_zeros({false, 0, (x.significand << x.exponent) + one});
    const std::uint64_t unit = one << -x.exponent;
    return {false, x.exponent, x.negative ? unit - x.significand : unit + x.significand};
}

MP_HOST_DEVICE constexpr exact_value log2p1_of_value(const exact_value& x) {
    const exact_value sum = one_plus_exactly(x);
    if (sum.significand == 1) {
        const bool negative = sum.exponent < 0;
        return {negative, 0, static_cast<std::uint64_t>(negative ? -sum.exponent : sum.exponent)};
    }
    return inexact(log2p1_of(approximate(x)));
}

/// 1 + x = 10^n is odd times a power of two, 5^n 2^n, of which n up to 13 has a difference from one that is a
/// number.
MP_HOST_DEVICE constexpr exact_value log10p1_of_value(const exact_value& argument) {
    const exact_value sum = one_plus_exactly(argument);
    if (sum.significand != 0 && sum.exponent > 0 && sum.exponent <= 13) {
        std::uint64_t five = 1;
        for (int i = 0; i < sum.exponent; ++i) five *= 5;
        if (five == sum.significand) return {false, 0, static_cast<std::uint64_t>(sum.exponent)};
    }
    constexpr approximation log10_2{false, -65, 0x9a209a84fbcff798};
    constexpr approximation log10_e{false, -65, 0xde5bd8a937287195};
    const approximation x = approximate(argument);
    if (x.top() < -2) return inexact(log1p_of(x) * log10_e);
    const split_logarithm split = split_log(x + approximate_one());
    return inexact(approximate(split.integer) * log10_2 + split.rest * log10_e);
}

using evaluate_exp2m1 = math_function<exp2m1_of, special::signed_zero, special::minus_one, special::infinity>;
using evaluate_exp10m1 =
    math_function<exp10m1_of, special::signed_zero, special::minus_one, special::infinity>;
using evaluate_log2p1 = logarithm_one_plus<log2p1_of_value>;
using evaluate_log10p1 = logarithm_one_plus<log10p1_of_value>;

/// (1 + x)^n for x > -1, neither zero.
MP_HOST_DEVICE constexpr exact_value compound_of(const exact_value& x, const exact_value& n) {
    const exact_value sum = one_plus_exactly(x);
    if (sum.significand != 0) {
        const exact_value exact = exact_power(sum, n);
        if (exact.significand != 0) return exact;
    } else if (approximate(x).top() > 40) {
        // Next to x^n: beyond it for positive n, below it for negative n.
        const exact_value exact = exact_power(x, n);
        if (exact.significand != 0) {
            const approximation power = approximate(exact);
            return n.negative ? exact_value{false, power.exponent - 1, ~std::uint64_t{0}, true}
                              : inexact(power);
        }
    }
    const approximation logarithm = log2p1_of(approximate(x)) * approximate(n);
    constexpr long_constant one{0x8000000000000000, 0, -127};
    return inexact(logarithm.top() < -12 ? approximate_one() + expm1_of(logarithm * approximate_ln2())
                                         : exp2_of(logarithm, one));
}

template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> compound_bits(storage_of<Format> a, const number_parts& n,
                                                          Context&& context) {
    a = operand<Format>(a, context);
    const category kind = categorize<Format>(a);
    const bool negative = is_negative<Format>(a);
    const bool below = kind == category::infinite && negative;
    if (is_signaling<Format>(a)) return convert_nan<Format, Format>(a, context);
    if (kind == category::finite && negative) {
        const approximation x = approximate(unpack<Format>(a));
        if (x.top() >= 0) {
            if (!is_one(x)) return invalid_operation<Format>(context);
            if (n.kind == category::zero) return round_exact<Format>(false, 1, 0, context);
            return n.negative ? pole<Format>(false, context) : pack_zero<Format>(false, context);
        }
    }
    if (below) return invalid_operation<Format>(context);
    if (n.kind == category::zero || kind == category::zero) return round_exact<Format>(false, 1, 0, context);
    if (kind == category::nan) return convert_nan<Format, Format>(a, context);
    if (kind == category::infinite)
        return n.negative ? pack_zero<Format>(false, context) : pack_infinity<Format>(false, context);
    return round_and_pack<Format>(compound_of(unpack<Format>(a), n.value), context);
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// 2^x - 1, without cancellation for small x. Correctly rounded in every mode for formats of up to 16 bits
/// (all arguments of half, bfloat16 and the 8-bit formats checked); for wider ones the error before rounding
/// is below 2^-55 of the result.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> exp2m1(basic_float<Format> x,
                                                                  Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_exp2m1>(x, context);
}

/// 10^x - 1. Correctly rounded in every mode for formats of up to 16 bits (all arguments checked, as for
/// exp2m1).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> exp10m1(
    basic_float<Format> x, Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_exp10m1>(x, context);
}

/// The logarithm of 1 + x in base two; minus infinity for -1. Correctly rounded in every mode for formats of
/// up to 16 bits (all arguments checked, as for exp2m1).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> log2p1(basic_float<Format> x,
                                                                  Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_log2p1>(x, context);
}

/// The logarithm of 1 + x in base ten. Correctly rounded in every mode for formats of up to 16 bits (all
/// arguments checked, as for exp2m1).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> log10p1(
    basic_float<Format> x, Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_log10p1>(x, context);
}

/// C23's name for log1p().
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> logp1(basic_float<Format> x,
                                                                 Context&& context = projection{}) noexcept {
    return log1p(x, context);
}

/// (1 + x)^n for an integer n and x >= -1, NaN below. Correctly rounded in every mode for formats of up to 16
/// bits (all x of half and bfloat16 with small, large and random n checked).
template <class Format, detail::integer Integer, detail::context Context = const projection&>
    requires(sizeof(Integer) <= 8)
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> compoundn(
    basic_float<Format> x, Integer n, Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(
        detail::compound_bits<Format>(x.bits(), detail::parts_of(n), context));
}

}}  // namespace mp
