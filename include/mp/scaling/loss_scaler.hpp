// SPDX-License-Identifier: MIT
/// \file
/// The loss scaler: scale the loss, unscale the gradients, step if they are finite, update the scale.
#pragma once

#include <mp/error.hpp>
#include <mp/scaling/optimizer_protocol.hpp>
#include <mp/scaling/policy.hpp>
#include <mp/scaling/pytorch_policy.hpp>
#include <mp/scaling/scale_checks.hpp>
#include <mp/scaling/static_policy.hpp>
#include <mp/scaling/step_result.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp {

/// What loss_scaler::state returns and restore takes: everything that a resumed training run needs.
template <scale_policy Policy>
struct saved_loss_scaler {
    Policy policy = {};
    typename Policy::state_type state = {};

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
/// nor destroyed before update.
///
/// A member function that throws has changed nothing, apart from what the optimizer's own functions may have
/// done before they threw. Objects are not synchronised: use one from one thread at a time.
template <scale_policy Policy>
class loss_scaler {
public:
    using policy_type = Policy;
    using state_type = typename Policy::state_type;

    /// A scaler with the policy's defaults.
    loss_scaler() : loss_scaler(Policy{}) {}

    /// \param policy   its parameters, for example {.initial_scale = 1024.0F, .growth_interval = 100}
    /// \param enabled  with false the scale is 1, no gradient is checked, no step is skipped and update does
    ///                 nothing, so that one training loop serves with and without loss scaling
    /// \throws argument_error  a parameter of the policy is out of range
    explicit loss_scaler(const Policy& policy, bool enabled = true) : policy_(policy), enabled_(enabled) {
        policy_.validate();
        state_ = policy_.initial_state();
        pending_.reserve(8);  // more optimizers than one loop drives, so that no iteration allocates
    }

    /// Whether the scaler does anything.
    [[nodiscard]] bool enabled() const noexcept { return enabled_; }

    /// The present scale; 1 if disabled.
    [[nodiscard]] float current_scale() const noexcept { return enabled_ ? state_.scale : 1.0F; }

    /// What unscaling multiplies by: inverse_of_scale(current_scale()).
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
    /// \throws state_error  already unscaled, or already stepped, since the last update
    template <scalable_optimizer Optimizer>
    gradient_report unscale(Optimizer& optimizer) {
        if (!enabled_) return optimizer.unscale_gradients(1.0F);
        if (const pending_check* check = find(&optimizer)) {
            throw state_error(check->reached == stage::unscaled
                                  ? "mp::loss_scaler::unscale: the gradients of this optimizer are already "
                                    "unscaled; unscale them once between two calls of update"
                                  : "mp::loss_scaler::unscale: this optimizer has already stepped since the "
                                    "last update; unscale comes before step, and update ends the iteration");
        }
        make_room();
        const gradient_report report = optimizer.unscale_gradients(inverse_scale());
        pending_.push_back({&optimizer, forget<Optimizer>, stage::unscaled, report});
        return report;
    }

    /// Lets `optimizer` step unless its gradients hold infinities or NaNs; unscales them if that has not been
    /// done. Exactly once for each optimizer between two updates.
    ///
    /// \returns what happened; true in a condition if the optimizer stepped. That an optimizer has no
    ///          gradients is not an error but step_status::no_gradients
    /// \throws state_error  already stepped since the last update
    template <scalable_optimizer Optimizer>
    step_result step(Optimizer& optimizer) {
        if (!enabled_) {
            optimizer.step();
            return {};
        }
        pending_check* check = find(&optimizer);
        if (check != nullptr && check->reached == stage::stepped) {
            throw state_error(
                "mp::loss_scaler::step: this optimizer has already stepped since the last update; call "
                "update once an iteration, after every optimizer has stepped");
        }
        const float inverse = inverse_scale();
        if (check == nullptr) {
            make_room();
            if constexpr (fused_optimizer<Optimizer>) {
                const gradient_report report = optimizer.check_gradients(inverse);
                if (applies(report)) optimizer.step(inverse);
                pending_.push_back({&optimizer, forget<Optimizer>, stage::stepped, report});
                return describe(optimizer, report);
            } else {
                unscale(optimizer);
                check = &pending_.back();
            }
        }
        if (applies(check->report)) {
            optimizer.step();
        } else {
            optimizer.skip_step();
        }
        check->reached = stage::stepped;
        return describe(optimizer, check->report);
    }

    /// Ends the iteration: the policy moves the scale by what was found in all optimizers that were unscaled
    /// or stepped, and they may be unscaled and stepped again. One that was unscaled and not stepped misses
    /// this iteration. If none of them had a gradient, the scale and its counters stay as they are.
    ///
    /// \throws state_error  no optimizer was unscaled or stepped since the last update
    scale_change update() {
        if (!enabled_) return {};
        if (pending_.empty()) {
            throw state_error(
                "mp::loss_scaler::update: no optimizer was unscaled or stepped since the last update, so "
                "there is nothing to judge the scale by");
        }
        gradient_observation seen;
        std::uint64_t checked = 0;
        for (const pending_check& check : pending_) {
            checked += check.report.checked;
            seen.infinities += check.report.infinities;
            seen.nans += check.report.nans;
        }
        end_iteration();
        if (checked == 0) return {state_.scale, state_.scale, scale_change_kind::no_gradients};
        return update_scale(policy_, state_, seen);
    }

