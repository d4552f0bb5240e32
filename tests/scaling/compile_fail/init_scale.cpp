// expects: init_scale is called initial_scale here
// SPDX-License-Identifier: MIT
#include <mp/loss_scaling.hpp>

mp::loss_scaler scaler(mp::pytorch_policy{.init_scale = 65536, .growth_interval = 100});
