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
#include <utility>
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

/// Which elements dropout drops: each call of an op takes random words of its own.
class random_words {
public:
    /// \param from  the probability, and where the words of a pass begin
    random_words(const mp::ops::dropout_options& from)
        : next_(from) {}  // NOLINT(google-explicit-constructor)

    /// For an op with this many elements.
    mp::ops::dropout_options take(std::ptrdiff_t elements) {
        const mp::ops::dropout_options chosen = next_;
        next_.offset += static_cast<std::uint64_t>(elements);
        return chosen;
    }

private:
    mp::ops::dropout_options next_;
};

inline constexpr mp::ops::dropout_options no_dropout{.probability = 0.0F};

/// Runs where its executor is: on a CPU, on a CUDA stream, on the simulated GPU.
///
/// Matrices and biases, gradients and activations are in Storage; gamma and beta of norms stay in float.
template <class Storage, class Policy>
class gpt {
    using matrix = mp::matrix_view<Storage>;
    using norm = mp::layers::layer_norm<float, Storage, Policy>;
    // The head decides about single tokens: it stays out of 8 bits.
    using head = std::conditional_t<std::is_base_of_v<mp::autocast::off, Policy>, mp::autocast::off, Policy>;

    /// x + attention(norm(x)), and of that x + mlp(norm(x)). Dropout drops probabilities of attention, and of
    /// what either branch adds.
    struct block {
        norm before_attention;
        mp::layers::attention<Storage, Storage, Policy> attention;
        norm before_mlp;
        mp::layers::mlp<Storage, Storage, Policy> mlp;
        mp::tensor<Storage> middle{};
        mp::tensor<Storage> result{};
        mp::ops::dropout_options dropped_after_attention{};
        mp::ops::dropout_options dropped_after_mlp{};

        template <mp::executor Executor>
        matrix forward(const Executor& exec, matrix x, std::ptrdiff_t batch, random_words& dropout) {
            middle.resize(exec, x.rows, x.columns);
            result.resize(exec, x.rows, x.columns);
            const auto scores = dropout.take(x.rows * (x.rows / batch) * attention.heads());
            const matrix a = attention.forward(exec, before_attention.forward(exec, x), batch, scores);
            dropped_after_attention = drop(exec, a, dropout);
            mp::ops::add<Policy>(exec, x, a, middle.view());
            const matrix m = mlp.forward(exec, before_mlp.forward(exec, middle.view()));
            dropped_after_mlp = drop(exec, m, dropout);
            mp::ops::add<Policy>(exec, middle.view(), m, result.view());
            return result.view();
        }
        /// dx is the gradient of the result before, and that of x after.
        template <mp::executor Executor>
        void backward(const Executor& exec, matrix dx, matrix room, mp::tensor<Storage>& kept, bool add) {
            mlp.backward(exec, undrop(exec, dx, kept, dropped_after_mlp), room, add);
            before_mlp.backward(exec, room, mp::ops::add_to(dx), add);
            attention.backward(exec, undrop(exec, dx, kept, dropped_after_attention), room, add);
            before_attention.backward(exec, room, mp::ops::add_to(dx), add);
        }
        [[nodiscard]] std::size_t bytes() const {
            return before_attention.bytes() + attention.bytes() + before_mlp.bytes() + mlp.bytes() +
                   middle.bytes() + result.bytes();
        }
    };

    /// Drops elements of x where it lies.
    template <class Executor>
    static mp::ops::dropout_options drop(const Executor& exec, matrix x, random_words& dropout) {
        const mp::ops::dropout_options chosen = dropout.take(x.rows * x.columns);
        if (chosen.probability > 0) {
            mp::ops::dropout<Policy>(exec, mp::matrix_view<const Storage>(x), x, chosen);
        }
        return chosen;
    }
    /// The gradient of what was dropped from: dy, or what dropout keeps of it.
    template <class Executor>
    static mp::matrix_view<const Storage> undrop(const Executor& exec, matrix dy, mp::tensor<Storage>& kept,
                                                 const mp::ops::dropout_options& chosen) {
        if (chosen.probability == 0) return dy;
        kept.resize(exec, dy.rows, dy.columns);
        mp::ops::dropout_backward<Policy>(exec, mp::matrix_view<const Storage>(dy), kept.view(), chosen);
        return kept.view();
    }

public:
    mp::parameter_store<Storage> matrices;
    mp::parameter_store<float> norms;

