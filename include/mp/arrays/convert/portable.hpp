// SPDX-License-Identifier: MIT
/// \file
/// The loops of bulk conversion for any processor and compiler, with blocks of binary16 by F16C where the whole program
/// may use it, else by what every x86-64 has; elsewhere compilers vectorise the loops by themselves. Every one gives the bits of the scalar
/// conversion. bulk.hpp chooses between them and the kernels for instruction sets.
///
/// They work on codes in blocks of a constant size, and a block goes through 32-bit words on its way. This is
/// what lets compilers vectorise: g++ 12 leaves loops of unknown length alone at -O2, arithmetic that is
/// narrowed at the end is narrowed too early, and stores to a class with a private member are opaque.
#pragma once

#include <mp/config.hpp>
#include <mp/numbers/format/hardware.hpp>
#include <mp/numbers/format/operations.hpp>

#include <concepts>
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

/// Elements of a block.
inline constexpr std::size_t convert_block = 32;

/// A code as it lies in memory, and the code that lies there: in most formats there is no difference.
template <class Format>
constexpr storage_of<Format> contained(std::uint32_t code) noexcept {
    return static_cast<storage_of<Format>>(code << layout_of<Format>::container_shift);
}
template <class Format>
constexpr storage_of<Format> code_in(storage_of<Format> container) noexcept {
    return static_cast<storage_of<Format>>(container >> layout_of<Format>::container_shift);
}

/// E8M0, and whatever else is the exponent field of float without zero.
template <class Format>
inline constexpr bool is_float_exponent = [] {
    return Format::exponent_bits == 8 && Format::fraction_bits == 0 && Format::bias == 127 &&
           !Format::is_signed && !layout_of<Format>::has_zero && !Format::has_infinity &&
           Format::nans == nan_encoding::all_ones;
}();

/// The value of a code of E8M0: it is the exponent field, except for 2^-127, which is a subnormal float, and
/// NaN.
template <class Native>
constexpr Native widen_float_exponent(std::uint8_t code) noexcept {
    if constexpr (std::same_as<Native, float>) {
        constexpr std::uint32_t half_of_smallest_normal = 0x00400000;
        constexpr std::uint32_t quiet = 0x00400000;
        const std::uint32_t fraction = code == 0 ? half_of_smallest_normal : code == 255 ? quiet : 0;
        return bit_cast<float>(std::uint32_t{code} << 23 | fraction);
    } else {
        constexpr std::uint64_t nan = 0x7ff8000000000000;
        const std::uint64_t number = (std::uint64_t{code} + 1023 - 127) << 52;
        return bit_cast<double>(select(code == 255, nan, number));
    }
}

/// The block of floats, or of doubles, rounded to codes.
template <class Format, class Native>
void narrow_block(const Native* __restrict from, storage_of<Format>* __restrict to) noexcept {
#if MP_HAS_HALF_BLOCKS
    if constexpr (is_binary16<Format> && std::same_as<Native, float>) {
        narrow_half_block<convert_block>(from, to);
        return;
    }
#endif
    if constexpr (MP_HARDWARE_FLOAT && std::same_as<Native, double> && fast_path_in<Format, float> &&
                  layout_of<Format>::quantum_exponent - 1 > -126) {
        // First to odd to float's 24 bits, which is exact in float, after which rounding is rounding once
        // (Boldo and Melquiond 2008). What is too small for float, or flushed, becomes zero in either case;
        // what is too large becomes infinite.
        constexpr std::uint64_t below_float = (std::uint64_t{1} << 29) - 1;
        std::uint64_t odd[convert_block];
        std::memcpy(odd, from, sizeof odd);
        for (std::size_t i = 0; i < convert_block; ++i)
            odd[i] = (odd[i] | ((odd[i] & below_float) + below_float)) & ~below_float;
        double doubles[convert_block];
        std::memcpy(doubles, odd, sizeof odd);
        float floats[convert_block];
        for (std::size_t i = 0; i < convert_block; ++i) floats[i] = static_cast<float>(doubles[i]);
        narrow_block<Format>(floats, to);
    } else if constexpr (MP_HARDWARE_FLOAT && fast_path_in<Format, Native>) {
        std::uint32_t words[convert_block];
        for (std::size_t i = 0; i < convert_block; ++i) words[i] = narrow_to_word<Format>(from[i]);
        for (std::size_t i = 0; i < convert_block; ++i) to[i] = contained<Format>(words[i]);
    } else {
        for (std::size_t i = 0; i < convert_block; ++i) {
            to[i] = contained<Format>(from_native<Format>(from[i], projection{}));
        }
    }
}

/// The values of the block of codes.
template <class Format, class Native>
void widen_block(const storage_of<Format>* __restrict from, Native* __restrict to) noexcept {
#if MP_HAS_HALF_BLOCKS
    if constexpr (is_binary16<Format> && std::same_as<Native, float>) {
        widen_half_block<convert_block>(from, to);
        return;
    }
#endif
    if constexpr (is_float_exponent<Format>) {
        for (std::size_t i = 0; i < convert_block; ++i) to[i] = widen_float_exponent<Native>(from[i]);
    } else if constexpr (!fast_path_in<Format, Native>) {
        for (std::size_t i = 0; i < convert_block; ++i) {
            to[i] = static_cast<Native>(basic_float<Format>::from_bits(code_in<Format>(from[i])));
        }
    } else if constexpr (std::same_as<Native, double> && fast_path_in<Format, float> &&
                         Format::exponent_bits < 8) {
        // All finite values are normal floats or zero, so the second step is safe from flushing.
        float values[convert_block];
        widen_block<Format>(from, values);
        for (std::size_t i = 0; i < convert_block; ++i) to[i] = static_cast<double>(values[i]);
    } else if constexpr (Format::exponent_bits == 8) {
        for (std::size_t i = 0; i < convert_block; ++i)
            to[i] = widen<Native, Format>(code_in<Format>(from[i]));
    } else {
        std::uint32_t words[convert_block];
        for (std::size_t i = 0; i < convert_block; ++i) words[i] = code_in<Format>(from[i]);
        for (std::size_t i = 0; i < convert_block; ++i) to[i] = widen<Native, Format>(words[i]);
    }
}

