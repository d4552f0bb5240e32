// expects: initial_scale for init_scale
// SPDX-License-Identifier: MIT
// torch says init_scale.
#include <mp/mp.hpp>

mp::loss_scaler<mp::pytorch_policy> scaler({.init_scale = 1024.0F});
