// SPDX-License-Identifier: MIT
/// \file
/// softmax and its logarithm over the rows of a matrix on a GPU, forward and backward.
#pragma once

#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/gpu_casts.hpp>
#include <mp/nn/ops/softmax.hpp>
#include <mp/nn/ops/softmax/gpu_sum.hpp>
#include <mp/numbers/rules/float_functions.hpp>

#include <cstddef>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

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
            softmax_sum total = sum_of_exponentials<Group, width, exact>(thread, x, row, columns);
            if constexpr (Logarithm) find_others<Group, width>(thread, x, row, columns, total);
            const float_float inverse = reciprocal(total.sum);
            const float logarithm = float_logarithm(total.sum);
            for (std::ptrdiff_t c = Group::rank(thread) * width; c < columns; c += Group::size * width) {
                row_floats<width> values = load_row_floats<width>(thread, x, row, c, columns);
                MP_UNROLL
                for (int i = 0; i < width; ++i) {
                    const float_float distance = exact_distance(values.values[i], total.largest);
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
            float_float sum{};
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
void launch_softmax(const Executor& exec, matrix_view<const X> x, matrix_view<Y> y) {
    if (x.rows == 0 || x.columns == 0) return;
    constexpr int width = row_chunk<X, Y>;
    with_row_group(x.columns, [&](auto group) {
        using group_type = decltype(group);
        launch("mp::ops::softmax", exec, row_launch<group_type>(x.rows),
               softmax_kernel<group_type, Logarithm, X, Y>{rows_of<width>(x), rows_of<width>(y), x.rows,
                                                           x.columns});
    });
}

template <bool Logarithm, class Executor, class Y, class DY, class DX>
void launch_softmax_backward(const Executor& exec, matrix_view<const Y> y, matrix_view<const DY> dy,
                             matrix_view<DX> dx) {
    if (y.rows == 0 || y.columns == 0) return;
    constexpr int width = row_chunk<Y, DY, DX>;
    with_row_group(y.columns, [&](auto group) {
        using group_type = decltype(group);
        launch("mp::ops::softmax_backward", exec, row_launch<group_type>(y.rows),
               softmax_backward_kernel<group_type, Logarithm, Y, DY, DX>{
                   rows_of<width>(y), rows_of<width>(dy), rows_of<width>(dx), y.rows, y.columns});
    });
}

/// map_rows() of the CPU, enqueued.
template <gpu_executor Executor, class X, class Y>
void map_rows(softmax_function, const Executor& exec, matrix_view<Y> y, matrix_view<const X> x) {
    launch_softmax<false>(exec, x, y);
}
template <gpu_executor Executor, class X, class Y>
void map_rows(log_softmax_function, const Executor& exec, matrix_view<Y> y, matrix_view<const X> x) {
    launch_softmax<true>(exec, x, y);
}
template <gpu_executor Executor, class Y, class DY, class DX>
void map_rows(slope_of<softmax_function>, const Executor& exec, matrix_view<DX> dx, matrix_view<const Y> y,
              matrix_view<const DY> dy) {
    launch_softmax_backward<false>(exec, y, dy, dx);
}
template <gpu_executor Executor, class Y, class DY, class DX>
void map_rows(slope_of<log_softmax_function>, const Executor& exec, matrix_view<DX> dx,
              matrix_view<const Y> y, matrix_view<const DY> dy) {
    launch_softmax_backward<true>(exec, y, dy, dx);
}

}}  // namespace mp::detail
