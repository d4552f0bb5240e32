// SPDX-License-Identifier: MIT
/// \file
/// Float arithmetic, and on the device the instructions of PTX for narrow formats. Inline PTX instead of
/// <cuda_fp16.h> keeps the core headers free of CUDA's, and an explicit `.rn` without `.ftz` keeps the
/// results the same under nvcc's -ftz, -prec-div and --use_fast_math.
#pragma once

#include <mp/config.hpp>
#include <mp/format/exact.hpp>

namespace mp::detail {

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

/// cvt.rn.f16.f32 is in every architecture that is supported, cvt.rn.bf16.f32 from sm_80 on.
template <class Format>
inline constexpr bool device_narrows = (Format::exponent_bits == 5 && Format::fraction_bits == 10 &&
                                        Format::nans == nan_encoding::ieee) ||
                                       (__CUDA_ARCH__ >= 800 && Format::exponent_bits == 8 &&
                                        Format::fraction_bits == 7 && Format::nans == nan_encoding::ieee);

/// The instruction makes every NaN canonical; sign and payload are put back by hand.
template <class Format>
__device__ __forceinline__ typename layout_of<Format>::storage device_narrow(float x) {
    unsigned short result;
    if constexpr (Format::exponent_bits == 5) {
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

/// fma.rn.f16 is in every architecture that is supported, fma.rn.bf16 from sm_80 on.
template <class Format>
inline constexpr bool device_fma = device_narrows<Format>;

template <class Format>
__device__ __forceinline__ typename layout_of<Format>::storage device_multiply_add(
    typename layout_of<Format>::storage a, typename layout_of<Format>::storage b,
    typename layout_of<Format>::storage c) {
    unsigned short result;
    if constexpr (Format::exponent_bits == 5) {
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

#endif

}  // namespace mp::detail
