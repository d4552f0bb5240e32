// SPDX-License-Identifier: MIT
/// \file
/// Blocks of binary16 from and to float for the portable loops: by F16C where the whole program may use it,
/// else by what every x86-64 has. Elsewhere compilers vectorise the loops of portable.hpp by themselves.
#pragma once

#include <mp/config.hpp>
#include <mp/numbers/format/hardware.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

/// 1 where there are special blocks for binary16.
#if MP_HARDWARE_F16C || (MP_HARDWARE_FLOAT && defined(__SSE2__) && defined(__GNUC__) && !defined(__CUDACC__))
#define MP_HAS_HALF_BLOCKS 1
#else
#define MP_HAS_HALF_BLOCKS 0
#endif

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

#if MP_HARDWARE_F16C

/// Eight conversions an instruction, by the builtins: see hardware.hpp for why there is no <immintrin.h>.
using float_x8 = float __attribute__((vector_size(32)));
using short_x8 = short __attribute__((vector_size(16)));

template <std::size_t Count>
void narrow_half_block(const float* from, std::uint16_t* to) noexcept {
    for (std::size_t i = 0; i < Count; i += 8) {
        float_x8 values;
        std::memcpy(&values, from + i, sizeof values);
        const auto codes = __builtin_ia32_vcvtps2ph256(values, 0 /* nearest even */);
        std::memcpy(to + i, &codes, sizeof codes);
    }
}

template <std::size_t Count>
void widen_half_block(const std::uint16_t* from, float* to) noexcept {
    for (std::size_t i = 0; i < Count; i += 8) {
        short_x8 codes;
        std::memcpy(&codes, from + i, sizeof codes);
        const float_x8 values = __builtin_ia32_vcvtph2ps256(codes);
        std::memcpy(to + i, &values, sizeof values);
    }
}

#elif MP_HAS_HALF_BLOCKS

// The steps of round_magnitude and widen, where their proofs are, but infinities, NaNs and what overflows are
// only looked after in a group of eight that has one. Comparisons are of signed integers: SSE2 has no others.

using float_x4 = float __attribute__((vector_size(16)));
using int_x4 = std::int32_t __attribute__((vector_size(16)));
using word_x4 = std::uint32_t __attribute__((vector_size(16)));
using uint16x8 = std::uint16_t __attribute__((vector_size(16)));

MP_ALWAYS_INLINE bool any_lane(int_x4 condition) noexcept {
    return __builtin_ia32_movmskps(reinterpret_cast<float_x4>(condition)) != 0;
}

/// Magnitudes below 2^16 rounded to nearest even.
MP_ALWAYS_INLINE int_x4 narrow_half_magnitude(int_x4 magnitude) noexcept {
    constexpr std::int32_t bias_difference = 112 << 23;
    constexpr std::int32_t smallest_normal = 113 << 23;
    constexpr std::int32_t half = 126 << 23;  // 0.5, whose last place is the smallest number
    // Modulo 2^32, where magnitudes of NaNs may leave the range of int.
    const auto bits = reinterpret_cast<word_x4>(magnitude);
    const word_x4 rounded = bits + static_cast<std::uint32_t>(0xfff - bias_difference) + ((bits >> 13) & 1U);
    const int_x4 normal = reinterpret_cast<int_x4>(rounded >> 13);
    const float_x4 sum = reinterpret_cast<float_x4>(magnitude) + 0.5f;
    const auto subnormal =
        reinterpret_cast<int_x4>(reinterpret_cast<word_x4>(sum) - static_cast<std::uint32_t>(half));
    return magnitude < smallest_normal ? subnormal : normal;
}

/// As narrow_half_magnitude(), with what is too large or NaN.
MP_ALWAYS_INLINE int_x4 with_half_specials(int_x4 code, int_x4 magnitude) noexcept {
    constexpr std::int32_t too_large = 143 << 23;
    constexpr std::int32_t infinity = 255 << 23;
    const int_x4 is_nan = magnitude > infinity;
    const int_x4 special = (is_nan & ((magnitude >> 13 & 0x3ff) | 0x200)) | 0x7c00;
    return magnitude < too_large ? code : special;
}

