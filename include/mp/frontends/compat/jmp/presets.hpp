// SPDX-License-Identifier: MIT
/// \file
/// JMP's way to run a model in mixed precision: mp::autocast_region region(preset).
#pragma once

#include <mp/frontends/compat/keras/op_list.hpp>
#include <mp/nn/autocast/precision.hpp>
#include <mp/nn/autocast/region.hpp>

namespace mp::autocast::presets {

/// JMP's policy "p=f32,c=f16,o=f32": layers compute in half, whatever they compute.
inline constexpr preset jmp{"jmp", precision::fp16, &lists::keras, true, "JMP's p=f32,c=f16,o=f32"};

}  // namespace mp::autocast::presets
