// SPDX-License-Identifier: MIT
/// \file
/// Arrays of numbers as they lie in files: which types can, and how they are seen in place or copied.
#pragma once

#include <mp/arrays/io/file_mapping.hpp>
#include <mp/base/contiguous.hpp>
#include <mp/error.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/format/operations.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A type whose values can be in a file: numbers of the language but long double, and the formats of this
/// library.
template <class Value>
concept tensor_element =
    (std::is_arithmetic_v<Value> && !std::is_same_v<Value, long double>) || reduced<Value>;

/// A number, or a contiguous range of numbers, as a span.
template <class Values>
constexpr auto elements_of(Values& values) {
    if constexpr (tensor_element<std::remove_const_t<Values>>) {
        return std::span<Values>(&values, 1);
    } else {
        static_assert(
            contiguous<Values> && tensor_element<std::remove_const_t<contiguous_element<Values>>>,
            "mp: a number or a contiguous range of numbers was expected: std::vector, std::span, an array");
        return as_span(values);
    }
}

/// Copies elements between the memory of this processor and little-endian bytes.
inline void copy_little_endian(std::byte* to, const std::byte* from, std::size_t element_size,
                               std::size_t count) {
    if (count == 0) return;
    std::memcpy(to, from, element_size * count);
    if constexpr (std::endian::native == std::endian::big) {
        for (std::size_t i = 0; i < count; ++i) {
            std::reverse(to + i * element_size, to + (i + 1) * element_size);
        }
    }
}

/// Returns the product of a shape, multiplied in its order, or nothing where a multiplication wraps: a zero makes
/// the product zero only for the dimensions after it.
constexpr std::optional<std::size_t> element_count(std::span<const std::size_t> shape) noexcept {
    std::size_t count = 1;
    for (const std::size_t dimension : shape) {
        if (dimension != 0 && count > (std::numeric_limits<std::size_t>::max)() / dimension) return {};
        count *= dimension;
    }
    return count;
}

/// Returns true if every dimension can be a number of rows or columns.
constexpr bool are_dimensions(std::span<const std::size_t> shape) noexcept {
    constexpr auto most = static_cast<std::size_t>((std::numeric_limits<std::ptrdiff_t>::max)());
    return std::all_of(shape.begin(), shape.end(), [](std::size_t it) { return it <= most; });
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Returns a shape as "[2, 3]", for messages; of many dimensions the first ones.
MP_CORE_FUNCTION std::string shape_text(std::span<const std::size_t> shape);

struct row_shape {
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
};

/// Returns the shape as rows of the length of the last dimension, (4, 0) as four rows without columns. An array
/// without dimensions is a matrix of one element. `array` names it in messages.
///
/// \throws file_error  a dimension, or the number of rows, exceeds ptrdiff_t
MP_CORE_FUNCTION row_shape as_rows(const std::string& path, const std::string& array,
                                   std::span<const std::size_t> shape);

#if MP_CORE_BODIES
MP_CORE_FUNCTION std::string shape_text(std::span<const std::size_t> shape) {
    constexpr std::size_t most = 8;
    std::string text = "[";
    for (std::size_t i = 0; i < shape.size() && i < most; ++i) {
        text.append(i == 0 ? "" : ", ").append(error_text(shape[i]));
    }
    return text.append(shape.size() > most ? ", ...]" : "]");
}

MP_CORE_FUNCTION row_shape as_rows(const std::string& path, const std::string& array,
                                   std::span<const std::size_t> shape) {
    if (shape.empty()) return {1, 1};
    const std::size_t sizes[] = {element_count(shape.first(shape.size() - 1)).value_or(~std::size_t{0}),
                                 shape.back()};
    if (!are_dimensions(shape) || !are_dimensions(sizes)) {
        throw_file(path, array + " has the shape " + shape_text(shape) + ", which is too large for a matrix");
    }
    return {static_cast<std::ptrdiff_t>(sizes[0]), static_cast<std::ptrdiff_t>(sizes[1])};
}
#endif

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The elements where they lie. `array` says what they are, in messages.
///
/// \throws file_error  they are not where the type can be read, or in another order of bytes
template <class Value>
std::span<const Value> elements_in_place(const std::string& path, const std::string& array,
                                         std::span<const std::byte> bytes, std::size_t count) {
    if (count == 0) return {};
    if (sizeof(Value) > 1 && std::endian::native != std::endian::little) {
        throw_file(path, array + " is little-endian, which this processor is not: read() it");
    }
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(Value) != 0) {
        throw_file(path, array + " does not begin where its type can be read in place: read() it");
    }
    if constexpr (std::is_same_v<Value, bool>) {
        // Other bytes are not values of the type.
        for (const std::byte it : bytes) {
            if (it > std::byte{1}) throw_file(path, array + " is not 0 or 1");
        }
    }
    return {reinterpret_cast<const Value*>(bytes.data()), count};
}

/// Returns the elements as a matrix of that shape.
template <class Value>
matrix_view<const Value> as_matrix(const std::string& path, const std::string& array,
                                   std::span<const Value> elements, std::span<const std::size_t> shape) {
    const row_shape size = as_rows(path, array, shape);
    return row_major(elements.data(), size.rows, size.columns);
}

}}  // namespace mp::detail
