// SPDX-License-Identifier: MIT
/// \file
/// Scaled dot-product attention, forward and backward, a block of queries at a time.
#pragma once

#include <mp/executor.hpp>
#include <mp/nn/autocast/library_op.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/attention/heads.hpp>
#include <mp/nn/ops/matrix_operand.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#if MP_CORE_BODIES
#include <mp/nn/ops/attention/kernels.hpp>
#endif

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Names attend() and attend_backward(), which <mp/nn/ops/attention/gpu.hpp> has.
struct attention_function {};

/// Statistics have the type that an op computes in, so they are known to be of doubles by q.
template <class Q, class... Others>
constexpr void check_attention_of_doubles() {
    static_assert(any_double<Q> || !any_double<Others...>,
                  "mp::ops: attention with an operand of doubles has queries of doubles");
}

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Tag of scaled_dot_product_attention(): matrix products, so in the low precision of the policy. The softmax
/// between them is in float by itself.
struct scaled_dot_product_attention_op
    : detail::library_op<scaled_dot_product_attention_op, "scaled_dot_product_attention"> {
    static constexpr auto category = op_category::lower_precision;
    static constexpr std::array<std::string_view, 8> argument_names = {"exec", "q", "k",       "v",
                                                                       "mask", "y", "options", "statistics"};
    static constexpr std::array<std::string_view, 4> known_as = {
        "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_attention_math"};
    static constexpr std::array<std::string_view, 3> product_operands = {"q", "k", "v"};

    static void validate(const auto& exec, const auto& q, const auto& k, const auto& v, const auto& mask,
                         const auto& y, const attention_options& options, const auto& statistics) {
        const auto queries = detail::named("q", q);
        const auto keys = detail::named("k", k);
        const auto values = detail::named("v", v);
        const auto output = detail::named("y", y);
        const auto saved = detail::named("statistics", statistics);
        detail::check_attention(function, exec, queries, keys, values, mask, output, saved, options);
        for (const auto& operand : {queries, keys, values, detail::named("mask", mask)}) {
            detail::check_separate(function, output, operand);
            detail::check_separate(function, saved, operand);
        }
        detail::check_separate(function, saved, output);
    }

    /// Of the queries and keys of one head, the larger product where d is no less than the width of v.
    static autocast::product_size product(const auto&, const auto& q, const auto& k, const auto&, const auto&,
                                          const auto&, const attention_options& options, const auto&) {
        const auto heads = detail::attention_heads::of(q, k, k, options);
        return {heads.queries, heads.keys, heads.head_dim};
    }

    void operator()(const gpu_executor auto& exec, const auto&... operands) const {
        attend(detail::attention_function{}, exec, operands...);
    }
    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_operand& q, const detail::any_operand& k,
                        const detail::any_operand& v, const detail::any_operand& mask,
                        const detail::any_operand& y, const attention_options& options,
                        std::span<basic_softmax_statistics<Real>> statistics) {
        attend<Real>(exec, q, k, v, mask, y, options, statistics);
    }
};

