// SPDX-License-Identifier: MIT
/// \file
/// Adam with decoupled weight decay.
#pragma once

#include <mp/nn/optim/adamw_options.hpp>
#include <mp/nn/optim/optimizer.hpp>

#include <cstddef>
#include <span>

namespace mp { inline namespace MP_ISA_NAMESPACE {

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

}}  // namespace mp
