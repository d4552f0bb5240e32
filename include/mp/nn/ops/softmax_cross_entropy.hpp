// SPDX-License-Identifier: MIT
/// \file
/// The loss of a classifier: softmax and cross entropy in one; the loss, its gradient, or both in one pass.
#pragma once

#include <mp/base/contiguous.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/autocast/library_op.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/loss_factors.hpp>
#include <mp/nn/ops/matrix_operand.hpp>
#include <mp/nn/ops/softmax_cross_entropy/arguments.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#if MP_CORE_BODIES
#include <mp/nn/ops/softmax_cross_entropy/rows.hpp>
#endif

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Checks the labels against the matrix of logits, which has been checked; those in the memory of a GPU can
/// only be counted.
template <gpu_executor Executor, class Label>
void check_labels(std::string_view function, const Executor& /*exec*/, const named_operand& logits,
                  std::span<const Label> labels, const ops::cross_entropy_options& /*options*/ = {}) {
    check_size(function, {"labels", extent_of(labels)}, logits.extent.rows, "logits.rows");
}
inline void check_labels(std::string_view function, const cpu& /*exec*/, const named_operand& logits,
                         const any_integers& labels, const ops::cross_entropy_options& options = {}) {
    check_size(function, {"labels", extent_of_integers(labels)}, logits.extent.rows, "logits.rows");
    for (std::size_t i = 0; i < labels.size; ++i) {
        const std::int64_t label = labels[i];
        if (!counts(options, label) || (label >= 0 && label < logits.extent.columns)) continue;
        std::string expected("must be a column of logits, from 0 to ");
        expected.append(error_text(logits.extent.columns - 1));
        if (options.ignore_index.has_value()) {
            expected.append(", or options.ignore_index, which is ");
            expected.append(error_text(*options.ignore_index));
        }
        reject_integer(function, "labels", labels, i, expected);
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

/// What every pass of the cross entropy checks first.
template <class Executor, class Labels, class Factors>
void check_cross_entropy(std::string_view function, const Executor& exec, const named_operand& logits,
                         const Labels& labels, const Factors& factors,
                         const ops::cross_entropy_options& options) {
    check_executor(function, exec);
    check_logits(function, logits);
    check_cross_entropy_options(function, options);
    check_labels(function, exec, logits, labels, options);
    check_loss_factors(function, factors);
}

/// Checks where the losses go. A CPU may leave out those of the rows.
template <class Executor>
void check_losses(std::string_view function, const Executor& /*exec*/, const named_operand& loss,
                  const named_operand& losses, const named_operand& logits) {
    if (loss.extent.address == 0) {
        throw_argument(function, "loss", "null", "must be a float in the memory of the executor");
    }
    if (gpu_executor<Executor> || losses.extent.columns != 0) {
        check_size(function, losses, logits.extent.rows, "logits.rows");
    }
    check_separate(function, losses, logits);
}

/// Checks the statistics of rows, which may be left out.
inline void check_row_statistics(std::string_view function, const named_operand& statistics,
                                 const named_operand& logits) {
    if (statistics.extent.columns != 0) check_size(function, statistics, logits.extent.rows, "logits.rows");
}

inline void check_dlogits(std::string_view function, const named_operand& dlogits,
                          const named_operand& logits) {
    check_same_shape(function, dlogits, logits);
    check_separate_or_same(function, dlogits, logits);
}

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Tag of softmax_cross_entropy(): exponentials and a mean, so in float.
struct softmax_cross_entropy_op : detail::library_op<softmax_cross_entropy_op, "softmax_cross_entropy"> {
    static constexpr std::array<std::string_view, 5> known_as = {
        "cross_entropy_loss", "cross_entropy", "nll_loss", "SparseSoftmaxCrossEntropyWithLogits", "loss"};
    static constexpr std::array<std::string_view, 5> argument_names = {"exec", "logits", "labels", "factors",
                                                                       "options"};
    static constexpr auto category = op_category::full_precision;

    static void validate(const auto& exec, const auto& logits, const auto& labels,
                         const loss_factors& factors, const cross_entropy_options& options) {
        detail::check_cross_entropy("mp::ops::softmax_cross_entropy", exec, detail::named("logits", logits),
                                    labels, factors, options);
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static Real compute(const cpu& exec, const detail::any_operand& logits,
                        const detail::any_integers& labels, const loss_factors& factors,
                        const cross_entropy_options& options) {
        return cross_entropy<Real>(exec, logits, labels, {}, factors, options);
    }
};

/// The loss of a batch: weight times the mean over the rows of log(sum_j exp(logits_j)) - logits_label.
///
///     const float loss = mp::ops::softmax_cross_entropy(exec, logits, labels);
///
/// Shapes: logits is batch x classes, a matrix view in any storage order; labels is a contiguous range of
/// `batch` integers, the column that is right for each row. factors.scale has no part in the result: the loss
/// stays readable whatever the scaler does. Logits are read in their format, exponentials are
/// computed in float after the largest value of the row has been subtracted, sums and logarithms in double,
/// and the sum of the rows is rounded to float once; with logits of doubles everything is in double, and so
/// is the result. The result does not depend on the number of threads. NaN or +infinity in a row make the
/// loss NaN.
///
/// With options.label_smoothing, a row's loss is (1 - label_smoothing) times that, plus label_smoothing times
/// the mean of log(sum_j exp(logits_j)) - logits_c over all classes c; the mean over the rows leaves out
/// those whose label is options.ignore_index. See cross_entropy_options.
///
/// Throws argument_error for an empty batch, invalid views, a label that is no column, a weight that is
/// negative or not finite, and a label_smoothing that is not from 0 to below 1.
template <class Policy = autocast::by_region, element Logit, detail::contiguous Labels>
detail::arithmetic_type<Logit> softmax_cross_entropy(cpu exec, matrix_view<Logit> logits,
                                                     const Labels& labels, const loss_factors& factors = {},
                                                     const cross_entropy_options& options = {}) {
    return detail::call_op<Policy>(softmax_cross_entropy_op{}, exec, detail::input_view(logits),
                                   detail::integers_for<cpu>(labels), factors, options);
}

/// Tag of softmax_cross_entropy() whose losses go to memory.
struct softmax_cross_entropy_to_memory_op
    : detail::library_op<softmax_cross_entropy_to_memory_op, "softmax_cross_entropy"> {
    static constexpr std::string_view compiled_name = "softmax_cross_entropy_to_memory";
    using forward_op = softmax_cross_entropy_op;
    static constexpr std::array<std::string_view, 7> argument_names = {
        "exec", "logits", "labels", "loss", "row_losses", "factors", "options"};
    static constexpr auto category = softmax_cross_entropy_op::category;

    static void validate(const auto& exec, const auto& logits, const auto& labels, const auto& loss,
                         const auto& rows, const loss_factors& factors,
                         const cross_entropy_options& options) {
        const auto input = detail::named("logits", logits);
        detail::check_cross_entropy(function, exec, input, labels, factors, options);
        const detail::named_operand losses{"row_losses", detail::losses_of(rows)};
        const detail::named_operand statistics{"statistics", detail::statistics_of(rows)};
        detail::check_losses(function, exec, detail::named("loss", loss), losses, input);
        detail::check_row_statistics(function, statistics, input);
        detail::check_separate(function, statistics, input);
        detail::check_separate(function, statistics, losses);
        detail::check_separate(function, statistics, detail::named("loss", loss));
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_operand& logits,
                        const detail::any_integers& labels, const detail::any_operand& loss,
                        const detail::any_row_results& rows, const loss_factors& factors,
                        const cross_entropy_options& options) {
        const auto mean = cross_entropy<Real>(exec, logits, labels, rows, factors, options);
        store_elements(*loss.type, &mean, 1, loss.at(0, 0));
    }
    void operator()(const gpu_executor auto& exec, const auto&... operands) const {
        cross_entropy_to(detail::cross_entropy_rows{}, exec, operands...);
    }
};

/// The same, with the mean loss into *loss and the losses of the rows into row_losses, of logits.rows floats,
/// each rounded once and without the weight; 0 for rows that do not count. All of it is memory of the
/// executor, and what is written overlaps nothing. On a CPU row_losses may be empty, and all are of doubles
/// for logits of doubles.
///
///     mp::ops::softmax_cross_entropy(stream, logits, labels, loss, row_losses, {}, {.ignore_index = -100});
///
/// statistics, if not empty, receives those of each row, each part rounded once on a CPU and with the error of a
/// loss on a GPU; zeros for rows that do not count. The gradient is faster with them:
///
///     std::vector<mp::ops::softmax_statistics> statistics(rows);
///     mp::ops::softmax_cross_entropy(exec, logits, labels, &loss, row_losses, factors, options, statistics);
///     mp::ops::softmax_cross_entropy_backward(exec, logits, labels, dlogits, factors, options, statistics);
///
/// On a GPU, a row's loss has an error of 2^-21 of itself or 2^-21, whichever is larger, but no more than 2^-15
/// of itself; the mean is the
/// exact one of the rows' losses, rounded, and in the same order whatever the device. Labels cannot be
/// checked before the launch: a row whose label is no column has the loss NaN, and then so is the mean.
/// Layouts are as for softmax(). Throws argument_error for a null loss and row_losses of another size, too.
template <class Policy = autocast::by_region, executor Executor, element Logit, detail::contiguous Labels>
void softmax_cross_entropy(const Executor& exec, matrix_view<Logit> logits, const Labels& labels,
                           detail::arithmetic_type<Logit>* loss,
                           std::span<detail::arithmetic_type<Logit>> row_losses,
                           const loss_factors& factors = {}, const cross_entropy_options& options = {},
                           std::span<softmax_statistics_of<Logit>> statistics = {}) {
    detail::call_op<Policy>(softmax_cross_entropy_to_memory_op{}, exec, detail::input_view(logits),
                            detail::integers_for<Executor>(labels), autocast::out(std::span(loss, 1)),
                            detail::row_results_for<Executor>(
                                detail::row_results<detail::arithmetic_type<Logit>>{row_losses, statistics}),
                            factors, options);
}

/// Tag of softmax_cross_entropy_backward(): exponentials, so in float. `product_operands` are loss_factors,
/// or those with a loss scale in device memory.
struct softmax_cross_entropy_backward_op
    : detail::library_op<softmax_cross_entropy_backward_op, "softmax_cross_entropy_backward"> {
    using forward_op = softmax_cross_entropy_op;
    static constexpr std::array<std::string_view, 7> argument_names = {
        "exec", "logits", "labels", "dlogits", "factors", "options", "statistics"};
    static constexpr auto category = op_category::full_precision;

    static void validate(const auto& exec, const auto& logits, const auto& labels, const auto& dlogits,
                         const auto& factors, const cross_entropy_options& options, const auto& saved) {
        const auto input = detail::named("logits", logits);
        const auto result = detail::named("dlogits", dlogits);
        const detail::named_operand statistics{"statistics", detail::extent_of(saved)};
        detail::check_cross_entropy(function, exec, input, labels, factors, options);
        detail::check_dlogits(function, result, input);
        detail::check_row_statistics(function, statistics, input);
        detail::check_separate(function, result, statistics);
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_operand& logits,
                        const detail::any_integers& labels, const detail::any_operand& dlogits,
                        const loss_factors& factors, const cross_entropy_options& options,
                        const detail::any_saved_statistics& statistics) {
        cross_entropy_gradient<Real>(exec, logits, labels, dlogits, factors, options, statistics);
    }
    void operator()(const gpu_executor auto& exec, const auto&... operands) const {
        cross_entropy_gradient(detail::cross_entropy_rows{}, exec, operands...);
    }
};

/// The gradient of softmax_cross_entropy() with respect to the logits, times the loss scale:
/// dlogits = (softmax(logits) - one_hot(labels)) * weight * scale / batch.
///
///     mp::ops::softmax_cross_entropy_backward(exec, logits, labels, dlogits, {.scale = 1024});
///
/// Shapes: dlogits is batch x classes like logits, in any storage order, and may be logits itself, but not
/// overlap it otherwise. Each element is computed to 2.5 ulp of float, and rounded from there to the format
/// of dlogits: gradients too small for it become zero and too large ones infinity, which is what the loss
/// scale is there to avoid.
///
/// With options.label_smoothing the row of one_hot is (1 - label_smoothing) one_hot + label_smoothing /
/// classes, and the error 2^-21 of the larger of the two terms, times weight * scale / batch. Rows whose
/// label is options.ignore_index have a gradient of +0, and `batch` is the number of the others; a GPU counts
/// them itself, and takes one float of the executor's workspace for it.
///
/// The label's element is the sum of the other probabilities where it has the largest logit, so that it keeps
/// its digits for a nearly certain label.
///
/// With the statistics that softmax_cross_entropy() has written for the same logits, it is one pass that
/// searches and sums nothing. Then an element's error is 2^-21 of the larger of the two terms whose difference
/// it is, times weight * scale / batch, however large the logits are. A row whose statistics are not finite is
/// all NaN.
///
/// Throws argument_error as softmax_cross_entropy() does, and for a dlogits of another shape or a scale that
/// is not finite and positive; dlogits is then unchanged.
///
/// On a GPU, with p = softmax(logits), the error is 2^-21 p weight scale / batch, and for the column of the
/// label 2^-21 weight scale / batch, or 2^-15 of itself where it is the largest one, if that is less. Labels
/// lie in device memory, too, and cannot be checked: a row whose label is no column is all NaN.
template <class Policy = autocast::by_region, executor Executor = cpu, element Logit,
          detail::contiguous Labels, matrix_result Gradient>
void softmax_cross_entropy_backward(const Executor& exec, matrix_view<Logit> logits, const Labels& labels,
                                    const Gradient& dlogits, const loss_factors& factors = {},
                                    const cross_entropy_options& options = {},
                                    std::span<const softmax_statistics_of<Logit>> statistics = {}) {
    detail::call_op<Policy>(softmax_cross_entropy_backward_op{}, exec, detail::input_view(logits),
                            detail::integers_for<Executor>(labels), detail::output_view(dlogits), factors,
                            options, detail::saved_statistics_for<Executor>(statistics));
}

/// Tag of softmax_cross_entropy_with_gradient(), with factors as those of softmax_cross_entropy_backward_op.
struct softmax_cross_entropy_with_gradient_op
    : detail::library_op<softmax_cross_entropy_with_gradient_op, "softmax_cross_entropy_with_gradient"> {
    using forward_op = softmax_cross_entropy_op;
    static constexpr std::array<std::string_view, 8> argument_names = {
        "exec", "logits", "labels", "loss", "row_losses", "dlogits", "factors", "options"};
    static constexpr auto category = softmax_cross_entropy_op::category;

    static void validate(const auto& exec, const auto& logits, const auto& labels, const auto& loss,
                         const auto& rows, const auto& dlogits, const auto& factors,
                         const cross_entropy_options& options) {
        const auto input = detail::named("logits", logits);
        const detail::named_operand losses{"row_losses", detail::losses_of(rows)};
        const auto result = detail::named("dlogits", dlogits);
        detail::check_cross_entropy(function, exec, input, labels, factors, options);
        detail::check_losses(function, exec, detail::named("loss", loss), losses, input);
        detail::check_dlogits(function, result, input);
        detail::check_separate(function, result, losses);
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_operand& logits,
                        const detail::any_integers& labels, const detail::any_operand& loss,
                        const detail::any_row_results& rows, const detail::any_operand& dlogits,
                        const loss_factors& factors, const cross_entropy_options& options) {
        const auto mean = cross_entropy<Real>(exec, logits, labels, rows, factors, options, dlogits);
        store_elements(*loss.type, &mean, 1, loss.at(0, 0));
    }
    void operator()(const gpu_executor auto& exec, const auto& logits, const auto& labels, const auto& loss,
                    const auto& rows, const auto& dlogits, const auto& factors,
                    const cross_entropy_options& options) const {
        cross_entropy_to(detail::cross_entropy_rows{}, exec, logits, labels, loss, rows, factors, options,
                         dlogits);
    }
};

/// Both in one pass over the logits: *loss and row_losses as softmax_cross_entropy() has them, dlogits as
/// softmax_cross_entropy_backward(), which may be logits. Gradients carry the loss scale, the loss does not.
///
///     mp::ops::softmax_cross_entropy_with_gradient(stream, logits, labels, loss, row_losses, logits,
///                                                  {.scale = 1024}, {.label_smoothing = 0.1F});
///
/// The results have the bits of the two separate calls, on a GPU those of the loss where dlogits has the
/// format of the logits. Errors are theirs, too; nothing is written then.
template <class Policy = autocast::by_region, executor Executor, element Logit, detail::contiguous Labels,
          matrix_result Gradient>
void softmax_cross_entropy_with_gradient(const Executor& exec, matrix_view<Logit> logits,
                                         const Labels& labels, detail::arithmetic_type<Logit>* loss,
                                         std::span<detail::arithmetic_type<Logit>> row_losses,
                                         const Gradient& dlogits, const loss_factors& factors = {},
                                         const cross_entropy_options& options = {}) {
    detail::call_op<Policy>(
        softmax_cross_entropy_with_gradient_op{}, exec, detail::input_view(logits),
        detail::integers_for<Executor>(labels), autocast::out(std::span(loss, 1)),
        detail::row_results_for<Executor>(detail::row_results<detail::arithmetic_type<Logit>>{row_losses}),
        detail::output_view(dlogits), factors, options);
}

/// Overload on a CPU, which returns the loss.
///
///     const float loss = mp::ops::softmax_cross_entropy_with_gradient(exec, logits, labels, dlogits,
///                                                                     {.scale = scaler.current_scale()});
template <class Policy = autocast::by_region, element Logit, detail::contiguous Labels,
          matrix_result Gradient>
detail::arithmetic_type<Logit> softmax_cross_entropy_with_gradient(
    cpu exec, matrix_view<Logit> logits, const Labels& labels, const Gradient& dlogits,
    const loss_factors& factors = {}, const cross_entropy_options& options = {}) {
    using real = detail::arithmetic_type<Logit>;
    real loss = 0;
    softmax_cross_entropy_with_gradient<Policy>(exec, logits, labels, &loss, std::span<real>{}, dlogits,
                                                factors, options);
    return loss;
}

}}  // namespace mp::ops
