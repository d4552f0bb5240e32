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

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// values[i] = values[i] factor - shift, rounded to float, where the factor may be too large or too small for
/// a float.
inline void scale_by_double(const softmax_kernels& kernels, float* values, std::size_t count, double factor,
                            double shift) {
    if (factor > 0x1p-100 && factor < 0x1p100) {
        const auto rounded = static_cast<float>(factor);
        if (shift > 0) {
            return kernels.scale_and_shift(values, count, rounded, static_cast<float>(shift), values);
        }
        return kernels.scale(count, values, values, rounded);
    }
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = static_cast<float>(
            double_subtract(double_multiply(static_cast<double>(values[i]), factor), shift));
    }
}

inline void scale_by_double(const double_softmax_kernels& kernels, double* values, std::size_t count,
                            double factor, double shift) {
    kernels.scale_and_shift(values, count, factor, shift, values);
}

/// to[i] = e^(x[i] - log_sum) factor - shift.
inline void scaled_probabilities(const softmax_kernels& kernels, const float* x, std::size_t count,
                                 float log_sum, double factor, double shift, float* to) {
    if (factor > 0x1p-60 && factor < 0x1p100) {
        return kernels.scaled_probabilities(x, count, log_sum, static_cast<float>(factor),
                                            static_cast<float>(shift), to);
    }
    kernels.exponentials(x, count, log_sum, to);
    scale_by_double(kernels, to, count, factor, shift);
}
inline void scaled_probabilities(const double_softmax_kernels& kernels, const double* x, std::size_t count,
                                 double log_sum, double factor, double shift, double* to) {
    kernels.exponentials(x, count, log_sum, to);
    kernels.scale_and_shift(to, count, factor, shift, to);
}

/// Memory for what is known of the rows, their losses and the logarithms of their sums, or none; autocast
/// leaves it alone.
template <class Real>
struct row_results {
    std::span<Real> losses = {};
    std::span<Real> log_sums = {};
};
/// Logarithms of the sums of rows that a loss has written, or none.
template <class Real>
struct row_log_sums {
    std::span<const Real> values = {};
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
                sums_[r] = row.sum;
                distances_[r] = row.distance(as<double>(row.values[label(r)])).value();
            }
            if (wants_losses && smooths()) {
                const number sum = rows_.kernels().sum(row.values, rows_.columns());
                means_[r] = row.distance(sum / static_cast<double>(rows_.columns())).value();
            }
            if constexpr (sizeof...(Gradient) != 0) rows_.sum_exponentials(first_, r, dlogits...);
        }
    }
    template <class LogSum>
    void write_losses(double* losses, LogSum* log_sums) {
        for (std::ptrdiff_t r = 0; r < count_; ++r) {
            const double log_sum = is_counted(r) ? log_sum_of_distances(r) : 0.0;
            losses[first_ + r] = is_counted(r) ? loss(r, log_sum) : 0.0;
            if (log_sums == nullptr) continue;
            const double reference = is_counted(r) ? as<double>(rows_.row(r).largest) : 0.0;
            log_sums[first_ + r] = as<LogSum>(double_add(reference, log_sum));
        }
    }
    template <class Gradient>
    void write_slopes(matrix_view<Gradient> dlogits, double factor) {
        const label_probabilities expected(options_, dlogits.columns);
        for (std::ptrdiff_t r = 0; r < count_; ++r) {
            if (!is_counted(r)) {
                rows_.fill_row(dlogits, first_, r, Real{0});
                continue;
            }
            rows_.write_row(dlogits, first_, r, [&](std::ptrdiff_t, const auto& row) {
                const std::size_t of_label = label(r);
                const number slope = number(as<double>(row.target[of_label])) / row.sum - expected.label;
                scale_by_double(rows_.kernels(), row.target, rows_.columns(), double_divide(factor, row.sum),
                                double_multiply(factor, expected.others));
                row.target[of_label] = as<Real>((slope * factor).value());
            });
        }
    }
    /// The same with the logarithms of the sums at hand, and nothing loaded: one pass.
    template <class Logit, class LogSum, class Gradient>
    void write_slopes(matrix_view<const Logit> logits, const LogSum* log_sums, matrix_view<Gradient> dlogits,
                      double factor) {
        const label_probabilities expected(options_, dlogits.columns);
        const double shift = double_multiply(factor, expected.others);
        const number of_label = number(factor) * (number(expected.label) - expected.others);
        for (std::ptrdiff_t r = 0; r < count_; ++r) {
            if (!is_counted(r)) {
                rows_.fill_row(dlogits, first_, r, Real{0});
                continue;
            }
            rows_.read(logits, first_, r, log_sums[first_ + r]);
            rows_.write_row(dlogits, first_, r, [&](std::ptrdiff_t, const auto& row) {
                scaled_probabilities(rows_.kernels(), row.values, rows_.columns(), row.largest, factor, shift,
                                     row.target);
                Real& slope = row.target[label(r)];
                slope = as<Real>((number(as<double>(slope)) - of_label).value());
            });
        }
    }

