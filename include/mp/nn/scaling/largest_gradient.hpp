// SPDX-License-Identifier: MIT
/// \file
/// The largest gradient that a step takes.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <cstdint>

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
