// SPDX-License-Identifier: MIT
/// \file
/// Kernels of powers of two and logarithms of doubles, and from them exponentials, logarithms, hyperbolic functions,
/// powers and roots. An argument x of up to 11 bits is exact, and each comment says what the steps after the kernel add
/// to its error; a product with a constant is 2^-51.
#pragma once

#include <mp/numbers/format/math/fast_double.hpp>

#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

// Coefficients are those of the polynomials through the Chebyshev nodes of the interval.

/// 2^(i/32)
inline constexpr double thirty_second_powers[32] = {
    0x1.0000000000000p+0, 0x1.059b0d3158574p+0, 0x1.0b5586cf9890fp+0, 0x1.11301d0125b51p+0,
    0x1.172b83c7d517bp+0, 0x1.1d4873168b9aap+0, 0x1.2387a6e756238p+0, 0x1.29e9df51fdee1p+0,
    0x1.306fe0a31b715p+0, 0x1.371a7373aa9cbp+0, 0x1.3dea64c123422p+0, 0x1.44e086061892dp+0,
    0x1.4bfdad5362a27p+0, 0x1.5342b569d4f82p+0, 0x1.5ab07dd485429p+0, 0x1.6247eb03a5585p+0,
    0x1.6a09e667f3bcdp+0, 0x1.71f75e8ec5f74p+0, 0x1.7a11473eb0187p+0, 0x1.82589994cce13p+0,
    0x1.8ace5422aa0dbp+0, 0x1.93737b0cdc5e5p+0, 0x1.9c49182a3f090p+0, 0x1.a5503b23e255dp+0,
    0x1.ae89f995ad3adp+0, 0x1.b7f76f2fb5e47p+0, 0x1.c199bdd85529cp+0, 0x1.cb720dcef9069p+0,
    0x1.d5818dcfba487p+0, 0x1.dfc97337b9b5fp+0, 0x1.ea4afa2a490dap+0, 0x1.f50765b6e4540p+0};

/// 2^(z/32) for |z| <= 2^14 as (power + rest) 2^n, in one chain of few operations; error 2^-37.4 of it, and what
/// comes from z.
///
/// The sum with 1.5 2^52 has z rounded to an integer in its last bits, in any direction, so that |f| <= 1. As
/// a multiple of z's last place f is exact except for an error of 2^-52. The product with the quotient
/// (2^(f/32) - 1) / f has an error of 2^-37.5.
struct short_power {
    double power;
    double rest;
    std::uint64_t exponent;  // n in the place of a double's exponent, where it is added at the end

    MP_ALWAYS_INLINE explicit short_power(double z) {
        constexpr double shifter = 0x1.8p52;
        const double shifted = opt_barrier(z + shifter);
        const double f = opt_barrier(z - opt_barrier(shifted - shifter));
        const auto i = bit_cast<std::uint64_t>(shifted);
        power = thirty_second_powers[i & 31];
        exponent = i >> 5 << 52;
        rest = (power * f) * ((0x1.62e42fee4615fp-6 + f * 0x1.ebfbdff78ad41p-13) +
                              (f * f) * (0x1.c6b3488206d06p-20 + f * 0x1.3b2bfa0553142p-27));
    }
    [[nodiscard]] MP_ALWAYS_INLINE double value() const { return scaled(power + rest); }
    /// The sum with 2^e where `wanted`.
    [[nodiscard]] MP_ALWAYS_INLINE double plus_power_of_two(int e, bool wanted) const {
        const std::uint64_t summand = (static_cast<std::uint64_t>(1023 + e) << 52) - exponent;
        return scaled((power + bit_cast<double>(summand & mask_of<std::uint64_t>(wanted))) + rest);
    }

private:
    [[nodiscard]] MP_ALWAYS_INLINE double scaled(double sum) const {
        return bit_cast<double>(bit_cast<std::uint64_t>(sum) + exponent);
    }
};

/// Up to this |z|, 2^(z/32) rounds to a normal number of the format, whatever z itself was rounded to.
template <class Format>
inline constexpr double normal_power_limit =
    32.0 * (layout_of<Format>::max_exponent < -layout_of<Format>::min_exponent
                ? layout_of<Format>::max_exponent
                : -layout_of<Format>::min_exponent);

