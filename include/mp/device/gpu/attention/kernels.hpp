// SPDX-License-Identifier: MIT
/// \file
/// The forward pass of attention in one kernel, without a matrix of scores in memory, and its backward pass: the row
/// statistics of each query, and then one kernel per gradient, whose blocks write disjoint tiles. Probabilities are
/// recomputed where they are needed; the order of sums is fixed.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/attention/heads.hpp>
#include <mp/device/gpu/attention/products.hpp>
#include <mp/device/gpu/attention/scores.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/float_functions.hpp>
#include <mp/numbers/rules/row_statistics.hpp>

#include <cstddef>
#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Writes a lane's elements of 16 x Columns sums, row by row multiplied by factor[half], where `column` is
/// the first column of the sums in the head.
MP_ANY_EXECUTION_SPACE
template <class Thread, class Value, int Columns>
MP_HOST_DEVICE MP_ALWAYS_INLINE void store_attention_rows(Thread thread, const head_matrix<Value>& to,
                                                          std::ptrdiff_t row, int half, std::ptrdiff_t column,
                                                          float factor, const attention_sums<Columns>& sums) {
    if (row >= to.rows) return;
    const row_matrix<Value> target = to.template in_chunks<2>();
    MP_UNROLL
    for (int j = 0; j < attention_sums<Columns>::fragments; ++j) {
        const std::ptrdiff_t at = column + attention_column(thread.lane(), j);
        if (at >= to.columns) continue;
        const row_floats<2> pair = {
            {float_multiply(sums.of[j][2 * half], factor), float_multiply(sums.of[j][2 * half + 1], factor)}};
        store_row_floats(thread, target, row, at, to.columns, pair);
    }
}

/// y = softmax(scale q k^T + mask) v for 64 queries of a head and `Width` columns of y in a block.
///
/// Tiles of 64 keys come one after the other. A warp has the scores of 16 queries in registers, takes
/// exponentials from the largest score of each query so far, and scales what it has when a larger one appears
/// (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao, "FlashAttention-2",
/// 2023). Where heads are wider than `Width`, their scores are sums over slices, and each block of columns of
/// y computes them by itself.
template <class Input, int Width, class Q, class K, class V, class Mask, class Y>
struct attention_kernel {
    using products = attention_products<Input, Width>;
    using stage = typename products::stage;

    static constexpr int threads = attention_threads;
    static constexpr int resident_blocks = 2;
    static constexpr std::size_t shared_bytes = std::size_t{3} * stage::bytes;

    attention_shape<Mask> shape;
    head_matrix<const Q> q;
    head_matrix<const K> k;
    head_matrix<const V> v;
    head_matrix<Y> y;
    ops::softmax_statistics* statistics;  ///< or null

    /// Blocks of a head: tiles of queries times tiles of columns.
    [[nodiscard]] MP_HOST_DEVICE std::ptrdiff_t column_tiles() const {
        return v.columns <= Width ? 1 : tile_count(v.columns, Width);
    }
    [[nodiscard]] std::ptrdiff_t blocks() const {
        return shape.heads * tile_count(shape.queries, attention_tile) * column_tiles();
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const std::ptrdiff_t across = column_tiles();
        const std::ptrdiff_t tiles = tile_count(shape.queries, attention_tile);
        const std::ptrdiff_t column = thread.block() % across * Width;
        // Under a causal mask the last queries see the most keys, and begin first.
        const std::ptrdiff_t tile = tiles - 1 - thread.block() / across % tiles;
        const std::ptrdiff_t head = thread.block() / across / tiles;
        const std::ptrdiff_t key_head = head / shape.group;
        const std::ptrdiff_t first = tile * attention_tile;
        const std::ptrdiff_t mine = first + thread.warp() * 16 + attention_row(thread.lane(), 0);
        const std::ptrdiff_t rows[2] = {mine, mine + 8};

        const typename products::pointer of_values{std::uint32_t{2} * stage::bytes};
        const attention_row_products<Input, Width, Q, K> score_products{
            q.head(head), k.head(key_head), {0}, {std::uint32_t{stage::bytes}}};
        const head_matrix<const V> values = v.head(key_head);
        online_rows softmax;
        typename products::column_sums sums{};
        const std::ptrdiff_t end = shape.keys_before(
            first + attention_tile < shape.queries ? first + attention_tile : shape.queries);
        MP_UNROLL_BY(1)
        for (std::ptrdiff_t key = 0; key < end; key += attention_tile) {
            thread.sync_block();  // the values have been read
            stage::copy(thread, of_values, values, key, column);
            typename products::row_sums weights{};
            score_products.add(thread, first, key, key != 0, weights);
            softmax.take_scores(thread, shape, head, rows, key, weights);
            float factor[2];
            softmax.exponentiate(thread, weights, factor);
            if (shape.drops_any()) drop_weights<false>(thread, shape, head, mine, key, weights);
            MP_UNROLL
            for (int j = 0; j < products::column_sums::fragments; ++j) {
                MP_UNROLL
                for (int n = 0; n < 4; ++n) sums.of[j][n] = float_multiply(sums.of[j][n], factor[n / 2]);
            }
            products::add_weighted_rows(thread, weights, of_values, left_of(end - key, attention_tile),
                                        left_of(v.columns - column, Width), sums);
        }
        softmax.finish(thread);
        const head_matrix<Y> results = y.head(head);
        MP_UNROLL
        for (int half = 0; half < 2; ++half) {
            const online_softmax& row = softmax.of[half];
            float factor = row.sees_any ? float_divide(shape.kept_scale, row.sum.value()) : 0.0F;
            if (row.is_undefined()) factor = float_quiet_nan();
            store_attention_rows(thread, results, rows[half], half, column, factor, sums);
            if (statistics != nullptr && column == 0 && thread.lane() % 4 == 0 &&
                rows[half] < shape.queries) {
                thread.store(statistics + (head * shape.queries + rows[half]), row.statistics());
            }
        }
    }
};

