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
#include <mp/ops/softmax_row.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// Checks the labels against the matrix of logits, which has been checked.
template <class Label>
void check_labels(std::string_view function, const named_operand& logits, std::span<const Label> labels) {
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
        detail::check_labels(function, input, labels);
        detail::check_loss_factors(function, factors);
    }

    template <element Logit, std::integral Label>
    float operator()(cpu exec, matrix_view<const Logit> logits, std::span<const Label> labels,
                     const loss_factors& factors) const {
        std::vector<double> losses(labels.size());
        detail::for_each_row<detail::softmax_row>(
            exec, logits.rows, logits.columns, [&](std::ptrdiff_t row, detail::softmax_row& work) {
                work.load(logits, row);
                const auto i = static_cast<std::size_t>(row);
                losses[i] = -work.template log_probabilities<detail::rounded_doubles<1>>(
                                     static_cast<std::size_t>(labels[i]))
                                 .value();
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
/// stays readable whatever the scaler does. Logits are read in their format, a row is computed in double
/// after its largest value has been subtracted, and the sum of the rows is rounded to float once. The result
/// does not depend on the number of threads. NaN or +infinity in a row make the loss NaN.
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
    static void validate(cpu exec, const auto& logits, std::span<const Label> labels, const auto& dlogits,
                         const loss_factors& factors) {
        constexpr std::string_view function = "mp::ops::softmax_cross_entropy_backward";
        detail::check_threads(function, exec);
        const auto input = detail::named("logits", logits);
        const auto result = detail::named("dlogits", dlogits);
        detail::check_logits(function, input);
        detail::check_labels(function, input, labels);
        detail::check_shape(function, result, input.extent.rows, "logits.rows", input.extent.columns,
                            "logits.columns");
        detail::check_separate_or_same(function, result, input);
        detail::check_loss_factors(function, factors);
    }

    template <element Logit, std::integral Label, element Gradient>
    void operator()(cpu exec, matrix_view<const Logit> logits, std::span<const Label> labels,
                    matrix_view<Gradient> dlogits, const loss_factors& factors) const {
        const double factor = detail::gradient_factor(factors, static_cast<double>(logits.rows));
        detail::for_each_row<detail::softmax_row>(
            exec, logits.rows, logits.columns, [&](std::ptrdiff_t row, detail::softmax_row& work) {
                work.load(logits, row);
                const auto label = static_cast<std::size_t>(labels[static_cast<std::size_t>(row)]);
                detail::store_row_blocks(dlogits, row, [&](std::size_t first, std::size_t count, float* to) {
                    detail::for_each_double(count, [&](auto kind, std::size_t i) {
                        using number = decltype(kind);
                        const number p = work.template probabilities<number>(first + i);
                        (p * number(factor)).store(to + i);
                    });
                    if (label - first < count) {
                        const auto below_one = work.probability(label) - detail::rounded_doubles<1>(1.0);
                        (below_one * detail::rounded_doubles<1>(factor)).store(to + (label - first));
                    }
                });
            });
    }
};

/// The gradient of softmax_cross_entropy() with respect to the logits, times the loss scale:
/// dlogits = (softmax(logits) - one_hot(labels)) * weight * scale / batch.
///
/// Shapes: dlogits is batch x classes like logits, in any storage order, and may be logits itself, but not
/// overlap it otherwise. Everything is computed in double, rounded to float and from there to the format of
/// dlogits: gradients too small for it become zero and too large ones infinity, which is what the loss scale
/// is there to avoid.
///
/// Throws argument_error as softmax_cross_entropy() does, and for a dlogits of another shape or a scale that
/// is not finite and positive; dlogits is then unchanged.
template <class Policy = autocast::by_region, element Logit, detail::contiguous Labels, element Gradient>
void softmax_cross_entropy_backward(cpu exec, matrix_view<Logit> logits, const Labels& labels,
                                    matrix_view<Gradient> dlogits, const loss_factors& factors = {}) {
    autocast::call<Policy>(softmax_cross_entropy_backward_op{}, exec, detail::input_view(logits),
                           detail::input_view(labels), detail::output_view(dlogits), factors);
}

}  // namespace mp::ops::inline MP_ISA_NAMESPACE
