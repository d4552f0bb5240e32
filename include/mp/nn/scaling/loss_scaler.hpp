// SPDX-License-Identifier: MIT
/// \file
/// The loss scaler: scale the loss, unscale the gradients, step if they are finite, update the scale.
#pragma once

#include <mp/base/mistaken_arguments.hpp>
#include <mp/config.hpp>
#include <mp/nn/scaling/iteration_record.hpp>
#include <mp/nn/scaling/optimizer_protocol.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/reducer.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/nn/scaling/scale_event.hpp>
#include <mp/nn/scaling/scaled_gradient.hpp>
#include <mp/nn/scaling/static_policy.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// What loss_scaler::state returns and restore takes: everything that a resumed training run needs.
template <scale_policy Policy>
struct saved_loss_scaler {
    Policy policy = {};
    scale_state_of<Policy> state = {};

    friend constexpr bool operator==(const saved_loss_scaler&, const saved_loss_scaler&) = default;
};

/// Keeps gradients within the range of a reduced format: the loss is multiplied by a scale before the
/// backward pass, the gradients are divided by it before the optimizer sees them, a step whose gradients hold
/// infinities or NaNs is skipped, and the policy moves the scale.
///
///     mp::dynamic_loss_scaler scaler;                        // PyTorch's defaults
///     for (...) {
///         backward(scaler.scale(loss));                      // fills the gradients, times the scale
///         scaler.unscale(optimizer);                         // only if something looks at them, as clipping
///         optimizer.clip_gradient_norm(1.0);
///         if (scaler.step(optimizer)) schedule.advance();
///         scaler.update();                                   // once, after all optimizers
///         optimizer.zero_gradients();
///     }
///
/// Between two calls of update each optimizer goes from ready over unscaled to stepped, and the scale does
/// not change: accumulate gradients over several backward passes before the first unscale or step. Several
/// optimizers share one scale; each is skipped on its own, and a bad value in any of them backs off for all.
/// Optimizers are told apart by their address, so one that takes part in an iteration must neither be moved
/// nor destroyed before update. mp::training_iteration has this order built in.
///
/// A member function that throws has changed nothing, apart from what the optimizer's own functions may have
/// done before they threw. Objects are not synchronised: use one from one thread at a time.
template <scale_policy Policy>
class loss_scaler {
public:
    using policy_type = Policy;
    using state_type = scale_state_of<Policy>;

    /// A scaler with the policy's defaults.
    loss_scaler() : loss_scaler(Policy{}) {}

    /// \param policy   its parameters, for example {.initial_scale = 1024.0F, .growth_interval = 100}
    /// \param enabled  with false the scale is 1, no gradient is checked, no step is skipped and update does
    ///                 nothing, so that one training loop serves with and without loss scaling
    /// \throws argument_error  a parameter of the policy is out of range
    explicit loss_scaler(const Policy& policy, bool enabled = true) : policy_(policy), enabled_(enabled) {
        policy_.validate();
        state_ = initial_scale_state(policy_);
    }

    /// Parameters in torch's words: do not compile.
    template <class Words = detail::scaler_words>
        requires std::same_as<Words, detail::scaler_words>
    explicit loss_scaler(const Words& /*policy*/, bool enabled = true)
        : loss_scaler(detail::instead_of_scaler_words<Words, Policy>(), enabled) {}

    /// Whether the scaler does anything.
    [[nodiscard]] bool enabled() const noexcept { return enabled_; }

    /// The present scale; 1 if disabled.
    [[nodiscard]] float current_scale() const noexcept {
        has_been_asked_ = true;
        return present_scale();
    }

    /// The factor of unscaling: inverse_of_scale(current_scale()).
    [[nodiscard]] float inverse_scale() const noexcept { return inverse_of_scale(current_scale()); }

    /// The loss times the scale: in double for double, and in float for float and the reduced formats, since
    /// the product would overflow a half long before the gradients do. With several losses, or when
    /// accumulating over several batches, scale each of them.
    template <class Loss>
        requires std::is_floating_point_v<Loss> || detail::exact_in_float<Loss>
    [[nodiscard]] auto scale(Loss loss) const noexcept {
        if constexpr (std::is_floating_point_v<Loss>) {
            return static_cast<Loss>(loss * static_cast<Loss>(current_scale()));
        } else {
            return static_cast<float>(loss) * current_scale();
        }
    }

