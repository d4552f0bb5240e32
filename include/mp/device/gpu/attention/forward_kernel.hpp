// SPDX-License-Identifier: MIT
/// \file
/// The forward pass of attention in one kernel, without a matrix of scores in memory.
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

}}  // namespace mp::detail
