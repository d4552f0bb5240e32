// SPDX-License-Identifier: MIT
/// \file
/// The loss of a classifier: softmax and cross entropy in one, forward and backward.
#pragma once

#include <mp/autocast/dispatch.hpp>
#include <mp/detail/contiguous.hpp>
#include <mp/detail/parallel.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/format/operations.hpp>
#include <mp/ops/arguments.hpp>
#include <mp/ops/for_each_element.hpp>
#include <mp/ops/loss_factors.hpp>
#include <mp/ops/matrix_operand.hpp>
#include <mp/ops/softmax/rows.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// Checks the labels against the matrix of logits, which has been checked; those in the memory of a GPU can
/// only be counted.
template <gpu_executor Executor, class Label>
void check_labels(std::string_view function, const Executor& /*exec*/, const named_operand& logits,
                  std::span<const Label> labels) {
    check_size(function, {"labels", extent_of(labels)}, logits.extent.rows, "logits.rows");
}
template <class Label>
void check_labels(std::string_view function, const cpu& /*exec*/, const named_operand& logits,
                  std::span<const Label> labels) {
    check_size(function, {"labels", extent_of(labels)}, logits.extent.rows, "logits.rows");
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (std::cmp_less(labels[i], 0) || std::cmp_greater_equal(labels[i], logits.extent.columns)) {
            std::string name("labels[");
            name.append(error_text(i)).append("]");
            throw_argument(function, name, labels[i],
                           "must be a column of logits, from 0 to " + error_text(logits.extent.columns - 1));
        }
    }
}

inline void check_logits(std::string_view function, const named_operand& logits) {
    check_operand(function, logits);
    if (logits.extent.rows == 0) {
        throw_argument(function, "logits.rows", 0,
                       "must be at least 1, since the mean of no losses is undefined");
    }
    if (logits.extent.columns == 0) throw_argument(function, "logits.columns", 0, "must be at least 1");
}

/// values[i] *= factor, rounded to float, where the factor may be too large or too small for a float.
inline void scale_by_double(const softmax_kernels& kernels, float* values, std::size_t count, double factor) {
    if (factor > 0x1p-100 && factor < 0x1p100) {
        return kernels.scale(count, values, values, static_cast<float>(factor));
    }
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = static_cast<float>(double_multiply(static_cast<double>(values[i]), factor));
    }
}

/// Names the rows of a cross entropy, for cross_entropy_gradient().
struct cross_entropy_rows {};

