// SPDX-License-Identifier: MIT
/// \file
/// PyTorch's ways to run a model in mixed precision: mp::autocast_region region(preset).
#pragma once

#include <mp/frontends/compat/pytorch/op_lists.hpp>
#include <mp/nn/autocast/precision.hpp>
#include <mp/nn/autocast/region.hpp>

namespace mp::autocast::presets {

/// torch.autocast on CUDA, whose default is float16, and on the CPU, whose default is bfloat16.
inline constexpr preset pytorch_cuda{"pytorch_cuda", precision::fp16, &lists::pytorch_cuda, true,
                                     "torch.autocast(\"cuda\")"};
inline constexpr preset pytorch_cuda_bfloat16{"pytorch_cuda_bfloat16", precision::bf16, &lists::pytorch_cuda,
                                              true, "torch.autocast(\"cuda\", dtype=torch.bfloat16)"};
inline constexpr preset pytorch_cpu{"pytorch_cpu", precision::bf16, &lists::pytorch_cpu, true,
                                    "torch.autocast(\"cpu\")"};

}  // namespace mp::autocast::presets