    /// Unscales the gradients of `optimizer` now, for clipping or looking at them before step. At most once
    /// for each optimizer between two updates. If disabled the gradients go through unchanged.
    ///
    /// \returns the infinities and NaNs found; step and update remember them
    /// \throws state_error  already unscaled, or already stepped, since the last update; or the reducer has
    ///                      thrown, so that the ranks do not agree on this iteration
    template <scalable_optimizer Optimizer>
    gradient_report unscale(Optimizer& optimizer) {
        require_asked("mp::loss_scaler::unscale");
        return unscale_by(optimizer, [&](float inverse) {
            if constexpr (checks_scaled_gradients<Policy>) {
                const gradient_report report = optimizer.check_gradients(inverse_to_check_with(inverse));
                static_cast<void>(optimizer.unscale_gradients(inverse));
                return report;
            } else {
                return optimizer.unscale_gradients(inverse);
            }
        });
    }

    /// Overload with gradients that lie elsewhere and know their scales, which may differ from the present
    /// one: those of mp::gradient_accumulator, for example.
    template <scalable_optimizer Optimizer, class Value>
    gradient_report unscale(Optimizer& optimizer, std::span<const scaled_gradient<Value>> gradients) {
        return unscale_by(optimizer,
                          [&](float /*inverse*/) { return optimizer.unscale_gradients_from(gradients); });
    }

    /// Lets `optimizer` step unless its gradients hold infinities or NaNs; unscales them if that has not been
    /// done. Exactly once for each optimizer between two updates.
    ///
    /// \returns what happened; true in a condition if the optimizer stepped. That an optimizer has no
    ///          gradients is not an error but step_status::no_gradients
    /// \throws state_error  already stepped since the last update; or the reducer has thrown, so that the
    /// ranks
    ///                      do not agree on this iteration; or the scale is not 1 and nothing has ever asked
    ///                      for it, so that the gradients cannot be scaled
    template <scalable_optimizer Optimizer>
    step_result step(Optimizer& optimizer) {
        if (!enabled_) {
            optimizer.step();
            return {};
        }
        optimizer_check* check = record_.begin_step(&optimizer);
        if (check == nullptr) {
            if constexpr (fused_optimizer<Optimizer>) {
                const float inverse = inverse_of_scale(present_scale());
                optimizer_check found =
                    detail::check_of(optimizer, optimizer_stage::stepped,
                                     optimizer.check_gradients(inverse_to_check_with(inverse)));
                if (found.report.any_gradients()) require_asked("mp::loss_scaler::step");
                record_.agree(found.report);
                if (record_.applies(found.report, rules())) {
                    optimizer.step(inverse);
                } else {
                    optimizer.skip_step();
                }
                record_.add_stepped(found);
                return record_.describe(found, present_scale(), rules());
            } else {
                unscale(optimizer);
                check = record_.begin_step(&optimizer);
            }
        }
        check_clipped(optimizer, check->report);
        if (record_.applies(check->report, rules())) {
            optimizer.step();
        } else {
            optimizer.skip_step();
        }
        check->reached = optimizer_stage::stepped;
        return record_.describe(*check, present_scale(), rules());
    }

    /// Takes part in an iteration without an optimizer of the protocol: records what your own pass, such as
    /// mp::unscale_and_check or gradient_accumulator::add, found in `values` gradients. Any number of times
    /// before update; so also for a scaler that belongs to one of several losses.
    ///
    /// \returns whether a step by these gradients is to be applied
    bool record(const non_finite_report& found, std::size_t values) {
        return !enabled_ || record_.add(values, found, rules());
    }

    /// Adds what was measured in the gradients of this iteration, for policies that look at more than
    /// infinities and NaNs, and for the results of step and the events. Any number of times before update;
    /// see mp::observe_gradients. Infinities and NaNs of `measured` are not counted: step does that.
    void observe(const gradient_observation& measured) noexcept { record_.observe(measured); }

    /// Ends the iteration: the policy moves the scale by what was found in all optimizers that were unscaled
    /// or stepped, and they may be unscaled and stepped again. One that was unscaled and not stepped misses
    /// this iteration. If none of them had a gradient, the scale and its counters stay as they are.
    ///
    /// \throws state_error  no optimizer was unscaled or stepped since the last update; or the reducer has
    ///                      thrown, so that the ranks do not agree on this iteration
    /// \throws scale_error  the policy refuses to go on, as DeepSpeed's at its floor. The iteration has not
    ///                      ended: update(new_scale) ends it and goes on
    scale_change update() {
        if (!enabled_) return {};
        record_.begin_update();
        scale_event event = record_.summary(rules());
        state_type next = state_;
        if (record_.any_gradients()) {
            event.change = update_scale(policy_, next, event.seen);
            if (event.change.kind == scale_change_kind::failed) {
                detail::throw_refused(present_scale(), event.seen);
            }
        } else {
            event.change = {present_scale(), present_scale(), scale_change_kind::no_gradients};
        }
        state_ = next;
        return finish(event);
    }

