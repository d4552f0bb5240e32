// SPDX-License-Identifier: MIT
/// \file
/// The one dynamic scale policy, put together from small ones; every preset is a choice of its parts. And one whose scale
/// follows another policy one iteration late.
#pragma once

#include <mp/config.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/policy_rules.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <concepts>
#include <cstdint>
#include <string_view>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// What happens when the scale should pass a limit.
enum class limit_action : unsigned char {
    clamp,   ///< the scale becomes the limit
    keep,    ///< the scale stays what it was
    fail,    ///< nothing changes, and loss_scaler::update throws scale_error
    disable  ///< the scale becomes 1 and stays; steps with infinities or NaNs are still skipped
};

/// A floor or a ceiling of the scale. To be called back when it is reached, give the scaler a listener.
struct scale_limit {
    double value;
    limit_action action = limit_action::clamp;

    MP_MEMBERWISE_EQUALITY(scale_limit);
};

/// What an iteration with NaNs and no infinity does to the scale. No smaller scale cures a NaN that does not
/// come from an overflow.
enum class nan_reaction : unsigned char {
    back_off,    ///< the same as an infinity (every other system)
    keep_scale,  ///< the step is skipped, growth starts anew, and the scale stays
    fail         ///< nothing changes, and loss_scaler::update throws scale_error
};

/// By what the scale is multiplied at an overflow: factor / divisor, of which one is 1, so that the result is
/// rounded once whether a system multiplies or divides.
struct backoff_ratio {
    double factor = 0.5;
    double divisor = 1.0;

    MP_MEMBERWISE_EQUALITY(backoff_ratio);
};

/// Dynamic loss scaling: back off at overflows as far as the hysteresis lets, grow when the growth rule says
/// so, stay within the limits.
///
/// \tparam Growth      when the scale grows, see policy_rules.hpp
/// \tparam Hysteresis  how many overflows are put up with, see policy_rules.hpp
/// \tparam Scale       float, or double as in systems that keep the scale as a number of Python's. New scales
///                     are computed in double and rounded once to nearest
template <class Growth = growth_after_clean_run, class Hysteresis = no_hysteresis, class Scale = float>
struct dynamic_policy {
    static_assert(std::same_as<Scale, float> || std::same_as<Scale, double>,
                  "mp::dynamic_policy keeps its scale as float or double");

    /// Trivially copyable, so it can live in device memory and be updated there by the same function.
    struct state_type {
        Scale scale = 1;                                  ///< what the loss is multiplied by
        typename Growth::state_type growth = {};          ///< counters of the growth rule
        typename Hysteresis::state_type hysteresis = {};  ///< counters of the hysteresis
        std::int32_t skipped = 0;                         ///< skipped iterations in a row
        bool disabled = false;                            ///< a limit has switched scaling off

        MP_MEMBERWISE_EQUALITY(state_type);
    };

    Scale initial_scale = 65536;  ///< finite and greater than 2^-128
    Growth growth = {};
    backoff_ratio backoff = {};  ///< positive, less than 1
    Hysteresis hysteresis = {};
    scale_limit floor = {0.0};                                            ///< 0 is no floor
    scale_limit ceiling = {static_cast<double>(detail::infinite_scale)};  ///< infinity is no ceiling
    /// An overflow fails if it leaves the scale at or below this. 0 never does. (fairseq's min_loss_scale;
    /// a floor that fails does so only at the overflow after the one that reached it.)
    double failure_scale = 0.0;
    /// Whether a growth to infinity is refused. Without it the scale can become infinite, from where no
    /// back-off leads back; some systems have it so.
    bool guards_infinity = true;
    nan_reaction nans = nan_reaction::back_off;
    /// So many skipped iterations in a row are tolerated; at the next one, skip_action. 0 tolerates any
    /// number.
    std::int32_t skip_tolerance = 0;
    limit_action skip_action = limit_action::fail;  ///< fail or disable

    MP_MEMBERWISE_EQUALITY(dynamic_policy);

