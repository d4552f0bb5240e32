// SPDX-License-Identifier: MIT
/// \file
/// An optimizer on a GPU as an object: its parameters, options and the state that the device keeps.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/device_value.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/optim/gpu/device_optimizer.hpp>
#include <mp/nn/optim/gpu/gradient_norm.hpp>
#include <mp/nn/optim/gpu/optimizer_step.hpp>
#include <mp/nn/optim/gpu/parameter.hpp>
#include <mp/nn/scaling/gpu/device_loss_scale.hpp>
#include <mp/nn/scaling/gpu/unscale.hpp>
#include <mp/nn/scaling/gradient_writes.hpp>

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Base of the optimizers on a GPU: the list of their parameters, and what gpu_loss_scaler calls before a step.
/// Derived::limit() is the largest gradient that a step takes.
template <class Derived, gpu_executor Executor, class Parameter>
class gpu_gradients {
public:
    /// Adds the infinities, NaNs and excesses of the gradients to the findings of the scale.
    template <scale_policy Policy, std::size_t Events>
    void check_gradients(device_loss_scale<Policy, Events>* scale) {
        mp::check_gradients(exec_, list_, scale, 0, limit());
    }
    /// Does as check_gradients(), and finds the factor by which the next step clips the norm of the gradients.
    template <scale_policy Policy, std::size_t Events>
    void clip_gradient_norm(device_loss_scale<Policy, Events>* scale, double max_norm) {
        detail::run_gradient_norm(exec_, list_, &scale->inverse_scale,
                                  std::span<double>(sums_.data(), gradient_norm_workspace(list_)),
                                  norm_.data(), max_norm, &scale->seen, 0, limit(),
                                  !detail::is_non_finite(max_norm));
        clipped_ = true;
    }
    /// The norm of the gradients in device memory, and the factor by which the step clips them, which may be that of a
    /// norm over several optimizers.
    [[nodiscard]] device_gradient_norm* clipping() { return norm_.data(); }
    [[nodiscard]] const device_gradient_norm* gradient_norm() const { return norm_.data(); }
    /// Copies gradient_norm() to the host; waits.
    [[nodiscard]] device_gradient_norm read_gradient_norm() const { return norm_.read(exec_); }

protected:
    gpu_gradients(std::string_view function, Executor exec, std::vector<Parameter> list)
        : exec_(exec),
          list_(std::move(list)),
          norm_(function, exec, device_gradient_norm{}),
          sums_(function, exec, gradient_norm_workspace(list_)) {}

    /// The factor in device memory if gradients are clipped, else null.
    [[nodiscard]] const float* clip_factor() const { return clipped_ ? &norm_.data()->clip_factor : nullptr; }

    Executor exec_;
    std::vector<Parameter> list_;
    bool clipped_ = false;

private:
    [[nodiscard]] device_gradient_limit limit() const { return static_cast<const Derived&>(*this).limit(); }

    detail::device_values<Executor, device_gradient_norm> norm_;
    detail::device_values<Executor, double> sums_;
};

/// AdamW, SGD or Lion for parameters of one type on a GPU, driven by a gpu_loss_scaler as mp::adamw and
/// mp::sgd are by a loss_scaler, with their bits. Gradients stay as they are, scaled: the step takes the
/// scale and the clip factor out while it updates.
///
///     mp::gpu_optimizer optimizer(stream, std::vector{first, second}, mp::adamw_options{.learning_rate =
///     1e-3}); mp::gpu_loss_scaler scaler(stream, mp::pytorch_policy{});
///
/// Device memory is allocated when it is made, and never later. Every call only enqueues, but where it says
/// that it waits, and can be captured into a graph. Copies share the state.
template <gpu_executor Executor, class Parameter, class Options>
class gpu_optimizer : public gpu_gradients<gpu_optimizer<Executor, Parameter, Options>, Executor, Parameter> {
    using base = gpu_gradients<gpu_optimizer, Executor, Parameter>;
    friend base;
    static constexpr std::string_view function = "mp::gpu_optimizer";

public:
    using state_type = device_optimizer<Options>;

    /// \param parameters  see gpu_parameter; their memory must outlive this object
    /// \throws argument_error  an option is out of range; there is not enough device memory
    gpu_optimizer(Executor exec, std::vector<Parameter> parameters, const Options& options)
        : base(function, exec, std::move(parameters)),
          options_(options),
          state_(function, exec, make_device_optimizer(options)) {
        for (const Parameter& it : base::list_) writes_.add(it.gradient.data(), it.gradient.size_bytes());
    }

    [[nodiscard]] std::span<const Parameter> parameters() const { return base::list_; }
    [[nodiscard]] const Options& options() const { return options_; }

    /// Counts of the steps and the learning rate; waits.
    [[nodiscard]] state_type state() const { return state_.read(base::exec_); }
    /// Continues a run.
    void set_state(const state_type& state) { state_.write(base::exec_, state); }
    /// Sets that of the steps from now on. Not for graphs: what they replay reads the device's. Waits.
    void set_learning_rate(double learning_rate) {
        Options changed = options_;
        changed.learning_rate = learning_rate;
        detail::optimizer_traits<Options>::check(function, changed);
        state_type now = state();
        now.learning_rate = learning_rate;
        set_state(now);
    }

    // --- for gpu_loss_scaler

    /// The update, if the policy lets it happen.
    template <scale_policy Policy, std::size_t Events>
    void step(const Policy& policy, const device_loss_scale<Policy, Events>* scale) {
        detail::run_step(base::exec_, parameters(), options_, state_.data(),
                         detail::skip_by_policy<Policy, Events>{detail::rules_of(policy), scale},
                         &scale->inverse_scale, base::clip_factor());
        skip_step();
    }
    /// Forgets the clip factor.
    void skip_step() { base::clipped_ = false; }

    // --- for training_iteration

    [[nodiscard]] detail::gradient_writes& gradient_writes() noexcept { return writes_; }

private:
    [[nodiscard]] device_gradient_limit limit() const {
        return gradient_limit<Parameter>(options_, state_.data());
    }

    Options options_;
    detail::device_values<Executor, state_type> state_;
    detail::gradient_writes writes_;
};

template <gpu_executor Executor, class Parameter, class Options>
gpu_optimizer(const Executor&, std::vector<Parameter>, const Options&)
    -> gpu_optimizer<detail::executor_handle_t<Executor>, Parameter, Options>;

}}  // namespace mp
