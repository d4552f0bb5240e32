// expects: the gradient still carries its loss scale and the sum
// SPDX-License-Identifier: MIT
#include <mp/loss_scaling.hpp>

void bad(mp::unscaled_gradient<float> sum, mp::scaled_gradient<float> gradient) {
    mp::add_gradient(sum, gradient);
}