    /// In the memory of the host.
    gpt(const gpt_sizes& sizes, std::uint64_t seed) : gpt(mp::cpu{}, sizes, seed) {}
    /// With its memory where the executor has it.
    template <mp::executor Executor>
    gpt(const Executor& exec, const gpt_sizes& sizes, std::uint64_t seed)
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
        matrices.build(exec, seed);
        norms.build(exec, seed);
    }

    /// Logits of the next token after each of `ids`, which are sequences of one length, one after the other: of
    /// sizes().context tokens, unless there is only one.
    template <mp::executor Executor>
    matrix forward(const Executor& exec, std::span<const int> ids, std::ptrdiff_t batch,
                   random_words dropout = no_dropout) {
        const auto rows = static_cast<std::ptrdiff_t>(ids.size());
        first_.resize(exec, rows, sizes_.width);
        tokens_.forward(exec, ids, first_.view());
        places_.forward(exec, positions_of(exec, rows), mp::ops::add_to(first_.view()));
        dropped_first_ = drop(exec, first_.view(), dropout);
        matrix x = first_.view();
        for (block& it : blocks_) x = it.forward(exec, x, batch, dropout);
        logits_.resize(exec, rows, sizes_.vocabulary);
        mp::ops::linear<head>(exec, final_norm_.forward(exec, x), tokens_.weight().cached(), mp::ops::absent,
                              logits_.view());
        return logits_.view();
    }

    /// The mean loss of the last forward() in nats for each token; waits for a GPU.
    template <mp::executor Executor>
    float loss(const Executor& exec, std::span<const int> labels) {
        if constexpr (mp::gpu_executor<Executor>) {
            loss_.resize(exec, 1, 1);
            row_losses_.resize(exec, 1, logits_.rows());
            mp::ops::softmax_cross_entropy<Policy>(exec, logits_.view(), labels, loss_.values().data(),
                                                   row_losses_.values());
            return loss_.to_host(exec).front();
        } else {
            return mp::ops::softmax_cross_entropy<Policy>(exec, logits_.view(), labels);
        }
    }

    /// The loss times factors.weight, and the gradients of that times factors.scale, written, or added to what
    /// is there. Writes over the logits.
    float backward(mp::cpu exec, std::span<const int> labels, const mp::ops::loss_factors& factors,
                   bool add) {
        const matrix logits = logits_.view();
        const float loss =
            mp::ops::softmax_cross_entropy_with_gradient<Policy>(exec, logits, labels, logits, factors);
        backward_from_logits(exec, add);
        return loss;
    }
    /// The same on a GPU: the loss goes to *loss, and the scale is the one on the device.
    template <mp::gpu_executor Executor, class Scale>
    void backward(const Executor& exec, std::span<const int> labels, float* loss, const Scale* scale,
                  float weight, bool add) {
        const matrix logits = logits_.view();
        row_losses_.resize(exec, 1, logits.rows);
        mp::ops::softmax_cross_entropy_with_gradient<Policy>(exec, logits, labels, loss, row_losses_.values(),
                                                             logits, scale, weight);
        backward_from_logits(exec, add);
    }

    /// Random words that dropout takes in a pass over so many sequences.
    [[nodiscard]] std::uint64_t dropout_words(std::ptrdiff_t batch) const {
        const std::ptrdiff_t rows = batch * sizes_.context;
        const std::ptrdiff_t of_block = rows * sizes_.context * sizes_.heads + 2 * rows * sizes_.width;
        return static_cast<std::uint64_t>(rows * sizes_.width + sizes_.layers * of_block);
    }

    /// What layers remember besides their parameters: the scales of 8-bit operands.
    template <class Visitor>
    void visit_state(Visitor& visitor) {
        for (std::size_t i = 0; i < blocks_.size(); ++i) {
            visitor("h." + std::to_string(i) + ".attn", blocks_[i].attention);
            visitor("h." + std::to_string(i) + ".mlp", blocks_[i].mlp);
        }
    }
    [[nodiscard]] const gpt_sizes& sizes() const { return sizes_; }
    [[nodiscard]] std::size_t parameter_count() const { return matrices.count() + norms.count(); }
    /// Bytes of activations, and of gradients of activations that live for a whole step.
    [[nodiscard]] std::size_t activation_bytes() const {
        std::size_t sum = first_.bytes() + logits_.bytes() + gradient_.bytes() + room_.bytes() +
                          kept_.bytes() + final_norm_.bytes();
        for (const block& it : blocks_) sum += it.bytes();
        return sum;
    }

private:
    /// The place of each row in its sequence. A GPU has them already when a step is captured.
    template <class Executor>
    std::span<const int> positions_of(const Executor& exec, std::ptrdiff_t rows) {
        if (std::ssize(positions_.values()) < rows) {
            std::vector<int> places(static_cast<std::size_t>(rows));
            for (std::ptrdiff_t i = 0; i < rows; ++i) {
                places[static_cast<std::size_t>(i)] = static_cast<int>(i % sizes_.context);
            }
            positions_.resize(exec, 1, rows);
            positions_.copy_from(exec, places);
        }
        return std::as_const(positions_).values().first(static_cast<std::size_t>(rows));
    }

    /// Of the gradient of the logits, which is where they were.
    template <class Executor>
    void backward_from_logits(const Executor& exec, bool add) {
        const matrix logits = logits_.view();
        gradient_.resize(exec, logits.rows, sizes_.width);
        room_.resize(exec, logits.rows, sizes_.width);
        const matrix dx = gradient_.view(), room = room_.view();
        mp::ops::linear_backward<head>(exec, final_norm_.result(), tokens_.weight().cached(), logits, room,
                                       mp::ops::add_to(tokens_.weight().gradient(), add), mp::ops::absent);
        final_norm_.backward(exec, room, dx, add);
        for (std::size_t i = blocks_.size(); i > 0; --i) {
            blocks_[i - 1].backward(exec, dx, room, kept_, add);
        }
        const auto first = undrop(exec, dx, kept_, dropped_first_);
        places_.backward(exec, first, add);
        tokens_.backward(exec, first, true);  // to the gradient of the head
    }

    gpt_sizes sizes_;
    mp::layers::embedding<Storage, Storage, Policy> tokens_;
    mp::layers::embedding<Storage, Storage, Policy> places_;
    std::vector<block> blocks_;
    norm final_norm_;
    mp::tensor<int> positions_;
    mp::tensor<Storage> first_, logits_, gradient_, room_, kept_;
    mp::tensor<float> loss_, row_losses_;  // of a GPU
    mp::ops::dropout_options dropped_first_;
};

}  // namespace examples::train_gpt
