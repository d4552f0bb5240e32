// SPDX-License-Identifier: MIT
/// \file
/// Regions for Apex's optimisation levels.
#pragma once

#include <mp/frontends/compat/apex/levels.hpp>
#include <mp/frontends/compat/apex/op_lists.hpp>
#include <mp/frontends/compat/region_precision.hpp>
#include <mp/nn/autocast/element_format.hpp>
#include <mp/nn/autocast/precision.hpp>
#include <mp/nn/autocast/region.hpp>

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

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

}}  // namespace mp::autocast
