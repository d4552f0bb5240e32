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
/// midpoint, or for special operands) is evaluated in integers. Where all results are known to keep the distance,
/// nothing is looked for.
///
/// Why it is right everywhere. The error bounds, stated at each kernel, add up to less than 2^-34.5; the bound
/// used is 2^-34. All operations are + - * / and sqrt of doubles, far from double's under- and overflow, each
/// with a relative error of at most 2^-52 in any rounding mode of the processor. Contracting products and
/// sums removes some of these errors. No kernel relies on an error being exactly what IEEE 754 says, as
/// two-sum does; integers come from truncating conversions, which know no mode, or may be any of two. Where
/// compilers that were told to reassociate sums would bring cancellation back, an opt_barrier keeps them from
/// it. So the doubles may differ between processors and compilers in their last bits, the rounded results may
/// not. The C library, whose errors nobody bounds, is not called.
#pragma once

#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/format/hardware.hpp>
#include <mp/numbers/format/math/evaluation.hpp>

#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The functions below have a relative error of less than 2^-fast_accuracy.
inline constexpr int fast_accuracy = 34;

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
    constexpr std::uint64_t sign_bit = std::uint64_t{1} << 63;
    if constexpr (layout::width == 8 * sizeof(code)) {
        // The sign from an extension of it, whose other copies are masked.
        using integer = std::make_signed_t<storage_of<Format>>;
        const auto extended = static_cast<std::uint64_t>(std::int64_t{static_cast<integer>(code)});
        constexpr std::uint64_t mask = sign_bit | (std::uint64_t{layout::magnitude_mask} << shift);
        return bit_cast<double>((extended << shift & mask) + bias_difference);
    } else {
        const std::uint64_t magnitude = code & layout::magnitude_mask;
        const std::uint64_t sign = static_cast<std::uint64_t>(code & layout::sign_mask)
                                   << (63 - layout::magnitude_bits);
        return bit_cast<double>(((magnitude << shift) + bias_difference) | sign);
    }
}

/// Whether a magnitude code is that of a subnormal number, and its value.
template <class Format>
MP_ALWAYS_INLINE bool is_subnormal_magnitude(storage_of<Format> magnitude) {
    return magnitude != 0 && magnitude < layout_of<Format>::hidden_bit;
}
template <class Format>
MP_ALWAYS_INLINE double double_of_subnormal(storage_of<Format> magnitude) {
    return static_cast<double>(static_cast<int>(magnitude)) *
           power_of_two<double>(layout_of<Format>::quantum_exponent);
}

/// The value of the magnitude code of any number.
template <class Format>
MP_ALWAYS_INLINE double double_of_magnitude(storage_of<Format> magnitude) {
    return magnitude < layout_of<Format>::hidden_bit ? double_of_subnormal<Format>(magnitude)
                                                     : double_of_normal<Format>(magnitude);
}

