// SPDX-License-Identifier: MIT
/// \file
/// Sums and means of all elements of a matrix, of each row or of each column; forward and backward.
#pragma once

#include <mp/base/contiguous.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/autocast/library_op.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/matrix_operand.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#if MP_CORE_BODIES
#include <mp/arrays/array/for_each_element.hpp>
#include <mp/arrays/array/sums.hpp>
#endif

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// What a reduction has one result for.
enum class per : unsigned char {
    row,    ///< y[r] from the elements of row r
    column  ///< y[c] from the elements of column c
};

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Checks the array with one element per row or column of the matrix that has been checked.
inline void check_per(std::string_view function, const named_operand& array, const named_operand& matrix,
                      ops::per axis) {
    if (axis > ops::per::column) {
        throw_argument(function, "axis", static_cast<unsigned>(axis),
                       "must be an enumerator of mp::ops::per");
    }
    const bool rows = axis == ops::per::row;
    check_size(function, array, rows ? matrix.extent.rows : matrix.extent.columns,
               std::string(matrix.name) + (rows ? ".rows" : ".columns"));
}

inline void check_mean_of_some(std::string_view function, std::string_view what, std::ptrdiff_t size) {
    if (size != 0) return;
    throw_argument(function, what, size, "must be at least 1, since the mean of no elements is undefined");
}

/// Names the sums of rows or columns, for sum_per().
struct vector_sums {};

#if MP_CORE_BODIES
/// y = the sums of the rows or columns of x, divided by the divisor. On a GPU the function of this name in
/// <mp/nn/ops/reductions/gpu.hpp> does it.
template <class Real>
void sum_per(const cpu& exec, const any_matrix& x, const any_matrix& y, ops::per axis,
             std::ptrdiff_t divisor) {
    sum_columns<Real>(exec, itself{}, static_cast<double>(divisor), y,
                      axis == ops::per::row ? x.transposed() : x);
}
#endif

/// What sum and mean share; Op is the tag.
template <class Op, autocast::fixed_string Name, bool IsMean>
struct reduction : library_op<Op, Name> {
    static constexpr bool is_mean = IsMean;
    static constexpr std::array<std::string_view, 4> argument_names{"exec", "x", "y", "axis"};

    static void validate(const cpu& exec, const auto& x) {
        check_executor(Op::function, exec);
        const auto input = named("x", x);
        check_operand(Op::function, input);
        if constexpr (is_mean) {
            check_mean_of_some(Op::function, "x.rows", input.extent.rows);
            check_mean_of_some(Op::function, "x.columns", input.extent.columns);
        }
    }
    static void validate(const auto& exec, const auto& x, const auto& y, ops::per axis) {
        check_executor(Op::function, exec);
        const auto input = named("x", x);
        const auto output = named("y", y);
        check_operand(Op::function, input);
        check_per(Op::function, output, input, axis);
        if constexpr (is_mean) {
            const bool rows = axis == ops::per::row;
            check_mean_of_some(Op::function, rows ? "x.columns" : "x.rows",
                               rows ? input.extent.columns : input.extent.rows);
        }
        check_separate(Op::function, output, input);
    }

    template <class Real>
    static Real compute_number(const cpu& exec, const any_operand& x) {
        const double sum = sum_all<Real>(exec, itself{}, x);
        return as<Real>(is_mean ? double_divide(sum, static_cast<double>(x.rows * x.columns)) : sum);
    }
    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const any_operand& x, const any_operand& y, ops::per axis) {
        const std::ptrdiff_t added = axis == ops::per::row ? x.columns : x.rows;
        sum_per<Real>(exec, x, y, axis, is_mean ? added : 1);
    }
    void operator()(const gpu_executor auto& exec, const auto& x, const auto& y, ops::per axis) const {
        const std::ptrdiff_t added = axis == ops::per::row ? x.columns : x.rows;
        sum_per(vector_sums{}, exec, x, y, axis, is_mean ? added : 1);
    }
};

/// The gradient of each of `count` elements from that of their sum or mean: the quotient in double, rounded once.
template <bool IsMean>
struct gradient_of_each {
    std::ptrdiff_t count;

