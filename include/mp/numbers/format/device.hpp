// SPDX-License-Identifier: MIT
/// \file
/// On the device, the instructions of PTX for numbers of 16 bits, one in a register of 16 bits or two in one of 32;
/// device_conversions.hpp has their conversions, and float_arithmetic.hpp float and double. Inline PTX instead of
/// <cuda_fp16.h> keeps the core headers free of CUDA's, and an explicit `.rn` without `.ftz` keeps the results the
/// same under nvcc's -ftz, -prec-div and --use_fast_math, and a product and a sum apart.
#pragma once

#include <mp/config.hpp>
#include <mp/numbers/format/exact.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/format/named_formats.hpp>

#include <cstdint>

namespace mp::detail {

enum class pair_relation : unsigned char { equal, less, less_equal };

}  // namespace mp::detail

#if MP_DEVICE_CODE

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Formats that the device computes with by single instructions: binary16 on every architecture that is
/// supported, bfloat16 from sm_80 on.
template <class Format>
inline constexpr bool has_device_instructions =
    is_binary16<Format> || (is_bfloat16<Format> && __CUDA_ARCH__ >= 800);

/// The code in each half of the register.
template <class Register>
__device__ constexpr Register in_each_half(unsigned short code) {
    return static_cast<Register>(sizeof(Register) == 2 ? code : code * 0x10001u);
}

/// a * b + c, rounded once, with subnormals; a NaN is the canonical one.
template <class Format, class Register>
__device__ __forceinline__ Register device_multiply_add(Register a, Register b, Register c) {
    Register result = 0;
#define MP_MULTIPLY_ADD(type)                                                             \
    if constexpr (sizeof(Register) == 2) {                                                \
        asm("fma.rn." type " %0, %1, %2, %3;" : "=h"(result) : "h"(a), "h"(b), "h"(c));   \
    } else {                                                                              \
        asm("fma.rn." type "x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c)); \
    }
    if constexpr (is_binary16<Format>) {
        MP_MULTIPLY_ADD("f16")
    } else if constexpr (__CUDA_ARCH__ >= 800) {
        MP_MULTIPLY_ADD("bf16")
    }
#undef MP_MULTIPLY_ADD
    return result;
}

// The other operations on bfloat16 are instructions of their own only from sm_90 on. As fused multiply-adds
// they are exact up to the one rounding as well, and the zeros come out with the right signs: -0 is what does
// not change any product that is added to it, and 1 * a + b and -1 * b + a add the zeros that a + b and a - b
// add. The instructions that sm_90 has for two of them are no faster.

#define MP_BINARY(instruction)                                             \
    if constexpr (sizeof(Register) == 2) {                                 \
        asm(instruction " %0, %1, %2;" : "=h"(result) : "h"(a), "h"(b));   \
    } else {                                                               \
        asm(instruction "x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b)); \
    }
#define MP_OPERATION(function, instruction, ...)                           \
    template <class Format, class Register>                                \
    __device__ __forceinline__ Register function(Register a, Register b) { \
        if constexpr (is_binary16<Format>) {                               \
            Register result;                                               \
            MP_BINARY(instruction ".rn.f16")                               \
            return result;                                                 \
        } else {                                                           \
            return device_multiply_add<Format>(__VA_ARGS__);               \
        }                                                                  \
    }
MP_OPERATION(device_add, "add", a, in_each_half<Register>(0x3f80), b)
MP_OPERATION(device_subtract, "sub", b, in_each_half<Register>(0xbf80), a)
MP_OPERATION(device_multiply, "mul", a, b, in_each_half<Register>(0x8000))
#undef MP_OPERATION

// Comparisons. setp follows IEEE 754 as the integer comparisons of basic_float do: zeros are equal, NaN is
// unordered, and without .ftz subnormal numbers keep their values. Before sm_90 there is none for bfloat16,
// but a shift makes a float of it, exactly; NaN payloads do not affect comparisons.

template <class Format>
inline constexpr bool compares_by_instruction = is_binary16<Format> || is_bfloat16<Format>;

#define MP_COMPARISON(function, relation)                                                            \
    template <class Format>                                                                          \
    __device__ __forceinline__ bool function(unsigned short a, unsigned short b) {                   \
        unsigned result;                                                                             \
        if constexpr (is_binary16<Format>) {                                                         \
            asm("{.reg .pred p; setp." relation ".f16 p, %1, %2; selp.u32 %0, 1, 0, p;}"             \
                : "=r"(result)                                                                       \
                : "h"(a), "h"(b));                                                                   \
        } else {                                                                                     \
            asm("{.reg .pred p; setp." relation ".f32 p, %1, %2; selp.u32 %0, 1, 0, p;}"             \
                : "=r"(result)                                                                       \
                : "f"(__uint_as_float(unsigned{a} << 16)), "f"(__uint_as_float(unsigned{b} << 16))); \
        }                                                                                            \
        return result != 0;                                                                          \
    }
MP_COMPARISON(device_equal, "eq")
MP_COMPARISON(device_less, "lt")
MP_COMPARISON(device_less_equal, "le")
#undef MP_COMPARISON

/// Whether the numbers of two pairs are compared by one instruction.
template <class Format>
inline constexpr bool compares_pairs_by_instruction =
    is_binary16<Format> || (is_bfloat16<Format> && __CUDA_ARCH__ >= 900);

/// All ones in the halves for which the relation holds, zeros in the others. As for scalars, a NaN has none.
template <class Format>
__device__ __forceinline__ std::uint32_t device_pair_compare(std::uint32_t a, std::uint32_t b,
                                                             pair_relation relation) {
    std::uint32_t result = 0;
#define MP_COMPARE_PAIR(type)                                                   \
    if (relation == pair_relation::equal) {                                     \
        asm("set.eq.u32." type " %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b)); \
    } else if (relation == pair_relation::less) {                               \
        asm("set.lt.u32." type " %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b)); \
    } else {                                                                    \
        asm("set.le.u32." type " %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b)); \
    }
    if constexpr (is_binary16<Format>) {
        MP_COMPARE_PAIR("f16x2")
    } else if constexpr (__CUDA_ARCH__ >= 900) {
        MP_COMPARE_PAIR("bf16x2")
    }
#undef MP_COMPARE_PAIR
    return result;
}

// The negative and the magnitude need nothing of this kind: they are one logical instruction on the bits,
// which keeps a NaN as it is, and neg and abs of PTX are free to change it.

/// Whether the device has minimum and maximum of the format. As the library's, they put -0 below +0; next to
/// a NaN they give the other operand, or with .NaN a NaN. The NaN is the canonical one.
template <class Format>
inline constexpr bool orders_by_instruction =
    __CUDA_ARCH__ >= 800 && (is_binary16<Format> || is_bfloat16<Format>);

template <class Format, class Register>
__device__ __forceinline__ Register device_choose(Register a, Register b, bool smaller, bool propagates_nan) {
    Register result = 0;
#define MP_CHOOSE(type)              \
    if (smaller && propagates_nan) { \
        MP_BINARY("min.NaN." type)   \
    } else if (smaller) {            \
        MP_BINARY("min." type)       \
    } else if (propagates_nan) {     \
        MP_BINARY("max.NaN." type)   \
    } else {                         \
        MP_BINARY("max." type)       \
    }
    if constexpr (__CUDA_ARCH__ >= 800 && is_binary16<Format>) {
        MP_CHOOSE("f16")
    } else if constexpr (__CUDA_ARCH__ >= 800) {
        MP_CHOOSE("bf16")
    }
#undef MP_CHOOSE
    return result;
}
#undef MP_BINARY

}}  // namespace mp::detail

#endif
