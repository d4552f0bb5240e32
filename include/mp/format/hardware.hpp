// SPDX-License-Identifier: MIT
/// \file
/// The same operations as the integer core by the processor's float and double units: nearest-even, overflow
/// as saturation::none, same bits (NaN payloads of arithmetic aside). Each function says why it is right.
///
/// They assume the default rounding direction, as every C++ program without FENV_ACCESS does. They do not
/// assume that subnormals are honoured: a library that is linked with -ffast-math may have switched the
/// processor to flush them.
#pragma once

#include <mp/format/binary_conversion.hpp>
#include <mp/format/device_conversions.hpp>
#include <mp/format/exact_arithmetic.hpp>

namespace mp::detail {

#if defined(__SSE2__) && defined(__GNUC__) && !defined(__CUDACC__)
using float_x4 = float __attribute__((vector_size(16)));
#endif

#if MP_HARDWARE_F16C
/// vcvtps2ph and vcvtph2ps by the compiler's builtins: <immintrin.h> alone would cost half a second of
/// compile time in every file. They ignore the flush modes of MXCSR for binary16 subnormals, keep sign and
/// leading payload of a NaN and make it quiet: the same bits as the core for all 2^32 and all 2^16 inputs.
using short_x8 = short __attribute__((vector_size(16)));

MP_ALWAYS_INLINE std::uint16_t f16c_narrow(float x) noexcept {
    const short_x8 result = __builtin_ia32_vcvtps2ph(float_x4{x, 0, 0, 0}, 0 /* nearest even */);
    return static_cast<std::uint16_t>(result[0]);
}

MP_ALWAYS_INLINE float f16c_widen(std::uint16_t bits) noexcept {
    return __builtin_ia32_vcvtph2ps(short_x8{static_cast<short>(bits), 0, 0, 0, 0, 0, 0, 0})[0];
}
#endif

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
    if constexpr (fits_in<Format, float>) {
        return widen_one<float, Format>(bits);
    } else {
        return bit_cast<float>(convert_bits<formats::binary32, Format>(bits, {}));
    }
}

