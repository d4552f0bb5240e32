// SPDX-License-Identifier: MIT
/// \file
/// Mean squared and mean absolute error on a GPU, and their gradients, with the bits of the CPU.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/map_elements.hpp>
#include <mp/device/gpu/matrix_sums.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/gpu_casts.hpp>
#include <mp/nn/ops/loss_factors.hpp>
#include <mp/nn/ops/losses.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>
#include <mp/workspace.hpp>

#include <cstddef>
#include <span>

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Bytes of the executor's workspace that mean_squared_error() and mean_absolute_error() need on a GPU for
/// matrices of this shape, casts not included: a double for 16384 elements, or for 64 where there is but one
/// row or column. Their gradients need none.
[[nodiscard]] constexpr std::size_t regression_loss_workspace(std::ptrdiff_t rows, std::ptrdiff_t columns) {
    return detail::sum_all_bytes(rows, columns) + workspace::alignment;
}

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Difference, class X, class T>
struct difference_terms {
    row_matrix<const X> prediction;
    row_matrix<const T> target;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE double value(Thread thread, std::ptrdiff_t row,
                                                               std::ptrdiff_t column) const {
        using number = rounded_doubles<1>;
        const number x = element(thread, prediction, row, column);
        const number t = element(thread, target, row, column);
        return Difference{}(x, t).value();
    }

private:
    MP_ANY_EXECUTION_SPACE
    template <class Thread, class Value>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static double element(Thread thread,
                                                                        const row_matrix<Value>& from,
                                                                        std::ptrdiff_t row,
                                                                        std::ptrdiff_t column) {
        return double_from_float(static_cast<float>(
            thread.load(from.data + (row * from.row_stride + column * from.column_stride))));
    }
};

struct finish_weighted_mean {
    double count;
    float weight;

    MP_HOST_DEVICE float operator()(double sum) const {
        return float_from_double(weighted_mean(sum, count, weight));
    }
};

template <class Difference>
struct scaled_slope {
    double factor;

    MP_HOST_DEVICE MP_ALWAYS_INLINE float operator()(float x, float t) const {
        return float_from_double(
            (Difference::slope(double_from_float(x), double_from_float(t)) * factor).value());
    }
};

/// regression_loss_to() of the CPU, enqueued.
template <gpu_executor Executor, class Difference, class X, class T, class Loss>
void regression_loss_to(regression_walk walk, const Executor& exec, Difference difference,
                        matrix_view<const X> prediction, matrix_view<const T> target, std::span<Loss> loss,
                        float weight) {
    if (sums_transposed(prediction.rows, prediction.columns)) {
        return regression_loss_to(walk, exec, difference, transposed(prediction), transposed(target), loss,
                                  weight);
    }
    const auto count = static_cast<double>(prediction.rows * prediction.columns);
    launch_sum_all(walk.function, exec,
                   difference_terms<Difference, X, T>{rows_of<1>(prediction), rows_of<1>(target)},
                   prediction.rows, prediction.columns, loss.data(), finish_weighted_mean{count, weight});
}

/// regression_gradient() of the CPU, enqueued.
template <gpu_executor Executor, class Difference, class X, class T, class DX>
void regression_gradient(regression_walk walk, const Executor& exec, Difference /*difference*/,
                         matrix_view<const X> prediction, matrix_view<const T> target,
                         matrix_view<DX> dprediction, double factor) {
    map_elements_by(walk.function, exec, scaled_slope<Difference>{factor}, dprediction, prediction, target);
}

}}  // namespace mp::detail
