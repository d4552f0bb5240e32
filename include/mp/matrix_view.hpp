// SPDX-License-Identifier: MIT
/// \file
/// Matrices that somebody else owns: a pointer, a shape, a leading dimension and the order of the elements.
#pragma once

#include <mp/base/contiguous.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>

#include <cstddef>
#include <span>  // also declares std::ranges::enable_borrowed_range
#include <string_view>
#include <type_traits>

namespace mp {

/// Storage order of a matrix.
enum class storage_order {
    row_major,     ///< those of one row: element (r, c) is data[r * leading_dimension + c], as in C and NumPy
    column_major,  ///< those of one column: element (r, c) is data[c * leading_dimension + r], as in Fortran
};

/// A matrix of rows x columns elements in memory that the view does not own. Copying it copies no element.
///
/// `leading_dimension` is the distance, in elements, between the starts of two neighbouring rows (row_major)
/// or columns (column_major). It is at least the length of one of them; a larger one leaves padding that no
/// function reads or writes. A view is an aggregate and holds whatever it is given: the functions that take
/// views check them. `Value` may be const, and a view of mutable elements converts to the view of const ones.
template <class Value>
struct matrix_view {
    using value_type = std::remove_const_t<Value>;

    Value* data = nullptr;
    std::ptrdiff_t rows = 0;
    std::ptrdiff_t columns = 0;
    std::ptrdiff_t leading_dimension = 0;
    storage_order order = storage_order::row_major;

    /// Distance in elements between (r, c) and (r + 1, c).
    [[nodiscard]] MP_HOST_DEVICE constexpr std::ptrdiff_t row_stride() const {
        return order == storage_order::row_major ? leading_dimension : 1;
    }

    /// Distance in elements between (r, c) and (r, c + 1).
    [[nodiscard]] MP_HOST_DEVICE constexpr std::ptrdiff_t column_stride() const {
        return order == storage_order::row_major ? 1 : leading_dimension;
    }

    /// The element in row r and column c, both counted from 0 and not checked.
    [[nodiscard]] MP_HOST_DEVICE constexpr Value& operator()(std::ptrdiff_t r, std::ptrdiff_t c) const {
        return data[r * row_stride() + c * column_stride()];
    }

    /// The block of row_count x column_count elements whose first one is (first_row, first_column); not
    /// checked.
    [[nodiscard]] MP_HOST_DEVICE constexpr matrix_view block(std::ptrdiff_t first_row,
                                                             std::ptrdiff_t first_column,
                                                             std::ptrdiff_t row_count,
                                                             std::ptrdiff_t column_count) const {
        return {data + first_row * row_stride() + first_column * column_stride(), row_count, column_count,
                leading_dimension, order};
    }

    /// The view of const elements. (A template, so that this one has no conversion to itself.)
    template <class Const>
        requires(!std::is_const_v<Value> && std::is_same_v<Const, const Value>)
    MP_HOST_DEVICE constexpr operator matrix_view<Const>() const {  // NOLINT(google-explicit-constructor)
        return {data, rows, columns, leading_dimension, order};
    }
};

}  // namespace mp

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// View of elements stored row after row without padding.
template <class Value>
[[nodiscard]] MP_HOST_DEVICE constexpr matrix_view<Value> row_major(Value* data, std::ptrdiff_t rows,
                                                                    std::ptrdiff_t columns) {
    return {data, rows, columns, columns, storage_order::row_major};
}

/// View of elements stored row after row, the starts of the rows leading_dimension elements apart.
template <class Value>
[[nodiscard]] MP_HOST_DEVICE constexpr matrix_view<Value> row_major(Value* data, std::ptrdiff_t rows,
                                                                    std::ptrdiff_t columns,
                                                                    std::ptrdiff_t leading_dimension) {
    return {data, rows, columns, leading_dimension, storage_order::row_major};
}

/// View of elements stored column after column without padding.
template <class Value>
[[nodiscard]] MP_HOST_DEVICE constexpr matrix_view<Value> column_major(Value* data, std::ptrdiff_t rows,
                                                                       std::ptrdiff_t columns) {
    return {data, rows, columns, rows, storage_order::column_major};
}

