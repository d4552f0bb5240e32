// SPDX-License-Identifier: MIT
/// \file
/// Sums and products of matrices, element by element, also with a row that is repeated; forward and backward.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/autocast/library_op.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/matrix_operand.hpp>
#include <mp/numbers/rules/function_names.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#if MP_CORE_BODIES
#include <mp/arrays/array/for_each_element.hpp>
#include <mp/arrays/array/sums.hpp>
#endif

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class View>
inline constexpr bool is_matrix = false;
template <class Element>
inline constexpr bool is_matrix<matrix_view<Element>> = true;
template <class View, bool ReadsOldValues>
inline constexpr bool is_matrix<autocast::output_operand<View, ReadsOldValues>> = is_matrix<View>;
template <class View>
inline constexpr bool is_matrix<autocast::sum_operand<View>> = is_matrix<View>;

template <class View>
inline constexpr bool is_absent = std::is_same_v<std::remove_cvref_t<View>, ops::absent_t>;

/// The second operand of an element-wise op as a matrix: itself, or a row repeated.
template <class Element>
matrix_view<const Element> as_matrix(matrix_view<const Element> b, std::ptrdiff_t /*rows*/) {
    return b;
}
template <class Element>
matrix_view<const Element> as_matrix(std::span<const Element> b, std::ptrdiff_t rows) {
    return {b.data(), rows, static_cast<std::ptrdiff_t>(b.size()), 0, storage_order::row_major};
}

/// b itself, or a row repeated.
[[nodiscard]] inline any_matrix as_matrix(const any_operand& b, std::ptrdiff_t rows) {
    any_matrix result = b;
    if (b.is_vector) {
        result.rows = rows;
        result.leading_dimension = 0;
    }
    return result;
}

template <class View>
[[nodiscard]] constexpr bool is_matrix_operand(const View& /*view*/) {
    return is_matrix<View>;
}
[[nodiscard]] inline bool is_matrix_operand(const any_operand& view) {
    return view.type != nullptr && !view.is_vector;
}

/// Checks that a second operand, or its gradient, fits `a`; an absent one does.
template <class View>
void check_matrix_or_row(std::string_view function, const named_operand& operand, const View& view,
                         const named_operand& a) {
    if (is_matrix_operand(view)) {
        check_same_shape(function, operand, a);
    } else if (is_present(view)) {
        check_size(function, operand, a.extent.columns, std::string(a.name) + ".columns");
    }
}

/// Tag of y = f(a, b), element by element: mixes arrays, so in the widest of their types.
template <class Op, autocast::fixed_string Name, class Function>
struct binary_op : library_op<Op, Name> {
    static constexpr auto category = op_category::promote_widest;
    static constexpr std::array<std::string_view, 4> argument_names{"exec", "a", "b", "y"};

    static void validate(const auto& exec, const auto& a, const auto& b, const auto& y) {
        check_executor(Op::function, exec);
        const auto left = named("a", a);
        const auto right = named("b", b);
        const auto output = named("y", y);
        check_operand(Op::function, left);
        check_matrix_or_row(Op::function, right, b, left);
        check_matrix_or_row(Op::function, output, y, left);
        check_separate_or_same(Op::function, output, left);
        if (is_matrix_operand(b)) {
            check_separate_or_same(Op::function, output, right);
        } else {
            check_separate(Op::function, output, right);
        }
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const any_operand& a, const any_operand& b, const any_operand& y) {
        map_operands<Function, Real>(exec, y, a, as_matrix(b, a.rows));
    }
    void operator()(const gpu_executor auto& exec, const auto& a, const auto& b, const auto& y) const {
        map_elements(Function{}, exec, y, a, as_matrix(b, a.rows));
    }
};

struct product_term {
    template <class T>
    MP_ALWAYS_INLINE T operator()(T a, T b) const {
        return a * b;
    }
};

#if MP_CORE_BODIES
/// Writes a gradient that is the sum of the rows of a matrix of terms, or the terms themselves.
template <class Real, class Term, class... In>
void write_gradient(const cpu& exec, Term term, const any_operand& result, const any_matrix& first,
                    const In&... in) {
    if (result.type == nullptr) return;
    if (result.is_vector) return sum_columns<Real>(exec, term, 1.0, result, first, in...);
    for_each_number<Real>(exec, term, result, first, in...);
}
#endif