    template <class Real>
    MP_HOST_DEVICE Real operator()(Real dy) const {
        if constexpr (!IsMean) {
            return dy;
        } else if constexpr (std::same_as<Real, float>) {
            return float_from_double(double_divide(dy, static_cast<double>(count)));
        } else {
            return double_divide(dy, static_cast<double>(count));
        }
    }
};

template <class Op, autocast::fixed_string Name, class Forward>
struct reduction_backward : library_op<Op, Name> {
    using forward_op = Forward;
    static constexpr bool is_mean = Forward::is_mean;
    static constexpr auto category = Forward::category;
    static constexpr std::array<std::string_view, 4> argument_names{"exec", "dy", "dx", "axis"};
    static constexpr std::array<std::string_view, 0> known_as{};

    template <std::floating_point DY>
    static void validate(cpu exec, DY /*dy*/, const auto& dx) {
        check_threads(Op::function, exec);
        check_operand(Op::function, named("dx", dx));
    }
    static void validate(const auto& exec, const auto& dy, const auto& dx, ops::per axis) {
        check_executor(Op::function, exec);
        const auto gradient = named("dy", dy);
        const auto result = named("dx", dx);
        check_operand(Op::function, result);
        check_per(Op::function, gradient, result, axis);
        check_separate(Op::function, result, gradient);
    }

    template <class Real>
    static void compute_number(const cpu& exec, const Real& dy, const any_operand& dx) {
        const Real value = gradient_of_each<is_mean>{dx.rows * dx.columns}(dy);
        for_each_real<Real>(exec, [value] { return value; }, dx);
    }
    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const any_operand& dy, const any_operand& dx, ops::per axis) {
        const bool rows = axis == ops::per::row;
        any_matrix broadcast = dy;
        broadcast.rows = dx.rows;
        broadcast.columns = dx.columns;
        broadcast.leading_dimension = 0;
        broadcast.row_major = !rows;
        for_each_real<Real>(exec, gradient_of_each<is_mean>{rows ? dx.columns : dx.rows}, dx, broadcast);
    }
    template <gpu_executor Executor, ops::element DY, ops::element DX>
    void operator()(const Executor& exec, std::span<const DY> dy, matrix_view<DX> dx, ops::per axis) const {
        const bool rows = axis == ops::per::row;
        const matrix_view<const DY> broadcast{dy.data(), dx.rows, dx.columns, 0,
                                              rows ? storage_order::column_major : storage_order::row_major};
        broadcast_per(vector_sums{}, exec, gradient_of_each<is_mean>{rows ? dx.columns : dx.rows}, broadcast,
                      dx);
    }
};

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Tag of sum(): long sums, so in float.
struct sum_op : detail::reduction<sum_op, "sum", false> {
    static constexpr auto category = op_category::full_precision_output;
    static constexpr std::array<std::string_view, 2> known_as{"Sum", "_npi_sum"};
};

/// The sum of all elements of x, a matrix in any storage order and format; 0 if there are none.
///
/// Elements are added in double, in an order that depends on the shape of x alone, and the sum is rounded to
/// float once (that of doubles is a double). Its error is at most half a unit in the last place and n 2^-53
/// times the sum of the magnitudes of the n elements, which matters where large elements of both signs
/// cancel. NaN, and infinities of both signs, give NaN. Throws argument_error for an invalid view.
template <class Policy = autocast::by_region, element X>
detail::arithmetic_type<X> sum(cpu exec, matrix_view<X> x) {
    return detail::call_op<Policy>(sum_op{}, exec, detail::input_view(x));
}