/// View of elements stored column after column, the starts of the columns leading_dimension elements apart.
template <class Value>
[[nodiscard]] MP_HOST_DEVICE constexpr matrix_view<Value> column_major(Value* data, std::ptrdiff_t rows,
                                                                       std::ptrdiff_t columns,
                                                                       std::ptrdiff_t leading_dimension) {
    return {data, rows, columns, leading_dimension, storage_order::column_major};
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Range>
using viewed_element = contiguous_element<std::remove_reference_t<Range>>;

/// An array of numbers (not of packed codes) that is there for longer than the call, and says how long it is: a vector, an
/// array, a span, a device_buffer. C arrays are taken as pointers.
template <class Range>
concept viewable =
    contiguous<Range> && (std::is_lvalue_reference_v<Range> || std::ranges::enable_borrowed_range<Range>) &&
    requires(const std::remove_reference_t<Range>& array) { requires !requires { array.bit_offset(); }; } &&
    !std::is_array_v<std::remove_reference_t<Range>>;

/// Throws unless the array has the lines of the matrix: no more and no less where nothing is between them.
inline void check_viewed_size(storage_order order, std::size_t size, std::ptrdiff_t lines,
                              std::ptrdiff_t length, std::ptrdiff_t leading_dimension, bool exactly) {
    const bool row_major = order == storage_order::row_major;
    const std::string_view function = row_major ? "mp::row_major" : "mp::column_major";
    const std::string_view length_name = row_major ? "columns" : "rows";
    if (lines < 0) throw_argument(function, row_major ? "rows" : "columns", lines, "must not be negative");
    if (length < 0) throw_argument(function, length_name, length, "must not be negative");
    if (leading_dimension < length) {
        throw_argument(function, "leading_dimension", leading_dimension,
                       join_text({"must be at least ", length_name, ", which is ", error_text(length)}));
    }
    const bool empty = lines == 0 || length == 0;
    // size = whole * leading_dimension + rest: no product, which might overflow.
    const std::size_t step = static_cast<std::size_t>(leading_dimension);
    const std::size_t count = static_cast<std::size_t>(lines);
    const bool fits = empty     ? size == 0 || !exactly
                      : exactly ? size % step == 0 && size / step == count
                                : size >= static_cast<std::size_t>(length) &&
                                      (size - static_cast<std::size_t>(length)) / step >= count - 1;
    if (!fits) {
        throw_argument(
            function, "the size of the array", size,
            join_text({exactly ? "must be that" : "must be at least that", " of a matrix of ",
                       error_text(row_major ? lines : length), " x ", error_text(row_major ? length : lines),
                       exactly ? "" : " with a leading dimension of ",
                       exactly ? "" : error_text(leading_dimension)}));
    }
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The same of a std::vector, std::array, std::span ..., on the host: its size has to be rows * columns; a part of an array
/// is given as a span.
///
///     auto w = mp::row_major(weights, out, in);     // argument_error: the size of the array is 11; must be that of ... 3 x 4
template <class Range>
    requires detail::viewable<Range>
[[nodiscard]] constexpr matrix_view<detail::viewed_element<Range>> row_major(Range&& array,
                                                                             std::ptrdiff_t rows,
                                                                             std::ptrdiff_t columns) {
    detail::check_viewed_size(storage_order::row_major, std::size(array), rows, columns, columns, true);
    return {std::data(array), rows, columns, columns, storage_order::row_major};
}

/// The same with a leading dimension: the array is at least (rows - 1) * leading_dimension + columns elements long.
template <class Range>
    requires detail::viewable<Range>
[[nodiscard]] constexpr matrix_view<detail::viewed_element<Range>> row_major(
    Range&& array, std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t leading_dimension) {
    detail::check_viewed_size(storage_order::row_major, std::size(array), rows, columns, leading_dimension,
                              false);
    return {std::data(array), rows, columns, leading_dimension, storage_order::row_major};
}

/// The same stored column after column.
template <class Range>
    requires detail::viewable<Range>
[[nodiscard]] constexpr matrix_view<detail::viewed_element<Range>> column_major(Range&& array,
                                                                                std::ptrdiff_t rows,
                                                                                std::ptrdiff_t columns) {
    detail::check_viewed_size(storage_order::column_major, std::size(array), columns, rows, rows, true);
    return {std::data(array), rows, columns, rows, storage_order::column_major};
}

/// The same with a leading dimension: the array is at least (columns - 1) * leading_dimension + rows elements long.
template <class Range>
    requires detail::viewable<Range>
[[nodiscard]] constexpr matrix_view<detail::viewed_element<Range>> column_major(
    Range&& array, std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t leading_dimension) {
    detail::check_viewed_size(storage_order::column_major, std::size(array), columns, rows, leading_dimension,
                              false);
    return {std::data(array), rows, columns, leading_dimension, storage_order::column_major};
}

/// The transposed matrix over the same elements: nothing moves, rows and columns change their names.
template <class Value>
[[nodiscard]] MP_HOST_DEVICE constexpr matrix_view<Value> transposed(matrix_view<Value> view) {
    return {view.data, view.columns, view.rows, view.leading_dimension,
            view.order == storage_order::row_major ? storage_order::column_major : storage_order::row_major};
}

}}  // namespace mp
