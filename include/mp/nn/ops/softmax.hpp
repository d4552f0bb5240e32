// SPDX-License-Identifier: MIT
/// \file
/// softmax and its logarithm over the rows of a matrix, forward and backward.
#pragma once

#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/autocast/library_op.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/matrix_operand.hpp>
#include <mp/nn/ops/unary_op.hpp>
#include <mp/numbers/rules/function_names.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>

#include <array>
#include <cstddef>
#include <string_view>

#if MP_CORE_BODIES
#include <mp/arrays/array/for_each_element.hpp>
#include <mp/nn/ops/softmax/rows.hpp>
#endif

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Kinds of map_rows(): functions of a row of which every result depends on the whole row, and, as
/// slope_of<Function>, their gradients.
struct softmax_function {};
struct log_softmax_function {};

#if MP_CORE_BODIES
/// Room for a row of results, one of gradients and one of slopes, and what is computed from them.
template <class Real>
class row_and_gradient {
public:
    softmax_kernels_of<Real> kernels;
    const Real* y = nullptr;
    const Real* dy = nullptr;

    using element = Real;
    static std::size_t size(std::size_t columns) { return 3 * columns; }

    row_and_gradient(std::size_t columns, Real* room)
        : columns_(columns), y_(room), dy_(room + columns), dx_(room + 2 * columns) {}

    [[nodiscard]] std::size_t columns() const { return columns_; }

    /// Loads a row of both, and writes to that of dx what f writes to the numbers that it is given.
    template <class Function>
    void map(const any_matrix& results, const any_matrix& gradients, const any_matrix& slopes,
             std::ptrdiff_t row, Function f) {
        y = reals_of_row(results, row, y_);
        dy = reals_of_row(gradients, row, dy_);
        Real* const to = row_target(slopes, row, dx_);
        f(to);
        put_row(to, slopes, row);
    }

private:
    std::size_t columns_;
    Real* y_;
    Real* dy_;
    Real* dx_;
};

/// Writes the function of every row of x to y, on the CPU; on a GPU the functions of this name in
/// <mp/nn/ops/softmax/gpu.hpp> do.
template <class Real>
void map_rows(softmax_function, const cpu& exec, const any_matrix& y, const any_matrix& x) {
    for_each_softmax_block<Real>(exec, x.rows, x.columns,
                                 [&](std::ptrdiff_t first, std::ptrdiff_t count, softmax_rows<Real>& rows) {
                                     rows.load(x, first, count, y);
                                     rows.write(y, first, count, [&](std::ptrdiff_t, const auto& row) {
                                         const auto factor = as<Real>(double_divide(1.0, row.sum));
                                         rows.kernels().scale(rows.columns(), row.target, row.target, factor);
                                     });
                                 });
}
template <class Real>
void map_rows(log_softmax_function, const cpu& exec, const any_matrix& y, const any_matrix& x) {
    for_each_softmax_block<Real>(exec, x.rows, x.columns,
                                 [&](std::ptrdiff_t first, std::ptrdiff_t count, softmax_rows<Real>& rows) {
                                     rows.load(x, first, count);
                                     for (std::ptrdiff_t r = 0; r < count; ++r) rows.find_others(r);
                                     rows.write(y, first, count, [&](std::ptrdiff_t, const auto& row) {
                                         rows.kernels().log_softmax(row.values, rows.columns(), row.largest,
                                                                    row.log_sum(), row.target);
                                     });
                                 });
}
template <class Real>
void map_rows(slope_of<softmax_function>, const cpu& exec, const any_matrix& dx, const any_matrix& y,
              const any_matrix& dy) {
    using room = row_and_gradient<Real>;
    for_each_row<room>(exec, y.rows, y.columns, [&](std::ptrdiff_t row, room& work) {
        work.map(y, dy, dx, row, [&](auto* to) {
            const double mean = work.kernels.dot(work.y, work.dy, work.columns());
            work.kernels.softmax_slopes(work.y, work.dy, work.columns(), mean, to);
        });
    });
}
template <class Real>
void map_rows(slope_of<log_softmax_function>, const cpu& exec, const any_matrix& dx, const any_matrix& y,
              const any_matrix& dy) {
    using room = row_and_gradient<Real>;
    for_each_row<room>(exec, y.rows, y.columns, [&](std::ptrdiff_t row, room& work) {
        work.map(y, dy, dx, row, [&](auto* to) {
            const double sum = work.kernels.sum(work.dy, work.columns());
            work.kernels.log_softmax_slopes(work.y, work.dy, work.columns(), sum, to);
        });
    });
}
#endif

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Tag of softmax(): exponentials and their sums, so in float.
struct softmax_op : detail::rowwise_op<softmax_op, "softmax", detail::softmax_function> {
    static constexpr auto category = op_category::full_precision_output;
    static constexpr std::array<std::string_view, 3> known_as{"_softmax", "Softmax", "_npx_softmax"};
};