/// Statistics of a query for the backward pass.
struct alignas(16) query_statistics {
    float largest;      ///< score
    float inverse_sum;  ///< of exp(score - largest); NaN for a row without a meaning
    float mean_slope;   ///< sum over the keys of probability times slope
};

/// The slopes of the loss in the probabilities, dy v^T, with dropout: in place of the products.
MP_ANY_EXECUTION_SPACE
template <bool ByKeys, class Thread, class Mask>
MP_HOST_DEVICE MP_ALWAYS_INLINE void to_slopes(Thread thread, const attention_shape<Mask>& shape,
                                               std::ptrdiff_t head, std::ptrdiff_t row, std::ptrdiff_t column,
                                               attention_sums<attention_tile>& products) {
    if (!shape.drops_any()) return;
    MP_UNROLL
    for (int j = 0; j < attention_sums<attention_tile>::fragments; ++j) {
        MP_UNROLL
        for (int n = 0; n < 4; ++n) products.of[j][n] = float_multiply(products.of[j][n], shape.kept_scale);
    }
    drop_weights<ByKeys>(thread, shape, head, row, column, products);
}

/// Writes the statistics of 64 queries of a head.
template <class Input, int Width, class Q, class K, class V, class DY, class Mask>
struct attention_statistics_kernel {
    using products = attention_products<Input, Width>;
    using stage = typename products::stage;

    static constexpr int threads = attention_threads;
    static constexpr int resident_blocks = 2;
    static constexpr std::size_t shared_bytes = std::size_t{2} * stage::bytes;

    attention_shape<Mask> shape;
    head_matrix<const Q> q;
    head_matrix<const K> k;
    head_matrix<const V> v;
    head_matrix<const DY> dy;
    query_statistics* to;  ///< of all queries, one head after the other

