// SPDX-License-Identifier: MIT
/// \file
/// Double arithmetic of which every operation is rounded by itself, on host and device, whatever the compiler
/// was told about fused operations and the order of sums.
#pragma once

#include <mp/config.hpp>

#include <cmath>
#include <cstdint>

namespace mp::detail {

/// The value as it would be stored: no compiler changes the order of sums across it.
MP_HOST_DEVICE MP_ALWAYS_INLINE double rounded_double(double x) noexcept {
#if defined(__SSE2__) && defined(__GNUC__) && !defined(__CUDACC__)
    __asm__("" : "+x"(x));
#elif defined(__GNUC__) && !defined(__CUDACC__)
    __asm__("" : "+m"(x));
#endif
    return x;
}

/// A product that nothing is fused with.
MP_HOST_DEVICE MP_ALWAYS_INLINE double double_multiply(double a, double b) noexcept {
#if MP_DEVICE_CODE
    double result;
    asm("mul.rn.f64 %0, %1, %2;" : "=d"(result) : "d"(a), "d"(b));
    return result;
#else
    return rounded_double(a * b);
#endif
}

/// The square root, correctly rounded.
MP_HOST_DEVICE MP_ALWAYS_INLINE double double_sqrt(double x) noexcept {
#if MP_DEVICE_CODE
    double result;
    asm("sqrt.rn.f64 %0, %1;" : "=d"(result) : "d"(x));
    return result;
#else
    return std::sqrt(x);
#endif
}

/// base^exponent by squaring, with the same bits everywhere; of a base in [0, 1) to within
/// 2^-53 * exponent * base^exponent, which is at most 2^-54 / (1 - base).
MP_HOST_DEVICE inline double double_power(double base, std::uint64_t exponent) noexcept {
    double result = 1.0;
    for (; exponent != 0; exponent >>= 1) {
        if ((exponent & 1) != 0) result = double_multiply(result, base);
        base = double_multiply(base, base);
    }
    return result;
}

}  // namespace mp::detail
