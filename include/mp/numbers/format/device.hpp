// SPDX-License-Identifier: MIT
/// \file
/// On the device, the instructions of PTX for numbers of 16 bits; device_conversions.hpp has their
/// conversions, device_pairs.hpp two of them at a time, and device_arithmetic.hpp float and double. Inline
/// PTX instead of <cuda_fp16.h> keeps the core headers free of CUDA's, and an explicit `.rn` without `.ftz`
/// keeps the results the same under nvcc's -ftz, -prec-div and --use_fast_math, and a product and a sum
/// apart.
#pragma once

#include <mp/config.hpp>
#include <mp/numbers/format/exact.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/format/named_formats.hpp>

#if MP_DEVICE_CODE

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Formats that the device computes with by single instructions: binary16 on every architecture that is
/// supported, bfloat16 from sm_80 on.
template <class Format>
inline constexpr bool has_device_instructions =
    is_binary16<Format> || (is_bfloat16<Format> && __CUDA_ARCH__ >= 800);

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

// Comparisons. setp follows IEEE 754 as the integer comparisons of basic_float do: zeros are equal, NaN is
// unordered, and without .ftz subnormal numbers keep their values. Before sm_90 there is none for bfloat16,
// but a shift makes a float of it, exactly; NaN payloads do not affect comparisons.

template <class Format>
inline constexpr bool compares_by_instruction = is_binary16<Format> || is_bfloat16<Format>;

template <class Format>
__device__ __forceinline__ bool device_equal(unsigned short a, unsigned short b) {
    unsigned result;
    if constexpr (is_binary16<Format>) {
        asm("{.reg .pred p; setp.eq.f16 p, %1, %2; selp.u32 %0, 1, 0, p;}" : "=r"(result) : "h"(a), "h"(b));
    } else {
        asm("{.reg .pred p; setp.eq.f32 p, %1, %2; selp.u32 %0, 1, 0, p;}"
            : "=r"(result)
            : "f"(__uint_as_float(unsigned{a} << 16)), "f"(__uint_as_float(unsigned{b} << 16)));
    }
    return result != 0;
}
template <class Format>
__device__ __forceinline__ bool device_less(unsigned short a, unsigned short b) {
    unsigned result;
    if constexpr (is_binary16<Format>) {
        asm("{.reg .pred p; setp.lt.f16 p, %1, %2; selp.u32 %0, 1, 0, p;}" : "=r"(result) : "h"(a), "h"(b));
    } else {
        asm("{.reg .pred p; setp.lt.f32 p, %1, %2; selp.u32 %0, 1, 0, p;}"
            : "=r"(result)
            : "f"(__uint_as_float(unsigned{a} << 16)), "f"(__uint_as_float(unsigned{b} << 16)));
    }
    return result != 0;
}
template <class Format>
__device__ __forceinline__ bool device_less_equal(unsigned short a, unsigned short b) {
    unsigned result;
    if constexpr (is_binary16<Format>) {
        asm("{.reg .pred p; setp.le.f16 p, %1, %2; selp.u32 %0, 1, 0, p;}" : "=r"(result) : "h"(a), "h"(b));
    } else {
        asm("{.reg .pred p; setp.le.f32 p, %1, %2; selp.u32 %0, 1, 0, p;}"
            : "=r"(result)
            : "f"(__uint_as_float(unsigned{a} << 16)), "f"(__uint_as_float(unsigned{b} << 16)));
    }
    return result != 0;
}

// The negative and the magnitude need nothing of this kind: they are one logical instruction on the bits,
// which keeps a NaN as it is, and neg and abs of PTX are free to change it.

/// Whether the device has minimum and maximum of the format. As the library's, they put -0 below +0; next to
/// a NaN they give the other operand, or with .NaN a NaN. The NaN is the canonical one.
template <class Format>
inline constexpr bool orders_by_instruction =
    __CUDA_ARCH__ >= 800 && (is_binary16<Format> || is_bfloat16<Format>);

template <class Format>
__device__ __forceinline__ unsigned short device_choose(unsigned short a, unsigned short b, bool smaller,
                                                        bool propagates_nan) {
    unsigned short result = 0;
#if __CUDA_ARCH__ >= 800
    if constexpr (is_binary16<Format>) {
        if (smaller && propagates_nan) {
            asm("min.NaN.f16 %0, %1, %2;" : "=h"(result) : "h"(a), "h"(b));
        } else if (smaller) {
            asm("min.f16 %0, %1, %2;" : "=h"(result) : "h"(a), "h"(b));
        } else if (propagates_nan) {
            asm("max.NaN.f16 %0, %1, %2;" : "=h"(result) : "h"(a), "h"(b));
        } else {
            asm("max.f16 %0, %1, %2;" : "=h"(result) : "h"(a), "h"(b));
        }
    } else {
        if (smaller && propagates_nan) {
            asm("min.NaN.bf16 %0, %1, %2;" : "=h"(result) : "h"(a), "h"(b));
        } else if (smaller) {
            asm("min.bf16 %0, %1, %2;" : "=h"(result) : "h"(a), "h"(b));
        } else if (propagates_nan) {
            asm("max.NaN.bf16 %0, %1, %2;" : "=h"(result) : "h"(a), "h"(b));
        } else {
            asm("max.bf16 %0, %1, %2;" : "=h"(result) : "h"(a), "h"(b));
        }
    }
#endif
    return result;
}

}}  // namespace mp::detail

#endif
