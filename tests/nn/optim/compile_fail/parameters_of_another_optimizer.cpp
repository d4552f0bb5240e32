// expects: weights or gradient of a parameter have another type
// SPDX-License-Identifier: MIT
// As from a parameter_store of another format.
#include <mp/half.hpp>
#include <mp/optim.hpp>

#include <vector>

std::vector<mp::parameter<mp::half>> parameters;
mp::adafactor<float> optimizer(mp::cpu{}, parameters);
