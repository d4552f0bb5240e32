// SPDX-License-Identifier: MIT
/// \file
/// Losses of predictions that are numbers: mean squared and mean absolute error, forward and backward. The
/// loss of a classifier is in softmax_cross_entropy.hpp.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/autocast/library_op.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/loss_factors.hpp>
#include <mp/nn/ops/matrix_operand.hpp>
#include <mp/numbers/format/classification.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>

#include <array>
#include <concepts>
#include <span>
#include <string_view>
#include <utility>

#if MP_CORE_BODIES
#include <mp/arrays/array/for_each_element.hpp>
#include <mp/arrays/array/sums.hpp>
#endif

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// (x - t)^2 and its slope.
struct squared_difference {
    template <class T>
    MP_HOST_DEVICE MP_ALWAYS_INLINE T operator()(T x, T t) const {
        const T difference = x - t;
        return difference * difference;
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE static rounded_doubles<1> slope(rounded_doubles<1> x,
                                                                    rounded_doubles<1> t) {
        return rounded_doubles<1>(2.0) * (x - t);
    }
};

/// |x - t| and its slope, which is 0 where they are equal.
struct absolute_difference {
    template <class T>
    MP_HOST_DEVICE MP_ALWAYS_INLINE T operator()(T x, T t) const {
        return (x - t).magnitude();
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE static rounded_doubles<1> slope(rounded_doubles<1> x,
                                                                    rounded_doubles<1> t) {
        const double difference = (x - t).value();
        const double sign = difference > 0 ? 1.0 : difference < 0 ? -1.0 : 0.0;
        return isnan(difference) ? difference : sign;
    }
};

void check_regression(std::string_view function, const auto& exec, const named_operand& prediction,
                      const named_operand& target, const ops::loss_factors& factors) {
    check_executor(function, exec);
    check_operand(function, prediction);
    for (const auto& [name, size] : {std::pair("prediction.rows", prediction.extent.rows),
                                     std::pair("prediction.columns", prediction.extent.columns)}) {
        if (size != 0) continue;
        throw_argument(function, name, 0, "must be at least 1, since the mean of no losses is undefined");
    }
    check_same_shape(function, target, prediction);
    check_loss_factors(function, factors);
}

/// Names the walks of the losses, for regression_loss_to() and regression_gradient().
struct regression_walk {
    std::string_view function;  ///< by which errors call it
};

#if MP_CORE_BODIES
/// weight times the mean of the differences.
template <class Real, class Difference>
Real mean_difference(const cpu& exec, Difference difference, const any_matrix& prediction,
                     const any_matrix& target, float weight) {
    const double sum = sum_all<Real>(exec, difference, prediction, target);
    const auto count = static_cast<double>(prediction.rows * prediction.columns);
    return as<Real>(weighted_mean(sum, count, weight));
}
#endif

/// What the losses share; Op is the tag.
template <class Op, autocast::fixed_string Name>
struct regression_loss : library_op<Op, Name> {
    static constexpr auto category = op_category::full_precision;
    static constexpr std::array<std::string_view, 4> argument_names{"exec", "prediction", "target",
                                                                    "factors"};

    static void validate(cpu exec, const auto& prediction, const auto& target,
                         const ops::loss_factors& factors) {
        check_regression(Op::function, exec, named("prediction", prediction), named("target", target),
                         factors);
    }

    template <class Real>
    static Real compute(const cpu& exec, const any_operand& prediction, const any_operand& target,
                        const ops::loss_factors& factors) {
        return mean_difference<Real>(exec, typename Op::difference{}, prediction, target, factors.weight);
    }
};

/// The same, with the loss in memory.
template <class Op, class Forward>
struct regression_loss_to_memory {
    using compiled_op = Op;
    using forward_op = Forward;
    static constexpr std::string_view name = Forward::name;
    static constexpr std::string_view function = Forward::function;
    static constexpr auto category = Forward::category;
    static constexpr bool computes_in_float = true;
    static constexpr std::array<std::string_view, 5> argument_names{"exec", "prediction", "target", "loss",
                                                                    "factors"};

    static void validate(const auto& exec, const auto& prediction, const auto& target, const auto& loss,
                         const ops::loss_factors& factors) {
        const auto input = named("prediction", prediction);
        const auto expected = named("target", target);
        const auto result = named("loss", loss);
        check_regression(function, exec, input, expected, factors);
        if (result.extent.address == 0) {
            throw_argument(function, "loss", "null", "must be a float in the memory of the executor");
        }
        check_separate(function, result, input);
        check_separate(function, result, expected);
    }

