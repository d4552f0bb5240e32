// SPDX-License-Identifier: MIT
/// \file
/// Four floats for the portable kernels of the optimizers, under the names that vectors.inl gives to the
/// vectors of an instruction set; one float where the compiler has no vector types.
///
/// Every operation here is rounded to float by itself, whatever the compiler was told about fused operations,
/// reciprocals and the order of sums (-ffp-contract, -ffast-math): so that all kernels have the same bits.
#pragma once

#include <mp/config.hpp>

#include <cmath>
#include <cstddef>
#include <cstring>

namespace mp::detail::inline MP_ISA_NAMESPACE::portable_vectors {

#if MP_X87_ARITHMETIC && !defined(__CUDACC__)

inline constexpr std::size_t lanes = 1;
using floats = float;

/// The value as it would be stored, which is what rounds it: see default_floating_point_modes.
MP_ALWAYS_INLINE floats rounded(floats x) {
    __asm__("" : "+m"(x));
    return x;
}
MP_ALWAYS_INLINE floats square_root(floats x) {
    __asm__("fsqrt" : "+t"(x));
    return rounded(x);
}
MP_ALWAYS_INLINE floats quotient(floats a, floats b) {
    return rounded(a / b);
}

#elif defined(__GNUC__) && !defined(__CUDACC__)

inline constexpr std::size_t lanes = 4;
typedef float floats __attribute__((vector_size(16)));  // NOLINT(modernize-use-using)

/// The value as it would be stored: no compiler looks through it.
MP_ALWAYS_INLINE floats rounded(floats x) {
#if defined(__SSE2__)
    __asm__("" : "+x"(x));
#elif defined(__aarch64__)
    __asm__("" : "+w"(x));
#else
    __asm__("" : "+m"(x));
#endif
    return x;
}

/// The square root and the quotient, correctly rounded.
MP_ALWAYS_INLINE floats square_root(floats x) {
#if defined(__AVX__)
    __asm__("vsqrtps %0, %0" : "+x"(x));
#elif defined(__SSE2__)
    __asm__("sqrtps %0, %0" : "+x"(x));
#elif defined(__aarch64__)
    __asm__("fsqrt %0.4s, %0.4s" : "+w"(x));
#else
    for (std::size_t i = 0; i < lanes; ++i) x[i] = std::sqrt(x[i]);
    x = rounded(x);
#endif
    return x;
}
MP_ALWAYS_INLINE floats quotient(floats a, floats b) {
#if defined(__AVX__)
    __asm__("vdivps %1, %0, %0" : "+x"(a) : "x"(b));
#elif defined(__SSE2__)
    __asm__("divps %1, %0" : "+x"(a) : "x"(b));
#elif defined(__aarch64__)
    __asm__("fdiv %0.4s, %0.4s, %1.4s" : "+w"(a) : "w"(b));
#else
    a = rounded(a / b);
#endif
    return a;
}

#else

inline constexpr std::size_t lanes = 1;
using floats = float;

MP_HOST_DEVICE MP_ALWAYS_INLINE floats rounded(floats x) {
    return x;
}
MP_HOST_DEVICE MP_ALWAYS_INLINE floats square_root(floats x) {
    return std::sqrt(x);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE floats quotient(floats a, floats b) {
    return a / b;
}

#endif

MP_HOST_DEVICE MP_ALWAYS_INLINE floats all_lanes(float x) {
    return floats{} + x;
}
MP_HOST_DEVICE MP_ALWAYS_INLINE floats load(const float* from) {
    floats x;
    std::memcpy(&x, from, sizeof x);
    return x;
}
MP_HOST_DEVICE MP_ALWAYS_INLINE void store(float* to, floats x) {
    std::memcpy(to, &x, sizeof x);
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE::portable_vectors
