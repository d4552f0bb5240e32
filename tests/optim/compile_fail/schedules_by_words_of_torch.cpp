// expects: start_factor is called first_factor here.*total_iters is called steps here.*T_max is called steps here.*eta_min is final_factor here, a fraction of the learning rate.*step_size is called every here.*gamma is called factor here.*total_steps is called steps here.*pct_start is called warmup_fraction here.*div_factor is called initial_divisor here.*final_div_factor is called final_divisor here
// SPDX-License-Identifier: MIT
#include <mp/optim.hpp>

const mp::linear_warmup warmup{.start_factor = 0.1, .total_iters = 100};
const mp::cosine_decay cosine{.T_max = 1000, .eta_min = 1e-5};
const mp::step_decay step{.step_size = 30, .gamma = 0.1};
const mp::one_cycle cycle{.total_steps = 100, .pct_start = 0.3, .div_factor = 25.0, .final_div_factor = 1e4};
