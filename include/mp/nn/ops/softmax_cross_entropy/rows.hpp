// SPDX-License-Identifier: MIT
/// \file
/// The cross entropy on the CPU: one walk over the rows, for losses, gradients, or both.
#pragma once

#include <mp/arrays/array/staging_buffer.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/autocast/operand.hpp>
#include <mp/nn/ops/loss_factors.hpp>
#include <mp/nn/ops/softmax/rows.hpp>
#include <mp/nn/ops/softmax_cross_entropy/options.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/elementary.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>
#include <mp/numbers/rules/row_statistics.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Memory for the losses and the statistics of rows, or none; autocast leaves it alone.
template <class Real>
struct row_results {
    std::span<Real> losses = {};
    std::span<ops::basic_softmax_statistics<Real>> statistics = {};
};

/// Names the rows of a cross entropy, for the functions below.
struct cross_entropy_rows {};

/// What is done with a block of rows.
template <class Label, class Real>
class cross_entropy_block {
public:
    cross_entropy_block(std::span<const Label> labels, const ops::cross_entropy_options& options,
                        softmax_rows<Real>& rows, std::ptrdiff_t first, std::ptrdiff_t count)
        : labels_(labels), options_(options), rows_(rows), first_(first), count_(count) {}

    /// Exponentials and their sums, twice for losses and slopes, since the losses' sums are those of a loss
    /// alone; of each row, its logit of the label and its mean, both less its largest logit, before the
    /// exponentials may lie in its place.
    template <class Logit, class... Gradient>
    void load(matrix_view<const Logit> logits, bool wants_losses, matrix_view<Gradient>... dlogits) {
        for (std::ptrdiff_t r = 0; r < count_; ++r) {
            if (!is_counted(r)) continue;
            rows_.read(logits, first_, r);
            const auto& row = rows_.row(r);
            if (wants_losses) {
                rows_.sum_exponentials(first_, r);
                rows_.find_others(r);
                others_[r] = row.others;
                distances_[r] = row.distance(as<double>(row.values[label(r)])).value();
            }
            if (wants_losses && smooths()) {
                const number sum = rows_.kernels().sum(row.values, rows_.columns());
                means_[r] = row.distance(sum / static_cast<double>(rows_.columns())).value();
            }
            if constexpr (sizeof...(Gradient) != 0) {
                rows_.sum_exponentials(first_, r, dlogits...);
                rows_.find_others(r);
            }
        }
    }
    template <class Saved>
    void write_losses(double* losses, ops::basic_softmax_statistics<Saved>* statistics) {
        for (std::ptrdiff_t r = 0; r < count_; ++r) {
            losses[first_ + r] = is_counted(r) ? loss(r) : 0.0;
            if (statistics != nullptr) statistics[first_ + r] = statistics_of<Saved>(r);
        }
    }
    template <class Gradient>
    void write_slopes(matrix_view<Gradient> dlogits, double factor) {
        const label_probabilities expected(smoothing(), dlogits.columns);
        for (std::ptrdiff_t r = 0; r < count_; ++r) {
            if (!is_counted(r)) {
                rows_.fill_row(dlogits, first_, r, Real{0});
                continue;
            }
            rows_.write_row(dlogits, first_, r, [&](std::ptrdiff_t, const auto& row) {
                const std::size_t of_label = label(r);
                const number power = as<double>(row.target[of_label]);
                scale_by_double(rows_.kernels(), row.target, rows_.columns(), double_divide(factor, row.sum),
                                double_multiply(factor, expected.others));
                const number slope = power / row.sum - expected.label;
                row.target[of_label] = same_value(power.value(), 1.0)
                                           ? slope_of_largest(row, expected, factor)
                                           : as<Real>((slope * factor).value());
            });
        }
    }
    /// The same with saved statistics, and nothing loaded: one pass.
    template <class Logit, class Saved, class Gradient>
    void write_slopes(matrix_view<const Logit> logits, const ops::basic_softmax_statistics<Saved>* statistics,
                      matrix_view<Gradient> dlogits, double factor) {
        const label_probabilities expected(smoothing(), dlogits.columns);
        const double shift = double_multiply(factor, expected.others);
        const number of_label = number(factor) * (number(expected.label) - expected.others);
        for (std::ptrdiff_t r = 0; r < count_; ++r) {
            if (!is_counted(r)) {
                rows_.fill_row(dlogits, first_, r, Real{0});
                continue;
            }
            rows_.read(logits, first_, r, statistics[first_ + r]);
            rows_.write_row(dlogits, first_, r, [&](std::ptrdiff_t, const auto& row) {
                const bool is_largest = row.values[label(r)] == row.largest;
                scaled_probabilities(rows_.kernels(), row.values, rows_.columns(), row.largest,
                                     double_divide(factor, row.sum), shift, row.target);
                Real& slope = row.target[label(r)];
                slope = is_largest ? slope_of_largest(row, expected, factor)
                                   : as<Real>((number(as<double>(slope)) - of_label).value());
            });
        }
    }

private:
    using number = rounded_doubles<1>;

