// SPDX-License-Identifier: MIT
/// \file
/// What attention is told: heads and where they lie, masks, dropout.
#pragma once

#include <mp/config.hpp>
#include <mp/nn/ops/dropout/mask.hpp>

#include <cstddef>
#include <optional>

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
