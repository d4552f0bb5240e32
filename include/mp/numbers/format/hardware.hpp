// SPDX-License-Identifier: MIT
/// \file
/// The same operations as the integer core by the processor's float and double units: nearest-even, overflow
/// as saturation::none, same bits (NaN payloads of arithmetic aside). Each function says why it is right.
///
/// They ask nothing of the environment. The caller may have set any rounding direction (fesetround), flush
/// subnormals (a library linked with -ffast-math switches this on for the whole program), and compile with
/// any floating-point options. What makes them independent of the direction is one observation: an operation
/// of float or double, in any rounding direction, never passes a representable number of its type. The
/// midpoints between the numbers of a narrow format are such numbers. So the narrow rounding of the
/// intermediate result is that of the exact one, unless the intermediate result is a midpoint and inexact;
/// and that is what the proofs below exclude or the code looks for. The narrow rounding itself is done in
/// integers, with truncation where float's unit helps, or by F16C's instruction, which carries its direction.
/// Signs of zero sums are the only other trace of the direction.
#pragma once

#include <mp/base/opt_barrier.hpp>
#include <mp/numbers/format/binary_conversion.hpp>
#include <mp/numbers/format/exact_arithmetic.hpp>
#include <mp/numbers/format/f16c.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/format/named_formats.hpp>
#if MP_DEVICE_CODE
#include <mp/numbers/format/device_conversions.hpp>
#endif

#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The float square root of a number of 11 bits, ready to be rounded to 11 bits in every direction that it
/// was rounded in itself. The exact root is never a midpoint M (an integer of 12 bits), but upward float may
/// round one below M to it. So one unit in the last place goes off the low 16 bits; zero, infinity and
/// numbers of 11 bits have none there or stay the nearest one. A root above M stays above: its square X has
/// 11 bits, odd squares are 1 modulo 8, so X - M^2 >= 7 and the root is at least 3 units above M.
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr float lowered_root(float root) noexcept {
    const auto bits = bit_cast<std::uint32_t>(root);
    return bit_cast<float>(bits - static_cast<std::uint32_t>((bits & 0xFFFF) != 0));
}

/// The value of a code as a float, rounded to nearest even where the format has more to say than a float.
template <class Format>
MP_HOST_DEVICE constexpr float to_float(storage_of<Format> bits) noexcept {
#if MP_DEVICE_CODE
    if constexpr (widens_by_instruction<Format>) {
        if (!__builtin_is_constant_evaluated()) return device_widen<Format>(bits);
    }
#elif MP_HARDWARE_F16C
    if constexpr (is_binary16<Format>) {
        if (!__builtin_is_constant_evaluated()) return f16c_widen(bits);
    }
#endif
    if constexpr (fast_path_in<Format, float>) {
        return widen_one<float, Format>(bits);
    } else {
        return bit_cast<float>(convert_bits<formats::binary32, Format>(bits, {}));
    }
}

/// The value of a code as a double, without passing through a subnormal float that the environment may flush.
template <class Format>
MP_HOST_DEVICE constexpr double to_double(storage_of<Format> bits) noexcept {
    if constexpr (!fast_path_in<Format, double>) {
        return bit_cast<double>(convert_bits<formats::binary64, Format>(bits, {}));
    } else if constexpr (fast_path_in<Format, float> && Format::exponent_bits < 8) {
#if MP_DEVICE_CODE
        // What the device's conversion makes of a NaN is not written down.
        if (categorize<Format>(bits) == category::nan) {
            return bit_cast<double>(convert_nan<formats::binary64, Format>(bits));
        }
#endif
        return static_cast<double>(to_float<Format>(bits));
    } else {
        return widen_one<double, Format>(bits);
    }
}

