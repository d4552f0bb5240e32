// SPDX-License-Identifier: MIT
/// \file
/// Walking over the vectors of a block-scaled matrix in chunks, on several threads.
#pragma once

#include <mp/arrays/convert/block_scaled.hpp>
#include <mp/arrays/convert/pack.hpp>
#include <mp/base/parallel.hpp>
#include <mp/base/view_extent.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Sizes of the chunks in which a vector is worked on.
template <int Block>
struct block_chunk {
    /// Blocks that are worked on at a time, and their elements.
    static constexpr int blocks =
        Block < static_cast<int>(convert_block) ? static_cast<int>(convert_block) / Block : 1;
    static constexpr std::ptrdiff_t elements = std::ptrdiff_t{blocks} * Block;
    /// The chunk rounded up to what bulk conversion works on at a time.
    static constexpr std::size_t padded =
        (static_cast<std::size_t>(elements) + convert_block - 1) / convert_block * convert_block;
    /// Elements of a vector that one thread works on: a multiple of 8 chunks, so that no two threads share a
    /// byte of packed elements.
    static constexpr std::ptrdiff_t segment = 8 * elements * (std::max<std::ptrdiff_t>)(1, 4096 / elements);
    static_assert(segment % 8 == 0);
};

/// Vectors that are walked side by side where neighbours in a vector are far apart in memory, so that what a
/// cache line holds of their neighbours is used.
inline constexpr std::ptrdiff_t vectors_abreast = 32;

/// A matrix view as vectors along the blocks.
template <class Number>
struct block_vectors {
    Number* data;
    std::ptrdiff_t count;
    std::ptrdiff_t length;
    std::ptrdiff_t vector_stride;    ///< from a vector to the next one
    std::ptrdiff_t position_stride;  ///< from an element of a vector to the next one

    block_vectors(matrix_view<Number> view, block_direction direction)
        : data(view.data),
          count(direction == block_direction::along_rows ? view.rows : view.columns),
          length(direction == block_direction::along_rows ? view.columns : view.rows),
          vector_stride(direction == block_direction::along_rows ? view.row_stride() : view.column_stride()),
          position_stride(direction == block_direction::along_rows ? view.column_stride()
                                                                   : view.row_stride()) {}

    [[nodiscard]] Number* at(std::ptrdiff_t vector, std::ptrdiff_t position) const {
        return data + vector * vector_stride + position * position_stride;
    }
    /// Joins contiguous vectors of whole blocks into one.
    void join(std::ptrdiff_t block) {
        if (position_stride != 1 || vector_stride != length || length % block != 0) return;
        length *= count;
        vector_stride = length;
        count = (std::min<std::ptrdiff_t>)(count, 1);
    }
    /// The same elements as vectors of neighbours in memory, for what does not ask for blocks.
    [[nodiscard]] block_vectors as_they_lie() const {
        if (vector_stride != 1 || position_stride == 1) return *this;
        block_vectors others = *this;
        std::swap(others.count, others.length);
        std::swap(others.vector_stride, others.position_stride);
        return others;
    }
    [[nodiscard]] std::ptrdiff_t abreast() const { return position_stride == 1 ? 1 : vectors_abreast; }
};

/// Part of a matrix: vectors [first_vector, last_vector), positions [begin, end) of each.
struct block_tile {
    std::ptrdiff_t index;  ///< which of all tiles, in an order that does not depend on threads
    std::ptrdiff_t first_vector;
    std::ptrdiff_t last_vector;
    std::ptrdiff_t begin;
    std::ptrdiff_t end;
};

template <int Block>
std::ptrdiff_t tile_count(std::ptrdiff_t vectors, std::ptrdiff_t length, std::ptrdiff_t abreast) {
    constexpr std::ptrdiff_t segment = block_chunk<Block>::segment;
    return ((vectors + abreast - 1) / abreast) * ((length + segment - 1) / segment);
}

