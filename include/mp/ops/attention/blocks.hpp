// SPDX-License-Identifier: MIT
/// \file
/// The parts of attention: blocks of queries, their scores, masks and probabilities.
#pragma once

#include <mp/detail/bits.hpp>
#include <mp/detail/parallel.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/format/operations.hpp>
#include <mp/gemm.hpp>
#include <mp/ops/arguments.hpp>
#include <mp/ops/softmax/rows.hpp>
#include <mp/rules/elementary.hpp>
#include <mp/rules/rounded_doubles.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mp::ops::inline MP_ISA_NAMESPACE {

struct attention_options {
    /// Independent attentions, one below the other in every matrix: batch size times number of heads.
    std::ptrdiff_t heads = 1;
    /// Query i sees keys 0 to i only, counted from the first key whatever the numbers of queries and keys.
    bool causal = false;
    /// Factor of the products of queries and keys, finite; 1 / sqrt(columns of q) if not given.
    std::optional<float> scale = std::nullopt;
};

/// Memory of the caller for what the forward pass knows and the backward pass can use: for each row of q, the
/// logarithm of the sum of the exponentials of its scores, -infinity if it sees no key. Empty where it is not
/// wanted. Autocast leaves it alone, so that it stays in float.
struct attention_statistics {
    std::span<float> log_sums = {};
};

}  // namespace mp::ops::inline MP_ISA_NAMESPACE

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// Queries of a block: its scores are one matrix of this many rows, of which every element is used while it
/// is in the cache.
inline constexpr std::ptrdiff_t attention_block_rows = 64;

/// The block of queries [first, first + count) of a head, and the first keys, which it can see.
struct query_block {
    std::ptrdiff_t head;
    std::ptrdiff_t first;
    std::ptrdiff_t count;
    std::ptrdiff_t keys;
};

/// The sizes of one head.
struct attention_sizes {
    std::ptrdiff_t heads;
    std::ptrdiff_t queries;
    std::ptrdiff_t keys;
    std::ptrdiff_t depth;
    std::ptrdiff_t value_depth;
    float scale;
    bool causal;

    template <class Q, class K, class V>
    attention_sizes(matrix_view<Q> q, matrix_view<K> k, matrix_view<V> v,
                    const ops::attention_options& options)
        : heads(options.heads),
          queries(q.rows / options.heads),
          keys(k.rows / options.heads),
          depth(q.columns),
          value_depth(v.columns),
          scale(options.scale
                    ? *options.scale
                    : static_cast<float>(double_divide(
                          1.0, double_sqrt(static_cast<double>((std::max<std::ptrdiff_t>)(depth, 1)))))),
          causal(options.causal) {}

    /// Keys that the first `end` queries can see.
    [[nodiscard]] std::ptrdiff_t keys_before(std::ptrdiff_t end) const {
        return causal ? (std::min)(keys, end) : keys;
    }
    [[nodiscard]] query_block block(std::ptrdiff_t head, std::ptrdiff_t first) const {
        const std::ptrdiff_t count = (std::min)(attention_block_rows, queries - first);
        return {head, first, count, keys_before(first + count)};
    }
    [[nodiscard]] std::ptrdiff_t work(std::ptrdiff_t rows) const {
        return rows * keys * (depth + value_depth);
    }
};

/// Calls f(block) for each block of a head.
template <class Function>
void for_each_block(const attention_sizes& sizes, std::ptrdiff_t head, Function f) {
    for (std::ptrdiff_t first = 0; first < sizes.queries; first += attention_block_rows) {
        f(sizes.block(head, first));
    }
}

/// Which keys of its block a query sees, and what the mask adds to their scores.
template <class Mask>
class seen_keys {
public:
    seen_keys(const Mask& mask, const attention_sizes& sizes, const query_block& block, std::ptrdiff_t row)
        : mask_(mask),
          row_(block.first + row),
          end_((std::min)(block.keys, sizes.keys_before(block.first + row + 1))) {
        if constexpr (!std::is_same_v<Mask, ops::absent_t>) {
            if (mask.rows != sizes.queries) row_ += block.head * sizes.queries;
        }
    }

