// SPDX-License-Identifier: MIT
/// \file
/// What a scale policy is: a small value that decides how the loss scale moves. The scaler (and a CUDA
/// kernel) only carries the policy's state and calls its update function, so a new scaler is a new policy.
#pragma once

#include <mp/config.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

namespace mp {

/// What was seen in all gradients of one iteration. The first two members every scaler counts; the others are
/// there if something measured them (see loss_scaler::observe), for policies that look at more than
/// infinities and NaNs.
struct gradient_observation {
    std::uint64_t infinities = 0;  ///< values that were plus or minus infinity after unscaling
    std::uint64_t nans = 0;        ///< values that were NaN after unscaling
    std::uint64_t values = 0;      ///< values that were measured; 0 if nothing was
    std::uint64_t zeros = 0;       ///< of those, exact zeros before any rounding
    std::uint64_t flushed = 0;     ///< of those, values not zero that became zero in the reduced format
    std::uint64_t subnormals = 0;  ///< of those, values that are subnormal in the reduced format
    std::uint64_t overflows = 0;   ///< of those, finite values beyond the reduced format's largest number
    std::uint64_t large = 0;       ///< of those, values above the edge that a histogram policy names
    double largest = 0.0;          ///< the largest finite magnitude, after unscaling; 0 if not measured

    /// True if any value was infinite or NaN.
    [[nodiscard]] MP_HOST_DEVICE constexpr bool non_finite() const { return infinities != 0 || nans != 0; }

    /// Adds what was seen in other gradients of the same iteration.
    MP_HOST_DEVICE constexpr gradient_observation& operator+=(const gradient_observation& other) {
        infinities += other.infinities;
        nans += other.nans;
        values += other.values;
        zeros += other.zeros;
        flushed += other.flushed;
        subnormals += other.subnormals;
        overflows += other.overflows;
        large += other.large;
        if (other.largest > largest) largest = other.largest;
        return *this;
    }

    MP_MEMBERWISE_EQUALITY(gradient_observation);
};

/// Effect of an update on the scale.
enum class scale_change_kind : unsigned char {
    unchanged,       ///< the scale stays, for example because a clean iteration was counted
    grown,           ///< enough clean iterations in a row: the scale went up
    growth_refused,  ///< the scale was due to grow, but would have become infinite and stays
    backed_off,      ///< there were infinities or NaNs: the scale went down
    vanished,        ///< as backed_off, but the scale is now so small that its inverse is not a finite float:
                     ///< from here on every step is skipped. Something other than the scale is wrong
    replaced,        ///< the caller set the scale
    no_gradients,    ///< no optimizer had a gradient, so nothing was learnt and nothing changed
    absorbed,        ///< there were infinities or NaNs, and hysteresis keeps the scale all the same
    nan_kept,        ///< there were NaNs and no infinity, and the policy does not lower the scale for that
    at_floor,        ///< the scale should have gone below the floor, and is the floor
    at_ceiling,      ///< the scale should have gone above the ceiling, and is the ceiling
    disabled,        ///< a limit was reached whose action it is to go on without scaling: the scale is 1
    /// A limit was reached whose action it is to fail. The state is what it was before; loss_scaler::update
    /// throws scale_error, and on a device update_scale leaves this kind to be found.
    failed
};

/// The outcome of an update.
struct scale_change {
    float before = 1.0F;  ///< the scale that this iteration used
    float after = 1.0F;   ///< the scale that the next iteration uses
    scale_change_kind kind = scale_change_kind::unchanged;

