// SPDX-License-Identifier: MIT
/// \file
/// What NVIDIA writes about ops in mixed precision, as a list and a preset.
#pragma once

#include <mp/nn/autocast/list_notation.hpp>
#include <mp/nn/autocast/op_list.hpp>
#include <mp/nn/autocast/precision.hpp>
#include <mp/nn/autocast/region.hpp>

namespace mp::autocast::lists {
namespace rules {

// clang-format off
inline constexpr op_rule nvidia[] = {
    {"batch_norm"sv, full}, {"conv2d"sv, low}, {"convolution"sv, low}, {"exp"sv, full}, {"gemm"sv, low},
    {"loss"sv, full}, {"softmax"sv, full}, {"sum"sv, full},
};
// clang-format on

}  // namespace rules

/// NVIDIA's description of which ops belong in which precision, where no framework is named. It gives kinds
/// of ops with examples, not a complete list: ops for which there are Tensor Cores run in half, ops that need
/// range or long sums in float, and any other op follows its arguments and takes the widest type where they
/// differ, which is `unlisted`. `gemm` and `loss` stand for such a kind.
///
/// Rests on: NVIDIA/apex, docs/source/amp.rst at commit e13873debc46 (gemm, convolution, softmax) and
/// apex/amp/README.md at commit 6066ddd575d5 (conv2d, exp, loss, and the rule for any other op); section 3.3
/// of Micikevicius et al., Mixed Precision Training, 2018, for sum and the statistics of batch_norm, from a
/// summary of it. The text of that section and of the Mixed Precision Training Guide was not at hand.
inline constexpr op_list nvidia{"nvidia", rules::nvidia, op_category::promote_widest};

}  // namespace mp::autocast::lists

namespace mp::autocast::presets {

inline constexpr preset nvidia{"nvidia", precision::fp16, &lists::nvidia, true,
                               "NVIDIA's description: allow, deny, and infer for the rest"};

}  // namespace mp::autocast::presets
