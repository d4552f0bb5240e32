// SPDX-License-Identifier: MIT
/// \file
/// The parts of attention over a block of queries: scores, masks, probabilities, dropout.
#pragma once

#include <mp/detail/bits.hpp>
#include <mp/executor.hpp>
#include <mp/format/operations.hpp>
#include <mp/gemm.hpp>
#include <mp/ops/arguments.hpp>
#include <mp/ops/attention/heads.hpp>
#include <mp/ops/dropout/mask.hpp>
#include <mp/ops/softmax/rows.hpp>
#include <mp/rules/elementary.hpp>
#include <mp/rules/random_words.hpp>
#include <mp/rules/rounded_doubles.hpp>
#include <mp/simd/processor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

namespace mp::detail::inline MP_ISA_NAMESPACE {

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
                     const query_block& block, float* scores, gemm_workspace* workspace) {
    gemm_of_views(exec, sizes.scale, sizes.of_queries(q, block.head, block.first, block.count),
                  transposed(sizes.of_keys(k, block.head / sizes.group(), block.keys)), 0.0F,
                  row_major(scores, block.count, block.keys), identity_epilogue{}, workspace);
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

/// Puts 0 for what dropout drops from the scores, probabilities or slopes of a query.
inline void drop(const dropout_mask& mask, std::uint64_t first, float* values, std::ptrdiff_t count) {
    constexpr std::ptrdiff_t run = 256;
    std::uint32_t room[random_room(run)];
    for (std::ptrdiff_t at = 0; at < count; at += run) {
        const std::ptrdiff_t length = (std::min)(run, count - at);
        const std::uint32_t* const words =
            random_words(best_instruction_set(), mask.seed, first + static_cast<std::uint64_t>(at),
                         static_cast<std::size_t>(length), room);
        for (std::ptrdiff_t i = 0; i < length; ++i) {
            if (words[i] < mask.threshold) values[at + i] = 0.0F;
        }
    }
}

/// Adds scale * a b to sums, in float.
template <class A, class B>
void add_product(cpu exec, float scale, matrix_view<A> a, matrix_view<B> b, float* sums,
                 gemm_workspace* workspace) {
    gemm_of_views(exec, scale, a, b, 1.0F, row_major(sums, a.rows, b.columns), identity_epilogue{},
                  workspace);
}

/// Writes dense sums to rows of a gradient, each rounded once.
template <class Value>
void write_rounded(std::span<const float> sums, matrix_view<Value> to) {
    for (std::ptrdiff_t row = 0; row < to.rows; ++row) put_row(sums.data() + row * to.columns, to, row);
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
