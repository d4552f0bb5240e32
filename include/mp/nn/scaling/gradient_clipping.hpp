// SPDX-License-Identifier: MIT
/// \file
/// Factors by which gradients are clipped, and the largest gradient that a step takes.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <cstdint>
#include <string_view>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// More than any gradient times a learning rate.
inline constexpr double no_step_limit = 0x1p1000;

/// Limits of the magnitudes of gradients for which an update leaves finite states and weights.
struct gradient_limits {
    double state = 0x1.fffffep127;  ///< of a gradient, by the states and the arithmetic in float
    double step = no_step_limit;    ///< of a gradient times the learning rate, by the weights
};

/// Bits of the largest float within the limits.
[[nodiscard]] MP_HOST_DEVICE constexpr std::uint32_t largest_gradient_bits(const gradient_limits& limits,
                                                                           double learning_rate) noexcept {
    constexpr double largest = 0x1.fffffep127;
    double bound = limits.state < largest ? limits.state : largest;
    if (double_multiply(bound, learning_rate) > limits.step)
        bound = double_divide(limits.step, learning_rate);
    const auto nearest = static_cast<float>(bound);
    const auto bits = bit_cast<std::uint32_t>(nearest);
    return static_cast<double>(nearest) > bound ? bits - 1 : bits;
}

}}  // namespace mp::detail

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