    [[nodiscard]] double smoothing() const { return as<double>(as<Real>(options_.label_smoothing)); }
    [[nodiscard]] bool smooths() const { return smoothing() > 0.0; }
    [[nodiscard]] bool is_counted(std::ptrdiff_t r) const {
        return counts(options_, labels_[static_cast<std::size_t>(first_ + r)]);
    }
    [[nodiscard]] std::size_t label(std::ptrdiff_t r) const {
        return as<std::size_t>(labels_[static_cast<std::size_t>(first_ + r)]);
    }
    /// The slope of a label with the largest logit, from the sum of the others, since 1 - p would lose its digits.
    [[nodiscard]] static Real slope_of_largest(const auto& row, const label_probabilities& expected,
                                               double factor) {
        const number slope = number(expected.not_label) - number(row.others) / row.sum;
        return as<Real>((slope * factor).value());
    }
    template <class Saved>
    [[nodiscard]] ops::basic_softmax_statistics<Saved> statistics_of(std::ptrdiff_t r) const {
        if (!is_counted(r)) return {};
        if (!rows_.row(r).has_meaning) return {as<Saved>(others_[r]), as<Saved>(others_[r])};
        return {as<Saved>(rows_.row(r).largest), as<Saved>(others_[r])};
    }
    /// Distances are those from the largest logit.
    [[nodiscard]] double loss(std::ptrdiff_t r) const {
        if (!rows_.row(r).has_meaning) return others_[r];
        const number log_sum = double_log1p(others_[r]);
        const double of_label = -(number(distances_[r]) - log_sum).value();
        if (!smooths()) return of_label;
        return ((number(1.0) - smoothing()) * of_label + number(smoothing()) * (log_sum - means_[r])).value();
    }

    std::span<const Label> labels_;
    const ops::cross_entropy_options& options_;
    softmax_rows<Real>& rows_;
    std::ptrdiff_t first_;
    std::ptrdiff_t count_;
    double others_[softmax_rows<Real>::longest_block] = {};
    double distances_[softmax_rows<Real>::longest_block] = {};
    double means_[softmax_rows<Real>::longest_block] = {};
};

/// Walks over the rows of logits on the threads of `exec`: the losses of the rows into `losses` if it is not
/// null, their statistics into `statistics` if that is not null either, and their slopes times
/// `factor` into dlogits if there is one, which may be logits.
template <class Logit, class Label, class Real, class... Gradient>
void walk_cross_entropy(const cpu& exec, matrix_view<const Logit> logits, std::span<const Label> labels,
                        const ops::cross_entropy_options& options, double* losses,
                        ops::basic_softmax_statistics<Real>* statistics, double factor,
                        matrix_view<Gradient>... dlogits) {
    using real = arithmetic_type<Logit, Gradient...>;
    for_each_softmax_block<real>(exec, logits.rows, logits.columns,
                                 [&](std::ptrdiff_t first, std::ptrdiff_t count, softmax_rows<real>& rows) {
                                     cross_entropy_block<Label, real> block(labels, options, rows, first,
                                                                            count);
                                     block.load(logits, losses != nullptr, dlogits...);
                                     if (losses != nullptr) block.write_losses(losses, statistics);
                                     (block.write_slopes(dlogits, factor), ...);
                                 });
}

/// The mean loss, and the losses of the rows where they are wanted. Slopes go into dlogits if there is one.
template <class Logit, class Label, class Real, class... Gradient>
Real cross_entropy(cross_entropy_rows, const cpu& exec, matrix_view<const Logit> logits,
                   std::span<const Label> labels, const row_results<Real>& rows,
                   const ops::loss_factors& factors, const ops::cross_entropy_options& options,
                   matrix_view<Gradient>... dlogits) {
    const auto counted = static_cast<double>(counted_rows(options, labels));
    const staging_buffer<double> losses(exec, labels.size());  // of the rows
    walk_cross_entropy(exec, logits, labels, options, losses.data(),
                       rows.statistics.empty() ? nullptr : rows.statistics.data(),
                       gradient_factor(factors, counted), dlogits...);
    rounded_doubles<1> total = 0.0;
    for (const double loss : losses.elements()) total += loss;
    for (std::size_t i = 0; i < rows.losses.size(); ++i) rows.losses[i] = as<Real>(losses.data()[i]);
    if (!(counted > 0)) return std::numeric_limits<Real>::quiet_NaN();
    return as<Real>(weighted_mean(total.value(), counted, factors.weight));
}

/// The gradient, faster with the statistics of the rows.
template <class Logit, class Label, class Gradient, class Real>
void cross_entropy_gradient(cross_entropy_rows, const cpu& exec, matrix_view<const Logit> logits,
                            std::span<const Label> labels, matrix_view<Gradient> dlogits,
                            const ops::loss_factors& factors, const ops::cross_entropy_options& options,
                            std::span<const ops::basic_softmax_statistics<Real>> statistics) {
    using real = arithmetic_type<Logit, Gradient>;
    const double factor = gradient_factor(factors, static_cast<double>(counted_rows(options, labels)));
    if (statistics.empty()) {
        return walk_cross_entropy<Logit, Label, Real>(exec, logits, labels, options, nullptr, nullptr, factor,
                                                      dlogits);
    }
    for_each_softmax_block<real>(exec, logits.rows, logits.columns,
                                 [&](std::ptrdiff_t first, std::ptrdiff_t count, softmax_rows<real>& rows) {
                                     cross_entropy_block<Label, real> block(labels, options, rows, first,
                                                                            count);
                                     block.write_slopes(logits, statistics.data(), dlogits, factor);
                                 });
}

}}  // namespace mp::detail
