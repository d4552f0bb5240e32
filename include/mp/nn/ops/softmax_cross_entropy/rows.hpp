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
#include <mp/nn/ops/softmax_cross_entropy/arguments.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/elementary.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>
#include <mp/numbers/rules/row_statistics.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// What is done with a block of rows.
template <class Real>
class cross_entropy_block {
public:
    cross_entropy_block(const any_integers& labels, const ops::cross_entropy_options& options,
                        softmax_rows<Real>& rows, std::ptrdiff_t first, std::ptrdiff_t count)
        : options_(options), rows_(rows), first_(first), count_(count) {
        for (std::ptrdiff_t r = 0; r < count; ++r) labels_[r] = labels[static_cast<std::size_t>(first + r)];
    }

    /// Exponentials and their sums, twice for losses and slopes, since the losses' sums are those of a loss
    /// alone; of each row, its logit of the label and its mean, both less its largest logit, before the
    /// exponentials may lie in its place.
    void load(const any_matrix& logits, bool wants_losses, const any_matrix& dlogits) {
        for (std::ptrdiff_t r = 0; r < count_; ++r) {
            if (!is_counted(r)) continue;
            rows_.read(logits, first_, r);
            const auto& row = rows_.row(r);
            if (wants_losses) {
                rows_.sum_exponentials(first_, r, {});
                rows_.find_others(r);
                others_[r] = row.others;
                distances_[r] = row.distance(as<double>(row.values[label(r)])).value();
            }
            if (wants_losses && smooths()) {
                const number sum = rows_.kernels().sum(row.values, rows_.columns());
                means_[r] = row.distance(sum / static_cast<double>(rows_.columns())).value();
            }
            if (dlogits) {
                rows_.sum_exponentials(first_, r, dlogits);
                rows_.find_others(r);
            }
        }
    }
    void write_losses(double* losses, const any_row_results& results) const {
        for (std::ptrdiff_t r = 0; r < count_; ++r) {
            losses[first_ + r] = is_counted(r) ? loss(r) : 0.0;
            if (!results.has_statistics()) continue;
            const bool has_meaning = is_counted(r) && rows_.row(r).has_meaning;
            results.put_statistics(first_ + r, has_meaning ? as<double>(rows_.row(r).largest) : others_of(r),
                                   others_of(r));
        }
    }
    void write_slopes(const any_matrix& dlogits, double factor) {
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
    void write_slopes(const any_matrix& logits, const any_saved_statistics& statistics,
                      const any_matrix& dlogits, double factor) {
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
    [[nodiscard]] bool is_counted(std::ptrdiff_t r) const { return counts(options_, labels_[r]); }
    [[nodiscard]] std::size_t label(std::ptrdiff_t r) const { return static_cast<std::size_t>(labels_[r]); }
    /// The slope of a label with the largest logit, from the sum of the others, since 1 - p would lose its digits.
    [[nodiscard]] static Real slope_of_largest(const auto& row, const label_probabilities& expected,
                                               double factor) {
        const number slope = number(expected.not_label) - number(row.others) / row.sum;
        return as<Real>((slope * factor).value());
    }
    /// 0 for rows that do not count.
    [[nodiscard]] double others_of(std::ptrdiff_t r) const { return is_counted(r) ? others_[r] : 0.0; }
    /// Distances are those from the largest logit.
    [[nodiscard]] double loss(std::ptrdiff_t r) const {
        if (!rows_.row(r).has_meaning) return others_[r];
        const number log_sum = double_log1p(others_[r]);
        const double of_label = -(number(distances_[r]) - log_sum).value();
        if (!smooths()) return of_label;
        return ((number(1.0) - smoothing()) * of_label + number(smoothing()) * (log_sum - means_[r])).value();
    }

    const ops::cross_entropy_options& options_;
    softmax_rows<Real>& rows_;
    std::ptrdiff_t first_;
    std::ptrdiff_t count_;
    std::int64_t labels_[softmax_rows<Real>::longest_block] = {};
    double others_[softmax_rows<Real>::longest_block] = {};
    double distances_[softmax_rows<Real>::longest_block] = {};
    double means_[softmax_rows<Real>::longest_block] = {};
};

/// Traverses the rows of logits on the threads of `exec`: the losses of the rows into `losses` if it is not
/// null, their statistics into `results` if it has room for them, and their slopes times `factor` into dlogits, which may be
/// absent, or logits.
template <class Real>
void walk_cross_entropy(const cpu& exec, const any_matrix& logits, const any_integers& labels,
                        const ops::cross_entropy_options& options, double* losses,
                        const any_row_results& results, double factor, const any_matrix& dlogits) {
    for_each_softmax_block<Real>(exec, logits.rows, logits.columns,
                                 [&](std::ptrdiff_t first, std::ptrdiff_t count, softmax_rows<Real>& rows) {
                                     cross_entropy_block<Real> block(labels, options, rows, first, count);
                                     block.load(logits, losses != nullptr, dlogits);
                                     if (losses != nullptr) block.write_losses(losses, results);
                                     if (dlogits) block.write_slopes(dlogits, factor);
                                 });
}

/// The mean loss, and the losses of the rows where they are wanted. Slopes go into dlogits unless it is absent.
template <class Real>
Real cross_entropy(const cpu& exec, const any_matrix& logits, const any_integers& labels,
                   const any_row_results& rows, const ops::loss_factors& factors,
                   const ops::cross_entropy_options& options, const any_matrix& dlogits = {}) {
    const auto counted = static_cast<double>(counted_rows(options, labels));
    const staging_buffer<double> losses(exec, labels.size);  // of the rows
    walk_cross_entropy<Real>(exec, logits, labels, options, losses.data(), rows,
                             gradient_factor(factors, counted), dlogits);
    rounded_doubles<1> total = 0.0;
    for (const double loss : losses.elements()) total += loss;
    if (rows.has_losses()) {
        for (std::size_t i = 0; i < labels.size; ++i) {
            rows.put_loss(static_cast<std::ptrdiff_t>(i), losses.data()[i]);
        }
    }
    if (!(counted > 0)) return std::numeric_limits<Real>::quiet_NaN();
    return as<Real>(weighted_mean(total.value(), counted, factors.weight));
}

/// The gradient, faster with the statistics of the rows.
template <class Real>
void cross_entropy_gradient(const cpu& exec, const any_matrix& logits, const any_integers& labels,
                            const any_matrix& dlogits, const ops::loss_factors& factors,
                            const ops::cross_entropy_options& options,
                            const any_saved_statistics& statistics) {
    const double factor = gradient_factor(factors, static_cast<double>(counted_rows(options, labels)));
    if (statistics.empty()) {
        return walk_cross_entropy<Real>(exec, logits, labels, options, nullptr, {}, factor, dlogits);
    }
    for_each_softmax_block<Real>(exec, logits.rows, logits.columns,
                                 [&](std::ptrdiff_t first, std::ptrdiff_t count, softmax_rows<Real>& rows) {
                                     cross_entropy_block<Real> block(labels, options, rows, first, count);
                                     block.write_slopes(logits, statistics, dlogits, factor);
                                 });
}

}}  // namespace mp::detail
