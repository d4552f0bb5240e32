// SPDX-License-Identifier: MIT
/// \file
/// Regions for dtype policies of layers, Keras's and JMP's.
#pragma once

#include <mp/frontends/compat/keras/dtype_policy.hpp>
#include <mp/frontends/compat/keras/op_list.hpp>
#include <mp/frontends/compat/region_precision.hpp>
#include <mp/nn/autocast/precision.hpp>
#include <mp/nn/autocast/region.hpp>

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
