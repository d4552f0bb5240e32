// expects: an optimizer.s options have these names in mp: learning_rate for lr
// SPDX-License-Identifier: MIT
// torch says lr.
#include <mp/optim.hpp>

#include <vector>

std::vector<float> weights(4), gradient(4);
mp::adamw<float> optimizer({{"weight", weights, gradient}}, {.lr = 1e-3, .betas = {0.9, 0.95}});