/// y = softmax(scale q k^T + mask) v, for each head by itself.
///
/// Shapes, with heads stacked: q is (heads * queries) x head_dim, k is (key_heads * keys) x head_dim, v is
/// (key_heads * keys) x value_head_dim and y is (heads * queries) x value_head_dim, one head below the other;
/// options.heads is the batch size times the number of heads. Side by side: q is (batch * queries) x (heads *
/// head_dim), k is (batch * keys) x (key_heads * head_dim), v is (batch * keys) x (key_heads * value_head_dim) and y
/// is (batch * queries) x (heads * value_head_dim). All in any storage order and with any leading dimension:
///
///     // tokens x 3 width, as one projection leaves them; nothing is copied
///     mp::ops::scaled_dot_product_attention(
///         exec, qkv.block(0, 0, tokens, width), qkv.block(0, width, tokens, width),
///         qkv.block(0, 2 * width, tokens, width), mp::ops::absent, y,
///         {.heads = 12, .causal = true, .layout = mp::ops::head_layout::side_by_side, .batch = batch});
///
/// mask is mp::ops::absent, or a matrix that is added to the scores: queries x keys for all heads alike, or
/// (all heads * queries) x keys. statistics, if not empty, receives those of the scores of each query, which
/// scaled_dot_product_attention_backward() would otherwise compute again: one head after the other, and one
/// sequence after the other, in either layout.
///
/// options.dropout drops probabilities after the softmax, as torch does, and multiplies the others by 1 / (1
/// - probability). The sums of a query, and its statistics, are those without dropout.
///
/// A mask of -infinity takes a key out, and so does options.causal for keys behind the query; their scores
/// have no influence, NaN or not. A query that sees no key gets zeros: sequences are filled up with such
/// rows, whose output is not used, and NaN there would spoil the gradients of all weights. The max of their
/// statistics is -infinity. The values v of keys that are taken out may still be multiplied by zero, so keep them
/// finite. NaN in the scores that a query sees makes its row NaN, and so does +infinity, or -infinity in all
/// of them, to which they overflow.
///
/// Policy decides the precision: by default the calling thread's autocast region, else a policy type such as
/// mp::autocast::fp16. Under a low precision q, k and v are rounded to it, and so is y. The mask is
/// not: it is added to the scores, which are sums in float, and would lose their differences (PyTorch casts it).
/// The softmax is in float, with the largest score subtracted. The exponentials, from 0 to 1, are then
/// rounded to the format of v, as kernels on tensor cores do, and multiplied by v with sums in float; the
/// product with the reciprocal of the sum of the unrounded exponentials is rounded to y. So the error is
/// about u max |v| of the keys, u being the unit roundoff of the format of v, and that of the scores: a
/// relative error in an exponential is the absolute error of its score. The results do not depend on the
/// number of threads.
///
/// Memory: each thread holds the scores of 64 queries of one head, in float and in the format of v.
///
/// On a GPU (<mp/nn/ops/attention/gpu.hpp>) it is one kernel that takes nothing from the workspace, casts of a
/// region apart, and keeps no scores in memory: tiles of 64 keys, exponentials from the largest score so far.
/// Where q, k and v are all bfloat16 (from sm_80 on), or all half, float8_e4m3fn or float8_e5m2, tensor cores
/// multiply, with their sums (mp::mma) in place of float's; 8 bits are multiplied as half, and exponentials
/// are rounded to half then. In other formats and mixes products are floats' fused multiply-adds, and
/// exponentials are not rounded. Masks, dropout, rows without a meaning and results for no keys are the
/// CPU's. With m the largest sum of magnitudes of a score's terms, a score has an error of (head_dim + 4) 2^-23
/// m at most, and an element of y of twice that and u (2^-20 in the formats that are not rounded), both times
/// max |v|. Exponentials of less than e^-87 count as nothing. The results have the same bits in every layout,
/// whatever runs beside, and without tensor cores on every device. Heads of up to 64 (16-bit formats: 128)
/// columns whose rows begin at multiples of 16 bytes are the fastest; wider ones compute their scores once
/// for every 64 (or 128) columns of v.
///
/// Throws argument_error for shapes that do not fit, sizes that heads and batch do not divide, a scale that
/// is not finite, a probability outside 0 to 1, invalid views, and a y or statistics that overlap anything
/// else; nothing is then written.
template <class Policy = autocast::by_region, executor Executor = cpu, element Q, element K, element V,
          class Mask, matrix_result Y>
void scaled_dot_product_attention(const Executor& exec, matrix_view<Q> q, matrix_view<K> k, matrix_view<V> v,
                                  const Mask& mask, const Y& y, const attention_options& options = {},
                                  std::span<softmax_statistics_of<Q>> statistics = {}) {
    detail::check_attention_of_doubles<Q, K, V, decltype(detail::input_view(mask)),
                                       decltype(detail::output_view(y))>();
    detail::call_op<Policy>(scaled_dot_product_attention_op{}, exec, detail::input_view(q),
                            detail::input_view(k), detail::input_view(v), detail::uncast_view(mask),
                            detail::output_view(y), options, statistics);
}

