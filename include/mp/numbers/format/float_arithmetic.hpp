// SPDX-License-Identifier: MIT
/// \file
/// Single operations of float and double, each rounded by itself to its type: IEEE 754's whatever the
/// including project is compiled with (-ffast-math, whole or in parts, reciprocal estimates, contraction),
/// without excess precision, in constant expressions, too. On devices they are instructions of PTX, whose explicit
/// `.rn` without `.ftz` keeps the results the same under nvcc's -ftz, -prec-div and --use_fast_math.
///
/// They round in the direction that the caller has set, but where float_arithmetic_rounds_to_nearest, and
/// flush what the caller flushes; whoever uses them says why that does no harm, or sets
/// default_floating_point_modes.
#pragma once

#include <mp/base/opt_barrier.hpp>
#include <mp/config.hpp>

#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

#if MP_DEVICE_CODE || (defined(__AVX512F__) && defined(__GNUC__) && !defined(__CUDACC__))
/// Whether the functions below round to nearest even whatever direction the caller has set: the instructions
/// of AVX-512 and PTX carry theirs.
inline constexpr bool float_arithmetic_rounds_to_nearest = true;
#else
inline constexpr bool float_arithmetic_rounds_to_nearest = false;
#endif

// As instructions, which no compiler looks through: none takes an estimate and a step of Newton's iteration
// for a quotient or a root (clang's -mrecip even for single numbers), calls the C library for errno, fuses,
// or sees that a number is subtracted from itself. Those of x86 are in both notations of assembly.
#if MP_DEVICE_CODE || (defined(__GNUC__) && (defined(__SSE2__) || defined(__aarch64__)))
#if MP_DEVICE_CODE
#define MP_BINARY_INSTRUCTION(name, kind, bits, operand) \
    asm(name ".rn.f" bits " %0, %1, %2;" : "=" operand(result) : operand(a), operand(b))
#define MP_ROOT_INSTRUCTION(kind, bits, operand) \
    asm("sqrt.rn.f" bits " %0, %1;" : "=" operand(result) : operand(a))
#elif defined(__aarch64__)
#define MP_BINARY_INSTRUCTION(name, kind, bits, operand) \
    __asm__("f" name " %" kind "0, %" kind "1, %" kind "2" : "=w"(result) : "w"(a), "w"(b))
#define MP_ROOT_INSTRUCTION(kind, bits, operand) \
    __asm__("fsqrt %" kind "0, %" kind "1" : "=w"(result) : "w"(a))
#elif defined(__AVX512F__) && !defined(__CUDACC__)
#define MP_BINARY_INSTRUCTION(name, kind, bits, operand)                                            \
    __asm__("{v" name "s" kind " %{rn-sae%}, %2, %1, %0|v" name "s" kind " %0, %1, %2, %{rn-sae%}}" \
            : "=v"(result)                                                                          \
            : "v"(a), "v"(b))
#define MP_ROOT_INSTRUCTION(kind, bits, operand)                                            \
    __asm__("{vsqrts" kind " %{rn-sae%}, %1, %1, %0|vsqrts" kind " %0, %1, %1, %{rn-sae%}}" \
            : "=v"(result)                                                                  \
            : "v"(a))
#else
// clang takes memory wherever it is allowed, and stores what is in a register.
#if defined(__clang__)
#define MP_OPERAND "x"
#else
#define MP_OPERAND "xm"
#endif
#if defined(__AVX__)
#define MP_BINARY_INSTRUCTION(name, kind, bits, operand)                    \
    __asm__("{v" name "s" kind " %2, %1, %0|v" name "s" kind " %0, %1, %2}" \
            : "=x"(result)                                                  \
            : "x"(a), MP_OPERAND(b))
#define MP_ROOT_INSTRUCTION(kind, bits, operand) \
    __asm__("{vsqrts" kind " %1, %1, %0|vsqrts" kind " %0, %1, %1}" : "=x"(result) : "x"(a))
#else
#define MP_BINARY_INSTRUCTION(name, kind, bits, operand) \
    __asm__("{" name "s" kind " %2, %0|" name "s" kind " %0, %2}" : "=x"(result) : "0"(a), MP_OPERAND(b))
#define MP_ROOT_INSTRUCTION(kind, bits, operand) \
    __asm__("{sqrts" kind " %0, %0|sqrts" kind " %0, %0}" : "=x"(result) : "0"(a))
