// SPDX-License-Identifier: MIT
/// \file
/// For those who come from DeepSpeed: its loss scalers and their states. Its configuration file, which needs
/// nlohmann-json, is read by <mp/frontends/compat/deepspeed/configuration.hpp>.
#pragma once

#include <mp/frontends/compat/deepspeed/scaler.hpp>
#include <mp/frontends/compat/states.hpp>
