// SPDX-License-Identifier: MIT
/// \file
/// Block-scaled matrices in memory that somebody else owns, such as that of a device.
#pragma once

#include <mp/arrays/convert/block_scaled.hpp>
#include <mp/error.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace mp {

/// A block-scaled matrix whose elements, scales and tensor scale lie in memory that this does not own, in the
/// order of mp::block_scaled: what `elements` and `scales` refer to has the bytes of that class's bytes() and
/// scales(), so either can be copied into the other. An aggregate; the functions that take one check it.
///
///     using format = mp::nvfp4;
///     mp::device_buffer<std::byte> elements(mp::block_scaled_span<format>::element_bytes(rows, columns));
///     mp::device_buffer<format::scale_type> scales(mp::block_scaled_span<format>::scale_count(rows,
///     columns)); mp::device_buffer<float> tensor_scale(1); const mp::block_scaled_span<format>
///     q{elements.span(), scales.span(), rows, columns,
///                                           mp::block_direction::along_rows, tensor_scale.span().data()};
template <class BlockScaled>
struct block_scaled_span {
    using element_type = typename BlockScaled::element_type;
    using scale_type = typename BlockScaled::scale_type;

    std::span<std::byte> elements;
    std::span<scale_type> scales;
    std::ptrdiff_t rows = 0;
    std::ptrdiff_t columns = 0;
    block_direction direction = block_direction::along_rows;
    /// Formats with a tensor scale have it here; null for the others.
    float* tensor_scale = nullptr;

    /// The vectors, and the blocks and bytes of each, as in mp::block_scaled.
    [[nodiscard]] constexpr std::ptrdiff_t vector_count() const noexcept {
        return direction == block_direction::along_rows ? rows : columns;
    }
    [[nodiscard]] constexpr std::ptrdiff_t vector_length() const noexcept {
        return direction == block_direction::along_rows ? columns : rows;
    }
    [[nodiscard]] constexpr std::ptrdiff_t blocks_per_vector() const noexcept {
        constexpr std::ptrdiff_t block = BlockScaled::block_size;
        return vector_length() / block + (vector_length() % block != 0 ? 1 : 0);
    }
    [[nodiscard]] constexpr std::ptrdiff_t bytes_per_vector() const noexcept {
        constexpr std::ptrdiff_t width = BlockScaled::element_width;
        return vector_length() / 8 * width + (vector_length() % 8 * width + 7) / 8;
    }

    /// Sizes of `elements` and `scales` for a matrix of this shape.
    [[nodiscard]] static constexpr std::size_t element_bytes(
        std::ptrdiff_t rows, std::ptrdiff_t columns,
        block_direction direction = block_direction::along_rows) noexcept {
        const block_scaled_span shape{{}, {}, rows, columns, direction};
        return static_cast<std::size_t>(shape.vector_count() * shape.bytes_per_vector());
    }
    [[nodiscard]] static constexpr std::size_t scale_count(
        std::ptrdiff_t rows, std::ptrdiff_t columns,
        block_direction direction = block_direction::along_rows) noexcept {
        const block_scaled_span shape{{}, {}, rows, columns, direction};
        return static_cast<std::size_t>(shape.vector_count() * shape.blocks_per_vector());
    }
};

namespace detail { inline namespace MP_ISA_NAMESPACE {

/// Checks a span, which is called `name`, that belongs to a matrix of rows x columns.
template <class BlockScaled>
void check_block_span(std::string_view function, const std::string& name,
                      const block_scaled_span<BlockScaled>& span, std::string_view other, std::ptrdiff_t rows,
                      std::ptrdiff_t columns) {
    const auto check = [&](const char* member, std::ptrdiff_t found, std::string_view what,
                           std::ptrdiff_t wanted) {
        if (found == wanted) return;
        throw_argument(function, name + member, found,
                       "must equal " + std::string(what) + ", which is " + error_text(wanted));
    };
    check(".rows", span.rows, std::string(other) + ".rows", rows);
    check(".columns", span.columns, std::string(other) + ".columns", columns);
    check(".elements.size()", static_cast<std::ptrdiff_t>(span.elements.size()),
          "the bytes that its shape needs", span.vector_count() * span.bytes_per_vector());
    check(".scales.size()", static_cast<std::ptrdiff_t>(span.scales.size()),
          "the scales that its shape needs", span.vector_count() * span.blocks_per_vector());
    if (!span.elements.empty() && (span.elements.data() == nullptr || span.scales.data() == nullptr)) {
        throw_argument(function, name + ".elements or .scales", "null", "must be device memory");
    }
    if (BlockScaled::has_tensor_scale != (span.tensor_scale != nullptr)) {
        throw_argument(function, name + ".tensor_scale", span.tensor_scale == nullptr ? "null" : "not null",
                       BlockScaled::has_tensor_scale ? "must be a float in device memory"
                                                     : "must be null, as the format has no tensor scale");
    }
}

}}  // namespace detail

}  // namespace mp
