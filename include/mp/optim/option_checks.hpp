// SPDX-License-Identifier: MIT
/// \file
/// Checks of the numbers that configure an optimizer. They look at bits, so -ffast-math cannot remove them.
#pragma once

#include <mp/error.hpp>
#include <mp/scaling/scale_checks.hpp>

#include <string_view>

namespace mp::detail {

/// Throws argument_error unless `value` is finite and not negative.
inline void require_non_negative(std::string_view function, std::string_view argument, double value) {
    if (is_non_finite(value) || !(value >= 0.0)) {
        throw_argument(function, argument, value, "must be finite and not negative");
    }
}

/// Throws argument_error unless `value` is in [0, 1), as a momentum must be.
inline void require_fraction(std::string_view function, std::string_view argument, double value) {
    if (is_non_finite(value) || !(value >= 0.0 && value < 1.0)) {
        throw_argument(function, argument, value, "must be at least 0 and less than 1");
    }
}

}  // namespace mp::detail
