// SPDX-License-Identifier: MIT
/// \file
/// Mathematical functions of narrow numbers by double arithmetic: nearest-even only, on the host, the same
/// bits as the integer path, several times as fast.
///
/// Why it is right. A function here evaluates y with a relative error below 2^-fast_accuracy, far less than
/// the 2^-12 and more of a number that separate the numbers of 11 bits from the midpoints between them. Where
/// y is farther from every midpoint than that error, the exact result lies between the same two midpoints,
/// and rounding y is rounding the result. Nothing needs to be known about exact cases: a result that is a
/// number is far from midpoints, and one that is a midpoint is refused. What is refused (too close to a
/// midpoint, subnormal, or an operand that is not a normal number) is evaluated in integers.
///
/// Why it is right everywhere. The error bounds, stated at each kernel, add up to less than 2^-40; the bound
/// used is 2^-36. All operations are + - * / and sqrt of doubles, far from double's under- and overflow, each
/// with a relative error of at most 2^-52 in any rounding mode of the processor. Contracting products and
/// sums removes some of these errors. No kernel relies on an error being exactly what IEEE 754 says, as
/// two-sum does, and integers come from truncating conversions, which know no mode. Where compilers that were
/// told to reassociate sums would bring cancellation back, an opt_barrier keeps them from it. So the doubles
/// may differ between processors and compilers in their last bits, the rounded results may not. The C
/// library, whose errors nobody bounds, is not called.
#pragma once

#include <mp/format/hardware.hpp>

#include <cstdint>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// The functions below have a relative error of less than 2^-fast_accuracy.
inline constexpr int fast_accuracy = 36;

/// Formats that take this path: up to 11 bits of precision, and results so far inside double's range that
/// squares of them are as well.
template <class Format>
inline constexpr bool has_fast_math =
    fast_path_in<Format, double> && layout_of<Format>::precision <= 11 &&
    layout_of<Format>::max_exponent <= 200 && layout_of<Format>::quantum_exponent >= -200;

/// Whether a code is that of a normal number, of either sign.
template <class Format>
MP_ALWAYS_INLINE bool is_normal_code(storage_of<Format> code) {
    using layout = layout_of<Format>;
    const auto magnitude = static_cast<storage_of<Format>>(code & layout::magnitude_mask);
    const auto from_smallest = static_cast<storage_of<Format>>(magnitude - layout::hidden_bit);
    return from_smallest <= layout::max_finite_code - layout::hidden_bit;
}

/// The value of the code of a normal number.
template <class Format>
MP_ALWAYS_INLINE double double_of_normal(storage_of<Format> code) {
    using layout = layout_of<Format>;
    constexpr int shift = 52 - layout::fraction_bits;
    constexpr std::uint64_t bias_difference = static_cast<std::uint64_t>(1023 - Format::bias) << 52;
    const std::uint64_t magnitude = code & layout::magnitude_mask;
    const std::uint64_t sign = static_cast<std::uint64_t>(code & layout::sign_mask)
                               << (63 - layout::magnitude_bits);
    return bit_cast<double>(((magnitude << shift) + bias_difference) | sign);
}

MP_ALWAYS_INLINE double absolute(double x) {
    return bit_cast<double>(bit_cast<std::uint64_t>(x) & ~(std::uint64_t{1} << 63));
}
/// x with its sign changed if that of `sign` is negative.
MP_ALWAYS_INLINE double with_sign_of(double x, double sign) {
    constexpr std::uint64_t sign_bit = std::uint64_t{1} << 63;
    return bit_cast<double>(bit_cast<std::uint64_t>(x) ^ (bit_cast<std::uint64_t>(sign) & sign_bit));
}

/// One of two doubles, chosen without a branch, which would be mispredicted too often.
MP_ALWAYS_INLINE double select_double(bool condition, double yes, double no) {
    return bit_cast<double>(select(condition, bit_cast<std::uint64_t>(yes), bit_cast<std::uint64_t>(no)));
}

/// A code, or the news that double arithmetic could not tell.
template <class Format>
struct fast_result {
    storage_of<Format> code;
    bool is_known;
};

