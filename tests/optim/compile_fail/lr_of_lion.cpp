// expects: lr is called learning_rate here.*betas are two options here, beta1 and beta2
// SPDX-License-Identifier: MIT
#include <mp/optim.hpp>

#include <vector>

void use(std::vector<float>& w, std::vector<float>& g) {
    mp::lion<float> optimizer({{"w", w, g}}, {.lr = 1e-4, .betas = {0.9, 0.99}});
}
