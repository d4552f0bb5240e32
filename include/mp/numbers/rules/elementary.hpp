// SPDX-License-Identifier: MIT
/// \file
/// Exponentials and logarithms in double for the ops and the scalers, made of rounded_doubles: the same bits
/// everywhere, one at a time or in vectors. The C library, whose last bits differ between systems, is not
/// called.
///
/// Polynomials are those through the Chebyshev nodes of their interval.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>

#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// x, or the nearer end of [-limit, limit]; one of the ends for NaN.
template <class T>
MP_HOST_DEVICE MP_ALWAYS_INLINE T within(T x, double limit) {
    return x.not_above(limit).not_below(-limit);
}

/// c[0] + c[1] x + c[2] x^2 ..., from the inside out.
template <class T>
MP_HOST_DEVICE MP_ALWAYS_INLINE T polynomial_of(T /*x*/, double last) {
    return T(last);
}
template <class T, class... Rest>
MP_HOST_DEVICE MP_ALWAYS_INLINE T polynomial_of(T x, double first, Rest... rest) {
    return polynomial_of(x, rest...) * x + T(first);
}

/// e^r - 1 for |r| <= ln 2 / 2, with an error of 2^-49 of it: 2^-49.2 from the polynomial, and 2^-51 from the
/// last steps.
template <class T>
MP_HOST_DEVICE MP_ALWAYS_INLINE T exponential_minus_one_of_rest(T r) {
    // (e^r - 1) / r, even and odd powers apart, so that they are evaluated at the same time
    const T square = r * r;
    const T even = polynomial_of(square, 0x1.0000000000006p+0, 0x1.5555555550d79p-3, 0x1.11111123c1f47p-7,
                                 0x1.a01994bd214e7p-13, 0x1.72e1150d0c9b6p-19);
    const T odd = polynomial_of(square, 0x1.0000000000001p-1, 0x1.5555555553d63p-5, 0x1.6c16c1788bd90p-10,
                                0x1.a019b90d2ae7ap-16, 0x1.289185613a3d6p-22);
    return r * (even + r * odd);
}

/// e^x with a relative error of 2^-49, for |x| <= 208, between 2^-300 and 2^300: the ends stand for what is
/// beyond, and for NaN.
///
/// x = n ln 2 + r with |r| <= ln 2 / 2 and a rest. n times the first part of ln 2, which has 38 bits, is
/// exact, and so is its difference from x.
template <class T>
MP_HOST_DEVICE MP_ALWAYS_INLINE T exponential(T x) {
    constexpr double log2_e = 0x1.71547652b82fep+0;
    constexpr double ln_2 = 0x1.62e42fefa0000p-1;
    constexpr double ln_2_rest = 0x1.cf79abc9e3b3ap-40;
    // Adding 1.5 2^52 leaves no place for a fraction: the sum is rounded to an integer, which is its low
    // bits.
    constexpr double shifter = 0x1.8p+52;
    x = within(x, 208.0);
    const T shifted = x * T(log2_e) + T(shifter);
    const T whole = shifted - T(shifter);
    const T r = (x - whole * T(ln_2)) - whole * T(ln_2_rest);
    const T power = shifted.power_of_low_bits();
    return power + power * exponential_minus_one_of_rest(r);
}

/// 2^x for |x| <= 300: the ends stand for what is beyond, and for NaN. The exact value rounded except for about
/// one in fifty, which is the double next to it; exact for integers.
template <class T>
MP_HOST_DEVICE MP_ALWAYS_INLINE T binary_exponential(T x) {
    constexpr double ln_2 = 0x1.62e42fefa39efp-1;
    constexpr double ln_2_high = 0x1.62e42fep-1;
    constexpr double ln_2_low = 0x1.f473de6af278fp-30;
    constexpr double shifter = 0x1.8p+52;
    constexpr double splitter = 0x1.8p+27;
    x = within(x, 300.0);
    const T shifted = x + T(shifter);
    // r = fraction * ln 2 in two parts, the first of them the exact product of 25 and 28 bits.
    const T fraction = x - (shifted - T(shifter));
    const T high = (fraction + T(splitter)) - T(splitter);
    const T first = high * T(ln_2_high);
    const T second = high * T(ln_2_low) + (fraction - high) * T(ln_2);
    const T r = first + second;
    // (e^r - 1 - r) / r^2
    const T p = polynomial_of(r, 0x1.0000000000000p-1, 0x1.5555555555557p-3, 0x1.5555555555556p-5,
                              0x1.11111111100dcp-7, 0x1.6c16c16c162d4p-10, 0x1.a01a01abe7fe1p-13,
                              0x1.a01a01a6d889cp-16, 0x1.71de0231960ebp-19, 0x1.27e4db646b17ep-22,
                              0x1.af4de97ca4194p-26, 0x1.1f730349868cep-29);
    // 1 + first without its error (Dekker's sum of a larger and a smaller number), which joins the small
    // terms.
    const T sum = T(1) + first;
    const T error = (T(1) - sum) + first;
    return shifted.power_of_low_bits() * (sum + (error + (second + r * r * p)));
}

