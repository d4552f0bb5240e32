// SPDX-License-Identifier: MIT
/// \file
/// Largest gradients by which states and weights remain in the range of their formats.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/nn/optim/block_moments.hpp>
#include <mp/nn/optim/optimizer_traits.hpp>
#include <mp/nn/scaling/gradient_clipping.hpp>
#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Throws argument_error unless the values can be kept in a state whose largest number is `largest`: finite, and not
/// negative where they are means of squares.
MP_CORE_FUNCTION void require_moments(std::string_view function, const std::string& name,
                                      std::span<const float> values, double largest, bool of_squares);

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The largest finite value of an array of weights or of state.
template <class Value>
[[nodiscard]] constexpr double largest_stored() noexcept {
    if constexpr (reduced<Value>) {
        return static_cast<double>((std::numeric_limits<Value>::max)());
    } else {
        return largest_float_as_double;  // scales of block_moment are float
    }
}

/// Largest |y| for which x = beta * x + weight * y, repeated for ever, remains at most `largest`. The three
/// roundings of a step and those of the coefficients to float make the sum larger by at most 2^-22 of itself, so
/// that its limit is weight * y / (1 - beta - 2^-22).
[[nodiscard]] inline double largest_in_mean(double largest, double beta, double weight) noexcept {
    const double rest = double_subtract(1.0, beta);
    const double kept = (std::max)(double_subtract(rest, 0x1p-22), double_multiply(rest, 0.5));
    return double_divide(double_multiply(largest, kept), weight);
}

/// Limits of optimizers whose traits have
/// `static gradient_limits limits(const Options&, double largest_state, double largest_step)`; others have none.
/// A step moves a weight by at most half of the largest one, so that a weight of up to the other half stays finite.
template <class Weight, class Master, class State, class Options>
[[nodiscard]] gradient_limits gradient_limits_of(const Options& options) {
    constexpr double largest_weight = (std::min)(largest_stored<Weight>(), largest_stored<Master>());
    constexpr double largest_step = 0.5 * largest_weight;
    if constexpr (requires { optimizer_traits<Options>::limits(options, largest_weight, largest_step); }) {
        return in_default_modes([&] {
            return optimizer_traits<Options>::limits(options, largest_stored<State>(), largest_step);
        });
    } else {
        return {};
    }
}

}}  // namespace mp::detail

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION void require_moments(std::string_view function, const std::string& name,
                                      std::span<const float> values, double largest, bool of_squares) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto value = static_cast<double>(values[i]);
        const auto refuse = [&](std::string_view why) {
            throw_argument(function, name + "[" + error_text(i) + "]", values[i], why);
        };
        if (is_non_finite(value)) refuse("must be finite");
        if (of_squares && value < 0.0) refuse("must not be negative: it is a mean of squares");
        if (!(value <= largest && value >= -largest)) {
            refuse("must be at most " + error_text(largest) + ", the largest number of the state");
        }
    }
}

}}  // namespace mp::detail
#endif
