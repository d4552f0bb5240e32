// SPDX-License-Identifier: MIT
/// \file
/// What a loss scaler asks of an optimizer. mp::sgd and mp::adamw meet it; so can any class of your own.
#pragma once

#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/unscale.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mp {

/// What the gradients of one optimizer looked like after unscaling.
struct gradient_report {
    std::uint64_t checked = 0;     ///< gradient values looked at; 0 means there are no gradients
    std::uint64_t infinities = 0;  ///< values that are plus or minus infinity
    std::uint64_t nans = 0;        ///< values that are NaN
    /// The first parameter with either, or with a value that is too large if there is neither; or no_index.
    std::size_t first_parameter = no_index;
    std::size_t first_element = no_index;  ///< the lowest index in it of such a value, or no_index
    // What other ranks looked at and found, see loss_scaler::set_reducer.
    std::uint64_t checked_elsewhere = 0;     ///< gradient values of theirs
    std::uint64_t infinities_elsewhere = 0;  ///< infinities of theirs
    std::uint64_t nans_elsewhere = 0;        ///< NaNs of theirs
    /// Finite values so large that a step by them would take a state or a weight out of its format, on this
    /// rank and on others.
    std::uint64_t too_large = 0;
    std::uint64_t too_large_elsewhere = 0;

    /// True if there is any infinity or NaN, on whatever rank.
    [[nodiscard]] constexpr bool found() const { return infinities != 0 || nans != 0 || found_elsewhere(); }
    /// True if another rank found one.
    [[nodiscard]] constexpr bool found_elsewhere() const {
        return infinities_elsewhere != 0 || nans_elsewhere != 0;
    }

    /// True if any value is too large, on whatever rank.
    [[nodiscard]] constexpr bool exceeds_limit() const { return too_large != 0 || too_large_elsewhere != 0; }

    /// True if any rank has gradients.
    [[nodiscard]] constexpr bool any_gradients() const { return checked != 0 || checked_elsewhere != 0; }

    /// The part that a scale policy decides on: the counts over all ranks, so that all decide the same.
    [[nodiscard]] constexpr gradient_observation observation() const {
        return {infinities + infinities_elsewhere, nans + nans_elsewhere};
    }

    /// Adds what was found in the gradient of parameter `parameter`, which has `count` values. Parameters are
    /// added in order.
    constexpr void add(std::size_t parameter, std::size_t count, const non_finite_report& found_there) {
        checked += count;
        const bool first = found_there.found() ? !found() : first_parameter == no_index;
        nans += found_there.nans;
        infinities += found_there.infinities;
        too_large += found_there.too_large;
        const std::size_t index = found_there.found() ? found_there.first_index : found_there.first_too_large;
        if (first && index != no_index) {
            first_parameter = parameter;
            first_element = index;
        }
    }

    friend constexpr bool operator==(const gradient_report&, const gradient_report&) = default;
};

}  // namespace mp

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// An optimizer that a loss scaler can drive:
///  - `unscale_gradients(inverse_scale)` multiplies the gradients by the inverse scale, keeps the results for
///    step() in at least float, and reports on them;
///  - `step()` applies the unscaled gradients and then forgets them;
///  - `skip_step()` ends the round without a step: forgets them, if there are any, and changes nothing else.
///
/// Optionally `parameter_name(index)` gives messages a name, see named_optimizer; and where reports count values
/// that are too_large, `check_unscaled_gradients()` reports on the unscaled gradients again, by now maybe clipped.
template <class Optimizer>
concept scalable_optimizer = requires(Optimizer& optimizer, float inverse_scale) {
    { optimizer.unscale_gradients(inverse_scale) } -> std::same_as<gradient_report>;
    optimizer.step();
    optimizer.skip_step();
};

/// A scalable optimizer that can also do without a copy of the unscaled gradients:
///  - `check_gradients(inverse_scale)` reports on the unscaled gradients without keeping them;
///  - `step(inverse_scale)` multiplies while it applies.
///
/// The scaler uses this path when there was no call for the unscaled gradients, that is when step is called
/// without unscale before.
template <class Optimizer>
concept fused_optimizer =
    scalable_optimizer<Optimizer> && requires(Optimizer& optimizer, float inverse_scale) {
        { optimizer.check_gradients(inverse_scale) } -> std::same_as<gradient_report>;
        optimizer.step(inverse_scale);
    };

/// An optimizer whose parameters have names, which stay valid as long as it lives.
template <class Optimizer>
concept named_optimizer = requires(const Optimizer& optimizer, std::size_t parameter) {
    { optimizer.parameter_name(parameter) } -> std::convertible_to<std::string_view>;
};

}}  // namespace mp