/// y = the sums of the elements of each row or of each column of x:
///
///     mp::ops::sum(exec, x, y, mp::ops::per::row);     // y[r] = x(r, 0) + x(r, 1) + ...
///
/// y is a contiguous range with one element per row, or per column. Sums are as in the other overload, each
/// rounded to float and from there to the format of y. Throws argument_error for a y of another size, invalid
/// views and a y that overlaps x; y is then unchanged.
///
/// On a GPU a float sum is the CPU's, that is the exact one rounded, unless the sum of the magnitudes is more
/// than 2^20 / rows^2 times as large as the sum; the error is below 2^-24 of the sum and rows^2 2^-48 of the
/// magnitudes (columns^2 for sums of rows). Sums that leave float's range on the way are infinite or NaN.
/// There are no atomic operations: the order of the additions depends on the shape and the size of the format
/// alone. Sums of columns need a workspace of sum_workspace(rows, columns, axis) bytes.
template <class Policy = autocast::by_region, executor Executor = cpu, element X, class Y>
void sum(const Executor& exec, matrix_view<X> x, Y&& y, per axis) {
    detail::call_op<Policy>(sum_op{}, exec, detail::input_view(x), detail::output_view(y), axis);
}

/// Tag of mean(): long sums, so in float.
struct mean_op : detail::reduction<mean_op, "mean", true> {
    static constexpr auto category = op_category::full_precision;
    static constexpr std::array<std::string_view, 2> known_as{"Mean", "_npi_mean"};
};

/// The mean of all elements of x: the sum, as in sum(), divided by their number in double and rounded once.
/// So it is finite even where the sum would be beyond float. Throws argument_error for an invalid view and
/// for a matrix without elements.
template <class Policy = autocast::by_region, element X>
detail::arithmetic_type<X> mean(cpu exec, matrix_view<X> x) {
    return detail::call_op<Policy>(mean_op{}, exec, detail::input_view(x));
}

/// y = the means of each row or of each column of x, else like sum(exec, x, y, axis). Throws argument_error
/// also for rows, or columns, without elements.
template <class Policy = autocast::by_region, executor Executor = cpu, element X, class Y>
void mean(const Executor& exec, matrix_view<X> x, Y&& y, per axis) {
    detail::call_op<Policy>(mean_op{}, exec, detail::input_view(x), detail::output_view(y), axis);
}

/// Tag of sum_backward().
struct sum_backward_op : detail::reduction_backward<sum_backward_op, "sum_backward", sum_op> {};

/// The gradient of the sum of all elements: every element of dx, a matrix in any storage order, is dy,
/// rounded once to its format. Throws argument_error for an invalid view.
template <class Policy = autocast::by_region, matrix_result DX>
void sum_backward(cpu exec, detail::arithmetic_type<DX> dy, const DX& dx) {
    detail::call_op<Policy>(sum_backward_op{}, exec, dy, detail::output_view(dx));
}

/// The gradient of the sums of each row or column: dx(r, c) = dy[r], or dy[c], rounded once. dy is a
/// contiguous range with one element per row, or column, of dx. Throws argument_error for sizes that do not
/// fit, invalid views and a dx that overlaps dy; dx is then unchanged. A GPU gives the same bits.
template <class Policy = autocast::by_region, executor Executor = cpu, detail::contiguous DY,
          matrix_result DX>
void sum_backward(const Executor& exec, const DY& dy, const DX& dx, per axis) {
    detail::call_op<Policy>(sum_backward_op{}, exec, detail::input_view(dy), detail::output_view(dx), axis);
}

/// Tag of mean_backward().
struct mean_backward_op : detail::reduction_backward<mean_backward_op, "mean_backward", mean_op> {};

/// The gradient of the mean of all elements: every element of dx is dy divided by their number, rounded to
/// float and from there to its format. Errors are those of sum_backward().
template <class Policy = autocast::by_region, matrix_result DX>
void mean_backward(cpu exec, detail::arithmetic_type<DX> dy, const DX& dx) {
    detail::call_op<Policy>(mean_backward_op{}, exec, dy, detail::output_view(dx));
}

/// The gradient of the means of each row or column: dx(r, c) = dy[r] / columns, or dy[c] / rows, else like
/// sum_backward().
template <class Policy = autocast::by_region, executor Executor = cpu, detail::contiguous DY,
          matrix_result DX>
void mean_backward(const Executor& exec, const DY& dy, const DX& dx, per axis) {
    detail::call_op<Policy>(mean_backward_op{}, exec, detail::input_view(dy), detail::output_view(dx), axis);
}

}}  // namespace mp::ops
