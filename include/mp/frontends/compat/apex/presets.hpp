// SPDX-License-Identifier: MIT
/// \file
/// Apex's ways to run a model in mixed precision: mp::autocast_region region(preset).
#pragma once

#include <mp/frontends/compat/apex/op_lists.hpp>
#include <mp/nn/autocast/precision.hpp>
#include <mp/nn/autocast/region.hpp>

namespace mp::autocast::presets {

/// Apex's optimisation levels; <mp/frontends/compat/apex/levels.hpp> has all of their properties.
inline constexpr preset apex_o0{"apex_o0", precision::off, &own_categories, true, "Apex O0: float"};
inline constexpr preset apex_o1{"apex_o1", precision::fp16, &lists::apex, true, "Apex O1: op by op"};
inline constexpr preset apex_o2{"apex_o2", precision::fp16, &lists::apex_o2, true,
                                "Apex O2: the model in half, batch norms and master weights in float"};
inline constexpr preset apex_o3{"apex_o3", precision::fp16, &lists::apex_o3, false,
                                "Apex O3: everything in half"};

}  // namespace mp::autocast::presets
