// SPDX-License-Identifier: MIT
/// \file
/// Options of attention, and its heads: how many there are, where they lie, and whether the operands fit.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/dropout/mask.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Where the heads of attention lie in the matrices of queries, keys, values and results.
enum class head_layout : unsigned char {
    /// One head below the other, each of them rows x head_dim: (batch, heads, tokens, head_dim) of torch.
    stacked,
    /// Side by side in the rows, each of them `head_dim` columns, and one sequence below the other: (batch,
    /// tokens, heads, head_dim), as a projection leaves them. Queries, keys and values may be column blocks of
    /// one matrix.
    side_by_side
};

/// From which end a causal mask counts where the numbers of queries and keys differ.
enum class causal_alignment : unsigned char {
    first_key,  ///< query i sees keys 0 to i: torch's causal_upper_left
    last_key    ///< the last query sees all keys: torch's causal_lower_right, for a cache of earlier keys
};

struct attention_options {
    /// Heads of q and y. Stacked: of all sequences together, batch size times heads. Side by side: of a
    /// sequence.
    std::ptrdiff_t heads = 1;
    /// Query i sees keys 0 to i only, counted as `alignment` says.
    bool causal = false;
    /// Factor of the products of queries and keys, finite; 1 / sqrt(head_dim) if not given. Rounded to float
    /// unless q is of doubles.
    std::optional<double> scale = std::nullopt;
    head_layout layout = head_layout::stacked;
    /// Sequences, one below the other; 1 where heads are stacked, which do not need it.
    std::ptrdiff_t batch = 1;
    /// Heads of k and v, a divisor of `heads` and counted like them; 0 for as many. Each serves heads /
    /// key_heads neighbouring heads of q (grouped-query attention; 1 side by side is multi-query attention).
    std::ptrdiff_t key_heads = 0;
    causal_alignment alignment = causal_alignment::first_key;
    /// Drops probabilities after the softmax; the gradient takes the same options. The bits of query i and
    /// key j of head h (of all sequences) are those of element (h * queries + i) * keys + j of the stream.
    dropout_options dropout = {.probability = 0.0F};
};

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

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

/// The heads of all sequences, counted one sequence after the other, and what each of them is.
struct attention_heads {
    std::ptrdiff_t count;      ///< of q and y
    std::ptrdiff_t key_count;  ///< of k and v
    std::ptrdiff_t per_row;    ///< side by side in a row of q; 1 where they are stacked
    std::ptrdiff_t keys_per_row;
    std::ptrdiff_t queries;
    std::ptrdiff_t keys;
    std::ptrdiff_t head_dim;
    std::ptrdiff_t value_head_dim;

    template <class Extent>
    static attention_heads of(const Extent& q, const Extent& k, const Extent& v,
                              const ops::attention_options& options) {
        const std::ptrdiff_t key_heads = options.key_heads == 0 ? options.heads : options.key_heads;
        const bool stacked = options.layout == ops::head_layout::stacked;
        const std::ptrdiff_t sequences = stacked ? 1 : options.batch;
        return {sequences * options.heads,
                sequences * key_heads,
                stacked ? 1 : options.heads,
                stacked ? 1 : key_heads,
                q.rows / (stacked ? options.heads : options.batch),
                k.rows / (stacked ? key_heads : options.batch),
                q.columns / (stacked ? 1 : options.heads),
                v.columns / (stacked ? 1 : key_heads)};
    }

    /// Heads of q that share one of k and v.
    [[nodiscard]] std::ptrdiff_t group() const { return count / key_count; }
    /// The rows [first, first + length) of a head in a matrix like q (or y).
    template <class Matrix>
    [[nodiscard]] Matrix of_queries(const Matrix& like_q, std::ptrdiff_t head, std::ptrdiff_t first,
                                    std::ptrdiff_t length) const {
        const std::ptrdiff_t width = like_q.columns / per_row;
        return like_q.block(head / per_row * queries + first, head % per_row * width, length, width);
    }
    /// The first `length` rows of a head in a matrix like k (or v).
    template <class Matrix>
    [[nodiscard]] Matrix of_keys(const Matrix& like_k, std::ptrdiff_t key_head, std::ptrdiff_t length) const {
        const std::ptrdiff_t width = like_k.columns / keys_per_row;
        return like_k.block(key_head / keys_per_row * keys, key_head % keys_per_row * width, length, width);
    }
};

/// The heads, and what a query of them sees.
struct attention_sizes : attention_heads {
    double scale;
    bool causal;
    std::ptrdiff_t earlier_keys;  ///< that a causal mask lets the first query see

    /// A scale that is not given is rounded to float, unless the operands are doubles.
    template <class Q, class K, class V>
    attention_sizes(matrix_view<Q> q, matrix_view<K> k, matrix_view<V> v,
                    const ops::attention_options& options)
        : attention_sizes(extent_of(q), extent_of(k), extent_of(v), options, any_double<Q, K, V>) {}
    attention_sizes(const view_extent& q, const view_extent& k, const view_extent& v,
                    const ops::attention_options& options, bool of_doubles)
        : attention_heads(attention_heads::of(q, k, v, options)),
          scale(options.scale
                    ? *options.scale
                    : double_divide(
                          1.0, double_sqrt(static_cast<double>((std::max<std::ptrdiff_t>)(head_dim, 1))))),
          causal(options.causal),
          earlier_keys(options.alignment == ops::causal_alignment::last_key ? keys - queries : 0) {
        if (!of_doubles) scale = as<double>(as<float>(scale));
    }

