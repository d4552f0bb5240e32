// SPDX-License-Identifier: MIT
/// \file
/// What a scale policy is: a small value that decides how the loss scale moves. The scaler (and a CUDA
/// kernel) only carries the policy's state and calls its update function, so a new scaler is a new policy.
#pragma once

#include <mp/config.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace mp {

/// What was seen in all gradients of one iteration.
struct gradient_observation {
    std::uint64_t infinities = 0;  ///< values that were plus or minus infinity after unscaling
    std::uint64_t nans = 0;        ///< values that were NaN after unscaling

    /// True if any value was infinite or NaN.
    [[nodiscard]] MP_HOST_DEVICE constexpr bool non_finite() const { return infinities != 0 || nans != 0; }
};

/// What an update did to the scale.
enum class scale_change_kind : unsigned char {
    unchanged,       ///< the scale stays, for example because a clean iteration was counted
    grown,           ///< enough clean iterations in a row: the scale went up
    growth_refused,  ///< the scale was due to grow, but would have become infinite and stays
    backed_off,      ///< there were infinities or NaNs: the scale went down
    vanished,        ///< as backed_off, but the scale is now so small that its inverse is not a finite float:
                     ///< from here on every step is skipped. Something other than the scale is wrong
    replaced,        ///< the caller set the scale
    no_gradients     ///< no optimizer had a gradient, so nothing was learnt and nothing changed
};

/// The outcome of an update.
struct scale_change {
    float before = 1.0F;  ///< the scale that this iteration used
    float after = 1.0F;   ///< the scale that the next iteration uses
    scale_change_kind kind = scale_change_kind::unchanged;

    friend constexpr bool operator==(const scale_change&, const scale_change&) = default;
};

/// The whole state of a scaler that counts clean iterations: trivially copyable, so it can live in device
/// memory and be updated there by the same function.
struct scale_state {
    float scale = 1.0F;               ///< what the loss is multiplied by
    std::int32_t growth_tracker = 0;  ///< clean iterations since the scale last changed

    friend constexpr bool operator==(const scale_state&, const scale_state&) = default;
};

namespace detail {

/// Every double at or above this rounds (to nearest, ties to even) to an infinite float: it is the midpoint
/// of the largest float, (2 - 2^-23) 2^127, and 2^128.
inline constexpr double float_overflow_threshold = 0x1.ffffffp127;

/// A scale has a finite inverse if and only if it is greater than this: 1 / 2^-128 is above the overflow
/// threshold, and the inverse of the next float, 2^128 / (1 + 2^-21), is below it.
inline constexpr float largest_scale_without_inverse = 0x1p-128F;

// Named here since device code may use these constants, but not call the functions of numeric_limits.
inline constexpr float infinite_scale = std::numeric_limits<float>::infinity();
inline constexpr std::int32_t largest_tracker = std::numeric_limits<std::int32_t>::max();

}  // namespace detail

/// The factor that takes the scale out of gradients again: 1 / scale, divided in double and rounded once to
/// float, as PyTorch does. Exact for powers of two. Infinite for zero and for scales of 2^-128 and less,
/// where 1 / scale is beyond the floats.
///
/// \param scale  not negative and not NaN
[[nodiscard]] MP_HOST_DEVICE constexpr float inverse_of_scale(float scale) noexcept {
    if (!(scale > detail::largest_scale_without_inverse)) return detail::infinite_scale;
    return static_cast<float>(1.0 / static_cast<double>(scale));
}

/// A scale policy: a regular value with
///  - `state_type`: a trivially copyable struct with a member `float scale` and whatever counters it needs;
///  - `validate()`, which throws mp::argument_error if a parameter of the policy makes no sense;
///  - `validate(state)`, which does the same for a state that comes from outside;
///  - `initial_state()`;
///  - `update(state, seen)`, which moves the state once an iteration and says what it did. `seen` is either
///    a gradient_observation or, for policies that do not tell infinities from NaNs, a bool that is true
///    if there were any. It should be MP_HOST_DEVICE and constexpr: the device runs the same function;
///  - optionally `skips(seen)`: whether an optimizer with these gradients must not step. Without it every
///    infinity or NaN skips.
template <class Policy>
concept scale_policy = std::copyable<Policy> && std::is_trivially_copyable_v<typename Policy::state_type> &&
    requires(const Policy policy, typename Policy::state_type state, gradient_observation seen) {
    { state.scale } -> std::convertible_to<float>;
    { policy.initial_state() } -> std::same_as<typename Policy::state_type>;
    policy.validate();
    policy.validate(state);
} &&(
    requires(const Policy policy, typename Policy::state_type state, gradient_observation seen) {
        { policy.update(state, seen) } -> std::same_as<scale_change>;
    } ||
    requires(const Policy policy, typename Policy::state_type state, bool found_non_finite) {
        { policy.update(state, found_non_finite) } -> std::same_as<scale_change>;
    });

/// Moves `state` by one iteration: the one place through which host and device update a scale.
template <scale_policy Policy>
MP_HOST_DEVICE constexpr scale_change update_scale(const Policy& policy, typename Policy::state_type& state,
                                                   const gradient_observation& seen) {
    if constexpr (requires { policy.update(state, seen); }) {
        return policy.update(state, seen);
    } else {
        return policy.update(state, seen.non_finite());
    }
}

/// Whether an optimizer whose gradients looked like `seen` must skip its step under this policy.
template <scale_policy Policy>
MP_HOST_DEVICE constexpr bool skips_step(const Policy& policy, const gradient_observation& seen) {
    if constexpr (requires { policy.skips(seen); }) {
        return policy.skips(seen);
    } else {
        return seen.non_finite();
    }
}

}  // namespace mp
