// SPDX-License-Identifier: MIT
/// \file
/// The library's own ways to run a model, each one line: mp::autocast_region region(preset). Those of other
/// systems are in <mp/frontends/compat/presets.hpp>.
#pragma once

#include <mp/nn/autocast/precision.hpp>
#include <mp/nn/autocast/region.hpp>

namespace mp::autocast::presets {

/// The categories that the library's ops and yours have by themselves.
inline constexpr preset fp16{"fp16", precision::fp16, &own_categories, true,
                             "the ops' own categories, in half"};
inline constexpr preset bf16{"bf16", precision::bf16, &own_categories, true,
                             "the ops' own categories, in bfloat16"};
inline constexpr preset fp8_hybrid{
    "fp8_hybrid", precision::fp8, &own_categories, true,
    "operands of products in e4m3, incoming gradients in e5m2, the rest in bfloat16"};
inline constexpr preset off{"off", precision::off, &own_categories, true, "no autocast"};

}  // namespace mp::autocast::presets
