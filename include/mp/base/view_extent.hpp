// SPDX-License-Identifier: MIT
/// \file
/// Checks of a single matrix view, for every function that takes one.
#pragma once

#include <mp/error.hpp>
#include <mp/matrix_view.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// A matrix view without its element type, so that the checks are compiled once. A line is a row of a
/// row-major matrix or a column of a column-major one: elements that are contiguous in memory.
struct view_extent {
    std::uintptr_t address;
    std::ptrdiff_t element_size;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t leading_dimension;
    bool row_major;

    [[nodiscard]] MP_ALWAYS_INLINE std::ptrdiff_t vector_count() const { return row_major ? rows : columns; }
    [[nodiscard]] MP_ALWAYS_INLINE std::ptrdiff_t vector_length() const { return row_major ? columns : rows; }
    [[nodiscard]] MP_ALWAYS_INLINE bool empty() const { return rows == 0 || columns == 0; }

    /// Bytes from the first element to the end of the last one; the view is not empty and has been checked.
    [[nodiscard]] MP_ALWAYS_INLINE std::uintptr_t byte_count() const {
        return static_cast<std::uintptr_t>(((vector_count() - 1) * leading_dimension + vector_length()) *
                                           element_size);
    }
};

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

inline view_extent extent_of(const view_extent& extent) {
    return extent;
}
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
inline void check_view(std::string_view function, std::string_view name, const view_extent& view) {
    const auto refuse = [&](std::string_view member, std::ptrdiff_t value, std::string_view expected) {
        throw_argument(function, join_text({name, member}), value, expected);
    };
    if (view.rows < 0) refuse(".rows", view.rows, "must not be negative");
    if (view.columns < 0) refuse(".columns", view.columns, "must not be negative");
    if (view.leading_dimension < view.vector_length()) {
        refuse(".leading_dimension", view.leading_dimension,
               join_text({"must be at least ", name, view.row_major ? ".columns" : ".rows", ", which is ",
                          error_text(view.vector_length())}));
    }
    if (view.empty()) return;
    // (lines - 1) * leading_dimension + length elements must have a size that ptrdiff_t holds. The division
    // that finds out is only needed for sizes that could exceed it: 2^29 * 2^29 elements of up to 16 bytes do
    // not.
    constexpr std::ptrdiff_t harmless = std::ptrdiff_t{1} << 29;
    if (view.leading_dimension > harmless || view.vector_count() > harmless) {
        const std::ptrdiff_t most = (std::numeric_limits<std::ptrdiff_t>::max)() / view.element_size;
        if (view.leading_dimension > most ||
            (view.vector_count() > 1 &&
             view.leading_dimension > (most - view.vector_length()) / (view.vector_count() - 1))) {
            refuse(".leading_dimension", view.leading_dimension,
                   "must be small enough for the matrix to fit in memory");
        }
    }
    if (view.address == 0) {
        throw_joined<argument_error>({function, ": ", name, ".data is null; it must point to a matrix of ",
                                      error_text(view.rows), " x ", error_text(view.columns), " elements"});
    }
}

inline void check_equal_sizes(std::string_view function, std::string_view name, std::ptrdiff_t size,
                              std::string_view other_name, std::ptrdiff_t other_size) {
    if (size != other_size) {
        throw_argument(function, name, size,
                       join_text({"must equal ", other_name, ", which is ", error_text(other_size)}));
    }
}

}}  // namespace mp::detail
