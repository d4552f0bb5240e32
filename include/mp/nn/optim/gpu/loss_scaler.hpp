// SPDX-License-Identifier: MIT
/// \file
/// The loss scaler of a GPU: the calls of loss_scaler, enqueued on a stream.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/device_value.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/optim/gpu/gradient_norm.hpp>
#include <mp/nn/scaling/gpu/device_loss_scale.hpp>
#include <mp/nn/scaling/gradient_clipping.hpp>
#include <mp/nn/scaling/loss_scaler.hpp>
#include <mp/nn/scaling/policy.hpp>

#include <cstddef>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Loss scaling whose scale lives on the device. It has the calls of loss_scaler, which here only enqueue:
/// the host learns of nothing, waits for nothing, and an iteration can be captured into a graph.
///
///     mp::gpu_loss_scaler scaler(stream, mp::pytorch_policy{});
///     ...
///     mp::ops::softmax_cross_entropy_backward(stream, logits, labels, dlogits, scaler.scale());
///     backward();
///     scaler.clip_gradient_norm(optimizer, 1.0);   // if wanted
///     scaler.step(optimizer);
///     scaler.update();
///
/// The scale moves with the bits of loss_scaler, except for one thing: a step is skipped if any optimizer
/// whose gradients have been looked at before it in this iteration has infinities. training_iteration looks
/// at all of them before it steps any.
///
/// Not synchronised. Copies share the scale on the device.
template <gpu_executor Executor, scale_policy Policy, std::size_t Events = default_device_events>
class gpu_loss_scaler {
    static constexpr std::string_view function = "mp::gpu_loss_scaler";

public:
    using scale_type = device_loss_scale<Policy, Events>;

    /// Begins a run. Throws argument_error for a parameter of the policy that is out of range, and where
    /// there is no device memory.
    explicit gpu_loss_scaler(Executor exec, const Policy& policy = {})
        : exec_(exec), policy_(policy), scale_(function, exec, make_device_loss_scale<Events>(policy)) {}

    /// Continues one from a saved state, such as loss_scaler::state().state.
    gpu_loss_scaler(Executor exec, const Policy& policy, const scale_state_of<Policy>& state)
        : exec_(exec),
          policy_(policy),
          scale_(function, exec, make_device_loss_scale<Events>(policy, state)) {}

    [[nodiscard]] const Policy& policy() const { return policy_; }

    /// The scale in device memory, for kernels: they multiply the loss by scale()->current_scale().
    [[nodiscard]] const scale_type* scale() const {
        *has_been_asked_ = true;
        return scale_.data();
    }

    /// A copy of it on the host: the scale, the counts and the last events. Waits.
    [[nodiscard]] scale_type state() const {
        *has_been_asked_ = true;
        return scale_.read(exec_);
    }

    /// What a run continues with, as loss_scaler::state() has it; waits. Counts and events stay here.
    [[nodiscard]] saved_loss_scaler<Policy> saved() const { return {policy_, scale_.read(exec_).state}; }
    /// Continues from there: events and counts begin anew. A graph that was captured before has the policy of
    /// then.
    ///
    /// \throws argument_error  the policy or the state is not valid
    void restore(const saved_loss_scaler<Policy>& saved) {
        const scale_type made = make_device_loss_scale<Events>(saved.policy, saved.state);
        policy_ = saved.policy;
        scale_.write(exec_, made);
        stages_.clear();
    }

    /// Looks for infinities and NaNs in the gradients of an optimizer, if that has not been done since the
    /// last update. step() does it where it was not called.
    ///
    /// \throws state_error  the optimizer has stepped since the last update; or nothing has ever asked for the scale,
    ///                      so that the gradients cannot be scaled, unless the policy begins with 1
    template <class Optimizer>
    void check(Optimizer& optimizer) {
        require_asked("mp::gpu_loss_scaler::check");
        if (stage_of(optimizer, "mp::gpu_loss_scaler::check") == stage::checked) return;
        optimizer.check_gradients(scale_.data());
        stages_.push_back({&optimizer, stage::checked});
    }

    /// As check(), in one pass with the norm of the gradients, without their scale, by which the step clips
    /// them.
    ///
    /// \throws state_error     the optimizer's gradients have been looked at, or it has stepped
    /// \throws argument_error  max_norm is not a limit
    template <class Optimizer>
    void clip_gradient_norm(Optimizer& optimizer, double max_norm) {
        measure(optimizer, max_norm);
        if constexpr (requires { optimizer.clipping(); }) {
            if (detail::is_non_finite(max_norm)) clip_together(max_norm, optimizer);
        }
    }