#endif
#endif
#define MP_BINARY_OPERATION(function, type, name, kind, bits, operand)       \
    MP_HOST_DEVICE MP_ALWAYS_INLINE type function(type a, type b) noexcept { \
        type result;                                                         \
        MP_BINARY_INSTRUCTION(name, kind, bits, operand);                    \
        return result;                                                       \
    }
#define MP_OPERATIONS(type, kind, bits, operand)                                     \
    MP_BINARY_OPERATION(added_by_instruction, type, "add", kind, bits, operand)      \
    MP_BINARY_OPERATION(subtracted_by_instruction, type, "sub", kind, bits, operand) \
    MP_BINARY_OPERATION(multiplied_by_instruction, type, "mul", kind, bits, operand) \
    MP_BINARY_OPERATION(divided_by_instruction, type, "div", kind, bits, operand)    \
    MP_HOST_DEVICE MP_ALWAYS_INLINE type root_by_instruction(type a) noexcept {      \
        type result;                                                                 \
        MP_ROOT_INSTRUCTION(kind, bits, operand);                                    \
        return result;                                                               \
    }
MP_OPERATIONS(float, "s", "32", "f")
MP_OPERATIONS(double, "d", "64", "d")
#undef MP_OPERATIONS
#undef MP_BINARY_OPERATION
#undef MP_OPERAND
#undef MP_ROOT_INSTRUCTION
#undef MP_BINARY_INSTRUCTION

#else

// Compilers for other processors do not estimate a single quotient whose divisor they see once.
#define MP_BARRED_OPERATIONS(type, square_root)                                               \
    MP_HOST_DEVICE MP_ALWAYS_INLINE type added_by_instruction(type a, type b) noexcept {      \
        return opt_barrier(opt_barrier(a) + opt_barrier(b));                                  \
    }                                                                                         \
    MP_HOST_DEVICE MP_ALWAYS_INLINE type subtracted_by_instruction(type a, type b) noexcept { \
        return opt_barrier(opt_barrier(a) - opt_barrier(b));                                  \
    }                                                                                         \
    MP_HOST_DEVICE MP_ALWAYS_INLINE type multiplied_by_instruction(type a, type b) noexcept { \
        return opt_barrier(opt_barrier(a) * opt_barrier(b));                                  \
    }                                                                                         \
    MP_HOST_DEVICE MP_ALWAYS_INLINE type divided_by_instruction(type a, type b) noexcept {    \
        return opt_barrier(opt_barrier(a) / opt_barrier(b));                                  \
    }                                                                                         \
    MP_HOST_DEVICE MP_ALWAYS_INLINE type root_by_instruction(type a) noexcept {               \
        return opt_barrier(square_root(opt_barrier(a)));                                      \
    }
MP_BARRED_OPERATIONS(float, __builtin_sqrtf)
#if !MP_X87_ARITHMETIC || defined(__CUDACC__)
MP_BARRED_OPERATIONS(double, __builtin_sqrt)
#else
// The unit rounds to 64 bits if it is left alone, and storing rounds again, which for float is innocuous, but
// not for double (see default_floating_point_modes). So it is told to round to 53 while it calculates, and to
// nearest. Results below 2^-1022 are still rounded twice.
#define MP_X87_OPERATION(function, instruction)                                    \
    inline double function(double a, double b) noexcept {                          \
        const std::uint16_t modes = 0x027f;                                        \
        std::uint16_t before = 0;                                                  \
        a = opt_barrier(a);                                                        \
        b = opt_barrier(b);                                                        \
        __asm__ volatile("fnstcw %1\n\tfldcw %2\n\t" instruction " %3\n\tfldcw %1" \
                         : "+t"(a), "+m"(before)                                   \
                         : "m"(modes), "m"(b));                                    \
        return opt_barrier(a);                                                     \
    }
MP_X87_OPERATION(added_by_instruction, "faddl")
MP_X87_OPERATION(subtracted_by_instruction, "fsubl")
MP_X87_OPERATION(multiplied_by_instruction, "fmull")
MP_X87_OPERATION(divided_by_instruction, "fdivl")
#undef MP_X87_OPERATION
inline double root_by_instruction(double a) noexcept {
    const std::uint16_t modes = 0x027f;
    std::uint16_t before = 0;
    a = opt_barrier(a);
    __asm__ volatile("fnstcw %1\n\tfldcw %2\n\tfsqrt\n\tfldcw %1" : "+t"(a), "+m"(before) : "m"(modes));
    return opt_barrier(a);
}
#endif
#undef MP_BARRED_OPERATIONS

