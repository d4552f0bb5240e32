// SPDX-License-Identifier: MIT
/// \file
/// Checks of the arguments of a matrix product, all of them before anything is written.
#pragma once

#include <mp/base/view_extent.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Whether two checked views share a byte that belongs to an element of both. Exact when the views have the
/// same orientation and their vectors are the same distance apart, as blocks of one larger matrix are; in all
/// other cases the answer is whether the ranges from first to last element overlap.
inline bool views_overlap(const view_extent& a, const view_extent& b) {
    if (a.empty() || b.empty()) return false;
    if (a.address >= b.address + b.byte_count() || b.address >= a.address + a.byte_count()) return false;
    const std::ptrdiff_t stride = a.leading_dimension * a.element_size;
    if (a.row_major != b.row_major || stride != b.leading_dimension * b.element_size) return true;
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
    throw_error(argument_error(std::string(function) + ": c.data is 0x" + std::string(digits, end.ptr) +
                               "; it must not make c overlap " + std::string(input_name) +
                               ", which is read while c is written"));
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
