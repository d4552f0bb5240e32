// SPDX-License-Identifier: MIT
/// \file
/// Single operations of float and double that stay the ones of IEEE 754 whatever the including project is
/// compiled with: -ffast-math, whole or in parts, reciprocal estimates, contraction. device.hpp has the same
/// functions for devices.
///
/// They round in the direction that the caller has set, but where float_arithmetic_rounds_to_nearest, and
/// flush what the caller flushes; whoever uses them says why that does no harm.
#pragma once

#include <mp/detail/opt_barrier.hpp>
#include <mp/detail/rounded.hpp>

#if !MP_DEVICE_CODE

namespace mp::detail::inline MP_ISA_NAMESPACE {

#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__CUDACC__)
/// Whether the functions below round to nearest even whatever direction the caller has set: the instructions
/// of AVX-512 carry theirs.
inline constexpr bool float_arithmetic_rounds_to_nearest = true;
#define MP_BINARY_INSTRUCTION(name) "{v" name " %{rn-sae%}, %1, %0, %0|v" name " %0, %0, %1, %{rn-sae%}}"
#define MP_UNARY_INSTRUCTION(name) "{v" name " %{rn-sae%}, %0, %0, %0|v" name " %0, %0, %0, %{rn-sae%}}"
#define MP_REGISTER "v"
#else
inline constexpr bool float_arithmetic_rounds_to_nearest = false;
#if defined(__AVX__)
#define MP_BINARY_INSTRUCTION(name) "{v" name " %1, %0, %0|v" name " %0, %0, %1}"
#define MP_UNARY_INSTRUCTION(name) "{v" name " %0, %0, %0|v" name " %0, %0, %0}"
#else
#define MP_BINARY_INSTRUCTION(name) "{" name " %1, %0|" name " %0, %1}"
#define MP_UNARY_INSTRUCTION(name) "{" name " %0, %0|" name " %0, %0}"
#endif
#define MP_REGISTER "x"
#endif

// As instructions: what carries its direction, and division and square root, for which compilers would take
// an estimate and a step of Newton's iteration (clang's -mrecip even for single numbers) or, for errno, call
// the C library.
#if defined(__SSE2__) && defined(__GNUC__)
#define MP_BINARY_OPERATION(function, type, name)                                   \
    MP_HOST_DEVICE MP_ALWAYS_INLINE type function(type a, type b) noexcept {        \
        __asm__(MP_BINARY_INSTRUCTION(name) : "+" MP_REGISTER(a) : MP_REGISTER(b)); \
        return a;                                                                   \
    }
#define MP_UNARY_OPERATION(function, type, name)                     \
    MP_HOST_DEVICE MP_ALWAYS_INLINE type function(type a) noexcept { \
        __asm__(MP_UNARY_INSTRUCTION(name) : "+" MP_REGISTER(a));    \
        return a;                                                    \
    }
MP_BINARY_OPERATION(float_divide, float, "divss")
MP_BINARY_OPERATION(double_divide, double, "divsd")
MP_UNARY_OPERATION(float_sqrt, float, "sqrtss")
MP_UNARY_OPERATION(double_sqrt, double, "sqrtsd")
#if defined(__AVX512F__) && !defined(__CUDACC__)
#define MP_ARITHMETIC_BY_INSTRUCTION 1
MP_BINARY_OPERATION(added_by_instruction, float, "addss")
MP_BINARY_OPERATION(added_by_instruction, double, "addsd")
MP_BINARY_OPERATION(subtracted_by_instruction, float, "subss")
MP_BINARY_OPERATION(subtracted_by_instruction, double, "subsd")
MP_BINARY_OPERATION(multiplied_by_instruction, float, "mulss")
MP_BINARY_OPERATION(multiplied_by_instruction, double, "mulsd")
#endif
#undef MP_BINARY_OPERATION
#undef MP_UNARY_OPERATION
#elif defined(__aarch64__) && defined(__GNUC__)
MP_HOST_DEVICE MP_ALWAYS_INLINE float float_divide(float a, float b) noexcept {
    __asm__("fdiv %s0, %s0, %s1" : "+w"(a) : "w"(b));
    return a;
}
MP_HOST_DEVICE MP_ALWAYS_INLINE double double_divide(double a, double b) noexcept {
    __asm__("fdiv %d0, %d0, %d1" : "+w"(a) : "w"(b));
    return a;
}
MP_HOST_DEVICE MP_ALWAYS_INLINE float float_sqrt(float a) noexcept {
    __asm__("fsqrt %s0, %s0" : "+w"(a));
    return a;
}
MP_HOST_DEVICE MP_ALWAYS_INLINE double double_sqrt(double a) noexcept {
    __asm__("fsqrt %d0, %d0" : "+w"(a));
    return a;
}
#else
// Compilers for other processors do not estimate a single quotient whose divisor they see once.
MP_HOST_DEVICE MP_ALWAYS_INLINE float float_divide(float a, float b) noexcept {
    return opt_barrier(opt_barrier(a) / opt_barrier(b));
}
MP_HOST_DEVICE MP_ALWAYS_INLINE double double_divide(double a, double b) noexcept {
    return opt_barrier(opt_barrier(a) / opt_barrier(b));
}
MP_HOST_DEVICE MP_ALWAYS_INLINE float float_sqrt(float a) noexcept {
    return opt_barrier(__builtin_sqrtf(opt_barrier(a)));
}
MP_HOST_DEVICE MP_ALWAYS_INLINE double double_sqrt(double a) noexcept {
    return opt_barrier(__builtin_sqrt(opt_barrier(a)));
}
#endif
#undef MP_BINARY_INSTRUCTION
#undef MP_UNARY_INSTRUCTION
#undef MP_REGISTER

#if !defined(MP_ARITHMETIC_BY_INSTRUCTION)
template <class T>
MP_HOST_DEVICE MP_ALWAYS_INLINE T added_by_instruction(T a, T b) noexcept {
    return opt_barrier(opt_barrier(a) + opt_barrier(b));
}
template <class T>
MP_HOST_DEVICE MP_ALWAYS_INLINE T subtracted_by_instruction(T a, T b) noexcept {
    return opt_barrier(opt_barrier(a) - opt_barrier(b));
}
template <class T>
MP_HOST_DEVICE MP_ALWAYS_INLINE T multiplied_by_instruction(T a, T b) noexcept {
    return opt_barrier(opt_barrier(a) * opt_barrier(b));
}
#endif
#undef MP_ARITHMETIC_BY_INSTRUCTION

MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr float float_add(float a, float b) noexcept {
    return __builtin_is_constant_evaluated() ? a + b : added_by_instruction(a, b);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr double double_add(double a, double b) noexcept {
    return __builtin_is_constant_evaluated() ? a + b : added_by_instruction(a, b);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr float float_subtract(float a, float b) noexcept {
    return __builtin_is_constant_evaluated() ? a - b : subtracted_by_instruction(a, b);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr double double_subtract(double a, double b) noexcept {
    return __builtin_is_constant_evaluated() ? a - b : subtracted_by_instruction(a, b);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr float float_multiply(float a, float b) noexcept {
    return __builtin_is_constant_evaluated() ? a * b : multiplied_by_instruction(a, b);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr double double_multiply(double a, double b) noexcept {
    return __builtin_is_constant_evaluated() ? a * b : multiplied_by_instruction(a, b);
}
/// a * b + c, rounded once.
MP_HOST_DEVICE MP_ALWAYS_INLINE float float_multiply_add(float a, float b, float c) noexcept {
    return opt_barrier(fused_multiply_add(opt_barrier(a), opt_barrier(b), opt_barrier(c)));
}

MP_HOST_DEVICE constexpr double double_from_float(float a) {
    return static_cast<double>(a);
}
MP_HOST_DEVICE constexpr float float_from_double(double a) {
    return static_cast<float>(a);
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE

#endif
