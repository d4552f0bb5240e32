// SPDX-License-Identifier: MIT
/// \file
/// Options of the cross entropy, labels that do not count and smoothed labels, and its losses and statistics of rows.
#pragma once

#include <mp/base/view_extent.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/numbers/format/classification.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/rules/row_statistics.hpp>

#include <concepts>
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

/// Memory for the losses and the statistics of rows, or none; autocast leaves it alone.
template <class Real>
struct row_results {
    std::span<Real> losses = {};
    std::span<ops::basic_softmax_statistics<Real>> statistics = {};
};

/// The same for an op that computes in another type.
struct any_row_results {
    float* losses = nullptr;
    double* double_losses = nullptr;
    ops::basic_softmax_statistics<float>* statistics = nullptr;
    ops::basic_softmax_statistics<double>* double_statistics = nullptr;
    view_extent losses_extent{};
    view_extent statistics_extent{};

    any_row_results() = default;
    explicit any_row_results(const row_results<float>& rows)
        : losses(rows.losses.data()),
          statistics(rows.statistics.data()),
          losses_extent(extent_of(rows.losses)),
          statistics_extent(extent_of(rows.statistics)) {}
    explicit any_row_results(const row_results<double>& rows)
        : double_losses(rows.losses.data()),
          double_statistics(rows.statistics.data()),
          losses_extent(extent_of(rows.losses)),
          statistics_extent(extent_of(rows.statistics)) {}

    void put_loss(std::ptrdiff_t row, double loss) const {
        if (double_losses != nullptr) {
            double_losses[row] = loss;
        } else {
            losses[row] = as<float>(loss);
        }
    }
    void put_statistics(std::ptrdiff_t row, double max, double others) const {
        if (double_statistics != nullptr) {
            double_statistics[row] = {max, others};
        } else {
            statistics[row] = {as<float>(max), as<float>(others)};
        }
    }
    [[nodiscard]] bool has_losses() const { return losses_extent.columns != 0; }
    [[nodiscard]] bool has_statistics() const { return statistics_extent.columns != 0; }
};

/// Saved statistics of rows, of floats or doubles.
struct any_saved_statistics {
    std::span<const ops::basic_softmax_statistics<float>> floats = {};
    std::span<const ops::basic_softmax_statistics<double>> doubles = {};

    explicit any_saved_statistics(std::span<const ops::basic_softmax_statistics<float>> saved)
        : floats(saved) {}
    explicit any_saved_statistics(std::span<const ops::basic_softmax_statistics<double>> saved)
        : doubles(saved) {}
    [[nodiscard]] bool empty() const { return floats.empty() && doubles.empty(); }
    [[nodiscard]] ops::basic_softmax_statistics<double> operator[](std::ptrdiff_t row) const {
        const auto i = static_cast<std::size_t>(row);
        if (!doubles.empty()) return doubles[i];
        return {as<double>(floats[i].max), as<double>(floats[i].others)};
    }
};

[[nodiscard]] inline view_extent extent_of(const any_saved_statistics& saved) {
    return saved.doubles.empty() ? extent_of(saved.floats) : extent_of(saved.doubles);
}
[[nodiscard]] inline view_extent losses_of(const any_row_results& rows) {
    return rows.losses_extent;
}
[[nodiscard]] inline view_extent statistics_of(const any_row_results& rows) {
    return rows.statistics_extent;
}
template <class Real>
[[nodiscard]] view_extent losses_of(const row_results<Real>& rows) {
    return extent_of(rows.losses);
}
template <class Real>
[[nodiscard]] view_extent statistics_of(const row_results<Real>& rows) {
    return extent_of(rows.statistics);
}

/// The results of rows, or their saved statistics, as an op on this executor takes them.
template <class Executor, class Real>
[[nodiscard]] auto row_results_for(const row_results<Real>& rows) {
    if constexpr (std::same_as<Executor, cpu>) {
        return any_row_results(rows);
    } else {
        return rows;
    }
}
template <class Executor, class Real>
[[nodiscard]] auto saved_statistics_for(std::span<const ops::basic_softmax_statistics<Real>> saved) {
    if constexpr (std::same_as<Executor, cpu>) {
        return any_saved_statistics(saved);
    } else {
        return saved;
    }
}

/// Names the rows of a cross entropy, for the functions of GPUs.
struct cross_entropy_rows {};

}}  // namespace mp::detail
