// SPDX-License-Identifier: MIT
/// \file
/// Stochastic gradient descent with momentum.
#pragma once

#include <mp/nn/optim/optimizer.hpp>
#include <mp/nn/optim/sgd_options.hpp>

#include <cstddef>
#include <span>

namespace mp { inline namespace MP_ISA_NAMESPACE {

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

}}  // namespace mp
