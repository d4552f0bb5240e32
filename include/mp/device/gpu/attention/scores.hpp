// SPDX-License-Identifier: MIT
/// \file
/// Scores of attention in kernels: what a query sees, its softmax as tiles of keys come, dropout.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/attention/products.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/format/philox.hpp>
#include <mp/numbers/rules/float_float.hpp>
#include <mp/numbers/rules/float_functions.hpp>
#include <mp/numbers/rules/row_statistics.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Stands for the elements of a mask that is not there.
struct no_mask {};

/// Of all heads of q: their number, how they share those of k, and what is known of every score.
template <class Mask>
struct attention_shape {
    std::ptrdiff_t heads;
    std::ptrdiff_t group;  ///< heads of q that share one of k
    std::ptrdiff_t queries;
    std::ptrdiff_t keys;
    std::ptrdiff_t earlier_keys;  ///< that a causal mask lets the first query see
    bool causal;
    float scale;
    row_matrix<const Mask> mask;
    bool mask_per_head;
    std::uint64_t seed;
    std::uint64_t offset;
    const std::uint64_t* added_offset;  ///< or null
    std::uint64_t threshold;            ///< words below it are dropped
    float kept_scale;                   ///< of what dropout keeps

    /// Keys that the first `end` queries see.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE std::ptrdiff_t keys_before(std::ptrdiff_t end) const {
        if (!causal) return keys;
        const std::ptrdiff_t seen = end + earlier_keys;
        return seen < 0 ? 0 : seen < keys ? seen : keys;
    }
    /// The first query that sees this key, and perhaps queries().
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE std::ptrdiff_t queries_from(std::ptrdiff_t key) const {
        const std::ptrdiff_t first = causal ? key - earlier_keys : 0;
        return first < 0 ? 0 : first < queries ? first : queries;
    }

    /// The score of a product of query and key, and whether the query sees the key; -infinity if it does not.
    struct score {
        float value;
        bool seen;
    };
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE score score_of(Thread thread, std::ptrdiff_t head,
                                                                 std::ptrdiff_t query, std::ptrdiff_t key,
                                                                 float product) const {
        score result{float_multiply(scale, product), query < queries && key < keys_before(query + 1)};
        if constexpr (!std::is_same_v<Mask, no_mask>) {
            if (result.seen) {
                const std::ptrdiff_t row = mask_per_head ? head * queries + query : query;
                const auto addend = static_cast<float>(
                    thread.load(mask.data + (row * mask.row_stride + key * mask.column_stride)));
                result.seen = bit_cast<std::uint32_t>(addend) != minus_infinity_bits;
                result.value = float_add(result.value, addend);
            }
        }
        if (!result.seen) result.value = bit_cast<float>(minus_infinity_bits);
        return result;
    }

    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE bool drops_any() const { return threshold != 0; }
    /// Of a query and a key in the stream of dropout's bits, without what is at added_offset.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE std::uint64_t stream_index(std::ptrdiff_t head,
                                                                             std::ptrdiff_t query,
                                                                             std::ptrdiff_t key) const {
        return offset +
               static_cast<std::uint64_t>(head * queries + query) * static_cast<std::uint64_t>(keys) +
               static_cast<std::uint64_t>(key);
    }

    static constexpr std::uint32_t minus_infinity_bits = 0xFF80'0000U;
};

/// Whether a score that a query sees makes its row NaN: NaN itself, and +infinity.
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE bool spoils_row(float score) {
    return !is_float_finite(score) && bit_cast<std::uint32_t>(score) != 0xFF80'0000U;
}

/// e^x for x <= 0 where what is below e^-87 counts as nothing; 0 for NaN.
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE float attention_weight(float x) {
    const float weight = float_exponential_term(x);
    return x > -87.0F ? weight : 0.0F;
}

/// A lane's state of the online softmax of a row: the largest score of the row so far, and the sum of
/// exp(score - largest) over the columns that the lane holds.
struct online_softmax {
    float largest = bit_cast<float>(std::uint32_t{0xFF80'0000});
    float_float sum{};
    bool sees_any = false;
    bool is_bad = false;

    /// What the exponentials of a row are taken from: its largest score, or 0 if that is -infinity.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE float reference() const {
        return bit_cast<std::uint32_t>(largest) == 0xFF80'0000U ? 0.0F : largest;
    }
    /// Takes in the largest score of a tile, and returns what sums so far are to be multiplied by. The
    /// scaling has a relative error of 2^-23; it is passed on only by sums that are not scaled down to
    /// nothing.
    MP_HOST_DEVICE MP_ALWAYS_INLINE float raise(float tile_largest) {
        const float before = largest;
        largest = before < tile_largest ? tile_largest : before;
        const float factor = attention_weight(float_subtract(before, reference()));
        sum = {float_multiply(sum.high, factor), float_multiply(sum.low, factor)};
        return factor;
    }
    /// Whether the row is NaN: it sees keys, but no score makes sense.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE bool is_undefined() const {
        return sees_any && (is_bad || !is_float_finite(largest));
    }
    /// Of the finished row: a largest score of -infinity where none is seen.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE ops::softmax_statistics statistics() const {
        if (!sees_any) return {bit_cast<float>(std::uint32_t{0xFF80'0000}), 0.0F};
        if (is_undefined()) return {float_quiet_nan(), float_quiet_nan()};
        return {largest, float_add(float_subtract(sum.high, 1.0F), sum.low)};
    }
};

/// Value of the four lanes that share a row.
MP_ANY_EXECUTION_SPACE
template <class Thread, class Value, class Combine>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE Value reduce_row(Thread thread, Value value, Combine combine) {
    value = combine(value, thread.shuffle_xor(value, 1));
    return combine(value, thread.shuffle_xor(value, 2));
}
struct larger_float {
    MP_HOST_DEVICE float operator()(float a, float b) const { return a < b ? b : a; }
};
struct either {
    MP_HOST_DEVICE std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return a | b; }
};

/// A row's elements of a lane's fragments: half 0 or 1 of each.
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE row_floats<attention_tile / 4> row_of_sums(
    const attention_sums<attention_tile>& sums, int half) {
    row_floats<attention_tile / 4> row;
    MP_UNROLL
    for (int j = 0; j < attention_sums<attention_tile>::fragments; ++j) {
        row.values[2 * j] = sums.of[j][2 * half];
        row.values[2 * j + 1] = sums.of[j][2 * half + 1];
    }
    return row;
}

/// The two rows of a lane, of queries.
struct online_rows {
    online_softmax of[2];

