// SPDX-License-Identifier: MIT
/// \file
/// Adam with decoupled weight decay.
#pragma once

#include <mp/detail/runs.hpp>
#include <mp/executor.hpp>
#include <mp/optim/float_blocks.hpp>
#include <mp/optim/optimizer_base.hpp>
#include <mp/optim/option_checks.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace mp {

/// Options of mp::adamw, with the defaults of torch.optim.AdamW.
struct adamw_options {
    double learning_rate = 1e-3;  ///< finite and not negative
    double beta1 = 0.9;           ///< in [0, 1): how slowly the mean of the gradients moves
    double beta2 = 0.999;         ///< in [0, 1): how slowly the mean of their squares moves
    double epsilon = 1e-8;        ///< finite and not negative; added to the root of the mean square
    double weight_decay = 1e-2;   ///< finite and not negative; this times the learning rate is the share that
                                  ///< every weight loses in a step

    friend constexpr bool operator==(const adamw_options&, const adamw_options&) = default;
};

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
/// Master counts as zero, and with it most of what keeps the step bounded: Adam with Master = half needs
/// gradients well above 2^-12, while float and bfloat16 have the range for it.
///
///     mp::adamw<mp::bfloat16> optimizer({{"weight", weights, gradient}}, {.learning_rate = 1e-3});
template <class Weight, class Gradient = Weight, class Master = float>
class adamw : public optimizer_base<Weight, Gradient, Master> {
    using base = optimizer_base<Weight, Gradient, Master>;

public:
    using parameter_type = typename base::parameter_type;

    /// \param exec        where steps run
    /// \param parameters  at least one; see mp::parameter. Their memory stays the caller's
    /// \param options     see adamw_options
    /// \throws argument_error  an option is out of range; there is no parameter; memory is null with a size;
    ///                         a gradient's size differs from its weights'; arrays overlap
    adamw(cpu exec, std::vector<parameter_type> parameters, const adamw_options& options = {})
        : base("mp::adamw", exec, std::move(parameters), checked(options).learning_rate, 2),
          options_(options) {}

    /// The same, running on the calling thread.
    explicit adamw(std::vector<parameter_type> parameters, const adamw_options& options = {})
        : adamw(cpu{}, std::move(parameters), options) {}

    /// The options as given at construction; for the present learning rate see learning_rate().
    [[nodiscard]] const adamw_options& options() const noexcept { return options_; }

    /// The mean of the gradients of a parameter, m.
    [[nodiscard]] std::span<const Master> gradient_mean(std::size_t index) const {
        return base::state_of("mp::adamw::gradient_mean", index, 0);
    }

    /// The mean of the squares of the gradients of a parameter, v.
    [[nodiscard]] std::span<const Master> gradient_mean_square(std::size_t index) const {
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
        constexpr std::string_view function = "mp::adamw";
        detail::require_non_negative(function, "learning_rate", options.learning_rate);
        detail::require_fraction(function, "beta1", options.beta1);
        detail::require_fraction(function, "beta2", options.beta2);
        detail::require_non_negative(function, "epsilon", options.epsilon);
        detail::require_non_negative(function, "weight_decay", options.weight_decay);
        return options;
    }

    /// What the update of a parameter multiplies by.
    struct coefficients {
        float decay;         // share of itself that the weight loses
        float mean_keep;     // of the old mean
        float mean_share;    // of the gradient in its mean
        float square_keep;   // of the old mean square
        float square_share;  // of the squared gradient in its mean
        float rate;          // learning rate over the bias correction of the mean
        float inverse_bias;  // one over the root of the bias correction of the mean square
        float epsilon;
    };

    [[nodiscard]] coefficients coefficients_of(std::uint64_t number) const noexcept {
        const double rate = base::learning_rate();
        const double t = static_cast<double>(number);
        return {static_cast<float>(rate * options_.weight_decay),
                static_cast<float>(options_.beta1),
                static_cast<float>(1.0 - options_.beta1),
                static_cast<float>(options_.beta2),
                static_cast<float>(1.0 - options_.beta2),
                static_cast<float>(rate / (1.0 - std::pow(options_.beta1, t))),
                static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(options_.beta2, t))),
                static_cast<float>(options_.epsilon)};
    }

    void update(float inverse_scale) {
        base::template apply<2>(inverse_scale, [this](std::uint64_t number) {
            return [c = coefficients_of(number)](float* __restrict weights, const float* __restrict gradient,
                                                 std::array<float*, 2> states, std::size_t count) {
                float* __restrict const mean = states[0];
                float* __restrict const square = states[1];
                float roots[detail::float_block];
                detail::in_runs(count, [=](std::size_t i) {
                    mean[i] = c.mean_keep * mean[i] + c.mean_share * gradient[i];
                    square[i] = c.square_keep * square[i] + c.square_share * (gradient[i] * gradient[i]);
                });
                detail::square_roots(square, roots, count);
                detail::in_runs(count, [=, &roots](std::size_t i) {
                    const float denominator = roots[i] * c.inverse_bias + c.epsilon;
                    // Not w * (1 - decay): one minus a small decay loses most of its digits in float.
                    weights[i] -= c.decay * weights[i] + c.rate * (mean[i] / denominator);
                });
            };
        });
    }

    adamw_options options_;
};

}  // namespace mp
