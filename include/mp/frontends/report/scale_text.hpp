// SPDX-License-Identifier: MIT
/// \file
/// Loss scales in tables and charts.
#pragma once

#include <mp/error.hpp>
#include <mp/nn/scaling/scale_checks.hpp>

#include <charconv>
#include <cmath>
#include <string>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A human-readable scale: powers of two beyond 1024 as such, "2^16", other numbers with up to six digits.
inline std::string scale_text(double scale) {
    if (is_non_finite(scale)) return is_nan(scale) ? "NaN" : scale > 0.0 ? "infinity" : "-infinity";
    int exponent = 0;
    const double fraction = std::frexp(scale, &exponent);
    const bool power = !(fraction < 0.5) && !(fraction > 0.5);
    if (power && (exponent > 11 || exponent < -2)) return "2^" + error_text(exponent - 1);
    char buffer[64];
    const std::to_chars_result end =
        std::to_chars(buffer, buffer + sizeof buffer, scale, std::chars_format::general, 6);
    return {buffer, end.ptr};
}

/// Whether a scale has a place on a logarithmic axis.
inline bool is_drawable(float scale) noexcept {
    return !is_non_finite(scale) && scale > 0.0F;
}

}}  // namespace mp::detail
