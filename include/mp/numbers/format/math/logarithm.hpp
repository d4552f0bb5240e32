// SPDX-License-Identifier: MIT
/// \file
/// log, log2, log10 and log1p.
///
/// x = 2^k m with m between sqrt(1/2) and sqrt(2), and log m = 2 atanh((m - 1)/(m + 1)), where the argument
/// of atanh is at most 3 - sqrt(8) = 0.1716 and loses nothing near m = 1, because m - 1 is exact.
#pragma once

#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/format/math/evaluation.hpp>
#include <mp/numbers/format/math/fast_functions.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// atanh(s) for |s| < 0.1716 by a polynomial in z = s^2, through the Chebyshev nodes of [0, 0.02945]; its
/// error is below 2^-66.
MP_HOST_DEVICE constexpr approximation small_atanh(const approximation& s) {
    const std::uint64_t z = to_fixed(s * s);
    return s * one_plus(z, polynomial<0x2aaaaaaaaaaaaaaa, 0x199999999999983e, 0x1249249249295cd2,
                                      0x0e38e38e325ffc59, 0x0ba2e8be9d1c3d02, 0x09d89bd8deb2954b,
                                      0x0888e95b39ebf0e2, 0x077af88538cee59e, 0x079ad983fb1cde43>(z));
}

/// log x = integer ln 2 + rest.
struct split_logarithm {
    int integer;
    approximation rest;
};

/// x must be positive.
MP_HOST_DEVICE constexpr split_logarithm split_log(const approximation& x) {
    constexpr std::uint64_t root_of_two = 0xb504f333f9de6484;  // rounded down; any number nearby would do
    const bool upper = x.significand > root_of_two;
    const int integer = x.top() + (upper ? 1 : 0);
    constexpr std::uint64_t one = std::uint64_t{1} << 63;
    if (x.significand == one) return {integer, {}};
    // m - 1 and m + 1
    approximation difference =
        upper ? approximate(0 - x.significand, -64) : approximate(x.significand - one, -63);
    difference.negative = upper;
    const approximation sum = upper ? approximation{false, -63, (x.significand >> 1) + one}
                                    : approximation{false, -62, (x.significand >> 1) + one / 2};
    return {integer, small_atanh(difference / sum).scaled(1)};
}

MP_HOST_DEVICE constexpr approximation log_of(const approximation& x) {
    const split_logarithm split = split_log(x);
    if (split.integer == 0) return split.rest;
    return approximate(split.integer) * approximate_ln2() + split.rest;
}

/// log2(x), with a small relative error even near 1.
MP_HOST_DEVICE constexpr approximation log2_of(const approximation& x) {
    const split_logarithm split = split_log(x);
    constexpr approximation log2_e{false, -63, 0xb8aa3b295c17f0bb};
    return approximate(split.integer) + split.rest * log2_e;
}

/// log(1 + x) for x > -1, not zero. For small x it is x - x^2/2, which must not become x; up to 1/4 it is
/// 2 atanh(x / (x + 2)).
MP_HOST_DEVICE constexpr approximation log1p_of(const approximation& x) {
    if (x.top() < -30) return x - (x * x).scaled(-1);
    if (x.top() < -2) return small_atanh(x / (x + approximate_one().scaled(1))).scaled(1);
    return log_of(x + approximate_one());
}

/// A logarithm, which is zero at one: Evaluate of positive values.
template <auto Evaluate>
MP_HOST_DEVICE constexpr function_value logarithm_of(const exact_value& x) {
    if (x.negative) return special::invalid;
    const exact_value result = Evaluate(x);
    if (result.significand == 0) return special::zero;
    return result;
}
template <auto Evaluate>
using logarithm =
    math_function<logarithm_of<Evaluate>, special::minus_pole, special::invalid, special::infinity>;

/// A logarithm of 1 + x: Evaluate of values above -1.
template <auto Evaluate>
MP_HOST_DEVICE constexpr function_value logarithm_of_one_plus(const exact_value& x) {
    const approximation y = approximate(x);
    if (x.negative && y.top() >= 0) return is_one(y) ? special::minus_pole : special::invalid;
    return Evaluate(x);
}
template <auto Evaluate>
using logarithm_one_plus =
    math_function<logarithm_of_one_plus<Evaluate>, special::signed_zero, special::invalid, special::infinity>;

/// The logarithm of an algebraic number other than 1 is transcendental.
MP_HOST_DEVICE constexpr exact_value log_of_value(const exact_value& x) {
    return inexact(log_of(approximate(x)));
}

/// log2(x) is an integer for powers of two; that of any other fraction of integers is irrational.
MP_HOST_DEVICE constexpr exact_value log2_of_value(const exact_value& x) {
    const approximation y = approximate(x);
    const approximation result = log2_of(y);
    const bool power_of_two = y.significand == approximate_one().significand;
    return {result.negative, result.exponent, result.significand, !power_of_two};
}

/// log10(x) is an integer for powers of ten, and irrational otherwise. With at most 32 bits of precision
/// 10^13 is the last power of ten that is a number, since 5^14 has 33 bits.
MP_HOST_DEVICE constexpr exact_value log10_of_value(const exact_value& argument) {
    const exact_value x = without_trailing_zeros(argument);
    if (x.exponent >= 0 && x.exponent <= 13) {
        std::uint64_t five = 1;
        for (int i = 0; i < x.exponent; ++i) five *= 5;
        if (five == x.significand) {
            return {false, 0, static_cast<std::uint64_t>(x.exponent), false};
        }
    }
    constexpr approximation log10_2{false, -65, 0x9a209a84fbcff798};
    constexpr approximation log10_e{false, -65, 0xde5bd8a937287195};
    const split_logarithm split = split_log(approximate(x));
    return inexact(approximate(split.integer) * log10_2 + split.rest * log10_e);
}

MP_HOST_DEVICE constexpr exact_value log1p_of_value(const exact_value& x) {
    return inexact(log1p_of(approximate(x)));
}

using evaluate_log = logarithm<log_of_value>;
using evaluate_log2 = logarithm<log2_of_value>;
using evaluate_log10 = logarithm<log10_of_value>;
using evaluate_log1p = logarithm_one_plus<log1p_of_value>;

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The natural logarithm; minus infinity for zero, NaN for negative numbers. Correctly rounded in every mode
/// for formats of up to 16 bits (all arguments of half, bfloat16 and the 8-bit formats checked); for wider
/// ones the error before rounding is below 2^-55 of the result.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> log(basic_float<Format> x,
                                                               Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_log, detail::fast_natural_log>(x, context);
}

/// The logarithm in base two. Correctly rounded in every mode for formats of up to 16 bits (all arguments
/// checked, as for log).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> log2(basic_float<Format> x,
                                                                Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_log2, detail::fast_binary_log>(x, context);
}

/// The logarithm in base ten. Correctly rounded in every mode for formats of up to 16 bits (all arguments
/// checked, as for log).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> log10(basic_float<Format> x,
                                                                 Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_log10, detail::fast_decimal_log>(x, context);
}

/// log(1 + x), without cancellation for small x; minus infinity for -1. Correctly rounded in every mode for
/// formats of up to 16 bits (all arguments checked, as for log).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> log1p(basic_float<Format> x,
                                                                 Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_log1p, detail::fast_log_1p>(x, context);
}

}}  // namespace mp
