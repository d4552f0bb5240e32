// SPDX-License-Identifier: MIT
/// \file
/// A classifier of linear layers with relu between them, in any number format.
#pragma once

#include <mp/convert.hpp>
#include <mp/ops.hpp>
#include <mp/training.hpp>

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
        const auto rows = static_cast<std::ptrdiff_t>(batch);
        for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
            const auto in = static_cast<std::ptrdiff_t>(widths[i]),
                       out = static_cast<std::ptrdiff_t>(widths[i + 1]);
            const std::string name = "layer" + std::to_string(i + 1);
            layers_.push_back({store_.add_matrix(name + ".weight", out, in),
                               store_.add_vector(name + ".bias", out),
                               {rows, out},
                               {rows, out}});
        }
        store_.build(seed);
        random_numbers random(seed);
        for (const layer& it : layers_) {
            const float bound = std::sqrt(6.0F / static_cast<float>(it.weight.columns()));
            for (Value& weight : it.weight.mutable_values()) weight = Value(bound * random.symmetric());
        }
    }

    /// The logits of the images x, a row for each; valid until the next call.
    template <class Input>
    mp::matrix_view<const Value> forward(mp::cpu exec, mp::matrix_view<Input> x) {
        for (std::size_t i = 0; i < layers_.size(); ++i) {
            const bool last = i + 1 == layers_.size();
            layer& to = layers_[i];
            to.output.resize(x.rows, to.bias.columns());
            const auto linear = [&](auto from) {
                mp::ops::linear(exec, from, to.weight.weights(), to.bias.values(), to.output.view(),
                                last ? mp::ops::activation::none : mp::ops::activation::relu);
            };
            if (i == 0) {
                linear(x);
            } else {
                linear(layers_[i - 1].output.view());
            }
        }
        return layers_.back().output.view();
    }

    /// Fills the gradients of the loss of the images that forward() has just seen.
    template <class Input>
    void backward(mp::cpu exec, mp::matrix_view<Input> x, std::span<const int> labels,
                  const mp::ops::loss_factors& factors) {
        for (layer& it : layers_) it.output_gradient.resize(x.rows, it.bias.columns());
        mp::ops::softmax_cross_entropy_backward(exec, layers_.back().output.view(), labels,
                                                layers_.back().output_gradient.view(), factors);
        for (std::size_t i = layers_.size(); i-- > 1;) {
            layer& to = layers_[i];
            layer& from = layers_[i - 1];
            const auto input = from.output.view();
            const auto input_gradient = from.output_gradient.view();
            mp::ops::linear_backward(exec, input, to.weight.weights(), to.output_gradient.view(),
                                     input_gradient, to.weight.gradient(), to.bias.gradient_values());
            mp::ops::relu_backward(exec, input, input_gradient, input_gradient);
        }
        layer& first = layers_.front();
        mp::ops::linear_backward(exec, x, first.weight.weights(), first.output_gradient.view(),
                                 mp::ops::absent, first.weight.gradient(), first.bias.gradient_values());
    }

    /// What an optimizer trains.
    std::vector<mp::parameter<Value>> parameters() { return store_.parameters(); }

    /// Takes over the weights of a network of the same widths in another format.
    template <class Other>
    void copy_weights(mp::cpu exec, const network<Other>& from) {
        mp::convert(exec, from.store_.weights(), store_.mutable_weights());
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
            result.push_back({it.output_gradient.values(), false});
            result.push_back({it.weight.gradient_values(), true});
            result.push_back({it.bias.gradient_values(), true});
        }
        return result;
    }

private:
    template <class>
    friend class network;

    struct layer {
        mp::trained_tensor<Value> weight;
        mp::trained_tensor<Value> bias;
        mp::tensor<Value> output;
        mp::tensor<Value> output_gradient;
    };

    mp::parameter_store<Value> store_;
    std::vector<layer> layers_;
};

}  // namespace examples::train_digits
