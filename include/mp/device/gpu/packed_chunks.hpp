// SPDX-License-Identifier: MIT
/// \file
/// Codes of fewer than 8 bits between registers and memory: each lane of a warp has a few neighbouring ones,
/// and words of whole bytes are read and written.
#pragma once

#include <mp/config.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Neighbouring codes of a lane, `Bits` in all, a multiple of 8 and at most 64. Where that is no power of two
/// of bytes (24 and 48, of formats of 6 bits), four lanes share three words of 4 Bits / 3: lane q holds word
/// q, whose lower part comes from its own codes and whose upper part from those of the next lane.
template <int Bits>
struct packed_chunk {
    static constexpr bool shares_words = Bits % 3 == 0;
    static constexpr int word_bits = shares_words ? Bits / 3 * 4 : Bits;
    static constexpr std::ptrdiff_t bytes = Bits / 8;
    /// Alignment of the codes and of every vector that whole words need.
    static constexpr std::ptrdiff_t alignment = word_bits / 8;
    using word = std::conditional_t<
        word_bits == 64, std::uint64_t,
        std::conditional_t<word_bits == 32, std::uint32_t,
                           std::conditional_t<word_bits == 16, std::uint16_t, std::uint8_t>>>;

    /// Writes the codes of all lanes of a warp, which all call it; the codes of lane l begin at `at`, l *
    /// bytes behind those of lane 0. Of the last codes of a vector, `used` bytes count, and none of the lanes
    /// behind the vector. `whole`: whether words are aligned, and those of this lane (and of the others that
    /// share them) are inside the vector.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void store(Thread thread, std::byte* at, std::uint64_t codes,
                                                      std::ptrdiff_t used, bool whole) {
        std::uint64_t value = codes;
        std::byte* address = at;
        bool has_word = true;
        if constexpr (shares_words) {
            const int q = thread.lane() % 4;
            const std::uint64_t next = thread.shuffle_down(codes, 1);
            const int shift = q * (Bits / 3);
            value = (codes >> shift) | (next << (Bits - shift));
            address = at + q * (alignment - bytes);
            has_word = q != 3;
        }
        if (whole) {
            if (has_word) thread.store(reinterpret_cast<word*>(address), static_cast<word>(value));
            return;
        }
        for (std::ptrdiff_t i = 0; i < used; ++i) {
            thread.store(at + i, static_cast<std::byte>((codes >> (8 * i)) & 0xFFU));
        }
    }

    /// Reads them.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static std::uint64_t load(Thread thread,
                                                                            const std::byte* at,
                                                                            std::ptrdiff_t used, bool whole) {
        std::uint64_t value = 0;
        const int q = shares_words ? thread.lane() % 4 : 0;
        if (whole) {
            if (q != 3) value = thread.load(reinterpret_cast<const word*>(at + q * (alignment - bytes)));
        } else {
            for (std::ptrdiff_t i = 0; i < used; ++i) {
                value |= static_cast<std::uint64_t>(thread.load(at + i)) << (8 * i);
            }
        }
        if constexpr (shares_words) {
            const std::uint64_t before = thread.shuffle_up(value, 1);
            const int shift = q * (Bits / 3);
            if (whole && q != 0) value = (value << shift) | (before >> (word_bits - shift));
        }
        return value;
    }
};

}}  // namespace mp::detail
