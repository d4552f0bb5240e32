// SPDX-License-Identifier: MIT
/// \file
/// A decoder-only transformer as GPT-2 is: embeddings of tokens and places, pre-norm blocks of causal attention
/// and a gelu MLP, and a head that is tied to the embedding of tokens.
#pragma once

#include <mp/ops.hpp>
#include <mp/training.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace examples::train_gpt {

/// Sizes of a model.
struct gpt_sizes {
    std::ptrdiff_t vocabulary = 256;
    std::ptrdiff_t context = 128;
    std::ptrdiff_t layers = 4;
    std::ptrdiff_t width = 128;
    std::ptrdiff_t heads = 4;
};

inline constexpr std::size_t decayed = 0;  ///< group of matrices
inline constexpr std::size_t plain = 1;    ///< group of biases

/// Matrices and biases, gradients and activations are in Storage; gamma and beta of norms stay in float.
template <class Storage, class Policy>
class gpt {
    using matrix = mp::matrix_view<Storage>;
    using norm = mp::layers::layer_norm<float, Storage, Policy>;
    // The head decides about single tokens: it stays out of 8 bits.
    using head = std::conditional_t<std::is_base_of_v<mp::autocast::off, Policy>, mp::autocast::off, Policy>;

    /// x + attention(norm(x)), and of that x + mlp(norm(x)).
    struct block {
        norm before_attention;
        mp::layers::attention<Storage, Storage, Policy> attention;
        norm before_mlp;
        mp::layers::mlp<Storage, Storage, Policy> mlp;
        mp::tensor<Storage> middle{};
        mp::tensor<Storage> result{};

        matrix forward(mp::cpu exec, matrix x, std::ptrdiff_t batch) {
            middle.resize(x.rows, x.columns);
            result.resize(x.rows, x.columns);
            const matrix a = attention.forward(exec, before_attention.forward(exec, x), batch);
            mp::ops::add<Policy>(exec, x, a, middle.view());
            const matrix m = mlp.forward(exec, before_mlp.forward(exec, middle.view()));
            mp::ops::add<Policy>(exec, middle.view(), m, result.view());
            return result.view();
        }
        /// dx is the gradient of the result before, and that of x after.
        void backward(mp::cpu exec, matrix dx, matrix room, bool add) {
            mlp.backward(exec, dx, room, add);
            before_mlp.backward(exec, room, mp::ops::add_to(dx), add);
            attention.backward(exec, dx, room, add);
            before_attention.backward(exec, room, mp::ops::add_to(dx), add);
        }
        [[nodiscard]] std::size_t bytes() const {
            return before_attention.bytes() + attention.bytes() + before_mlp.bytes() + mlp.bytes() +
                   middle.bytes() + result.bytes();
        }
    };

public:
    mp::parameter_store<Storage> matrices;
    mp::parameter_store<float> norms;

    gpt(const gpt_sizes& sizes, std::uint64_t seed)
        : sizes_(sizes),
          tokens_(matrices, "wte", sizes.vocabulary, sizes.width, {.group = decayed}),
          places_(matrices, "wpe", sizes.context, sizes.width, {.group = decayed}),
          final_norm_(norms, "ln_f", sizes.width) {
        // The branches of a residual network add up: each begins smaller, so that their sum does not.
        const double deviation = 0.02;
        const double of_branch = deviation / std::sqrt(2.0 * static_cast<double>(sizes.layers));
        const mp::layers::linear_options inner{.initial = mp::initializers::normal(deviation),
                                               .bias_group = plain};
        const mp::layers::linear_options last{.initial = mp::initializers::normal(of_branch),
                                              .bias_group = plain};
        blocks_.reserve(static_cast<std::size_t>(sizes.layers));
        for (std::ptrdiff_t i = 0; i < sizes.layers; ++i) {
            const std::string name = "h." + std::to_string(i);
            blocks_.push_back(
                {norm(norms, name + ".ln_1", sizes.width),
                 {matrices,
                  name + ".attn",
                  sizes.width,
                  {.heads = sizes.heads, .projection = inner, .output = last}},
                 norm(norms, name + ".ln_2", sizes.width),
                 {matrices, name + ".mlp", sizes.width, 4 * sizes.width, {.in = inner, .out = last}}});
        }
        matrices.build(seed);
        norms.build(seed);
    }

