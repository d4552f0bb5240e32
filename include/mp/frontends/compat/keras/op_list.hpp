// SPDX-License-Identifier: MIT
/// \file
/// What Keras's policies do with ops, as a list, and presets with it.
#pragma once

#include <mp/frontends/compat/whole_model.hpp>
#include <mp/nn/autocast/category.hpp>
#include <mp/nn/autocast/op_list.hpp>
#include <mp/nn/autocast/precision.hpp>
#include <mp/nn/autocast/region.hpp>

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

namespace mp::autocast::presets {

inline constexpr preset keras_float32{"keras_float32", precision::off, &own_categories, true,
                                      "Keras's dtype policy float32"};
inline constexpr preset keras_mixed_float16{"keras_mixed_float16", precision::fp16, &lists::keras, true,
                                            "Keras's dtype policy mixed_float16: every layer in half"};
inline constexpr preset keras_mixed_bfloat16{"keras_mixed_bfloat16", precision::bf16, &lists::keras, true,
                                             "Keras's dtype policy mixed_bfloat16: every layer in bfloat16"};

}  // namespace mp::autocast::presets