/// The gradient on the CPU; on a GPU the function of this name in <mp/ops/softmax_cross_entropy/gpu.hpp>.
template <class Logit, class Label, class Gradient>
void cross_entropy_gradient(cross_entropy_rows, const cpu& exec, matrix_view<const Logit> logits,
                            std::span<const Label> labels, matrix_view<Gradient> dlogits,
                            const ops::loss_factors& factors) {
    const double factor = gradient_factor(factors, static_cast<double>(logits.rows));
    for_each_softmax_block(
        exec, logits.rows, logits.columns,
        [&](std::ptrdiff_t first, std::ptrdiff_t count, softmax_rows& rows) {
            rows.load(logits, first, count, dlogits);
            rows.write(dlogits, first, count, [&](std::ptrdiff_t r, const softmax_rows::row_sum& row) {
                const auto label = static_cast<std::size_t>(labels[static_cast<std::size_t>(first + r)]);
                using number = rounded_doubles<1>;
                const number below_one = number(static_cast<double>(row.target[label])) / row.sum - 1.0;
                scale_by_double(rows.kernels(), row.target, rows.columns(), double_divide(factor, row.sum));
                row.target[label] = static_cast<float>((below_one * factor).value());
            });
        });
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE

namespace mp::ops::inline MP_ISA_NAMESPACE {

/// Tag of softmax_cross_entropy(): exponentials and a mean, so in float.
struct softmax_cross_entropy_op {
    static constexpr std::string_view name = "softmax_cross_entropy";
    static constexpr std::array<std::string_view, 5> known_as = {
        "cross_entropy_loss", "cross_entropy", "nll_loss", "SparseSoftmaxCrossEntropyWithLogits", "loss"};
    static constexpr std::array<std::string_view, 4> argument_names = {"exec", "logits", "labels", "factors"};
    static constexpr auto category = op_category::full_precision;
    static constexpr bool computes_in_float = true;

    template <class Label>
    static void validate(cpu exec, const auto& logits, std::span<const Label> labels,
                         const loss_factors& factors) {
        constexpr std::string_view function = "mp::ops::softmax_cross_entropy";
        detail::check_threads(function, exec);
        const auto input = detail::named("logits", logits);
        detail::check_logits(function, input);
        detail::check_labels(function, exec, input, labels);
        detail::check_loss_factors(function, factors);
    }

    template <element Logit, std::integral Label>
    float operator()(cpu exec, matrix_view<const Logit> logits, std::span<const Label> labels,
                     const loss_factors& factors) const {
        std::vector<double> losses(labels.size());
        detail::for_each_softmax_block(
            exec, logits.rows, logits.columns,
            [&](std::ptrdiff_t first, std::ptrdiff_t count, detail::softmax_rows& rows) {
                rows.load(logits, first, count);
                rows.take_logarithms(count);
                for (std::ptrdiff_t r = 0; r < count; ++r) {
                    const auto i = static_cast<std::size_t>(first + r);
                    losses[i] = -rows.row(r).log_probability(static_cast<std::size_t>(labels[i]));
                }
            });
        detail::rounded_doubles<1> total = 0.0;
        for (const double loss : losses) total += loss;
        return detail::weighted_mean(total.value(), static_cast<double>(losses.size()), factors.weight);
    }
};

/// The loss of a batch: weight times the mean over the rows of log(sum_j exp(logits_j)) - logits_label.
///
/// Shapes: logits is batch x classes, a matrix view in any storage order; labels is a contiguous range of
/// `batch` integers, the column that is right for each row. factors.scale has no part in the result: the loss
/// stays readable whatever the scaler does. Logits are read in their format, exponentials are
/// computed in float after the largest value of the row has been subtracted, sums and logarithms in double,
/// and the sum of the rows is rounded to float once. The result does not depend on the number of threads. NaN
/// or +infinity in a row make the loss NaN.
///
/// Throws argument_error for an empty batch, invalid views, a label that is no column, and a weight that is
/// negative or not finite.
template <class Policy = autocast::by_region, element Logit, detail::contiguous Labels>
float softmax_cross_entropy(cpu exec, matrix_view<Logit> logits, const Labels& labels,
                            const loss_factors& factors = {}) {
    return autocast::call<Policy>(softmax_cross_entropy_op{}, exec, detail::input_view(logits),
                                  detail::input_view(labels), factors);
}

/// Tag of softmax_cross_entropy_backward(): exponentials, so in float.
struct softmax_cross_entropy_backward_op {
    static constexpr std::string_view name = "softmax_cross_entropy_backward";
    using forward_op = softmax_cross_entropy_op;
    static constexpr std::array<std::string_view, 5> argument_names = {"exec", "logits", "labels", "dlogits",
                                                                       "factors"};
    static constexpr auto category = op_category::full_precision;
    static constexpr bool computes_in_float = true;

    template <class Label>
    static void validate(const auto& exec, const auto& logits, std::span<const Label> labels,
                         const auto& dlogits, const loss_factors& factors) {
        constexpr std::string_view function = "mp::ops::softmax_cross_entropy_backward";
        detail::check_executor(function, exec);
        const auto input = detail::named("logits", logits);
        const auto result = detail::named("dlogits", dlogits);
        detail::check_logits(function, input);
        detail::check_labels(function, exec, input, labels);
        detail::check_shape(function, result, input.extent.rows, "logits.rows", input.extent.columns,
                            "logits.columns");
        detail::check_separate_or_same(function, result, input);
        detail::check_loss_factors(function, factors);
    }

    template <executor Executor, element Logit, std::integral Label, element Gradient>
    void operator()(const Executor& exec, matrix_view<const Logit> logits, std::span<const Label> labels,
                    matrix_view<Gradient> dlogits, const loss_factors& factors) const {
        cross_entropy_gradient(detail::cross_entropy_rows{}, exec, logits, labels, dlogits, factors);
    }
};

/// The gradient of softmax_cross_entropy() with respect to the logits, times the loss scale:
/// dlogits = (softmax(logits) - one_hot(labels)) * weight * scale / batch.
///
/// Shapes: dlogits is batch x classes like logits, in any storage order, and may be logits itself, but not
/// overlap it otherwise. Each element is computed to 2.5 ulp of float, and rounded from there to the format
/// of dlogits: gradients too small for it become zero and too large ones infinity, which is what the loss
/// scale is there to avoid.
///
/// Throws argument_error as softmax_cross_entropy() does, and for a dlogits of another shape or a scale that
/// is not finite and positive; dlogits is then unchanged.
///
/// On a GPU, with p = softmax(logits), the error is 2^-21 p weight scale / batch, and for the column of the
/// label 2^-21 weight scale / batch. Labels lie in device memory, too, and cannot be checked: a row whose
/// label is no column is all NaN.
template <class Policy = autocast::by_region, executor Executor = cpu, element Logit,
          detail::contiguous Labels, matrix_result Gradient>
void softmax_cross_entropy_backward(const Executor& exec, matrix_view<Logit> logits, const Labels& labels,
                                    const Gradient& dlogits, const loss_factors& factors = {}) {
    autocast::call<Policy>(softmax_cross_entropy_backward_op{}, exec, detail::input_view(logits),
                           detail::input_view(labels), detail::output_view(dlogits), factors);
}

}  // namespace mp::ops::inline MP_ISA_NAMESPACE