    /// Throws mp::argument_error, naming parameter and value, if one makes no sense.
    constexpr void validate() const {
        constexpr std::string_view function = "mp::dynamic_policy";
        detail::require_scale(function, "initial_scale", initial_scale);
        growth.validate(function);
        hysteresis.validate(function);
        detail::require_backoff_factor(function, backoff.factor / backoff.divisor);
        if (detail::is_nan(floor.value) ||
            !(floor.value >= 0.0 && floor.value <= static_cast<double>(initial_scale))) {
            detail::throw_argument(function, "floor.value", floor.value,
                                   "must be at least 0 and at most initial_scale, which is " +
                                       detail::error_text(initial_scale));
        }
        if (detail::is_nan(ceiling.value) || !(ceiling.value >= static_cast<double>(initial_scale))) {
            detail::throw_argument(
                function, "ceiling.value", ceiling.value,
                "must be at least initial_scale, which is " + detail::error_text(initial_scale));
        }
        if (detail::is_non_finite(failure_scale) || failure_scale < 0.0) {
            detail::throw_argument(function, "failure_scale", failure_scale,
                                   "must be finite and not negative");
        }
        detail::require_counter(function, "skip_tolerance", skip_tolerance, 0);
        if (skip_action != limit_action::fail && skip_action != limit_action::disable) {
            detail::throw_error(
                argument_error("mp::dynamic_policy: skip_action must be limit_action::fail or disable"));
        }
    }

    /// Throws mp::argument_error unless `state` is one that a scaler can continue from.
    constexpr void validate(const state_type& state) const {
        constexpr std::string_view function = "mp::dynamic_policy";
        detail::require_scale(function, "state.scale", state.scale);
        growth.validate(function, state.growth);
        hysteresis.validate(function, state.hysteresis);
        detail::require_counter(function, "state.skipped", state.skipped, 0);
        if (state.disabled && !(state.scale >= 1 && state.scale <= 1)) {
            detail::throw_argument(function, "state.scale", state.scale, "must be 1 in a disabled state");
        }
    }

    [[nodiscard]] MP_HOST_DEVICE constexpr state_type initial_state() const {
        return {initial_scale, {}, hysteresis.initial_state()};
    }

    /// One iteration.
    MP_HOST_DEVICE constexpr scale_change update(state_type& state, const gradient_observation& seen) const {
        if (state.disabled) return change(state, state, scale_change_kind::unchanged);
        const state_type before = state;
        return seen.non_finite() ? overflow(before, state, seen) : clean(before, state, seen);
    }

    /// The name that mp::save_state writes, whatever the policy is put together from: the names of parameters
    /// and counters tell the parts apart.
    static constexpr std::string_view name = "dynamic";

    /// Calls visitor(name, member) for everything that has to be saved, of a policy or of a state.
    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        Growth::visit(self.growth, visitor);
        Hysteresis::visit(self.hysteresis, visitor);
        if constexpr (requires { self.skipped; }) {
            visitor("scale", self.scale);
            visitor("skipped", self.skipped);
            visitor("disabled", self.disabled);
        } else {
            visitor("initial_scale", self.initial_scale);
            visitor("backoff_factor", self.backoff.factor);
            visitor("backoff_divisor", self.backoff.divisor);
            visitor("floor", self.floor.value);
            visitor("floor_action", self.floor.action);
            visitor("ceiling", self.ceiling.value);
            visitor("ceiling_action", self.ceiling.action);
            visitor("failure_scale", self.failure_scale);
            visitor("guards_infinity", self.guards_infinity);
            visitor("nans", self.nans);
            visitor("skip_tolerance", self.skip_tolerance);
            visitor("skip_action", self.skip_action);
        }
    }