/// A float rounded to nearest even.
template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> from_float(float x) noexcept {
#if MP_DEVICE_CODE
    if constexpr (narrows_by_instruction<Format>) {
        if (!__builtin_is_constant_evaluated()) return device_narrow<Format>(x);
    }
#elif MP_HARDWARE_F16C
    if constexpr (is_binary16<Format>) {
        if (!__builtin_is_constant_evaluated()) return f16c_narrow(x);
    }
#endif
    if constexpr (fast_path_in<Format, float>) {
        return narrow_nearest_even<Format>(x);
    } else {
        return convert_bits<Format, formats::binary32>(bit_cast<std::uint32_t>(x), {});
    }
}

/// Formats for which + - * / and sqrt in float, rounded again to the format, give the correctly rounded
/// result in whatever direction float rounds.
///
/// By what is said above, a float result s can only mislead where it is a midpoint of the format, with p bits
/// of precision and 2 p + 2 <= 24 (compare Figueroa, "When is double rounding innocuous?", 1995), while the
/// exact result is another number within one float unit of it.
/// - Products have 2 p bits and are exact.
/// - Sums are inexact only if the smaller summand has bits below the unit of s. For |a| in [2^e, 2^(e+1)) it
///   is then less than 2^(e+p-24), while the midpoints nearest to a are at least 2^(e-p-1) away, which is not
///   less; and s does not step over the numbers a +- 2^(e+p-24).
/// - A quotient of integers A / B of p bits differs from a midpoint M 2^k, M < 2^(p+1), by a multiple of
///   2^j / B: relative to the midpoint at least 1 / (B M) > 2^(-2p-1) >= 2^-23, which is more than float's
///   unit.
/// - A root is never a midpoint M, whose square has too many bits. |X - M^2| >= 1 keeps it 1/(2 M + 1) away,
///   M in [2^p, 2^(p+1)), which is more than float's unit of 2^(p-23) while p <= 10; for p = 11 see
///   lowered_root.
///
/// What remains is underflow. An exponent field of up to 7 bits keeps every result normal in float: with |x|
/// >= 2^quantum, products are at least 2^(2 quantum), quotients 2^(quantum - max_exponent - 1), and both stay
/// above 2^-126 here. For subnormal results the midpoints are a subset of those above.
///
/// bfloat16 and tfloat32 have float's own exponent range, see float_result_is_safe.
template <class Format>
inline constexpr bool arithmetic_through_float =
    fast_path_in<Format, float> && 2 * layout_of<Format>::precision + 2 <= 24 &&
    (Format::exponent_bits == 8 ||
     (2 * layout_of<Format>::quantum_exponent > -126 && (2 * layout_of<Format>::max_exponent) < 126 &&
      layout_of<Format>::quantum_exponent - layout_of<Format>::max_exponent > -125));

/// For formats of float's exponent range: whether the float result of an operation may be used even when the
/// environment flushes subnormals. It may when its magnitude is in [2^(p - 123), 2^128), with p the precision
/// of the format, and where `infinity_is_right` also when it is infinite.
///
/// If neither operand was subnormal, a result this far from float's underflow is right by the argument above.
/// If one was, and was taken for zero: a product or a square root comes out as zero or NaN, a quotient as
/// zero, infinity or NaN, all of which are refused; a sum x + y with |y| < 2^-126 comes out as x, at least
/// 2^(p - 123), where the numbers of the format are at least 2^-123 apart on either side, so that x is the
/// right answer as well.
template <class Format>
MP_HOST_DEVICE constexpr bool float_result_is_safe(float x, bool infinity_is_right) noexcept {
    constexpr std::uint32_t smallest = static_cast<std::uint32_t>(127 - 123 + layout_of<Format>::precision)
                                       << 23;
    constexpr std::uint32_t infinity = 0x7f800000;
    const std::uint32_t magnitude = bit_cast<std::uint32_t>(x) & 0x7fffffff;
    return magnitude - smallest < infinity - smallest + (infinity_is_right ? 1 : 0);
}

