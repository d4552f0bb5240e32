// SPDX-License-Identifier: MIT
/// \file
/// Self-attention of several heads, with its projections, as a layer.
#pragma once

#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/attention.hpp>
#include <mp/train/training/layers/layer_call.hpp>
#include <mp/train/training/layers/linear.hpp>
#include <mp/train/training/parameter_store.hpp>
#include <mp/train/training/tensor.hpp>

#include <cstddef>
#include <optional>
#include <string>

namespace mp::layers { inline namespace MP_ISA_NAMESPACE {

struct attention_options {
    std::ptrdiff_t heads = 1;
    std::ptrdiff_t key_heads = 0;  ///< of keys and values, a divisor of heads; 0 for as many
    bool causal = true;
    linear_options projection = {};  ///< of queries, keys and values
    linear_options output = {};
};

/// y = attention(x w_qkv^T + b_qkv) w^T + b over the tokens of each sequence. Queries, keys and values are one
/// product, ".qkv" in the store, and their heads are read where it left them; ".out" is the other projection.
/// See mp::ops::scaled_dot_product_attention() and mp::layers::linear, whose template parameters these are.
///
///     mp::layers::attention<float> attend(store, "attn", width, {.heads = 12});
///     const auto y = attend.forward(exec, x, batch);       // x: (batch * tokens) x width
///     attend.backward(exec, dy, dx);
template <class Weight, class Activation = Weight, class Policy = autocast::by_region,
          class Gradient = Weight>
class attention {
    using projection = linear<Weight, Activation, Policy, Gradient>;

public:
    /// \throws argument_error  width is no multiple of heads, heads of key_heads
    attention(parameter_store<Weight, Gradient>& store, const std::string& name, std::ptrdiff_t width,
              const attention_options& options = {})
        : heads_{.heads = options.heads,
                 .causal = options.causal,
                 .layout = ops::head_layout::side_by_side,
                 .key_heads = options.key_heads},
          head_dim_(head_dim_of(width, options)),
          key_width_(head_dim_ * (options.key_heads == 0 ? options.heads : options.key_heads)),
          qkv_(store, name + ".qkv", width, width + 2 * key_width_, options.projection),
          out_(store, name + ".out", width, width, options.output) {}

    /// x has the tokens of `batch` sequences, one below the other, and must stay until backward(). `dropout`
    /// drops probabilities; backward() drops the same.
    template <executor Executor>
    matrix_view<Activation> forward(const Executor& exec, matrix_view<const Activation> x,
                                    std::ptrdiff_t batch,
                                    const ops::dropout_options& dropout = {.probability = 0.0F}) {
        forward_.clear();
        heads_.batch = batch;
        heads_.dropout = dropout;
        const matrix_view<const Activation> qkv = qkv_.forward(exec, x);
        mixed_.resize(exec, x.rows, width());
        statistics_.resize(exec, 1, x.rows * heads_.heads);
        ops::scaled_dot_product_attention<Policy>(exec, queries(qkv), keys(qkv), values(qkv), ops::absent,
                                                  mixed_.view(), heads_, statistics_.values());
        const matrix_view<Activation> y = out_.forward(exec, mixed_.view());
        forward_.set();
        return y;
    }
    /// As linear::backward().
    template <executor Executor, class DX>
    void backward(const Executor& exec, matrix_view<const Activation> dy, const DX& dx, bool add = false) {
        forward_.require("attention", qkv_.weight().name(), ".qkv.weight");
        const detail::layer_scratch<Activation> dmixed(exec, mixed_.rows(), mixed_.columns());
        const detail::layer_scratch<Activation> dqkv(exec, mixed_.rows(), width() + 2 * key_width_);
        out_.backward(exec, dy, dmixed.view(), add);
        const matrix_view<const Activation> qkv = qkv_.result();
        ops::scaled_dot_product_attention_backward<Policy>(
            exec, queries(qkv), keys(qkv), values(qkv), ops::absent,
            matrix_view<const Activation>(dmixed.view()), queries(dqkv.view()), keys(dqkv.view()),
            values(dqkv.view()), heads_, statistics_.values());
        qkv_.backward(exec, dqkv.view(), dx, add);
    }

    [[nodiscard]] std::ptrdiff_t heads() const noexcept { return heads_.heads; }
    [[nodiscard]] projection& qkv() { return qkv_; }
    [[nodiscard]] projection& output() { return out_; }
    /// Bytes of activations.
    [[nodiscard]] std::size_t bytes() const noexcept {
        return qkv_.bytes() + mixed_.bytes() + out_.bytes() + statistics_.bytes();
    }

    /// As linear::visit_state().
    template <class Visitor>
    void visit_state(Visitor& visitor) {
        visitor("qkv", qkv_);
        visitor("out", out_);
    }

private:
    static std::ptrdiff_t head_dim_of(std::ptrdiff_t width, const attention_options& options) {
        constexpr std::string_view function = "mp::layers::attention";
        if (options.heads < 1) {
            detail::throw_argument(function, "options.heads", options.heads, "must be at least 1");
        }
        if (options.key_heads < 0) {
            detail::throw_argument(function, "options.key_heads", options.key_heads, "must not be negative");
        }
        detail::check_multiple(function, "width", width, "options.heads", options.heads);
        if (options.key_heads != 0) {
            detail::check_multiple(function, "options.heads", options.heads, "options.key_heads",
                                   options.key_heads);
        }
        return width / options.heads;
    }
    [[nodiscard]] std::ptrdiff_t width() const { return head_dim_ * heads_.heads; }
    template <class Value>
    matrix_view<Value> queries(matrix_view<Value> all) const {
        return all.block(0, 0, all.rows, width());
    }
    template <class Value>
    matrix_view<Value> keys(matrix_view<Value> all) const {
        return all.block(0, width(), all.rows, key_width_);
    }
    template <class Value>
    matrix_view<Value> values(matrix_view<Value> all) const {
        return all.block(0, width() + key_width_, all.rows, key_width_);
    }

    ops::attention_options heads_;
    std::ptrdiff_t head_dim_;
    std::ptrdiff_t key_width_;
    projection qkv_;
    projection out_;
    detail::forward_mark forward_;
    tensor<Activation> mixed_;
    tensor<ops::softmax_statistics_of<Activation>> statistics_;
};

}}  // namespace mp::layers