    MP_MEMBERWISE_EQUALITY(scale_change);
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Every double at or above this rounds (to nearest, ties to even) to an infinite float: it is the midpoint
/// of the largest float, (2 - 2^-23) 2^127, and 2^128.
inline constexpr double float_overflow_threshold = 0x1.ffffffp127;

/// A scale has a finite inverse if and only if it is greater than this: 1 / 2^-128 is above the overflow
/// threshold, and the inverse of the next float, 2^128 / (1 + 2^-21), is below it.
inline constexpr float largest_scale_without_inverse = 0x1p-128F;

// Named here since device code may use these constants, but not call the functions of numeric_limits.
inline constexpr float infinite_scale = std::numeric_limits<float>::infinity();
inline constexpr std::int32_t largest_tracker = (std::numeric_limits<std::int32_t>::max)();

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The factor that takes the scale out of gradients again: 1 / scale, divided in double and rounded once to
/// float, as PyTorch does. Exact for powers of two. Infinite for zero and for scales of 2^-128 and less,
/// where 1 / scale is beyond the floats.
///
/// \param scale  not negative and not NaN
[[nodiscard]] MP_HOST_DEVICE constexpr float inverse_of_scale(float scale) noexcept {
    if (!(scale > detail::largest_scale_without_inverse)) return detail::infinite_scale;
    const auto inverse = [&] {
        return static_cast<float>(detail::double_divide(1.0, static_cast<double>(scale)));
    };
#if !MP_DEVICE_CODE
    if (!__builtin_is_constant_evaluated()) return detail::in_default_modes(inverse);
#endif
    return inverse();
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The scale as the float that the loss is multiplied by; some systems keep theirs in double, where it can be
/// beyond float's range.
MP_HOST_DEVICE constexpr float scale_as_float(float scale) noexcept {
    return scale;
}
MP_HOST_DEVICE constexpr float scale_as_float(double scale) noexcept {
    return scale >= float_overflow_threshold ? infinite_scale : static_cast<float>(scale);
}

/// The rules by which a policy decides: itself, or what its member function rules() returns.
MP_ANY_EXECUTION_SPACE
template <class Policy>
MP_HOST_DEVICE constexpr auto rules_of(const Policy& policy) {
    if constexpr (requires { policy.rules(); }) {
        return policy.rules();
    } else {
        return policy;
    }
}

template <class Policy>
using rules_type = decltype(rules_of(std::declval<const Policy&>()));

template <class Rules>
concept updates_by_observation =
    requires(const Rules rules, typename Rules::state_type state, gradient_observation seen) {
        { rules.update(state, seen) } -> std::same_as<scale_change>;
    };
template <class Rules>
concept updates_by_flag =
    requires(const Rules rules, typename Rules::state_type state, bool found_non_finite) {
        { rules.update(state, found_non_finite) } -> std::same_as<scale_change>;
    };

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// A scale policy: a regular value with
///  - `state_type`: a trivially copyable struct with a member `scale` (float or double) and whatever counters
///    it needs;
///  - `validate()`, which throws mp::argument_error if a parameter of the policy makes no sense;
///  - `validate(state)`, which does the same for a state that comes from outside;
///  - `initial_state()`;
///  - `update(state, seen)`, which moves the state once an iteration and says what it did. `seen` is either
///    a gradient_observation or, for policies that do not tell infinities from NaNs, a bool that is true
///    if there were any. It should be MP_HOST_DEVICE and constexpr: the device runs the same function;
///  - optionally `skips(seen)`: whether an optimizer with these gradients must not step. Without it every
///    infinity or NaN skips.
///
/// A policy with a static member `checks_scaled_gradients` that is true has the scaler look for infinities and NaNs
/// before it takes the scale out, see below.
///
/// Or a set of parameters with `validate()` and `rules()`, which returns such a policy: so the presets have
/// the parameters of the systems that they reproduce, by their names.
template <class Policy>
concept scale_policy =
    std::copyable<Policy> && std::is_trivially_copyable_v<typename detail::rules_type<Policy>::state_type> &&
    requires(const Policy policy, const detail::rules_type<Policy> rules,
             typename detail::rules_type<Policy>::state_type state) {
        { detail::scale_as_float(state.scale) } -> std::same_as<float>;
        { rules.initial_state() } -> std::same_as<typename detail::rules_type<Policy>::state_type>;
        policy.validate();
        rules.validate(state);
    } &&
    (detail::updates_by_observation<detail::rules_type<Policy>> ||
     detail::updates_by_flag<detail::rules_type<Policy>>);

/// Whether the scaler looks for infinities and NaNs among the gradients as the backward pass left them. Otherwise it
/// looks at them without the scale. Only for a scale below 1 can that differ: there taking it out can make a finite
/// gradient infinite, and the step is then not skipped.
template <class Policy>
inline constexpr bool checks_scaled_gradients = false;
template <class Policy>
    requires requires { Policy::checks_scaled_gradients; }
inline constexpr bool checks_scaled_gradients<Policy> = Policy::checks_scaled_gradients;

/// The state that a policy moves.
template <scale_policy Policy>
using scale_state_of = typename detail::rules_type<Policy>::state_type;

/// The state with which a run begins.
template <scale_policy Policy>
[[nodiscard]] MP_HOST_DEVICE constexpr scale_state_of<Policy> initial_scale_state(const Policy& policy) {
    return detail::rules_of(policy).initial_state();
}

/// Throws mp::argument_error unless `state` is one that a scaler with this policy can continue from.
template <scale_policy Policy>
constexpr void validate_scale_state(const Policy& policy, const scale_state_of<Policy>& state) {
    detail::rules_of(policy).validate(state);
}

/// Moves `state` by one iteration: the one place through which host and device update a scale. The caller's
/// rounding direction does not matter.
template <scale_policy Policy>
MP_HOST_DEVICE constexpr scale_change update_scale(const Policy& policy, scale_state_of<Policy>& state,
                                                   const gradient_observation& seen) {
    const auto update = [&] {
        if constexpr (detail::updates_by_observation<detail::rules_type<Policy>>) {
            return detail::rules_of(policy).update(state, seen);
        } else {
            return detail::rules_of(policy).update(state, seen.non_finite());
        }
    };
#if !MP_DEVICE_CODE
    if (!__builtin_is_constant_evaluated()) return detail::in_default_modes(update);
#endif
    return update();
}

/// Whether an optimizer whose gradients looked like `seen` must skip its step under this policy.
template <scale_policy Policy>
[[nodiscard]] MP_HOST_DEVICE constexpr bool skips_step(const Policy& policy,
                                                       const gradient_observation& seen) {
    const auto rules = detail::rules_of(policy);
    if constexpr (requires { rules.skips(seen); }) {
        return rules.skips(seen);
    } else {
        return seen.non_finite();
    }
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Only for the requirement below.
struct member_visitor {
    template <class Member>
    void operator()(std::string_view name, Member& member) const;
};

}}  // namespace mp::detail

namespace mp {

/// A policy whose scaler can be saved, and compared among ranks: it and the policy that it stands for have a
/// static member function `visit(self, visitor)`, which calls visitor(name, member) for every parameter or
/// every member of the state; and it has a static member `name`. Names are single words. Members are float,
/// double, bool, integers of 32 or 64 bits, or enumerations. All policies of the library are savable.
template <class Policy>
concept savable_policy = scale_policy<Policy> && requires(Policy& policy, scale_state_of<Policy>& state,
                                                          detail::member_visitor visitor) {
    { Policy::name } -> std::convertible_to<std::string_view>;
    Policy::visit(policy, visitor);
    detail::rules_type<Policy>::visit(state, visitor);
};

}  // namespace mp