template <std::size_t Count>
void narrow_half_block(const float* from, std::uint16_t* to) noexcept {
    constexpr std::int32_t largest_regular = (143 << 23) - 1;
    for (std::size_t i = 0; i < Count; i += 8) {
        int_x4 low;
        int_x4 high;
        std::memcpy(&low, from + i, sizeof low);
        std::memcpy(&high, from + i + 4, sizeof high);
        const int_x4 low_magnitude = low & 0x7fff'ffff;
        const int_x4 high_magnitude = high & 0x7fff'ffff;
        int_x4 low_code = narrow_half_magnitude(low_magnitude);
        int_x4 high_code = narrow_half_magnitude(high_magnitude);
        if (any_lane((low_magnitude > largest_regular) | (high_magnitude > largest_regular))) {
            low_code = with_half_specials(low_code, low_magnitude);
            high_code = with_half_specials(high_code, high_magnitude);
        }
        // With the sign in all upper bits, so that packing with signed saturation keeps what it is given.
        low_code |= (low ^ low_magnitude) >> 16;
        high_code |= (high ^ high_magnitude) >> 16;
#if defined(__AVX__)
        __asm__("vpackssdw %1, %0, %0" : "+x"(low_code) : "x"(high_code));
#else
        __asm__("packssdw %1, %0" : "+x"(low_code) : "x"(high_code));
#endif
        std::memcpy(to + i, &low_code, sizeof low_code);
    }
}

/// Codes in the upper halves of words as floats.
MP_ALWAYS_INLINE float_x4 widen_half(int_x4 upper) noexcept {
    constexpr std::int32_t bias_difference = 112 << 23;
    constexpr std::int32_t half = 126 << 23;
    const int_x4 magnitude = upper & 0x7fff'0000;
    const int_x4 normal = (magnitude >> 3) + bias_difference;
    // The significand m in the lowest places of one half is 0.5 + m * 2^-24.
    const int_x4 raised = (magnitude >> 16) | half;
    const int_x4 subnormal = reinterpret_cast<int_x4>(reinterpret_cast<float_x4>(raised) - 0.5f);
    const int_x4 value = magnitude < 0x0400'0000 ? subnormal : normal;
    return reinterpret_cast<float_x4>(value | (upper ^ magnitude));
}

/// As widen_half(), with infinities and NaNs.
MP_ALWAYS_INLINE float_x4 with_float_specials(float_x4 value, int_x4 upper) noexcept {
    const int_x4 magnitude = upper & 0x7fff'0000;
    const int_x4 is_special = magnitude >= 0x7c00'0000;
    const int_x4 is_nan = magnitude > 0x7c00'0000;
    return reinterpret_cast<float_x4>((reinterpret_cast<int_x4>(value) | (is_special & 0x7f80'0000)) |
                                      (is_nan & 0x0040'0000));
}

template <std::size_t Count>
void widen_half_block(const std::uint16_t* from, float* to) noexcept {
    for (std::size_t i = 0; i < Count; i += 8) {
        uint16x8 codes;
        std::memcpy(&codes, from + i, sizeof codes);
        const uint16x8 zero = {};
        const auto low =
            reinterpret_cast<int_x4>(__builtin_shufflevector(zero, codes, 0, 8, 1, 9, 2, 10, 3, 11));
        const auto high =
            reinterpret_cast<int_x4>(__builtin_shufflevector(zero, codes, 4, 12, 5, 13, 6, 14, 7, 15));
        float_x4 low_value = widen_half(low);
        float_x4 high_value = widen_half(high);
        const int_x4 sign = {INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN};
        if (any_lane(((low | sign) >= static_cast<std::int32_t>(0xfc00'0000)) |
                     ((high | sign) >= static_cast<std::int32_t>(0xfc00'0000)))) {
            low_value = with_float_specials(low_value, low);
            high_value = with_float_specials(high_value, high);
        }
        std::memcpy(to + i, &low_value, sizeof low_value);
        std::memcpy(to + i + 4, &high_value, sizeof high_value);
    }
}

#endif

}}  // namespace mp::detail