/// The magnitude code of the largest number that is not above a positive double in the range of the normal ones.
template <class Format>
consteval storage_of<Format> code_below(double x) {
    constexpr std::uint64_t bias_difference = static_cast<std::uint64_t>(1023 - Format::bias) << 52;
    return static_cast<storage_of<Format>>((bit_cast<std::uint64_t>(x) - bias_difference) >>
                                           (52 - layout_of<Format>::fraction_bits));
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

/// What stands for the accuracy of a function none of whose results is so near to a midpoint that it would matter:
/// there is nothing to look for.
inline constexpr int surely_accurate = 0;
/// The accuracy of functions that have been evaluated for all numbers of binary16 and bfloat16, with the outcome that
/// no result is nearer to a midpoint than 2^(1 - Accuracy) of it; math_fast_path.cpp does it again.
template <class Format, int Accuracy = fast_accuracy>
inline constexpr int checked_accuracy =
    is_binary16<Format> || is_bfloat16<Format> ? surely_accurate : Accuracy;

/// y > 0, which has an error of less than 2^-Accuracy of it, as the code that its exact value rounds to. It must
/// not be below the normal numbers, and becomes the code behind the finite ones where it overflows just beyond.
///
/// Of the bits of a double, those below the format's last place are compared with the pattern of a midpoint,
/// in units of which 2^(53 - Accuracy) are more than the error. The distance from a midpoint in the next
/// binade, if y is next to a power of two, is more than that in any case.
template <class Format, int Accuracy>
MP_ALWAYS_INLINE fast_result<Format> round_in_range(double y) {
    using layout = layout_of<Format>;
    constexpr int shift = 52 - layout::fraction_bits;
    constexpr std::uint64_t bias_difference = static_cast<std::uint64_t>(1023 - Format::bias) << 52;
    constexpr std::uint64_t half = std::uint64_t{1} << (shift - 1);
    const std::uint64_t raised =
        bit_cast<std::uint64_t>(y) - bias_difference + half;  // low bits are zero at a midpoint
    const auto code = static_cast<storage_of<Format>>(raised >> shift);
    if constexpr (Accuracy == surely_accurate) {
        return {code, true};
    } else {
        constexpr std::uint64_t tolerance = std::uint64_t{1} << (53 - Accuracy);
        return {code, ((raised + tolerance) & (2 * half - 1)) > 2 * tolerance};
    }
}

/// y, which may have either sign, likewise, if it is in the range of the normal numbers.
template <class Format, int Accuracy = fast_accuracy>
MP_ALWAYS_INLINE fast_result<Format> round_if_normal(double y) {
    using layout = layout_of<Format>;
    constexpr int shift = 52 - layout::fraction_bits;
    constexpr std::uint64_t bias_difference = static_cast<std::uint64_t>(1023 - Format::bias) << 52;
    constexpr std::uint64_t smallest = (std::uint64_t{layout::hidden_bit} << shift) + bias_difference;
    constexpr std::uint64_t largest = (std::uint64_t{layout::max_finite_code} << shift) + bias_difference;
    const auto bits = bit_cast<std::uint64_t>(y);
    const std::uint64_t magnitude = bits & ~(std::uint64_t{1} << 63);
    const fast_result<Format> rounded = round_in_range<Format, Accuracy>(bit_cast<double>(magnitude));
    const bool in_range = magnitude - smallest <= largest - smallest;
    if (!(rounded.is_known & in_range)) [[unlikely]]
        return {0, false};
    const auto sign =
        static_cast<storage_of<Format>>((bits >> (63 - layout::magnitude_bits)) & layout::sign_mask);
    return {static_cast<storage_of<Format>>(rounded.code | sign), true};
}

/// y, which may also be out of range, likewise. Zero means that nothing is known.
template <class Format, int Accuracy = fast_accuracy>
MP_ALWAYS_INLINE fast_result<Format> round_unless_near_midpoint(double y) {
    const fast_result<Format> rounded = round_if_normal<Format, Accuracy>(y);
    if (rounded.is_known) [[likely]]
        return rounded;
    return round_far_away<Format>(y);
}

/// What double arithmetic at first does not know: what `Fast` has a second function `rest` for, or the integers'
/// result. In a separate function, so that the other path needs no room on the stack.
template <class Format, class Fast, class Exact, class... Code>
MP_NEVER_INLINE storage_of<Format> rest_or_exact(Exact exact, Code... codes) {
    if constexpr (requires { Fast::template rest<Format>(codes...); }) {
        const fast_result<Format> rest = Fast::template rest<Format>(codes...);
        if (rest.is_known) return rest.code;
    }
    return exact(codes..., projection{});
}

/// The result of `Fast` where it is known, else that of the integers. Functions call this in a place of its
/// own, so that what is inlined into loops is small.
template <class Format, class Fast, class Exact, class... Code>
MP_NEVER_INLINE storage_of<Format> fast_or_exact(Exact exact, Code... codes) {
    const fast_result<Format> fast = Fast::template code<Format>(codes...);
    if (fast.is_known) [[likely]]
        return fast.code;
    return rest_or_exact<Format, Fast>(exact, codes...);
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

/// A math_function of one number: by double arithmetic where there is `Fast` for it and this is possible.
template <class Function, class Fast = void, class Format, class Context>
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr basic_float<Format> function_of(basic_float<Format> x,
                                                                          Context&& context) {
    if constexpr (std::is_void_v<Fast>) {
        return basic_float<Format>::from_bits(function_bits<Format>(x.bits(), Function{}, context));
    } else {
        return basic_float<Format>::from_bits(nearest_through_double<Format, Fast>(
            context, [](auto a, auto&& c) { return function_bits<Format>(a, Function{}, c); }, x.bits()));
    }
}

/// A function of two numbers that is NaN if either is: evaluate(x, y, context) of their values.
template <class Format, class Evaluate, class Context>
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr basic_float<Format> function_of_two(basic_float<Format> x,
                                                                              basic_float<Format> y,
                                                                              Context&& context,
                                                                              Evaluate evaluate) {
    const auto a = operand<Format>(x.bits(), context);
    const auto b = operand<Format>(y.bits(), context);
    const bool nan = categorize<Format>(a) == category::nan || categorize<Format>(b) == category::nan;
    return basic_float<Format>::from_bits(
        nan ? propagate_nan<Format>(a, b, context)
            : evaluate(parts_of_code<Format>(a), parts_of_code<Format>(b), context));
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

/// The same for a function of positive numbers alone; the others have NaN for a result. All results are normal numbers,
/// or exact. Derived::has_midpoints tells whether one may be a midpoint.
template <class Derived>
struct fast_positive_function {
    template <class Format>
    MP_ALWAYS_INLINE static fast_result<Format> code(storage_of<Format> a) {
        if (!is_normal_code<Format>(a)) [[unlikely]]
            return {0, false};
        const auto magnitude = static_cast<storage_of<Format>>(a & layout_of<Format>::magnitude_mask);
        return of_magnitude<Format>(a, double_of_normal<Format>(magnitude));
    }
    template <class Format>
    MP_ALWAYS_INLINE static fast_result<Format> rest(storage_of<Format> a) {
        const auto magnitude = static_cast<storage_of<Format>>(a & layout_of<Format>::magnitude_mask);
        if (!is_subnormal_magnitude<Format>(magnitude)) return {0, false};
        return of_magnitude<Format>(a, double_of_subnormal<Format>(magnitude));
    }

private:
    template <class Format>
    MP_ALWAYS_INLINE static fast_result<Format> of_magnitude(storage_of<Format> a, double magnitude) {
        constexpr int accuracy = Derived::has_midpoints ? fast_accuracy : checked_accuracy<Format>;
        const fast_result<Format> result = round_if_normal<Format, accuracy>(Derived::evaluate(magnitude));
        // A selection in which the result comes late.
        const auto negative = mask_of<storage_of<Format>>(is_negative<Format>(a));
        const auto kept = static_cast<storage_of<Format>>(~negative | pack_nan<Format>());
        return {static_cast<storage_of<Format>>((result.code | negative) & kept), result.is_known};
    }
};

}}  // namespace mp::detail
