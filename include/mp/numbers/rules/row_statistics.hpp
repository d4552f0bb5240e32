// SPDX-License-Identifier: MIT
/// \file
/// Statistics of a row that a forward pass saves for the backward pass, on every executor. Each is in as many
/// parts as it takes to lose nothing: one float for max + log(sum) would keep no digit of the sum of a row
/// whose maximum is large.
#pragma once

#include <mp/config.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/elementary.hpp>

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// A row under softmax: softmax(x)_i = exp(x_i - max) / (1 + others).
template <class Real>
struct basic_softmax_statistics {
    /// The largest element. -infinity for a query that sees no key; NaN for a row with NaN or +infinity, or of
    /// -infinity alone.
    Real max = 0;
    /// Sum of exp(x_i - max) without the 1 of the maximum itself: for a nearly certain class the sum of the
    /// probabilities of the other ones, to all digits.
    Real others = 0;

    /// log(sum_i exp(x_i)), rounded to double.
    [[nodiscard]] double log_sum() const {
        return detail::double_add(static_cast<double>(max),
                                  detail::double_log1p(static_cast<double>(others)));
    }
    friend bool operator==(const basic_softmax_statistics&, const basic_softmax_statistics&) = default;
};
using softmax_statistics = basic_softmax_statistics<float>;

/// A row under layer_norm or rms_norm: x_i is normalized to (x_i factor - center - center_tail) inverse.
template <class Real>
struct alignas(4 * sizeof(Real)) basic_normalization_statistics {
    Real center = 0;       ///< the mean times the factor; 0 in rms_norm
    Real center_tail = 0;  ///< rounding error of the center
    Real inverse = 0;      ///< 1 / sqrt(variance or mean square + epsilon), divided by the factor
    Real factor = 1;       ///< a power of two; 1 unless squares or the inverse leave the range of Real

    [[nodiscard]] double mean() const {
        return detail::double_divide(
            detail::double_add(static_cast<double>(center), static_cast<double>(center_tail)),
            static_cast<double>(factor));
    }
    [[nodiscard]] double inverse_deviation() const {
        return detail::double_multiply(static_cast<double>(inverse), static_cast<double>(factor));
    }
    friend bool operator==(const basic_normalization_statistics&,
                           const basic_normalization_statistics&) = default;
};
using normalization_statistics = basic_normalization_statistics<float>;

}}  // namespace mp::ops
