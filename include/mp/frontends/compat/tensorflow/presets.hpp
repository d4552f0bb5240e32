// SPDX-License-Identifier: MIT
/// \file
/// TensorFlow's ways to run a model in mixed precision: mp::autocast_region region(preset).
#pragma once

#include <mp/frontends/compat/tensorflow/op_lists.hpp>
#include <mp/nn/autocast/precision.hpp>
#include <mp/nn/autocast/region.hpp>

namespace mp::autocast::presets {

/// TensorFlow's graph rewrite, as far as a single op can tell: an op in `infer` takes the widest type of its
/// arguments. <mp/frontends/compat/tensorflow/graph_rewrite.hpp> colours a whole graph.
inline constexpr preset tensorflow{"tensorflow", precision::fp16, &lists::tensorflow, true,
                                   "TensorFlow's auto_mixed_precision, without its graph"};
inline constexpr preset tensorflow_bfloat16{"tensorflow_bfloat16", precision::bf16,
                                            &lists::tensorflow_bfloat16, true,
                                            "TensorFlow's auto_mixed_precision_onednn_bfloat16"};

}  // namespace mp::autocast::presets
