// SPDX-License-Identifier: MIT
/// \file
/// Steps by the sign of a momentum.
#pragma once

#include <mp/nn/optim/lion_options.hpp>
#include <mp/nn/optim/optimizer.hpp>

#include <cstddef>
#include <span>

namespace mp { inline namespace MP_ISA_NAMESPACE {

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
