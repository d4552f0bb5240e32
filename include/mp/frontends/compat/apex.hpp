// SPDX-License-Identifier: MIT
/// \file
/// For those who come from NVIDIA's Apex: the levels O0 to O3 and what they set, its op lists, presets, loss
/// scalers and their states.
#pragma once

#include <mp/frontends/compat/apex/levels.hpp>
#include <mp/frontends/compat/apex/op_lists.hpp>
#include <mp/frontends/compat/apex/scaler.hpp>
#include <mp/frontends/compat/states.hpp>
