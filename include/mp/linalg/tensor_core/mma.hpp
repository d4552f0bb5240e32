// SPDX-License-Identifier: MIT
/// \file
/// Products of whole fragments as tensor cores compute them.
#pragma once

#include <mp/linalg/gemm/validation.hpp>
#include <mp/linalg/tensor_core/block_fma.hpp>
#include <mp/matrix_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Throws argument_error where d shares elements with what is read while it is written.
inline void check_result_apart(std::string_view name, const view_extent& input, const view_extent& d) {
    if (!views_overlap(d, input)) return;
    throw_joined<argument_error>(
        {"mp::mma: d.data makes d overlap ", name, "; it must not, since that is read while d is written"});
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// d = a b + c as the matrix instructions of an architecture compute it, the bits that the GPU returns: for
/// each element, blocks of as many products as the rule has (see block_fma), low k first, each with the
/// result of the one before as its addend, the first one with c. Zeros fill the last block up.
///
/// a is m x k, b is k x n, c and d are m x n, each in its own storage order, of any sizes. For one
/// instruction they are its fragments as matrices, such as 16 x 8 x 16; longer ones are that instruction
/// repeated. c and d are float or half, the type of the accumulators; d may be c. Without products (k == 0)
/// d is c.
///
/// Throws argument_error, before anything is written, for shapes and views that do not fit, for a d that
/// overlaps a, b or, in another way than being equal to it, c, and for a unit that the architecture lacks.
/// Allocates nothing. A plain loop of some 10 ns for a product: mp::gemm is the fast one.
///
///     mp::mma<mp::arch::sm_80>(mp::row_major(a, 16, 16), mp::column_major(b, 16, 8),
///                              mp::row_major(c, 16, 8), mp::row_major(d, 16, 8));
template <arch Arch, class A, class B, class C, class Output>
constexpr void mma(matrix_view<A> a, matrix_view<B> b, matrix_view<C> c, matrix_view<Output> d,
                   float8_unit unit = float8_unit::native) {
    static_assert(std::is_same_v<std::remove_const_t<C>, Output>,
                  "mp: mma adds to accumulators of the type of its result");
    using a_value = std::remove_const_t<A>;
    using b_value = std::remove_const_t<B>;
    constexpr std::string_view function = "mp::mma";
    constexpr block_rule rule = detail::checked_block_rule<Arch, A, B, Output>();
    detail::check_float8_unit<Arch, a_value, Output>(function, "unit", unit);
    if (!std::is_constant_evaluated()) {
        detail::check_view(function, "a", detail::extent_of(a));
        detail::check_view(function, "b", detail::extent_of(b));
        detail::check_view(function, "c", detail::extent_of(c));
        detail::check_view(function, "d", detail::extent_of(d));
        detail::check_equal_sizes(function, "b.rows", b.rows, "a.columns", a.columns);
        detail::check_equal_sizes(function, "c.rows", c.rows, "a.rows", a.rows);
        detail::check_equal_sizes(function, "c.columns", c.columns, "b.columns", b.columns);
        detail::check_equal_sizes(function, "d.rows", d.rows, "a.rows", a.rows);
        detail::check_equal_sizes(function, "d.columns", d.columns, "b.columns", b.columns);
        detail::check_result_apart("a", detail::extent_of(a), detail::extent_of(d));
        detail::check_result_apart("b", detail::extent_of(b), detail::extent_of(d));
        const bool in_place = c.data == d.data && c.order == d.order &&
                              c.leading_dimension == d.leading_dimension && c.rows == d.rows &&
                              c.columns == d.columns;
        if (!in_place) detail::check_result_apart("c", detail::extent_of(c), detail::extent_of(d));
    }

    const std::ptrdiff_t step = detail::products_of<a_value>(rule, unit);
    for (std::ptrdiff_t row = 0; row < d.rows; ++row) {
        for (std::ptrdiff_t column = 0; column < d.columns; ++column) {
            std::uint32_t sum = detail::accumulator_bits<Output>(c(row, column));
            for (std::ptrdiff_t k = 0; k < a.columns; k += step) {
                sum = detail::block_step_bits<Arch, Output, a_value, b_value>(
                    unit, static_cast<int>((std::min)(step, a.columns - k)),
                    [&](int i) { return a(row, k + i); }, [&](int i) { return b(k + i, column); }, sum);
            }
            d(row, column) = detail::accumulator_from_bits<Output>(sum);
        }
    }
}

}}  // namespace mp
