// SPDX-License-Identifier: MIT
/// \file
/// Block-scaled matrices: small elements, a scale for every block of them, and the formats that have a name.
#pragma once

#include <mp/arrays/convert/block_scale.hpp>
#include <mp/arrays/convert/packed_array.hpp>
#include <mp/float4.hpp>
#include <mp/float6.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace mp {

/// Direction of the blocks that share a scale.
enum class block_direction : unsigned char {
    along_rows,    ///< neighbours in a row: (r, c), (r, c + 1) ...
    along_columns  ///< neighbours in a column: (r, c), (r + 1, c) ...
};

/// A matrix whose value at (r, c) is element * scale of its block * tensor scale.
///
/// Rows are divided into blocks of `Block` elements from their first element on (columns, if the direction is
/// along_columns); the last block of each may be shorter. A vector is what is divided so: a row, or a column.
/// The elements lie vector after vector, each vector beginning at a byte, elements of fewer than 8 bits
/// packed as in packed_array; the scales lie vector after vector without gaps.
///
/// With a scale of E8M0, a power of two, the tensor scale is 1 always (has_tensor_scale is false); with any
/// other it is a float, as in NVFP4. mp::quantize makes such matrices, mp::dequantize turns them back.
///
///     const auto q = mp::quantize<mp::mxfp4>(mp::cpu{}, mp::row_major(weights, rows, columns));
///     mp::dequantize(mp::cpu{}, q, mp::row_major(floats, rows, columns));
template <block_element Element, int Block, reduced Scale = float8_e8m0fnu>
class block_scaled {
    static_assert(Block >= 1 && Block <= 1024, "mp: blocks have between 1 and 1024 elements");
    static_assert(layout_of<typename Scale::format>::width <= 8, "mp: scales have at most 8 bits");
    static_assert(layout_of<typename Scale::format>::has_nan, "mp: scales need a NaN");

public:
    using element_type = Element;
    using scale_type = Scale;
    static constexpr int block_size = Block;
    static constexpr bool has_tensor_scale = !detail::is_power_of_two_scale<Scale>;
    /// Bits of an element.
    static constexpr int element_width = detail::element_width<Element>;

    block_scaled() = default;
    /// All elements and scales have the code 0. Throws argument_error if a size is negative or
    /// rows * columns elements cannot be addressed.
    block_scaled(std::ptrdiff_t rows, std::ptrdiff_t columns,
                 block_direction direction = block_direction::along_rows)
        : rows_(rows), columns_(columns), direction_(direction) {
        if (rows < 0) detail::throw_argument("mp::block_scaled", "rows", rows, "must not be negative");
        if (columns < 0) {
            detail::throw_argument("mp::block_scaled", "columns", columns, "must not be negative");
        }
        // An element takes at most a byte, and so does a scale, of which there are no more than elements.
        if (rows != 0 && columns != 0) {
            const std::size_t each =
                detail::addressable("mp::block_scaled", "rows", static_cast<std::size_t>(rows), 16);
            static_cast<void>(detail::addressable("mp::block_scaled", "columns",
                                                  static_cast<std::size_t>(columns), 16 * each));
        }
        elements_.resize(static_cast<std::size_t>(vector_count()) * bytes_per_vector());
        scales_.resize(static_cast<std::size_t>(vector_count() * blocks_per_vector()));
    }

    [[nodiscard]] std::ptrdiff_t rows() const noexcept { return rows_; }
    [[nodiscard]] std::ptrdiff_t columns() const noexcept { return columns_; }
    [[nodiscard]] block_direction direction() const noexcept { return direction_; }

    /// The vectors, their elements, and the blocks that each is divided into.
    [[nodiscard]] std::ptrdiff_t vector_count() const noexcept {
        return direction_ == block_direction::along_rows ? rows_ : columns_;
    }
    [[nodiscard]] std::ptrdiff_t vector_length() const noexcept {
        return direction_ == block_direction::along_rows ? columns_ : rows_;
    }
    [[nodiscard]] std::ptrdiff_t blocks_per_vector() const noexcept {
        return vector_length() / Block + (vector_length() % Block != 0 ? 1 : 0);
    }
    /// Bytes of the elements of a vector.
    [[nodiscard]] std::size_t bytes_per_vector() const noexcept {
        const auto length = static_cast<std::size_t>(vector_length());
        constexpr auto width = static_cast<std::size_t>(element_width);
        return length / 8 * width + (length % 8 * width + 7) / 8;
    }