    /// Ends the iteration and sets the scale. What was found in the gradients is discarded, and the policy's
    /// counters stay as they are. Does nothing if disabled.
    ///
    /// \throws argument_error  the scale is not finite or not greater than 2^-128
    scale_change update(float new_scale) {
        detail::require_scale("mp::loss_scaler::update", "new_scale", new_scale);
        if (!enabled_) return {};
        end_iteration();
        const scale_change change{state_.scale, new_scale, scale_change_kind::replaced};
        state_.scale = new_scale;
        return change;
    }

    /// The policy and its parameters.
    [[nodiscard]] const Policy& policy() const noexcept { return policy_; }

    /// Changes parameters of the policy; scale and counters stay.
    ///
    /// \throws argument_error  a parameter is out of range
    void set_policy(const Policy& policy) {
        policy.validate();
        policy_ = policy;
    }

    /// Sets the factor by which the scale grows; finite and greater than 1, else argument_error.
    void set_growth_factor(double factor) requires requires(Policy policy) { policy.growth_factor; }
    {
        detail::require_growth_factor("mp::loss_scaler::set_growth_factor", factor);
        policy_.growth_factor = factor;
    }

    /// Sets the factor by which the scale backs off; strictly between 0 and 1, else argument_error.
    void set_backoff_factor(double factor) requires requires(Policy policy) { policy.backoff_factor; }
    {
        detail::require_backoff_factor("mp::loss_scaler::set_backoff_factor", factor);
        policy_.backoff_factor = factor;
    }

    /// Sets the number of clean iterations until the scale grows; at least 1, else argument_error.
    void set_growth_interval(std::int32_t interval) requires requires(Policy policy) {
        policy.growth_interval;
    }
    {
        detail::require_growth_interval("mp::loss_scaler::set_growth_interval", interval);
        policy_.growth_interval = interval;
    }

    /// Policy, scale and counters, for a checkpoint. Findings of an iteration under way are not part of it,
    /// so save after update.
    [[nodiscard]] saved_loss_scaler<Policy> state() const { return {policy_, state_}; }

    /// Continues from a saved state. An iteration under way is forgotten: start it over, with zero_gradients
    /// on optimizers that were unscaled. A disabled scaler keeps the state and stays disabled.
    ///
    /// \throws argument_error  the policy or the state is not valid
    void restore(const saved_loss_scaler<Policy>& saved) {
        saved.policy.validate();
        saved.policy.validate(saved.state);
        policy_ = saved.policy;
        state_ = saved.state;
        pending_.clear();
    }

private:
    enum class stage : unsigned char { unscaled, stepped };

    /// An optimizer that is no longer ready.
    struct pending_check {
        void* optimizer;
        void (*forget)(void* optimizer);
        stage reached;
        gradient_report report;
    };

    template <class Optimizer>
    static void forget(void* optimizer) {
        static_cast<Optimizer*>(optimizer)->skip_step();
    }

    /// Optimizers that were unscaled and then never stepped drop their unscaled gradients.
    void end_iteration() {
        for (const pending_check& check : pending_) {
            if (check.reached == stage::unscaled) check.forget(check.optimizer);
        }
        pending_.clear();
    }

    pending_check* find(const void* optimizer) noexcept {
        const auto found = std::find_if(pending_.begin(), pending_.end(), [=](const pending_check& check) {
            return check.optimizer == optimizer;
        });
        return found == pending_.end() ? nullptr : &*found;
    }

    /// Makes the next push_back safe from exceptions, so that an optimizer that was changed is on record.
    void make_room() {
        if (pending_.size() == pending_.capacity()) pending_.reserve(2 * pending_.capacity() + 1);
    }

    bool applies(const gradient_report& report) const {
        return report.checked != 0 && !skips_step(policy_, report.observation());
    }

    template <class Optimizer>
    step_result describe(const Optimizer& optimizer, const gradient_report& report) const {
        step_result result;
        result.scale = state_.scale;
        result.infinities = report.infinities;
        result.nans = report.nans;
        result.parameter_index = report.first_parameter;
        result.element_index = report.first_element;
        if constexpr (named_optimizer<Optimizer>) {
            if (report.first_parameter != no_index) {
                result.parameter_name = optimizer.parameter_name(report.first_parameter);
            }
        }
        if (report.checked == 0) {
            result.status = step_status::no_gradients;
        } else if (!applies(report)) {
            result.status = report.infinities != 0 ? step_status::skipped_infinity : step_status::skipped_nan;
        }
        return result;
    }

    Policy policy_;
    state_type state_ = {};
    std::vector<pending_check> pending_;
    bool enabled_;
};

/// Dynamic loss scaling as PyTorch's GradScaler does it.
using dynamic_loss_scaler = loss_scaler<pytorch_policy>;

/// Loss scaling by a constant.
using static_loss_scaler = loss_scaler<static_policy>;

}  // namespace mp