/// x = m 2^exponent with m from sqrt(1/2) to sqrt(2), for a positive normal x.
struct balanced_parts {
    double m;
    int exponent;
};
MP_HOST_DEVICE MP_ALWAYS_INLINE balanced_parts balanced_parts_of(double x) {
    constexpr std::uint64_t root_half = 0x3FE6'A09E'667F'3BCD;
    constexpr std::uint64_t fraction = (std::uint64_t{1} << 52) - 1;
    const std::uint64_t above = bit_cast<std::uint64_t>(x) - root_half;
    return {bit_cast<double>((above & fraction) + root_half),
            static_cast<int>(static_cast<std::int64_t>(above) >> 52)};
}

/// log(1 + x) for 1 + x from sqrt(1/2) to sqrt(2): 2 atanh(s) with s = x / (2 + x). Two units in the last place.
MP_HOST_DEVICE inline double log1p_near_zero(double x) {
    using number = rounded_doubles<1>;
    const number f = x;
    const number s = f / (f + 2.0);
    const number square = s * s;
    // (2 atanh(s) - 2 s) / s^3 with an error of 2^-60 of the logarithm
    const number tail = polynomial_of(square, 0x1.5555555555555p-1, 0x1.9999999999a39p-2,
                                      0x1.2492492476a1ap-2, 0x1.c71c7201a55d7p-3, 0x1.745cf8e4bba1bp-3,
                                      0x1.3b1c3c1c81c8fp-3, 0x1.0fbde0f4ad17bp-3, 0x1.0c0aff044a970p-3);
    // 2 s = f - s f, so that only the small terms are rounded twice.
    return (f - s * (f - square * tail)).value();
}

/// log m for m from sqrt(1/2) to sqrt(2); m - 1 is exact.
MP_HOST_DEVICE inline double logarithm_near_one(double m) {
    return log1p_near_zero(double_subtract(m, 1.0));
}

/// log x for a positive, finite, normal x: within two units in the last place.
MP_HOST_DEVICE inline double double_log(double x) {
    using number = rounded_doubles<1>;
    constexpr double ln_2 = 0x1.62e42fefa0000p-1;  // times an exponent exact
    constexpr double ln_2_rest = 0x1.cf79abc9e3b3ap-40;
    const balanced_parts parts = balanced_parts_of(x);
    const double near_one = logarithm_near_one(parts.m);
    if (parts.exponent == 0) return near_one;
    const number n = static_cast<double>(parts.exponent);
    return (n * ln_2 + (n * ln_2_rest + near_one)).value();
}

/// log(1 + x) for a finite x >= 0: within two units in the last place, however small x is.
MP_HOST_DEVICE inline double double_log1p(double x) {
    constexpr double root_two_minus_one = 0x1.a827999fcef32p-2;
    return x < root_two_minus_one ? log1p_near_zero(x) : double_log(double_add(1.0, x));
}

/// log2 x likewise; exact for powers of two.
MP_HOST_DEVICE inline double double_log2(double x) {
    using number = rounded_doubles<1>;
    constexpr double log2_e = 0x1.71547652b82fep+0;
    const balanced_parts parts = balanced_parts_of(x);
    return (number(static_cast<double>(parts.exponent)) + number(logarithm_near_one(parts.m)) * log2_e)
        .value();
}

}}  // namespace mp::detail
