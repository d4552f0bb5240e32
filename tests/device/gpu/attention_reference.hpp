// SPDX-License-Identifier: MIT
// Attention by its definition in double, of heads wherever they lie: what the kernels are compared with.
#pragma once

#include <mp/nn/ops/attention.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <vector>

#include "matrices.hpp"

namespace gpu_test {

/// Sizes of a problem; options.key_heads is not zero.
struct attention_case {
    std::ptrdiff_t queries, keys, head_dim, value_head_dim;
    mp::ops::attention_options options;

    [[nodiscard]] bool stacked() const { return options.layout == mp::ops::head_layout::stacked; }
    [[nodiscard]] std::ptrdiff_t heads() const { return options.heads * options.batch; }
    [[nodiscard]] std::ptrdiff_t key_heads() const { return options.key_heads * options.batch; }
    [[nodiscard]] std::ptrdiff_t group() const { return options.heads / options.key_heads; }

    [[nodiscard]] std::ptrdiff_t rows(std::ptrdiff_t heads_of, std::ptrdiff_t length) const {
        return stacked() ? heads_of * length : options.batch * length;
    }
    [[nodiscard]] std::ptrdiff_t columns(std::ptrdiff_t heads_of, std::ptrdiff_t width) const {
        return stacked() ? width : heads_of * width;
    }
    [[nodiscard]] std::ptrdiff_t query_rows() const { return rows(options.heads, queries); }
    [[nodiscard]] std::ptrdiff_t key_rows() const { return rows(options.key_heads, keys); }

    /// Element (row, column) of a head of a matrix.
    template <class Value>
    double at(mp::matrix_view<Value> m, std::ptrdiff_t heads_of, std::ptrdiff_t head, std::ptrdiff_t length,
              std::ptrdiff_t width, std::ptrdiff_t row, std::ptrdiff_t column) const {
        return stacked()
                   ? static_cast<double>(m(head * length + row, column))
                   : static_cast<double>(m(head / heads_of * length + row, head % heads_of * width + column));
    }
    template <class Value>
    double of_query(mp::matrix_view<Value> q, std::ptrdiff_t head, std::ptrdiff_t row,
                    std::ptrdiff_t column) const {
        return at(q, options.heads, head, queries, head_dim, row, column);
    }
    template <class Value>
    double of_result(mp::matrix_view<Value> y, std::ptrdiff_t head, std::ptrdiff_t row,
                     std::ptrdiff_t column) const {
        return at(y, options.heads, head, queries, value_head_dim, row, column);
    }
    template <class Value>
    double of_key(mp::matrix_view<Value> k, std::ptrdiff_t head, std::ptrdiff_t row,
                  std::ptrdiff_t column) const {
        return at(k, options.key_heads, head / group(), keys, head_dim, row, column);
    }
    template <class Value>
    double of_value(mp::matrix_view<Value> v, std::ptrdiff_t head, std::ptrdiff_t row,
                    std::ptrdiff_t column) const {
        return at(v, options.key_heads, head / group(), keys, value_head_dim, row, column);
    }
};

/// The probabilities of a head's query, zeros where it sees nothing, with what is said of them.
struct exact_row {
    std::vector<double> p;
    double log_sum = -std::numeric_limits<double>::infinity();
    double magnitude = 0;  ///< of the terms of a score, at most
};

template <class Q, class K, class Mask>
exact_row exact_probabilities(const attention_case& of, mp::matrix_view<Q> q, mp::matrix_view<K> k,
                              const Mask& mask, std::ptrdiff_t head, std::ptrdiff_t query) {
    exact_row row;
    const double scale =
        of.options.scale
            ? static_cast<double>(*of.options.scale)
            : static_cast<double>(static_cast<float>(1 / std::sqrt(static_cast<double>(of.head_dim))));
    const std::ptrdiff_t shift =
        of.options.alignment == mp::ops::causal_alignment::last_key ? of.keys - of.queries : 0;
    double largest = -std::numeric_limits<double>::infinity();
    for (std::ptrdiff_t key = 0; key < of.keys; ++key) {
        double score = 0, magnitude = 0;
        for (std::ptrdiff_t c = 0; c < of.head_dim; ++c) {
            const double term = of.of_query(q, head, query, c) * of.of_key(k, head, key, c);
            score += term;
            magnitude += std::fabs(term);
        }
        score *= scale;
        double added = 0;
        if constexpr (!std::is_same_v<Mask, mp::ops::absent_t>) {
            const bool shared = mask.rows == of.queries;
            added = static_cast<double>(mask(shared ? query : head * of.queries + query, key));
        }
        const bool hidden = std::isinf(added) || (of.options.causal && key > query + shift);
        row.p.push_back(hidden ? -std::numeric_limits<double>::infinity() : score + added);
        if (!hidden) row.magnitude = std::max(row.magnitude, scale * magnitude + std::fabs(added));
        largest = std::max(largest, row.p.back());
    }
    if (std::isinf(largest)) {
        std::fill(row.p.begin(), row.p.end(), 0.0);
        return row;
    }
    double sum = 0;
    for (double& p : row.p) sum += p = std::exp(p - largest);
    for (double& p : row.p) p /= sum;
    row.log_sum = largest + std::log(sum);
    return row;
}

}  // namespace gpu_test