/// The element-wise function with the values of a term.
template <class Term>
struct function_of_term {
    using type = identity_function;
};
template <>
struct function_of_term<product_term> {
    using type = product_function;
};

/// The same on a GPU.
template <gpu_executor Executor, class Result, class Term, class... In>
void write_gradient(const Executor& exec, Term /*term*/, const matrix_view<Result>& result,
                    matrix_view<const In>... in) {
    map_elements(typename function_of_term<Term>::type{}, exec, result, in...);
}
template <gpu_executor Executor, class Result, class Term, class... In>
void write_gradient(const Executor& exec, Term term, const std::span<Result>& result,
                    matrix_view<const In>... in) {
    sum_column_terms(term, exec, result, in...);
}
template <gpu_executor Executor, class Term, class... In>
void write_gradient(const Executor& /*exec*/, Term /*term*/, ops::absent_t /*result*/,
                    matrix_view<const In>... /*in*/) {}

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Tag of add().
struct add_op : detail::binary_op<add_op, "add", detail::sum_function> {
    static constexpr std::array<std::string_view, 6> known_as{"Add",          "AddV2",         "BiasAdd",
                                                              "elemwise_add", "broadcast_add", "_npi_add"};
};

/// y = a + b, element by element. b is a matrix of the shape of a and y, or a contiguous range of a.columns
/// elements that is added to every row.
///
/// Formats are any mp::ops::element, in any mix; matrices have any storage order and leading dimension. The
/// sum is rounded to float and from there to the format of y. Under a policy, inputs are cast to the widest
/// of their formats, and the result has that format, too. y may be a, or a matrix b, but not overlap them
/// otherwise.
///
/// Throws argument_error for shapes that differ, invalid views and operands that overlap; y is then
/// unchanged.
template <class Policy = autocast::by_region, executor Executor = cpu, element A, class B, matrix_result Y>
void add(const Executor& exec, matrix_view<A> a, const B& b, const Y& y) {
    static_assert(!detail::is_absent<B>, "mp::ops: b is a matrix view or a contiguous range, not absent");
    detail::call_op<Policy>(add_op{}, exec, detail::input_view(a), detail::input_view(b),
                            detail::output_view(y));
}

/// Tag of multiply().
struct multiply_op : detail::binary_op<multiply_op, "multiply", detail::product_function> {
    static constexpr std::array<std::string_view, 5> known_as{"mul", "Mul", "elemwise_mul", "broadcast_mul",
                                                              "_npi_multiply"};
};

/// y = a * b, element by element (not the matrix product: that is matmul). Operands, rounding and errors are
/// those of add().
template <class Policy = autocast::by_region, executor Executor = cpu, element A, class B, matrix_result Y>
void multiply(const Executor& exec, matrix_view<A> a, const B& b, const Y& y) {
    static_assert(!detail::is_absent<B>, "mp::ops: b is a matrix view or a contiguous range, not absent");
    detail::call_op<Policy>(multiply_op{}, exec, detail::input_view(a), detail::input_view(b),
                            detail::output_view(y));
}

/// Tag of add_backward().
struct add_backward_op : detail::library_op<add_backward_op, "add_backward"> {
    static constexpr auto category = add_op::category;
    using forward_op = add_op;
    static constexpr std::array<std::string_view, 4> argument_names{"exec", "dy", "da", "db"};

    static void validate(const auto& exec, const auto& dy, const auto& da, const auto& db) {
        detail::check_executor(function, exec);
        const auto gradient = detail::named("dy", dy);
        const auto left = detail::named("da", da);
        const auto right = detail::named("db", db);
        detail::check_operand(function, gradient);
        detail::check_matrix_or_row(function, left, da, gradient);
        detail::check_matrix_or_row(function, right, db, gradient);
        detail::check_separate_or_same(function, left, gradient);
        detail::check_separate(function, right, gradient);
        detail::check_separate(function, right, left);
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_operand& dy, const detail::any_operand& da,
                        const detail::any_operand& db) {
        write_gradient<Real>(exec, detail::itself{}, db, dy);
        write_gradient<Real>(exec, detail::itself{}, da, dy);
    }
    void operator()(const gpu_executor auto& exec, const auto& dy, const auto& da, const auto& db) const {
        write_gradient(exec, detail::itself{}, db, dy);
        write_gradient(exec, detail::itself{}, da, dy);
    }
};

