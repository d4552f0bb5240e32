// SPDX-License-Identifier: MIT
/// \file
/// A small convolutional network for the scanned digits.
#pragma once

#include <mp/autocast.hpp>
#include <mp/ops.hpp>
#include <mp/optim.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../common/data.hpp"
#include "../common/random.hpp"

namespace examples::train_convolution {

/// Numbers, and the gradient of the loss with respect to them: a matrix in row-major order.
template <class Value>
class tensor {
public:
    tensor(std::ptrdiff_t rows, std::ptrdiff_t columns)
        : columns_(columns),
          values_(static_cast<std::size_t>(rows * columns)),
          gradient_(static_cast<std::size_t>(rows * columns)) {}

    std::span<Value> values() { return values_; }
    std::span<Value> gradient() { return gradient_; }

    /// The first rows as a matrix.
    mp::matrix_view<Value> rows(std::ptrdiff_t count) {
        return mp::row_major(values_.data(), count, columns_);
    }
    mp::matrix_view<Value> gradient_rows(std::ptrdiff_t count) {
        return mp::row_major(gradient_.data(), count, columns_);
    }
    /// All rows.
    mp::matrix_view<Value> matrix() { return rows(height()); }
    mp::matrix_view<Value> gradient_matrix() { return gradient_rows(height()); }

private:
    [[nodiscard]] std::ptrdiff_t height() const {
        return static_cast<std::ptrdiff_t>(values_.size()) / columns_;
    }

    std::ptrdiff_t columns_;
    std::vector<Value> values_;
    std::vector<Value> gradient_;
};

/// Two convolutions with a pooling between them, layer normalization, and a linear layer:
///
///     image 8x8 -> conv2d 3x3 -> relu -> max_pool2d 2x2 -> conv2d 3x3 -> relu -> layer_norm -> linear
///
/// Weights, gradients and activations are stored as Value; in which precision the ops compute is up to the
/// autocast region that the caller is in. The weights are marked as cached(): a region casts each of them
/// once for the forward and the backward pass.
template <class Value>
class network {
public:
    static constexpr std::ptrdiff_t first_channels = 8;
    static constexpr std::ptrdiff_t second_channels = 16;
    static constexpr std::ptrdiff_t features = second_channels * 4 * 4;
    static constexpr std::ptrdiff_t classes = static_cast<std::ptrdiff_t>(digit_classes);
    static constexpr mp::ops::conv2d_geometry first_geometry{
        .channels = 1, .height = 8, .width = 8, .kernel = {3, 3}, .padding = {1, 1}};
    static constexpr mp::ops::pool2d_geometry pooling{
        .channels = first_channels, .height = 8, .width = 8, .kernel = {2, 2}};
    static constexpr mp::ops::conv2d_geometry second_geometry{
        .channels = first_channels, .height = 4, .width = 4, .kernel = {3, 3}, .padding = {1, 1}};

    /// A network with room for `batch` images at a time. Weights are uniform in +-sqrt(6 / inputs), which has
    /// the variance of He et al. 2015, gamma is one, and biases and beta are zero. Every Value starts from
    /// the same floats.
    network(std::ptrdiff_t batch, std::uint64_t seed)
        : convolved_(batch, first_channels * 64),
          pooled_(batch, first_channels * 16),
          deep_(batch, features),
          normal_(batch, features),
          logits_(batch, classes),
          means_(static_cast<std::size_t>(batch)),
          deviations_(static_cast<std::size_t>(batch)) {
        random_numbers random(seed);
        for (tensor<Value>* weights : {&first_weights_, &second_weights_, &linear_weights_}) {
            const float bound = std::sqrt(6.0F / static_cast<float>(weights->matrix().columns));
            for (Value& weight : weights->values()) weight = Value(bound * random.symmetric());
        }
        for (Value& factor : gamma_.values()) factor = Value(1.0F);
    }

    /// The logits of the images x, a row for each; valid until the next call.
    mp::matrix_view<const Value> forward(mp::cpu exec, mp::matrix_view<const float> x) {
        count_ = x.rows;
        const auto convolved = convolved_.rows(count_);
        const auto pooled = pooled_.rows(count_);
        const auto deep = deep_.rows(count_);
        const auto normal = normal_.rows(count_);
        mp::ops::conv2d(exec, x, cached(first_weights_), first_bias_.values(), convolved, first_geometry);
        mp::ops::relu(exec, convolved, convolved);
        mp::ops::max_pool2d(exec, convolved, pooled, pooling);
        mp::ops::conv2d(exec, pooled, cached(second_weights_), second_bias_.values(), deep, second_geometry);
        mp::ops::relu(exec, deep, deep);
        mp::ops::layer_norm(exec, deep, gamma_.values(), beta_.values(), normal, {}, statistics());
        mp::ops::linear(exec, normal, cached(linear_weights_), linear_bias_.values(), logits_.rows(count_));
        return logits_.rows(count_);
    }