/// 2^(z/32) rounded; z may be anything but NaN.
///
/// Without branches, which random operands would mispredict. What is limited to the power of two above all finite
/// numbers rounds to the code behind theirs, what is limited to a quarter of the quantum to zero. To a result
/// below the normal numbers the smallest of them is added, so that the last place is the quantum, and taken
/// away from the code. A result whose z is that of a normal number, but which is not, is so close to it that it
/// rounds to it.
template <class Format, int Accuracy>
MP_ALWAYS_INLINE fast_result<Format> round_any_power(double z) {
    using layout = layout_of<Format>;
    using storage = storage_of<Format>;
    constexpr double highest = 32.0 * (layout::max_exponent + 1);
    constexpr double lowest = 32.0 * (layout::quantum_exponent - 2);
    z = opt_barrier(z < highest ? z : highest);
    z = opt_barrier(z > lowest ? z : lowest);
    const bool is_small = z < 32.0 * layout::min_exponent;
    const fast_result<Format> rounded =
        round_in_range<Format, Accuracy>(short_power(z).plus_power_of_two(layout::min_exponent, is_small));
    const auto code = static_cast<storage>(rounded.code - (is_small ? layout::hidden_bit : 0));
    if constexpr (layout::is_ieee) return {code, rounded.is_known};
    constexpr auto overflow = static_cast<storage>(overflow_code<Format>(false, false, {}));
    return {select(code > layout::max_finite_code, overflow, code), rounded.is_known};
}

/// 2^(z/32) as two parts, power * (1 + above_one): power is 2^(i/32) to within 2^-53 of it, 1 + above_one is
/// 2^(f/32) for |f| <= 1/2 + 2^-30, with an error of above_one of 2^-45 of it.
struct fast_power {
    double power;
    double above_one;

    /// 2^(z/32); error 2^-48 of it, and what comes from z.
    [[nodiscard]] MP_ALWAYS_INLINE double value() const { return power + power * above_one; }
    /// 2^(z/32) - 1; error 2^-44 of it, and what comes from z. power is one, or differs from one by 0.021 or
    /// more, which is twice as much as power * above_one: so the sum is at least half of its larger part.
    [[nodiscard]] MP_ALWAYS_INLINE double value_minus_one() const {
        return opt_barrier(power - 1) + power * above_one;
    }
};

/// What z = 32 log2(result) is limited to: 2^300 is beyond every format here, and its square is a double.
MP_ALWAYS_INLINE double limited_power(double z) {
    constexpr double limit = 32 * 300;
    z = z < limit ? z : limit;
    return z > -limit ? z : -limit;
}

/// The difference z - i is exact except for an error of 2^-52 of 1/2 or less, being that of two multiples of
/// z's last place.
MP_ALWAYS_INLINE fast_power fast_power_of(double z) {
    z = limited_power(z);
    constexpr int offset = 1 << 14;  // makes positive what is cut off; a multiple of 32
    const int shifted = static_cast<int>(z + (offset + 0.5));
    const int i = shifted - offset;
    const double f = opt_barrier(z - i);
    const double square = f * f;
    // (2^(f/32) - 1) / f with an error of 2^-51.6, that is 2^-46 of it
    const double quotient =
        (0x1.62e42fefa39efp-6 + f * 0x1.ebfbdff812e99p-13) +
        square * ((0x1.c6b08d703ff8fp-20 + f * 0x1.3b2b1c5394df0p-27) + square * 0x1.5d884ec09a592p-35);
    const auto exponent = static_cast<std::uint64_t>(static_cast<std::int64_t>(i >> 5)) << 52;
    const double power = bit_cast<double>(bit_cast<std::uint64_t>(thirty_second_powers[i & 31]) + exponent);
    return {power, f * quotient};
}

inline constexpr double thirty_two_log2_e = 0x1.71547652b82fep+5;

/// log x = exponent ln 2 + most + square * quotient
struct fast_logarithm {
    double exponent;
    double most;
    double square;
    double quotient;
};

