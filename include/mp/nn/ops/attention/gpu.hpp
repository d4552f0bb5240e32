// SPDX-License-Identifier: MIT
/// \file
/// Attention on a GPU.
#pragma once

#include <mp/device/gpu/attention/heads.hpp>
#include <mp/device/gpu/attention/kernels.hpp>
#include <mp/device/gpu/attention/scores.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/attention.hpp>
#include <mp/nn/ops/dropout/mask.hpp>
#include <mp/nn/ops/gpu_casts.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/row_statistics.hpp>
#include <mp/workspace.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Bytes of the executor's workspace that scaled_dot_product_attention_backward() needs on a GPU, casts not
/// included: 16 bytes a query. `queries` is the sum over all heads of all sequences.
[[nodiscard]] constexpr std::size_t attention_backward_workspace(std::ptrdiff_t queries) {
    return workspace::aligned_size(static_cast<std::size_t>(queries) * sizeof(detail::query_statistics)) +
           workspace::alignment;
}

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

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
    shape.added_offset = options.added_offset;
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
        if ((std::max)(sizes.head_dim, sizes.value_head_dim) > 64) {
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
            std::span<ops::softmax_statistics> statistics) {
    const attention_sizes sizes(q, k, v, options);
    if (sizes.count == 0 || sizes.queries == 0) return;
    using input = attention_input<Q, K, V>;
    with_attention_width<input>(sizes, [&](auto width) {
        using kernel = attention_kernel<input, decltype(width)::value, Q, K, V, mask_element_t<Mask>, Y>;
        const kernel it{shape_of_attention(sizes, mask, options.dropout),
                        heads_in(q, sizes.per_row, sizes.queries),
                        heads_in(k, sizes.keys_per_row, sizes.keys),
                        heads_in(v, sizes.keys_per_row, sizes.keys),
                        heads_in(y, sizes.per_row, sizes.queries),
                        statistics.empty() ? nullptr : statistics.data()};
        launch("mp::ops::scaled_dot_product_attention", exec,
               simt::launch_size{it.blocks(), kernel::shared_bytes}, it);
    });
}

/// Enqueues one gradient, unless nobody wants it or it has no elements.
template <attention_gradient Of, class Input, int Width, class Executor, class Q, class K, class V, class DY,
          class Mask, class Result>
void launch_attention_gradient(const Executor& exec, const attention_shape<Mask>& shape,
                               const head_matrix<const Q>& q, const head_matrix<const K>& k,
                               const head_matrix<const V>& v, const head_matrix<const DY>& dy,
                               const query_statistics* statistics, const Result& result,
                               std::ptrdiff_t per_row, std::ptrdiff_t rows) {
    if constexpr (!std::is_same_v<Result, ops::absent_t>) {
        if (result.rows == 0 || result.columns == 0) return;
        using kernel =
            attention_gradient_kernel<Of, Input, Width, Q, K, V, DY, Mask, typename Result::value_type>;
        const kernel it{shape, q, k, v, dy, statistics, heads_in(result, per_row, rows)};
        launch("mp::ops::scaled_dot_product_attention_backward", exec,
               simt::launch_size{it.blocks(), kernel::shared_bytes}, it);
    }
}

/// Enqueues the backward pass, which computes the statistics again.
template <gpu_executor Executor, class Q, class K, class V, class Mask, class DY, class DQ, class DK,
          class DV>
void attend_backward(attention_function, const Executor& exec, matrix_view<const Q> q, matrix_view<const K> k,
                     matrix_view<const V> v, const Mask& mask, matrix_view<const DY> dy, const DQ& dq,
                     const DK& dk, const DV& dv, const ops::attention_options& options,
                     std::span<const ops::softmax_statistics> /*saved*/) {
    constexpr std::string_view function = "mp::ops::scaled_dot_product_attention_backward";
    constexpr bool wants_any = !std::is_same_v<DQ, ops::absent_t> || !std::is_same_v<DK, ops::absent_t> ||
                               !std::is_same_v<DV, ops::absent_t>;
    if constexpr (wants_any) {
        const attention_sizes sizes(q, k, v, options);
        const workspace::frame frame(workspace_of(exec));
        // Before anything is launched, since it may throw.
        const auto rows = static_cast<std::size_t>(sizes.count * sizes.queries);
        auto* const statistics = take_workspace<query_statistics>(function, exec, rows);
        using input = attention_input<Q, K, V, DY>;
        with_attention_width<input>(sizes, [&](auto width) {
            constexpr int columns = decltype(width)::value;
            const auto shape = shape_of_attention(sizes, mask, options.dropout);
            const auto queries = heads_in(q, sizes.per_row, sizes.queries);
            const auto keys = heads_in(k, sizes.keys_per_row, sizes.keys);
            const auto values = heads_in(v, sizes.keys_per_row, sizes.keys);
            const auto gradient = heads_in(dy, sizes.per_row, sizes.queries);
            if (rows != 0) {
                using kernel = attention_statistics_kernel<input, columns, Q, K, V, DY, mask_element_t<Mask>>;
                const kernel it{shape, queries, keys, values, gradient, statistics};
                launch(function, exec, simt::launch_size{it.blocks(), kernel::shared_bytes}, it);
            }
            launch_attention_gradient<attention_gradient::queries, input, columns>(
                exec, shape, queries, keys, values, gradient, statistics, dq, sizes.per_row, sizes.queries);
            launch_attention_gradient<attention_gradient::keys, input, columns>(
                exec, shape, queries, keys, values, gradient, statistics, dk, sizes.keys_per_row, sizes.keys);
            launch_attention_gradient<attention_gradient::values, input, columns>(
                exec, shape, queries, keys, values, gradient, statistics, dv, sizes.keys_per_row, sizes.keys);
        });
    }
}

}}  // namespace mp::detail
