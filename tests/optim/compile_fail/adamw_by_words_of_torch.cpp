// expects: lr is called learning_rate here.*betas are two options here, beta1 and beta2.*eps is called epsilon here
// SPDX-License-Identifier: MIT
// Also where the compiler first has to choose between options for all parameters and for each group.
#include <mp/optim.hpp>

#include <vector>

void use(std::vector<float>& w, std::vector<float>& g) {
    mp::adamw<float> first({{"w", w, g}}, {.lr = 1e-3});
    mp::adamw<float> second({{"w", w, g}}, {.betas = {0.9, 0.95}, .weight_decay = 0.1});
    mp::adamw<float> third({{"w", w, g}}, {.eps = 1e-6});
}
