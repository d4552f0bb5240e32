// SPDX-License-Identifier: MIT
/// \file
/// Single operations of float and double that are rounded by themselves to their type, in constant
/// expressions, too: nothing is fused with them, and no excess precision is left.
#pragma once

#include <mp/config.hpp>
#include <mp/detail/opt_barrier.hpp>

#include <cmath>
#include <cstdint>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// The value as it would be stored.
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr float stored(float x) noexcept {
    return __builtin_is_constant_evaluated() ? x : opt_barrier(x);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr double stored(double x) noexcept {
    return __builtin_is_constant_evaluated() ? x : opt_barrier(x);
}

#if MP_X87_ARITHMETIC && !defined(__CUDACC__)

// The unit rounds to 64 bits if it is left alone, and storing rounds again, which for double is not innocuous
// (see default_floating_point_modes). So it is told to round to 53 while it calculates. Results below 2^-1022
// are still rounded twice.
#define MP_X87_OPERATION(name, instruction)                                        \
    inline double name(double a, double b) noexcept {                              \
        const std::uint16_t modes = 0x027f;                                        \
        std::uint16_t before = 0;                                                  \
        a = stored(a);                                                             \
        b = stored(b);                                                             \
        __asm__ volatile("fnstcw %1\n\tfldcw %2\n\t" instruction " %3\n\tfldcw %1" \
                         : "+t"(a), "+m"(before)                                   \
                         : "m"(modes), "m"(b));                                    \
        return stored(a);                                                          \
    }
MP_X87_OPERATION(x87_sum, "faddl")
MP_X87_OPERATION(x87_product, "fmull")
MP_X87_OPERATION(x87_quotient, "fdivl")
#undef MP_X87_OPERATION

#define MP_ROUNDED_DOUBLE(operation, plain) \
    (__builtin_is_constant_evaluated() ? (plain) : x87_##operation(a, b))

#else
#define MP_ROUNDED_DOUBLE(operation, plain) stored(plain)
#endif

MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr double double_sum(double a, double b) noexcept {
    return MP_ROUNDED_DOUBLE(sum, a + b);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr double double_product(double a, double b) noexcept {
    return MP_ROUNDED_DOUBLE(product, a * b);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr double double_quotient(double a, double b) noexcept {
    return MP_ROUNDED_DOUBLE(quotient, a / stored(b));  // not a product with a reciprocal that is at hand
}
#undef MP_ROUNDED_DOUBLE

/// The square root; not in constant expressions.
MP_HOST_DEVICE MP_ALWAYS_INLINE double double_root(double x) noexcept {
#if MP_X87_ARITHMETIC && !defined(__CUDACC__)
    const std::uint16_t modes = 0x027f;
    std::uint16_t before = 0;
    x = stored(x);
    __asm__ volatile("fnstcw %1\n\tfldcw %2\n\tfsqrt\n\tfldcw %1" : "+t"(x), "+m"(before) : "m"(modes));
    return stored(x);
#else
    return stored(std::sqrt(stored(x)));
#endif
}

/// a b + c, rounded once to nearest even, without the C library, whose function rounds twice on Windows.
///
/// The product is exact in double. The sum is rounded to odd, which its nearest double and the sign of the
/// error tell, and after that to float, whose bits and two more double holds: the same as rounding once (S.
/// Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to
/// odd", 2008). The error is exact, too (Knuth's sum of two numbers), as nothing overflows.
MP_HOST_DEVICE inline float float_multiply_add_by_doubles(float a, float b, float c) noexcept {
    const double product = double_product(static_cast<double>(a), static_cast<double>(b));
    const auto addend = static_cast<double>(c);
    const double sum = double_sum(product, addend);
    const double from_addend = double_sum(sum, -product);
    const double from_product = double_sum(sum, -from_addend);
    const double error = double_sum(double_sum(product, -from_product), double_sum(addend, -from_addend));
    auto bits = __builtin_bit_cast(std::uint64_t, sum);
    const bool finite = (bits >> 52 & 0x7ff) != 0x7ff;
    const auto error_bits = __builtin_bit_cast(std::uint64_t, error);
    if (finite && error_bits << 1 != 0 && (bits & 1) == 0) {
        // Even, so the exact sum lies between it and its neighbour on the side of the error, which is odd.
        bits += (error_bits >> 63) == (bits >> 63) ? 1 : ~std::uint64_t{0};
    }
    return stored(static_cast<float>(__builtin_bit_cast(double, bits)));
}

/// The same by the compiler's means, wherever they can be trusted: not the C library's function on Windows,
/// nor clang under -ffast-math, which multiplies and adds where the target has no instruction for both.
MP_HOST_DEVICE MP_ALWAYS_INLINE float fused_multiply_add(float a, float b, float c) noexcept {
#if (defined(_WIN32) || (defined(__clang__) && defined(__x86_64__))) && !defined(__FMA__) && \
    !defined(__CUDACC__)
    return float_multiply_add_by_doubles(a, b, c);
#else
    return __builtin_fmaf(a, b, c);
#endif
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
