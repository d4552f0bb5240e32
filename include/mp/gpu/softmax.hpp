// SPDX-License-Identifier: MIT
/// \file
/// softmax and its logarithm over the rows of a matrix on a GPU, forward and backward.
#pragma once

#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/gpu/row_access.hpp>
#include <mp/gpu/softmax_sum.hpp>
#include <mp/matrix_view.hpp>
#include <mp/ops/arguments.hpp>
#include <mp/ops/unary_checks.hpp>
#include <mp/rules/float_functions.hpp>
#include <mp/simt/gpu_executor.hpp>
#include <mp/simt/kernel_traits.hpp>

#include <cstddef>
#include <string_view>
#include <type_traits>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// Whether float's own roundings show in results of this format. In formats of 16 bits and fewer they do not,
/// and what keeps them small is spared.
template <class Value>
inline constexpr bool shows_float_rounding = std::is_same_v<std::remove_const_t<Value>, float>;

template <class Group, bool Logarithm, class X, class Y>
struct softmax_kernel {
    static constexpr int threads = row_threads;
    static constexpr int width = row_chunk<X, Y>;
    row_matrix<const X> x;
    row_matrix<Y> y;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        constexpr bool exact = shows_float_rounding<Y>;
        for (std::ptrdiff_t row = Group::number(thread); row < rows; row += Group::count(thread)) {
            const softmax_sum total = sum_of_exponentials<Group, width, exact>(thread, x, row, columns);
            const double_float inverse = reciprocal(total.sum);
            const float logarithm = float_logarithm(total.sum);
            for (std::ptrdiff_t c = Group::rank(thread) * width; c < columns; c += Group::size * width) {
                row_floats<width> values = load_row_floats<width>(thread, x, row, c, columns);
                MP_UNROLL
                for (int i = 0; i < width; ++i) {
                    const double_float distance = exact_distance(values.values[i], total.largest);
                    float result = 0;
                    if constexpr (Logarithm) {
                        result = float_subtract(distance.high, float_subtract(logarithm, distance.low));
                    } else {
                        result =
                            product(float_exponential(distance.high, exact ? distance.low : 0.0F), inverse);
                    }
                    values.values[i] = total.defined ? result : float_quiet_nan();
                }
                store_row_floats(thread, y, row, c, columns, values);
            }
        }
    }
};

template <class Group, bool Logarithm, class Y, class DY, class DX>
struct softmax_backward_kernel {
    static constexpr int threads = row_threads;
    static constexpr int width = row_chunk<Y, DY, DX>;
    row_matrix<const Y> y;
    row_matrix<const DY> dy;
    row_matrix<DX> dx;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        for (std::ptrdiff_t row = Group::number(thread); row < rows; row += Group::count(thread)) {
            double_float sum{};
            for (std::ptrdiff_t c = Group::rank(thread) * width; c < columns; c += Group::size * width) {
                row_floats<width> gradients = load_row_floats<width>(thread, dy, row, c, columns);
                if constexpr (!Logarithm) {
                    const row_floats<width> results = load_row_floats<width>(thread, y, row, c, columns);
                    MP_UNROLL
                    for (int i = 0; i < width; ++i) {
                        gradients.values[i] = float_multiply(gradients.values[i], results.values[i]);
                    }
                }
                MP_UNROLL
                for (int i = 0; i < width; ++i) sum = sum + gradients.values[i];
            }
            const float total = Group::reduce(thread, sum, add_pairs{}).value();
            for (std::ptrdiff_t c = Group::rank(thread) * width; c < columns; c += Group::size * width) {
                row_floats<width> values = load_row_floats<width>(thread, y, row, c, columns);
                const row_floats<width> gradients = load_row_floats<width>(thread, dy, row, c, columns);
                MP_UNROLL
                for (int i = 0; i < width; ++i) {
                    const float result = values.values[i];
                    const float gradient = gradients.values[i];
                    values.values[i] =
                        Logarithm
                            ? nan_or(result, float_multiply_add(-float_exponential(result), total, gradient))
                            : float_multiply(result, float_subtract(gradient, total));
                }
                store_row_floats(thread, dx, row, c, columns, values);
            }
        }
    }
};

