// SPDX-License-Identifier: MIT
/// \file
/// Checks of the numbers that configure a scaler. They look at bits, so -ffast-math cannot remove them.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/nn/scaling/policy.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// True for infinities and NaNs.
MP_HOST_DEVICE constexpr bool is_non_finite(float value) noexcept {
    return (bit_cast<std::uint32_t>(value) & 0x7fffffffU) >= 0x7f800000U;
}

/// True for infinities and NaNs.
MP_HOST_DEVICE constexpr bool is_non_finite(double value) noexcept {
    return (bit_cast<std::uint64_t>(value) & 0x7fffffffffffffffU) >= 0x7ff0000000000000U;
}

/// True for NaNs.
MP_HOST_DEVICE constexpr bool is_nan(double value) noexcept {
    return (bit_cast<std::uint64_t>(value) & 0x7fffffffffffffffU) > 0x7ff0000000000000U;
}

/// Throws unless `scale` can be used: finite, positive and with a finite inverse.
constexpr void require_scale(std::string_view function, std::string_view argument, float scale) {
    if (is_non_finite(scale) || !(scale > 0.0F)) {
        throw_argument(function, argument, scale, "must be finite and greater than 0");
    }
    if (scale <= largest_scale_without_inverse) {
        throw_argument(function, argument, scale,
                       "must be greater than 2^-128, for its inverse to be a finite float");
    }
}

/// Throws unless `factor` is finite and greater than 1.
constexpr void require_growth_factor(std::string_view function, double factor,
                                     std::string_view argument = "growth_factor") {
    if (is_non_finite(factor) || !(factor > 1.0)) {
        throw_argument(function, argument, factor, "must be finite and greater than 1");
    }
}

/// Throws unless `factor` lies strictly between 0 and 1.
constexpr void require_backoff_factor(std::string_view function, double factor) {
    if (is_non_finite(factor) || !(factor > 0.0 && factor < 1.0)) {
        throw_argument(function, "backoff_factor", factor, "must be greater than 0 and less than 1");
    }
}

/// Throws unless `interval` is at least 1.
constexpr void require_growth_interval(std::string_view function, std::int32_t interval) {
    if (interval < 1) throw_argument(function, "growth_interval", interval, "must be at least 1");
}

/// Throws unless `value` is at least `least`.
constexpr void require_counter(std::string_view function, std::string_view argument, std::int64_t value,
                               std::int64_t least) {
    if (value < least) throw_argument(function, argument, value, "must be at least " + error_text(least));
}

/// As require_counter(), for a counter of 64 bits in a state, which must be so far from the limit that no run
/// reaches it.
constexpr void require_state_counter(std::string_view function, std::string_view argument,
                                     std::int64_t counter, std::int64_t least) {
    require_counter(function, argument, counter, least);
    if (counter > std::int64_t{1} << 62) throw_argument(function, argument, counter, "must be at most 2^62");
}

/// As require_positive(), for a scale that is kept in double, where it can be beyond float's range.
constexpr void require_scale(std::string_view function, std::string_view argument, double scale) {
    if (is_non_finite(scale) || !(scale > 0.0)) {
        throw_argument(function, argument, scale, "must be finite and greater than 0");
    }
    if (scale <= static_cast<double>(largest_scale_without_inverse)) {
        throw_argument(function, argument, scale,
                       "must be greater than 2^-128, for its inverse to be a finite float");
    }
}

/// Throws unless `scale` can be used and is at least `least`.
template <class Scale>
constexpr void require_scale_from(std::string_view function, std::string_view argument, Scale scale,
                                  double least) {
    require_scale(function, argument, scale);
    if (!(static_cast<double>(scale) >= least)) {
        throw_argument(function, argument, scale, "must be at least " + error_text(least));
    }
}

/// Throws unless 0 <= floor <= ceiling, and the ceiling is finite.
constexpr void require_limits(std::string_view function, double floor, double ceiling,
                              std::string_view floor_name = "min_loss_scale",
                              std::string_view ceiling_name = "max_loss_scale") {
    require_scale(function, ceiling_name, ceiling);
    if (is_nan(floor) || !(floor >= 0.0 && floor <= ceiling)) {
        throw_argument(function, floor_name, floor,
                       "must be at least 0 and at most " + std::string(ceiling_name) + ", which is " +
                           error_text(ceiling));
    }
}

}}  // namespace mp::detail
