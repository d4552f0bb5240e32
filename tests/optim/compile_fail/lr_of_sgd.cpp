// expects: lr is called learning_rate here
// SPDX-License-Identifier: MIT
#include <mp/optim.hpp>

#include <vector>

void use(std::vector<float>& w, std::vector<float>& g) {
    mp::sgd<float> optimizer({{"w", w, g}}, {.lr = 0.1, .momentum = 0.9});
}
