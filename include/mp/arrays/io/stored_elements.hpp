// SPDX-License-Identifier: MIT
/// \file
/// Arrays of numbers as they lie in files: which types can, and how they are seen in place or copied.
#pragma once

#include <mp/arrays/io/file_mapping.hpp>
#include <mp/base/contiguous.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/format/operations.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
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

/// The product of a shape, which may be hostile, in elements that are addressed; the largest number if it
/// is larger.
inline std::size_t element_count(std::span<const std::size_t> shape) noexcept {
    constexpr std::size_t most = (std::numeric_limits<std::size_t>::max)();
    std::size_t count = 1;
    for (const std::size_t dimension : shape) {
        if (dimension != 0 && count > most / 64 / dimension) return most;
        count *= dimension;
    }
    return count;
}

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

/// Elements in rows of the length of the last dimension; what has no dimension is a matrix of one element.
template <class Value>
matrix_view<const Value> as_rows(std::span<const Value> elements, std::span<const std::size_t> shape) {
    const std::size_t columns = shape.empty() ? 1 : shape.back();
    const std::size_t rows = columns == 0 ? 0 : elements.size() / columns;
    return row_major(elements.data(), static_cast<std::ptrdiff_t>(rows),
                     static_cast<std::ptrdiff_t>(columns));
}

}}  // namespace mp::detail
