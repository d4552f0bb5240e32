// SPDX-License-Identifier: MIT
/// \file
/// What clipping multiplies gradients by, for optimizers and iterations.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Throws argument_error unless `limit` is positive.
inline void require_limit(std::string_view function, std::string_view argument, double limit) {
    if (is_nan(limit) || !(limit > 0.0)) throw_argument(function, argument, limit, "must be greater than 0");
}

/// What gradients of this norm are multiplied by so that it is at most max_norm; 1 where the norm is not
/// finite. On a host under default_floating_point_modes.
MP_HOST_DEVICE inline float clip_factor(double norm, double max_norm) {
    if (is_non_finite(norm)) return 1.0F;
    const double factor = double_divide(max_norm, double_add(norm, 1e-6));
    return factor < 1.0 ? static_cast<float>(factor) : 1.0F;
}

}}  // namespace mp::detail
