// SPDX-License-Identifier: MIT
/// \file
/// Conversions on the device by single instructions of PTX, which for formats of 8 bits and fewer take two numbers at a
/// time. Every one of them rounds the exact value once, in the direction that it names, with subnormal numbers; what it does with NaN and with values that are too
/// large is put right by conversion_repairs.hpp, where the proofs are.
#pragma once

#include <mp/config.hpp>
#include <mp/numbers/format/conversion_repairs.hpp>
#include <mp/numbers/format/device.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

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

// --- binary16 and bfloat16

/// Whether cvt rounds a float to the format in this direction.
template <class Format>
__device__ constexpr bool device_rounds(rounding round) {
    const bool directed = round == rounding::upward || round == rounding::downward;
    const bool known = directed || round == rounding::nearest_even || round == rounding::toward_zero;
    if constexpr (is_binary16<Format>) return known;
    if constexpr (is_bfloat16<Format>)
        return __CUDA_ARCH__ >= 900 ? known : known && !directed && __CUDA_ARCH__ >= 800;
    return false;
}

// The instruction for binary16 or for bfloat16; the rest are operands of asm.
#define MP_CONVERT(before, after, ...)          \
    if constexpr (is_binary16<Format>) {        \
        asm(before "f16" after : __VA_ARGS__);  \
    } else {                                    \
        asm(before "bf16" after : __VA_ARGS__); \
    }

/// A float rounded in a direction that device_rounds has, overflow as IEEE 754 has it. NaN gives some NaN.
template <class Format>
__device__ __forceinline__ unsigned short device_round(float x, rounding round) {
    unsigned short result = 0;
    if constexpr (is_binary16<Format> || __CUDA_ARCH__ >= 900) {
        if (round == rounding::upward) {
            MP_CONVERT("cvt.rp.", ".f32 %0, %1;", "=h"(result) : "f"(x))
            return result;
        }
        if (round == rounding::downward) {
            MP_CONVERT("cvt.rm.", ".f32 %0, %1;", "=h"(result) : "f"(x))
            return result;
        }
    }
    if constexpr (is_binary16<Format> || __CUDA_ARCH__ >= 800) {
        if (round == rounding::toward_zero) {
            MP_CONVERT("cvt.rz.", ".f32 %0, %1;", "=h"(result) : "f"(x))
        } else {
            MP_CONVERT("cvt.rn.", ".f32 %0, %1;", "=h"(result) : "f"(x))
        }
    }
    return result;
}

/// Whether a float is rounded by cvt.rn.satfinite, which sends too large values and infinities to the largest
/// finite number.
template <class Format>
__device__ constexpr bool device_saturates(const projection& p) {
    return __CUDA_ARCH__ >= 800 && (is_binary16<Format> || is_bfloat16<Format>) &&
           p.round == rounding::nearest_even && p.saturate == saturation::finite;
}
template <class Format>
__device__ __forceinline__ unsigned short device_satfinite(float x) {
    unsigned short result = 0;
    if constexpr (__CUDA_ARCH__ >= 800) {
        MP_CONVERT("cvt.rn.satfinite.", ".f32 %0, %1;", "=h"(result) : "f"(x))
    }
    return result;
}

/// Exact, subnormals included; the instruction makes every NaN canonical, and sign and payload are put back
/// by hand. For bfloat16 there is nothing better than a shift.
__device__ __forceinline__ float device_widen_binary16(unsigned short bits) {
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(bits));
    if ((bits & 0x7fffu) > 0x7c00u) {
        return __uint_as_float(convert_nan<formats::binary32, formats::binary16>(bits));
    }
    return result;
}

/// Two floats rounded to nearest even, the first one in the low half; what is too large becomes the largest
/// finite number if the device saturates, else infinity. NaN gives some NaN.
template <class Format>
__device__ __forceinline__ std::uint32_t device_round_pair(float first, float second,
                                                           [[maybe_unused]] bool saturates) {
    std::uint32_t result = 0;
    if constexpr (__CUDA_ARCH__ < 800) {
        result = device_round<Format>(first, rounding::nearest_even) |
                 (std::uint32_t{device_round<Format>(second, rounding::nearest_even)} << 16);
    } else if (saturates) {
        MP_CONVERT("cvt.rn.satfinite.", "x2.f32 %0, %1, %2;", "=r"(result) : "f"(second), "f"(first))
    } else {
        MP_CONVERT("cvt.rn.", "x2.f32 %0, %1, %2;", "=r"(result) : "f"(second), "f"(first))
    }
    return result;
}

/// A double rounded to nearest even once. NaN gives some NaN.
template <class Format>
inline constexpr bool rounds_doubles_by_instruction =
    is_binary16<Format> || (is_bfloat16<Format> && __CUDA_ARCH__ >= 900);

