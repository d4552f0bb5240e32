// expects: eps are two options here, epsilon1 and epsilon2.*d is called clip_threshold here.*scale_parameter is called scale_by_weights here.*decay_rate is called beta2_decay here, and is positive
// SPDX-License-Identifier: MIT
// torch's words, then those of transformers.
#include <mp/optim.hpp>

const mp::adafactor_options torch{.eps = {1e-30, 1e-3}, .d = 1.0};
const mp::adafactor_options transformers{.scale_parameter = false, .decay_rate = -0.8};
