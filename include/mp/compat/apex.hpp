// SPDX-License-Identifier: MIT
/// \file
/// For those who come from NVIDIA's Apex: the levels O0 to O3 and what they set, its op lists, presets, loss
/// scalers and their states.
#pragma once

#include <mp/compat/apex/levels.hpp>
#include <mp/compat/apex/op_lists.hpp>
#include <mp/compat/apex/presets.hpp>
#include <mp/compat/apex/region.hpp>
#include <mp/compat/apex/scaler.hpp>
#include <mp/compat/apex/state.hpp>