    /// All elements as they lie in memory, and those of one vector.
    [[nodiscard]] std::span<std::byte> bytes() noexcept { return elements_; }
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return elements_; }
    [[nodiscard]] std::span<std::byte> bytes(std::ptrdiff_t vector) noexcept {
        return bytes().subspan(static_cast<std::size_t>(vector) * bytes_per_vector(), bytes_per_vector());
    }
    [[nodiscard]] std::span<const std::byte> bytes(std::ptrdiff_t vector) const noexcept {
        return bytes().subspan(static_cast<std::size_t>(vector) * bytes_per_vector(), bytes_per_vector());
    }
    /// All scales; that of block b of a vector is scales()[vector * blocks_per_vector() + b].
    [[nodiscard]] std::span<Scale> scales() noexcept { return scales_; }
    [[nodiscard]] std::span<const Scale> scales() const noexcept { return scales_; }
    [[nodiscard]] float tensor_scale() const noexcept { return tensor_scale_; }
    void set_tensor_scale(float scale) noexcept
        requires(has_tensor_scale)
    {
        tensor_scale_ = scale;
    }

    /// Element and scale at row r and column c, counted from 0 and not checked.
    [[nodiscard]] Element element(std::ptrdiff_t r, std::ptrdiff_t c) const noexcept {
        const place at = place_of(r, c);
        const std::byte* vector = elements_.data() + static_cast<std::size_t>(at.vector) * bytes_per_vector();
        const auto position = static_cast<std::size_t>(at.position);
        if constexpr (element_width == 8) {
            return Element::from_bits(static_cast<std::uint8_t>(vector[position]));
        } else {
            return Element::from_bits(static_cast<std::uint8_t>(
                detail::packed_code<element_width>(vector, position * element_width)));
        }
    }
    [[nodiscard]] Scale scale(std::ptrdiff_t r, std::ptrdiff_t c) const noexcept {
        const place at = place_of(r, c);
        return scales_[static_cast<std::size_t>(at.vector * blocks_per_vector() + at.position / Block)];
    }
    /// The exact product of element and scales, rounded once to nearest even.
    [[nodiscard]] float value(std::ptrdiff_t r, std::ptrdiff_t c) const noexcept {
        // Exact in double: an element has up to 7 bits, a scale up to 8 and a float 24.
        return round_to<float>(static_cast<double>(element(r, c)) * static_cast<double>(scale(r, c)) *
                               round_to<double>(tensor_scale_));
    }

private:
    struct place {
        std::ptrdiff_t vector;
        std::ptrdiff_t position;
    };
    [[nodiscard]] place place_of(std::ptrdiff_t r, std::ptrdiff_t c) const noexcept {
        return direction_ == block_direction::along_rows ? place{r, c} : place{c, r};
    }

    std::ptrdiff_t rows_ = 0;
    std::ptrdiff_t columns_ = 0;
    block_direction direction_ = block_direction::along_rows;
    float tensor_scale_ = 1;
    std::vector<std::byte> elements_;
    std::vector<Scale> scales_;
};

/// The formats of the OCP Microscaling (MX) specification 1.0, section 5: blocks of 32 with a power of two as
/// their scale.
using mxfp8_e4m3 = block_scaled<float8_e4m3fn, 32>;
using mxfp8_e5m2 = block_scaled<float8_e5m2, 32>;
using mxfp6_e2m3 = block_scaled<float6_e2m3fn, 32>;
using mxfp6_e3m2 = block_scaled<float6_e3m2fn, 32>;
using mxfp4 = block_scaled<float4_e2m1fn, 32>;
using mxint8 = block_scaled<mx_int8, 32>;

/// NVIDIA's NVFP4: E2M1 in blocks of 16 whose scale is an E4M3 number, and a float for the whole tensor.
using nvfp4 = block_scaled<float4_e2m1fn, 16, float8_e4m3fn>;

}  // namespace mp