/// The value of a code as a double, without passing through a subnormal float that the environment may flush.
template <class Format>
MP_HOST_DEVICE constexpr double to_double(storage_of<Format> bits) noexcept {
    if constexpr (!fits_in<Format, double>) {
        return bit_cast<double>(convert_bits<formats::binary64, Format>(bits, {}));
    } else if constexpr (fits_in<Format, float> && Format::exponent_bits < 8) {
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
    if constexpr (fits_in<Format, float>) {
        return narrow_nearest_even<Format>(x);
    } else {
        return convert_bits<Format, formats::binary32>(bit_cast<std::uint32_t>(x), {});
    }
}

/// Formats for which + - * / and sqrt in float, rounded again to the format, give the correctly rounded
/// result.
///
/// With p bits of precision against float's 24 >= 2 p + 2, rounding twice to nearest even is innocuous where
/// float's result is normal (Figueroa, "When is double rounding innocuous?", 1995). What remains is
/// underflow. An exponent field of up to 7 bits keeps every result normal in float: with |x| >= 2^quantum,
/// products are at least 2^(2 quantum), quotients 2^(quantum - max_exponent - 1), and both stay above 2^-126
/// here. Subnormal results are then a second rounding at a coarser place than the first, and the distance of
/// an inexact quotient or product from every midpoint (at least 2^-2p of it) is more than float's rounding
/// error.
///
/// bfloat16 and tfloat32 have float's own exponent range, see float_result_is_safe.
template <class Format>
inline constexpr bool arithmetic_through_float =
    fits_in<Format, float> && 2 * layout_of<Format>::precision + 2 <= 24 &&
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

/// + * / and sqrt of floats by the device's or the host's functions, and of wider and narrower types where
/// those are used.
template <class Native>
MP_HOST_DEVICE constexpr Native native_add(Native a, Native b) noexcept {
    if constexpr (std::is_same_v<Native, float>) return float_add(a, b);
    return static_cast<Native>(a + b);
}
template <class Native>
MP_HOST_DEVICE constexpr Native native_multiply(Native a, Native b) noexcept {
    if constexpr (std::is_same_v<Native, float>) return float_multiply(a, b);
    return static_cast<Native>(a * b);
}
template <class Native>
MP_HOST_DEVICE MP_ALWAYS_INLINE Native native_divide(Native a, Native b) noexcept {
    if constexpr (std::is_same_v<Native, float>) return float_divide(a, b);
    return static_cast<Native>(a / b);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE float native_sqrt(float a) noexcept {
#if defined(__SSE2__) && defined(__GNUC__) && !defined(__CUDACC__)
    // The instruction alone: std::sqrt and its builtin have to set errno for negative arguments.
    return __builtin_ia32_sqrtps(float_x4{a, 0, 0, 0})[0];
#else
    return float_sqrt(a);
#endif
}
MP_HOST_DEVICE MP_ALWAYS_INLINE double native_sqrt(double a) noexcept {
    return __builtin_sqrt(a);
}

#if MP_HARDWARE_BINARY16
__extension__ using native_binary16 = _Float16;

/// Compilers contract a product and a sum of their own binary16 type into one fused multiply-add, across the
/// operators of basic_float and, in g++, by default: x * y + z would be rounded once instead of twice, and
/// differ between builds. An empty asm statement hides the product from them.
MP_ALWAYS_INLINE native_binary16 native_multiply(native_binary16 a, native_binary16 b) noexcept {
    native_binary16 product = static_cast<native_binary16>(a * b);
    asm("" : "+v"(product));
    return product;
}
#endif

/// An operation of numbers with float's exponent range in double. Rarely needed, and kept apart so that only
/// the code for float is inlined.
template <class Format, class Operation, class... Code>
MP_HOST_DEVICE MP_NEVER_INLINE storage_of<Format> through_double(Operation operation,
                                                                 Code... codes) noexcept {
    return narrow_nearest_even<Format>(operation(to_double<Format>(codes)...));
}

/// Applies `operation`, a function of floats or doubles, in float where that is proven right, in double where
/// only this is, and else `exact`. InfinityIsRight tells whether an infinite float result can be trusted
/// although the environment may have taken a subnormal operand for zero.
///
/// The proof above holds for double all the more: 53 >= 2 p + 2, and no operation on two numbers of float's
/// range comes near double's own underflow.
template <class Format, bool InfinityIsRight, class Operation, class Exact, class... Code>
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr storage_of<Format> through_float(
    [[maybe_unused]] Operation operation, Exact exact, [[maybe_unused]] Code... codes) noexcept {
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
            if constexpr (Format::exponent_bits < 8 || (MP_DEVICE_CODE && is_bfloat16<Format>)) {
                return from_float<Format>(result);
            } else {
                if (float_result_is_safe<Format>(result, InfinityIsRight)) {
                    // Not NaN, so that nothing but the rounding is left to do.
                    constexpr int shift = 23 - layout_of<Format>::fraction_bits;
                    constexpr std::uint32_t half_minus_one = (std::uint32_t{1} << (shift - 1)) - 1;
                    const auto bits = bit_cast<std::uint32_t>(result);
                    const std::uint32_t last_kept = (bits >> shift) & 1;
                    return static_cast<storage_of<Format>>((bits + half_minus_one + last_kept) >> shift);
                }
                return through_double<Format>(operation, codes...);
            }
        }
    }
#endif
    return exact();
}

template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> add_nearest(storage_of<Format> a, storage_of<Format> b) noexcept {
#if MP_DEVICE_CODE
    if constexpr (has_device_instructions<Format>) {
        if (!__builtin_is_constant_evaluated()) return device_add<Format>(a, b);
    }
#endif
    return through_float<Format, true>([](auto x, auto y) { return native_add(x, y); },
                                       [=] { return add_bits<Format>(a, b, {}); }, a, b);
}

