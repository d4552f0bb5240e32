// SPDX-License-Identifier: MIT
/// \file
/// Losses and statistics of the rows of a cross entropy.
#pragma once

#include <mp/base/view_extent.hpp>
#include <mp/config.hpp>
#include <mp/executor.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/rules/row_statistics.hpp>

#include <concepts>
#include <cstddef>
#include <span>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

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