/// The value of a code as an operand of float arithmetic, which makes NaNs quiet by itself.
template <class Format>
MP_HOST_DEVICE constexpr float float_operand(storage_of<Format> bits) noexcept {
    if constexpr (Format::exponent_bits == 8) {
        return bit_cast<float>(std::uint32_t{bits} << (23 - layout_of<Format>::fraction_bits));
    } else {
        return to_float<Format>(bits);
    }
}

#if MP_HARDWARE_BINARY16
__extension__ using native_binary16 = _Float16;
#endif

/// The operations as a template on the type: float and double by the functions of the host or the device, and
/// the target's own binary16.
struct native_operations {
    MP_HOST_DEVICE static constexpr float add(float a, float b) noexcept { return float_add(a, b); }
    MP_HOST_DEVICE static constexpr float subtract(float a, float b) noexcept { return float_subtract(a, b); }
    MP_HOST_DEVICE static constexpr float multiply(float a, float b) noexcept { return float_multiply(a, b); }
    MP_HOST_DEVICE static float divide(float a, float b) noexcept { return float_divide(a, b); }
    MP_HOST_DEVICE static float sqrt(float a) noexcept { return float_sqrt(a); }
    MP_HOST_DEVICE static constexpr double add(double a, double b) noexcept { return double_add(a, b); }
    MP_HOST_DEVICE static constexpr double subtract(double a, double b) noexcept {
        return double_subtract(a, b);
    }
    MP_HOST_DEVICE static constexpr double multiply(double a, double b) noexcept {
        return double_multiply(a, b);
    }
    MP_HOST_DEVICE static double divide(double a, double b) noexcept { return double_divide(a, b); }
    MP_HOST_DEVICE static double sqrt(double a) noexcept { return double_sqrt(a); }
#if MP_HARDWARE_BINARY16
    // The instructions with their direction in the encoding. As a * b, compilers would contract a product and
    // a sum into one fused multiply-add, across the operators of basic_float and, in g++, by default.
    static native_binary16 add(native_binary16 a, native_binary16 b) noexcept {
        __asm__("{vaddsh %{rn-sae%}, %1, %0, %0|vaddsh %0, %0, %1, %{rn-sae%}}" : "+v"(a) : "v"(b));
        return a;
    }
    static native_binary16 subtract(native_binary16 a, native_binary16 b) noexcept {
        __asm__("{vsubsh %{rn-sae%}, %1, %0, %0|vsubsh %0, %0, %1, %{rn-sae%}}" : "+v"(a) : "v"(b));
        return a;
    }
    static native_binary16 multiply(native_binary16 a, native_binary16 b) noexcept {
        __asm__("{vmulsh %{rn-sae%}, %1, %0, %0|vmulsh %0, %0, %1, %{rn-sae%}}" : "+v"(a) : "v"(b));
        return a;
    }
    static native_binary16 divide(native_binary16 a, native_binary16 b) noexcept {
        __asm__("{vdivsh %{rn-sae%}, %1, %0, %0|vdivsh %0, %0, %1, %{rn-sae%}}" : "+v"(a) : "v"(b));
        return a;
    }
#endif
};

/// Whether a float or double in the range of the format's normal numbers lies in the middle between two of
/// them.
template <class Format, class Native>
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr bool is_midpoint_of_normals(Native x) noexcept {
    using wide = layout_of<typename native_format<Native>::type>;
    using word = typename wide::storage;
    constexpr word lowest_kept = word{1} << (wide::fraction_bits - layout_of<Format>::fraction_bits);
    return (bit_cast<word>(x) & (lowest_kept - 1)) == lowest_kept / 2;
}

/// Whether a double below the range of the format's normal numbers lies in the middle between two of its
/// numbers.
template <class Format>
constexpr bool is_midpoint_of_subnormals(double x) noexcept {
    using narrow = layout_of<Format>;
    constexpr std::uint64_t half_quantum = static_cast<std::uint64_t>(1023 + narrow::quantum_exponent - 1)
                                           << 52;
    const std::uint64_t magnitude = bit_cast<std::uint64_t>(x) << 1 >> 1;
    if (magnitude < half_quantum) return false;
    const int lost = 52 + 1023 + narrow::quantum_exponent - static_cast<int>(magnitude >> 52);
    const std::uint64_t significand = (magnitude << 11) | (std::uint64_t{1} << 63);
    return significand << (53 - lost) == std::uint64_t{1} << 63;
}