    [[nodiscard]] std::ptrdiff_t blocks() const {
        return shape.heads * tile_count(shape.queries, attention_tile);
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const std::ptrdiff_t tiles = tile_count(shape.queries, attention_tile);
        const std::ptrdiff_t tile = tiles - 1 - thread.block() % tiles;
        const std::ptrdiff_t head = thread.block() / tiles;
        const std::ptrdiff_t key_head = head / shape.group;
        const std::ptrdiff_t first = tile * attention_tile;
        const std::ptrdiff_t mine = first + thread.warp() * 16 + attention_row(thread.lane(), 0);
        const std::ptrdiff_t rows[2] = {mine, mine + 8};
        const typename products::pointer second{std::uint32_t{stage::bytes}};
        const attention_row_products<Input, Width, Q, K> score_products{
            q.head(head), k.head(key_head), {0}, second};
        const attention_row_products<Input, Width, DY, V> slope_products{
            dy.head(head), v.head(key_head), {0}, second};

        online_rows softmax;
        float_float means[2];
        const std::ptrdiff_t end = shape.keys_before(
            first + attention_tile < shape.queries ? first + attention_tile : shape.queries);
        MP_UNROLL_BY(1)
        for (std::ptrdiff_t key = 0; key < end; key += attention_tile) {
            typename products::row_sums weights{};
            score_products.add(thread, first, key, false, weights);
            typename products::row_sums slopes{};
            slope_products.add(thread, first, key, false, slopes);
            to_slopes<false>(thread, shape, head, mine, key, slopes);
            softmax.take_scores(thread, shape, head, rows, key, weights);
            float factor[2];
            softmax.exponentiate(thread, weights, factor);
            MP_UNROLL
            for (int half = 0; half < 2; ++half) {
                row_floats<attention_tile / 4> terms = row_of_sums(weights, half);
                const row_floats<attention_tile / 4> of_row = row_of_sums(slopes, half);
                MP_UNROLL
                for (int i = 0; i < attention_tile / 4; ++i) {
                    // What a query does not see has no influence, NaN or not.
                    const bool counts = terms.values[i] > 0.0F;
                    terms.values[i] = counts ? float_multiply(terms.values[i], of_row.values[i]) : 0.0F;
                }
                means[half] = float_float{float_multiply(means[half].high, factor[half]),
                                          float_multiply(means[half].low, factor[half])} +
                              sum_of_chunk(terms);
            }
        }
        softmax.finish(thread);
        MP_UNROLL
        for (int half = 0; half < 2; ++half) {
            const float mean = reduce_row(thread, means[half], add_pairs{}).value();
            if (thread.lane() % 4 != 0 || rows[half] >= shape.queries) continue;
            const online_softmax& row = softmax.of[half];
            query_statistics result{row.largest, float_quiet_nan(), 0.0F};
            if (row.sees_any && !row.is_undefined()) {
                result.inverse_sum = float_divide(1.0F, row.sum.value());
                result.mean_slope = float_divide(mean, row.sum.value());
            }
            thread.store(to + (head * shape.queries + rows[half]), result);
        }
    }
};

/// Of which operand a gradient is.
enum class attention_gradient : unsigned char { queries, keys, values };

/// Writes 64 rows of a head of a gradient, `Width` columns of it: dq = scale g k, dk = scale g^T q or dv =
/// p^T dy, where p are the probabilities, dropout included in the last one, and g = p (slope - mean slope).
///
/// The rows are queries for dq, and tiles of keys come one after the other; for dk and dv the rows are keys,
/// and tiles of queries come, of all heads that share these keys.
template <attention_gradient Of, class Input, int Width, class Q, class K, class V, class DY, class Mask,
          class Result>
struct attention_gradient_kernel {
    using products = attention_products<Input, Width>;
    using stage = typename products::stage;
    using row_sums = typename products::row_sums;

    static constexpr int threads = attention_threads;
    static constexpr int resident_blocks = 2;
    static constexpr std::size_t shared_bytes = std::size_t{3} * stage::bytes;
    static constexpr bool by_keys = Of != attention_gradient::queries;
    static constexpr bool has_slopes = Of != attention_gradient::values;

    attention_shape<Mask> shape;
    head_matrix<const Q> q;
    head_matrix<const K> k;
    head_matrix<const V> v;
    head_matrix<const DY> dy;
    const query_statistics* statistics;
    head_matrix<Result> result;

    [[nodiscard]] std::ptrdiff_t blocks() const {
        return shape.heads / (by_keys ? shape.group : 1) * tile_count(result.rows, attention_tile) *
               tile_count(result.columns, Width);
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const std::ptrdiff_t across = tile_count(result.columns, Width);
        const std::ptrdiff_t tiles = tile_count(result.rows, attention_tile);
        const std::ptrdiff_t column = thread.block() % across * Width;
        const std::ptrdiff_t number = thread.block() / across % tiles;
        const std::ptrdiff_t head = thread.block() / across / tiles;
        // Under a causal mask the last queries see the most keys, and the first keys are seen the most.
        const std::ptrdiff_t first = (by_keys ? number : tiles - 1 - number) * attention_tile;
        typename products::column_sums sums{};
        if constexpr (by_keys) {
            const std::ptrdiff_t begin = shape.queries_from(first) / attention_tile * attention_tile;
            MP_UNROLL_BY(1)
            for (std::ptrdiff_t i = 0; i < shape.group; ++i) {
                const operands one = operands_of(head * shape.group + i, head);
                MP_UNROLL_BY(1)
                for (std::ptrdiff_t query = begin; query < shape.queries; query += attention_tile) {
                    add_tile(thread, one, query, first, column, sums);
                }
            }
        } else {
            const std::ptrdiff_t end = shape.keys_before(
                first + attention_tile < shape.queries ? first + attention_tile : shape.queries);
            const operands one = operands_of(head, head / shape.group);
            MP_UNROLL_BY(1)
            for (std::ptrdiff_t key = 0; key < end; key += attention_tile) {
                add_tile(thread, one, first, key, column, sums);
            }
        }
        const std::ptrdiff_t mine = first + own_row(thread);
        const float factor = has_slopes ? shape.scale : shape.kept_scale;
        const head_matrix<Result> results = result.head(head);
        MP_UNROLL
        for (int half = 0; half < 2; ++half) {
            store_attention_rows(thread, results, mine + 8 * half, half, column, factor, sums);
        }
    }

private:
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static int own_row(Thread thread) {
        return thread.warp() * 16 + attention_row(thread.lane(), 0);
    }

