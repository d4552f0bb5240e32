// SPDX-License-Identifier: MIT
/// \file
/// MXNet's ways to run a model in mixed precision: mp::autocast_region region(preset).
#pragma once

#include <mp/frontends/compat/mxnet/op_lists.hpp>
#include <mp/nn/autocast/precision.hpp>
#include <mp/nn/autocast/region.hpp>

namespace mp::autocast::presets {

inline constexpr preset mxnet{"mxnet", precision::fp16, &lists::mxnet, true, "MXNet's amp.init()"};
inline constexpr preset mxnet_bfloat16{"mxnet_bfloat16", precision::bf16, &lists::mxnet_bfloat16, true,
                                       "MXNet's amp.init(\"bfloat16\")"};

}  // namespace mp::autocast::presets
