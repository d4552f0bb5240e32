// SPDX-License-Identifier: MIT
/// \file
/// The cross entropy on the CPU: one walk over the rows, for losses, gradients, or both.
#pragma once

#include <mp/autocast/staging_buffer.hpp>
#include <mp/executor.hpp>
#include <mp/format/float_arithmetic.hpp>
#include <mp/matrix_view.hpp>
#include <mp/ops/loss_factors.hpp>
#include <mp/ops/softmax/rows.hpp>
#include <mp/ops/softmax_cross_entropy/options.hpp>
#include <mp/rules/elementary.hpp>
#include <mp/rules/rounded_doubles.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

namespace mp::detail::inline MP_ISA_NAMESPACE {

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

/// Memory for the losses of the rows, or none; autocast leaves it alone.
template <class Real>
struct row_losses {
    std::span<Real> memory = {};
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
    void write_losses(double* losses) {
        for (std::ptrdiff_t r = 0; r < count_; ++r) losses[first_ + r] = is_counted(r) ? loss(r) : 0.0;
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

private:
    using number = rounded_doubles<1>;

    [[nodiscard]] bool smooths() const { return options_.label_smoothing > 0.0F; }
    [[nodiscard]] bool is_counted(std::ptrdiff_t r) const {
        return counts(options_, labels_[static_cast<std::size_t>(first_ + r)]);
    }
    [[nodiscard]] std::size_t label(std::ptrdiff_t r) const {
        return as<std::size_t>(labels_[static_cast<std::size_t>(first_ + r)]);
    }
    [[nodiscard]] double loss(std::ptrdiff_t r) const {
        if (!rows_.row(r).has_meaning) return sums_[r];
        const number log_sum = double_log(sums_[r]);
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
/// null, and their slopes times `factor` into dlogits if there is one, which may be logits.
template <class Logit, class Label, class... Gradient>
void walk_cross_entropy(const cpu& exec, matrix_view<const Logit> logits, std::span<const Label> labels,
                        const ops::cross_entropy_options& options, double* losses, double factor,
                        matrix_view<Gradient>... dlogits) {
    using real = arithmetic_type<Logit, Gradient...>;
    for_each_softmax_block<real>(exec, logits.rows, logits.columns,
                                 [&](std::ptrdiff_t first, std::ptrdiff_t count, softmax_rows<real>& rows) {
                                     cross_entropy_block<Label, real> block(labels, options, rows, first,
                                                                            count);
                                     block.load(logits, losses != nullptr, dlogits...);
                                     if (losses != nullptr) block.write_losses(losses);
                                     (block.write_slopes(dlogits, factor), ...);
                                 });
}

/// The mean loss, and the losses of the rows where they are wanted. Slopes go into dlogits if there is one.
template <class Logit, class Label, class Real, class... Gradient>
Real cross_entropy(cross_entropy_rows, const cpu& exec, matrix_view<const Logit> logits,
                   std::span<const Label> labels, const row_losses<Real>& rows,
                   const ops::loss_factors& factors, const ops::cross_entropy_options& options,
                   matrix_view<Gradient>... dlogits) {
    const auto counted = static_cast<double>(counted_rows(options, labels));
    const staging_buffer<double> losses(exec, labels.size());  // of the rows
    walk_cross_entropy(exec, logits, labels, options, losses.data(), gradient_factor(factors, counted),
                       dlogits...);
    rounded_doubles<1> total = 0.0;
    for (const double loss : losses.elements()) total += loss;
    for (std::size_t i = 0; i < rows.memory.size(); ++i) rows.memory[i] = as<Real>(losses.data()[i]);
    if (!(counted > 0)) return std::numeric_limits<Real>::quiet_NaN();
    return as<Real>(weighted_mean(total.value(), counted, factors.weight));
}

/// The gradient.
template <class Logit, class Label, class Gradient>
void cross_entropy_gradient(cross_entropy_rows, const cpu& exec, matrix_view<const Logit> logits,
                            std::span<const Label> labels, matrix_view<Gradient> dlogits,
                            const ops::loss_factors& factors, const ops::cross_entropy_options& options) {
    const auto counted = static_cast<double>(counted_rows(options, labels));
    walk_cross_entropy(exec, logits, labels, options, nullptr, gradient_factor(factors, counted), dlogits);
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
