// SPDX-License-Identifier: MIT
/// \file
/// How autocast casts matrix views: into a dense copy with the same order of elements.
#pragma once

#include <mp/arrays/array/element_type.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/validation.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/autocast/operand.hpp>
#include <mp/numbers/rules/function_names.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>

namespace mp::autocast {

/// Matrix views are operands of ops. A view that has no valid shape, or null data, makes the cast throw
/// argument_error.
template <class Element>
    requires floating<std::remove_const_t<Element>>
struct operand_traits<matrix_view<Element>> {
    static constexpr operand_kind kind = operand_kind::array;
    using element = std::remove_const_t<Element>;
    static constexpr bool writable = !std::is_const_v<Element>;

    static matrix_view<const element> as_input(matrix_view<Element> view) { return view; }

    static std::size_t size(matrix_view<Element> view) {
        detail::check_view("mp::autocast::call", "matrix", detail::extent_of(view));
        return static_cast<std::size_t>(view.rows) * static_cast<std::size_t>(view.columns);
    }

    static const void* address(matrix_view<Element> view) { return view.data; }
    static std::array<std::ptrdiff_t, 4> shape(matrix_view<Element> view) {
        return {view.rows, view.columns, view.leading_dimension, static_cast<std::ptrdiff_t>(view.order)};
    }

    static std::span<const element> contiguous(matrix_view<Element> view) {
        const bool by_rows = view.order == storage_order::row_major;
        if (view.leading_dimension != (by_rows ? view.columns : view.rows)) return {};
        return {view.data, static_cast<std::size_t>(view.rows * view.columns)};
    }

    template <class To>
    static matrix_view<To> dense(To* storage, matrix_view<Element> view) {
        return {storage, view.rows, view.columns,
                view.order == storage_order::row_major ? view.columns : view.rows, view.order};
    }

    /// `from` and `to` have the same order of elements.
    template <gpu_executor Executor, class From, class To>
    static void copy(const Executor& exec, matrix_view<From> from, matrix_view<To> to) {
        map_elements(detail::identity_function{}, exec, to, matrix_view<const From>(from));
    }
    /// `from` and `to` have the same order of elements.
    template <class Executor, class From, class To>
    static void add(const Executor& exec, matrix_view<From> from, matrix_view<To> to) {
        map_elements(detail::sum_function{}, exec, to, matrix_view<const To>(to),
                     matrix_view<const From>(from));
    }
    template <class From, class To>
    static void copy(const cpu& exec, matrix_view<From> from, matrix_view<To> to) {
        copy_elements(exec, detail::any_matrix_of(from), detail::any_matrix_of(to));
    }
};

}  // namespace mp::autocast
