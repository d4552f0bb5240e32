// SPDX-License-Identifier: MIT
/// \file
/// The short cuts of hardware.hpp by the F16C instructions, which convert between binary16 and float. Empty
/// where the target of the program does not have them.
#pragma once

#include <mp/config.hpp>
#include <mp/detail/opt_barrier.hpp>
#include <mp/format/float_arithmetic.hpp>

#include <cstdint>

#if MP_HARDWARE_F16C

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// vcvtps2ph and vcvtph2ps: <immintrin.h> alone would cost half a second of compile time in every file. They
/// ignore the rounding direction and the flush modes of MXCSR for binary16, keep sign and leading payload of
/// a NaN and make it quiet: the same bits as the core for all 2^32 and all 2^16 inputs. The other numbers in
/// the register do not matter, which the compiler's builtin could not know.
using short_x8 = short __attribute__((vector_size(16)));

MP_ALWAYS_INLINE std::uint16_t f16c_narrow(float x) noexcept {
    short_x8 result;
    __asm__("{vcvtps2ph $0, %1, %0|vcvtps2ph %0, %1, 0}" : "=x"(result) : "x"(x));
    return static_cast<std::uint16_t>(result[0]);
}

MP_ALWAYS_INLINE short_x8 f16c_load(std::uint16_t bits) noexcept {
    return short_x8{static_cast<short>(bits), 0, 0, 0, 0, 0, 0, 0};
}

MP_ALWAYS_INLINE float f16c_widen(std::uint16_t bits) noexcept {
    return __builtin_ia32_vcvtph2ps(f16c_load(bits))[0];
}

/// f16c_narrow(lowered_root(root)), in vector registers.
MP_ALWAYS_INLINE std::uint16_t f16c_narrow_root(float root) noexcept {
    using float_x4 = float __attribute__((vector_size(16)));
    short_x8 bits = __builtin_bit_cast(short_x8, float_x4{root, 0, 0, 0});
    const short_x8 one = {1, 0, 0, 0, 0, 0, 0, 0};
    __asm__("{vpsubusw %1, %0, %0|vpsubusw %0, %0, %1}" : "+x"(bits) : "x"(one));
    return f16c_narrow(__builtin_bit_cast(float_x4, bits)[0]);
}

/// a + b, or a - b where Sign is -1; zero_sum(a, b) is the result where a negative zero came out. The codes
/// stay in vector registers, from which only the rare zero reads them: kept in general registers as well they
/// would cost a quarter of the time.
template <int Sign, class ZeroSum>
MP_ALWAYS_INLINE std::uint16_t f16c_sum(std::uint16_t a, std::uint16_t b, ZeroSum zero_sum) noexcept {
    const short_x8 x = opt_barrier(f16c_load(a));
    const short_x8 y = opt_barrier(f16c_load(b));
    const float first = __builtin_ia32_vcvtph2ps(x)[0];
    const float second = __builtin_ia32_vcvtph2ps(y)[0];
    const std::uint16_t sum =
        f16c_narrow(Sign < 0 ? float_subtract(first, second) : float_add(first, second));
    if (sum != 0x8000) return sum;
    return zero_sum(static_cast<std::uint16_t>(x[0]), static_cast<std::uint16_t>(y[0]));
}

/// a * b + c. The double sum, as in fma_nearest, is rounded to float, which does not pass a midpoint of
/// binary16 either; the instruction does the rest. Where the result is not a normal number or is a midpoint,
/// special(a, b, c). The codes stay in vector registers, as in f16c_sum.
template <class Special>
MP_ALWAYS_INLINE std::uint16_t f16c_fma(std::uint16_t a, std::uint16_t b, std::uint16_t c,
                                        Special special) noexcept {
    const short_x8 codes[] = {opt_barrier(f16c_load(a)), opt_barrier(f16c_load(b)),
                              opt_barrier(f16c_load(c))};
    const auto value = [&](int i) { return static_cast<double>(__builtin_ia32_vcvtph2ps(codes[i])[0]); };
    const auto result = static_cast<float>(double_add(double_multiply(value(0), value(1)), value(2)));
    constexpr std::uint32_t smallest = 0x38800000;  // 2^-14
    constexpr std::uint32_t infinity = 0x7f800000;
    const std::uint32_t magnitude = bit_cast<std::uint32_t>(result) & 0x7fffffff;
    const bool is_midpoint = (magnitude & 0x1fff) == 0x1000;  // of two numbers of 11 bits
    if (magnitude - smallest < infinity - smallest && !is_midpoint) {
        return f16c_narrow(result);
    }
    const auto code = [&](int i) { return static_cast<std::uint16_t>(codes[i][0]); };
    return special(code(0), code(1), code(2));
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE

#endif