    /// Keys that the first `end` queries can see.
    [[nodiscard]] std::ptrdiff_t keys_before(std::ptrdiff_t end) const {
        return causal ? (std::max<std::ptrdiff_t>)((std::min)(keys, end + earlier_keys), 0) : keys;
    }
    [[nodiscard]] query_block block(std::ptrdiff_t head, std::ptrdiff_t first) const {
        const std::ptrdiff_t rows = (std::min)(attention_block_rows, queries - first);
        return {head, first, rows, keys_before(first + rows)};
    }
    /// Of the first key of a query of a block in the stream of dropout's bits.
    [[nodiscard]] std::uint64_t stream_index(const ops::dropout_options& dropout, const query_block& block,
                                             std::ptrdiff_t row) const {
        const auto query = static_cast<std::uint64_t>(block.head * queries + block.first + row);
        return dropout_offset(dropout) + query * static_cast<std::uint64_t>(keys);
    }
    [[nodiscard]] std::ptrdiff_t work(std::ptrdiff_t rows) const {
        return rows * keys * (head_dim + value_head_dim);
    }
};

/// Calls f(block) for each block of a head.
template <class Function>
void for_each_block(const attention_sizes& sizes, std::ptrdiff_t head, Function f) {
    for (std::ptrdiff_t first = 0; first < sizes.queries; first += attention_block_rows) {
        f(sizes.block(head, first));
    }
}

/// Throws unless `divisor` divides `value`.
inline void check_multiple(std::string_view function, std::string_view argument, std::ptrdiff_t value,
                           std::string_view divisor_name, std::ptrdiff_t divisor) {
    if (value % divisor == 0) return;
    throw_argument(
        function, argument, value,
        "must be a multiple of " + std::string(divisor_name) + ", which is " + error_text(divisor));
}

inline void check_attention_options(std::string_view function, const ops::attention_options& options) {
    if (options.heads < 1) throw_argument(function, "options.heads", options.heads, "must be at least 1");
    if (options.batch < 1) throw_argument(function, "options.batch", options.batch, "must be at least 1");
    if (options.layout == ops::head_layout::stacked && options.batch != 1) {
        throw_argument(function, "options.batch", options.batch,
                       "must be 1 where heads are stacked; options.heads are those of all sequences then");
    }
    if (options.key_heads < 0) {
        throw_argument(function, "options.key_heads", options.key_heads, "must not be negative");
    }
    if (options.key_heads != 0) {
        check_multiple(function, "options.heads", options.heads, "options.key_heads", options.key_heads);
    }
    if (options.scale && !isfinite(static_cast<float>(*options.scale))) {  // which it is rounded to
        throw_argument(function, "options.scale", *options.scale, "must be finite");
    }
    check_dropout_probability(function, "options.dropout.probability", options.dropout.probability);
}

/// Checks the inputs, and that what is like y (of which `y` is the name) fits them.
template <class Executor, class Mask>
void check_attention(std::string_view function, const Executor& exec, const named_operand& q,
                     const named_operand& k, const named_operand& v, const Mask& mask, const named_operand& y,
                     const named_operand& statistics, const ops::attention_options& options) {
    check_executor(function, exec);
    check_attention_options(function, options);
    check_operand(function, q);
    check_operand(function, k);
    check_operand(function, v);
    const std::ptrdiff_t key_heads = options.key_heads == 0 ? options.heads : options.key_heads;
    const bool stacked = options.layout == ops::head_layout::stacked;
    if (stacked) {
        check_multiple(function, "q.rows", q.extent.rows, "options.heads", options.heads);
        check_multiple(function, "k.rows", k.extent.rows,
                       options.key_heads == 0 ? "options.heads" : "options.key_heads", key_heads);
    } else {
        check_multiple(function, "q.rows", q.extent.rows, "options.batch", options.batch);
        check_multiple(function, "k.rows", k.extent.rows, "options.batch", options.batch);
        check_multiple(function, "q.columns", q.extent.columns, "options.heads", options.heads);
        check_multiple(function, "v.columns", v.extent.columns,
                       options.key_heads == 0 ? "options.heads" : "options.key_heads", key_heads);
    }
    const auto heads = attention_heads::of(q.extent, k.extent, v.extent, options);
    if (stacked || key_heads == options.heads) {
        check_shape(function, k, k.extent.rows, "k.rows", q.extent.columns, "q.columns");
    } else {
        check_shape(function, k, k.extent.rows, "k.rows", key_heads * heads.head_dim,
                    "options.key_heads * q.columns / options.heads");
    }
    check_shape(function, v, k.extent.rows, "k.rows", v.extent.columns, "v.columns");
    if (is_present(mask)) {
        const named_operand added = named("mask", mask);
        const std::ptrdiff_t all = heads.count * heads.queries;
        check_operand(function, added);
        if (added.extent.rows != heads.queries && added.extent.rows != all) {
            throw_argument(function, "mask.rows", added.extent.rows,
                           stacked ? "must be q.rows / options.heads, which is " + error_text(heads.queries) +
                                         ", or q.rows, which is " + error_text(all)
                                   : "must be q.rows / options.batch, which is " + error_text(heads.queries) +
                                         ", or q.rows * options.heads, which is " + error_text(all));
        }
        check_equal_sizes(function, "mask.columns", added.extent.columns,
                          stacked ? "k.rows / options.heads" : "k.rows / options.batch", heads.keys);
    }
    if (stacked) {
        check_shape(function, y, q.extent.rows, "q.rows", v.extent.columns, "v.columns");
    } else {
        check_shape(
            function, y, q.extent.rows, "q.rows", options.heads * heads.value_head_dim,
            key_heads == options.heads ? "v.columns" : "options.heads * v.columns / options.key_heads");
    }
    if (!statistics.extent.empty()) {
        check_size(function, statistics, heads.count * heads.queries,
                   stacked ? "q.rows" : "q.rows * options.heads");
    }
}

}}  // namespace mp::detail
