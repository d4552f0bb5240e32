// SPDX-License-Identifier: MIT
/// \file
/// Published ways to run a model in mixed precision, each one line: mp::autocast_region region(preset).
#pragma once

#include <mp/frontends/compat/apex/op_lists.hpp>
#include <mp/frontends/compat/jmp/presets.hpp>
#include <mp/frontends/compat/keras/op_list.hpp>
#include <mp/frontends/compat/mxnet/op_lists.hpp>
#include <mp/frontends/compat/nvidia.hpp>
#include <mp/frontends/compat/pytorch/op_lists.hpp>
#include <mp/frontends/compat/tensorflow/op_lists.hpp>
#include <mp/nn/autocast/presets.hpp>
#include <mp/nn/autocast/region.hpp>

#include <array>
#include <string_view>

namespace mp::autocast::presets {

/// All of them, the library's own first.
inline constexpr std::array<const preset*, 20> all = {&off,
                                                      &fp16,
                                                      &bf16,
                                                      &fp8_hybrid,
                                                      &pytorch_cuda,
                                                      &pytorch_cuda_bfloat16,
                                                      &pytorch_cpu,
                                                      &tensorflow,
                                                      &tensorflow_bfloat16,
                                                      &keras_float32,
                                                      &keras_mixed_float16,
                                                      &keras_mixed_bfloat16,
                                                      &apex_o0,
                                                      &apex_o1,
                                                      &apex_o2,
                                                      &apex_o3,
                                                      &mxnet,
                                                      &mxnet_bfloat16,
                                                      &nvidia,
                                                      &jmp};

/// The preset of this name; null where there is none.
constexpr const preset* find(std::string_view name) noexcept {
    for (const preset* it : all) {
        if (it->name == name) return it;
    }
    return nullptr;
}

}  // namespace mp::autocast::presets