    /// Ends the iteration and sets the scale. What was found in the gradients is discarded, and the policy's
    /// counters stay as they are; a policy whose limit has switched scaling off is switched on again. Does
    /// nothing if disabled.
    ///
    /// \throws argument_error  the scale is not finite or not greater than 2^-128
    scale_change update(float new_scale) {
        detail::require_scale("mp::loss_scaler::update", "new_scale", new_scale);
        if (!enabled_) return {};
        record_.require_no_scope("mp::loss_scaler::update");
        state_type next = state_;
        next.scale = new_scale;
        if constexpr (requires { next.disabled; }) next.disabled = false;
        require_same("mp::loss_scaler::update", policy_, next);
        scale_event event = record_.summary(rules());
        event.change = {present_scale(), new_scale, scale_change_kind::replaced};
        state_ = next;
        return finish(event);
    }

    /// Forgets what was found since the last update: optimizers that were unscaled drop their unscaled
    /// gradients, and the scale and its counters stay. For a batch that is run again.
    void abandon_iteration() { record_.end_iteration(); }

    /// For mp::training_iteration: from here to close_iteration the scale stays what it is, and update throws
    /// state_error.
    ///
    /// \throws state_error  it is open already, or optimizers were unscaled or stepped since the last update
    void open_iteration() { record_.open_scope(); }
    void close_iteration() noexcept { record_.close_scope(); }

    /// Updates so far.
    [[nodiscard]] std::uint64_t iterations() const noexcept { return record_.iterations(); }

    /// The event of the last update; all zero before the first.
    [[nodiscard]] const scale_event& last_event() const noexcept { return record_.last_event(); }

    /// Has `listener(const scale_event&)` called at the end of every update, such as an mp::scale_event_log.
    /// It must outlive the scaler or the next call of set_listener. What it throws leaves update after the
    /// update is done.
    template <class Listener>
        requires std::is_invocable_v<Listener&, const scale_event&>
    void set_listener(Listener& listener) noexcept {
        listener_ = detail::listener_reference(listener);
    }
    /// Removes the listener.
    void clear_listener() noexcept { listener_ = {}; }

    /// Makes all ranks of a data-parallel run decide the same: what one of them finds, all act on. Every rank
    /// then has to make the same calls in the same order, ranks without gradients included; this call is the
    /// first of them. `reducer` must outlive the scaler or the next call of set_reducer.
    ///
    /// The ranks compare their policies, scales and counters here, and whenever a call changes them otherwise
    /// than by an iteration: restore, set_policy and the other setters, update(new_scale). If they differ,
    /// every rank gets an error that says in what, and stays as it was. Of a policy that is no savable_policy
    /// only the scale is compared.
    ///
    /// If the reducer throws later, the ranks do not agree on the iteration under way: unscale, step, record
    /// and update refuse until abandon_iteration, after which the batch may be run again if it was abandoned
    /// on every rank.
    ///
    /// \throws rank_error  the scalers of the ranks are not the same
    template <rank_reducer Reducer>
    void set_reducer(Reducer& reducer) {
        const detail::reducer_reference wanted(reducer);
        detail::require_same_scalers("mp::loss_scaler::set_reducer", enabled_, policy_, state_, wanted);
        record_.set_reducer(wanted);
    }
    /// Decides alone again.
    void clear_reducer() noexcept { record_.set_reducer({}); }

    /// The policy and its parameters.
    [[nodiscard]] const Policy& policy() const noexcept { return policy_; }

    /// Changes parameters of the policy; scale and counters stay.
    ///
    /// \throws argument_error  a parameter is out of range
    /// \throws rank_error      other ranks have others, as with all setters; see set_reducer
    void set_policy(const Policy& policy) {
        policy.validate();
        replace_policy("mp::loss_scaler::set_policy", policy);
    }

    /// Sets the factor by which the scale grows; finite and greater than 1, else argument_error.
    void set_growth_factor(double factor)
        requires requires(Policy policy) {
            { policy.growth_factor } -> std::same_as<double&>;
        }
    {
        detail::require_growth_factor("mp::loss_scaler::set_growth_factor", factor);
        Policy next = policy_;
        next.growth_factor = factor;
        replace_policy("mp::loss_scaler::set_growth_factor", next);
    }

    /// Sets the factor by which the scale backs off; strictly between 0 and 1, else argument_error.
    void set_backoff_factor(double factor)
        requires requires(Policy policy) {
            { policy.backoff_factor } -> std::same_as<double&>;
        }
    {
        detail::require_backoff_factor("mp::loss_scaler::set_backoff_factor", factor);
        Policy next = policy_;
        next.backoff_factor = factor;
        replace_policy("mp::loss_scaler::set_backoff_factor", next);
    }

