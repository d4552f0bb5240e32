// SPDX-License-Identifier: MIT
/// \file
/// Adam with layer-wise adaptive rates.
#pragma once

#include <mp/nn/optim/lamb_options.hpp>
#include <mp/nn/optim/layerwise_optimizer.hpp>

#include <cstddef>
#include <span>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// LAMB (You et al. 2019, "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes") as Apex's
/// FusedLAMB computes it. With gradient g, weight w, means m and v of a parameter, at the t-th update:
///
///     m = beta1 * m + (1 - beta1) * g
///     v = beta2 * v + (1 - beta2) * g * g
///     u = m / (1 - beta1^t) / (sqrt(v) / sqrt(1 - beta2^t) + epsilon) + weight_decay * w
///     w = w - learning_rate * (|w| / |u|) * u
///
/// where the trust ratio |w| / |u| is 1 if a norm is 0, and without weight_decay unless there is use_nvlamb: biases and
/// the weights of normalization are usually in a group without decay. Options leave out the bias corrections, and the
/// 1 - beta1 (grad_averaging). With adam_w_mode off, g = g + weight_decay * w first, and u has no decay.
///
/// Norms and ratio are computed in double; the learning rate times the ratio is rounded to float, elements are computed
/// in float; see layerwise_optimizer for the norms, and mp::adamw for State and for weights without a master copy.
///
/// FusedLAMB clips the norm of all gradients to max_grad_norm = 1 by itself; here that is clip_gradient_norm:
///
///     mp::lamb<mp::half> optimizer({{"weight", w, dw}, {"bias", b, db, 1}},
///                                  {{.learning_rate = 6e-3}, {.learning_rate = 6e-3, .weight_decay = 0.0}});
///     mp::training_iteration iteration(scaler, optimizer);
///     ...
///     iteration.clip_global_gradient_norm(1.0);
template <class Weight, class Gradient = Weight, class Master = float, class State = Master>
class lamb : public layerwise_optimizer<lamb_options, Weight, Gradient, Master, State> {
    using base = layerwise_optimizer<lamb_options, Weight, Gradient, Master, State>;

public:
    using base::base;

    /// The mean of the gradients of a parameter, m.
    [[nodiscard]] std::span<const State> gradient_mean(std::size_t index) const {
        return base::state_of("mp::lamb::gradient_mean", index, 0);
    }

    /// The mean of the squares of the gradients of a parameter, v.
    [[nodiscard]] std::span<const State> gradient_mean_square(std::size_t index) const {
        return base::state_of("mp::lamb::gradient_mean_square", index, 1);
    }
};

}}  // namespace mp