template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> subtract_nearest(storage_of<Format> a,
                                                             storage_of<Format> b) noexcept {
#if MP_DEVICE_CODE
    if constexpr (has_device_instructions<Format>) {
        if (!__builtin_is_constant_evaluated()) return device_subtract<Format>(a, b);
    }
#endif
    return through_float<Format, true>([](auto x, auto y) { return native_add(x, -y); },
                                       [=] { return subtract_bits<Format>(a, b, {}); }, a, b);
}

template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> multiply_nearest(storage_of<Format> a,
                                                             storage_of<Format> b) noexcept {
#if MP_DEVICE_CODE
    if constexpr (has_device_instructions<Format>) {
        if (!__builtin_is_constant_evaluated()) return device_multiply<Format>(a, b);
    }
#endif
    return through_float<Format, true>([](auto x, auto y) { return native_multiply(x, y); },
                                       [=] { return multiply_bits<Format>(a, b, {}); }, a, b);
}

template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> divide_nearest(storage_of<Format> a,
                                                           storage_of<Format> b) noexcept {
    return through_float<Format, false>([](auto x, auto y) { return native_divide(x, y); },
                                        [=] { return divide_bits<Format>(a, b, {}); }, a, b);
}

template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> sqrt_nearest(storage_of<Format> a) noexcept {
    using storage = storage_of<Format>;
    using layout = layout_of<Format>;
    constexpr bool has_sign_apart = Format::nans == nan_encoding::ieee;
    if (!has_sign_apart && is_negative<Format>(a)) return sqrt_bits<Format>(a, {});
    // Without branches: the root of the magnitude, which serves for zero and NaN of either sign.
    const auto magnitude = static_cast<storage>(a & layout::magnitude_mask);
    const auto sign = static_cast<storage>(a & layout::sign_mask);
    const auto root = static_cast<storage>(
        sign | through_float<Format, true>([](auto x) { return native_sqrt(x); },
                                           [=] { return sqrt_bits<Format>(magnitude, {}); }, magnitude));
    const bool invalid = (sign != 0) & (magnitude != 0) & (magnitude <= layout::infinity_code);
    return select(invalid, pack_nan<Format>(), root);
}

/// a * b + c through double, whose sum is rounded to odd before the one rounding that counts.
///
/// The product of two numbers of up to 11 bits is exact in double. Two-sum gives s + e = a * b + c exactly, s
/// being the nearest double; double's range leaves both far from over- and underflow. If e is not zero and
/// the last bit of s is zero, the neighbour of s on the side of e is the one that is odd; if the last bit is
/// one, s is it. Rounding to odd to 53 bits and then to at most 51 bits is rounding once (Boldo and Melquiond
/// 2008).
template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> fma_nearest(storage_of<Format> a, storage_of<Format> b,
                                                        storage_of<Format> c) noexcept {
#if MP_HARDWARE_FLOAT && !MP_DEVICE_CODE
    if constexpr (fits_in<Format, double> && layout_of<Format>::precision <= 11) {
        if (!__builtin_is_constant_evaluated()) {
            const double product = to_double<Format>(a) * to_double<Format>(b);
            const double addend = to_double<Format>(c);
            const double sum = product + addend;
            const double restored = sum - product;
            const double error = (product - (sum - restored)) + (addend - restored);
            std::uint64_t bits = bit_cast<std::uint64_t>(sum);
            // Both comparisons fail for the NaN that comes with an infinite sum, which is right as it is.
            if ((error < 0 || error > 0) && (bits & 1) == 0) {
                const bool away_from_zero = (error < 0) == (sum < 0);
                bits = away_from_zero ? bits + 1 : bits - 1;
            }
            return narrow_nearest_even<Format>(bit_cast<double>(bits));
        }
    }
#elif MP_DEVICE_CODE
    if constexpr (has_device_instructions<Format>) {
        if (!__builtin_is_constant_evaluated()) return device_multiply_add<Format>(a, b, c);
    }
#endif
    return fma_bits<Format>(a, b, c, {});
}

}  // namespace mp::detail