/// Calls f(tile) for tiles that cover the vectors.
template <int Block, class Function>
void for_tiles(cpu exec, std::ptrdiff_t vectors, std::ptrdiff_t length, std::ptrdiff_t abreast, Function f) {
    constexpr std::ptrdiff_t segment = block_chunk<Block>::segment;
    if (vectors == 0 || length == 0) return;
    const std::ptrdiff_t segments = (length + segment - 1) / segment;
    const std::ptrdiff_t tile_size = (std::min)(segment, length) * (std::min)(abreast, vectors);
    const auto grain = static_cast<std::size_t>((std::max<std::ptrdiff_t>)(1, (1 << 15) / tile_size));
    const auto count = static_cast<std::size_t>(tile_count<Block>(vectors, length, abreast));
    parallel_for(exec, count, grain, [&](std::size_t first, std::size_t last) {
        for (auto i = static_cast<std::ptrdiff_t>(first); i < static_cast<std::ptrdiff_t>(last); ++i) {
            const std::ptrdiff_t vector = i / segments * abreast;
            const std::ptrdiff_t begin = i % segments * segment;
            f(block_tile{i, vector, (std::min)(vector + abreast, vectors), begin,
                         (std::min)(begin + segment, length)});
        }
    });
}

/// Reads `count` elements of each vector of the tile from position `begin` on into rows of a buffer; what is
/// behind them in a row is zero.
template <class Number, class Wide, std::size_t Padded>
void read_vectors(const block_vectors<const Number>& vectors, const block_tile& tile, std::ptrdiff_t begin,
                  std::ptrdiff_t count, Wide (*buffer)[Padded]) noexcept {
    const std::ptrdiff_t height = tile.last_vector - tile.first_vector;
    if (vectors.position_stride == 1) {
        for (std::ptrdiff_t l = 0; l < height; ++l) {
            const Number* from = vectors.at(tile.first_vector + l, begin);
            if constexpr (std::is_same_v<Number, Wide>) {
                std::memcpy(buffer[l], from, static_cast<std::size_t>(count) * sizeof(Wide));
            } else {
                convert_nearest<Number, Wide>(from, buffer[l], static_cast<std::size_t>(count));
            }
        }
    } else {
        for (std::ptrdiff_t i = 0; i < count; ++i) {
            Wide values[vectors_abreast] = {};
            const Number* from = vectors.at(tile.first_vector, begin + i);
            for (std::ptrdiff_t l = 0; l < height; ++l) {
                values[l] = round_to<Wide>(from[l * vectors.vector_stride]);
            }
            for (std::ptrdiff_t l = 0; l < height; ++l) buffer[l][i] = values[l];
        }
    }
    for (std::ptrdiff_t l = 0; l < height; ++l) {
        for (auto i = static_cast<std::size_t>(count); i < Padded; ++i) buffer[l][i] = 0;
    }
}

/// Elements of a vector from their bytes to codes, from position `begin` on, and back. There are at most as
/// many as the array has room for, which is said here so that compilers see it.
template <int Width, std::size_t Room>
void read_codes(const std::byte* vector, std::ptrdiff_t begin, std::uint8_t (&codes)[Room],
                std::size_t count) noexcept {
    const auto first = static_cast<std::size_t>(begin);
    count = (std::min)(count, Room);
    if constexpr (Width == 8) {
        std::memcpy(codes, vector + first, count);
    } else if (first * Width % 8 == 0) {
        unpack_codes<Width>(vector + first * Width / 8, codes, count);
    } else {
        for (std::size_t i = 0; i < count; ++i) {
            codes[i] = static_cast<std::uint8_t>(packed_code<Width>(vector, (first + i) * Width));
        }
    }
}
template <int Width>
void write_codes(std::byte* vector, std::ptrdiff_t begin, const std::uint8_t* codes,
                 std::size_t count) noexcept {
    const auto first = static_cast<std::size_t>(begin);
    if constexpr (Width == 8) {
        std::memcpy(vector + first, codes, count);
    } else if (first * Width % 8 == 0) {
        pack_codes<Width>(codes, vector + first * Width / 8, count);
    } else {
        for (std::size_t i = 0; i < count; ++i) set_packed_code<Width>(vector, (first + i) * Width, codes[i]);
    }
}

/// Throws argument_error unless the view is that of a matrix.
template <class Value>
void check_block_view(std::string_view function, const std::string& name, matrix_view<Value> view) {
    check_view(function, name, extent_of(view));
}

}}  // namespace mp::detail
