// SPDX-License-Identifier: MIT
/// \file
/// Checks of the arguments of a matrix product, all of them before anything is written.
#pragma once

#include <mp/error.hpp>
#include <mp/gemm/matrix_view.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace mp::detail {

/// A matrix view without its element type, so that the checks are compiled once. A line is a row of a
/// row-major matrix or a column of a column-major one: elements that are contiguous in memory.
struct view_extent {
    std::uintptr_t address;
    std::ptrdiff_t element_size;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t leading_dimension;
    bool row_major;

    [[nodiscard]] std::ptrdiff_t line_count() const { return row_major ? rows : columns; }
    [[nodiscard]] std::ptrdiff_t line_length() const { return row_major ? columns : rows; }
    [[nodiscard]] bool empty() const { return rows == 0 || columns == 0; }

    /// Bytes from the first element to the end of the last one; the view is not empty and has been checked.
    [[nodiscard]] std::uintptr_t byte_count() const {
        return static_cast<std::uintptr_t>(((line_count() - 1) * leading_dimension + line_length()) *
                                           element_size);
    }
};

template <class Value>
view_extent extent_of(matrix_view<Value> view) {
    return {reinterpret_cast<std::uintptr_t>(view.data),
            static_cast<std::ptrdiff_t>(sizeof(Value)),
            view.rows,
            view.columns,
            view.leading_dimension,
            view.order == storage_order::row_major};
}

/// Checks one view by itself: sizes, leading dimension, and data where there is something to point to.
inline void check_view(std::string_view function, const std::string& name, const view_extent& view) {
    if (view.rows < 0) throw_argument(function, name + ".rows", view.rows, "must not be negative");
    if (view.columns < 0) throw_argument(function, name + ".columns", view.columns, "must not be negative");
    if (view.leading_dimension < view.line_length()) {
        throw_argument(function, name + ".leading_dimension", view.leading_dimension,
                       "must be at least " + name + (view.row_major ? ".columns" : ".rows") + ", which is " +
                           error_text(view.line_length()));
    }
    if (view.empty()) return;
    // (lines - 1) * leading_dimension + length elements must have a size that ptrdiff_t holds. The division
    // that finds out is only needed for sizes that could exceed it: 2^29 * 2^29 elements of up to 16 bytes do
    // not.
    constexpr std::ptrdiff_t harmless = std::ptrdiff_t{1} << 29;
    if (view.leading_dimension > harmless || view.line_count() > harmless) {
        const std::ptrdiff_t most = std::numeric_limits<std::ptrdiff_t>::max() / view.element_size;
        if (view.leading_dimension > most ||
            (view.line_count() > 1 &&
             view.leading_dimension > (most - view.line_length()) / (view.line_count() - 1))) {
            throw_argument(function, name + ".leading_dimension", view.leading_dimension,
                           "must be small enough for the matrix to fit in memory");
        }
    }
    if (view.address == 0) {
        throw argument_error(std::string(function) + ": " + name +
                             ".data is null; it must point to a matrix of " + error_text(view.rows) + " x " +
                             error_text(view.columns) + " elements");
    }
}

/// Whether two checked views share a byte that belongs to an element of both. Exact when the views have the
/// same orientation and their lines are the same distance apart, as blocks of one larger matrix are; in all
/// other cases the answer is whether the ranges from first to last element overlap.
inline bool views_overlap(const view_extent& a, const view_extent& b) {
    if (a.empty() || b.empty()) return false;
    if (a.address >= b.address + b.byte_count() || b.address >= a.address + a.byte_count()) return false;
    const std::ptrdiff_t stride = a.leading_dimension * a.element_size;
    if (a.row_major != b.row_major || stride != b.leading_dimension * b.element_size) return true;
    // The higher view starts `shift` bytes behind the start of line `lines` of the lower one, which is a line
    // that exists since the ranges overlap. Its own lines can meet that line and the following ones from
    // behind, and reach into the next; no further, since none is longer than the stride.
    const view_extent& low = a.address <= b.address ? a : b;
    const view_extent& high = a.address <= b.address ? b : a;
    const std::ptrdiff_t distance = static_cast<std::ptrdiff_t>(high.address - low.address);
    const std::ptrdiff_t lines = distance / stride;
    const std::ptrdiff_t shift = distance % stride;
    const bool meets_same = shift < low.line_length() * low.element_size;
    const bool meets_next =
        shift + high.line_length() * high.element_size > stride && lines + 1 < low.line_count();
    return meets_same || meets_next;
}

inline void check_equal_sizes(std::string_view function, std::string_view name, std::ptrdiff_t size,
                              std::string_view other_name, std::ptrdiff_t other_size) {
    if (size != other_size) {
        std::string expected = "must equal ";
        expected.append(other_name).append(", which is ").append(error_text(other_size));
        throw_argument(function, name, size, expected);
    }
}

/// Throws when c, which is written, shares elements with an input, which is read at the same time.
inline void check_no_overlap(std::string_view function, const view_extent& c, std::string_view input_name,
                             const view_extent& input) {
    if (!views_overlap(c, input)) return;
    char digits[2 * sizeof(std::uintptr_t)];
    const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, c.address, 16);
    throw argument_error(std::string(function) + ": c.data is 0x" + std::string(digits, end.ptr) +
                         "; it must not make c overlap " + std::string(input_name) +
                         ", which is read while c is written");
}

/// Checks everything about the three matrices of c = a b.
inline void check_product(std::string_view function, const view_extent& a, const view_extent& b,
                          const view_extent& c) {
    check_view(function, "a", a);
    check_view(function, "b", b);
    check_view(function, "c", c);
    check_equal_sizes(function, "b.rows", b.rows, "a.columns", a.columns);
    check_equal_sizes(function, "c.rows", c.rows, "a.rows", a.rows);
    check_equal_sizes(function, "c.columns", c.columns, "b.columns", b.columns);
    check_no_overlap(function, c, "a", a);
    check_no_overlap(function, c, "b", b);
}

}  // namespace mp::detail
