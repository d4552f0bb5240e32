// SPDX-License-Identifier: MIT
/// \file
/// Arithmetic on the device of two 16-bit numbers in one 32-bit register, by single instructions of PTX:
/// those of device.hpp for each half, which round once, honour subnormal numbers and keep a product and a sum
/// apart.
#pragma once

#include <mp/config.hpp>
#include <mp/numbers/format/device.hpp>

#include <cstdint>

#if MP_DEVICE_CODE

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// a * b + c
template <class Format>
__device__ __forceinline__ std::uint32_t device_pair_multiply_add(std::uint32_t a, std::uint32_t b,
                                                                  std::uint32_t c) {
    std::uint32_t result = 0;
    if constexpr (is_binary16<Format>) {
        asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
    } else {
#if __CUDA_ARCH__ >= 800
        asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
#endif
    }
    return result;
}

// For bfloat16 as fused multiply-adds, as in device.hpp. The instructions that sm_90 has for them besides are
// no faster.

template <class Format>
__device__ __forceinline__ std::uint32_t device_pair_add(std::uint32_t a, std::uint32_t b) {
    if constexpr (is_binary16<Format>) {
        std::uint32_t result;
        asm("add.rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
        return result;
    } else {
        return device_pair_multiply_add<Format>(a, 0x3f803f80, b);
    }
}
template <class Format>
__device__ __forceinline__ std::uint32_t device_pair_subtract(std::uint32_t a, std::uint32_t b) {
    if constexpr (is_binary16<Format>) {
        std::uint32_t result;
        asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
        return result;
    } else {
        return device_pair_multiply_add<Format>(b, 0xbf80bf80, a);
    }
}
template <class Format>
__device__ __forceinline__ std::uint32_t device_pair_multiply(std::uint32_t a, std::uint32_t b) {
    if constexpr (is_binary16<Format>) {
        std::uint32_t result;
        asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
        return result;
    } else {
        return device_pair_multiply_add<Format>(a, b, 0x80008000);
    }
}

/// device_choose of each half.
template <class Format>
__device__ __forceinline__ std::uint32_t device_pair_choose(std::uint32_t a, std::uint32_t b, bool smaller,
                                                            bool propagates_nan) {
    std::uint32_t result = 0;
#if __CUDA_ARCH__ >= 800
    if constexpr (is_binary16<Format>) {
        if (smaller && propagates_nan) {
            asm("min.NaN.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
        } else if (smaller) {
            asm("min.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
        } else if (propagates_nan) {
            asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
        } else {
            asm("max.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
        }
    } else {
        if (smaller && propagates_nan) {
            asm("min.NaN.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
        } else if (smaller) {
            asm("min.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
        } else if (propagates_nan) {
            asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
        } else {
            asm("max.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
        }
    }
#endif
    return result;
}

/// Whether both halves are compared by one instruction.
template <class Format>
inline constexpr bool compares_pairs_by_instruction =
    is_binary16<Format> || (is_bfloat16<Format> && __CUDA_ARCH__ >= 900);

enum class pair_relation : unsigned char { equal, less, less_equal };

/// All ones in the halves for which the relation holds, zeros in the others. As for scalars, a NaN has none.
template <class Format>
__device__ __forceinline__ std::uint32_t device_pair_compare(std::uint32_t a, std::uint32_t b,
                                                             pair_relation relation) {
    std::uint32_t result = 0;
    if constexpr (is_binary16<Format>) {
        if (relation == pair_relation::equal) {
            asm("set.eq.u32.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
        } else if (relation == pair_relation::less) {
            asm("set.lt.u32.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
        } else {
            asm("set.le.u32.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
        }
    } else {
#if __CUDA_ARCH__ >= 900
        if (relation == pair_relation::equal) {
            asm("set.eq.u32.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
        } else if (relation == pair_relation::less) {
            asm("set.lt.u32.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
        } else {
            asm("set.le.u32.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
        }
#endif
    }
    return result;
}

}}  // namespace mp::detail

#endif
