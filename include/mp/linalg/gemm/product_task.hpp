// SPDX-License-Identifier: MIT
/// \file
/// A matrix product without the types of its matrices: where its operands are, how they are packed, and which
/// of them can stay where they lie.
#pragma once

#include <mp/linalg/gemm/packing.hpp>
#include <mp/linalg/gemm/product.hpp>
#include <mp/linalg/gemm/product_kernel.hpp>
#include <mp/linalg/gemm/tile_output.hpp>

#include <cstddef>
#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

constexpr std::ptrdiff_t divide_up(std::ptrdiff_t value, std::ptrdiff_t unit) {
    return (value + unit - 1) / unit;
}

constexpr std::ptrdiff_t round_up(std::ptrdiff_t value, std::ptrdiff_t unit) {
    return divide_up(value, unit) * unit;
}

/// Where the rows of a tile are, how far it is from one to the next, and with a_layout::tiles from one tile
/// to the next.
struct rows_of_a {
    const std::byte* data;
    std::ptrdiff_t row;
    std::ptrdiff_t tile;
};

/// Where the first step of a tile's columns is, and how far it is to the next.
struct steps_of_b {
    const std::byte* data;
    std::ptrdiff_t step;
};

/// C = A B of rows x columns elements summed over `k`.
struct product_task {
    const product_kernel* kernel;
    product_operand_source a;
    pack_rows_function pack_a;
    bool a_as_is;  ///< whether the kernel can read the rows of A where they lie
    product_operand_source b;
    pack_panels_function pack_b;
    bool b_as_is;            ///< whether the kernel can read the steps of B where they lie
    packed_panels packed_b;  ///< used instead of b if there
    tile_output c;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t k;

    /// Whether whole tiles of A are better read where they lie than packed. Rows of floats are read one
    /// number at a time and may lie anywhere, as long as a tile's are in few pages. Rows of AMX tiles are
    /// read by cache lines: where they begin at such lines they may be as long as leaves them in different
    /// sets of the second-level cache; where every run of a row takes two cache lines, only as long as what a
    /// tile needs of them stays in the nearest cache.
    [[nodiscard]] bool can_read_a_in_place() const {
        constexpr std::ptrdiff_t line = 64;
        const std::ptrdiff_t row_bytes = a.vector_stride * a_element_size();
        if (kernel->layout == a_layout::rows) return a_as_is && row_bytes <= 4096;
        const bool on_lines = reinterpret_cast<std::uintptr_t>(a.data) % line == 0 && row_bytes % line == 0;
        return a_as_is && row_bytes <= (on_lines ? 8192 : 512);
    }

    /// Whether whole panels of B are better read where they lie: where it is so small that it stays in the
    /// second-level cache and takes few pages.
    [[nodiscard]] bool can_read_b_in_place() const {
        constexpr std::ptrdiff_t most_bytes = 256 << 10;
        return b_as_is && packed_b.data == nullptr &&
               k * b.k_stride * interleaved_bytes(kernel->b_element) <= most_bytes;
    }

    [[nodiscard]] rows_of_a rows_in_place(std::ptrdiff_t row, std::ptrdiff_t p) const {
        const std::ptrdiff_t size = a_element_size();
        const std::ptrdiff_t row_bytes = a.vector_stride * size;
        return {static_cast<const std::byte*>(a.data) + row * row_bytes + p * size, row_bytes, 64};
    }
    [[nodiscard]] steps_of_b steps_in_place(std::ptrdiff_t column, std::ptrdiff_t p) const {
        const std::ptrdiff_t column_bytes = interleaved_bytes(kernel->b_element);
        const std::ptrdiff_t step = b.k_stride * column_bytes;
        return {static_cast<const std::byte*>(b.data) + p * step + column * column_bytes, step};
    }

private:
    [[nodiscard]] std::ptrdiff_t a_element_size() const {
        return kernel->a_element == panel_element::float32 ? 4 : 2;
    }
};

}}  // namespace mp::detail
