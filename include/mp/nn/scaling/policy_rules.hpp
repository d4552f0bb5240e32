// SPDX-License-Identifier: MIT
/// \file
/// The small rules that a dynamic scale is composed of: when it grows, and hysteresis. A growth rule is a small value with
/// a state:
///  - `clean(state, seen)` is told of an iteration without infinities and NaNs, and returns the factor by
///    which the scale is to be multiplied now, 1 for not at all;
///  - `overflow(state)` is told of an iteration with infinities or NaNs;
///  - `validate(function)` and `validate(function, state)` throw argument_error, naming `function`;
///  - `visit(rule, visitor)` and `visit(state, visitor)` call visitor(name, member) for everything that has
///    to be saved.
///
/// Hysteresis is the number of overflows that a dynamic scale tolerates before it backs off. Four rules go by that name:
/// none, a budget that is refilled when the scale grows, a budget that is refilled at every clean iteration (so that only
/// overflows in a row count), and a tolerated share of overflows. A hysteresis rule is a small value with a state:
///  - `overflow(state)` is told of an overflow and returns whether the scale backs off;
///  - `clean(state, growing)` is told of a clean iteration and whether the scale is due to grow in it;
///  - `validate` and `visit` as for growth rules.
#pragma once

#include <mp/config.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <cstdint>
#include <string_view>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Grows when `interval` clean iterations have come in a row (PyTorch, TensorFlow, Keras, jmp, Apex,
/// Megatron).
struct growth_after_clean_run {
    struct state_type {
        std::int32_t tracker = 0;  ///< clean iterations since the scale last changed

        friend constexpr bool operator==(const state_type&, const state_type&) = default;
    };

    double factor = 2.0;           ///< finite and greater than 1
    std::int32_t interval = 2000;  ///< clean iterations until the scale grows; at least 1
    /// Whether a count beyond the interval makes the scale grow as well (TensorFlow), or only the interval
    /// itself (the others). They differ when the interval is lowered during a run: below the count already
    /// reached, growth then resumes only after the next back-off.
    bool at_least = false;

    MP_MEMBERWISE_EQUALITY(growth_after_clean_run);

    MP_HOST_DEVICE constexpr double clean(state_type& state, const gradient_observation&) const {
        if (state.tracker == detail::largest_tracker && !at_least) return 1.0;  // stay rather than overflow
        const bool due = at_least ? state.tracker >= interval - 1 : state.tracker + 1 == interval;
        state.tracker = due ? 0 : state.tracker + 1;
        return due ? factor : 1.0;
    }
    MP_HOST_DEVICE constexpr void overflow(state_type& state) const { state.tracker = 0; }

    constexpr void validate(std::string_view function) const {
        detail::require_growth_factor(function, factor);
        detail::require_growth_interval(function, interval);
    }
    constexpr void validate(std::string_view function, const state_type& state) const {
        detail::require_counter(function, "state.growth.tracker", state.tracker, 0);
    }

    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        if constexpr (requires { self.tracker; }) {
            visitor("growth_tracker", self.tracker);
        } else {
            visitor("growth_factor", self.factor);
            visitor("growth_interval", self.interval);
            visitor("growth_at_least", self.at_least);
        }
    }
};

/// Grows whenever the distance from the last overflow, less `delay`, is a multiple of `window` (DeepSpeed
/// with a delay of 1; Apex's fp16_utils, fairseq and OpenSeq2Seq without). Iterations are counted from 0, and
/// a run begins as if iteration -1 had overflowed.
struct growth_by_window {
    struct state_type {
        std::int64_t iteration = 0;       ///< of the next update
        std::int64_t last_overflow = -1;  ///< the iteration that overflowed last

        friend constexpr bool operator==(const state_type&, const state_type&) = default;
    };

    double factor = 2.0;         ///< finite and greater than 1
    std::int64_t window = 1000;  ///< at least 1
    std::int32_t delay = 0;      ///< at least 0; 1 makes the first growth one iteration later

    MP_MEMBERWISE_EQUALITY(growth_by_window);

    MP_HOST_DEVICE constexpr double clean(state_type& state, const gradient_observation&) const {
        const std::int64_t distance = state.iteration - state.last_overflow - delay;
        ++state.iteration;
        return distance > 0 && distance % window == 0 ? factor : 1.0;
    }
    MP_HOST_DEVICE constexpr void overflow(state_type& state) const {
        state.last_overflow = state.iteration;
        ++state.iteration;
    }

