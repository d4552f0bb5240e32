// expects: weights or gradient of a parameter have another type
// SPDX-License-Identifier: MIT
// The gradient of half weights is half too, unless the optimizer says so.
#include <mp/half.hpp>
#include <mp/optim.hpp>

#include <vector>

std::vector<mp::half> weights(4);
std::vector<float> gradient(4);
mp::adamw<mp::half> optimizer({{"weight", weights, gradient}}, {.learning_rate = 1e-3});
