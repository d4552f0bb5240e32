// SPDX-License-Identifier: MIT
/// \file
/// Layer norm and rms norm with their parameters, statistics and results.
#pragma once

#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/normalization.hpp>
#include <mp/train/training/layers/layer_call.hpp>
#include <mp/train/training/parameter_store.hpp>
#include <mp/train/training/tensor.hpp>

#include <cstddef>
#include <span>
#include <string>

namespace mp::layers { inline namespace MP_ISA_NAMESPACE {

struct normalization_options {
    double epsilon = 1e-5;
    std::size_t group = 0;  ///< of gamma and beta in the optimizer
};

}}  // namespace mp::layers

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The base of both norms: gamma, the result, and memory for the statistics of rows.
template <class Weight, class Activation, class Gradient>
class normalization_layer {
public:
    /// The result of the last forward().
    [[nodiscard]] matrix_view<Activation> result() { return result_.view(); }
    /// Bytes of activations and statistics.
    [[nodiscard]] std::size_t bytes() const noexcept { return result_.bytes() + statistics_.bytes(); }
    [[nodiscard]] const trained_tensor<Weight, Gradient>& gamma() const { return gamma_; }

protected:
    normalization_layer(parameter_store<Weight, Gradient>& store, const std::string& name,
                        std::ptrdiff_t width, const layers::normalization_options& options)
        : gamma_(store.add_vector(name + ".weight", width, initializers::ones(), {options.group})),
          options_{options.epsilon} {}

    template <class Executor>
    void take(const Executor& exec, matrix_view<const Activation> x) {
        forward_.clear();
        input_ = x;
        result_.resize(exec, x.rows, x.columns);
        statistics_.resize(exec, 1, x.rows);
    }

    trained_tensor<Weight, Gradient> gamma_;
    ops::normalization_options options_;
    forward_mark forward_;
    matrix_view<const Activation> input_;
    tensor<Activation> result_;
    tensor<ops::normalization_statistics_of<Activation>> statistics_;
};

}}  // namespace mp::detail

namespace mp::layers { inline namespace MP_ISA_NAMESPACE {

/// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, row by row; gamma is ".weight" in the store,
/// beta ".bias". See mp::ops::layer_norm() and mp::layers::linear, whose template parameters these are.
template <class Weight, class Activation = Weight, class Policy = autocast::by_region,
          class Gradient = Weight>
class layer_norm : public detail::normalization_layer<Weight, Activation, Gradient> {
    using base = detail::normalization_layer<Weight, Activation, Gradient>;

public:
    layer_norm(parameter_store<Weight, Gradient>& store, const std::string& name, std::ptrdiff_t width,
               const normalization_options& options = {})
        : base(store, name, width, options),
          beta_(store.add_vector(name + ".bias", width, {}, {options.group})) {}

    template <executor Executor>
    matrix_view<Activation> forward(const Executor& exec, matrix_view<const Activation> x) {
        base::take(exec, x);
        ops::layer_norm<Policy>(exec, x, base::gamma_.values(), beta_.values(), base::result(),
                                base::options_, base::statistics_.values());
        base::forward_.set();
        return base::result();
    }
    /// As linear::backward().
    template <executor Executor, class DX>
    void backward(const Executor& exec, matrix_view<const Activation> dy, const DX& dx, bool add = false) {
        base::forward_.require("layer_norm", base::gamma_.name(), ".weight");
        ops::layer_norm_backward<Policy>(exec, base::input_, base::gamma_.values(), dy, dx,
                                         ops::add_to(base::gamma_.gradient_values(), add),
                                         ops::add_to(beta_.gradient_values(), add), base::options_,
                                         base::statistics_.values());
    }
    [[nodiscard]] const trained_tensor<Weight, Gradient>& beta() const { return beta_; }

private:
    trained_tensor<Weight, Gradient> beta_;
};

/// y = x / sqrt(mean square + epsilon) * gamma, row by row. See mp::ops::rms_norm() and layer_norm.
template <class Weight, class Activation = Weight, class Policy = autocast::by_region,
          class Gradient = Weight>
class rms_norm : public detail::normalization_layer<Weight, Activation, Gradient> {
    using base = detail::normalization_layer<Weight, Activation, Gradient>;

public:
    rms_norm(parameter_store<Weight, Gradient>& store, const std::string& name, std::ptrdiff_t width,
             const normalization_options& options = {})
        : base(store, name, width, options) {}

    template <executor Executor>
    matrix_view<Activation> forward(const Executor& exec, matrix_view<const Activation> x) {
        base::take(exec, x);
        ops::rms_norm<Policy>(exec, x, base::gamma_.values(), base::result(), base::options_,
                              base::statistics_.values());
        base::forward_.set();
        return base::result();
    }
    /// As linear::backward().
    template <executor Executor, class DX>
    void backward(const Executor& exec, matrix_view<const Activation> dy, const DX& dx, bool add = false) {
        base::forward_.require("rms_norm", base::gamma_.name(), ".weight");
        ops::rms_norm_backward<Policy>(exec, base::input_, base::gamma_.values(), dy, dx,
                                       ops::add_to(base::gamma_.gradient_values(), add), base::options_,
                                       base::statistics_.values());
    }
};

}}  // namespace mp::layers
