// SPDX-License-Identifier: MIT
/// \file
/// Attention on a GPU.
#pragma once

#include <mp/executor.hpp>
#include <mp/format/float_arithmetic.hpp>
#include <mp/gpu/attention/forward_kernel.hpp>
#include <mp/gpu/attention/heads.hpp>
#include <mp/gpu/attention/scores.hpp>
#include <mp/matrix_view.hpp>
#include <mp/ops/attention.hpp>
#include <mp/ops/dropout/mask.hpp>
#include <mp/ops/gpu_casts.hpp>
#include <mp/simt/gpu_executor.hpp>
#include <mp/simt/kernel_traits.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>

namespace mp::detail::inline MP_ISA_NAMESPACE {

template <class Mask>
struct mask_element {
    using type = no_mask;
};
template <class Value>
struct mask_element<matrix_view<Value>> {
    using type = std::remove_const_t<Value>;
};
template <class Mask>
using mask_element_t = typename mask_element<Mask>::type;

/// What is known of every score.
template <class Mask>
[[nodiscard]] attention_shape<mask_element_t<Mask>> shape_of_attention(const attention_sizes& sizes,
                                                                       const Mask& mask,
                                                                       const ops::dropout_options& options) {
    const dropout_mask dropout(options);
    attention_shape<mask_element_t<Mask>> shape{};
    shape.heads = sizes.count;
    shape.group = sizes.group();
    shape.queries = sizes.queries;
    shape.keys = sizes.keys;
    shape.earlier_keys = sizes.earlier_keys;
    shape.causal = sizes.causal;
    shape.scale = float_from_double(sizes.scale);
    shape.seed = dropout.seed;
    shape.offset = options.offset;
    shape.threshold = dropout.threshold;
    shape.kept_scale = float_from_double(dropout.scale);
    if constexpr (!std::is_same_v<Mask, ops::absent_t>) {
        shape.mask = rows_of<1>(mask);
        shape.mask_per_head = mask.rows != sizes.queries;
    }
    return shape;
}

/// Calls f with the columns of tiles, as a constant: 128 where heads of 16-bit numbers are that wide.
template <class Input, class Function>
void with_attention_width(const attention_sizes& sizes, Function f) {
    if constexpr (sizeof(Input) == 2) {
        if ((std::max)(sizes.depth, sizes.value_depth) > 64) {
            f(std::integral_constant<int, 128>{});
            return;
        }
    }
    f(std::integral_constant<int, 64>{});
}

/// Enqueues the forward pass.
template <gpu_executor Executor, class Q, class K, class V, class Mask, class Y>
void attend(attention_function, const Executor& exec, matrix_view<const Q> q, matrix_view<const K> k,
            matrix_view<const V> v, const Mask& mask, matrix_view<Y> y, const ops::attention_options& options,
            std::span<float> log_sums) {
    const attention_sizes sizes(q, k, v, options);
    if (sizes.count == 0 || sizes.queries == 0) return;
    using input = attention_input<Q, K, V>;
    with_attention_width<input>(sizes, [&](auto width) {
        using kernel = attention_kernel<input, decltype(width)::value, Q, K, V, mask_element_t<Mask>, Y>;
        const kernel it{
            shape_of_attention(sizes, mask, options.dropout), heads_in(q, sizes.per_row, sizes.queries),
            heads_in(k, sizes.keys_per_row, sizes.keys),      heads_in(v, sizes.keys_per_row, sizes.keys),
            heads_in(y, sizes.per_row, sizes.queries),        log_sums.empty() ? nullptr : log_sums.data()};
        launch("mp::ops::scaled_dot_product_attention", exec,
               simt::launch_size{it.blocks(), kernel::shared_bytes}, it);
    });
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