    template <class Real>
    static void compute(const cpu& exec, const any_operand& prediction, const any_operand& target,
                        const any_operand& loss, const ops::loss_factors& factors) {
        const Real value =
            mean_difference<Real>(exec, typename Forward::difference{}, prediction, target, factors.weight);
        store_elements(*loss.type, &value, 1, loss.at(0, 0));
    }
    void operator()(const gpu_executor auto& exec, const auto& prediction, const auto& target,
                    const auto& loss, const ops::loss_factors& factors) const {
        regression_loss_to(regression_walk{function}, exec, typename Forward::difference{}, prediction,
                           target, loss, factors.weight);
    }
};

template <class Op, autocast::fixed_string Name>
struct regression_loss_backward : library_op<Op, Name> {
    static constexpr auto category = op_category::full_precision;
    static constexpr std::array<std::string_view, 5> argument_names{"exec", "prediction", "target",
                                                                    "dprediction", "factors"};

    static void validate(const auto& exec, const auto& prediction, const auto& target,
                         const auto& dprediction, const ops::loss_factors& factors) {
        const auto input = named("prediction", prediction);
        const auto expected = named("target", target);
        const auto result = named("dprediction", dprediction);
        check_regression(Op::function, exec, input, expected, factors);
        check_same_shape(Op::function, result, input);
        check_separate_or_same(Op::function, result, input);
        check_separate_or_same(Op::function, result, expected);
    }