template <bool Logarithm, class Executor, class X, class Y>
void launch_softmax(std::string_view function, Executor exec, matrix_view<const X> x, matrix_view<Y> y) {
    check_unary(function, cpu{}, named("x", x), named("y", y));
    if (x.rows == 0 || x.columns == 0) return;
    constexpr int width = row_chunk<X, Y>;
    with_row_group(x.columns, [&](auto group) {
        using group_type = decltype(group);
        launch(function, exec, row_launch<group_type>(x.rows),
               softmax_kernel<group_type, Logarithm, X, Y>{rows_of<width>(x), rows_of<width>(y), x.rows,
                                                           x.columns});
    });
}

template <bool Logarithm, class Executor, class Y, class DY, class DX>
void launch_softmax_backward(std::string_view function, Executor exec, matrix_view<const Y> y,
                             matrix_view<const DY> dy, matrix_view<DX> dx) {
    check_unary_backward(function, cpu{}, named("y", y), named("dy", dy), named("dx", dx));
    if (y.rows == 0 || y.columns == 0) return;
    constexpr int width = row_chunk<Y, DY, DX>;
    with_row_group(y.columns, [&](auto group) {
        using group_type = decltype(group);
        launch(function, exec, row_launch<group_type>(y.rows),
               softmax_backward_kernel<group_type, Logarithm, Y, DY, DX>{
                   rows_of<width>(y), rows_of<width>(dy), rows_of<width>(dx), y.rows, y.columns});
    });
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE

namespace mp::ops::inline MP_ISA_NAMESPACE {

/// y(r, c) = exp(x(r, c)) / sum_j exp(x(r, j)) on a GPU: arguments, special values and errors are those of
/// softmax() on the CPU. x and y lie in device memory. Nothing is cast: y has the format that it has.
///
/// Computed in float, the largest element of a row subtracted first. A float result differs from the exact
/// one by at most 2^-21 of it (2 units in the last place measured), a result of another format is what that
/// rounds to: the CPU's but for about one in a thousand. The order of sums depends on the number of columns
/// and the sizes of the formats only: not on layout, alignment, or the device, and the simulated GPU has the
/// same bits. Rows of up to 1024 columns are read by a warp each, longer ones by a block; row-major matrices
/// whose rows begin at multiples of 16 bytes are the fastest, and column-major ones slow. The launch
/// allocates nothing and can be captured into a graph.
template <gpu_executor Executor, element X, element Y>
void softmax(Executor exec, matrix_view<X> x, matrix_view<Y> y) {
    detail::launch_softmax<false>("mp::ops::softmax", exec, detail::input_view(x), y);
}

/// The gradient of y = softmax(x) on a GPU, as softmax_backward() on the CPU. The sum of y dy has an error of
/// 2^-23 of the sum of magnitudes; each result another 2^-23 of itself and of y times the sum. Layouts and
/// the order of sums are as for softmax().
template <gpu_executor Executor, element Y, element DY, element DX>
void softmax_backward(Executor exec, matrix_view<Y> y, matrix_view<DY> dy, matrix_view<DX> dx) {
    detail::launch_softmax_backward<false>("mp::ops::softmax_backward", exec, detail::input_view(y),
                                           detail::input_view(dy), dx);
}

/// y = log(softmax(x)) on a GPU, as log_softmax() on the CPU. A float result has an error of 2^-21 of itself
/// or 2^-21, whichever is larger; the rest is as for softmax().
template <gpu_executor Executor, element X, element Y>
void log_softmax(Executor exec, matrix_view<X> x, matrix_view<Y> y) {
    detail::launch_softmax<true>("mp::ops::log_softmax", exec, detail::input_view(x), y);
}

/// The gradient of y = log_softmax(x) on a GPU, as log_softmax_backward() on the CPU. The sum of dy is as
/// good as a double's rounded to float; each result has an error of 2^-22 of exp(y) times the sum, and 2^-24
/// of itself. The rest is as for softmax().
template <gpu_executor Executor, element Y, element DY, element DX>
void log_softmax_backward(Executor exec, matrix_view<Y> y, matrix_view<DY> dy, matrix_view<DX> dx) {
    detail::launch_softmax_backward<true>("mp::ops::log_softmax_backward", exec, detail::input_view(y),
                                          detail::input_view(dy), dx);
}

}  // namespace mp::ops::inline MP_ISA_NAMESPACE