/// An operation of numbers with float's exponent range in double. Rarely needed, and kept apart so that only
/// the code for float is inlined.
template <class Format, class Operation, class... Code>
MP_HOST_DEVICE MP_NEVER_INLINE storage_of<Format> through_double(Operation operation,
                                                                 Code... codes) noexcept {
    return static_cast<storage_of<Format>>(narrow_to_word<Format>(operation(to_double<Format>(codes)...)));
}

/// What narrow_normal leaves of results of an operation.
template <class Format, class Finish>
MP_NEVER_INLINE constexpr storage_of<Format> narrow_rest(float result, Finish finish) noexcept {
    return finish(static_cast<storage_of<Format>>(narrow_to_word<Format>(result)));
}

/// Applies `operation`, a function of floats or doubles, in float where that is proven right, in double where
/// only this is, and else `exact`. InfinityIsRight tells whether an infinite float result can be trusted
/// although the environment may have taken a subnormal operand for zero.
///
/// The proof above holds for double all the more: 53 >= 2 p + 2, and no operation on two numbers of float's
/// range comes near double's own underflow.
///
/// `finish` is applied to codes that may be zero.
template <class Format, bool InfinityIsRight, class Operation, class Exact, class Finish, class... Code>
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr storage_of<Format> through_float(
    [[maybe_unused]] Operation operation, Exact exact, [[maybe_unused]] Finish finish,
    [[maybe_unused]] Code... codes) noexcept {
#if MP_HARDWARE_FLOAT || MP_DEVICE_CODE
    if constexpr (arithmetic_through_float<Format>) {
        if (!__builtin_is_constant_evaluated()) {
#if MP_HARDWARE_BINARY16
            if constexpr (is_binary16<Format> && sizeof...(codes) == 2) {
                return bit_cast<storage_of<Format>>(operation(bit_cast<native_binary16>(codes)...));
            }
#endif
            const float result = operation(float_operand<Format>(codes)...);
            // On the device float honours subnormals whatever the options. That is enough for bfloat16, whose
            // results are never within float's rounding error of a midpoint below 2^-126: a product of two
            // 8-bit significands that small is a multiple of 2^-149.
            if constexpr (MP_DEVICE_CODE ? Format::exponent_bits < 8 || is_bfloat16<Format>
                                         : MP_HARDWARE_F16C && is_binary16<Format>) {
                return finish(from_float<Format>(result));
            } else if constexpr (Format::exponent_bits < 8) {
                storage_of<Format> code = 0;
                if (narrow_normal<Format>(result, code)) return code;
                return narrow_rest<Format>(result, finish);
            } else {
                if (float_result_is_safe<Format>(result, InfinityIsRight)) {
                    // Not NaN, so that nothing but the rounding is left to do.
                    constexpr int shift = 23 - layout_of<Format>::fraction_bits;
                    constexpr std::uint32_t half_minus_one = (std::uint32_t{1} << (shift - 1)) - 1;
                    const auto bits = bit_cast<std::uint32_t>(result);
                    const std::uint32_t last_kept = (bits >> shift) & 1;
                    return static_cast<storage_of<Format>>((bits + half_minus_one + last_kept) >> shift);
                }
                return finish(through_double<Format>(operation, codes...));
            }
        }
    }
#endif
    return exact();
}

/// Gives a + b, or a - b where Sign is -1, the sign of zero that rounding to nearest gives: negative only if
/// both summands are, whatever direction the processor rounded it in.
template <class Format, int Sign>
struct sign_of_zero_sum {
    storage_of<Format> a;
    storage_of<Format> b;