    template <class Real>
    static void compute(const cpu& exec, const any_operand& prediction, const any_operand& target,
                        const any_operand& dprediction, const ops::loss_factors& factors) {
        using difference = typename Op::forward_op::difference;
        const double factor =
            gradient_factor(factors, static_cast<double>(prediction.rows * prediction.columns));
        for_each_real<Real>(
            exec,
            [factor](Real x, Real t) {
                return as<Real>((difference::slope(as<double>(x), as<double>(t)) * factor).value());
            },
            dprediction, prediction, target);
    }
    void operator()(const gpu_executor auto& exec, const auto& prediction, const auto& target,
                    const auto& dprediction, const ops::loss_factors& factors) const {
        const double factor =
            gradient_factor(factors, static_cast<double>(prediction.rows * prediction.columns));
        regression_gradient(regression_walk{Op::function}, exec, typename Op::forward_op::difference{},
                            prediction, target, dprediction, factor);
    }
};

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Tag of mean_squared_error(): a square and a long sum, so in float.
struct mean_squared_error_op : detail::regression_loss<mean_squared_error_op, "mean_squared_error"> {
    using difference = detail::squared_difference;
    static constexpr std::array<std::string_view, 2> known_as{"mse_loss", "loss"};
};

/// weight times the mean over all elements of (prediction - target)^2.
///
/// prediction and target are matrices of one shape, in any storage order and formats. factors.scale has no
/// part in the result: the loss stays readable whatever the scaler does. Differences and squares are in
/// double, and so is their sum, in an order that depends on the shape alone; the result is rounded to float
/// once, or is a double where an operand has doubles. NaN, and infinity in the prediction or the target
/// alone, make the loss NaN or infinite.
///
/// Throws argument_error for a matrix without elements, shapes that differ, invalid views, and a weight that
/// is negative or not finite.
template <class Policy = autocast::by_region, element X, element T>
detail::arithmetic_type<X, T> mean_squared_error(cpu exec, matrix_view<X> prediction, matrix_view<T> target,
                                                 const loss_factors& factors = {}) {
    return detail::call_op<Policy>(mean_squared_error_op{}, exec, detail::input_view(prediction),
                                   detail::input_view(target), factors);
}

/// Tag of mean_squared_error() whose loss goes to memory.
struct mean_squared_error_to_memory_op
    : detail::regression_loss_to_memory<mean_squared_error_to_memory_op, mean_squared_error_op> {
    static constexpr std::string_view compiled_name = "mean_squared_error_to_memory";
};

/// The same into *loss, a float in memory of the executor (a double where an operand has doubles), which is
/// no element of the operands. Throws argument_error for a null loss, too.
///
/// On a GPU (<mp/nn/ops/losses/gpu.hpp>) the loss has the CPU's bits: the order of the sum is the same. It takes
/// regression_loss_workspace(prediction.rows, prediction.columns) bytes of the executor's workspace.
template <class Policy = autocast::by_region, executor Executor, element X, element T,
          std::same_as<detail::arithmetic_type<X, T>> Loss>
void mean_squared_error(const Executor& exec, matrix_view<X> prediction, matrix_view<T> target, Loss* loss,
                        const loss_factors& factors = {}) {
    detail::call_op<Policy>(mean_squared_error_to_memory_op{}, exec, detail::input_view(prediction),
                            detail::input_view(target), autocast::out(std::span(loss, 1)), factors);
}

/// Tag of mean_squared_error_backward().
struct mean_squared_error_backward_op
    : detail::regression_loss_backward<mean_squared_error_backward_op, "mean_squared_error_backward"> {
    using forward_op = mean_squared_error_op;
    static constexpr std::array<std::string_view, 1> known_as{"mse_loss_backward"};
};

/// The gradient of mean_squared_error() with respect to the prediction, times the loss scale:
/// dprediction = 2 (prediction - target) * weight * scale / (rows * columns). That of the target is its
/// negative.
///
/// dprediction has the shape of prediction, in any storage order, and may be prediction or target, but not
/// overlap them otherwise. It is computed in double, rounded to float and from there to its format: gradients
/// too small for it become zero and too large ones infinity, which is what the loss scale is there to avoid.
///
/// Throws argument_error as mean_squared_error() does, and for a dprediction of another shape or a scale that
/// is not finite and positive; dprediction is then unchanged.
///
/// Runs on CPUs and, with <mp/nn/ops/losses/gpu.hpp>, on GPUs, with the same bits.
template <class Policy = autocast::by_region, executor Executor = cpu, element X, element T, matrix_result DX>
void mean_squared_error_backward(const Executor& exec, matrix_view<X> prediction, matrix_view<T> target,
                                 const DX& dprediction, const loss_factors& factors = {}) {
    detail::call_op<Policy>(mean_squared_error_backward_op{}, exec, detail::input_view(prediction),
                            detail::input_view(target), detail::output_view(dprediction), factors);
}

/// Tag of mean_absolute_error(): a long sum, so in float.
struct mean_absolute_error_op : detail::regression_loss<mean_absolute_error_op, "mean_absolute_error"> {
    using difference = detail::absolute_difference;
    static constexpr std::array<std::string_view, 2> known_as{"l1_loss", "loss"};
};

/// weight times the mean over all elements of |prediction - target|, the L1 loss. Operands, accuracy and
/// errors are those of mean_squared_error().
template <class Policy = autocast::by_region, element X, element T>
detail::arithmetic_type<X, T> mean_absolute_error(cpu exec, matrix_view<X> prediction, matrix_view<T> target,
                                                  const loss_factors& factors = {}) {
    return detail::call_op<Policy>(mean_absolute_error_op{}, exec, detail::input_view(prediction),
                                   detail::input_view(target), factors);
}

/// Tag of mean_absolute_error() whose loss goes to memory.
struct mean_absolute_error_to_memory_op
    : detail::regression_loss_to_memory<mean_absolute_error_to_memory_op, mean_absolute_error_op> {
    static constexpr std::string_view compiled_name = "mean_absolute_error_to_memory";
};

/// The same into *loss, a float in memory of the executor (a double where an operand has doubles), which is
/// no element of the operands. Throws argument_error for a null loss, too.
///
/// On a GPU (<mp/nn/ops/losses/gpu.hpp>) the loss has the CPU's bits: the order of the sum is the same. It takes
/// regression_loss_workspace(prediction.rows, prediction.columns) bytes of the executor's workspace.
template <class Policy = autocast::by_region, executor Executor, element X, element T,
          std::same_as<detail::arithmetic_type<X, T>> Loss>
void mean_absolute_error(const Executor& exec, matrix_view<X> prediction, matrix_view<T> target, Loss* loss,
                         const loss_factors& factors = {}) {
    detail::call_op<Policy>(mean_absolute_error_to_memory_op{}, exec, detail::input_view(prediction),
                            detail::input_view(target), autocast::out(std::span(loss, 1)), factors);
}

/// Tag of mean_absolute_error_backward().
struct mean_absolute_error_backward_op
    : detail::regression_loss_backward<mean_absolute_error_backward_op, "mean_absolute_error_backward"> {
    using forward_op = mean_absolute_error_op;
    static constexpr std::array<std::string_view, 1> known_as{"l1_loss_backward"};
};

/// The gradient of mean_absolute_error() with respect to the prediction, times the loss scale:
/// dprediction = sign(prediction - target) * weight * scale / (rows * columns), 0 where they are equal and
/// NaN where one of them is NaN. Operands, rounding, executors and errors are those of
/// mean_squared_error_backward().
template <class Policy = autocast::by_region, executor Executor = cpu, element X, element T, matrix_result DX>
void mean_absolute_error_backward(const Executor& exec, matrix_view<X> prediction, matrix_view<T> target,
                                  const DX& dprediction, const loss_factors& factors = {}) {
    detail::call_op<Policy>(mean_absolute_error_backward_op{}, exec, detail::input_view(prediction),
                            detail::input_view(target), detail::output_view(dprediction), factors);
}

}}  // namespace mp::ops