/// The gradients of y = a + b: da = dy, and db = dy, or the sum of the rows of dy if db is a contiguous range
/// of dy.columns elements. Either may be mp::ops::absent, and is then not written.
///
/// Sums are in double, so that they are as good as rounded once up to some million rows (sums.hpp), and do
/// not depend on threads or storage order; on a GPU they are those of sum(). da may be dy; otherwise the
/// results overlap neither dy nor each other. Throws argument_error as add() does; da and db are then
/// unchanged.
template <class Policy = autocast::by_region, executor Executor = cpu, element DY, class DA, class DB>
void add_backward(const Executor& exec, matrix_view<DY> dy, DA&& da, DB&& db) {
    detail::call_op<Policy>(add_backward_op{}, exec, detail::input_view(dy), detail::output_view(da),
                            detail::output_view(db));
}

/// Tag of multiply_backward().
struct multiply_backward_op : detail::library_op<multiply_backward_op, "multiply_backward"> {
    static constexpr auto category = multiply_op::category;
    using forward_op = multiply_op;
    static constexpr std::array<std::string_view, 6> argument_names{"exec", "a", "b", "dy", "da", "db"};

    static void validate(const auto& exec, const auto& a, const auto& b, const auto& dy, const auto& da,
                         const auto& db) {
        detail::check_executor(function, exec);
        const auto left = detail::named("a", a);
        const auto right = detail::named("b", b);
        const auto gradient = detail::named("dy", dy);
        const auto left_gradient = detail::named("da", da);
        const auto right_gradient = detail::named("db", db);
        detail::check_operand(function, left);
        detail::check_matrix_or_row(function, right, b, left);
        detail::check_matrix_or_row(function, gradient, dy, left);
        detail::check_matrix_or_row(function, left_gradient, da, left);
        detail::check_matrix_or_row(function, right_gradient, db, left);
        detail::check_separate(function, left_gradient, left);
        detail::check_separate(function, left_gradient, right);
        detail::check_separate_or_same(function, left_gradient, gradient);
        for (const auto& other : {left, right, gradient, left_gradient}) {
            detail::check_separate(function, right_gradient, other);
        }
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_operand& a, const detail::any_operand& b,
                        const detail::any_operand& dy, const detail::any_operand& da,
                        const detail::any_operand& db) {
        write_gradient<Real>(exec, detail::product_term{}, db, dy, a);
        write_gradient<Real>(exec, detail::product_term{}, da, dy, detail::as_matrix(b, a.rows));
    }
    void operator()(const gpu_executor auto& exec, const auto& a, const auto& b, const auto& dy,
                    const auto& da, const auto& db) const {
        write_gradient(exec, detail::product_term{}, db, dy, a);
        write_gradient(exec, detail::product_term{}, da, dy, detail::as_matrix(b, a.rows));
    }
};

/// The gradients of y = a * b: da = dy * b and db = dy * a; if b, and so db, is a contiguous range, db is the
/// sum of the rows of dy * a. Either may be mp::ops::absent, and is then not written.
///
/// Products are exact in double, sums of them are as in add_backward(). da may be dy; otherwise the results
/// overlap no other operand. Throws argument_error as add() does; da and db are then unchanged.
template <class Policy = autocast::by_region, executor Executor = cpu, element A, class B, element DY,
          class DA, class DB>
void multiply_backward(const Executor& exec, matrix_view<A> a, const B& b, matrix_view<DY> dy, DA&& da,
                       DB&& db) {
    using second = decltype(detail::input_view(b));
    using second_gradient = decltype(detail::output_view(db));
    static_assert(!detail::is_absent<second>,
                  "mp::ops::multiply_backward: b is a matrix view or a contiguous range, not absent");
    static_assert(
        detail::is_absent<second_gradient> || detail::is_matrix<second> == detail::is_matrix<second_gradient>,
        "mp::ops::multiply_backward: db has the form of b, a matrix view or a contiguous range");
    detail::call_op<Policy>(multiply_backward_op{}, exec, detail::input_view(a), detail::input_view(b),
                            detail::input_view(dy), detail::output_view(da), detail::output_view(db));
}

}}  // namespace mp::ops
