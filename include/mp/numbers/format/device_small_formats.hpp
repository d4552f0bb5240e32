// SPDX-License-Identifier: MIT
/// \file
/// The conversion instructions of PTX for formats of 8 bits and fewer, which take two numbers at a time.
#pragma once

#include <mp/config.hpp>
#include <mp/numbers/format/conversion_repairs.hpp>

#include <cstdint>

#if MP_DEVICE_CODE

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Formats that cvt.rn.satfinite makes of two floats: OCP's 8-bit ones from sm_89 on, and those of 6 and 4
/// bits where the code is compiled for a family of architectures that has them, such as sm_100a, 100f or
/// 120a.
template <class Format>
inline constexpr bool narrows_to_small_by_instruction =
    (__CUDA_ARCH__ >= 890 && (is_e4m3fn<Format> || is_e5m2<Format>))
#if __CUDA_ARCH__ >= 1000 && defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
    || is_e2m3fn<Format> || is_e3m2fn<Format> || is_e2m1fn<Format>
#endif
    ;

/// Two floats rounded to nearest even, too large ones and infinities to the largest finite number; each in a
/// byte, the first one in the lower. NaN gives some NaN, or the largest number where there is none.
template <class Format>
__device__ __forceinline__ std::uint32_t device_satfinite_pair(float first, float second) {
    unsigned short result = 0;
#if __CUDA_ARCH__ >= 890
    if constexpr (is_e4m3fn<Format>)
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(result) : "f"(second), "f"(first));
    if constexpr (is_e5m2<Format>)
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(result) : "f"(second), "f"(first));
#endif
#if __CUDA_ARCH__ >= 1000 && defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
    if constexpr (is_e2m3fn<Format>)
        asm("cvt.rn.satfinite.e2m3x2.f32 %0, %1, %2;" : "=h"(result) : "f"(second), "f"(first));
    if constexpr (is_e3m2fn<Format>)
        asm("cvt.rn.satfinite.e3m2x2.f32 %0, %1, %2;" : "=h"(result) : "f"(second), "f"(first));
    if constexpr (is_e2m1fn<Format>) {
        // Both codes come in one byte, the first one in the low four bits.
        asm("{.reg .b8 both; cvt.rn.satfinite.e2m1x2.f32 both, %1, %2; mov.b16 %0, {both, 0};}"
            : "=h"(result)
            : "f"(second), "f"(first));
        return (result & 0xfu) | ((result & 0xf0u) << 4);
    }
#endif
    return result;
}

/// As device_satfinite_pair(), for halves next to each other, from sm_89 on to the 8-bit formats.
template <class Format>
inline constexpr bool narrows_halves_by_instruction =
    __CUDA_ARCH__ >= 890 && (is_e4m3fn<Format> || is_e5m2<Format>);

template <class Format>
__device__ __forceinline__ std::uint32_t device_satfinite_halves([[maybe_unused]] std::uint32_t halves) {
    unsigned short result = 0;
#if __CUDA_ARCH__ >= 890
    if constexpr (is_e4m3fn<Format>) {
        asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(result) : "r"(halves));
    } else {
        asm("cvt.rn.satfinite.e5m2x2.f16x2 %0, %1;" : "=h"(result) : "r"(halves));
    }
#endif
    return result;
}

/// The product of two pairs of halves, one by one.
__device__ __forceinline__ std::uint32_t device_multiply_binary16_pair(std::uint32_t a, std::uint32_t b) {
    std::uint32_t result;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
    return result;
}

/// Two codes of a format of up to 8 bits as two halves, exactly; NaNs, which the caller has looked for with
/// pair_has_nan, come out as anything.
template <class Format>
__device__ __forceinline__ std::uint32_t device_widen_pair_to_binary16(std::uint32_t codes) {
#if __CUDA_ARCH__ >= 890
    if constexpr (is_e4m3fn<Format>) {
        std::uint32_t result;
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(result) : "h"(static_cast<unsigned short>(codes)));
        return result;
    }
#endif
    return widen_pair<Format>(
        codes, [](std::uint32_t a, std::uint32_t b) { return device_multiply_binary16_pair(a, b); });
}

}}  // namespace mp::detail

#endif
