// SPDX-License-Identifier: MIT
/// \file
/// A small convolutional network for the scanned digits.
#pragma once

#include <mp/convert.hpp>
#include <mp/ops.hpp>
#include <mp/training.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

#include "../common/data.hpp"

namespace examples::train_convolution {

/// Two convolutions with a pooling between them, layer normalization, and a linear layer:
///
///     image 8x8 -> conv2d 3x3 -> relu -> max_pool2d 2x2 -> conv2d 3x3 -> relu -> layer_norm -> linear
///
/// Weights, gradients and activations are stored as Value; in which precision the ops compute is up to the
/// autocast region that the caller is in, which casts each weight once for the forward and the backward pass.
/// The forward pass is recorded on a tape, which then runs the backward pass.
template <class Value>
class network {
    static constexpr std::ptrdiff_t first_channels = 8;
    static constexpr std::ptrdiff_t second_channels = 16;
    static constexpr std::ptrdiff_t features = second_channels * 4 * 4;
    static constexpr auto classes = static_cast<std::ptrdiff_t>(digit_classes);
    static constexpr mp::ops::conv2d_geometry first_geometry{
        .channels = 1, .height = 8, .width = 8, .kernel = {3, 3}, .padding = {1, 1}};
    static constexpr mp::ops::pool2d_geometry pooling{
        .channels = first_channels, .height = 8, .width = 8, .kernel = {2, 2}};
    static constexpr mp::ops::conv2d_geometry second_geometry{
        .channels = first_channels, .height = 4, .width = 4, .kernel = {3, 3}, .padding = {1, 1}};

public:
    mp::parameter_store<Value> parameters;

    /// Every Value starts from the same numbers, rounded to it.
    explicit network(std::uint64_t seed) { parameters.build(seed); }

    /// The logits of the images, a row for each. What the caller wants of them goes on the tape too.
    mp::tape_value<Value> forward(mp::cpu exec, mp::tape& tape, mp::matrix_view<const float> images) {
        images_.resize(images.rows, images.columns);
        mp::convert(exec, std::span(images.data, images_.values().size()), images_.values());
        const auto convolved = relu(exec, tape, tape.call(first_, exec, images_.view()));
        const auto pooled = max_pool2d(exec, tape, convolved);
        const auto deep = relu(exec, tape, tape.call(second_, exec, pooled));
        return tape.call(head_, exec, tape.call(norm_, exec, deep));
    }

private:
    /// Ops without parameters say themselves what the tape is to run.
    static mp::tape_value<Value> relu(mp::cpu exec, mp::tape& tape, mp::tape_value<Value> x) {
        const auto y = tape.value(tape.matrix<Value>(x.value().rows, x.value().columns));
        mp::ops::relu(exec, x.value(), y.value());
        tape.record([=] { mp::ops::relu_backward(exec, y.value(), y.gradient(), x.add_to_gradient()); });
        return y;
    }
    static mp::tape_value<Value> max_pool2d(mp::cpu exec, mp::tape& tape, mp::tape_value<Value> x) {
        const auto y = tape.value(tape.matrix<Value>(x.value().rows, second_geometry.image_size()));
        mp::ops::max_pool2d(exec, x.value(), y.value(), pooling);
        tape.record([=] {
            mp::ops::max_pool2d_backward(exec, x.value(), y.gradient(), x.add_to_gradient(), pooling);
        });
        return y;
    }

    /// Initial weights that keep the variance of activations through a relu (He et al. 2015).
    static mp::layers::conv2d_options before_relu(const mp::ops::conv2d_geometry& geometry) {
        return {.initial = mp::initializers::kaiming_normal(geometry.patch_size()),
                .initial_bias = mp::initializers::zeros()};
    }

    mp::tensor<Value> images_;
    mp::layers::conv2d<Value> first_{parameters, "conv1", first_channels, first_geometry,
                                     before_relu(first_geometry)};
    mp::layers::conv2d<Value> second_{parameters, "conv2", second_channels, second_geometry,
                                      before_relu(second_geometry)};
    mp::layers::layer_norm<Value> norm_{parameters, "norm", features};
    mp::layers::linear<Value> head_{parameters, "linear", features, classes};
};

}  // namespace examples::train_convolution
