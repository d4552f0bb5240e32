// SPDX-License-Identifier: MIT
/// \file
/// Hysteresis: the number of overflows that a dynamic scale tolerates before it backs off. Four
/// rules go by that name: none, a budget that is refilled when the scale grows, a budget that is
/// refilled at every clean iteration (so that only overflows in a row count), and a tolerated share of
/// overflows.
///
/// A hysteresis rule is a small value with a state:
///  - `overflow(state)` is told of an overflow and returns whether the scale backs off;
///  - `clean(state, growing)` is told of a clean iteration and whether the scale is due to grow in it;
///  - `validate` and `visit` as for growth rules.
#pragma once

#include <mp/config.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <cstdint>
#include <string_view>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Every overflow backs off.
struct no_hysteresis {
    struct state_type {
        friend constexpr bool operator==(const state_type&, const state_type&) = default;
    };

    friend constexpr bool operator==(const no_hysteresis&, const no_hysteresis&) = default;

    MP_HOST_DEVICE constexpr state_type initial_state() const { return {}; }
    MP_HOST_DEVICE constexpr bool overflow(state_type&) const { return true; }
    MP_HOST_DEVICE constexpr void clean(state_type&, bool /*growing*/) const {}
    constexpr void validate(std::string_view) const {}
    constexpr void validate(std::string_view, const state_type&) const {}
    template <class Self, class Visitor>
    static constexpr void visit(Self&, Visitor&&) {}
};

/// When a budget of overflows is full again.
enum class hysteresis_refill : unsigned char {
    at_growth,  ///< when the scale grows (Megatron, DeepSpeed): after the first back-off, every further
                ///< overflow backs off until then
    at_clean_iteration  ///< at every clean iteration (Apex's kernel, DeepSpeed's consecutive_hysteresis)
};

/// Absorbs `allowance - 1` overflows and backs off from the next one on, until the budget is refilled.
struct hysteresis_budget {
    struct state_type {
        std::int32_t left = 1;  ///< the overflow that brings this to zero backs off

        friend constexpr bool operator==(const state_type&, const state_type&) = default;
    };

    std::int32_t allowance = 2;  ///< overflows until the first that backs off; at least 1
    hysteresis_refill refill = hysteresis_refill::at_growth;
    /// Whether the counter goes on below zero (Megatron, Apex's kernel) or stays at 1 (DeepSpeed). It makes
    /// no difference to the scale, but to the counter that is saved.
    bool counts_on = false;

    friend constexpr bool operator==(const hysteresis_budget&, const hysteresis_budget&) = default;

    MP_HOST_DEVICE constexpr state_type initial_state() const { return {allowance}; }
    MP_HOST_DEVICE constexpr bool overflow(state_type& state) const {
        const bool backs_off = state.left <= 1;
        if (!backs_off || (counts_on && state.left > -2147483647)) --state.left;
        return backs_off;
    }
    MP_HOST_DEVICE constexpr void clean(state_type& state, bool growing) const {
        if (growing || refill == hysteresis_refill::at_clean_iteration) state.left = allowance;
    }

    constexpr void validate(std::string_view function) const {
        detail::require_counter(function, "hysteresis.allowance", allowance, 1);
    }
    constexpr void validate(std::string_view function, const state_type& state) const {
        if (!counts_on) detail::require_counter(function, "state.hysteresis.left", state.left, 1);
    }

    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        if constexpr (requires { self.left; }) {
            visitor("hysteresis_left", self.left);
        } else {
            visitor("hysteresis_allowance", self.allowance);
            visitor("hysteresis_refill", self.refill);
            visitor("hysteresis_counts_on", self.counts_on);
        }
    }
};

/// Backs off when the share of overflows among the iterations since the scale last changed reaches `share`
/// (fairseq). Growth restarts that count of iterations, but as in the original not that of overflows.
struct tolerated_overflow_share {
    struct state_type {
        std::int64_t iteration = 0;     ///< of the next update
        std::int64_t last_change = -1;  ///< the iteration in which the scale last changed
        std::int64_t overflows = 0;     ///< since the last back-off

        friend constexpr bool operator==(const state_type&, const state_type&) = default;
    };

    double share = 0.0;  ///< in [0, 1]; 0 backs off at every overflow

    MP_MEMBERWISE_EQUALITY(tolerated_overflow_share);

    MP_HOST_DEVICE constexpr state_type initial_state() const { return {}; }
    MP_HOST_DEVICE constexpr bool overflow(state_type& state) const {
        const std::int64_t iterations = state.iteration - state.last_change;
        ++state.overflows;
        // An overflow in an iteration in which the scale has changed counts as if 1000 had passed, as in the
        // original; with one update an iteration it does not occur.
        const double since = iterations == 0 ? 1000.0 : static_cast<double>(iterations);
        const bool backs_off = detail::double_divide(static_cast<double>(state.overflows), since) >= share;
        if (backs_off) {
            state.last_change = state.iteration;
            state.overflows = 0;
        }
        ++state.iteration;
        return backs_off;
    }
    MP_HOST_DEVICE constexpr void clean(state_type& state, bool growing) const {
        if (growing) state.last_change = state.iteration;
        ++state.iteration;
    }

    constexpr void validate(std::string_view function) const {
        if (detail::is_non_finite(share) || !(share >= 0.0 && share <= 1.0)) {
            detail::throw_argument(function, "hysteresis.share", share, "must be at least 0 and at most 1");
        }
    }
    constexpr void validate(std::string_view function, const state_type& state) const {
        detail::require_state_counter(function, "state.hysteresis.iteration", state.iteration, 0);
        detail::require_state_counter(function, "state.hysteresis.last_change", state.last_change, -1);
        detail::require_state_counter(function, "state.hysteresis.overflows", state.overflows, 0);
        if (state.last_change >= state.iteration) {
            detail::throw_argument(function, "state.hysteresis.last_change", state.last_change,
                                   "must be less than state.hysteresis.iteration");
        }
    }

    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        if constexpr (requires { self.overflows; }) {
            visitor("tolerance_iteration", self.iteration);
            visitor("last_change", self.last_change);
            visitor("overflows_since_change", self.overflows);
        } else {
            visitor("tolerated_share", self.share);
        }
    }
};

}}  // namespace mp
