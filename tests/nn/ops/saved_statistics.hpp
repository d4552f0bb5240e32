// SPDX-License-Identifier: MIT
// Gradients with and without the statistics of rows that the forward pass saves, against definitions in long
// double: for rows of any magnitude, on any executor.
#pragma once

#include <doctest/doctest.h>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/attention.hpp>
#include <mp/nn/ops/normalization.hpp>
#include <mp/nn/ops/softmax_cross_entropy.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "larger_error.hpp"

namespace statistics_test {

using wide = long double;

/// A dense row-major matrix.
template <class Real>
struct matrix {
    std::ptrdiff_t rows, columns;
    std::vector<Real> elements = std::vector<Real>(static_cast<std::size_t>(rows * columns));

    Real& operator()(std::ptrdiff_t r, std::ptrdiff_t c) {
        return elements[static_cast<std::size_t>(r * columns + c)];
    }
    [[nodiscard]] wide at(std::ptrdiff_t r, std::ptrdiff_t c) const {
        return elements[static_cast<std::size_t>(r * columns + c)];
    }
    [[nodiscard]] mp::matrix_view<Real> view() { return mp::row_major(elements.data(), rows, columns); }

    /// Multiples of 1/4 from -2 to 2, whose short products are exact.
    void fill_quarters(unsigned seed) {
        for (Real& x : elements) {
            seed = seed * 1664525U + 1013904223U;
            x = static_cast<Real>(static_cast<int>(seed >> 24) % 9 - 4) / 4;
        }
    }
};

/// The largest distance of `found` from `exact`, divided by the largest magnitude in `exact`.
template <class Real, class Exact>
double distance(const matrix<Real>& found, const matrix<Exact>& exact) {
    wide worst = 0, largest = 0;
    for (std::size_t i = 0; i < exact.elements.size(); ++i) {
        const wide error =
            std::fabs(static_cast<wide>(found.elements[i]) - static_cast<wide>(exact.elements[i]));
        worst = tests::larger_error(worst, error);
        largest = std::max(largest, std::fabs(static_cast<wide>(exact.elements[i])));
    }
    return static_cast<double>(largest > 0 ? worst / largest : worst);
}

/// exp(x - max) / sum of a row, in long double.
inline std::vector<wide> softmax_of(const std::vector<wide>& x) {
    const wide max = *std::max_element(x.begin(), x.end());
    std::vector<wide> p;
    wide sum = 0;
    for (const wide it : x) {
        p.push_back(std::exp(it - max));
        sum += p.back();
    }
    for (wide& it : p) it /= sum;
    return p;
}

/// Magnitudes from 1 to the largest number, of both signs.
template <class Real>
std::vector<Real> magnitudes() {
    std::vector<Real> result;
    for (const Real x : {Real(1), Real(100), Real(1e4), Real(1e6), Real(1e8), Real(1e9), Real(1e20),
                         Real(1e30), (std::numeric_limits<Real>::max)()}) {
        result.push_back(x);
        result.push_back(-x);
    }
    return result;
}

/// Attention of three queries on five keys, of which the second one has a mask of this magnitude: equal for all
/// keys, equal for most of them, or a few ulps apart.
template <class Real>
void check_attention(const auto& exec, double tolerance) {
    constexpr std::ptrdiff_t queries = 3, keys = 5, dim = 4;
    matrix<Real> q{queries, dim}, k{keys, dim}, v{keys, dim}, y{queries, dim}, dy{queries, dim},
        mask{queries, keys};
    q.fill_quarters(1);
    k.fill_quarters(2);
    v.fill_quarters(3);
    dy.fill_quarters(4);
    for (const Real magnitude : magnitudes<Real>()) {
        for (int pattern = 0; pattern < 3; ++pattern) {
            CAPTURE(magnitude);
            CAPTURE(pattern);
            for (std::ptrdiff_t c = 0; c < keys; ++c) {
                mask(1, c) = magnitude;
                if (pattern == 1 && c == 3) mask(1, c) = 0;
                if (pattern == 2) {
                    mask(1, c) *= 1 - static_cast<Real>(c) * 4 * std::numeric_limits<Real>::epsilon();
                }
            }
            const mp::ops::attention_options options{.scale = 0.5};
            matrix<wide> exact_dq{queries, dim}, exact_dk{keys, dim}, exact_dv{keys, dim};
            for (std::ptrdiff_t r = 0; r < queries; ++r) {
                std::vector<wide> scores, slopes;
                for (std::ptrdiff_t c = 0; c < keys; ++c) {
                    Real score = 0;  // exact, and rounded once with the mask
                    wide slope = 0;
                    for (std::ptrdiff_t d = 0; d < dim; ++d) {
                        score += q(r, d) * k(c, d) / 2;
                        slope += dy.at(r, d) * v.at(c, d);
                    }
                    scores.push_back(static_cast<Real>(score + mask(r, c)));
                    slopes.push_back(slope);
                }
                const std::vector<wide> p = softmax_of(scores);
                wide mean = 0;
                for (std::size_t c = 0; c < p.size(); ++c) mean += p[c] * slopes[c];
                for (std::ptrdiff_t c = 0; c < keys; ++c) {
                    const auto i = static_cast<std::size_t>(c);
                    const wide slope = p[i] * (slopes[i] - mean) / 2;
                    for (std::ptrdiff_t d = 0; d < dim; ++d) {
                        exact_dq(r, d) += slope * k.at(c, d);
                        exact_dk(c, d) += slope * q.at(r, d);
                        exact_dv(c, d) += p[i] * dy.at(r, d);
                    }
                }
            }
            std::vector<mp::ops::basic_softmax_statistics<Real>> statistics(queries);
            mp::ops::scaled_dot_product_attention(exec, q.view(), k.view(), v.view(), mask.view(), y.view(),
                                                  options, statistics);
            for (const bool saved : {true, false}) {
                CAPTURE(saved);
                if (!saved) statistics.clear();
                matrix<Real> dq{queries, dim}, dk{keys, dim}, dv{keys, dim};
                mp::ops::scaled_dot_product_attention_backward(exec, q.view(), k.view(), v.view(),
                                                               mask.view(), dy.view(), dq.view(), dk.view(),
                                                               dv.view(), options, statistics);
                CHECK(distance(dq, exact_dq) < tolerance);
                CHECK(distance(dk, exact_dk) < tolerance);
                CHECK(distance(dv, exact_dv) < tolerance);
            }
        }
    }
}

/// Cross entropy of rows of this magnitude: equal logits, or some of them a few ulps or units apart.
template <class Real>
void check_cross_entropy(const auto& exec, std::ptrdiff_t columns, double tolerance) {
    CAPTURE(columns);
    for (const Real magnitude : magnitudes<Real>()) {
        CAPTURE(magnitude);
        matrix<Real> x{3, columns}, exact_dx{3, columns};
        for (std::ptrdiff_t c = 0; c < columns; ++c) {
            const Real steps = static_cast<Real>(c % 4);
            x(0, c) = magnitude;
            x(1, c) = magnitude * (1 - steps * 4 * std::numeric_limits<Real>::epsilon());
            x(2, c) = magnitude - steps;
        }
        const std::vector<int> labels = {0, 1, static_cast<int>(columns) - 1};
        std::vector<Real> losses(3);
        std::vector<mp::ops::basic_softmax_statistics<Real>> statistics(3);
        Real loss = 0;
        mp::ops::softmax_cross_entropy(exec, x.view(), labels, &loss, std::span<Real>(losses), {}, {},
                                       statistics);
        for (std::ptrdiff_t r = 0; r < 3; ++r) {
            std::vector<wide> row;
            for (std::ptrdiff_t c = 0; c < columns; ++c) row.push_back(x.at(r, c));
            const auto p = softmax_of(row);
            wide of_label = 0;  // from the others: p - 1 would round it
            for (std::ptrdiff_t c = 0; c < columns; ++c) {
                const wide share = p[static_cast<std::size_t>(c)] / 3;
                exact_dx(r, c) = static_cast<Real>(share);
                if (c != labels[static_cast<std::size_t>(r)]) of_label -= share;
            }
            exact_dx(r, labels[static_cast<std::size_t>(r)]) = static_cast<Real>(of_label);
        }
        for (const bool saved : {true, false}) {
            CAPTURE(saved);
            if (!saved) statistics.clear();
            matrix<Real> dx{3, columns};
            mp::ops::softmax_cross_entropy_backward(exec, x.view(), labels, dx.view(), {}, {}, statistics);
            for (std::ptrdiff_t r = 0; r < 3; ++r) {
                for (std::ptrdiff_t c = 0; c < columns; ++c) {
                    CHECK(static_cast<double>(std::fabs(dx.at(r, c) - exact_dx.at(r, c))) <=
                          tolerance * static_cast<double>(std::fabs(exact_dx.at(r, c))) + 1e-37);
                }
            }
        }
    }
}

/// The gradient of a norm over one row of this mean and deviation.
template <bool Centered, class Real>
void check_norm(const auto& exec, Real mean, Real deviation, double tolerance) {
    constexpr std::ptrdiff_t columns = 50;
    CAPTURE(mean);
    CAPTURE(deviation);
    matrix<Real> x{1, columns}, dy{1, columns}, y{1, columns};
    dy.fill_quarters(1);
    for (std::ptrdiff_t c = 0; c < columns; ++c) {
        x(0, c) = mean + static_cast<Real>(std::sin(static_cast<double>(c) * 1.7) * 1.4) * deviation;
    }
    const mp::ops::normalization_options options{.epsilon = 1e-30};
    // Distances from the first element are exact.
    const auto distance_of = [&](std::ptrdiff_t c) { return x.at(0, c) - (Centered ? x.at(0, 0) : 0); };
    wide center = 0, squares = 0, plain = 0, along = 0;
    for (std::ptrdiff_t c = 0; c < columns && Centered; ++c) center += distance_of(c) / columns;
    for (std::ptrdiff_t c = 0; c < columns; ++c)
        squares += (distance_of(c) - center) * (distance_of(c) - center);
    const wide inverse = 1 / std::sqrt(squares / columns + static_cast<wide>(static_cast<Real>(1e-30)));
    const auto normalized = [&](std::ptrdiff_t c) { return (distance_of(c) - center) * inverse; };
    for (std::ptrdiff_t c = 0; c < columns; ++c) {
        if (Centered) plain += dy.at(0, c) / columns;
        along += dy.at(0, c) * normalized(c) / columns;
    }
    matrix<wide> exact_dx{1, columns}, exact_dgamma{1, columns};
    for (std::ptrdiff_t c = 0; c < columns; ++c) {
        exact_dx(0, c) = (dy.at(0, c) - plain - along * normalized(c)) * inverse;
        exact_dgamma(0, c) = dy.at(0, c) * normalized(c);
    }
    std::vector<mp::ops::basic_normalization_statistics<Real>> statistics(1);
    using mp::ops::absent;
    if constexpr (Centered) {
        mp::ops::layer_norm(exec, x.view(), absent, absent, y.view(), options, statistics);
    } else {
        mp::ops::rms_norm(exec, x.view(), absent, y.view(), options, statistics);
    }
    for (const bool saved : {true, false}) {
        CAPTURE(saved);
        if (!saved) statistics.clear();
        matrix<Real> dx{1, columns}, dgamma{1, columns};
        if constexpr (Centered) {
            mp::ops::layer_norm_backward(exec, x.view(), absent, dy.view(), dx.view(), dgamma.elements,
                                         absent, options, statistics);
        } else {
            mp::ops::rms_norm_backward(exec, x.view(), absent, dy.view(), dx.view(), dgamma.elements, options,
                                       statistics);
        }
        CHECK(distance(dx, exact_dx) < tolerance);
        CHECK(distance(dgamma, exact_dgamma) < tolerance);
    }
}

/// Means far from zero with deviations of a few ulps of them, and rows whose squares or inverse deviation
/// leave the range of float.
template <class Real>
void check_norms(const auto& exec, double tolerance) {
    constexpr Real epsilon = std::numeric_limits<Real>::epsilon();
    for (const Real mean :
         {Real(1), Real(-1e2), Real(1e4), Real(-1e6), Real(1e15), Real(-1e30), Real(1e37)}) {
        check_norm<true>(exec, mean, std::fabs(mean) * 4 * epsilon, tolerance);
        check_norm<true>(exec, mean, std::fabs(mean), tolerance);
    }
    check_norm<true>(exec, Real(1e4), Real(4.6e-3), tolerance);
    for (const Real deviation : {Real(1e-12), Real(1), Real(1e15), Real(1e30), Real(1e38)}) {
        check_norm<true>(exec, Real(0), deviation, tolerance);
        check_norm<false>(exec, Real(0), deviation, tolerance);
    }
}

}  // namespace statistics_test
