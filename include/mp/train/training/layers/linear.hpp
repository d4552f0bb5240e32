// SPDX-License-Identifier: MIT
/// \file
/// The linear layer with its parameters and its result, and two of them with an activation between them.
#pragma once

#include <mp/arrays/array/for_each_element.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/activations.hpp>
#include <mp/nn/ops/linear.hpp>
#include <mp/nn/ops/linear/kernels.hpp>
#include <mp/nn/ops/reductions.hpp>
#include <mp/train/training/float8_scaling.hpp>
#include <mp/train/training/layers/layer_call.hpp>
#include <mp/train/training/parameter_store.hpp>
#include <mp/train/training/tensor.hpp>

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mp::layers { inline namespace MP_ISA_NAMESPACE {

struct linear_options {
    bool bias = true;
    /// Of the weights; torch's nn.Linear, uniform within 1 / sqrt(in), if not given.
    std::optional<initializer> initial = std::nullopt;
    std::size_t group = 0;       ///< of the weights in the optimizer
    std::size_t bias_group = 0;  ///< of the bias, which starts at zero
    float8_options float8 = {};  ///< where the policy is one of float8_scaling.hpp
};

/// y = x w^T + b.
///
///     mp::layers::linear<mp::bfloat16> fc(store, "fc", width, 4 * width);
///     store.build(seed);
///     const auto y = fc.forward(exec, x);          // x must stay until backward()
///     ...
///     fc.backward(exec, dy, dx);                   // dx: a view, mp::ops::add_to(view) or mp::ops::absent
///
/// \tparam Weight      of weights and bias in the store, whose names end in ".weight" and ".bias"
/// \tparam Activation  of x, y, dy and dx
/// \tparam Policy      of autocast, as the ops' have it
/// \tparam Gradient    of weights and bias
///
/// Precision, threads and errors are those of mp::ops::linear() and linear_backward(). Under a policy of
/// float8_scaling.hpp all three products take operands of 8 bits, whose scales this layer keeps; x, dy and dx are
/// row-major then, and x need not stay. The result is memory
/// of the layer, which grows in the first steps only, and is overwritten by the next forward().
///
/// Layers run on CPUs and on GPUs: x, the store and the layer's memory are where the executor is. A captured forward
/// pass of a policy of float8_scaling.hpp takes the weights for new ones, so what is captured is a whole step.
template <class Weight, class Activation = Weight, class Policy = autocast::by_region,
          class Gradient = Weight>
class linear {
public:
    using store_type = parameter_store<Weight, Gradient>;

    linear(store_type& store, const std::string& name, std::ptrdiff_t in, std::ptrdiff_t out,
           const linear_options& options = {})
        : weight_(store.add_matrix(name + ".weight", out, in,
                                   options.initial.value_or(initializers::fan_in_uniform(in)),
                                   {options.group})),
          products_(store.tensor_scales(), options.float8) {
        if (options.bias) bias_ = store.add_vector(name + ".bias", out, {}, {options.bias_group});
    }

    template <executor Executor>
    matrix_view<Activation> forward(const Executor& exec, matrix_view<const Activation> x) {
        begin_forward(x);
        result_.resize(exec, x.rows, weight_.rows());
        if constexpr (float8_scaling<Policy> && gpu_executor<Executor>) {
            std::span<const Weight> bias;
            if (bias_.exists()) bias = bias_.values();
            products_.forward(exec, x, weight_.weights(), weight_.version(), result_.view(), bias);
        } else if constexpr (float8_scaling<Policy>) {
            product_through(identity_epilogue{}, [&](const auto& epilogue) {
                products_.forward(exec, x, weight_.weights(), weight_.version(), result_.view(), epilogue);
            });
        } else if (bias_.exists()) {
            ops::linear<Policy>(exec, x, weight_.cached(), bias_.values(), result_.view());
        } else {
            ops::linear<Policy>(exec, x, weight_.cached(), ops::absent, result_.view());
        }
        forward_.set();
        return result_.view();
    }

    /// active = act(x w^T + b), in one pass with the result, which is what came before the activation and what the backward
    /// op of the activation needs: gelu, gelu_tanh or silu. `active` is row-major under a policy of float8_scaling.hpp.
    template <executor Executor>
    void forward(const Executor& exec, matrix_view<const Activation> x, ops::activation act,
                 matrix_view<Activation> active) {
        detail::check_smooth_activation("mp::layers::linear::forward", act);
        begin_forward(x);
        result_.resize(exec, x.rows, weight_.rows());
        if constexpr (float8_scaling<Policy> && gpu_executor<Executor>) {
            // These products have an end of their own.
            detail::activate(exec, active, matrix_view<const Activation>(forward(exec, x)), act);
        } else if constexpr (float8_scaling<Policy>) {
            product_with_activation(exec, x, act, active);
        } else if (bias_.exists()) {
            ops::linear_with_preactivation<Policy>(exec, x, weight_.cached(), bias_.values(), result_.view(),
                                                   active, act);
        } else {
            ops::linear_with_preactivation<Policy>(exec, x, weight_.cached(), ops::absent, result_.view(),
                                                   active, act);
        }
        forward_.set();
    }

    /// The gradients of the last forward(): dx, and those of the parameters, which are added to what is there
    /// if `add` says so, for micro batches.
    ///
    /// \throws state_error  before forward(), or after one that failed
    template <executor Executor, class DX>
    void backward(const Executor& exec, matrix_view<const Activation> dy, const DX& dx, bool add = false) {
        require_forward();
        if constexpr (float8_scaling<Policy>) {
            products_.backward(exec, dy, dx, ops::add_to(weight_.gradient(), add));
            sum_bias_gradient(exec, dy, add);
        } else if (bias_.exists()) {
            ops::linear_backward<Policy>(exec, input_, weight_.cached(), dy, dx,
                                         ops::add_to(weight_.gradient(), add),
                                         ops::add_to(bias_.gradient_values(), add));
        } else {
            ops::linear_backward<Policy>(exec, input_, weight_.cached(), dy, dx,
                                         ops::add_to(weight_.gradient(), add), ops::absent);
        }
    }

    /// The same where x = act(z): dz, the gradient of what came before the activation, in one pass with that of x.
    /// See mp::ops::linear_backward_with_preactivation().
    template <executor Executor>
    void backward(const Executor& exec, matrix_view<const Activation> dy, matrix_view<const Activation> z,
                  ops::activation act, matrix_view<Activation> dz, bool add = false) {
        detail::check_activation("mp::layers::linear::backward", act);
        require_forward();
        if constexpr (float8_scaling<Policy>) {
            if constexpr (gpu_executor<Executor>) {
                // These products have an end of their own.
                products_.backward(exec, dy, dz, ops::add_to(weight_.gradient(), add));
                detail::chosen_slope{act}.visit(
                    [&](auto slope) { map_elements(slope, exec, dz, z, matrix_view<const Activation>(dz)); });
            } else {
                products_.backward(exec, dy, dz, ops::add_to(weight_.gradient(), add),
                                   detail::chosen_gradient(z, act));
            }
            sum_bias_gradient(exec, dy, add);
        } else if (bias_.exists()) {
            ops::linear_backward_with_preactivation<Policy>(exec, input_, weight_.cached(), dy, z, dz,
                                                            ops::add_to(weight_.gradient(), add),
                                                            ops::add_to(bias_.gradient_values(), add), act);
        } else {
            ops::linear_backward_with_preactivation<Policy>(exec, input_, weight_.cached(), dy, z, dz,
                                                            ops::add_to(weight_.gradient(), add), ops::absent,
                                                            act);
        }
    }

    /// next.forward(act(x w^T + b)): two layers with an activation between them, gelu, gelu_tanh or silu. Where both
    /// have delayed scales on a CPU, the product ends in the operand of the next one, with the bits of two calls.
    ///
    /// \throws argument_error  also where the layers do not fit
    template <executor Executor>
    matrix_view<Activation> forward_into(const Executor& exec, matrix_view<const Activation> x,
                                         ops::activation act, linear& next) {
        detail::check_smooth_activation("mp::layers::linear::forward_into", act);
        detail::check_equal_sizes("mp::layers::linear::forward_into", "next.weight().columns()",
                                  next.weight_.columns(), "weight().rows()", weight_.rows());
        forward_.clear();
        next.forward_.clear();
        if constexpr (ends_in_operands<Executor>) {
            next.products_.begin(exec, next.weight_.weights(), next.weight_.version());
            if (const auto operand = next.products_.result_as_x()) {
                result_.resize(exec, x.rows, weight_.rows());
                product_with_activation(exec, x, act, *operand);
                next.result_.resize(exec, x.rows, next.weight_.rows());
                next.product_through(identity_epilogue{}, [&](const auto& epilogue) {
                    next.products_.forward_of_codes(exec, next.result_.view(), epilogue);
                });
                forward_.set();
                next.forward_.set();
                return next.result_.view();
            }
        }
        const auto forward_both = [&](matrix_view<Activation> active) {
            forward(exec, x, act, active);
            return next.forward(exec, matrix_view<const Activation>(active));
        };
        if constexpr (float8_scaling<Policy>) {
            return forward_both(detail::layer_scratch<Activation>(exec, x.rows, weight_.rows()).view());
        } else {
            active_.resize(exec, x.rows, weight_.rows());
            return forward_both(active_.view());
        }
    }
    /// The gradients of both after forward_into().
    ///
    /// \throws state_error  before forward_into(), or after one that failed
    template <executor Executor, class DX>
    void backward_from(const Executor& exec, matrix_view<const Activation> dy, const DX& dx,
                       ops::activation act, linear& next, bool add = false) {
        detail::check_smooth_activation("mp::layers::linear::backward_from", act);
        require_forward("backward_from()", "forward_into()");
        next.require_forward("backward_from()", "forward_into()");
        const detail::layer_scratch<Activation> room(exec, result_.rows(), result_.columns());
        const matrix_view<Activation> dz = room.view();
        const matrix_view<const Activation> z = result_.view();
        if constexpr (ends_in_operands<Executor>) {
            if (const auto operand = products_.result_as_dy()) {
                // The gradient of the bias is a sum of dz itself.
                next.products_.backward(exec, dy, *operand, ops::add_to(next.weight_.gradient(), add),
                                        compose(detail::chosen_gradient(z, act), store_auxiliary(dz)));
                next.sum_bias_gradient(exec, dy, add);
                products_.backward_of_codes(exec, dx, ops::add_to(weight_.gradient(), add));
                sum_bias_gradient(exec, matrix_view<const Activation>(dz), add);
                return;
            }
        }
        next.backward(exec, dy, z, act, dz, add);
        backward(exec, matrix_view<const Activation>(dz), dx, add);
    }

    [[nodiscard]] const trained_tensor<Weight, Gradient>& weight() const { return weight_; }
    [[nodiscard]] const trained_tensor<Weight, Gradient>& bias() const { return bias_; }
    /// The result of the last forward().
    [[nodiscard]] matrix_view<Activation> result() { return result_.view(); }
    /// Bytes of activations.
    [[nodiscard]] std::size_t bytes() const noexcept {
        return result_.bytes() + active_.bytes() + products_.bytes();
    }

    /// What the layer remembers besides its parameters, for mp::save_checkpoint: the histories of delayed scaling.
    template <class Visitor>
    void visit_state(Visitor& visitor) {
        products_.visit_state(visitor);
    }

private:
    template <class Executor>
    static constexpr bool ends_in_operands =
        std::same_as<Policy, float8_delayed_scaling> && !gpu_executor<Executor>;

    void begin_forward(matrix_view<const Activation> x) {
        forward_.clear();
        input_ = x;
    }
    void require_forward(std::string_view backward = "backward()",
                         std::string_view forward = "forward()") const {
        forward_.require("linear", weight_.name(), ".weight", backward, forward);
    }
    /// Calls product(epilogue) with the bias before `ending`.
    template <class Ending, class Product>
    void product_through(const Ending& ending, const Product& product) const {
        bias_.exists() ? product(compose(bias_per_column(bias_.values()), ending)) : product(ending);
    }
    /// act(x w^T + b) of 8-bit operands on a CPU, and what came before it in the result.
    template <class Active>
    void product_with_activation(cpu exec, matrix_view<const Activation> x, ops::activation act,
                                 const Active& active) {
        product_through(compose(store_auxiliary(result_.view()), detail::chosen_activation{act}),
                        [&](const auto& epilogue) {
                            products_.forward(exec, x, weight_.weights(), weight_.version(), active,
                                              epilogue);
                        });
    }
    template <class Executor>
    void sum_bias_gradient(const Executor& exec, matrix_view<const Activation> dy, bool add) {
        if (!bias_.exists()) return;
        ops::sum<Policy>(exec, dy, ops::add_to(bias_.gradient_values(), add), ops::per::column);
    }

    trained_tensor<Weight, Gradient> weight_;
    trained_tensor<Weight, Gradient> bias_;
    matrix_view<const Activation> input_;
    detail::forward_mark forward_;
    tensor<Activation> result_;
    tensor<Activation> active_;  ///< of forward_into()
    typename detail::products_of_policy<Policy, Activation>::type products_;
};

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
