// SPDX-License-Identifier: MIT
/// \file
/// What systems do that cast a model as a whole instead of op by op: Keras's policies, Apex's O2 and O3, JMP.
#pragma once

#include <mp/autocast/lists/notation.hpp>
#include <mp/autocast/op_list.hpp>

namespace mp::autocast::lists {
namespace rules {

// clang-format off
inline constexpr op_rule losses_in_full[] = {
    {"binary_cross_entropy"sv, full}, {"binary_cross_entropy_with_logits"sv, full},
    {"cross_entropy_loss"sv, full}, {"huber_loss"sv, full}, {"kl_div"sv, full}, {"l1_loss"sv, full},
    {"mse_loss"sv, full}, {"nll_loss"sv, full},
};

inline constexpr op_rule norms_and_losses_in_full[] = {
    {"batch_norm"sv, full}, {"binary_cross_entropy"sv, full}, {"binary_cross_entropy_with_logits"sv, full},
    {"cross_entropy_loss"sv, full}, {"cudnn_batch_norm"sv, full}, {"huber_loss"sv, full},
    {"kl_div"sv, full}, {"l1_loss"sv, full}, {"mse_loss"sv, full}, {"native_batch_norm"sv, full},
    {"nll_loss"sv, full},
};
// clang-format on

}  // namespace rules

/// Every op of every layer in the compute type of the policy, as Keras's mixed_float16 and mixed_bfloat16
/// have it: a layer casts its inputs and variables, whatever it computes; softmax as well, unless its layer
/// is given the policy float32, for which there are rules by layer. Losses are computed in Keras's floatx,
/// float32.
///
/// Source: keras-team/keras, keras/src/dtype_policies/dtype_policy.py at commit 3422977a; for losses, what
/// keras.losses.Loss documents of its argument `dtype`. Keras has no list: the names of losses are PyTorch's.
/// JMP's policies with c=f16 do the same.
inline constexpr op_list keras{"keras", rules::losses_in_full, op_category::lower_precision};

/// Apex's O2: parameters and inputs in half, batch norms in float; what the model returns is float, so that
/// the loss is. Apex's lists have no part in it.
///
/// Source: NVIDIA/apex, apex/amp/_initialize.py and apex/fp16_utils before amp was removed (cb65b8ed^). Names
/// are PyTorch's.
inline constexpr op_list apex_o2{"apex_o2", rules::norms_and_losses_in_full, op_category::lower_precision};

/// Apex's O3: everything in half, batch norms included; outputs are cast to float, so that the loss is float.
/// Source: as for apex_o2.
inline constexpr op_list apex_o3{"apex_o3", rules::losses_in_full, op_category::lower_precision};

static_assert(is_sorted_list(rules::losses_in_full));
static_assert(is_sorted_list(rules::norms_and_losses_in_full));

}  // namespace mp::autocast::lists
