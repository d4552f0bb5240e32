// expects: beta_1 is called beta1 here.*beta_2 is called beta2 here
// SPDX-License-Identifier: MIT
#include <mp/optim.hpp>

#include <vector>

void use(std::vector<float>& w, std::vector<float>& g) {
    mp::adamw<float> optimizer({{"w", w, g}}, {.beta_1 = 0.9, .beta_2 = 0.95});
}
