// expects: scalable_optimizer
// SPDX-License-Identifier: MIT
#include <mp/loss_scaling.hpp>

struct plain_weights {};

void bad(mp::dynamic_loss_scaler& scaler, plain_weights& weights) {
    scaler.step(weights);
}
