// SPDX-License-Identifier: MIT
/// \file
/// Stochastic gradient descent with momentum.
#pragma once

#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/optim/kernels/update.hpp>
#include <mp/optim/optimizer_base.hpp>
#include <mp/optim/option_checks.hpp>
#include <mp/optim/weight_update.hpp>
#include <mp/scaling/scale_checks.hpp>
#include <mp/scaling/scaled_gradient.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace mp {

/// Options of mp::sgd, with the defaults of torch.optim.SGD.
struct sgd_options {
    double learning_rate = 1e-3;  ///< finite and not negative
    double momentum = 0.0;        ///< in [0, 1); 0 keeps no momentum state
    double dampening = 0.0;       ///< in [0, 1]; takes this share off every gradient that enters the momentum
    double weight_decay = 0.0;    ///< finite and not negative; this times the weight is added to the gradient
    bool nesterov = false;        ///< look ahead; needs a momentum, and a dampening of 0

    /// For weights of a reduced format without master copy; otherwise it must be nearest.
    weight_update low_precision_update = weight_update::nearest;
    std::uint64_t seed = 0;  ///< of the random bits of weight_update::stochastic; another for every optimizer

    friend constexpr bool operator==(const sgd_options&, const sgd_options&) = default;
};

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
               options.momentum != 0.0 ? 1 : 0, options.low_precision_update, options.seed),
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
        constexpr std::string_view function = "mp::sgd";
        detail::require_non_negative(function, "learning_rate", options.learning_rate);
        detail::require_fraction(function, "momentum", options.momentum);
        if (detail::is_non_finite(options.dampening) ||
            !(options.dampening >= 0.0 && options.dampening <= 1.0)) {
            detail::throw_argument(function, "dampening", options.dampening,
                                   "must be at least 0 and at most 1");
        }
        detail::require_non_negative(function, "weight_decay", options.weight_decay);
        if (options.nesterov && options.momentum == 0.0) {
            detail::throw_argument(function, "momentum", options.momentum, "must not be 0 with nesterov");
        }
        if (options.nesterov && options.dampening != 0.0) {
            detail::throw_argument(function, "dampening", options.dampening, "must be 0 with nesterov");
        }
        return options;
    }

    void update(float inverse_scale) {
        const auto coefficients = [this](std::uint64_t number) -> detail::sgd_coefficients {
            // The buffer starts at zero, so taking the whole gradient at the first update sets it to that.
            const double share = number == 1 ? 1.0 : 1.0 - options_.dampening;
            return {static_cast<float>(base::learning_rate()),
                    static_cast<float>(options_.weight_decay),
                    static_cast<float>(options_.momentum),
                    static_cast<float>(share),
                    options_.weight_decay != 0.0,
                    options_.momentum != 0.0,
                    options_.nesterov};
        };
        base::template apply_kernel<detail::sgd_coefficients>(inverse_scale, coefficients);
    }

    sgd_options options_;
};

}  // namespace mp
