// SPDX-License-Identifier: MIT
/// \file
/// The short cuts of hardware.hpp by the F16C instructions, which convert between binary16 and float. Empty
/// where the target of the program does not have them.
#pragma once

#include <mp/base/opt_barrier.hpp>
#include <mp/config.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <cstdint>

#if MP_HARDWARE_F16C

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

// A code stays in a vector register from one operation to the next of an expression, since the way through a general
// register and back takes as long as an addition does. For that g++ wants a scalar type that has a place there, which is
// _Float16, and clang the promise that the rest of the register does not matter. g++ would load a _Float16 from memory
// into a register that some earlier result has to arrive in first, and keep one that is compared on the stack; among
// zeros it does neither.
using f16c_codes = short __attribute__((vector_size(16)));
#if defined(__clang__) || !MP_HAS_COMPILER_BINARY16
using f16c_result = f16c_codes;
MP_ALWAYS_INLINE std::uint16_t f16c_bits(f16c_result code) noexcept {
    return static_cast<std::uint16_t>(code[0]);
}
MP_ALWAYS_INLINE f16c_codes f16c_load(std::uint16_t bits) noexcept {
    const f16c_codes codes = {static_cast<short>(bits), 0, 0, 0, 0, 0, 0, 0};
#if defined(__clang__)
    return __builtin_shufflevector(codes, codes, 0, -1, -1, -1, -1, -1, -1, -1);
#else
    return codes;
#endif
}
#else
__extension__ using f16c_result = _Float16;
MP_ALWAYS_INLINE std::uint16_t f16c_bits(f16c_result code) noexcept {
    return __builtin_bit_cast(std::uint16_t, code);
}
MP_ALWAYS_INLINE auto f16c_load(std::uint16_t bits) noexcept {
    using codes = f16c_result __attribute__((vector_size(16)));
    return codes{__builtin_bit_cast(f16c_result, bits), 0, 0, 0, 0, 0, 0, 0};
}
#endif

/// vcvtps2ph and vcvtph2ps: <immintrin.h> alone would cost half a second of compile time in every file. They
/// ignore the rounding direction and the flush modes of MXCSR for binary16, keep sign and leading payload of
/// a NaN and make it quiet: the same bits as the core for all 2^32 and all 2^16 inputs. The other numbers in
/// the register do not matter, which the compiler's builtins could not know.
MP_ALWAYS_INLINE std::uint16_t f16c_narrow(float x) noexcept {
    f16c_result result;
    __asm__("{vcvtps2ph $0, %1, %0|vcvtps2ph %0, %1, 0}" : "=x"(result) : "x"(x));
    return f16c_bits(result);
}
MP_ALWAYS_INLINE float f16c_widen(std::uint16_t bits) noexcept {
    float result;
    __asm__("{vcvtph2ps %1, %0|vcvtph2ps %0, %1}" : "=x"(result) : "x"(f16c_load(bits)));
    return result;
}

/// The square root: f16c_narrow(lowered_root(root)) in vector registers. Of a number below zero the instruction makes
/// the NaN with a sign, of minus zero and of NaNs what they are, and so do the conversions.
MP_ALWAYS_INLINE std::uint16_t f16c_root(std::uint16_t a) noexcept {
    const float x = f16c_widen(a);
    float root = float_sqrt(x);
    if constexpr (!float_arithmetic_rounds_to_nearest) {
        const auto one = __builtin_bit_cast(float, 1);
        __asm__("{vpsubusw %1, %0, %0|vpsubusw %0, %0, %1}" : "+x"(root) : "x"(one));
    }
    const bool invalid = bit_cast<std::uint32_t>(x) - 0x80000001 < 0x7f800000;
    return static_cast<std::uint16_t>(f16c_narrow(root) ^ (invalid ? 0x8000 : 0));
}

/// The zero that is the sum of these, or their difference where Sign is -1, if one rounds to nearest: negative only if
/// both summands are. Not inlined, so that compilers branch.
template <int Sign>
MP_NEVER_INLINE std::uint16_t f16c_zero_sum(float a, float b) noexcept {
    const auto second = bit_cast<std::uint32_t>(b);
    const auto signs = bit_cast<std::uint32_t>(a) & (Sign < 0 ? ~second : second);
    return static_cast<std::uint16_t>(signs >> 16 & 0x8000);
}

/// a + b, or a - b where Sign is -1. Where a negative zero came out, the direction may have made it. The codes are not
/// looked at: kept in general registers as well they would cost a quarter of the time.
template <int Sign>
MP_ALWAYS_INLINE std::uint16_t f16c_sum(std::uint16_t a, std::uint16_t b) noexcept {
    const float x = f16c_widen(a);
    const float y = f16c_widen(b);
    const float sum = Sign < 0 ? float_subtract(x, y) : float_add(x, y);
    if (bit_cast<std::uint32_t>(sum) != 0x80000000) return f16c_narrow(sum);
    return f16c_zero_sum<Sign>(x, y);
}

/// a * b + c. The double sum, as in fma_nearest, is rounded to float, which does not pass a midpoint of
/// binary16 either; the instruction does the rest. Where the result is not a normal number or is a midpoint,
/// special(a, b, c), whose
/// codes are made from the values again: those of NaNs come back quiet, which is all that special makes of them.
template <class Special>
MP_ALWAYS_INLINE std::uint16_t f16c_fma(std::uint16_t a, std::uint16_t b, std::uint16_t c,
                                        Special special) noexcept {
    const float values[] = {f16c_widen(a), f16c_widen(b), f16c_widen(c)};
    const auto value = [&](int i) { return static_cast<double>(values[i]); };
    const auto result = static_cast<float>(double_add(double_multiply(value(0), value(1)), value(2)));
    constexpr std::uint32_t smallest = 0x38800000;  // 2^-14
    constexpr std::uint32_t infinity = 0x7f800000;
    const std::uint32_t magnitude = bit_cast<std::uint32_t>(result) & 0x7fffffff;
    const bool is_midpoint = (magnitude & 0x1fff) == 0x1000;  // of two numbers of 11 bits
    if (magnitude - smallest < infinity - smallest && !is_midpoint) {
        return f16c_narrow(result);
    }
    const auto code = [&](int i) { return f16c_narrow(values[i]); };
    return special(code(0), code(1), code(2));
}

}}  // namespace mp::detail

#endif