/// Applies `convert`, which converts exactly one block, to `count` elements. The last elements, too few for a
/// block, go through a separate block.
template <class From, class To, class Convert>
void convert_blocks(const From* from, To* to, std::size_t count, Convert convert) noexcept {
    const std::size_t rest = count % convert_block;
    const From* const end = from + (count - rest);
    for (; from != end; from += convert_block, to += convert_block) convert(from, to);
    if (rest == 0) return;
    From last_from[convert_block] = {};
    To last_to[convert_block];
    std::memcpy(last_from, from, rest * sizeof(From));
    convert(last_from, last_to);
    std::memcpy(to, last_to, rest * sizeof(To));
}

/// A double rounded to float. The conversion of the processor is right unless subnormal numbers, which it may
/// flush, or NaNs are near.
inline float double_to_float(double x) noexcept {
    const auto field = static_cast<std::uint32_t>(bit_cast<std::uint64_t>(x) >> 52) & 0x7ff;
    constexpr std::uint32_t smallest = 1023 - 126;
    if (MP_HARDWARE_FLOAT && field - smallest < 0x7ff - smallest) return static_cast<float>(x);
    return round_to<float>(x);
}

/// x; a NaN becomes quiet, as in every conversion.
template <std::floating_point Native>
Native quieted(Native x) noexcept {
    using layout = layout_of<typename native_format<Native>::type>;
    using word = typename layout::storage;
    const auto bits = bit_cast<word>(x);
    const word quiet =
        less(layout::infinity_code, bits & layout::magnitude_mask) ? layout::quiet_bit : word{0};
    return bit_cast<Native>(static_cast<word>(bits | quiet));
}

/// The codes of an array of reduced numbers as they lie in memory (see contained), to which such a number is
/// pointer-interconvertible.
template <class Format>
storage_of<Format>* codes_of(basic_float<Format>* values) noexcept {
    return reinterpret_cast<storage_of<Format>*>(values);
}
template <class Format>
const storage_of<Format>* codes_of(const basic_float<Format>* values) noexcept {
    return reinterpret_cast<const storage_of<Format>*>(values);
}

/// Types whose numbers are not all floats.
template <number T>
inline constexpr bool needs_scalar_conversion = [] {
    if constexpr (reduced<T>) {
        return !exactly_representable_in<format_of_t<T>, float>;
    }
    return false;
}();

/// Rounds to nearest even, overflow as saturation::none. The arrays must not overlap.
template <number From, number To>
void convert_nearest(const From* from, To* to, std::size_t count) noexcept {
    if constexpr (needs_scalar_conversion<From> || needs_scalar_conversion<To>) {
        for (std::size_t i = 0; i < count; ++i) to[i] = round_to<To>(from[i]);
    } else if constexpr (reduced<From> && reduced<To>) {
        using from_format = typename From::format;
        using to_format = typename To::format;
        using from_code = storage_of<from_format>;
        using to_code = storage_of<to_format>;
        convert_blocks(codes_of(from), codes_of(to), count, [](const from_code* source, to_code* target) {
            // Exact in float, so rounded once.
            float values[convert_block];
            widen_block<from_format>(source, values);
            narrow_block<to_format>(values, target);
        });
    } else if constexpr (reduced<From>) {
        using format = typename From::format;
        convert_blocks(codes_of(from), to, count, [](const storage_of<format>* source, To* target) {
            widen_block<format>(source, target);
        });
    } else if constexpr (reduced<To>) {
        using format = typename To::format;
        convert_blocks(from, codes_of(to), count, [](const From* source, storage_of<format>* target) {
            narrow_block<format>(source, target);
        });
    } else if constexpr (std::same_as<From, float> && std::same_as<To, double>) {
        for (std::size_t i = 0; i < count; ++i) {
            to[i] = widen<double, formats::binary32>(bit_cast<std::uint32_t>(from[i]));
        }
    } else if constexpr (std::same_as<From, double> && std::same_as<To, float>) {
        for (std::size_t i = 0; i < count; ++i) to[i] = double_to_float(from[i]);
    } else {
        static_assert(std::same_as<From, To>);
        for (std::size_t i = 0; i < count; ++i) to[i] = quieted(from[i]);
    }
}

/// Rounds as the projection says.
template <number From, number To>
void convert_projected(const From* from, To* to, std::size_t count, projection p) noexcept {
    if (p == projection{}) {
        convert_nearest(from, to, count);
    } else {
        for (std::size_t i = 0; i < count; ++i) to[i] = round_to<To>(from[i], p);
    }
}

/// The values as floats, exactly.
template <reduced From>
void widen_to_float(const From* from, float* to, std::size_t count) noexcept {
    convert_nearest(from, to, count);
}

}}  // namespace mp::detail
