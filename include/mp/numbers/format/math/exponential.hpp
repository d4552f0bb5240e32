// SPDX-License-Identifier: MIT
/// \file
/// exp, exp2, exp10 and expm1.
///
/// The logarithm of the result in base two is split into an integer and a fraction f in [0, 1), by a product
/// with a constant of 128 bits, so that the fraction has all of its 64 bits. Then 2^f is a polynomial. Near
/// zero the exponential is 1 + sinh + (cosh - 1) by two short series, which keeps to the right side of 1.
///
/// The coefficients are those of the polynomials through the Chebyshev nodes of the interval, in units of
/// 2^-64 or 2^-63, cut off; their errors are below 2^-63 of the result.
#pragma once

#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/format/math/evaluation.hpp>
#include <mp/numbers/format/math/fast_functions.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

MP_HOST_DEVICE constexpr long_constant log2_of_e() {
    return {0xb8aa3b295c17f0bb, 0xbe87fed0691d3e88, -127};
}
MP_HOST_DEVICE constexpr long_constant log2_of_ten() {
    return {0xd49a784bcd1b8afe, 0x492bf6ff4dafdb4c, -126};
}

/// 2^(integer + fraction 2^-64), by 2^f = 1 + f q(f) on [0, 1); error 2^-68 before rounding.
MP_HOST_DEVICE constexpr approximation exp2_of(int integer, std::uint64_t fraction) {
    const std::uint64_t quotient =
        polynomial<0xb17217f7d1cf79ab, 0x3d7f7bff058b1d3f, 0x0e35846b8250637f, 0x0276556df7497d09,
                   0x005761ff9e2d427c, 0x000a184897aaa791, 0x0000ffe5fe97ce77, 0x0000162c00eaea04,
                   0x000001b527aa4152, 0x0000001e49a967df, 0x00000001ebcc1444, 0x000000001a7c5766,
                   0x000000000214d124>(fraction);
    const std::uint64_t above_one = multiply_high(quotient, fraction);
    return {false, integer - 63, (std::uint64_t{1} << 63) | (above_one >> 1)};
}

/// 2^(x factor). Exponents of formats are below 33000; what is beyond 2^16 is beyond every format.
MP_HOST_DEVICE constexpr approximation exp2_of(const approximation& x, const long_constant& factor) {
    constexpr int far_away = 1 << 18;
    if (x.significand == 0) return approximate_one();
    if (x.top() >= 16) return approximate_one().scaled(x.negative ? -far_away : far_away);
    const uint128 product =
        static_cast<uint128>(x.significand) * factor.high + multiply_high(x.significand, factor.low);
    const int shift = -(x.exponent + factor.exponent + 64);  // product * 2^-shift; at least 126 - 18
    const int to_integer = shift;
    uint128 fraction = 0;
    int integer = 0;
    if (to_integer < 128) {
        integer = static_cast<int>(product >> to_integer);
        fraction = (product << (128 - to_integer)) >> 64;
    } else if (to_integer < 192) {
        fraction = product >> (to_integer - 64);
    }
    auto bits = static_cast<std::uint64_t>(fraction);
    if (x.negative) {
        integer = -integer - 1;
        if (bits == 0) return exp2_of(integer + 1, 0);
        bits = ~bits + 1;
    }
    return exp2_of(integer, bits);
}

/// sinh(x) and cosh(x) - 1 for |x| < 1/2, with z = x^2.
MP_HOST_DEVICE constexpr approximation small_sinh(const approximation& x, const approximation& z) {
    return x * one_plus(to_fixed(z),
                        polynomial<0x1555555555555555, 0x0111111111111203, 0x0006806806803bc3,
                                   0x0000171de3a84a10, 0x00000035cc740eef, 0x000000005899f3d0>(to_fixed(z)));
}
MP_HOST_DEVICE constexpr approximation small_cosh_minus_one(const approximation& z) {
    return z * approximate(
                   polynomial<0x4000000000000000, 0x0555555555555554, 0x002d82d82d82d880, 0x0000d00d00d00541,
                              0x0000024fc9f74797, 0x000000047bb434db, 0x0000000006544285>(to_fixed(z)),
                   -63);
}

