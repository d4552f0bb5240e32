// SPDX-License-Identifier: MIT
/// \file
/// Optimizers that change every element by itself: SGD, AdamW, Lion.
#pragma once

#include <mp/nn/optim/grouped_optimizer.hpp>
#include <mp/nn/optim/optimizer_options.hpp>
#include <mp/nn/optim/optimizer_traits.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// What mp::sgd, mp::adamw and mp::lion have in common: an update of an element that is a function of its
/// gradient, its weight and its state, by the traits of Options. See grouped_optimizer for the options and
/// optimizer_base for the types, the protocol and the precision.
template <class Options, class Weight, class Gradient, class Master, class State>
class optimizer : public grouped_optimizer<optimizer<Options, Weight, Gradient, Master, State>, Options,
                                           Weight, Gradient, Master, State> {
    using base = grouped_optimizer<optimizer, Options, Weight, Gradient, Master, State>;
    friend base;
    using traits = detail::optimizer_traits<Options>;

public:
    using base::base;

private:
    void update(float inverse_scale) {
        const detail::default_floating_point_modes modes;
        base::set_coefficients(std::span(of_group_), std::span(of_parameter_));
        base::apply_kernel(inverse_scale, std::span<const coefficients>(of_parameter_));
    }

    using coefficients = typename traits::coefficients;
    std::vector<coefficients> of_group_ = std::vector<coefficients>(base::group_count());
    std::vector<coefficients> of_parameter_ = std::vector<coefficients>(base::parameters().size());
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
class sgd : public optimizer<sgd_options, Weight, Gradient, Master, State> {
    using base = optimizer<sgd_options, Weight, Gradient, Master, State>;

public:
    using base::base;

    /// The momentum buffer of a parameter; empty without momentum.
    [[nodiscard]] std::span<const State> momentum(std::size_t index) const {
        return base::state_of("mp::sgd::momentum", index, 0);
    }
};

/// Adam with decoupled weight decay (Loshchilov and Hutter 2019) as torch.optim.AdamW computes it. With
/// gradient g, weight w, means m and v, at the t-th update:
///
///     m = beta1 * m + (1 - beta1) * g
///     v = beta2 * v + (1 - beta2) * g * g
///     w = w - learning_rate * weight_decay * w
///           - learning_rate / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
///
/// With options.coupled_decay it is Adam: g = g + weight_decay * w first, and no decay in the last line.
///
/// Coefficients that do not depend on the element are computed in double and rounded to float, the rest in
/// float; see optimizer_base for the types, the protocol and the precision. A square that underflows in
/// State counts as zero, and with it most of what keeps the step bounded: Adam with State = half needs
/// gradients well above 2^-12, while float and bfloat16 have the range for it.
///
///     mp::adamw<mp::bfloat16> optimizer({{"weight", weights, gradient}}, {.learning_rate = 1e-3});
///
/// With State = mp::block_moment the means take a byte each, see there.
///
/// In a reduced State the means are kept divided by their bias, m / (1 - beta1^t) and v / (1 - beta2^t), which is the same
/// in numbers that do not round, and is not stopped half way to a constant mean of squares: with State = bfloat16 a
/// weight would go 1.4 times as far as it should.
///
/// Without a master copy, nearest rounding loses every update that is small for the weight's format; see
/// mp::weight_update for what else there is. State in bfloat16 loses the decay of the mean square in the same
/// way, since 1 - beta2 is below its spacing: keep it in float, or round stochastically.
///
///     mp::adamw<mp::bfloat16, mp::bfloat16, mp::bfloat16, float> optimizer(
///         {{"weight", weights, gradient}}, {.low_precision_update = mp::weight_update::kahan});
template <class Weight, class Gradient = Weight, class Master = float, class State = Master>
class adamw : public optimizer<adamw_options, Weight, Gradient, Master, State> {
    using base = optimizer<adamw_options, Weight, Gradient, Master, State>;

public:
    using base::base;

    /// The mean of the gradients of a parameter, m; in a reduced State m / (1 - beta1^t).
    [[nodiscard]] std::span<const State> gradient_mean(std::size_t index) const {
        return base::state_of("mp::adamw::gradient_mean", index, 0);
    }

    /// The mean of the squares of the gradients of a parameter, v; in a reduced State v / (1 - beta2^t).
    [[nodiscard]] std::span<const State> gradient_mean_square(std::size_t index) const {
        return base::state_of("mp::adamw::gradient_mean_square", index, 1);
    }
};

/// Lion (Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms"). With gradient g, weight w,
/// momentum m:
///
///     w = w - learning_rate * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * w)
///     m = beta2 * m + (1 - beta2) * g
///
/// in float, where the sign of a zero is zero; see optimizer_base for the types, the protocol and the
/// precision. Every weight moves by the learning rate, whatever its gradient, so one array of state is
/// enough, and bfloat16 is enough for it; a loss scale that is left in the gradients does not show in a step,
/// but makes the momentum of steps before and after a change of the scale weigh too much or too little.
///
///     mp::lion<mp::bfloat16> optimizer({{"weight", weights, gradient}}, {.learning_rate = 1e-4,
///     .weight_decay = 0.3});
template <class Weight, class Gradient = Weight, class Master = float, class State = Master>
class lion : public optimizer<lion_options, Weight, Gradient, Master, State> {
    using base = optimizer<lion_options, Weight, Gradient, Master, State>;

public:
    using base::base;

    /// The momentum of a parameter, m.
    [[nodiscard]] std::span<const State> momentum(std::size_t index) const {
        return base::state_of("mp::lion::momentum", index, 0);
    }
};

}}  // namespace mp
