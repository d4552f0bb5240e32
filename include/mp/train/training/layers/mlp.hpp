// SPDX-License-Identifier: MIT
/// \file
/// Two linear layers with an activation between them.
#pragma once

#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/activations.hpp>
#include <mp/train/training/layers/forward_mark.hpp>
#include <mp/train/training/layers/linear.hpp>
#include <mp/train/training/parameter_store.hpp>

#include <cstddef>
#include <string>

namespace mp::layers { inline namespace MP_ISA_NAMESPACE {

struct mlp_options {
    ops::gelu_formula formula = ops::gelu_formula::tanh;
    linear_options in = {};
    linear_options out = {};
};

/// y = gelu(x w1^T + b1) w2^T + b2; ".fc" and ".proj" in the store. See mp::layers::linear, whose template
/// parameters these are.
template <class Weight, class Activation = Weight, class Policy = autocast::by_region,
          class Gradient = Weight>
class mlp {
    using projection = linear<Weight, Activation, Policy, Gradient>;

public:
    mlp(parameter_store<Weight, Gradient>& store, const std::string& name, std::ptrdiff_t width,
        std::ptrdiff_t hidden, const mlp_options& options = {})
        : formula_(options.formula),
          in_(store, name + ".fc", width, hidden, options.in),
          out_(store, name + ".proj", hidden, width, options.out) {}

    /// x must stay until backward().
    template <executor Executor>
    matrix_view<Activation> forward(const Executor& exec, matrix_view<const Activation> x) {
        forward_.clear();
        const matrix_view<Activation> y = in_.forward_into(exec, x, activation(), out_);
        forward_.set();
        return y;
    }
    /// As linear::backward().
    template <executor Executor, class DX>
    void backward(const Executor& exec, matrix_view<const Activation> dy, const DX& dx, bool add = false) {
        forward_.require("mlp", in_.weight().name(), ".fc.weight");
        in_.backward_from(exec, dy, dx, activation(), out_, add);
    }

    [[nodiscard]] projection& in() { return in_; }
    [[nodiscard]] projection& out() { return out_; }
    /// Bytes of activations.
    [[nodiscard]] std::size_t bytes() const noexcept { return in_.bytes() + out_.bytes(); }

    /// As linear::visit_state().
    template <class Visitor>
    void visit_state(Visitor& visitor) {
        visitor("fc", in_);
        visitor("proj", out_);
    }

private:
    [[nodiscard]] ops::activation activation() const {
        return formula_ == ops::gelu_formula::exact ? ops::activation::gelu : ops::activation::gelu_tanh;
    }

    ops::gelu_formula formula_;
    detail::forward_mark forward_;
    projection in_;
    projection out_;
};

}}  // namespace mp::layers
