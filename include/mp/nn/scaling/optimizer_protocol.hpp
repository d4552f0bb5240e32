// SPDX-License-Identifier: MIT
/// \file
/// What a loss scaler asks of an optimizer, and what a step under loss scaling did and why. mp::sgd and mp::adamw meet it; so
/// can any class of your own.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/nn/scaling/kernels/unscale.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/unscale.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
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

namespace mp {

/// Result of a step.
enum class step_status : unsigned char {
    applied,           ///< the optimizer stepped
    skipped_infinity,  ///< skipped: there was an infinity, so the scale is too large (NaNs may follow from
                       ///< it)
    skipped_nan,       ///< skipped: there were NaNs and no infinity, which no smaller scale may cure
    /// Skipped, and the scale is at the floor already or the policy refuses to lower it further: the
    /// gradients overflow for another reason than the scale.
    skipped_at_floor,
    /// Skipped: finite gradients are so large that the step, or its repetition, would take a state or a weight out of
    /// the range of its format, from which some would never come back. The scale stays: it is not the reason.
    skipped_too_large,
    no_gradients  ///< the optimizer has no gradient values at all; nothing was done
};

/// The outcome of loss_scaler::step.
struct step_result {
    step_status status = step_status::applied;
    float scale = 1.0F;  ///< the scale that the gradients carried
    /// The scale that update will set if no other optimizer changes the picture.
    float scale_after = 1.0F;
    std::uint64_t infinities = 0;  ///< infinite values among the unscaled gradients
    std::uint64_t nans = 0;        ///< NaNs among them
    std::uint64_t too_large = 0;   ///< finite values that are too large for the states or the weights
    std::uint64_t flushed = 0;     ///< values that became zero in the reduced format, if observed
    std::uint64_t subnormals = 0;  ///< values that are subnormal in the reduced format, if observed
    std::uint64_t overflows = 0;   ///< finite values beyond the reduced format, if observed
    bool found_elsewhere = false;  ///< such a value is (also) in the gradients of another rank
    std::size_t parameter_index = no_index;  ///< the first parameter with a bad value, or no_index
    /// Its name if the optimizer gives names; refers to the optimizer's own text, so it lives as long.
    std::string_view parameter_name = {};
    std::size_t element_index = no_index;  ///< the first bad element of that parameter, or no_index

    /// True if the optimizer stepped: the moment for a learning rate schedule to advance.
    [[nodiscard]] constexpr explicit operator bool() const { return status == step_status::applied; }
};

}  // namespace mp

namespace mp { inline namespace MP_CORE_NAMESPACE {

/// One line about a step for a log, such as
/// "skipped, 2 infinities and 0 NaNs at scale 65536, the first in 'conv1.weight'[17]".
MP_CORE_FUNCTION std::string to_string(const step_result& result);

#if MP_CORE_BODIES
MP_CORE_FUNCTION std::string to_string(const step_result& result) {
    std::string text;
    switch (result.status) {
        case step_status::applied:
            text = "applied";
            break;
        case step_status::skipped_infinity:
        case step_status::skipped_nan:
        case step_status::skipped_too_large:
            text = "skipped";
            break;
        case step_status::skipped_at_floor:
            text = "skipped at the floor";
            break;
        case step_status::no_gradients:
            return "no gradients";
    }
    if (result.infinities != 0 || result.nans != 0) {
        text += ", " + detail::error_text(result.infinities) +
                (result.infinities == 1 ? " infinity and " : " infinities and ") +
                detail::error_text(result.nans) + (result.nans == 1 ? " NaN" : " NaNs");
    }
    if (result.too_large != 0) {
        text += ", " + detail::error_text(result.too_large) +
                (result.too_large == 1 ? " gradient" : " gradients") +
                " too large for the states or the weights";
    }
    if (result.found_elsewhere) text += ", found by another rank";
    if (result.flushed != 0) text += ", " + detail::error_text(result.flushed) + " flushed";
    if (result.subnormals != 0) text += ", " + detail::error_text(result.subnormals) + " subnormal";
    if (result.overflows != 0) text += ", " + detail::error_text(result.overflows) + " overflowed";
    text += " at scale " + detail::error_text(result.scale);
    // A change of the scale is news; that it stays is not.
    if (result.scale_after < result.scale || result.scale_after > result.scale) {
        text += " (next " + detail::error_text(result.scale_after) + ")";
    }
    if (result.parameter_index != no_index) {
        text += ", the first in ";
        text += result.parameter_name.empty() ? "parameter " + detail::error_text(result.parameter_index)
                                              : detail::error_text(result.parameter_name);
        text += "[" + detail::error_text(result.element_index) + "]";
    }
    return text;
}
#endif

}}  // namespace mp
