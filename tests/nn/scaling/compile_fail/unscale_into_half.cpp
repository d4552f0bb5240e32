// expects: writable_float_range
// SPDX-License-Identifier: MIT
// Unscaled gradients in half would underflow again.
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>

#include <vector>

void bad(std::vector<mp::half>& gradients) {
    mp::unscale_and_check(mp::cpu{}, gradients, 0.5F);
}
