// SPDX-License-Identifier: MIT
/// \file
/// How the warps of a GPU walk along the vectors of a matrix and of its block-scaled counterpart, and move codes of fewer
/// than 8 bits between registers and memory: each lane has a few neighbouring ones, and words of whole bytes are read and
/// written.
#pragma once

#include <mp/arrays/convert/block_scaled.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/block_scaled_span.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/matrix_view.hpp>

#include <algorithm>
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

/// Neighbouring elements of a lane: 16 bytes, and at most 8 of them.
template <class Value>
inline constexpr int block_chunk_width = static_cast<int>((std::min<std::size_t>)(8, 16 / sizeof(Value)));

/// The vectors of a matrix in memory, and their division into blocks.
template <class BlockScaled, class Value>
struct block_vector_walk {
    static constexpr int width = block_chunk_width<std::remove_const_t<Value>>;
    static constexpr std::ptrdiff_t warp_elements = std::ptrdiff_t{simt::warp_size} * width;
    using packed = packed_chunk<width * BlockScaled::element_width>;

    row_matrix<Value> vectors;
    std::ptrdiff_t count;
    std::ptrdiff_t length;
    std::byte* elements;
    std::ptrdiff_t bytes_per_vector;
    typename BlockScaled::scale_type* scales;
    std::ptrdiff_t blocks_per_vector;
    bool whole_words;  ///< whether the words of packed codes are aligned in every vector

    block_vector_walk(matrix_view<Value> view, const block_scaled_span<BlockScaled>& span)
        : vectors(rows_of<width>(span.direction == block_direction::along_rows ? view : transposed(view))),
          count(span.vector_count()),
          length(span.vector_length()),
          elements(span.elements.data()),
          bytes_per_vector(span.bytes_per_vector()),
          scales(span.scales.data()),
          blocks_per_vector(span.blocks_per_vector()) {
        // Vectors that follow each other without gaps, and consist of whole blocks, are one vector.
        if (vectors.column_stride == 1 && vectors.row_stride == length &&
            length % BlockScaled::block_size == 0) {
            length *= count;
            bytes_per_vector *= count;
            blocks_per_vector *= count;
            count = (std::min<std::ptrdiff_t>)(count, 1);
            vectors.wide = reinterpret_cast<std::uintptr_t>(vectors.data) % (width * sizeof(Value)) == 0;
        }
        constexpr auto alignment = packed::alignment;
        whole_words =
            reinterpret_cast<std::uintptr_t>(elements) % static_cast<std::uintptr_t>(alignment) == 0 &&
            (count <= 1 || bytes_per_vector % alignment == 0);
    }

    /// Chunks of a vector, one for each warp.
    [[nodiscard]] MP_HOST_DEVICE std::ptrdiff_t across() const {
        return (length + warp_elements - 1) / warp_elements;
    }
    [[nodiscard]] simt::launch_size launch() const {
        return walk_launch(count * across(), row_threads / simt::warp_size);
    }
    /// Whether the words of the lane whose elements begin here are whole, and the bytes that it has.
    [[nodiscard]] MP_HOST_DEVICE bool is_whole(std::ptrdiff_t position) const {
        constexpr std::ptrdiff_t together = (packed::shares_words ? 4 : 1) * width;
        return whole_words && position / together * together + together <= length;
    }
    [[nodiscard]] MP_HOST_DEVICE std::ptrdiff_t used_bytes(std::ptrdiff_t position) const {
        const std::ptrdiff_t left = length - position;
        if (left <= 0) return 0;
        return ((left < width ? left : width) * BlockScaled::element_width + 7) / 8;
    }
    [[nodiscard]] MP_HOST_DEVICE std::byte* bytes_at(std::ptrdiff_t vector, std::ptrdiff_t position) const {
        return elements + (vector * bytes_per_vector + position / width * packed::bytes);
    }
};

}}  // namespace mp::detail