    constexpr void validate(std::string_view function) const {
        detail::require_growth_factor(function, factor);
        detail::require_counter(function, "growth.window", window, 1);
        detail::require_counter(function, "growth.delay", delay, 0);
    }
    constexpr void validate(std::string_view function, const state_type& state) const {
        detail::require_state_counter(function, "state.growth.iteration", state.iteration, 0);
        detail::require_state_counter(function, "state.growth.last_overflow", state.last_overflow, -1);
        if (state.last_overflow >= state.iteration) {
            detail::throw_argument(function, "state.growth.last_overflow", state.last_overflow,
                                   "must be less than state.growth.iteration");
        }
    }

    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        if constexpr (requires { self.iteration; }) {
            visitor("iteration", self.iteration);
            visitor("last_overflow", self.last_overflow);
        } else {
            visitor("growth_factor", self.factor);
            visitor("growth_window", self.window);
            visitor("growth_delay", self.delay);
        }
    }
};

/// Grows at every clean iteration: fast until the first overflow, then slowly (Chainer).
struct growth_continuous {
    struct state_type {
        bool overflowed = false;  ///< whether there has ever been an overflow

        friend constexpr bool operator==(const state_type&, const state_type&) = default;
    };

    double first_factor = 2.0;           ///< until the first overflow; finite and greater than 1
    double factor = 1.0006933874625807;  ///< afterwards; 2^(1/1000), that is to the double in 1000 steps

    MP_MEMBERWISE_EQUALITY(growth_continuous);

    MP_HOST_DEVICE constexpr double clean(state_type& state, const gradient_observation&) const {
        return state.overflowed ? factor : first_factor;
    }
    MP_HOST_DEVICE constexpr void overflow(state_type& state) const { state.overflowed = true; }

    constexpr void validate(std::string_view function) const {
        detail::require_growth_factor(function, first_factor);
        detail::require_growth_factor(function, factor);
    }
    constexpr void validate(std::string_view, const state_type&) const {}

    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        if constexpr (requires { self.overflowed; }) {
            visitor("overflowed", self.overflowed);
        } else {
            visitor("growth_first_factor", self.first_factor);
            visitor("growth_factor", self.factor);
        }
    }
};

/// Grows when gradients are seen to underflow, rather than on a schedule: after `patience` iterations in a
/// row in which more than `share` of the measured values other than zero were flushed to zero. Iterations in
/// which nothing was measured do not count either way. After an overflow it rests for `rest` iterations, so
/// that it does not go back at once to a scale that was too large.
struct growth_on_underflow {
    struct state_type {
        std::int32_t underflowing = 0;  ///< iterations in a row with too much underflow
        std::int32_t resting = 0;       ///< iterations until growth is possible again

        friend constexpr bool operator==(const state_type&, const state_type&) = default;
    };

    double factor = 2.0;         ///< finite and greater than 1
    double share = 1e-3;         ///< in [0, 1)
    std::int32_t patience = 10;  ///< at least 1
    std::int32_t rest = 200;     ///< at least 0

    MP_MEMBERWISE_EQUALITY(growth_on_underflow);

    MP_HOST_DEVICE constexpr double clean(state_type& state, const gradient_observation& seen) const {
        if (state.resting > 0) {
            --state.resting;
            return 1.0;
        }
        if (seen.values == 0) return 1.0;
        const auto nonzero = static_cast<double>(seen.values - seen.zeros);
        const bool too_much = static_cast<double>(seen.flushed) > detail::double_multiply(share, nonzero);
        // Not beyond the patience, so that no count that was loaded can overflow.
        const std::int32_t next = state.underflowing < patience ? state.underflowing + 1 : patience;
        state.underflowing = too_much ? next : 0;
        if (state.underflowing < patience) return 1.0;
        state.underflowing = 0;
        return factor;
    }
    MP_HOST_DEVICE constexpr void overflow(state_type& state) const { state = {0, rest}; }

    constexpr void validate(std::string_view function) const {
        detail::require_growth_factor(function, factor);
        if (detail::is_non_finite(share) || !(share >= 0.0 && share < 1.0)) {
            detail::throw_argument(function, "growth.share", share, "must be at least 0 and less than 1");
        }
        detail::require_counter(function, "growth.patience", patience, 1);
        detail::require_counter(function, "growth.rest", rest, 0);
    }
    constexpr void validate(std::string_view function, const state_type& state) const {
        detail::require_counter(function, "state.growth.underflowing", state.underflowing, 0);
        detail::require_counter(function, "state.growth.resting", state.resting, 0);
    }

    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        if constexpr (requires { self.resting; }) {
            visitor("underflowing", self.underflowing);
            visitor("resting", self.resting);
        } else {
            visitor("growth_factor", self.factor);
            visitor("growth_share", self.share);
            visitor("growth_patience", self.patience);
            visitor("growth_rest", self.rest);
        }
    }
};

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