private:
    using number = rounded_doubles<1>;

    [[nodiscard]] bool smooths() const { return options_.label_smoothing > 0.0F; }
    [[nodiscard]] bool is_counted(std::ptrdiff_t r) const {
        return counts(options_, labels_[static_cast<std::size_t>(first_ + r)]);
    }
    [[nodiscard]] std::size_t label(std::ptrdiff_t r) const {
        return as<std::size_t>(labels_[static_cast<std::size_t>(first_ + r)]);
    }
    /// Distances are those from the largest logit.
    [[nodiscard]] double log_sum_of_distances(std::ptrdiff_t r) const {
        return rows_.row(r).has_meaning ? double_log(sums_[r]) : sums_[r];
    }
    [[nodiscard]] double loss(std::ptrdiff_t r, number log_sum) const {
        if (!rows_.row(r).has_meaning) return sums_[r];
        const double of_label = -(number(distances_[r]) - log_sum).value();
        if (!smooths()) return of_label;
        const number smoothing = static_cast<double>(options_.label_smoothing);
        return ((number(1.0) - smoothing) * of_label + smoothing * (log_sum - means_[r])).value();
    }

    std::span<const Label> labels_;
    const ops::cross_entropy_options& options_;
    softmax_rows<Real>& rows_;
    std::ptrdiff_t first_;
    std::ptrdiff_t count_;
    double sums_[softmax_rows<Real>::longest_block] = {};
    double distances_[softmax_rows<Real>::longest_block] = {};
    double means_[softmax_rows<Real>::longest_block] = {};
};

/// Walks over the rows of logits on the threads of `exec`: the losses of the rows into `losses` if it is not
/// null, the logarithms of their sums into `log_sums` if that is not null either, and their slopes times
/// `factor` into dlogits if there is one, which may be logits.
template <class Logit, class Label, class Real, class... Gradient>
void walk_cross_entropy(const cpu& exec, matrix_view<const Logit> logits, std::span<const Label> labels,
                        const ops::cross_entropy_options& options, double* losses, Real* log_sums,
                        double factor, matrix_view<Gradient>... dlogits) {
    using real = arithmetic_type<Logit, Gradient...>;
    for_each_softmax_block<real>(exec, logits.rows, logits.columns,
                                 [&](std::ptrdiff_t first, std::ptrdiff_t count, softmax_rows<real>& rows) {
                                     cross_entropy_block<Label, real> block(labels, options, rows, first,
                                                                            count);
                                     block.load(logits, losses != nullptr, dlogits...);
                                     if (losses != nullptr) block.write_losses(losses, log_sums);
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
                       rows.log_sums.empty() ? nullptr : rows.log_sums.data(),
                       gradient_factor(factors, counted), dlogits...);
    rounded_doubles<1> total = 0.0;
    for (const double loss : losses.elements()) total += loss;
    for (std::size_t i = 0; i < rows.losses.size(); ++i) rows.losses[i] = as<Real>(losses.data()[i]);
    if (!(counted > 0)) return std::numeric_limits<Real>::quiet_NaN();
    return as<Real>(weighted_mean(total.value(), counted, factors.weight));
}

/// The gradient, faster where the logarithms of the rows' sums are at hand.
template <class Logit, class Label, class Gradient, class Real>
void cross_entropy_gradient(cross_entropy_rows, const cpu& exec, matrix_view<const Logit> logits,
                            std::span<const Label> labels, matrix_view<Gradient> dlogits,
                            const ops::loss_factors& factors, const ops::cross_entropy_options& options,
                            const row_log_sums<Real>& log_sums) {
    using real = arithmetic_type<Logit, Gradient>;
    const double factor = gradient_factor(factors, static_cast<double>(counted_rows(options, labels)));
    if (log_sums.values.empty()) {
        return walk_cross_entropy(exec, logits, labels, options, nullptr, static_cast<real*>(nullptr), factor,
                                  dlogits);
    }
    for_each_softmax_block<real>(exec, logits.rows, logits.columns,
                                 [&](std::ptrdiff_t first, std::ptrdiff_t count, softmax_rows<real>& rows) {
                                     cross_entropy_block<Label, real> block(labels, options, rows, first,
                                                                            count);
                                     block.write_slopes(logits, log_sums.values.data(), dlogits, factor);
                                 });
}

}}  // namespace mp::detail