/// y(r, c) = exp(x(r, c)) / sum_j exp(x(r, j)): every row of y adds up to 1, except for rounding.
///
/// x and y are matrices of one shape, in any storage order and formats; y may be x, but not overlap it
/// otherwise. The largest element of a row is subtracted first, so that nothing overflows; exponentials are
/// computed in float and added up in double, and each element is within 2.5 ulp of float, small ones too, and
/// rounded from there to the format of y. Results have the same bits for every processor and number of
/// threads. Under a policy y has the precision of float.
///
/// On a GPU a float result is within 2^-21 of itself of the exact one (2 ulp measured), and a result of
/// another format is the CPU's except for about one in a thousand. The order of sums depends on the number of
/// columns and the sizes of the formats only. Rows of at most 1024 columns use one warp, longer rows one
/// block; row-major matrices whose rows begin at multiples of 16 bytes are the fastest, and column-major ones
/// slow.
///
/// -infinity gives 0, which is how elements are masked. A row with NaN or +infinity, or of -infinity alone,
/// is all NaN, as in PyTorch. Throws argument_error for shapes that differ and invalid views; y is then
/// unchanged.
template <class Policy = autocast::by_region, executor Executor = cpu, element X, matrix_result Y>
void softmax(const Executor& exec, matrix_view<X> x, const Y& y) {
    detail::call_op<Policy>(softmax_op{}, exec, detail::input_view(x), detail::output_view(y));
}

/// Tag of softmax_backward().
struct softmax_backward_op : detail::rowwise_backward_op<softmax_backward_op, "softmax_backward", softmax_op,
                                                         detail::softmax_function> {
    static constexpr std::array<std::string_view, 1> known_as{"_softmax_backward_data"};
};

/// The gradient of y = softmax(x), from the result y: dx(r, c) = y(r, c) (dy(r, c) - sum_j y(r, j) dy(r, j)).
///
/// All are matrices of one shape, in any storage order and formats; dx may be y or dy, but not overlap them
/// otherwise. The sum is in double, the rest in float, to 2 ulp, before it is rounded to its format. Where
/// y was rounded to a narrow format, the gradient is that of the rounded y, whose rows do not quite add up
/// to 1. A row with NaN is all NaN. On a GPU the sum has an error of 2^-23 of the sum of magnitudes; each
/// result another 2^-23 of itself and of y times the sum. Throws argument_error for shapes that differ and
/// invalid views; dx is then unchanged.
template <class Policy = autocast::by_region, executor Executor = cpu, element Y, element DY,
          matrix_result DX>
void softmax_backward(const Executor& exec, matrix_view<Y> y, matrix_view<DY> dy, const DX& dx) {
    detail::call_op<Policy>(softmax_backward_op{}, exec, detail::input_view(y), detail::input_view(dy),
                            detail::output_view(dx));
}

/// Tag of log_softmax(): exponentials and their sums, so in float.
struct log_softmax_op : detail::rowwise_op<log_softmax_op, "log_softmax", detail::log_softmax_function> {
    static constexpr auto category = op_category::full_precision_output;
    static constexpr std::array<std::string_view, 3> known_as{"_log_softmax", "LogSoftmax",
                                                              "_npx_log_softmax"};
};

/// y(r, c) = x(r, c) - log(sum_j exp(x(r, j))), the logarithm of softmax(x), which stays finite where softmax
/// itself is too small for the format.
///
/// Shapes, special values and errors are those of softmax(); -infinity stays. Each element is within 2 ulp
/// of float, and rounded from there to the format of y; on a GPU within 2^-21 of itself, or 2^-21 if that is
/// larger.
template <class Policy = autocast::by_region, executor Executor = cpu, element X, matrix_result Y>
void log_softmax(const Executor& exec, matrix_view<X> x, const Y& y) {
    detail::call_op<Policy>(log_softmax_op{}, exec, detail::input_view(x), detail::output_view(y));
}

/// Tag of log_softmax_backward().
struct log_softmax_backward_op : detail::rowwise_backward_op<log_softmax_backward_op, "log_softmax_backward",
                                                             log_softmax_op, detail::log_softmax_function> {
    static constexpr std::array<std::string_view, 1> known_as{"_log_softmax_backward_data"};
};

/// The gradient of y = log_softmax(x), from the result y: dx(r, c) = dy(r, c) - exp(y(r, c)) sum_j dy(r, j).
/// Shapes, rounding and errors are those of softmax_backward(). NaN in y gives NaN in its place, NaN in dy in
/// the whole row. On a GPU the sum is as good as a double's rounded to float; each result has an error of
/// 2^-22 of exp(y) times the sum, and 2^-24 of itself.
template <class Policy = autocast::by_region, executor Executor = cpu, element Y, element DY,
          matrix_result DX>
void log_softmax_backward(const Executor& exec, matrix_view<Y> y, matrix_view<DY> dy, const DX& dx) {
    detail::call_op<Policy>(log_softmax_backward_op{}, exec, detail::input_view(y), detail::input_view(dy),
                            detail::output_view(dx));
}

}}  // namespace mp::ops