    MP_HOST_DEVICE constexpr storage_of<Format> operator()(storage_of<Format> sum) const noexcept {
        if constexpr (float_arithmetic_rounds_to_nearest || Format::nans == nan_encoding::negative_zero) {
            return sum;
        } else {
            return sum == layout_of<Format>::sign_mask ? zero_sum(a, b) : sum;
        }
    }

    // Not inlined, so that compilers branch: next to the branches of the caller a select costs more.
    MP_HOST_DEVICE MP_NEVER_INLINE static constexpr storage_of<Format> zero_sum(
        storage_of<Format> a, storage_of<Format> b) noexcept {
        const auto summand = static_cast<storage_of<Format>>(Sign < 0 ? ~b : b);
        return static_cast<storage_of<Format>>(a & summand & layout_of<Format>::sign_mask);
    }
};

/// For operations whose zeros have the same sign in all directions.
struct no_finish {
    template <class Code>
    MP_HOST_DEVICE constexpr Code operator()(Code code) const noexcept {
        return code;
    }
};

template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> add_nearest(storage_of<Format> a, storage_of<Format> b) noexcept {
#if MP_DEVICE_CODE
    if constexpr (has_device_instructions<Format>) {
        if (!__builtin_is_constant_evaluated()) return device_add<Format>(a, b);
    }
#elif MP_HARDWARE_F16C
    if constexpr (is_binary16<Format> && !float_arithmetic_rounds_to_nearest) {
        if (!__builtin_is_constant_evaluated()) return f16c_sum<1>(a, b);
    }
#endif
    return through_float<Format, true>([](auto x, auto y) { return native_operations::add(x, y); },
                                       [=] { return add_bits<Format>(a, b, {}); },
                                       sign_of_zero_sum<Format, 1>{a, b}, a, b);
}

template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> subtract_nearest(storage_of<Format> a,
                                                             storage_of<Format> b) noexcept {
#if MP_DEVICE_CODE
    if constexpr (has_device_instructions<Format>) {
        if (!__builtin_is_constant_evaluated()) return device_subtract<Format>(a, b);
    }
#elif MP_HARDWARE_F16C
    if constexpr (is_binary16<Format> && !float_arithmetic_rounds_to_nearest) {
        if (!__builtin_is_constant_evaluated()) return f16c_sum<-1>(a, b);
    }
#endif
    return through_float<Format, true>([](auto x, auto y) { return native_operations::subtract(x, y); },
                                       [=] { return subtract_bits<Format>(a, b, {}); },
                                       sign_of_zero_sum<Format, -1>{a, b}, a, b);
}

template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> multiply_nearest(storage_of<Format> a,
                                                             storage_of<Format> b) noexcept {
#if MP_DEVICE_CODE
    if constexpr (has_device_instructions<Format>) {
        if (!__builtin_is_constant_evaluated()) return device_multiply<Format>(a, b);
    }
#endif
    return through_float<Format, true>([](auto x, auto y) { return native_operations::multiply(x, y); },
                                       [=] { return multiply_bits<Format>(a, b, {}); }, no_finish{}, a, b);
}

template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> divide_nearest(storage_of<Format> a,
                                                           storage_of<Format> b) noexcept {
    if constexpr (layout_of<Format>::follows_p3109) {
        if (b == 0) return pack_nan<Format>();
    }
    return through_float<Format, false>([](auto x, auto y) { return native_operations::divide(x, y); },
                                        [=] { return divide_bits<Format>(a, b, {}); }, no_finish{}, a, b);
}