    /// One head of q, and its part of the others.
    struct operands {
        std::ptrdiff_t head;
        head_matrix<const Q> q;
        head_matrix<const K> k;
        head_matrix<const V> v;
        head_matrix<const DY> dy;
    };
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE operands operands_of(std::ptrdiff_t head,
                                                                       std::ptrdiff_t key_head) const {
        return {head, q.head(head), k.head(key_head), v.head(key_head), dy.head(head)};
    }

    /// Adds what a tile of queries and a tile of keys give.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void add_tile(Thread thread, const operands& of, std::ptrdiff_t query,
                                                  std::ptrdiff_t key, std::ptrdiff_t column,
                                                  typename products::column_sums& sums) const {
        const typename products::pointer second{std::uint32_t{stage::bytes}};
        const typename products::pointer third{std::uint32_t{2} * stage::bytes};
        const std::ptrdiff_t row = (by_keys ? key : query) + own_row(thread);
        const std::ptrdiff_t other = by_keys ? query : key;
        thread.sync_block();  // the stage of what weights are multiplied with has been read
        if constexpr (Of == attention_gradient::queries) {
            stage::copy(thread, third, of.k, key, column);
        } else if constexpr (Of == attention_gradient::keys) {
            stage::copy(thread, third, of.q, query, column);
        } else {
            stage::copy(thread, third, of.dy, query, column);
        }
        row_sums weights{};
        if constexpr (by_keys) {
            const attention_row_products<Input, Width, K, Q> score_products{of.k, of.q, {0}, second};
            score_products.add(thread, key, query, false, weights);
        } else {
            const attention_row_products<Input, Width, Q, K> score_products{of.q, of.k, {0}, second};
            score_products.add(thread, query, key, false, weights);
        }
        if constexpr (has_slopes) {
            row_sums slopes{};
            if constexpr (by_keys) {
                const attention_row_products<Input, Width, V, DY> slope_products{of.v, of.dy, {0}, second};
                slope_products.add(thread, key, query, false, slopes);
            } else {
                const attention_row_products<Input, Width, DY, V> slope_products{of.dy, of.v, {0}, second};
                slope_products.add(thread, query, key, false, slopes);
            }
            to_slopes<by_keys>(thread, shape, of.head, row, other, slopes);
            to_weights(thread, of.head, row, other, weights, slopes);
        } else {
            to_weights(thread, of.head, row, other, weights, weights);
            if (shape.drops_any()) drop_weights<by_keys>(thread, shape, of.head, row, other, weights);
        }
        const std::ptrdiff_t count = by_keys ? shape.queries - query : shape.keys - key;
        products::add_weighted_rows(thread, weights, third, left_of(count, attention_tile),
                                    left_of(result.columns - column, Width), sums);
    }

    /// From products of queries and keys to probabilities, for dq and dk times the slopes less their mean.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void to_weights(Thread thread, std::ptrdiff_t head, std::ptrdiff_t row,
                                                    std::ptrdiff_t column, row_sums& weights,
                                                    [[maybe_unused]] const row_sums& slopes) const {
        MP_UNROLL
        for (int j = 0; j < row_sums::fragments; ++j) {
            MP_UNROLL
            for (int n = 0; n < 4; ++n) {
                const std::ptrdiff_t r = row + n / 2 * 8;
                const std::ptrdiff_t c = column + attention_column(thread.lane(), j) + n % 2;
                const std::ptrdiff_t query = by_keys ? c : r;
                const auto score = shape.score_of(thread, head, query, by_keys ? r : c, weights.of[j][n]);
                float weight = 0.0F;
                if (score.seen) {
                    const query_statistics known = thread.load(statistics + (head * shape.queries + query));
                    weight = float_multiply(attention_weight(float_subtract(score.value, known.largest)),
                                            known.inverse_sum);
                    if constexpr (has_slopes) {
                        weight = float_multiply(weight, float_subtract(slopes.of[j][n], known.mean_slope));
                    }
                }
                weights.of[j][n] = weight;
            }
        }
    }
};

}}  // namespace mp::detail