template <class Format>
__device__ __forceinline__ unsigned short device_narrow(double x) {
    unsigned short result = 0;
    if constexpr (rounds_doubles_by_instruction<Format>) {
        MP_CONVERT("cvt.rn.", ".f64 %0, %1;", "=h"(result) : "d"(x))
    }
    const auto bits = static_cast<std::uint64_t>(__double_as_longlong(x));
    if ((bits & 0x7fffffffffffffffu) > 0x7ff0000000000000u)
        return convert_nan<Format, formats::binary64>(bits);
    return result;
}

/// An integer of up to 64 bits rounded to nearest even once, too large ones to infinity. Zero is +0.
template <class Format, class Integer>
inline constexpr bool rounds_integers_by_instruction =
    sizeof(Integer) <= 8 && rounds_doubles_by_instruction<Format>;

template <class Format, class Integer>
__device__ __forceinline__ unsigned short device_from_integer(Integer x) {
    constexpr bool is_signed = Integer(-1) < Integer(0);
    unsigned short result = 0;
    if constexpr (rounds_integers_by_instruction<Format, Integer>) {
        if constexpr (sizeof(Integer) < 8 && is_signed) {
            MP_CONVERT("cvt.rn.", ".s32 %0, %1;", "=h"(result) : "r"(static_cast<int>(x)))
        } else if constexpr (sizeof(Integer) < 8) {
            MP_CONVERT("cvt.rn.", ".u32 %0, %1;", "=h"(result) : "r"(static_cast<unsigned>(x)))
        } else if constexpr (is_signed) {
            MP_CONVERT("cvt.rn.", ".s64 %0, %1;", "=h"(result) : "l"(static_cast<long long>(x)))
        } else {
            MP_CONVERT("cvt.rn.", ".u64 %0, %1;", "=h"(result) : "l"(static_cast<unsigned long long>(x)))
        }
    }
    return result;
}

/// The integer part of a float. The instructions clamp what is out of range; what they make of a NaN depends
/// on the width, so zero is chosen by hand. Narrower integers are clamped once more, which changes nothing.
template <class Integer>
__device__ __forceinline__ Integer device_to_integer(float x) {
    constexpr bool is_signed = Integer(-1) < Integer(0);
    if ((__float_as_uint(x) & 0x7fffffffu) > 0x7f800000u) return 0;
    if constexpr (sizeof(Integer) == 8 && is_signed) {
        long long result;
        asm("cvt.rzi.s64.f32 %0, %1;" : "=l"(result) : "f"(x));
        return static_cast<Integer>(result);
    } else if constexpr (sizeof(Integer) == 8) {
        unsigned long long result;
        asm("cvt.rzi.u64.f32 %0, %1;" : "=l"(result) : "f"(x));
        return static_cast<Integer>(result);
    } else if constexpr (is_signed) {
        int result;
        asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(result) : "f"(x));
        constexpr int largest = static_cast<int>((1u << (8 * sizeof(Integer) - 1)) - 1);
        if constexpr (sizeof(Integer) < 4) {
            result = result > largest ? largest : result < -largest - 1 ? -largest - 1 : result;
        }
        return static_cast<Integer>(result);
    } else {
        unsigned result;
        asm("cvt.rzi.u32.f32 %0, %1;" : "=r"(result) : "f"(x));
        constexpr unsigned largest = 0xffffffffu >> (32 - 8 * sizeof(Integer));
        if constexpr (sizeof(Integer) < 4) result = result > largest ? largest : result;
        return static_cast<Integer>(result);
    }
}

#undef MP_CONVERT

// --- what hardware.hpp and convert_scalar.hpp choose from

/// Whether a float is rounded to the format by an instruction as a projection says.
template <class Format>
inline constexpr bool narrows_by_instruction =
    has_device_instructions<Format> || narrows_to_small_by_instruction<Format>;

template <class Format>
__device__ constexpr bool device_projects(const projection& p) {
    if constexpr (has_device_instructions<Format>) return device_rounds<Format>(p.round);
    return narrows_to_small_by_instruction<Format> && p.round == rounding::nearest_even &&
           (layout_of<Format>::has_nan || p.without_nan == nan_substitute::largest);
}

/// A float in a projection that device_projects has.
template <class Format>
__device__ __forceinline__ storage_of<Format> device_narrow(float x, const projection& p = {}) {
    const std::uint32_t bits = __float_as_uint(x);
    if constexpr (has_device_instructions<Format>) {
        if (device_saturates<Format>(p)) {
            if ((bits & 0x7fffffffu) > 0x7f800000u) return convert_nan<Format, formats::binary32>(bits, p);
            return device_satfinite<Format>(x);
        }
        const std::uint32_t code = device_round<Format>(x, p.round);
        return static_cast<storage_of<Format>>(after_conversion<Format>(code, bits, p));
    } else {
        const std::uint32_t code = device_satfinite_pair<Format>(x, 0) & 0xff;
        return static_cast<storage_of<Format>>(after_satfinite<Format>(code, bits, p));
    }
}

