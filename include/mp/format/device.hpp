// SPDX-License-Identifier: MIT
/// \file
/// Float arithmetic, and on the device the instructions of PTX for narrow formats. Inline PTX instead of
/// <cuda_fp16.h> keeps the core headers free of CUDA's, and an explicit `.rn` without `.ftz` keeps the
/// results the same under nvcc's -ftz, -prec-div and --use_fast_math.
#pragma once

#include <mp/config.hpp>
#include <mp/format/exact.hpp>
#include <mp/format/named_formats.hpp>

namespace mp::detail {

template <class Format>
inline constexpr bool is_binary16 =
    layout_of<Format>::is_ieee&& layout_of<Format>::width == 16 && Format::exponent_bits == 5 &&
    Format::fraction_bits == 10 && Format::bias == 15;

template <class Format>
inline constexpr bool is_bfloat16 =
    layout_of<Format>::is_ieee&& layout_of<Format>::width == 16 && Format::exponent_bits == 8 &&
    Format::fraction_bits == 7 && Format::bias == 127;

#if MP_DEVICE_CODE

__device__ __forceinline__ float float_add(float a, float b) {
    float result;
    asm("add.rn.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}
__device__ __forceinline__ float float_multiply(float a, float b) {
    float result;
    asm("mul.rn.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}
__device__ __forceinline__ float float_divide(float a, float b) {
    float result;
    asm("div.rn.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}
__device__ __forceinline__ float float_sqrt(float a) {
    float result;
    asm("sqrt.rn.f32 %0, %1;" : "=f"(result) : "f"(a));
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

/// Formats that the device converts from and to float, and computes with, by single instructions: binary16 on
/// every architecture that is supported, bfloat16 from sm_80 on.
template <class Format>
inline constexpr bool has_device_instructions = is_binary16<Format> ||
                                                (is_bfloat16<Format> && __CUDA_ARCH__ >= 800);

/// The instruction makes every NaN canonical; sign and payload are put back by hand.
template <class Format>
__device__ __forceinline__ typename layout_of<Format>::storage device_narrow(float x) {
    unsigned short result;
    if constexpr (is_binary16<Format>) {
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result) : "f"(x));
    } else {
#if __CUDA_ARCH__ >= 800
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result) : "f"(x));
#else
        result = 0;
#endif
    }
    const unsigned bits = __float_as_uint(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return convert_nan<Format, formats::binary32>(bits);
    return result;
}

/// Exact, subnormals included; NaN as above. For bfloat16 there is nothing better than a shift.
__device__ __forceinline__ float device_widen_binary16(unsigned short bits) {
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(bits));
    if ((bits & 0x7fffu) > 0x7c00u) {
        return __uint_as_float(convert_nan<formats::binary32, formats::binary16>(bits));
    }
    return result;
}

/// a * b + c, rounded once, with subnormals; a NaN is the canonical one.
template <class Format>
__device__ __forceinline__ typename layout_of<Format>::storage device_multiply_add(
    typename layout_of<Format>::storage a, typename layout_of<Format>::storage b,
    typename layout_of<Format>::storage c) {
    unsigned short result;
    if constexpr (is_binary16<Format>) {
        asm("fma.rn.f16 %0, %1, %2, %3;" : "=h"(result) : "h"(a), "h"(b), "h"(c));
    } else {
#if __CUDA_ARCH__ >= 800
        asm("fma.rn.bf16 %0, %1, %2, %3;" : "=h"(result) : "h"(a), "h"(b), "h"(c));
#else
        result = 0;
#endif
    }
    return result;
}

// The other operations on bfloat16 are instructions of their own only from sm_90 on. As fused multiply-adds
// they are exact up to the one rounding as well, and the zeros come out with the right signs: -0 is what does
// not change any product that is added to it, and 1 * a + b and -1 * b + a add the zeros that a + b and a - b
// add.

template <class Format>
__device__ __forceinline__ typename layout_of<Format>::storage device_add(
    typename layout_of<Format>::storage a, typename layout_of<Format>::storage b) {
    if constexpr (is_binary16<Format>) {
        unsigned short result;
        asm("add.rn.f16 %0, %1, %2;" : "=h"(result) : "h"(a), "h"(b));
        return result;
    } else {
        return device_multiply_add<Format>(a, 0x3f80, b);
    }
}
template <class Format>
__device__ __forceinline__ typename layout_of<Format>::storage device_subtract(
    typename layout_of<Format>::storage a, typename layout_of<Format>::storage b) {
    if constexpr (is_binary16<Format>) {
        unsigned short result;
        asm("sub.rn.f16 %0, %1, %2;" : "=h"(result) : "h"(a), "h"(b));
        return result;
    } else {
        return device_multiply_add<Format>(b, 0xbf80, a);
    }
}
template <class Format>
__device__ __forceinline__ typename layout_of<Format>::storage device_multiply(
    typename layout_of<Format>::storage a, typename layout_of<Format>::storage b) {
    if constexpr (is_binary16<Format>) {
        unsigned short result;
        asm("mul.rn.f16 %0, %1, %2;" : "=h"(result) : "h"(a), "h"(b));
        return result;
    } else {
        return device_multiply_add<Format>(a, b, 0x8000);
    }
}

#else

MP_HOST_DEVICE constexpr float float_add(float a, float b) {
    return a + b;
}
MP_HOST_DEVICE constexpr float float_multiply(float a, float b) {
    return a * b;
}
MP_HOST_DEVICE inline float float_divide(float a, float b) {
    return a / b;
}
MP_HOST_DEVICE inline float float_sqrt(float a) {
    return __builtin_sqrtf(a);
}
MP_HOST_DEVICE constexpr double double_from_float(float a) {
    return static_cast<double>(a);
}
MP_HOST_DEVICE constexpr float float_from_double(double a) {
    return static_cast<float>(a);
}

#endif

}  // namespace mp::detail