/// 1/c to nine bits and log c, for c near the middle of each of 32 intervals of equal width in the bits of a
/// double from 0.833 to 1.666. One of them is [1 - 0.0108, 1 + 0.0098] with c = 1.
struct logarithm_entry {
    double reciprocal;
    double logarithm;
};
inline constexpr logarithm_entry logarithm_entries[32] = {{0x1.3080p+0, -0x1.6350a28aaa758p-3},
                                                          {0x1.2b00p+0, -0x1.3dfc2b0ecc62ap-3},
                                                          {0x1.2580p+0, -0x1.17f6458fca611p-3},
                                                          {0x1.2080p+0, -0x1.e98b549671467p-4},
                                                          {0x1.1b80p+0, -0x1.a1ef1d8061cd4p-4},
                                                          {0x1.1680p+0, -0x1.590cafdf01c28p-4},
                                                          {0x1.1200p+0, -0x1.16536eea37ae1p-4},
                                                          {0x1.0d80p+0, -0x1.a4fe9ffa3d235p-5},
                                                          {0x1.0900p+0, -0x1.1b0d98923d980p-5},
                                                          {0x1.0500p+0, -0x1.3cea44346a575p-6},
                                                          {0x1.0000p+0, 0x0.0p+0},
                                                          {0x1.f300p-1, 0x1.a55f548c5c43fp-6},
                                                          {0x1.e500p-1, 0x1.bbcebfc68f420p-5},
                                                          {0x1.d700p-1, 0x1.55e10050e0384p-4},
                                                          {0x1.c900p-1, 0x1.d179788219364p-4},
                                                          {0x1.bd00p-1, 0x1.1f3b925f25d41p-3},
                                                          {0x1.b100p-1, 0x1.5737cc9018cddp-3},
                                                          {0x1.a600p-1, 0x1.8beafeb38fe8cp-3},
                                                          {0x1.9c00p-1, 0x1.bd087383bd8adp-3},
                                                          {0x1.9100p-1, 0x1.f474b134df229p-3},
                                                          {0x1.8800p-1, 0x1.1178e8227e47cp-2},
                                                          {0x1.7f00p-1, 0x1.2941afb186b7cp-2},
                                                          {0x1.7600p-1, 0x1.419b423d5e8c7p-2},
                                                          {0x1.6e00p-1, 0x1.57bf753c8d1fbp-2},
                                                          {0x1.6600p-1, 0x1.6e60ee6af1972p-2},
                                                          {0x1.5e00p-1, 0x1.85855776dcbfbp-2},
                                                          {0x1.5700p-1, 0x1.9a355c33bd6bap-2},
                                                          {0x1.5000p-1, 0x1.af5295248cdd0p-2},
                                                          {0x1.4900p-1, 0x1.c4e19b84723c2p-2},
                                                          {0x1.4200p-1, 0x1.dae75484c9616p-2},
                                                          {0x1.3c00p-1, 0x1.ee2a156b413e5p-2},
                                                          {0x1.3600p-1, 0x1.00e5ae5b207abp-1}};

/// (log(1 + r) - r) / r^2 for |r| <= 0.0161, given z = r^2. Times r^2 its error is 2^-41.3, and 2^-35.9 of
/// log(1 + r) where |r| <= 0.0109.
MP_ALWAYS_INLINE double fast_log_quotient(double r, double z) {
    return (-0x1.ffffffe7f2786p-2 + r * 0x1.55555540b769ap-2) +
           z * (-0x1.000b53b541d99p-2 + r * 0x1.99ad048f33c3dp-3);
}

/// What the logarithm of a positive normal double is put together from: its table entry, and m with x = m
/// 2^exponent.
struct split_double {
    double exponent;
    double m;
    const logarithm_entry& entry;
};
MP_ALWAYS_INLINE split_double split_for_log(double x) {
    constexpr std::uint64_t lowest = 0x3feaa80000000000;
    const auto bits = bit_cast<std::uint64_t>(x);
    const std::uint64_t from_lowest = bits - lowest;
    const auto exponent = static_cast<int>(static_cast<std::int64_t>(from_lowest) >> 52);
    return {static_cast<double>(exponent),
            bit_cast<double>(bits - (from_lowest & (std::uint64_t{0xfff} << 52))),
            logarithm_entries[(from_lowest >> 47) & 31]};
}

/// The logarithm of x > 0, which has at most 11 bits, so that r = m/c - 1 is exact. The quotient is what comes late.
///
/// Where c is not one and x is between 0.833 and 1.666, the logarithm is at least 0.0097, and an error of
/// 2^-41.3 is 2^-34.6 of it.
MP_ALWAYS_INLINE fast_logarithm fast_log_of(double x) {
    const split_double split = split_for_log(x);
    const double r = opt_barrier(split.m * split.entry.reciprocal - 1);
    return {split.exponent, split.entry.logarithm + r, r * r, fast_log_quotient(r, r * r)};
}