    [[nodiscard]] float added(std::ptrdiff_t key) const {
        if constexpr (std::is_same_v<Mask, ops::absent_t>) {
            return 0.0F;
        } else {
            return static_cast<float>(mask_(row_, key));
        }
    }
    [[nodiscard]] bool operator()(std::ptrdiff_t key) const {
        return key < end_ && bits_of(added(key)) != minus_infinity;
    }

    /// Adds the mask to the scores that the query sees and makes -infinity of the others. Says whether it
    /// sees any.
    bool mask_scores(float* scores, std::ptrdiff_t keys) const {
        bool any = end_ > 0;
        if constexpr (!std::is_same_v<Mask, ops::absent_t>) {
            any = false;
            for (std::ptrdiff_t key = 0; key < end_; ++key) {
                const float addend = added(key);
                const bool is_seen = bits_of(addend) != minus_infinity;
                scores[key] = is_seen ? scores[key] + addend : addend;
                any = any || is_seen;
            }
        }
        for (std::ptrdiff_t key = (std::max<std::ptrdiff_t>)(end_, 0); key < keys; ++key) {
            scores[key] = bit_cast<float>(minus_infinity);
        }
        return any;
    }

private:
    static constexpr std::uint32_t minus_infinity = 0xFF80'0000U;

    const Mask& mask_;
    std::ptrdiff_t row_;
    std::ptrdiff_t end_;
};

/// scores = scale * q k^T for a block, dense and row-major.
template <class Q, class K>
void multiply_scores(cpu exec, matrix_view<const Q> q, matrix_view<const K> k, const attention_sizes& sizes,
                     const query_block& block, float* scores, gemm_workspace& workspace) {
    gemm(exec, sizes.scale, q.block(block.head * sizes.queries + block.first, 0, block.count, sizes.depth),
         transposed(k.block(block.head * sizes.keys, 0, block.keys, sizes.depth)), 0.0F,
         row_major(scores, block.count, block.keys), {}, workspace);
}

/// Largest score of a query and the sum of the exponentials of the distances from it, both 0 if it sees no
/// key. (A comparison of the sum with 0 would not tell: under -ffast-math NaN may equal it.)
struct score_sums {
    float largest = 0.0F;
    double sum = 0.0;
    bool empty = true;

    [[nodiscard]] float log_sum() const {
        return empty ? -std::numeric_limits<float>::infinity()
                     : static_cast<float>(
                           (rounded_doubles<1>(static_cast<double>(largest)) + log_of_sum()).value());
    }

private:
    [[nodiscard]] double log_of_sum() const { return isnan(static_cast<float>(sum)) ? sum : double_log(sum); }
};

/// NaN for the scores that a query sees and 0 for the others: what becomes of a row without a meaning.
template <class Mask>
void spoil_scores(const seen_keys<Mask>& seen, float* scores, std::ptrdiff_t keys) {
    for (std::ptrdiff_t key = 0; key < keys; ++key) {
        scores[key] = seen(key) ? std::numeric_limits<float>::quiet_NaN() : 0.0F;
    }
}

/// Replaces the scores of a query by the exponentials of their distances from the largest one, the mask added
/// first; by 0 for keys that it does not see. NaN and +infinity among the scores that it sees, and -infinity
/// alone, make them and the sum NaN.
template <class Mask>
score_sums exponentiate(const softmax_kernels& kernels, const seen_keys<Mask>& seen, float* scores,
                        std::ptrdiff_t keys) {
    score_sums result;
    const auto count = static_cast<std::size_t>(keys);
    result.empty = !seen.mask_scores(scores, keys);
    if (result.empty) {
        std::fill(scores, scores + keys, 0.0F);
        return result;
    }
    const row_maximum largest = kernels.maximum(scores, count);
    if (largest.is_bad || isinf(largest.value)) {
        spoil_scores(seen, scores, keys);
        result.sum = std::numeric_limits<double>::quiet_NaN();
        return result;
    }
    result.largest = largest.value;
    result.sum = kernels.exponentials(scores, count, largest.value, scores);
    return result;
}

