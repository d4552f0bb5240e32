// SPDX-License-Identifier: MIT
/// \file
/// The classifier of network.hpp in the memory of a GPU.
///
/// A Device is where it lies: CUDA in cuda_recipes.cu, and in the tests mp::simulated_gpu, which runs the
/// same kernels on the host. It has
///  - `template <class Value> class array` with data() and span(): device memory, movable;
///  - `array<Value> put(const std::vector<Value>&)` and `std::vector<Value> get(array<Value>&)`, which waits;
///  - `exec()`, the executor, and `wait()`, until all that was enqueued is done.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/gpu.hpp>
#include <mp/half.hpp>
#include <mp/tfloat32.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "device_kernels.hpp"
#include "network.hpp"

namespace examples::train_digits {

/// What tensor cores multiply: 16 bits as they are, and floats as TF32, without their last 13 bits.
template <class Value>
using tensor_core_factor = std::conditional_t<std::is_same_v<Value, float>, mp::tfloat32, Value>;

template <class Value>
mp::matrix_view<const tensor_core_factor<Value>> factor_view(mp::matrix_view<const Value> from) {
    return {reinterpret_cast<const tensor_core_factor<Value>*>(from.data), from.rows, from.columns,
            from.leading_dimension, from.order};
}

/// Weights, gradients and activations in Value, products in tensor cores with sums in float. Every call only
/// enqueues; nothing is allocated after the beginning.
template <class Device, class Value>
class device_network {
public:
    /// The weights with which network<Value> of the same arguments begins.
    device_network(Device& device, std::span<const std::size_t> widths, std::size_t batch, std::uint64_t seed)
        : exec_(device.exec()),
          gpu_(mp::properties_of(device.exec())),
          memory_(device.put(std::vector<float>(bias_workspace(widths, batch)))),
          workspace_(std::as_writable_bytes(memory_.span())) {
        exec_.workspace = &workspace_;
        network<Value> start(widths, batch, seed);
        const auto parameters = start.parameters();
        for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
            layers_.push_back(
                {static_cast<std::ptrdiff_t>(widths[i]), static_cast<std::ptrdiff_t>(widths[i + 1]),
                 put(device, parameters[2 * i].weights), zeros(device, widths[i] * widths[i + 1]),
                 put(device, parameters[2 * i + 1].weights), zeros(device, widths[i + 1]),
                 zeros(device, batch * widths[i + 1]), zeros(device, batch * widths[i + 1])});
        }
    }

    /// The logits of the images x, a row for each; valid until the next call.
    mp::matrix_view<Value> forward(mp::matrix_view<const Value> x) {
        rows_ = x.rows;
        for (std::size_t i = 0; i < layers_.size(); ++i) {
            layer& to = layers_[i];
            const mp::matrix_view<const Value> from = i == 0 ? x : layers_[i - 1].output_rows(rows_);
            multiply(from, mp::transposed(to.weight_matrix()), to.output_rows(rows_),
                     {to.bias.data(), i + 1 < layers_.size()});
        }
        return layers_.back().output_rows(rows_);
    }

    /// Where the gradient of the logits goes before backward().
    mp::matrix_view<Value> logits_gradient() { return layers_.back().output_gradient_rows(rows_); }

    /// Fills the gradients of the loss of the images that forward() has just seen, from that of the logits.
    void backward(mp::matrix_view<const Value> x) {
        for (std::size_t i = layers_.size(); i-- > 0;) {
            layer& to = layers_[i];
            const auto gradient = to.output_gradient_rows(rows_);
            const mp::matrix_view<const Value> from = i == 0 ? x : layers_[i - 1].output_rows(rows_);
            multiply(mp::transposed(gradient), from, to.weight_gradient_matrix(), {});
            mp::ops::sum(exec_, gradient, to.bias_gradient.span(), mp::ops::per::column);
            if (i == 0) return;
            const auto from_gradient = layers_[i - 1].output_gradient_rows(rows_);
            multiply(gradient, to.weight_matrix(), from_gradient, {});
            mp::ops::relu_backward(exec_, from, from_gradient, from_gradient);
        }
    }