inline constexpr double fast_ln2 = 0x1.62e42fefa39efp-1;
inline constexpr double fast_log2_e = 0x1.71547652b82fep+0;
inline constexpr double fast_log10_e = 0x1.bcb7b1526e50ep-2;

/// log x for x > 0 of at most 11 bits. The sum never cancels more than from 0.69 to 0.18.
MP_ALWAYS_INLINE double fast_log(double x) {
    const fast_logarithm parts = fast_log_of(x);
    return (parts.exponent * fast_ln2 + parts.most) + parts.square * parts.quotient;
}
/// log2 x, likewise.
MP_ALWAYS_INLINE double fast_log2(double x) {
    const fast_logarithm parts = fast_log_of(x);
    return (parts.exponent + parts.most * fast_log2_e) + (parts.square * fast_log2_e) * parts.quotient;
}
/// log(1 + u) for u > -1. The sum 1 + u and the product m/c have an error of 2^-52 each, at most 2^-44 of a
/// logarithm of more than 2^-7; below, c is one, and r is u itself.
MP_ALWAYS_INLINE double fast_log1p(double u) {
    const split_double split = split_for_log(1 + u);
    const double r =
        select_double(absolute(u) < 0x1p-7, u, opt_barrier(split.m * split.entry.reciprocal - 1));
    return (split.exponent * fast_ln2 + (split.entry.logarithm + r)) + (r * r) * fast_log_quotient(r, r * r);
}

/// 2^(z/32) with z = x times Derived::factor. Derived::has_midpoints tells whether a result may be one.
template <class Derived>
struct fast_exponential {
    template <class Format>
    MP_ALWAYS_INLINE static fast_result<Format> code(storage_of<Format> a) {
        using layout = layout_of<Format>;
        constexpr double largest = normal_power_limit<Format> / Derived::factor;
        // Not so in formats without numbers on both sides of one.
        if constexpr (largest >= power_of_two<double>(layout::min_exponent)) {
            constexpr auto limit = code_below<Format>(largest);
            constexpr auto least = tiny_is_zero<Format> ? storage_of<Format>{0} : layout::hidden_bit;
            const auto magnitude = static_cast<storage_of<Format>>(a & layout::magnitude_mask);
            if (static_cast<storage_of<Format>>(magnitude - least) <= limit - least) [[likely]] {
                const double z = double_of_normal<Format>(a) * Derived::factor;
                return round_in_range<Format, accuracy<Format>>(short_power(z).value());
            }
        }
        return {0, false};
    }
    template <class Format>
    MP_ALWAYS_INLINE static fast_result<Format> rest(storage_of<Format> a) {
        using layout = layout_of<Format>;
        const auto magnitude = static_cast<storage_of<Format>>(a & layout::magnitude_mask);
        // Infinity is read as the next power of two.
        const bool is_known =
            tiny_is_zero<Format> ? magnitude <= layout::infinity_code : is_normal_code<Format>(a);
        if (!is_known) return {0, false};
        return round_any_power<Format, accuracy<Format>>(double_of_normal<Format>(a) * Derived::factor);
    }

private:
    /// In IEEE's formats of enough range, zero and subnormal numbers are read as some number so small that the result
    /// is one.
    template <class Format>
    static constexpr bool tiny_is_zero = layout_of<Format>::is_ieee && layout_of<Format>::max_exponent > 8 &&
                                         layout_of<Format>::min_exponent <=
                                             -(layout_of<Format>::precision + 3);
    template <class Format>
    static constexpr int accuracy = Derived::has_midpoints ? fast_accuracy : checked_accuracy<Format>;
};
/// Error of z at most 2^-51 of |z| < 2^13.3, times ln2/32: 2^-43.2. The same for expm1.
struct fast_exp : fast_exponential<fast_exp> {
    static constexpr double factor = thirty_two_log2_e;
    static constexpr bool has_midpoints = false;
};
struct fast_exp2 : fast_exponential<fast_exp2> {
    static constexpr double factor = 32;
    static constexpr bool has_midpoints = true;  // such as 2^-25 of binary16
};
struct fast_exp10 : fast_exponential<fast_exp10> {
    static constexpr double factor = 0x1.a934f0979a371p+6;
    static constexpr bool has_midpoints = false;
};
/// For small z the relative error of z is that of the result, for large z it is as for exp.
MP_ALWAYS_INLINE double fast_expm1_of(double x) {
    return fast_power_of(x * thirty_two_log2_e).value_minus_one();
}
struct fast_expm1 : fast_function<fast_expm1> {
    MP_ALWAYS_INLINE static double evaluate(double x) { return fast_expm1_of(x); }
};