    /// From products of queries and keys to scores; notes what rows see.
    MP_ANY_EXECUTION_SPACE
    template <class Thread, class Mask>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void take_scores(Thread thread, const attention_shape<Mask>& shape,
                                                     std::ptrdiff_t head, const std::ptrdiff_t (&query)[2],
                                                     std::ptrdiff_t key,
                                                     attention_sums<attention_tile>& products) {
        MP_UNROLL
        for (int j = 0; j < attention_sums<attention_tile>::fragments; ++j) {
            MP_UNROLL
            for (int n = 0; n < 4; ++n) {
                const std::ptrdiff_t column = key + attention_column(thread.lane(), j) + n % 2;
                const auto score = shape.score_of(thread, head, query[n / 2], column, products.of[j][n]);
                online_softmax& row = of[n / 2];
                row.sees_any = row.sees_any || score.seen;
                row.is_bad = row.is_bad || (score.seen && spoils_row(score.value));
                products.of[j][n] = score.value;
            }
        }
    }

    /// Replaces scores by the exponentials of their distances from the largest ones, and adds these up. Sums
    /// of rows with exponentials are to be multiplied by `factor` first.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void exponentiate(Thread thread, attention_sums<attention_tile>& scores,
                                                      float (&factor)[2]) {
        MP_UNROLL
        for (int half = 0; half < 2; ++half) {
            float largest = of[half].largest;
            MP_UNROLL
            for (int j = 0; j < attention_sums<attention_tile>::fragments; ++j) {
                MP_UNROLL
                for (int n = 2 * half; n < 2 * half + 2; ++n) {
                    largest = larger_float{}(largest, scores.of[j][n]);
                }
            }
            factor[half] = of[half].raise(reduce_row(thread, largest, larger_float{}));
            const float reference = of[half].reference();
            MP_UNROLL
            for (int j = 0; j < attention_sums<attention_tile>::fragments; ++j) {
                MP_UNROLL
                for (int n = 2 * half; n < 2 * half + 2; ++n) {
                    scores.of[j][n] = attention_weight(float_subtract(scores.of[j][n], reference));
                }
            }
            of[half].sum = of[half].sum + sum_of_chunk(row_of_sums(scores, half));
        }
    }

    /// What the four lanes of each row know together.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void finish(Thread thread) {
        MP_UNROLL
        for (int half = 0; half < 2; ++half) {
            online_softmax& row = of[half];
            row.sum = reduce_row(thread, row.sum, add_pairs{});
            const std::uint32_t flags =
                reduce_row(thread, (row.sees_any ? 1U : 0U) | (row.is_bad ? 2U : 0U), either{});
            row.sees_any = (flags & 1U) != 0;
            row.is_bad = (flags & 2U) != 0;
        }
    }
};

/// Puts 0 for what dropout drops from a warp's weights, whose rows are queries and whose columns are keys;
/// with ByKeys the other way round. `row` is the lane's own first one.
MP_ANY_EXECUTION_SPACE
template <bool ByKeys, class Thread, class Mask>
MP_HOST_DEVICE MP_ALWAYS_INLINE void drop_weights(Thread thread, const attention_shape<Mask>& shape,
                                                  std::ptrdiff_t head, std::ptrdiff_t row,
                                                  std::ptrdiff_t column,
                                                  attention_sums<attention_tile>& weights) {
    // Bits first, in a loop: ten rounds for each element would be much code.
    std::uint32_t kept = 0;
    const std::uint64_t added = shape.added_offset == nullptr ? 0 : thread.load(shape.added_offset);
    MP_UNROLL_BY(1)
    for (int pair = 0; pair < 2 * attention_sums<attention_tile>::fragments; ++pair) {
        const std::ptrdiff_t r = row + pair % 2 * 8;
        const std::ptrdiff_t c = column + attention_column(thread.lane(), pair / 2);
        const std::uint64_t first =
            added + (ByKeys ? shape.stream_index(head, c, r) : shape.stream_index(head, r, c));
        const std::uint64_t second =
            added + (ByKeys ? shape.stream_index(head, c + 1, r) : shape.stream_index(head, r, c + 1));
        philox4x32 words = random_block(shape.seed, first / 4);
        const std::uint32_t first_word = words.word[first % 4];
        // Three of four neighbours are in one block.
        if (first / 4 != second / 4) words = random_block(shape.seed, second / 4);
        kept |= (first_word >= shape.threshold ? 1U : 0U) << 2 * pair;
        kept |= (words.word[second % 4] >= shape.threshold ? 2U : 0U) << 2 * pair;
    }
    MP_UNROLL
    for (int j = 0; j < attention_sums<attention_tile>::fragments; ++j) {
        MP_UNROLL
        for (int n = 0; n < 4; ++n) {
            if ((kept >> (4 * j + n) & 1U) == 0) weights.of[j][n] = 0.0F;
        }
    }
}

}}  // namespace mp::detail
