// expects: init_scale is called initial_scale here.*scale_window is called loss_scale_window here, as in the configuration file.*min_scale is called min_loss_scale here.*delayed_shift is called hysteresis here.*initial_scale_power is initial_scale here, 2 to that power
// SPDX-License-Identifier: MIT
// The words of its class, then that of its configuration file.
#include <mp/loss_scaling.hpp>

const mp::deepspeed_policy of_class{
    .init_scale = 65536.0, .scale_window = 1000, .min_scale = 1.0, .delayed_shift = 2};
const mp::deepspeed_fused_policy of_file{.initial_scale_power = 16};