struct fast_natural_log : fast_positive_function<fast_natural_log> {
    static constexpr bool has_midpoints = false;
    MP_ALWAYS_INLINE static double evaluate(double x) { return fast_log(x); }
};
struct fast_binary_log : fast_positive_function<fast_binary_log> {
    static constexpr bool has_midpoints = false;
    MP_ALWAYS_INLINE static double evaluate(double x) { return fast_log2(x); }
};
struct fast_decimal_log : fast_positive_function<fast_decimal_log> {
    static constexpr bool has_midpoints = false;
    MP_ALWAYS_INLINE static double evaluate(double x) { return fast_log(x) * fast_log10_e; }
};
struct fast_log_1p : fast_function<fast_log_1p> {
    MP_ALWAYS_INLINE static double evaluate(double x) { return x > -1 ? fast_log1p(x) : 0; }
};

// With E = e^|x| - 1, all terms are positive and add up without cancellation; no more than four operations
// and the error of E twice, 2^-42.

/// (e^x - e^-x) / 2 = (E + E / (E + 1)) / 2
struct fast_sinh : fast_function<fast_sinh> {
    MP_ALWAYS_INLINE static double evaluate(double x) {
        const double above_one = fast_expm1_of(absolute(x));
        return with_sign_of(0.5 * (above_one + above_one / (above_one + 1)), x);
    }
};
struct fast_cosh : fast_function<fast_cosh> {
    MP_ALWAYS_INLINE static double evaluate(double x) {
        const double power = short_power(limited_power(x * thirty_two_log2_e)).value();
        return 0.5 * (power + 1 / power);
    }
};
/// (e^2x - 1) / (e^2x + 1)
struct fast_tanh : fast_function<fast_tanh> {
    MP_ALWAYS_INLINE static double evaluate(double x) {
        const double above_one = fast_expm1_of(2 * absolute(x));
        return with_sign_of(above_one / (above_one + 2), x);
    }
};

// Inverse hyperbolic functions are log(1 + u) for a u that is a sum of positive terms, of a relative error
// below 2^-49, to which that of the logarithm comes.

struct fast_asinh : fast_function<fast_asinh> {
    MP_ALWAYS_INLINE static double evaluate(double x) {
        const double magnitude = absolute(x);
        const double square = x * x;
        const double root = double_sqrt(square + 1);
        return with_sign_of(fast_log1p(magnitude + square / (root + 1)), x);
    }
};
struct fast_acosh : fast_function<fast_acosh> {
    MP_ALWAYS_INLINE static double evaluate(double x) {
        if (!(x > 1)) return 0;
        const double above_one = x - 1;
        return fast_log1p(above_one + double_sqrt(above_one * (x + 1)));
    }
};
struct fast_atanh : fast_function<fast_atanh> {
    MP_ALWAYS_INLINE static double evaluate(double x) {
        const double magnitude = absolute(x);
        if (!(magnitude < 1)) return 0;
        return with_sign_of(0.5 * fast_log1p(2 * magnitude / (1 - magnitude)), x);
    }
};

struct fast_rsqrt : fast_positive_function<fast_rsqrt> {
    static constexpr bool has_midpoints = false;
    MP_ALWAYS_INLINE static double evaluate(double x) { return 1 / double_sqrt(x); }
};
/// 2^(log2(x) / 3). log2(x) has an error of 2^-40.6 or less; times 32/3 and ln2/32 that is 2^-42.7 of the result.
struct fast_cbrt : fast_function<fast_cbrt> {
    MP_ALWAYS_INLINE static double evaluate(double x) {
        return with_sign_of(short_power(fast_log2(absolute(x)) * (32.0 / 3)).value(), x);
    }
};

