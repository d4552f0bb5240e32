// SPDX-License-Identifier: MIT
/// \file
/// What Keras's policies do with ops, as a list, presets with it, and regions for dtype policies of layers, Keras's and
/// JMP's.
#pragma once

#include <mp/frontends/compat/keras/dtype_policy.hpp>
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

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// The options of a region in which ops run as in a layer with this policy: all in its compute format, losses
/// in float; a policy that computes in float32 turns autocast off. In which format parameters are kept and
/// results handed on is up to the arrays of the program. Throws argument_error for compute formats that
/// regions do not have.
///
///     mp::autocast_region layer(options_of(policies.at("encoder/dense")));   // of a dtype_policy_map
///     mp::autocast_region model(options_of(dtype_policy_from_jmp("p=f32,c=bf16,o=f32")));
inline autocast_options options_of(const dtype_policy& policy) {
    const precision value =
        detail::precision_of("mp::autocast::options_of", "policy.compute", policy.compute);
    return {.cpu = value, .cuda = value, .list = &lists::keras};
}

}}  // namespace mp::autocast
