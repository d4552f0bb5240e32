// SPDX-License-Identifier: MIT
/// \file
/// Stochastic gradient descent with momentum.
#pragma once

#include <mp/detail/bits.hpp>
#include <mp/executor.hpp>
#include <mp/optim/optimizer_base.hpp>
#include <mp/optim/sgd_options.hpp>
#include <mp/rules/optimizer_coefficients.hpp>
#include <mp/scaling/scaled_gradient.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace mp::inline MP_ISA_NAMESPACE {

/// Stochastic gradient descent as torch.optim.SGD defines it. With gradient g, weight w, momentum buffer b:
///
///     g = g + weight_decay * w
///     b = momentum * b + (1 - dampening) * g        // at the first update b = g
///     w = w - learning_rate * (nesterov ? g + momentum * b : momentum != 0 ? b : g)
///
/// in float, the options rounded to float; see optimizer_base for the types, the protocol and the precision.
///
///     mp::sgd<mp::half> optimizer({{"weight", weights, gradient}}, {.learning_rate = 0.1, .momentum = 0.9});
///
/// Without a master copy, nearest rounding loses every update that is small for the weight's format; see
/// mp::weight_update for what else there is.
///
///     mp::sgd<mp::bfloat16, mp::bfloat16, mp::bfloat16> optimizer(
///         {{"weight", weights, gradient}}, {.low_precision_update = mp::weight_update::stochastic});
template <class Weight, class Gradient = Weight, class Master = float, class State = Master>
class sgd : public optimizer_base<Weight, Gradient, Master, State> {
    using base = optimizer_base<Weight, Gradient, Master, State>;

public:
    using parameter_type = typename base::parameter_type;

    /// \param exec        where steps run
    /// \param parameters  at least one; see mp::parameter. Their memory stays the caller's
    /// \param options     see sgd_options
    /// \throws argument_error  an option is out of range; there is no parameter; memory is null with a size;
    ///                         a gradient's size differs from its weights'; arrays overlap
    sgd(cpu exec, std::vector<parameter_type> parameters, const sgd_options& options = {})
        : base("mp::sgd", exec, std::move(parameters), checked(options).learning_rate,
               detail::same_value(options.momentum, 0.0) ? 0 : 1, options.low_precision_update, options.seed),
          options_(options) {}

    /// The same, running on the calling thread.
    explicit sgd(std::vector<parameter_type> parameters, const sgd_options& options = {})
        : sgd(cpu{}, std::move(parameters), options) {}

    /// The options as given at construction; for the present learning rate see learning_rate().
    [[nodiscard]] const sgd_options& options() const noexcept { return options_; }

    /// The momentum buffer of a parameter; empty without momentum.
    [[nodiscard]] std::span<const State> momentum(std::size_t index) const {
        return base::state_of("mp::sgd::momentum", index, 0);
    }

    /// One update of all parameters that have a gradient, by the unscaled gradients if unscale_gradients was
    /// called before, else by the gradients as they are. Does not look for infinities or NaNs.
    void step() { update(1.0F); }

    /// The same, multiplying the gradients by `inverse_scale` on the way. The results are those of
    /// unscale_gradients(inverse_scale) and step(), without memory for the unscaled gradients.
    ///
    /// \throws state_error     the gradients are already unscaled
    /// \throws argument_error  the inverse scale is NaN or negative
    void step(float inverse_scale) {
        base::require_fused_step("mp::sgd::step", inverse_scale);
        update(inverse_scale);
    }

    /// A step by gradients that are still scaled: does not compile.
    template <class Value>
    void step(scaled_gradient<Value>) {
        static_assert(
            detail::never<Value>,
            "mp::sgd::step: this gradient still carries its loss scale; call unscale of the loss scaler "
            "(or unscale_gradients_from) and then step()");
    }

private:
    static const sgd_options& checked(const sgd_options& options) {
        detail::check_options("mp::sgd", options);
        return options;
    }

    void update(float inverse_scale) {
        base::template apply_kernel<detail::sgd_coefficients>(inverse_scale, [this](std::uint64_t number) {
            return detail::coefficients_of(options_, base::learning_rate(), number);
        });
    }

    sgd_options options_;
};

}  // namespace mp::inline MP_ISA_NAMESPACE
