// expects: LARS and LAMB are for CPUs
// SPDX-License-Identifier: MIT
// Their rule alone would be a step without trust ratios.
#include <mp/gpu.hpp>
#include <mp/optim.hpp>

mp::device_optimizer<mp::lamb_options> on_device = mp::make_device_optimizer(mp::lamb_options{});
