// SPDX-License-Identifier: MIT
/// \file
/// Checks of the arguments of a matrix product, all of them before anything is written.
#pragma once

#include <mp/base/view_extent.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Whether two checked views share a byte that belongs to an element of both. Exact when the views have the
/// same orientation and their vectors are the same distance apart, as blocks of one larger matrix are, or one of
/// them is a single vector, as arrays are; in all other cases the answer is whether the ranges from first to last
/// element overlap.
inline bool views_overlap(const view_extent& a, const view_extent& b) {
    if (a.empty() || b.empty()) return false;
    if (a.address >= b.address + b.byte_count() || b.address >= a.address + a.byte_count()) return false;
    const bool is_one_vector = a.vector_count() == 1 || b.vector_count() == 1;
    const view_extent& spaced = a.vector_count() == 1 ? b : a;
    const std::ptrdiff_t stride = spaced.leading_dimension * spaced.element_size;
    if (!is_one_vector && (a.row_major != b.row_major || stride != b.leading_dimension * b.element_size)) {
        return true;
    }
    // Vectors longer than the stride leave no gaps.
    if (a.vector_length() * a.element_size > stride || b.vector_length() * b.element_size > stride)
        return true;
    // The higher view starts `shift` bytes behind the start of vector `vectors` of the lower one, which is a
    // vector that exists since the ranges overlap. Its own vectors can meet that vector and the following
    // ones from behind, and reach into the next; no further, since none is longer than the stride.
    const view_extent& low = a.address <= b.address ? a : b;
    const view_extent& high = a.address <= b.address ? b : a;
    const std::ptrdiff_t distance = static_cast<std::ptrdiff_t>(high.address - low.address);
    const std::ptrdiff_t vectors = distance / stride;
    const std::ptrdiff_t shift = distance % stride;
    const bool meets_same = shift < low.vector_length() * low.element_size;
    const bool meets_next =
        shift + high.vector_length() * high.element_size > stride && vectors + 1 < low.vector_count();
    return meets_same || meets_next;
}

/// Throws when c, which is written, shares elements with an input, which is read at the same time.
inline void check_no_overlap(std::string_view function, const view_extent& c, std::string_view input_name,
                             const view_extent& input) {
    if (!views_overlap(c, input)) return;
    char digits[2 * sizeof(std::uintptr_t)];
    const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, c.address, 16);
    throw_joined<argument_error>({function,
                                  ": c.data is 0x",
                                  {digits, end.ptr},
                                  "; it must not make c overlap ",
                                  input_name,
                                  ", which is read while c is written"});
}

/// An operand with the name that messages call it by.
struct named_operand {
    std::string_view name;
    view_extent extent;
};

/// Throws when an array that is written shares elements with another operand.
inline void check_separate(std::string_view function, const named_operand& written,
                           const named_operand& other) {
    if (!views_overlap(written.extent, other.extent)) return;
    throw_joined<argument_error>({function, ": ", written.name, " overlaps ", other.name,
                                  "; they must not share elements, because ", written.name,
                                  " is written while ", other.name, " is in use"});
}

/// Whether two views have the same elements in the same places.
inline bool same_elements(const view_extent& a, const view_extent& b) {
    const auto row_stride = [](const view_extent& x) { return x.row_major ? x.leading_dimension : 1; };
    const auto column_stride = [](const view_extent& x) { return x.row_major ? 1 : x.leading_dimension; };
    return a.address == b.address && a.element_size == b.element_size && a.rows == b.rows &&
           a.columns == b.columns && (a.rows < 2 || row_stride(a) == row_stride(b)) &&
           (a.columns < 2 || column_stride(a) == column_stride(b));
}

/// As check_separate, for what is computed element by element: the same elements in the same places may be
/// written over.
inline void check_separate_or_same(std::string_view function, const named_operand& written,
                                   const named_operand& other) {
    if (!same_elements(written.extent, other.extent)) check_separate(function, written, other);
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

}}  // namespace mp::detail
