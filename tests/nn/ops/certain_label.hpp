// SPDX-License-Identifier: MIT
// The loss and the gradient of labels from likely to nearly certain, against long double, on any executor.
#pragma once

#include <doctest/doctest.h>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/softmax.hpp>
#include <mp/nn/ops/softmax_cross_entropy.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "larger_error.hpp"

namespace certain_label_test {

/// What a row of logits with its label has, from the exponentials of the other classes.
struct exact_row {
    long double loss = 0;
    std::vector<long double> slopes, terms;  ///< and the larger one of each slope's two terms

    template <class Real>
    exact_row(const std::vector<Real>& logits, std::size_t label, long double smoothing) {
        const auto count = static_cast<long double>(logits.size());
        const auto logit = [&](std::size_t c) { return static_cast<long double>(logits[c]); };
        long double others = 0, distances = 0;
        for (std::size_t c = 0; c < logits.size(); ++c) {
            if (c != label) others += std::exp(logit(c) - logit(label));
            distances += (logit(label) - logit(c)) / count;
        }
        loss = std::log1p(others) + smoothing * distances;
        for (std::size_t c = 0; c < logits.size(); ++c) {
            const long double p = std::exp(logit(c) - logit(label)) / (1 + others);
            const long double of_others = c == label ? others / (1 + others) : p;
            const long double share = smoothing * (c == label ? count - 1 : 1) / count;
            slopes.push_back(c == label ? share - of_others : of_others - share);
            terms.push_back(std::max(of_others, share));
        }
    }
};

/// A label whose logit is larger than the others by some distance.
template <class Real>
void check(const auto& exec, std::size_t columns, double smoothing, double tolerance) {
    CAPTURE(columns);
    CAPTURE(smoothing);
    const auto rows = static_cast<std::ptrdiff_t>(1);
    for (const double distance :
         {0.25, 1.0, 2.0, 4.0, 6.5, 7.0, 10.0, 14.0, 17.0, 20.0, 30.0, 40.0, 60.0, 80.0}) {
        for (const double origin : {0.0, -512.0}) {
            CAPTURE(distance);
            CAPTURE(origin);
            const std::size_t label = columns / 2;
            std::vector<Real> logits(columns), dlogits(columns), losses(1);
            for (std::size_t c = 0; c < columns; ++c) {
                logits[c] =
                    static_cast<Real>(origin + (c == label ? distance : -0.5 * static_cast<double>(c % 5)));
            }
            const std::vector<int> labels{static_cast<int>(label)};
            const mp::ops::cross_entropy_options options{.label_smoothing = smoothing};
            const exact_row exact(logits, label, static_cast<long double>(static_cast<Real>(smoothing)));
            const auto view = [&](std::vector<Real>& row) {
                return mp::row_major(row.data(), rows, static_cast<std::ptrdiff_t>(columns));
            };
            const auto check_loss = [&](Real loss) {
                CHECK(static_cast<double>(loss) ==
                      doctest::Approx(static_cast<double>(exact.loss)).epsilon(tolerance));
                CHECK(loss > 0);
            };
            const auto check_slopes = [&] {
                long double worst = 0;
                for (std::size_t c = 0; c < columns; ++c) {
                    const long double error =
                        std::fabs(static_cast<long double>(dlogits[c]) - exact.slopes[c]);
                    worst = tests::larger_error(worst, error / exact.terms[c]);
                }
                CHECK(static_cast<double>(worst) <= tolerance);
            };
            std::vector<mp::ops::basic_softmax_statistics<Real>> statistics(1);
            Real loss = 0;
            mp::ops::softmax_cross_entropy(exec, view(logits), labels, &loss, std::span<Real>(losses), {},
                                           options, statistics);
            check_loss(loss);
            check_loss(losses[0]);
            for (const bool saved : {true, false}) {
                CAPTURE(saved);
                if (!saved) statistics.clear();
                mp::ops::softmax_cross_entropy_backward(exec, view(logits), labels, view(dlogits), {},
                                                        options, statistics);
                check_slopes();
            }
            mp::ops::log_softmax(exec, view(logits), view(dlogits));
            if (smoothing == 0) check_loss(-dlogits[label]);
            mp::ops::softmax_cross_entropy_with_gradient(exec, view(logits), labels, &loss,
                                                         std::span<Real>(losses), view(logits), {}, options);
            check_loss(loss);
            dlogits = logits;  // the gradient lies over the logits
            check_slopes();
        }
    }
}

}  // namespace certain_label_test
