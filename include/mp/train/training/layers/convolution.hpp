// SPDX-License-Identifier: MIT
/// \file
/// The convolution of images with its parameters and its result.
#pragma once

#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/convolution.hpp>
#include <mp/train/training/layers/layer_call.hpp>
#include <mp/train/training/parameter_store.hpp>
#include <mp/train/training/tensor.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace mp::layers { inline namespace MP_ISA_NAMESPACE {

/// What may be chosen for a layer conv2d.
struct conv2d_options {
    bool bias = true;
    /// Of the weights and of the bias; torch's nn.Conv2d, uniform within 1 / sqrt(cells that a kernel reads),
    /// if not given.
    std::optional<initializer> initial = std::nullopt;
    std::optional<initializer> initial_bias = std::nullopt;
    std::size_t group = 0;  ///< of the weights in the optimizer
    std::size_t bias_group = 0;
};

/// y = the convolution of images with out_channels kernels, plus a bias for each. An image is a row of x, and
/// of y, as mp::ops::conv2d_geometry says; stride, padding, dilation and groups are part of the geometry.
///
///     mp::layers::conv2d<float> conv(store, "conv1", 8,
///                                    {.channels = 3, .height = 32, .width = 32, .kernel = {3, 3},
///                                     .padding = {1, 1}});
///     store.build(seed);
///     const auto y = conv.forward(exec, images);        // batch x (8 * 32 * 32)
///     conv.backward(exec, dy, mp::ops::absent);         // the first layer: no gradient of the images
///
/// ".weight" in the store has a kernel in each row, in the order (channel, line, column); ".bias" has
/// out_channels elements. Precision, threads and errors are those of mp::ops::conv2d() and conv2d_backward();
/// the template parameters and the result are as in mp::layers::linear.
template <class Weight, class Activation = Weight, class Policy = autocast::by_region,
          class Gradient = Weight>
class conv2d {
public:
    /// \throws argument_error  a geometry without output, out_channels below 1 or no multiple of
    ///                         geometry.groups; a name that is there
    conv2d(parameter_store<Weight, Gradient>& store, const std::string& name, std::ptrdiff_t out_channels,
           const ops::conv2d_geometry& geometry, const conv2d_options& options = {})
        : geometry_(checked(out_channels, geometry)) {
        const std::ptrdiff_t patch = geometry.patch_size();
        const initializer usual = initializers::fan_in_uniform(patch);
        weight_ = store.add_matrix(name + ".weight", out_channels, patch, options.initial.value_or(usual),
                                   {options.group});
        if (options.bias) {
            bias_ = store.add_vector(name + ".bias", out_channels, options.initial_bias.value_or(usual),
                                     {options.bias_group});
        }
    }

    /// x must stay until backward().
    matrix_view<Activation> forward(cpu exec, matrix_view<const Activation> x) {
        forward_.clear();
        input_ = x;
        result_.resize(x.rows, weight_.rows() * geometry_.output_positions());
        if (bias_.exists()) {
            ops::conv2d<Policy>(exec, x, weight_.cached(), bias_.values(), result_.view(), geometry_);
        } else {
            ops::conv2d<Policy>(exec, x, weight_.cached(), ops::absent, result_.view(), geometry_);
        }
        forward_.set();
        return result_.view();
    }
    /// As linear::backward().
    template <class DX>
    void backward(cpu exec, matrix_view<const Activation> dy, const DX& dx, bool add = false) {
        forward_.require("conv2d", weight_.name(), ".weight");
        const auto dw = ops::add_to(weight_.gradient(), add);
        if (bias_.exists()) {
            ops::conv2d_backward<Policy>(exec, input_, weight_.cached(), dy, dx, dw,
                                         ops::add_to(bias_.gradient_values(), add), geometry_);
        } else {
            ops::conv2d_backward<Policy>(exec, input_, weight_.cached(), dy, dx, dw, ops::absent, geometry_);
        }
    }

    [[nodiscard]] const ops::conv2d_geometry& geometry() const { return geometry_; }
    [[nodiscard]] const trained_tensor<Weight, Gradient>& weight() const { return weight_; }
    [[nodiscard]] const trained_tensor<Weight, Gradient>& bias() const { return bias_; }
    /// The result of the last forward().
    [[nodiscard]] matrix_view<Activation> result() { return result_.view(); }
    /// Bytes of activations.
    [[nodiscard]] std::size_t bytes() const noexcept { return result_.bytes(); }

private:
    static const ops::conv2d_geometry& checked(std::ptrdiff_t out_channels,
                                               const ops::conv2d_geometry& geometry) {
        constexpr std::string_view function = "mp::layers::conv2d";
        geometry.check(function);
        if (out_channels < 1) {
            detail::throw_argument(function, "out_channels", out_channels, "must be at least 1");
        }
        if (out_channels % geometry.groups != 0) {
            detail::throw_argument(
                function, "out_channels", out_channels,
                "must be a multiple of geometry.groups, which is " + detail::error_text(geometry.groups));
        }
        return geometry;
    }

    ops::conv2d_geometry geometry_;
    trained_tensor<Weight, Gradient> weight_;
    trained_tensor<Weight, Gradient> bias_;
    matrix_view<const Activation> input_;
    detail::forward_mark forward_;
    tensor<Activation> result_;
};

}}  // namespace mp::layers
