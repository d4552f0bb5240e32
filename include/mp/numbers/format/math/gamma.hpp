// SPDX-License-Identifier: MIT
/// \file
/// tgamma and lgamma, by Stirling's series from 16 on, the recurrence below, and the reflection formula for
/// negative arguments (NIST Handbook of Mathematical Functions, 5.11.1, 5.5.1, 5.5.3).
#pragma once

#include <mp/numbers/format/math/exponential.hpp>
#include <mp/numbers/format/math/logarithm.hpp>
#include <mp/numbers/format/math/trigonometric.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// log(gamma(x)) for x >= 16: (x - 1/2) log x - x + log(2 pi)/2 + 1/(12 x) - 1/(360 x^3) + ... The tenth term
/// is below 2^-70.
MP_HOST_DEVICE constexpr approximation stirling(const approximation& x) {
    constexpr approximation half{false, -64, 0x8000000000000000};
    constexpr approximation half_log_two_pi{false, -64, 0xeb3f8e4325f5a534};
    const approximation inverse = approximate_one() / x;
    const std::uint64_t series =
        alternating_polynomial<0x0aaaaaaaaaaaaaaa, 0x005b05b05b05b05b, 0x001a01a01a01a01a, 0x0013813813813813,
                               0x001b951e2b18ff23, 0x003ed561b33278f9, 0x00d20d20d20d20d2, 0x03c850d961ea72fb,
                               0x16fe96381e067ffa>(to_fixed(inverse * inverse));
    const approximation rest = half_log_two_pi + inverse * approximate(series, -63);
    return (x - half) * log_of(x) - x + rest;
}

/// gamma(x) = gamma(x + n) / product, with x + n >= 16.
struct shifted_gamma {
    approximation argument;
    approximation product;
};

/// x must be positive.
MP_HOST_DEVICE constexpr shifted_gamma shift_gamma(const approximation& x) {
    shifted_gamma result{x, approximate_one()};
    while (result.argument.top() < 4) {
        result.product = result.product * result.argument;
        result.argument = result.argument + approximate_one();
    }
    return result;
}

MP_HOST_DEVICE constexpr approximation positive_gamma(const approximation& x) {
    const shifted_gamma shifted = shift_gamma(x);
    return exp_of(stirling(shifted.argument)) / shifted.product;
}

/// log(gamma(x)) with an absolute error of 2^-57, for x > 0.
MP_HOST_DEVICE constexpr approximation positive_log_gamma(const approximation& x) {
    const shifted_gamma shifted = shift_gamma(x);
    return stirling(shifted.argument) - log_of(shifted.product);
}

/// gamma(x) for x that is neither zero nor a negative integer. Near zero it is 1/x - 0.577..., which must not
/// become 1/x.
MP_HOST_DEVICE constexpr approximation gamma_of(const exact_value& argument) {
    const approximation x = approximate(argument);
    if (x.top() < -30) {
        constexpr approximation euler{false, -64, 0x93c467e37db0c7a4};
        return approximate_one() / x - euler;
    }
    if (!x.negative) return positive_gamma(x);
    // gamma(x) gamma(1 - x) = pi / sin(pi x)
    return approximate_pi() / (sin_of(reduce_half_turns(argument)) * positive_gamma(approximate_one() - x));
}

/// log|gamma(x)| for the same x.
MP_HOST_DEVICE constexpr approximation log_gamma_of(const exact_value& argument) {
    const approximation x = approximate(argument);
    if (!x.negative) return positive_log_gamma(x);
    const approximation sine = sin_of(reduce_half_turns(argument)).magnitude();
    return log_of(approximate_pi() / sine) - positive_log_gamma(approximate_one() - x);
}

MP_HOST_DEVICE constexpr bool is_integer(const exact_value& x) {
    return without_trailing_zeros(x).exponent >= 0;
}

/// Gamma of an integer is a factorial, which in 64 bits is exact up to 20!; of larger ones more bits than any
/// format has precede the lowest. Other exact cases are not known, and none occur (it is not proven that
/// there are none).
MP_HOST_DEVICE constexpr function_value tgamma_of_value(const exact_value& x) {
    if (is_integer(x)) {
        if (x.negative) return special::invalid;
        const exact_value shortened = without_trailing_zeros(x);
        if (shortened.exponent <= 4 && (shortened.significand << shortened.exponent) <= 21) {
            const std::uint64_t n = shortened.significand << shortened.exponent;
            std::uint64_t factorial = 1;
            for (std::uint64_t i = 2; i < n; ++i) factorial *= i;
            return exact_value{false, 0, factorial};
        }
    }
    return gamma_of(x);
}
using evaluate_tgamma =
    math_function<tgamma_of_value, special::signed_pole, special::invalid, special::infinity>;

MP_HOST_DEVICE constexpr function_value lgamma_of_value(const exact_value& argument) {
    const exact_value x = without_trailing_zeros(argument);
    if (x.negative && x.exponent >= 0) return special::pole;
    const bool one_or_two = x.significand == 1 && (x.exponent == 0 || x.exponent == 1);
    if (one_or_two) return special::zero;
    return log_gamma_of(x);
}
using evaluate_lgamma = math_function<lgamma_of_value, special::pole, special::infinity, special::infinity>;

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The gamma function; infinite at zero, NaN at negative integers. Correctly rounded in every mode for
/// formats of up to 16 bits (all arguments of half, bfloat16 and the 8-bit formats checked); for wider ones
/// the error before rounding is below 2^-45 of the result.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> tgamma(basic_float<Format> x,
                                                                  Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_tgamma>(x, context);
}

/// The logarithm of the magnitude of the gamma function; infinite at zero and negative integers. Correctly
/// rounded in every mode for formats of up to 16 bits (all arguments checked, as for tgamma); for wider ones
/// the error before rounding is below 2^-50 of the result or below 2^-55, whichever is more, which near the
/// zeros of the function is the latter.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> lgamma(basic_float<Format> x,
                                                                  Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_lgamma>(x, context);
}

}}  // namespace mp