private:
    using kind = scale_change_kind;

    /// The nearest Scale; infinite where that is.
    MP_HOST_DEVICE static constexpr Scale rounded(double value) {
        if constexpr (std::same_as<Scale, float>) {
            return detail::scale_as_float(value);
        } else {
            return value;
        }
    }

    MP_HOST_DEVICE static constexpr scale_change change(const state_type& before, const state_type& after,
                                                        kind what) {
        return {detail::scale_as_float(before.scale), detail::scale_as_float(after.scale), what};
    }

    /// Nothing has happened.
    MP_HOST_DEVICE static constexpr scale_change failed(const state_type& before, state_type& state) {
        state = before;
        return change(before, state, kind::failed);
    }

    /// Goes on without scaling.
    MP_HOST_DEVICE static constexpr scale_change disabled(const state_type& before, state_type& state) {
        state.scale = 1;
        state.disabled = true;
        return change(before, state, kind::disabled);
    }

    MP_HOST_DEVICE constexpr scale_change overflow(const state_type& before, state_type& state,
                                                   const gradient_observation& seen) const {
        const bool only_nans = seen.infinities == 0;
        if (only_nans && nans == nan_reaction::fail) return failed(before, state);
        if (state.skipped < detail::largest_tracker) ++state.skipped;
        if (skip_tolerance != 0 && state.skipped > skip_tolerance) {
            return skip_action == limit_action::fail ? failed(before, state) : disabled(before, state);
        }
        growth.overflow(state.growth);
        if (only_nans && nans == nan_reaction::keep_scale) return change(before, state, kind::nan_kept);
        kind what = kind::absorbed;
        if (hysteresis.overflow(state.hysteresis)) {
            // Too small to overflow, so the conversion is defined.
            const Scale lowered = rounded(detail::double_divide(
                detail::double_multiply(static_cast<double>(before.scale), backoff.factor), backoff.divisor));
            // Compared as what the scale can be: a floor between two floats would never be reached exactly.
            const Scale lowest = rounded(floor.value);
            what = kind::backed_off;
            state.scale = lowered;
            if (lowered < lowest) {
                switch (floor.action) {
                    case limit_action::fail:
                        // As in DeepSpeed: the floor may be reached, and what would go below it from there
                        // fails.
                        if (before.scale <= lowest) return failed(before, state);
                        state.scale = lowest;
                        break;
                    case limit_action::disable:
                        return disabled(before, state);
                    case limit_action::keep:
                        state.scale = before.scale;
                        break;
                    case limit_action::clamp:
                        state.scale = lowest;
                        break;
                }
                what = kind::at_floor;
            }
        }
        if (failure_scale > 0.0 && static_cast<double>(state.scale) <= failure_scale) {
            return failed(before, state);
        }
        if (what == kind::backed_off && !(static_cast<double>(state.scale) >
                                          static_cast<double>(detail::largest_scale_without_inverse))) {
            what = kind::vanished;
        }
        return change(before, state, what);
    }

    MP_HOST_DEVICE constexpr scale_change clean(const state_type& before, state_type& state,
                                                const gradient_observation& seen) const {
        state.skipped = 0;
        const double factor = growth.clean(state.growth, seen);
        const bool growing = factor > 1.0;
        hysteresis.clean(state.hysteresis, growing);
        if (!growing) return change(before, state, kind::unchanged);
        const Scale grown = rounded(detail::double_multiply(static_cast<double>(before.scale), factor));
        // A ceiling beyond the largest Scale is infinity, which is none.
        const Scale highest = rounded(ceiling.value);
        if (grown > highest) {
            switch (ceiling.action) {
                case limit_action::fail:
                    return failed(before, state);
                case limit_action::disable:
                    return disabled(before, state);
                case limit_action::keep:
                    break;
                case limit_action::clamp:
                    state.scale = highest;
                    break;
            }
            return change(before, state, kind::at_ceiling);
        }
        if (guards_infinity && detail::is_non_finite(grown)) {
            return change(before, state, kind::growth_refused);
        }
        state.scale = grown;
        return change(before, state, kind::grown);
    }
};

/// The state of a scaler that counts clean iterations in a row, as PyTorch's does.
using scale_state = dynamic_policy<>::state_type;

/// Uses the scale that `Rules` decided on not in the next iteration but in the one after it. So an overflow
/// is normally followed by a second one at the same scale, and the scale ends one notch too low; MXNet does
/// it.
template <class Rules>
struct lagged_policy {
    struct state_type {
        float scale = 1.0F;                    ///< what the loss is multiplied by
        typename Rules::state_type next = {};  ///< next.scale will be it after the next update

        MP_MEMBERWISE_EQUALITY(state_type);
    };

    Rules rules_ahead = {};

    MP_MEMBERWISE_EQUALITY(lagged_policy);

    constexpr void validate() const { rules_ahead.validate(); }
    constexpr void validate(const state_type& state) const {
        detail::require_scale("mp::lagged_policy", "state.scale", state.scale);
        rules_ahead.validate(state.next);
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr state_type initial_state() const {
        const typename Rules::state_type next = rules_ahead.initial_state();
        return {detail::scale_as_float(next.scale), next};
    }

    /// One iteration. The kind is that of the decision, which shows in the scale one update later.
    MP_HOST_DEVICE constexpr scale_change update(state_type& state, const gradient_observation& seen) const {
        const float before = state.scale;
        const float promoted = detail::scale_as_float(state.next.scale);
        const scale_change decided = update_scale(rules_ahead, state.next, seen);
        if (decided.kind != scale_change_kind::failed) state.scale = promoted;
        return {before, state.scale, decided.kind};
    }

    /// The name that mp::save_state writes.
    static constexpr std::string_view name = "lagged";

    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        if constexpr (requires { self.next; }) {
            visitor("lagged_scale", self.scale);
            Rules::visit(self.next, visitor);
        } else {
            Rules::visit(self.rules_ahead, visitor);
        }
    }
};

}}  // namespace mp
