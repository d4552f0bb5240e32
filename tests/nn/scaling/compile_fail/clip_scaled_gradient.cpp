// expects: this gradient still carries the loss scale
// SPDX-License-Identifier: MIT
#include <mp/loss_scaling.hpp>

double bad(mp::scaled_gradient<float> gradient) {
    return mp::clip_gradient_norm(gradient, 1.0);
}
