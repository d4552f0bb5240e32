// SPDX-License-Identifier: MIT
/// \file
/// What Keras's policies do with ops, as a list.
#pragma once

#include <mp/frontends/compat/whole_model.hpp>
#include <mp/nn/autocast/category.hpp>
#include <mp/nn/autocast/op_list.hpp>

namespace mp::autocast::lists {

/// Every op of every layer in the compute type of the policy, as Keras's mixed_float16 and mixed_bfloat16
/// have it: a layer casts its inputs and variables, whatever it computes; softmax as well, unless its layer
/// is given the policy float32, for which there are rules by layer. Losses are computed in Keras's floatx,
/// float32.
///
/// Source: keras-team/keras, keras/src/dtype_policies/dtype_policy.py at commit 3422977a; for losses, what
/// keras.losses.Loss documents of its argument `dtype`. Keras has no list: the names of losses are PyTorch's.
/// JMP's policies with c=f16 do the same.
inline constexpr op_list keras{"keras", rules::losses_in_full, op_category::lower_precision};

}  // namespace mp::autocast::lists
