// expects: this gradient still carries its loss scale; call unscale of the loss
// SPDX-License-Identifier: MIT
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>

void bad(mp::sgd<float>& optimizer, mp::scaled_gradient<float> gradient) {
    optimizer.step(gradient);
}
