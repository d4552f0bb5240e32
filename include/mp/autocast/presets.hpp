// SPDX-License-Identifier: MIT
/// \file
/// Published ways to run a model in mixed precision, each one line: mp::autocast_region region(preset).
#pragma once

#include <mp/autocast/lists.hpp>
#include <mp/autocast/precision.hpp>
#include <mp/autocast/region.hpp>

#include <array>
#include <string_view>

namespace mp::autocast::presets {

/// The categories that the library's ops and yours have by themselves.
inline constexpr preset fp16{"fp16", precision::fp16, &own_categories, true,
                             "the ops' own categories, in half"};
inline constexpr preset bf16{"bf16", precision::bf16, &own_categories, true,
                             "the ops' own categories, in bfloat16"};
inline constexpr preset fp8_hybrid{
    "fp8_hybrid", precision::fp8, &own_categories, true,
    "factors of products in e4m3, incoming gradients in e5m2, the rest in bfloat16"};
inline constexpr preset off{"off", precision::off, &own_categories, true, "no autocast"};

/// torch.autocast on CUDA, whose default is float16, and on the CPU, whose default is bfloat16.
inline constexpr preset pytorch_cuda{"pytorch_cuda", precision::fp16, &lists::pytorch_cuda, true,
                                     "torch.autocast(\"cuda\")"};
inline constexpr preset pytorch_cuda_bfloat16{"pytorch_cuda_bfloat16", precision::bf16, &lists::pytorch_cuda,
                                              true, "torch.autocast(\"cuda\", dtype=torch.bfloat16)"};
inline constexpr preset pytorch_cpu{"pytorch_cpu", precision::bf16, &lists::pytorch_cpu, true,
                                    "torch.autocast(\"cpu\")"};

/// TensorFlow's graph rewrite, as far as a single op can tell: an op in `infer` takes the widest type of its
/// arguments. <mp/autocast/graph_rewrite.hpp> colours a whole graph.
inline constexpr preset tensorflow{"tensorflow", precision::fp16, &lists::tensorflow, true,
                                   "TensorFlow's auto_mixed_precision, without its graph"};
inline constexpr preset tensorflow_bfloat16{"tensorflow_bfloat16", precision::bf16,
                                            &lists::tensorflow_bfloat16, true,
                                            "TensorFlow's auto_mixed_precision_onednn_bfloat16"};

inline constexpr preset keras_float32{"keras_float32", precision::off, &own_categories, true,
                                      "Keras's dtype policy float32"};
inline constexpr preset keras_mixed_float16{"keras_mixed_float16", precision::fp16, &lists::keras, true,
                                            "Keras's dtype policy mixed_float16: every layer in half"};
inline constexpr preset keras_mixed_bfloat16{"keras_mixed_bfloat16", precision::bf16, &lists::keras, true,
                                             "Keras's dtype policy mixed_bfloat16: every layer in bfloat16"};

/// Apex's optimisation levels; <mp/autocast/apex.hpp> has all of their properties.
inline constexpr preset apex_o0{"apex_o0", precision::off, &own_categories, true, "Apex O0: float"};
inline constexpr preset apex_o1{"apex_o1", precision::fp16, &lists::apex, true, "Apex O1: op by op"};
inline constexpr preset apex_o2{"apex_o2", precision::fp16, &lists::apex_o2, true,
                                "Apex O2: the model in half, batch norms and master weights in float"};
inline constexpr preset apex_o3{"apex_o3", precision::fp16, &lists::apex_o3, false,
                                "Apex O3: everything in half"};

inline constexpr preset mxnet{"mxnet", precision::fp16, &lists::mxnet, true, "MXNet's amp.init()"};
inline constexpr preset mxnet_bfloat16{"mxnet_bfloat16", precision::bf16, &lists::mxnet_bfloat16, true,
                                       "MXNet's amp.init(\"bfloat16\")"};

inline constexpr preset nvidia{"nvidia", precision::fp16, &lists::nvidia, true,
                               "NVIDIA's description: allow, deny, and infer for the rest"};

/// JMP's policy "p=f32,c=f16,o=f32": layers compute in half, whatever they compute.
inline constexpr preset jmp{"jmp", precision::fp16, &lists::keras, true, "JMP's p=f32,c=f16,o=f32"};

/// All of them, in the order in which they stand above.
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