/// Replaces the scores of a query by their probabilities, of which the logarithm of the sum is known or not.
template <class Mask>
void to_probabilities(const softmax_kernels& kernels, const seen_keys<Mask>& seen, float* scores,
                      std::ptrdiff_t keys, const float* log_sum) {
    const auto count = static_cast<std::size_t>(keys);
    if (log_sum != nullptr) {
        const bool any = seen.mask_scores(scores, keys);
        if (!any) {
            std::fill(scores, scores + keys, 0.0F);
            return;
        }
        // Sums that the forward pass saved are not below the largest score, except for rounding.
        const row_maximum largest = kernels.maximum(scores, count);
        if (!isfinite(*log_sum) || largest.is_bad || !(largest.value <= *log_sum + 40.0F)) {
            return spoil_scores(seen, scores, keys);
        }
        kernels.exponentials(scores, count, *log_sum, scores);
        return;
    }
    const score_sums found = exponentiate(kernels, seen, scores, keys);
    if (found.empty || isnan(static_cast<float>(found.sum))) return;
    kernels.scale(count, scores, scores, static_cast<float>(double_divide(1.0, found.sum)));
}

/// Adds scale * a b to sums, in float.
template <class A, class B>
void add_product(cpu exec, float scale, matrix_view<A> a, matrix_view<B> b, float* sums,
                 gemm_workspace& workspace) {
    gemm(exec, scale, a, b, 1.0F, row_major(sums, a.rows, b.columns), {}, workspace);
}

/// Writes dense sums to rows of a gradient, each rounded once.
template <class Value>
void write_rounded(const std::vector<float>& sums, matrix_view<Value> to) {
    for (std::ptrdiff_t row = 0; row < to.rows; ++row) put_row(sums.data() + row * to.columns, to, row);
}

/// Checks the inputs, and that what is like y (of which `y` is the name) fits them.
template <class Mask>
void check_attention(std::string_view function, cpu exec, const named_operand& q, const named_operand& k,
                     const named_operand& v, const Mask& mask, const named_operand& y,
                     const named_operand& log_sums, const ops::attention_options& options) {
    check_threads(function, exec);
    if (options.heads < 1) throw_argument(function, "options.heads", options.heads, "must be at least 1");
    if (options.scale && !isfinite(*options.scale)) {
        throw_argument(function, "options.scale", *options.scale, "must be finite");
    }
    const auto check_heads = [&](std::string_view name, const named_operand& operand) {
        check_operand(function, operand);
        if (operand.extent.rows % options.heads != 0) {
            throw_argument(function, name, operand.extent.rows,
                           "must be a multiple of options.heads, which is " + error_text(options.heads));
        }
    };
    check_heads("q.rows", q);
    check_heads("k.rows", k);
    check_shape(function, k, k.extent.rows, "k.rows", q.extent.columns, "q.columns");
    check_shape(function, v, k.extent.rows, "k.rows", v.extent.columns, "v.columns");
    if constexpr (!std::is_same_v<Mask, ops::absent_t>) {
        const named_operand added = named("mask", mask);
        const std::ptrdiff_t queries = q.extent.rows / options.heads;
        check_operand(function, added);
        if (added.extent.rows != queries && added.extent.rows != q.extent.rows) {
            throw_argument(function, "mask.rows", added.extent.rows,
                           "must be q.rows / options.heads, which is " + error_text(queries) +
                               ", or q.rows, which is " + error_text(q.extent.rows));
        }
        check_equal_sizes(function, "mask.columns", added.extent.columns, "k.rows / options.heads",
                          k.extent.rows / options.heads);
    }
    check_shape(function, y, q.extent.rows, "q.rows", v.extent.columns, "v.columns");
    if (!log_sums.extent.empty()) check_size(function, log_sums, q.extent.rows, "q.rows");
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