    /// As clip_gradient_norm(), with one norm over the gradients of all these optimizers, each of which is
    /// clipped by the same factor.
    ///
    /// \throws state_error     the gradients of one have been looked at, or it has stepped
    /// \throws argument_error  max_norm is not a limit
    template <class... Optimizers>
    void clip_global_gradient_norm(double max_norm, Optimizers&... optimizers) {
        detail::require_limit("mp::gpu_loss_scaler::clip_global_gradient_norm", "max_norm", max_norm);
        (measure(optimizers, (std::numeric_limits<double>::infinity)()), ...);
        clip_together(max_norm, optimizers...);
    }

    /// Updates the weights of an optimizer unless the policy skips the step, which the device decides.
    ///
    /// \throws state_error  the optimizer has stepped since the last update
    template <class Optimizer>
    void step(Optimizer& optimizer) {
        check(optimizer);
        optimizer.step(policy_, scale_.data());
        for (entry& it : stages_) {
            if (it.optimizer == &optimizer) it.reached = stage::stepped;
        }
    }

    /// Ends the iteration: the policy moves the scale.
    ///
    /// \throws state_error  no optimizer has been looked at since the last update
    void update() {
        if (stages_.empty())
            refuse("mp::gpu_loss_scaler::update", "no optimizer has been stepped since the last update");
        update_scale(exec_, policy_, scale_.data());
        stages_.clear();
    }

    /// Forgets the iteration: what was found remains out of the next one. For scopes that are left early.
    template <class... Optimizers>
    void abandon(Optimizers&... optimizers) {
        (optimizers.skip_step(), ...);
        if (!stages_.empty()) {
            scale_type now = scale_.read(exec_);
            now.seen = {};
            scale_.write(exec_, now);
        }
        stages_.clear();
    }

private:
    enum class stage : unsigned char { none, checked, stepped };
    struct entry {
        const void* optimizer;
        stage reached;
    };

    [[noreturn]] static void refuse(std::string_view called, std::string_view why) {
        detail::throw_joined<state_error>({called, ": ", why});
    }

    void require_asked(std::string_view called) const {
        if (*has_been_asked_) return;
        if (detail::same_value(static_cast<double>(initial_scale_state(policy_).scale), 1.0)) return;
        refuse(called,
               "nothing has asked for the scale; the kernel that begins the backward pass multiplies by "
               "scale()->current_scale()");
    }

    /// Checks gradients and finds their norm and, unless max_norm is infinite, their clip factor.
    template <class Optimizer>
    void measure(Optimizer& optimizer, double max_norm) {
        constexpr std::string_view called = "mp::gpu_loss_scaler::clip_gradient_norm";
        require_asked(called);
        if (stage_of(optimizer, called) == stage::checked) {
            refuse(called,
                   "the gradients of this optimizer have been looked at already; call it before check");
        }
        optimizer.clip_gradient_norm(scale_.data(), max_norm);
        stages_.push_back({&optimizer, stage::checked});
    }
    /// Finds the clip factor of the norm of several optimizers.
    template <class... Optimizers>
    void clip_together(double max_norm, Optimizers&... optimizers) {
        launch("mp::gpu_loss_scaler::clip_global_gradient_norm", exec_, simt::launch_size{},
               detail::global_norm_kernel<sizeof...(Optimizers)>{
                   {optimizers.clipping()...}, max_norm, &scale_.data()->seen});
    }

    template <class Optimizer>
    stage stage_of(const Optimizer& optimizer, std::string_view called) const {
        for (const entry& it : stages_) {
            if (it.optimizer != &optimizer) continue;
            if (it.reached == stage::stepped) {
                refuse(called, "this optimizer has stepped since the last update; call update first");
            }
            return it.reached;
        }
        return stage::none;
    }

    Executor exec_;
    Policy policy_;
    detail::device_values<Executor, scale_type> scale_;
    std::vector<entry> stages_;
    std::shared_ptr<bool> has_been_asked_ =
        std::make_shared<bool>(false);  // for the scale, also through a copy
};

template <gpu_executor Executor, scale_policy Policy>
gpu_loss_scaler(const Executor&, const Policy&)
    -> gpu_loss_scaler<detail::executor_handle_t<Executor>, Policy>;
template <gpu_executor Executor, scale_policy Policy>
gpu_loss_scaler(const Executor&, const Policy&, const scale_state_of<Policy>&)
    -> gpu_loss_scaler<detail::executor_handle_t<Executor>, Policy>;

}}  // namespace mp