/// Results that surely overflow or surely round to zero. y has an error of less than 2^-30 of it.
template <class Format>
MP_NEVER_INLINE fast_result<Format> round_far_away(double y) {
    using layout = layout_of<Format>;
    const auto bits = bit_cast<std::uint64_t>(y);
    const bool negative = bits >> 63 != 0;
    const double magnitude = absolute(y);
    constexpr double too_large = power_of_two<double>(layout::max_exponent + 2);
    constexpr double too_small = power_of_two<double>(layout::quantum_exponent - 2);
    // Both comparisons are of numbers: what functions refuse to evaluate is zero.
    if (magnitude > too_large) {
        return {join<Format>(negative, overflow_code<Format>(negative, false, {})), true};
    }
    if (magnitude < too_small && magnitude > 0) return {join<Format>(negative, 0), true};
    return {0, false};
}

/// y, which has an error of less than 2^-Accuracy of it, as the code that its exact value rounds to. Zero
/// means that nothing is known.
///
/// Of the bits of a double, those below the format's last place are compared with the pattern of a midpoint,
/// in units of which 2^(53 - Accuracy) are more than the error. The distance from a midpoint in the next
/// binade, if y is next to a power of two, is more than that in any case.
template <class Format, int Accuracy = fast_accuracy>
MP_ALWAYS_INLINE fast_result<Format> round_unless_near_midpoint(double y) {
    using layout = layout_of<Format>;
    constexpr int shift = 52 - layout::fraction_bits;
    constexpr std::uint64_t bias_difference = static_cast<std::uint64_t>(1023 - Format::bias) << 52;
    constexpr std::uint64_t smallest = (std::uint64_t{layout::hidden_bit} << shift) + bias_difference;
    constexpr std::uint64_t largest = (std::uint64_t{layout::max_finite_code} << shift) + bias_difference;
    constexpr std::uint64_t half = std::uint64_t{1} << (shift - 1);
    constexpr std::uint64_t tolerance = std::uint64_t{1} << (53 - Accuracy);
    constexpr std::uint64_t low_bits = 2 * half - 1;

    const auto bits = bit_cast<std::uint64_t>(y);
    const std::uint64_t magnitude = bits & ~(std::uint64_t{1} << 63);
    const std::uint64_t raised = magnitude - bias_difference + half;  // low bits are zero at a midpoint
    const bool is_far = ((raised + tolerance) & low_bits) > 2 * tolerance;
    const bool in_range = magnitude - smallest <= largest - smallest;
    if (is_far & in_range) {
        const auto sign =
            static_cast<storage_of<Format>>((bits >> (63 - layout::magnitude_bits)) & layout::sign_mask);
        return {static_cast<storage_of<Format>>(static_cast<storage_of<Format>>(raised >> shift) | sign),
                true};
    }
    return round_far_away<Format>(y);
}

/// The integers' result, in a separate function, so that the other path needs no room on the stack.
template <class Format, class Exact, class... Code>
MP_NEVER_INLINE storage_of<Format> exact_apart(Exact exact, Code... codes) {
    return exact(codes..., projection{});
}

/// The result of `Fast` where it is known, else that of the integers. Functions call this in a place of its
/// own, so that what is inlined into loops is small.
template <class Format, class Fast, class Exact, class... Code>
MP_NEVER_INLINE storage_of<Format> fast_or_exact(Exact exact, Code... codes) {
    const fast_result<Format> fast = Fast::template code<Format>(codes...);
    if (fast.is_known) return fast.code;
    return exact_apart<Format>(exact, codes...);
}

/// The nearest-even result of a function by double arithmetic where this is possible, else exact(codes...,
/// context). `Fast` has a function `code`, from the codes of the operands to a fast_result.
template <class Format, class Fast, class Context, class Exact, class... Code>
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr storage_of<Format> nearest_through_double(Context&& context,
                                                                                    Exact exact,
                                                                                    Code... codes) {
#if MP_HARDWARE_FLOAT && !MP_DEVICE_CODE
    if constexpr (has_fast_math<Format> && !keeps_flags<Context>) {
        if (!__builtin_is_constant_evaluated() && context == projection{}) {
            return fast_or_exact<Format, Fast>(exact, codes...);
        }
    }
#endif
    return exact(codes..., context);
}

// The kernels. Coefficients are those of the polynomials through the Chebyshev nodes of the interval.

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

