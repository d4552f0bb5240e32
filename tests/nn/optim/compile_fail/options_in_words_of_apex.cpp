// expects: clip_gradient_norm for max_grad_norm
// SPDX-License-Identifier: MIT
// Apex says lr, and clips in the optimizer.
#include <mp/optim.hpp>

#include <vector>

std::vector<float> weights(4), gradient(4);
mp::lamb<float> optimizer({{"weight", weights, gradient}}, {.lr = 6e-3, .eps = 1e-6, .max_grad_norm = 1.0});
