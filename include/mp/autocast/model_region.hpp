// SPDX-License-Identifier: MIT
/// \file
/// Regions for policies of whole layers or models: Keras's and JMP's dtype policies, Apex's levels.
#pragma once

#include <mp/autocast/apex.hpp>
#include <mp/autocast/dtype_policy.hpp>
#include <mp/autocast/element_format.hpp>
#include <mp/autocast/lists/apex.hpp>
#include <mp/autocast/lists/whole_model.hpp>
#include <mp/autocast/op_list.hpp>
#include <mp/autocast/precision.hpp>
#include <mp/autocast/region.hpp>
#include <mp/error.hpp>

#include <string_view>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// The precision of a region whose ops compute in this format.
inline precision precision_of(std::string_view function, std::string_view argument, element_format format) {
    switch (format) {
        case element_format::f16:
            return precision::fp16;
        case element_format::bf16:
            return precision::bf16;
        case element_format::f32:
            return precision::off;
        default:
            throw_argument(function, argument, name_of(format),
                           "must be float16, bfloat16 or float32, the formats that regions compute in");
    }
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE

namespace mp::autocast::inline MP_ISA_NAMESPACE {

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

/// The options of a region in which ops run as after amp.initialize with these properties: by Apex's list
/// with O1, all in the model's format with O2 and O3 (batch norms in float where keep_batchnorm_fp32 is true,
/// losses always), and as they are with O0. Throws argument_error for model formats that regions do not have.
///
///     mp::autocast_region region(options_of(apex_properties_of(apex_level::o2)));
inline autocast_options options_of(const apex_properties& properties) {
    if (casts_ops(properties)) return {.cpu = precision::fp16, .cuda = precision::fp16, .list = &lists::apex};
    const precision value = detail::precision_of("mp::autocast::options_of", "properties.cast_model_type",
                                                 properties.cast_model_type.value_or(element_format::f32));
    const bool norms_in_float = properties.keep_batchnorm_fp32.value_or(false);
    return {.cpu = value, .cuda = value, .list = norms_in_float ? &lists::apex_o2 : &lists::apex_o3};
}

}  // namespace mp::autocast::inline MP_ISA_NAMESPACE
