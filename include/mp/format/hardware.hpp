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
#include <mp/format/device.hpp>
#include <mp/format/exact_arithmetic.hpp>

namespace mp::detail {

#if MP_HARDWARE_F16C
/// vcvtps2ph and vcvtph2ps by the compiler's builtins: <immintrin.h> alone would cost half a second of
/// compile time in every file. They ignore the flush modes of MXCSR for binary16 subnormals, keep sign and
/// leading payload of a NaN and make it quiet: the same bits as the core for all 2^32 and all 2^16 inputs.
using float_x4 = float __attribute__((vector_size(16)));
using short_x8 = short __attribute__((vector_size(16)));

MP_ALWAYS_INLINE std::uint16_t f16c_narrow(float x) noexcept {
    const short_x8 result = __builtin_ia32_vcvtps2ph(float_x4{x, 0, 0, 0}, 0 /* nearest even */);
    return static_cast<std::uint16_t>(result[0]);
}

MP_ALWAYS_INLINE float f16c_widen(std::uint16_t bits) noexcept {
    return __builtin_ia32_vcvtph2ps(short_x8{static_cast<short>(bits), 0, 0, 0, 0, 0, 0, 0})[0];
}
#endif

/// The value of a code as a float.
template <class Format>
MP_HOST_DEVICE constexpr float to_float(storage_of<Format> bits) noexcept {
#if MP_DEVICE_CODE
    if constexpr (is_binary16<Format>) {
        if (!__builtin_is_constant_evaluated()) return device_widen_binary16(bits);
    }
#elif MP_HARDWARE_F16C
    if constexpr (is_binary16<Format>) {
        if (!__builtin_is_constant_evaluated()) return f16c_widen(bits);
    }
#endif
    return widen<float, Format>(bits);
}

/// The value of a code as a double, without passing through a subnormal float that the environment may flush.
template <class Format>
MP_HOST_DEVICE constexpr double to_double(storage_of<Format> bits) noexcept {
    if constexpr (Format::exponent_bits < 8) {
        return static_cast<double>(to_float<Format>(bits));
    } else {
        return widen<double, Format>(bits);
    }
}

/// A float rounded to nearest even.
template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> from_float(float x) noexcept {
#if MP_DEVICE_CODE
    if constexpr (has_device_instructions<Format>) {
        if (!__builtin_is_constant_evaluated()) return device_narrow<Format>(x);
    }
#elif MP_HARDWARE_F16C
    if constexpr (is_binary16<Format>) {
        if (!__builtin_is_constant_evaluated()) return f16c_narrow(x);
    }
#endif
    return narrow_nearest_even<Format>(x);
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
/// bfloat16 has float's own exponent range, see float_result_is_safe.
template <class Format>
inline constexpr bool arithmetic_through_float =
    fits_in<Format, float> && 2 * layout_of<Format>::precision + 2 <= 24 && Format::is_signed &&
    (Format::exponent_bits == 8 ||
     (2 * layout_of<Format>::quantum_exponent > -126 && (2 * layout_of<Format>::max_exponent) < 126 &&
      layout_of<Format>::quantum_exponent - layout_of<Format>::max_exponent > -125));

/// For bfloat16: whether the float result of an operation may be used even when the environment flushes
/// subnormals. It may when its exponent field is between 12 and 253.
///
/// If neither operand was subnormal, a result this far from float's underflow is right by the argument above.
/// If one was, and was taken for zero: a product or a square root comes out as zero, a quotient as zero,
/// infinity or NaN, all of which are refused; a sum x + y with |y| < 2^-126 comes out as x >= 2^-115, where
/// bfloat16 numbers are at least 2^-123 apart on either side, so that x is the right answer as well.
MP_HOST_DEVICE constexpr bool float_result_is_safe(float x) noexcept {
    const std::uint32_t field = (bit_cast<std::uint32_t>(x) >> 23) & 0xff;
    return field - 12 < 242;
}

/// Applies `operation` in float where that is proven right, and the integer core otherwise.
template <class Format, class FloatOperation, class Exact>
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr storage_of<Format> through_float(FloatOperation operation,
                                                                           Exact exact) noexcept {
#if MP_HARDWARE_FLOAT || MP_DEVICE_CODE
    if constexpr (arithmetic_through_float<Format>) {
        if (!__builtin_is_constant_evaluated()) {
            const float result = operation();
            if constexpr (Format::exponent_bits < 8 || MP_DEVICE_CODE) {
                return from_float<Format>(result);
            } else if (float_result_is_safe(result)) {
                return from_float<Format>(result);
            }
        }
    }
#endif
    static_cast<void>(operation);
    return exact();
}

template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> add_nearest(storage_of<Format> a, storage_of<Format> b) noexcept {
#if MP_DEVICE_CODE
    if constexpr (has_device_instructions<Format>) {
        if (!__builtin_is_constant_evaluated()) return device_add<Format>(a, b);
    }
#endif
    return through_float<Format>([=] { return float_add(to_float<Format>(a), to_float<Format>(b)); },
                                 [=] { return add_bits<Format>(a, b, {}); });
}

template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> subtract_nearest(storage_of<Format> a,
                                                             storage_of<Format> b) noexcept {
#if MP_DEVICE_CODE
    if constexpr (has_device_instructions<Format>) {
        if (!__builtin_is_constant_evaluated()) return device_subtract<Format>(a, b);
    }
#endif
    return through_float<Format>([=] { return float_add(to_float<Format>(a), -to_float<Format>(b)); },
                                 [=] { return subtract_bits<Format>(a, b, {}); });
}

template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> multiply_nearest(storage_of<Format> a,
                                                             storage_of<Format> b) noexcept {
#if MP_DEVICE_CODE
    if constexpr (has_device_instructions<Format>) {
        if (!__builtin_is_constant_evaluated()) return device_multiply<Format>(a, b);
    }
#endif
    return through_float<Format>([=] { return float_multiply(to_float<Format>(a), to_float<Format>(b)); },
                                 [=] { return multiply_bits<Format>(a, b, {}); });
}

template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> divide_nearest(storage_of<Format> a,
                                                           storage_of<Format> b) noexcept {
    return through_float<Format>([=] { return float_divide(to_float<Format>(a), to_float<Format>(b)); },
                                 [=] { return divide_bits<Format>(a, b, {}); });
}

template <class Format>
MP_HOST_DEVICE constexpr storage_of<Format> sqrt_nearest(storage_of<Format> a) noexcept {
    if (is_negative<Format>(a)) return sqrt_bits<Format>(a, {});
    return through_float<Format>([=] { return float_sqrt(to_float<Format>(a)); },
                                 [=] { return sqrt_bits<Format>(a, {}); });
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
            if (float_result_is_safe(static_cast<float>(sum))) {
                if (error != 0 && (bits & 1) == 0) {
                    const bool away_from_zero = (error < 0) == (sum < 0);
                    bits = away_from_zero ? bits + 1 : bits - 1;
                }
                return narrow_nearest_even<Format>(bit_cast<double>(bits));
            }
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
