// SPDX-License-Identifier: MIT
/// \file
/// What the cross entropy is told: labels that do not count, and smoothed labels.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/numbers/format/classification.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Options of the cross entropy, in the words of torch.nn.functional.cross_entropy:
///
///     mp::ops::softmax_cross_entropy(exec, logits, labels, {},
///                                    {.ignore_index = -100, .label_smoothing = 0.1F});
struct cross_entropy_options {
    /// The label of rows that do not count: they add nothing to the loss and not to the number of rows that
    /// it is the mean of, and have a gradient of +0, whatever their logits are, NaN included. It may be a
    /// column or not. The mean of no rows at all is NaN, as in torch.
    ///
    /// torch ignores -100 unless told otherwise. Here no label is ignored until it is named: a label that is
    /// no column is a mistake that should be heard of, and on a GPU the rows need not be counted.
    std::optional<std::int64_t> ignore_index = std::nullopt;
    /// From 0, for labels as they are, to below 1: the row is compared with (1 - label_smoothing) times its
    /// label plus label_smoothing / classes for every class, its own included. A logit of -infinity then has
    /// an infinite loss, whatever the label. Rounded to float unless the op computes in double.
    double label_smoothing = 0.0;
};

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

inline void check_cross_entropy_options(std::string_view function,
                                        const ops::cross_entropy_options& options) {
    if (!isfinite(options.label_smoothing) || options.label_smoothing < 0.0 ||
        options.label_smoothing >= 1.0) {
        throw_argument(function, "options.label_smoothing", options.label_smoothing,
                       "must be at least 0 and below 1");
    }
}

/// Whether a row with this label counts.
template <class Label>
bool counts(const ops::cross_entropy_options& options, Label label) {
    return !options.ignore_index.has_value() || !std::cmp_equal(label, *options.ignore_index);
}
inline std::size_t counted_rows(const ops::cross_entropy_options& options, const any_integers& labels) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < labels.size; ++i) {
        if (counts(options, labels[i])) ++count;
    }
    return count;
}

/// The probabilities that a row is compared with.
struct label_probabilities {
    double label;      ///< of its label
    double not_label;  ///< 1 less that
    double others;     ///< of every other class

    label_probabilities(double smoothing, std::ptrdiff_t classes)
        : others(double_divide(smoothing, static_cast<double>(classes))) {
        label = double_add(double_subtract(1.0, smoothing), others);
        not_label = double_subtract(smoothing, others);
    }
};

}}  // namespace mp::detail
