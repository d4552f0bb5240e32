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
#include <mp/ops/matrix_operand.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mp::ops {

/// Factors of a loss, both exact where they are powers of two.
struct loss_factors {
    /// What the mean over the batch is multiplied by, finite and not negative: for example the share of this
    /// batch in a larger one whose loss is averaged.
    float weight = 1.0F;
    /// Loss scale, finite and positive. Only gradients carry it; the optimizer's unscaling takes it out.
    float scale = 1.0F;
};

}  // namespace mp::ops

namespace mp::detail {

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

inline void check_loss_factors(std::string_view function, const ops::loss_factors& factors) {
    if (!isfinite(factors.weight) || factors.weight < 0.0F) {
        throw_argument(function, "factors.weight", factors.weight, "must be finite and not negative");
    }
    if (!isfinite(factors.scale) || !(factors.scale > 0.0F)) {
        throw_argument(function, "factors.scale", factors.scale, "must be finite and positive");
    }
}

/// Largest value of a row of logits and the sum of the exponentials of their distances from it. NaN anywhere
/// in the row, and +infinity, make the sum NaN.
struct softmax_sums {
    float largest;
    float sum;
};

template <class Logit>
softmax_sums sum_exponentials(matrix_view<const Logit> logits, std::ptrdiff_t row) {
    float largest = static_cast<float>(logits(row, 0));
    for (std::ptrdiff_t c = 1; c < logits.columns; ++c) {
        const auto value = static_cast<float>(logits(row, c));
        if (value > largest) largest = value;
    }
    float sum = 0.0F;
    for (std::ptrdiff_t c = 0; c < logits.columns; ++c) {
        sum += std::exp(static_cast<float>(logits(row, c)) - largest);
    }
    return {largest, sum};
}

/// Rows for a piece of work of one thread: some ten microseconds of exponentials.
inline std::size_t softmax_grain(std::ptrdiff_t columns) {
    return 1 + 4096 / static_cast<std::size_t>(columns);
}

}  // namespace mp::detail

namespace mp::ops {

/// Tag of softmax_cross_entropy(): exponentials and a mean, so in float.
struct softmax_cross_entropy_op {
    static constexpr std::string_view name = "softmax_cross_entropy";
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
        std::vector<float> losses(labels.size());
        detail::parallel_for(exec, losses.size(), detail::softmax_grain(logits.columns),
                             [&](std::size_t begin, std::size_t end) {
                                 for (std::size_t i = begin; i < end; ++i) {
                                     const auto row = static_cast<std::ptrdiff_t>(i);
                                     const auto [largest, sum] = detail::sum_exponentials(logits, row);
                                     const auto chosen = static_cast<float>(
                                         logits(row, static_cast<std::ptrdiff_t>(labels[i])));
                                     losses[i] = std::log(sum) + (largest - chosen);
                                 }
                             });
        double total = 0.0;
        for (const float loss : losses) total += static_cast<double>(loss);
        return static_cast<float>(total / static_cast<double>(losses.size()) *
                                  static_cast<double>(factors.weight));
    }
};

/// The loss of a batch: weight times the mean over the rows of log(sum_j exp(logits_j)) - logits_label.
///
/// Shapes: logits is batch x classes, a matrix view in any storage order; labels is a contiguous range of
/// `batch` integers, the column that is right for each row. factors.scale has no part in the result: the loss
/// stays readable whatever the scaler does. Logits are read in their format, a row is computed in float after
/// its largest value has been subtracted, and the sum of the rows in double is rounded once. The result does
/// not depend on the number of threads. NaN or +infinity in a row make the loss NaN.
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
        const auto factor =
            static_cast<float>(static_cast<double>(factors.weight) * static_cast<double>(factors.scale) /
                               static_cast<double>(logits.rows));
        detail::parallel_for(exec, labels.size(), detail::softmax_grain(logits.columns),
                             [&](std::size_t begin, std::size_t end) {
                                 for (std::size_t i = begin; i < end; ++i) {
                                     const auto row = static_cast<std::ptrdiff_t>(i);
                                     const auto [largest, sum] = detail::sum_exponentials(logits, row);
                                     for (std::ptrdiff_t c = 0; c < logits.columns; ++c) {
                                         const float probability =
                                             std::exp(static_cast<float>(logits(row, c)) - largest) / sum;
                                         const float target = std::cmp_equal(labels[i], c) ? 1.0F : 0.0F;
                                         dlogits(row, c) =
                                             static_cast<Gradient>((probability - target) * factor);
                                     }
                                 }
                             });
    }
};

/// The gradient of softmax_cross_entropy() with respect to the logits, times the loss scale:
/// dlogits = (softmax(logits) - one_hot(labels)) * weight * scale / batch.
///
/// Shapes: dlogits is batch x classes like logits, in any storage order, and may be logits itself, but not
/// overlap it otherwise. Everything is computed in float and rounded once to the format of dlogits: gradients
/// too small for it become zero and too large ones infinity, which is what the loss scale is there to avoid.
///
/// Throws argument_error as softmax_cross_entropy() does, and for a dlogits of another shape or a scale that
/// is not finite and positive; dlogits is then unchanged.
template <class Policy = autocast::by_region, element Logit, detail::contiguous Labels, element Gradient>
void softmax_cross_entropy_backward(cpu exec, matrix_view<Logit> logits, const Labels& labels,
                                    matrix_view<Gradient> dlogits, const loss_factors& factors = {}) {
    autocast::call<Policy>(softmax_cross_entropy_backward_op{}, exec, detail::input_view(logits),
                           detail::input_view(labels), detail::output_view(dlogits), factors);
}

}  // namespace mp::ops
