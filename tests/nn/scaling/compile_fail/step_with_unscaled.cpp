// expects: these gradients carry no loss scale
// SPDX-License-Identifier: MIT
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>

void bad(mp::sgd<float>& optimizer, std::span<const mp::unscaled_gradient<float>> gradients) {
    optimizer.unscale_gradients_from(gradients);
}