/// What sqrt_nearest leaves of roots.
template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> sqrt_of_any(storage_of<Format> a) noexcept {
    using storage = storage_of<Format>;
    using layout = layout_of<Format>;
    constexpr bool has_sign_apart = Format::nans == nan_encoding::ieee;
    if (!has_sign_apart && is_negative<Format>(a)) return sqrt_bits<Format>(a, {});
    // Without branches: the root of the magnitude, which serves for zero and NaN of either sign.
    const auto magnitude = static_cast<storage>(a & layout::magnitude_mask);
    const auto sign = static_cast<storage>(a & layout::sign_mask);
    const bool invalid = (sign != 0) & (magnitude != 0) & (magnitude <= layout::infinity_code);
    const auto root_of = [](auto x) {
        const auto root = native_operations::sqrt(x);
        constexpr bool is_float = sizeof root == sizeof(float);
        if constexpr (is_float && layout::precision > 10 && !float_arithmetic_rounds_to_nearest) {
            return lowered_root(root);
        } else {
            return root;
        }
    };
    const auto root = static_cast<storage>(
        sign | through_float<Format, true>(
                   root_of, [=] { return sqrt_bits<Format>(magnitude, {}); }, no_finish{}, magnitude));
    return select(invalid, pack_nan<Format>(), root);
}
/// Not inlined. Negative numbers, which would be taken for others as often as not where signs are random, are looked
/// for first.
template <class Format>
MP_NEVER_INLINE storage_of<Format> sqrt_of_others(storage_of<Format> a) noexcept {
    using layout = layout_of<Format>;
    if constexpr (layout::is_ieee) {
        constexpr auto below_zero = static_cast<storage_of<Format>>(layout::sign_mask + 1);
        if (static_cast<storage_of<Format>>(a - below_zero) < layout::infinity_code)
            return pack_nan<Format>();
    }
    return sqrt_of_any<Format>(a);
}

template <class Format>
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr storage_of<Format> sqrt_nearest(storage_of<Format> a) noexcept {
#if MP_HARDWARE_F16C && !MP_DEVICE_CODE
    if constexpr (is_binary16<Format>) {
        if (!__builtin_is_constant_evaluated()) return f16c_root(a);
    }
#endif
#if MP_HARDWARE_FLOAT && !MP_DEVICE_CODE
    // Roots of normal numbers are normal, and never midpoints. Of a root that is one upward rounding has made one of
    // what is below; see lowered_root for what is above.
    if constexpr (arithmetic_through_float<Format> && Format::exponent_bits < 8) {
        if (!__builtin_is_constant_evaluated()) {
            using layout = layout_of<Format>;
            constexpr int shift = 23 - layout::fraction_bits;
            constexpr std::uint32_t bias_difference = static_cast<std::uint32_t>(127 - Format::bias) << 23;
            constexpr std::uint32_t half_minus_one = (std::uint32_t{1} << (shift - 1)) - 1;
            const auto from_smallest = static_cast<storage_of<Format>>(a - layout::hidden_bit);
            if (from_smallest > layout::max_finite_code - layout::hidden_bit)
                return sqrt_of_others<Format>(a);
            const std::uint32_t bits = (std::uint32_t{a} << shift) + bias_difference;
            const auto root = bit_cast<std::uint32_t>(float_sqrt(bit_cast<float>(bits)));
            return static_cast<storage_of<Format>>((root - bias_difference + half_minus_one) >> shift);
        }
    }
#endif
    return sqrt_of_any<Format>(a);
}

/// Whether x + y is exact in double, as can be told by exponents: y has at most 11 bits, x at most 22, and
/// none of them is below the last place of the sum. False may be wrong.
MP_ALWAYS_INLINE bool is_sum_surely_exact(double x, double y, double sum) noexcept {
    const auto exponent = [](double value) {
        return static_cast<int>(bit_cast<std::uint64_t>(value) >> 52 & 0x7ff);
    };
    const int lowest = exponent(sum) - 31;
    return (exponent(x) >= lowest || exponent(x) == 0) && (exponent(y) >= lowest || exponent(y) == 0);
}