#endif

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
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr float float_divide(float a, float b) noexcept {
    return __builtin_is_constant_evaluated() ? a / b : divided_by_instruction(a, b);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr double double_divide(double a, double b) noexcept {
    return __builtin_is_constant_evaluated() ? a / b : divided_by_instruction(a, b);
}
/// The square root; not in constant expressions.
MP_HOST_DEVICE MP_ALWAYS_INLINE float float_sqrt(float a) noexcept {
    return root_by_instruction(a);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE double double_sqrt(double a) noexcept {
    return root_by_instruction(a);
}

/// a b + c, rounded once to nearest even, without the C library, whose function rounds twice on Windows.
///
/// The product is exact in double. The sum is rounded to odd, which its nearest double and the sign of the
/// error tell, and after that to float, whose bits and two more double holds: the same as rounding once (S.
/// Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to
/// odd", 2008). The error is exact, too (Knuth's sum of two numbers), as nothing overflows.
MP_HOST_DEVICE inline float float_multiply_add_by_doubles(float a, float b, float c) noexcept {
    const double product = double_multiply(static_cast<double>(a), static_cast<double>(b));
    const auto addend = static_cast<double>(c);
    const double sum = double_add(product, addend);
    const double from_addend = double_subtract(sum, product);
    const double from_product = double_subtract(sum, from_addend);
    const double error =
        double_add(double_subtract(product, from_product), double_subtract(addend, from_addend));
    auto bits = __builtin_bit_cast(std::uint64_t, sum);
    const bool finite = (bits >> 52 & 0x7ff) != 0x7ff;
    const auto error_bits = __builtin_bit_cast(std::uint64_t, error);
    if (finite && error_bits << 1 != 0 && (bits & 1) == 0) {
        // Even, so the exact sum lies between it and its neighbour on the side of the error, which is odd.
        bits += (error_bits >> 63) == (bits >> 63) ? 1 : ~std::uint64_t{0};
    }
    return opt_barrier(static_cast<float>(__builtin_bit_cast(double, bits)));
}

/// As float_multiply_add_by_doubles(), by the compiler's means, wherever they can be trusted: not the C
/// library's function on Windows, nor beside the x87 unit, where it may round in the direction of the vector
/// unit, nor clang under
/// -ffast-math, which multiplies and adds where the target has no instruction for both.
MP_HOST_DEVICE MP_ALWAYS_INLINE float fused_multiply_add(float a, float b, float c) noexcept {
#if (defined(_WIN32) || MP_X87_ARITHMETIC || (defined(__clang__) && defined(__x86_64__))) && \
    !defined(__FMA__) && !defined(__CUDACC__)
    return float_multiply_add_by_doubles(a, b, c);
#else
    return __builtin_fmaf(a, b, c);
#endif
}

#if MP_DEVICE_CODE
__device__ __forceinline__ float float_multiply_add(float a, float b, float c) {
    float result;
    asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(result) : "f"(a), "f"(b), "f"(c));
    return result;
}
__device__ __forceinline__ double double_from_float(float a) {
    double result;
    asm("cvt.f64.f32 %0, %1;" : "=d"(result) : "f"(a));
    return result;
}
__device__ __forceinline__ float float_from_double(double a) {
    float result;
    asm("cvt.rn.f32.f64 %0, %1;" : "=f"(result) : "d"(a));
    return result;
}
#else
/// fused_multiply_add with operands and result behind opt_barrier.
MP_HOST_DEVICE MP_ALWAYS_INLINE float float_multiply_add(float a, float b, float c) noexcept {
    return opt_barrier(fused_multiply_add(opt_barrier(a), opt_barrier(b), opt_barrier(c)));
}

MP_HOST_DEVICE constexpr double double_from_float(float a) {
    return static_cast<double>(a);
}
MP_HOST_DEVICE constexpr float float_from_double(double a) {
    return static_cast<float>(a);
}
#endif

}}  // namespace mp::detail