/// Tag of scaled_dot_product_attention_backward(): matrix products, so in the low precision of the policy.
struct scaled_dot_product_attention_backward_op
    : detail::library_op<scaled_dot_product_attention_backward_op, "scaled_dot_product_attention_backward"> {
    static constexpr auto category = op_category::lower_precision;
    using forward_op = scaled_dot_product_attention_op;
    static constexpr std::array<std::string_view, 11> argument_names = {
        "exec", "q", "k", "v", "mask", "dy", "dq", "dk", "dv", "options", "statistics"};
    static constexpr std::array<std::string_view, 3> known_as = {
        "_scaled_dot_product_flash_attention_backward", "_scaled_dot_product_efficient_attention_backward",
        "_scaled_dot_product_cudnn_attention_backward"};
    static constexpr std::array<std::string_view, 4> product_operands = {"q", "k", "v", "dy"};

    template <class Executor>
    static void validate(const Executor& exec, const auto& q, const auto& k, const auto& v, const auto& mask,
                         const auto& dy, const auto& dq, const auto& dk, const auto& dv,
                         const attention_options& options, const auto& statistics) {
        const auto queries = detail::named("q", q);
        const auto keys = detail::named("k", k);
        const auto values = detail::named("v", v);
        const auto gradient = detail::named("dy", dy);
        const auto saved = detail::named("statistics", statistics);
        detail::check_attention(function, exec, queries, keys, values, mask, gradient, saved, options);
        const detail::named_operand results[] = {detail::named("dq", dq), detail::named("dk", dk),
                                                 detail::named("dv", dv)};
        if (detail::is_present(dq)) detail::check_same_shape(function, results[0], queries);
        if (detail::is_present(dk)) detail::check_same_shape(function, results[1], keys);
        if (detail::is_present(dv)) detail::check_same_shape(function, results[2], values);
        detail::check_separate_results(function, results,
                                       {queries, keys, values, detail::named("mask", mask), gradient, saved});
    }

    void operator()(const gpu_executor auto& exec, const auto&... operands) const {
        attend_backward(detail::attention_function{}, exec, operands...);
    }
    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_operand& q, const detail::any_operand& k,
                        const detail::any_operand& v, const detail::any_operand& mask,
                        const detail::any_operand& dy, const detail::any_operand& dq,
                        const detail::any_operand& dk, const detail::any_operand& dv,
                        const attention_options& options,
                        std::span<const basic_softmax_statistics<Real>> statistics) {
        attend_backward<Real>(exec, q, k, v, mask, dy, dq, dk, dv, options, statistics);
    }
};

/// The gradients of y = scaled_dot_product_attention(q, k, v, mask), given dy = dL/dy. With the probabilities
/// p, computed again, and g = p (dy v^T - the sum over the keys of p dy v^T): dq = scale g k,
/// dk = scale g^T q, dv = p^T dy. The mask has no gradient.
///
/// Shapes: q, k, v, mask and options are those of scaled_dot_product_attention(); dy is like y, dq like q, dk
/// like k, dv like v. Any of dq, dk and dv may be mp::ops::absent. statistics are what the forward pass saved,
/// or empty; saved ones spare two passes, and their rounding to float changes the probabilities by at most
/// 2^-24 relatively, however large the scores are. The gradients of queries that see no key, and of keys that no query
/// sees, are zero.
///
/// Probabilities and g stay in float, unlike on tensor cores; sums are in float, and each element of a
/// gradient is rounded once. Values too small for the format become zero unless the loss is scaled.
/// Precision, threads, errors and what is said there about values that are not finite are as in
/// scaled_dot_product_attention(). Each thread works on one head of k.
///
/// On a GPU (<mp/nn/ops/attention/gpu.hpp>) it takes attention_backward_workspace() of the workspace: a kernel
/// finds the statistics and the means of p dy v^T of all queries, so that saved statistics are not read, and
/// each gradient is a kernel after it whose blocks own what they write, so that the results have the same bits
/// every time. Tensor cores take p and g rounded to the format that they multiply, as other kernels on tensor
/// cores do: below 2^-24 in half they become zero, above 65504 infinity, which the loss scale is there for.
/// Keys that a query does not see have no influence on g.
template <class Policy = autocast::by_region, executor Executor = cpu, element Q, element K, element V,
          class Mask, element DY, class DQ, class DK, class DV>
void scaled_dot_product_attention_backward(const Executor& exec, matrix_view<Q> q, matrix_view<K> k,
                                           matrix_view<V> v, const Mask& mask, matrix_view<DY> dy, DQ&& dq,
                                           DK&& dk, DV&& dv, const attention_options& options = {},
                                           std::span<const softmax_statistics_of<Q>> statistics = {}) {
    detail::check_attention_of_doubles<Q, K, V, decltype(detail::input_view(mask)), DY,
                                       decltype(detail::output_view(dq)), decltype(detail::output_view(dk)),
                                       decltype(detail::output_view(dv))>();
    detail::call_op<Policy>(scaled_dot_product_attention_backward_op{}, exec, detail::input_view(q),
                            detail::input_view(k), detail::input_view(v), detail::uncast_view(mask),
                            detail::input_view(dy), detail::output_view(dq), detail::output_view(dk),
                            detail::output_view(dv), options, statistics);
}

}}  // namespace mp::ops
