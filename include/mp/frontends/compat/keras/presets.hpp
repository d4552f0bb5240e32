// SPDX-License-Identifier: MIT
/// \file
/// Keras's ways to run a model in mixed precision: mp::autocast_region region(preset).
#pragma once

#include <mp/frontends/compat/keras/op_list.hpp>
#include <mp/nn/autocast/precision.hpp>
#include <mp/nn/autocast/region.hpp>

namespace mp::autocast::presets {

inline constexpr preset keras_float32{"keras_float32", precision::off, &own_categories, true,
                                      "Keras's dtype policy float32"};
inline constexpr preset keras_mixed_float16{"keras_mixed_float16", precision::fp16, &lists::keras, true,
                                            "Keras's dtype policy mixed_float16: every layer in half"};
inline constexpr preset keras_mixed_bfloat16{"keras_mixed_bfloat16", precision::bf16, &lists::keras, true,
                                             "Keras's dtype policy mixed_bfloat16: every layer in bfloat16"};

}  // namespace mp::autocast::presets
