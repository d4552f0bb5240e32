// SPDX-License-Identifier: MIT
/// \file
/// The precision of a region for a format in which a model or a layer computes.
#pragma once

#include <mp/error.hpp>
#include <mp/nn/autocast/element_format.hpp>
#include <mp/nn/autocast/precision.hpp>

#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

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

}}  // namespace mp::detail