    /// Logits of the next token after each of `ids`, which are sequences of one length, one after the other.
    matrix forward(mp::cpu exec, std::span<const int> ids, std::ptrdiff_t batch) {
        const auto rows = static_cast<std::ptrdiff_t>(ids.size());
        const std::ptrdiff_t length = rows / batch;
        positions_.resize(ids.size());
        for (std::ptrdiff_t i = 0; i < rows; ++i) {
            positions_[static_cast<std::size_t>(i)] = static_cast<int>(i % length);
        }
        first_.resize(rows, sizes_.width);
        tokens_.forward(exec, ids, first_.view());
        places_.forward(exec, positions_, mp::ops::add_to(first_.view()));
        matrix x = first_.view();
        for (block& it : blocks_) x = it.forward(exec, x, batch);
        logits_.resize(rows, sizes_.vocabulary);
        mp::ops::linear<head>(exec, final_norm_.forward(exec, x), tokens_.weight().cached(), mp::ops::absent,
                              logits_.view());
        return logits_.view();
    }

    /// The mean loss of the last forward() in nats for each token.
    float loss(mp::cpu exec, std::span<const int> labels) {
        return mp::ops::softmax_cross_entropy<Policy>(exec, logits_.view(), labels);
    }

    /// The loss times factors.weight, and the gradients of that times factors.scale, written, or added to what
    /// is there. Writes over the logits.
    float backward(mp::cpu exec, std::span<const int> labels, const mp::ops::loss_factors& factors,
                   bool add) {
        const matrix logits = logits_.view();
        gradient_.resize(logits.rows, sizes_.width);
        room_.resize(logits.rows, sizes_.width);
        const matrix dx = gradient_.view(), room = room_.view();
        const float loss =
            mp::ops::softmax_cross_entropy_with_gradient<Policy>(exec, logits, labels, logits, factors);
        mp::ops::linear_backward<head>(exec, final_norm_.result(), tokens_.weight().cached(), logits, room,
                                       mp::ops::add_to(tokens_.weight().gradient(), add), mp::ops::absent);
        final_norm_.backward(exec, room, dx, add);
        for (std::size_t i = blocks_.size(); i > 0; --i) blocks_[i - 1].backward(exec, dx, room, add);
        places_.backward(exec, dx, add);
        tokens_.backward(exec, dx, true);  // to the gradient of the head
        return loss;
    }

    /// What layers remember besides their parameters: the scales of 8-bit operands.
    template <class Visitor>
    void visit_state(Visitor& visitor) {
        for (std::size_t i = 0; i < blocks_.size(); ++i) {
            visitor("h." + std::to_string(i) + ".attn", blocks_[i].attention);
            visitor("h." + std::to_string(i) + ".mlp", blocks_[i].mlp);
        }
    }
    void weights_changed() {
        matrices.weights_changed();
        norms.weights_changed();
    }
    [[nodiscard]] const gpt_sizes& sizes() const { return sizes_; }
    [[nodiscard]] std::size_t parameter_count() const { return matrices.count() + norms.count(); }
    /// Bytes of activations, and of gradients of activations that live for a whole step.
    [[nodiscard]] std::size_t activation_bytes() const {
        std::size_t sum =
            first_.bytes() + logits_.bytes() + gradient_.bytes() + room_.bytes() + final_norm_.bytes();
        for (const block& it : blocks_) sum += it.bytes();
        return sum;
    }

private:
    gpt_sizes sizes_;
    mp::layers::embedding<Storage, Storage, Policy> tokens_;
    mp::layers::embedding<Storage, Storage, Policy> places_;
    std::vector<block> blocks_;
    norm final_norm_;
    std::vector<int> positions_;
    mp::tensor<Storage> first_, logits_, gradient_, room_;
};

}  // namespace examples::train_gpt
