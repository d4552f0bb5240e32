// expects: this gradient has no loss scale in it any more
// SPDX-License-Identifier: MIT
#include <mp/loss_scaling.hpp>

void bad(mp::scaled_gradient<float> gradient, std::span<float> buffer) {
    const auto clean = mp::unscale_and_check(mp::cpu{}, gradient, buffer);
    const auto again = mp::unscale_and_check(mp::cpu{}, clean.gradient, buffer);
    static_cast<void>(again);
}
