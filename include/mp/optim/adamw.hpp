// SPDX-License-Identifier: MIT
/// \file
/// Adam with decoupled weight decay.
#pragma once

#include <mp/executor.hpp>
#include <mp/optim/adamw_options.hpp>
#include <mp/optim/optimizer_base.hpp>
#include <mp/rules/optimizer_coefficients.hpp>
#include <mp/scaling/scaled_gradient.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace mp::inline MP_ISA_NAMESPACE {

/// Adam with decoupled weight decay (Loshchilov and Hutter 2019) as torch.optim.AdamW computes it. With
/// gradient g, weight w, means m and v, at the t-th update:
///
///     m = beta1 * m + (1 - beta1) * g
///     v = beta2 * v + (1 - beta2) * g * g
///     w = w - learning_rate * weight_decay * w
///           - learning_rate / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
///
/// Coefficients that do not depend on the element are computed in double and rounded to float, the rest in
/// float; see optimizer_base for the types, the protocol and the precision. A square that underflows in
/// State counts as zero, and with it most of what keeps the step bounded: Adam with State = half needs
/// gradients well above 2^-12, while float and bfloat16 have the range for it.
///
///     mp::adamw<mp::bfloat16> optimizer({{"weight", weights, gradient}}, {.learning_rate = 1e-3});
///
/// Without a master copy, nearest rounding loses every update that is small for the weight's format; see
/// mp::weight_update for what else there is. State in bfloat16 loses the decay of the mean square in the same
/// way, since 1 - beta2 is below its spacing: keep it in float, or round stochastically.
///
///     mp::adamw<mp::bfloat16, mp::bfloat16, mp::bfloat16, float> optimizer(
///         {{"weight", weights, gradient}}, {.low_precision_update = mp::weight_update::kahan});
template <class Weight, class Gradient = Weight, class Master = float, class State = Master>
class adamw : public optimizer_base<Weight, Gradient, Master, State> {
    using base = optimizer_base<Weight, Gradient, Master, State>;

public:
    using parameter_type = typename base::parameter_type;

    /// \param exec        where steps run
    /// \param parameters  at least one; see mp::parameter. Their memory stays the caller's
    /// \param options     see adamw_options
    /// \throws argument_error  an option is out of range; there is no parameter; memory is null with a size;
    ///                         a gradient's size differs from its weights'; arrays overlap
    adamw(cpu exec, std::vector<parameter_type> parameters, const adamw_options& options = {})
        : base("mp::adamw", exec, std::move(parameters), checked(options).learning_rate, 2,
               options.low_precision_update, options.seed),
          options_(options) {
        base::limit_learning_rate(detail::largest_rate_factor(options));
    }

    /// The same, running on the calling thread.
    explicit adamw(std::vector<parameter_type> parameters, const adamw_options& options = {})
        : adamw(cpu{}, std::move(parameters), options) {}

    /// The options as given at construction; for the present learning rate see learning_rate().
    [[nodiscard]] const adamw_options& options() const noexcept { return options_; }

    /// The mean of the gradients of a parameter, m.
    [[nodiscard]] std::span<const State> gradient_mean(std::size_t index) const {
        return base::state_of("mp::adamw::gradient_mean", index, 0);
    }

    /// The mean of the squares of the gradients of a parameter, v.
    [[nodiscard]] std::span<const State> gradient_mean_square(std::size_t index) const {
        return base::state_of("mp::adamw::gradient_mean_square", index, 1);
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
        base::require_fused_step("mp::adamw::step", inverse_scale);
        update(inverse_scale);
    }

    /// A step by gradients that are still scaled: does not compile.
    template <class Value>
    void step(scaled_gradient<Value>) {
        static_assert(
            detail::never<Value>,
            "mp::adamw::step: this gradient still carries its loss scale; call unscale of the loss scaler "
            "(or unscale_gradients_from) and then step()");
    }

private:
    static const adamw_options& checked(const adamw_options& options) {
        detail::check_options("mp::adamw", options);
        return options;
    }

    void update(float inverse_scale) {
        base::template apply_kernel<detail::adamw_coefficients>(inverse_scale, [this](std::uint64_t number) {
            return detail::coefficients_of(options_, base::learning_rate(), number);
        });
    }

    adamw_options options_;
};

}  // namespace mp::inline MP_ISA_NAMESPACE
