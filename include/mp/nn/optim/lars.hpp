// SPDX-License-Identifier: MIT
/// \file
/// Stochastic gradient descent with layer-wise adaptive rates.
#pragma once

#include <mp/nn/optim/lars_options.hpp>
#include <mp/nn/optim/layerwise_optimizer.hpp>

#include <cstddef>
#include <span>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// LARS (You, Gitman and Ginsburg 2017, "Large Batch Training of Convolutional Networks"), as Apex's LARC around
/// torch.optim.SGD computes it. With gradient g, weight w, momentum buffer b of a parameter:
///
///     ratio = trust_coefficient * |w| / (|g| + weight_decay * |w| + epsilon)     1 where |w| or |g| is 0
///     g = ratio * (g + weight_decay * w)
///     b = momentum * b + (1 - dampening) * g                                     at the first update b = g
///     w = w - learning_rate * (nesterov ? g + momentum * b : momentum != 0 ? b : g)
///
/// With options.clip, the ratio is min(ratio / learning_rate, 1). Norms and ratio are computed in double, the ratio
/// rounded to float, elements in float; see layerwise_optimizer for the norms and mp::sgd for weights without a master
/// copy. Unlike Apex, weights decay where a norm is 0, too.
///
/// Biases and the weights of normalization are usually in a group without adaptation and decay:
///
///     mp::lars<mp::half> optimizer({{"weight", w, dw}, {"bias", b, db, 1}},
///                                  {{.learning_rate = 2.0, .weight_decay = 5e-5},
///                                   {.learning_rate = 2.0, .weight_decay = 0.0, .layer_adaptation = false}});
template <class Weight, class Gradient = Weight, class Master = float, class State = Master>
class lars : public layerwise_optimizer<lars_options, Weight, Gradient, Master, State> {
    using base = layerwise_optimizer<lars_options, Weight, Gradient, Master, State>;

public:
    using base::base;

    /// The momentum buffer of a parameter; empty without momentum.
    [[nodiscard]] std::span<const State> momentum(std::size_t index) const {
        return base::state_of("mp::lars::momentum", index, 0);
    }
};

}}  // namespace mp