/// Formats that become floats by instructions.
template <class Format>
inline constexpr bool widens_by_instruction =
    is_binary16<Format> || is_e5m2<Format> || widens_by_multiplication<Format>;

template <class Format>
__device__ __forceinline__ float device_widen(storage_of<Format> bits) {
    if constexpr (is_binary16<Format>) {
        return device_widen_binary16(bits);
    } else if constexpr (is_e5m2<Format>) {
        return device_widen_binary16(static_cast<unsigned short>(bits << 8));
    } else {
        return __uint_as_float(
            widen_by_multiplication<Format>(bits, [](std::uint32_t operand, std::uint32_t factor) {
                return __float_as_uint(float_multiply(__uint_as_float(operand), __uint_as_float(factor)));
            }));
    }
}

/// Whether either is NaN.
__device__ __forceinline__ bool device_has_nan(float a, float b) {
    const std::uint32_t magnitude_a = __float_as_uint(a) & 0x7fffffffu;
    const std::uint32_t magnitude_b = __float_as_uint(b) & 0x7fffffffu;
    return (magnitude_a > magnitude_b ? magnitude_a : magnitude_b) > 0x7f800000u;
}

/// Whether two floats become two codes by one instruction as a projection says.
template <class Format>
__device__ constexpr bool device_projects_pairs(const projection& p) {
    if constexpr (!narrows_by_instruction<Format>) return false;
    return p.round == rounding::nearest_even && device_projects<Format>(p);
}

/// Two floats in a projection that device_projects_pairs has: the codes next to each other, the first one in
/// the low bits, each as wide as its storage. What needs repair is rare, and therefore behind a branch.
template <class Format>
__device__ __forceinline__ std::uint32_t device_narrow_pair(float first, float second,
                                                            const projection& p = {}) {
    if constexpr (has_device_instructions<Format>) {
        const bool saturates = device_saturates<Format>(p);
        const std::uint32_t codes = device_round_pair<Format>(first, second, saturates);
        if ((saturates || p.saturate == saturation::none) && !device_has_nan(first, second)) return codes;
        return after_conversion<Format>(codes & 0xffff, __float_as_uint(first), p) |
               (after_conversion<Format>(codes >> 16, __float_as_uint(second), p) << 16);
    } else {
        const std::uint32_t codes = device_satfinite_pair<Format>(first, second);
        if constexpr (!layout_of<Format>::has_nan) return codes;
        const std::uint32_t magnitude = __float_as_uint(first) & 0x7fffffffu;
        const std::uint32_t magnitude_2 = __float_as_uint(second) & 0x7fffffffu;
        if ((magnitude > magnitude_2 ? magnitude : magnitude_2) < first_repaired<Format>(p)) return codes;
        return after_satfinite<Format>(codes & 0xff, __float_as_uint(first), p) |
               (after_satfinite<Format>(codes >> 8, __float_as_uint(second), p) << 8);
    }
}

/// Two codes as two floats, exactly; NaNs, which the caller has looked for with pair_has_nan, come out as
/// anything.
template <class Format>
inline constexpr bool widens_pairs_by_instruction =
    is_binary16<Format> || is_bfloat16<Format> || widens_in_pairs<Format>;

template <class Format>
__device__ __forceinline__ void device_widen_pair(std::uint32_t codes, float& first, float& second) {
    if constexpr (is_bfloat16<Format>) {
        first = __uint_as_float(codes << 16);
        second = __uint_as_float(codes & 0xffff0000u);
    } else if constexpr (is_binary16<Format>) {
        asm("{.reg .f16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high;}"
            : "=f"(first), "=f"(second)
            : "r"(codes));
    } else {
        device_widen_pair<formats::binary16>(device_widen_pair_to_binary16<Format>(codes), first, second);
    }
}

/// Two halves in a projection that device_projects has, as device_narrow_pair. Not by way of float, except for
/// what needs repair.
template <class Format>
__device__ __forceinline__ std::uint32_t device_narrow_halves(std::uint32_t halves,
                                                              const projection& p = {}) {
    if (!pair_reaches(halves, first_repaired<Format, formats::binary16>(p))) {
        return device_satfinite_halves<Format>(halves);
    }
    return device_narrow_pair<Format>(device_widen_binary16(static_cast<unsigned short>(halves)),
                                      device_widen_binary16(static_cast<unsigned short>(halves >> 16)), p);
}

}}  // namespace mp::detail

#endif