/// |x|^y by 2^(y log2 |x|), with the sign of an odd power. |y log2 x| < 2^8.3 where the result is a number, and has a
/// relative error below 2^-34.5, times ln2: 2^-26.7 of the result.
struct fast_pow {
    static constexpr int accuracy = 26;

    template <class Format>
    MP_ALWAYS_INLINE static fast_result<Format> code(storage_of<Format> a, storage_of<Format> b) {
        using layout = layout_of<Format>;
        const auto from_smallest = static_cast<storage_of<Format>>(a - layout::hidden_bit);
        const bool is_positive_normal = from_smallest <= layout::max_finite_code - layout::hidden_bit;
        if (!is_positive_normal || !is_normal_code<Format>(b)) [[unlikely]]
            return {0, false};
        const double z = scaled_logarithm(double_of_normal<Format>(a), double_of_normal<Format>(b));
        if (absolute(z) > normal_power_limit<Format>) [[unlikely]]
            return round_any_power<Format, accuracy>(z);
        return round_in_range<Format, accuracy>(short_power(z).value());
    }
    template <class Format>
    MP_ALWAYS_INLINE static fast_result<Format> rest(storage_of<Format> a, storage_of<Format> b) {
        using layout = layout_of<Format>;
        const auto x = static_cast<storage_of<Format>>(a & layout::magnitude_mask);
        const auto y = static_cast<storage_of<Format>>(b & layout::magnitude_mask);
        if (!is_number_but_zero<Format>(x) || !is_number_but_zero<Format>(y)) return {0, false};
        bool negative = false;
        if (is_negative<Format>(a)) {
            if (Format::bias < 1) return {0, false};
            if (has_fraction<Format>(y)) return {pack_nan<Format>(), true};
            negative = is_odd<Format>(y);
        }
        const double exponent = double_of_magnitude<Format>(y);
        const double z =
            scaled_logarithm(double_of_magnitude<Format>(x), is_negative<Format>(b) ? -exponent : exponent);
        const fast_result<Format> power = round_any_power<Format, accuracy>(z);
        return {negative ? join<Format>(true, power.code) : power.code, power.is_known};
    }

private:
    /// 32 y log2(x)
    MP_ALWAYS_INLINE static double scaled_logarithm(double x, double y) {
        const fast_logarithm parts = fast_log_of(x);
        const double scaled = y * 32;
        return scaled * (parts.exponent + parts.most * fast_log2_e) +
               ((scaled * fast_log2_e) * parts.square) * parts.quotient;
    }
    template <class Format>
    MP_ALWAYS_INLINE static bool is_number_but_zero(storage_of<Format> magnitude) {
        return static_cast<storage_of<Format>>(magnitude - 1) < layout_of<Format>::max_finite_code;
    }
    // Whole numbers are normal where the exponent has a bias.
    template <class Format>
    MP_ALWAYS_INLINE static bool has_fraction(storage_of<Format> magnitude) {
        using layout = layout_of<Format>;
        const int exponent = static_cast<int>(magnitude >> layout::fraction_bits) - Format::bias;
        if (exponent < 0) return true;
        return exponent < layout::fraction_bits && (magnitude & (layout::fraction_mask >> exponent)) != 0;
    }
    template <class Format>
    MP_ALWAYS_INLINE static bool is_odd(storage_of<Format> whole_number) {
        using layout = layout_of<Format>;
        const int exponent = static_cast<int>(whole_number >> layout::fraction_bits) - Format::bias;
        const auto significand = (whole_number & layout::fraction_mask) | layout::hidden_bit;
        return exponent <= layout::fraction_bits &&
               ((significand >> (layout::fraction_bits - exponent)) & 1) != 0;
    }
};

/// Three operations and a root, and squares that are exact.
struct fast_hypot {
    template <class Format>
    MP_ALWAYS_INLINE static fast_result<Format> code(storage_of<Format> a, storage_of<Format> b) {
        if (!is_normal_code<Format>(a) || !is_normal_code<Format>(b)) return {0, false};
        const double x = double_of_normal<Format>(a);
        const double y = double_of_normal<Format>(b);
        return round_unless_near_midpoint<Format>(double_sqrt(x * x + y * y));
    }
};

}}  // namespace mp::detail