    /// Sets the number of clean iterations until the scale grows; at least 1, else argument_error.
    void set_growth_interval(std::int32_t interval)
        requires requires(Policy policy) {
            { policy.growth_interval } -> std::same_as<std::int32_t&>;
        }
    {
        detail::require_growth_interval("mp::loss_scaler::set_growth_interval", interval);
        Policy next = policy_;
        next.growth_interval = interval;
        replace_policy("mp::loss_scaler::set_growth_interval", next);
    }

    /// Policy, scale and counters, for a checkpoint. Findings of an iteration under way are not part of it,
    /// so save after update.
    [[nodiscard]] saved_loss_scaler<Policy> state() const { return {policy_, state_}; }

    /// Continues from a saved state. An iteration under way is forgotten: start it over, with zero_gradients
    /// on optimizers that were unscaled. A disabled scaler keeps the state and stays disabled.
    ///
    /// \throws argument_error  the policy or the state is not valid
    /// \throws rank_error      other ranks restore something else, see set_reducer
    void restore(const saved_loss_scaler<Policy>& saved) {
        require_restorable(saved);
        policy_ = saved.policy;
        state_ = saved.state;
        record_.clear();
    }
    /// Throws what restore() would throw, on all ranks where it would on one; nothing changes.
    void require_restorable(const saved_loss_scaler<Policy>& saved) const {
        saved.policy.validate();
        validate_scale_state(saved.policy, saved.state);
        require_same("mp::loss_scaler::restore", saved.policy, saved.state);
    }

private:
    using optimizer_check = detail::optimizer_check;
    using optimizer_stage = detail::optimizer_stage;

    [[nodiscard]] float present_scale() const noexcept {
        return enabled_ ? detail::scale_as_float(state_.scale) : 1.0F;
    }

    /// Throws where unscaling would divide gradients that nothing can have multiplied. Where ranks decide
    /// together, another one may have asked: a stage of a pipeline gets gradients that are scaled.
    void require_asked(const char* function) const {
        if (!enabled_ || has_been_asked_ || record_.reducer() || detail::same_value(present_scale(), 1.0F))
            return;
        detail::throw_not_asked(function, present_scale());
    }

    /// Unscales by `take_out_scale(inverse scale)`, with everything around it.
    template <class Optimizer, class Function>
    gradient_report unscale_by(Optimizer& optimizer, Function take_out_scale) {
        if (!enabled_) return take_out_scale(1.0F);
        record_.begin_unscale(&optimizer);
        return record_.add_unscaled(detail::check_of(optimizer, optimizer_stage::unscaled,
                                                     take_out_scale(inverse_of_scale(present_scale()))));
    }

    /// Replaces the values that were too large when they were unscaled by those that still are.
    template <class Optimizer>
    void check_clipped(Optimizer& optimizer, gradient_report& report) {
        if (report.found() || !report.exceeds_limit()) return;
        if constexpr (requires {
                          { optimizer.check_unscaled_gradients() } -> std::same_as<gradient_report>;
                      }) {
            record_.replace_too_large(report, optimizer.check_unscaled_gradients());
        }
    }

    /// What gradients are multiplied by to be looked at. An inverse up to 1 makes nothing infinite.
    [[nodiscard]] static float inverse_to_check_with(float inverse) noexcept {
        return checks_scaled_gradients<Policy> && inverse > 1.0F ? 1.0F : inverse;
    }

    /// The policy's decisions, for the record.
    [[nodiscard]] detail::scaler_rules rules() const noexcept {
        return {this,
                [](const void* it, const gradient_observation& seen) {
                    return skips_step(static_cast<const loss_scaler*>(it)->policy_, seen);
                },
                [](const void* it, const gradient_observation& seen) {
                    const auto* const scaler = static_cast<const loss_scaler*>(it);
                    state_type next = scaler->state_;
                    return update_scale(scaler->policy_, next, seen);
                }};
    }

    /// Ends the iteration, keeps its event and tells the listener.
    scale_change finish(const scale_event& event) {
        record_.end_iteration(event);
        if (listener_) listener_(last_event());
        return last_event().change;
    }

    /// Throws rank_error unless all ranks are about to have this.
    void require_same(const char* function, const Policy& policy, const state_type& state) const {
        if (record_.reducer()) {
            detail::require_same_scalers(function, enabled_, policy, state, record_.reducer());
        }
    }

    void replace_policy(const char* function, const Policy& policy) {
        require_same(function, policy, state_);
        policy_ = policy;
    }

    Policy policy_;
    state_type state_ = {};
    detail::iteration_record record_;
    mutable bool has_been_asked_ = false;  // for the scale
    detail::listener_reference listener_;
    bool enabled_;
};

/// Loss scaling by a constant.
using static_loss_scaler = loss_scaler<static_policy>;

}}  // namespace mp
