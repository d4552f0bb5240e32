// SPDX-License-Identifier: MIT
/// \file
/// A classifier of linear layers with relu between them, in any number format.
#pragma once

#include <mp/convert.hpp>
#include <mp/ops.hpp>
#include <mp/optim.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../common/random.hpp"

namespace examples::train_digits {

/// Weights, gradients and activations are stored as Value; in which precision the ops compute is up to the
/// autocast region that the caller is in.
template <class Value>
class network {
public:
    /// A network with `widths.front()` inputs, `widths.back()` outputs and room for `batch` images at a time.
    /// Weights are uniform in +-sqrt(6 / inputs), which has the variance of He et al. 2015, and biases are
    /// zero. Every Value starts from the same floats.
    network(std::span<const std::size_t> widths, std::size_t batch, std::uint64_t seed) {
        random_numbers random(seed);
        for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
            layers_.emplace_back(widths[i], widths[i + 1], batch);
            const float bound = std::sqrt(6.0F / static_cast<float>(widths[i]));
            for (Value& weight : layers_.back().weights) weight = Value(bound * random.symmetric());
        }
    }

    /// The logits of the images x, a row for each; valid until the next call.
    template <class Input>
    mp::matrix_view<const Value> forward(mp::cpu exec, mp::matrix_view<Input> x) {
        rows_ = x.rows;
        for (std::size_t i = 0; i < layers_.size(); ++i) {
            const bool last = i + 1 == layers_.size();
            layer& to = layers_[i];
            const auto linear = [&](auto from) {
                mp::ops::linear(exec, from, to.weight_matrix(), to.bias, to.output_rows(rows_),
                                last ? mp::ops::activation::none : mp::ops::activation::relu);
            };
            if (i == 0) {
                linear(x);
            } else {
                linear(layers_[i - 1].output_rows(rows_));
            }
        }
        return layers_.back().output_rows(rows_);
    }

    /// Fills the gradients of the loss of the images that forward() has just seen.
    template <class Input>
    void backward(mp::cpu exec, mp::matrix_view<Input> x, std::span<const int> labels,
                  const mp::ops::loss_factors& factors) {
        mp::ops::softmax_cross_entropy_backward(exec, layers_.back().output_rows(rows_), labels,
                                                layers_.back().output_gradient_rows(rows_), factors);
        for (std::size_t i = layers_.size(); i-- > 1;) {
            layer& to = layers_[i];
            layer& from = layers_[i - 1];
            const auto input = from.output_rows(rows_);
            const auto input_gradient = from.output_gradient_rows(rows_);
            mp::ops::linear_backward(exec, input, to.weight_matrix(), to.output_gradient_rows(rows_),
                                     input_gradient, to.weight_gradient_matrix(), to.bias_gradient);
            mp::ops::relu_backward(exec, input, input_gradient, input_gradient);
        }
        layer& first = layers_.front();
        mp::ops::linear_backward(exec, x, first.weight_matrix(), first.output_gradient_rows(rows_),
                                 mp::ops::absent, first.weight_gradient_matrix(), first.bias_gradient);
    }

    /// What an optimizer trains.
    std::vector<mp::parameter<Value>> parameters() {
        std::vector<mp::parameter<Value>> result;
        for (std::size_t i = 0; i < layers_.size(); ++i) {
            const std::string name = "layer" + std::to_string(i + 1);
            result.push_back({name + ".weight", layers_[i].weights, layers_[i].weight_gradient});
            result.push_back({name + ".bias", layers_[i].bias, layers_[i].bias_gradient});
        }
        return result;
    }

    /// Takes over the weights of a network of the same widths in another format.
    template <class Other>
    void copy_weights(mp::cpu exec, const network<Other>& from) {
        for (std::size_t i = 0; i < layers_.size(); ++i) {
            mp::convert(exec, from.layers_[i].weights, layers_[i].weights);
            mp::convert(exec, from.layers_[i].bias, layers_[i].bias);
        }
    }

    /// An array of gradients that backward() has filled.
    struct gradient_array {
        std::span<const Value> values;
        bool of_parameter;  ///< of weights or biases; else of the outputs of a layer
    };

    /// All of them, layer by layer, in the same order for networks of the same widths.
    [[nodiscard]] std::vector<gradient_array> gradients() const {
        std::vector<gradient_array> result;
        for (const layer& it : layers_) {
            const std::size_t outputs = static_cast<std::size_t>(rows_) * it.bias.size();
            result.push_back({std::span(it.output_gradient).first(outputs), false});
            result.push_back({it.weight_gradient, true});
            result.push_back({it.bias_gradient, true});
        }
        return result;
    }

private:
    template <class>
    friend class network;

    struct layer {
        layer(std::size_t inputs, std::size_t outputs, std::size_t batch)
            : in(static_cast<std::ptrdiff_t>(inputs)),
              out(static_cast<std::ptrdiff_t>(outputs)),
              weights(inputs * outputs),
              weight_gradient(inputs * outputs),
              bias(outputs),
              bias_gradient(outputs),
              output(batch * outputs),
              output_gradient(batch * outputs) {}

        auto weight_matrix() { return mp::row_major(weights.data(), out, in); }
        auto weight_gradient_matrix() { return mp::row_major(weight_gradient.data(), out, in); }
        auto output_rows(std::ptrdiff_t rows) { return mp::row_major(output.data(), rows, out); }
        auto output_gradient_rows(std::ptrdiff_t rows) {
            return mp::row_major(output_gradient.data(), rows, out);
        }

        std::ptrdiff_t in;
        std::ptrdiff_t out;
        std::vector<Value> weights;
        std::vector<Value> weight_gradient;
        std::vector<Value> bias;
        std::vector<Value> bias_gradient;
        std::vector<Value> output;
        std::vector<Value> output_gradient;
    };

    std::vector<layer> layers_;
    std::ptrdiff_t rows_ = 0;
};

}  // namespace examples::train_digits