    /// Fills the gradients of the loss of the images that forward() has just seen.
    void backward(mp::cpu exec, mp::matrix_view<const float> x, std::span<const int> labels,
                  const mp::ops::loss_factors& factors) {
        const auto convolved = convolved_.rows(count_);
        const auto convolved_gradient = convolved_.gradient_rows(count_);
        const auto pooled = pooled_.rows(count_);
        const auto pooled_gradient = pooled_.gradient_rows(count_);
        const auto deep = deep_.rows(count_);
        const auto deep_gradient = deep_.gradient_rows(count_);
        const auto normal_gradient = normal_.gradient_rows(count_);
        const auto logits_gradient = logits_.gradient_rows(count_);
        mp::ops::softmax_cross_entropy_backward(exec, logits_.rows(count_), labels, logits_gradient, factors);
        mp::ops::linear_backward(exec, normal_.rows(count_), cached(linear_weights_), logits_gradient,
                                 normal_gradient, linear_weights_.gradient_matrix(), linear_bias_.gradient());
        mp::ops::layer_norm_backward(exec, deep, gamma_.values(), normal_gradient, deep_gradient,
                                     gamma_.gradient(), beta_.gradient(), {}, statistics());
        mp::ops::relu_backward(exec, deep, deep_gradient, deep_gradient);
        mp::ops::conv2d_backward(exec, pooled, cached(second_weights_), deep_gradient, pooled_gradient,
                                 second_weights_.gradient_matrix(), second_bias_.gradient(), second_geometry);
        mp::ops::max_pool2d_backward(exec, convolved, pooled_gradient, convolved_gradient, pooling);
        mp::ops::relu_backward(exec, convolved, convolved_gradient, convolved_gradient);
        mp::ops::conv2d_backward(exec, x, cached(first_weights_), convolved_gradient, mp::ops::absent,
                                 first_weights_.gradient_matrix(), first_bias_.gradient(), first_geometry);
    }

    /// What an optimizer trains. Whoever has changed weights calls weights_changed().
    std::vector<mp::parameter<Value>> parameters() {
        const auto of = [](const char* name, tensor<Value>& it) {
            return mp::parameter<Value>{name, it.values(), it.gradient()};
        };
        return {of("conv1.weight", first_weights_),
                of("conv1.bias", first_bias_),
                of("conv2.weight", second_weights_),
                of("conv2.bias", second_bias_),
                of("norm.gamma", gamma_),
                of("norm.beta", beta_),
                of("linear.weight", linear_weights_),
                of("linear.bias", linear_bias_)};
    }

    /// Casts of weights that a region has kept are stale from now on.
    void weights_changed() { version_.changed(); }

private:
    /// What layer_norm() found out about the images, for layer_norm_backward().
    mp::ops::row_statistics statistics() {
        const auto count = static_cast<std::size_t>(count_);
        return {std::span(means_).first(count), std::span(deviations_).first(count)};
    }

    auto cached(tensor<Value>& weights) {
        return mp::autocast::cached(mp::matrix_view<const Value>(weights.matrix()), version_);
    }

    tensor<Value> first_weights_{first_channels, 9};
    tensor<Value> first_bias_{1, first_channels};
    tensor<Value> second_weights_{second_channels, first_channels * 9};
    tensor<Value> second_bias_{1, second_channels};
    tensor<Value> gamma_{1, features};
    tensor<Value> beta_{1, features};
    tensor<Value> linear_weights_{classes, features};
    tensor<Value> linear_bias_{1, classes};
    tensor<Value> convolved_;
    tensor<Value> pooled_;
    tensor<Value> deep_;
    tensor<Value> normal_;
    tensor<Value> logits_;
    std::vector<float> means_;
    std::vector<float> deviations_;
    mp::autocast::buffer_version version_;
    std::ptrdiff_t count_ = 0;
};

}  // namespace examples::train_convolution
