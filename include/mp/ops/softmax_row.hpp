// SPDX-License-Identifier: MIT
/// \file
/// The exponentials of one row and their sum: what softmax, log_softmax and the cross entropy are made of.
#pragma once

#include <mp/format/classification.hpp>
#include <mp/gemm/activation_functions.hpp>
#include <mp/matrix_view.hpp>
#include <mp/ops/for_each_element.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace mp::detail {

/// Room for a row and for what is computed from it. One thread uses it for row after row.
class softmax_row {
public:
    explicit softmax_row(std::size_t columns) : values_(columns), powers_(columns) {}

    /// Reads a row and computes its exponentials.
    template <class Value>
    void load(matrix_view<const Value> matrix, std::ptrdiff_t row) {
        load_row(matrix, row, values_.data());
        largest_ = -std::numeric_limits<float>::infinity();
        bool defined = true;
        for (const float value : values_) {
            // On bits: NaN, and +infinity, whose distance from itself is none.
            const bool is_bad = isnan(value) || (isinf(value) && !signbit(value));
            defined = defined && !is_bad;
            if (value > largest_) largest_ = value;
        }
        if (!defined || isinf(largest_)) {
            std::fill(powers_.begin(), powers_.end(), std::numeric_limits<double>::quiet_NaN());
            sum_ = log_sum_ = std::numeric_limits<double>::quiet_NaN();
            return;
        }
        sum_ = 0;
        for (std::size_t c = 0; c < values_.size(); ++c) {
            // For -infinity this is 2^-300: nothing next to the 1 of the largest, and zero as a float.
            powers_[c] = exponential(distance(c));
            sum_ += powers_[c];
        }
        log_sum_ = std::log(sum_);
    }

    /// exp(x_c) / sum_j exp(x_j), with a relative error below 2^-40.
    [[nodiscard]] double probability(std::size_t c) const { return powers_[c] / sum_; }

    /// The logarithm of that, -infinity for -infinity; an absolute error below 2^-40 and a relative one of
    /// 2^-52.
    [[nodiscard]] double log_probability(std::size_t c) const { return distance(c) - log_sum_; }

private:
    [[nodiscard]] double distance(std::size_t c) const {
        return static_cast<double>(values_[c]) - static_cast<double>(largest_);
    }

    std::vector<float> values_;
    std::vector<double> powers_;
    float largest_ = 0;
    double sum_ = 0;
    double log_sum_ = 0;
};

}  // namespace mp::detail
