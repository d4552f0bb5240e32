// SPDX-License-Identifier: MIT
/// \file
/// The loops of bulk conversion for any processor and compiler. Every one gives the bits of the scalar
/// conversion. bulk.hpp chooses between them and the kernels for instruction sets.
///
/// They work on codes in blocks of a constant size, and a block goes through 32-bit words on its way. This is
/// what lets compilers vectorise: g++ 12 leaves loops of unknown length alone at -O2, arithmetic that is
/// narrowed at the end is narrowed too early, and stores to a class with a private member are opaque.
#pragma once

#include <mp/arrays/convert/half_blocks.hpp>
#include <mp/numbers/format/operations.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

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
