// SPDX-License-Identifier: MIT
/// \file
/// Codes of 4 and 6 bits, one in a byte each, to and from streams without gaps, by vectors. See
/// packed_codes.inl.
#pragma once

#include <mp/arrays/convert/kernels/number_vectors.hpp>
#include <mp/arrays/convert/packed_array.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Eight codes take as many bytes as a code has bits: the unit in which arrays are packed.
inline constexpr std::size_t pack_group = 8;

/// Packs `count` codes into a stream that begins at a byte; bits behind the last one stay as they are.
template <int Width>
constexpr void pack_codes(const std::uint8_t* codes, std::byte* bytes, std::size_t count) noexcept {
    for (; count >= pack_group; count -= pack_group, codes += pack_group, bytes += Width) {
        std::uint64_t word = 0;
        for (int i = 0; i < 8; ++i) word |= std::uint64_t{codes[i]} << (i * Width);
        for (int i = 0; i < Width; ++i) bytes[i] = static_cast<std::byte>((word >> (8 * i)) & 0xff);
    }
    for (std::size_t i = 0; i < count; ++i) set_packed_code<Width>(bytes, i * Width, codes[i]);
}

/// The reverse.
template <int Width>
constexpr void unpack_codes(const std::byte* bytes, std::uint8_t* codes, std::size_t count) noexcept {
    const std::size_t groups = count / pack_group;
    for (std::size_t group = 0; group < groups; ++group) {
        std::uint64_t word = 0;
        for (std::size_t i = 0; i < Width; ++i) {
            word |= static_cast<std::uint64_t>(bytes[group * Width + i]) << (8 * i);
        }
        for (std::size_t i = 0; i < pack_group; ++i) {
            codes[group * pack_group + i] =
                static_cast<std::uint8_t>((word >> (i * Width)) & ((1u << Width) - 1));
        }
    }
    for (std::size_t i = groups * pack_group; i < count; ++i) {
        codes[i] = static_cast<std::uint8_t>(packed_code<Width>(bytes, i * Width));
    }
}

/// Codes that the kernels below have on their way at a time: a kilobyte or less, in the innermost cache.
inline constexpr std::size_t codes_at_a_time = 512;

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/arrays/convert/kernels/packed_codes.inl>
#include <mp/numbers/simd/for_each_target.inl>