/// What fma_nearest leaves: operands and results that are not normal numbers, and midpoints, for which the
/// integers are asked where the sum may be inexact. Operands are never subnormal in double.
template <class Format>
MP_NEVER_INLINE storage_of<Format> fma_special(storage_of<Format> a, storage_of<Format> b,
                                               storage_of<Format> c) noexcept {
    using layout = layout_of<Format>;
    constexpr std::uint64_t sign = std::uint64_t{1} << 63;
    constexpr std::uint64_t smallest = static_cast<std::uint64_t>(1023 + layout::min_exponent) << 52;
    const double product = double_multiply(to_double<Format>(a), to_double<Format>(b));
    const double addend = to_double<Format>(c);
    const double sum = double_add(product, addend);
    const auto bits = bit_cast<std::uint64_t>(sum);
    const bool is_midpoint = (bits & ~sign) < smallest ? is_midpoint_of_subnormals<Format>(sum)
                                                       : is_midpoint_of_normals<Format>(sum);
    if (is_midpoint && !is_sum_surely_exact(product, addend, sum)) return fma_bits<Format>(a, b, c, {});
    const storage_of<Format> code = narrow_nearest_even<Format>(sum);
    if (bits != sign) return code;
    return static_cast<storage_of<Format>>(code & (a ^ b) & c);  // the sign of zero, as in a sum
}

/// Stores the value of a code in `value`; false for codes that are left to fma_special.
template <class Format>
MP_ALWAYS_INLINE bool load_frequent(storage_of<Format> code, double& value) noexcept {
    using layout = layout_of<Format>;
    const std::uint64_t magnitude = code & layout::magnitude_mask;
    if constexpr (Format::exponent_bits == 8 && fast_path_in<Format, float>) {
        // Float's own exponents: all but subnormal numbers, which the environment may flush.
        value = static_cast<double>(float_operand<Format>(code));
        return magnitude - 1 >= layout::hidden_bit - 1;
    } else {
        constexpr std::uint64_t bias_difference = static_cast<std::uint64_t>(1023 - Format::bias) << 52;
        const std::uint64_t sign = static_cast<std::uint64_t>(code & layout::sign_mask)
                                   << (63 - layout::magnitude_bits);
        if (magnitude - layout::hidden_bit <= std::uint64_t{layout::max_finite_code} - layout::hidden_bit) {
            value = bit_cast<double>(((magnitude << (52 - layout::fraction_bits)) + bias_difference) | sign);
            return true;
        }
        value = bit_cast<double>(sign);
        return magnitude == 0 && (Format::nans != nan_encoding::negative_zero || sign == 0);
    }
}

/// a * b + c through double. The product of two numbers of up to 11 bits is exact there, the sum is rounded
/// once, in whatever direction, and double's range leaves both far from over- and underflow. By the
/// observation at the top of this file the sum rounds as the exact result does, unless it is a midpoint of
/// the format.
template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> fma_nearest(storage_of<Format> a, storage_of<Format> b,
                                                        storage_of<Format> c) noexcept {
#if MP_HARDWARE_FLOAT && !MP_DEVICE_CODE
    if constexpr (fast_path_in<Format, double> && layout_of<Format>::precision <= 11) {
        if (!__builtin_is_constant_evaluated()) {
#if MP_HARDWARE_F16C
            if constexpr (is_binary16<Format>) return f16c_fma(a, b, c, fma_special<Format>);
#endif
            double x = 0;
            double y = 0;
            double z = 0;
            if (load_frequent<Format>(a, x) && load_frequent<Format>(b, y) && load_frequent<Format>(c, z)) {
                const double sum = double_add(double_multiply(x, y), z);
                storage_of<Format> code = 0;
                if (!is_midpoint_of_normals<Format>(sum) && narrow_normal<Format>(sum, code)) return code;
            }
            return fma_special<Format>(a, b, c);
        }
    }
#elif MP_DEVICE_CODE
    if constexpr (has_device_instructions<Format>) {
        if (!__builtin_is_constant_evaluated()) return device_multiply_add<Format>(a, b, c);
    }
#endif
    return fma_bits<Format>(a, b, c, {});
}

}}  // namespace mp::detail