    /// Weights and their gradient, or biases, in device memory.
    struct parameter {
        std::span<Value> weights;
        std::span<Value> gradient;
    };

    /// What an optimizer trains, in the order of network::parameters().
    std::vector<parameter> parameters() {
        std::vector<parameter> result;
        for (layer& it : layers_) {
            result.push_back({it.weights.span(), it.weight_gradient.span()});
            result.push_back({it.bias.span(), it.bias_gradient.span()});
        }
        return result;
    }

    /// Copies weights and gradients to a network of the same widths; waits.
    void copy_to(Device& device, network<Value>& to) {
        const auto parameters = to.parameters();
        const auto copy = [&](array<Value>& from, std::span<Value> host) {
            const std::vector<Value> values = device.get(from);
            std::copy(values.begin(), values.end(), host.begin());
        };
        for (std::size_t i = 0; i < layers_.size(); ++i) {
            copy(layers_[i].weights, parameters[2 * i].weights);
            copy(layers_[i].weight_gradient, parameters[2 * i].gradient);
            copy(layers_[i].bias, parameters[2 * i + 1].weights);
            copy(layers_[i].bias_gradient, parameters[2 * i + 1].gradient);
        }
    }

    /// The logits that forward() has left, with rows that it has not; waits.
    std::vector<Value> logits(Device& device) { return device.get(layers_.back().output); }

private:
    template <class Element>
    using array = typename Device::template array<Element>;

    struct layer {
        auto weight_matrix() { return mp::row_major(weights.data(), out, in); }
        auto weight_gradient_matrix() { return mp::row_major(weight_gradient.data(), out, in); }
        auto output_rows(std::ptrdiff_t rows) { return mp::row_major(output.data(), rows, out); }
        auto output_gradient_rows(std::ptrdiff_t rows) {
            return mp::row_major(output_gradient.data(), rows, out);
        }

        std::ptrdiff_t in;
        std::ptrdiff_t out;
        array<Value> weights;
        array<Value> weight_gradient;
        array<Value> bias;
        array<Value> bias_gradient;
        array<Value> output;
        array<Value> output_gradient;
    };

    static array<Value> put(Device& device, std::span<const Value> values) {
        return device.put(std::vector<Value>(values.begin(), values.end()));
    }
    static array<Value> zeros(Device& device, std::size_t size) {
        return device.put(std::vector<Value>(size));
    }

    /// Floats whose bytes the gradient of any of the biases needs.
    static std::size_t bias_workspace(std::span<const std::size_t> widths, std::size_t batch) {
        std::size_t bytes = 0;
        for (const std::size_t width : widths.subspan(1)) {
            bytes = std::max(
                bytes, mp::ops::sum_workspace(static_cast<std::ptrdiff_t>(batch),
                                              static_cast<std::ptrdiff_t>(width), mp::ops::per::column));
        }
        return bytes / sizeof(float) + 1;
    }

    /// c = ending(a b). The plan is a few integers that follow from the shape and the device.
    void multiply(mp::matrix_view<const Value> a, mp::matrix_view<const Value> b, mp::matrix_view<Value> c,
                  const layer_epilogue<Value>& ending) {
        const auto plan = mp::plan_gemm<tensor_core_factor<Value>>(gpu_, c.rows, c.columns, a.columns);
        mp::gemm(exec_, plan, 1.0F, factor_view(a), factor_view(b), 0.0F, c, ending);
    }

    std::remove_cvref_t<decltype(std::declval<Device&>().exec())> exec_;
    mp::gpu_properties gpu_;
    array<float> memory_;  // for the gradients of biases
    mp::workspace workspace_;
    std::vector<layer> layers_;
    std::ptrdiff_t rows_ = 0;
};

}  // namespace examples::train_digits