/// e^x - 1 with a small relative error everywhere; x is not zero.
MP_HOST_DEVICE constexpr approximation expm1_of(const approximation& x) {
    if (x.top() < -1) {
        const approximation z = x * x;
        return small_sinh(x, z) + small_cosh_minus_one(z);
    }
    return exp2_of(x, log2_of_e()) - approximate_one();
}

/// e^x; x is not zero.
MP_HOST_DEVICE constexpr approximation exp_of(const approximation& x) {
    if (x.top() < -12) return approximate_one() + expm1_of(x);
    return exp2_of(x, log2_of_e());
}

using evaluate_exp = math_function<exp_of, special::one, special::zero, special::infinity>;
using evaluate_expm1 = math_function<expm1_of, special::signed_zero, special::minus_one, special::infinity>;

/// 2^x is rational, and then a power of two, only for integers x: 2^(n/m) is a root of t^m - 2^n.
MP_HOST_DEVICE constexpr exact_value exp2_of_value(const exact_value& argument) {
    const exact_value x = without_trailing_zeros(argument);
    const approximation y = approximate(x);
    if (y.top() >= 16 || y.top() < -12) {
        if (y.top() < 0) return inexact(approximate_one() + expm1_of(y * approximate_ln2()));
        return inexact(exp2_of(y, log2_of_e()));
    }
    // |x| = significand * 2^exponent < 2^16, and the exponent is above -45.
    const uint128 fixed = static_cast<uint128>(x.significand) << (x.exponent + 64);
    auto integer = static_cast<int>(static_cast<std::uint64_t>(fixed >> 64));
    auto fraction = static_cast<std::uint64_t>(fixed);
    if (fraction == 0) return {false, x.negative ? -integer : integer, 1};
    if (x.negative) {
        integer = -integer - 1;
        fraction = ~fraction + 1;
    }
    return inexact(exp2_of(integer, fraction));
}

/// 10^x is rational only for integers x, and a fraction of powers of two only for those that are not
/// negative. From 10^28 on it has more than 64 significant bits, as many as are looked at.
MP_HOST_DEVICE constexpr exact_value exp10_of_value(const exact_value& argument) {
    const exact_value x = without_trailing_zeros(argument);
    const approximation y = approximate(x);
    if (y.top() < -12) {
        constexpr approximation ln10{false, -62, 0x935d8dddaaa8ac16};
        return inexact(approximate_one() + expm1_of(y * ln10));
    }
    if (!x.negative && x.exponent >= 0 && y.top() < 5 && (x.significand << x.exponent) < 28) {
        const auto power = static_cast<int>(x.significand << x.exponent);
        std::uint64_t five = 1;
        for (int i = 0; i < power; ++i) five *= 5;
        return {false, power, five};
    }
    return inexact(exp2_of(y, log2_of_ten()));
}

using evaluate_exp2 = math_function<exp2_of_value, special::one, special::zero, special::infinity>;
using evaluate_exp10 = math_function<exp10_of_value, special::one, special::zero, special::infinity>;

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// e^x. Correctly rounded in every mode for formats of up to 16 bits (all arguments of half, bfloat16 and the
/// 8-bit formats checked); for wider ones the error before rounding is below 2^-55 of the result.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> exp(basic_float<Format> x,
                                                               Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_exp, detail::fast_exp>(x, context);
}

/// 2^x. Correctly rounded in every mode for formats of up to 16 bits (all arguments checked, as for exp).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> exp2(basic_float<Format> x,
                                                                Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_exp2, detail::fast_exp2>(x, context);
}

/// 10^x. Correctly rounded in every mode for formats of up to 16 bits (all arguments checked, as for exp).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> exp10(basic_float<Format> x,
                                                                 Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_exp10, detail::fast_exp10>(x, context);
}

/// e^x - 1, without cancellation for small x. Correctly rounded in every mode for formats of up to 16 bits
/// (all arguments checked, as for exp).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> expm1(basic_float<Format> x,
                                                                 Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_expm1, detail::fast_expm1>(x, context);
}

}}  // namespace mp