/// What z = 32 log2(result) is limited to: 2^300 is beyond every format here, and its square is a double.
inline constexpr double fast_power_limit = 32 * 300;

/// The difference z - i is exact except for an error of 2^-52 of 1/2 or less, being that of two multiples of
/// z's last place.
MP_ALWAYS_INLINE fast_power fast_power_of(double z) {
    z = z < fast_power_limit ? z : fast_power_limit;
    z = z > -fast_power_limit ? z : -fast_power_limit;
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

/// log x = exponent ln 2 + rest, with an error of rest of 2^-42.5 of it.
struct fast_logarithm {
    double exponent;
    double rest;
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

/// log(1 + r) for |r| <= 0.016; error 2^-43.5 of it.
MP_ALWAYS_INLINE double fast_log_near_one(double r) {
    const double square = r * r;
    const double quotient = (0x1.0000000000151p+0 + r * -0x1.000000000024ep-1) +
                            square * ((0x1.555554fad54d1p-2 + r * -0x1.ffffff619f9c3p-3) +
                                      square * (0x1.99b65e0cfa8efp-3 + r * -0x1.556e8144d94afp-3));
    return r * quotient;
}

/// What the logarithm of a positive normal double is put together from: its table entry, and m with x = m
/// 2^exponent.
struct split_double {
    double exponent;
    double m;
    logarithm_entry entry;
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

/// The logarithm of x > 0, which has at most 11 bits, so that r = m/c - 1 is exact.
///
/// Where c is not one and x is between 0.833 and 1.666, the logarithm is at least 0.0097, and an error of
/// 2^-43.5 of log(1 + r), |r| <= 0.016, is 2^-42.8 of it.
MP_ALWAYS_INLINE fast_logarithm fast_log_of(double x) {
    const split_double split = split_for_log(x);
    const double r = opt_barrier(split.m * split.entry.reciprocal - 1);
    return {split.exponent, split.entry.logarithm + fast_log_near_one(r)};
}

inline constexpr double fast_ln2 = 0x1.62e42fefa39efp-1;
inline constexpr double fast_log2_e = 0x1.71547652b82fep+0;
inline constexpr double fast_log10_e = 0x1.bcb7b1526e50ep-2;

/// log x for x > 0 of at most 11 bits. The sum never cancels more than from 0.69 to 0.18, so that its error
/// is 2^-42.5 of it.
MP_ALWAYS_INLINE double fast_log(double x) {
    const fast_logarithm parts = fast_log_of(x);
    return parts.exponent * fast_ln2 + parts.rest;
}
/// log2 x, likewise.
MP_ALWAYS_INLINE double fast_log2(double x) {
    const fast_logarithm parts = fast_log_of(x);
    return parts.exponent + parts.rest * fast_log2_e;
}
/// log(1 + u) for u > -1. The sum 1 + u and the product m/c have an error of 2^-52 each, at most 2^-44 of a
/// logarithm of more than 2^-7; below, c is one, and r is u itself.
MP_ALWAYS_INLINE double fast_log1p(double u) {
    const split_double split = split_for_log(1 + u);
    const double r =
        select_double(absolute(u) < 0x1p-7, u, opt_barrier(split.m * split.entry.reciprocal - 1));
    return split.exponent * fast_ln2 + (split.entry.logarithm + fast_log_near_one(r));
}

/// A function of normal numbers that is evaluated by Derived::evaluate. That returns zero where it does not
/// know.
template <class Derived>
struct fast_function {
    template <class Format>
    MP_ALWAYS_INLINE static fast_result<Format> code(storage_of<Format> a) {
        if (!is_normal_code<Format>(a)) return {0, false};
        return round_unless_near_midpoint<Format>(Derived::evaluate(double_of_normal<Format>(a)));
    }
};

/// The same for a function of positive numbers alone; the others have NaN for a result.
template <class Derived>
struct fast_positive_function {
    template <class Format>
    MP_ALWAYS_INLINE static fast_result<Format> code(storage_of<Format> a) {
        if (!is_normal_code<Format>(a)) return {0, false};
        const double magnitude = absolute(double_of_normal<Format>(a));
        const fast_result<Format> result = round_unless_near_midpoint<Format>(Derived::evaluate(magnitude));
        return {select(is_negative<Format>(a), pack_nan<Format>(), result.code), result.is_known};
    }
};

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
