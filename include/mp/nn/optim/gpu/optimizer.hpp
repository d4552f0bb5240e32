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
#include <mp/nn/optim/gpu/parameter.hpp>
#include <mp/nn/optim/gpu/update_work.hpp>
#include <mp/nn/scaling/gpu/device_loss_scale.hpp>
#include <mp/nn/scaling/gpu/unscale.hpp>
#include <mp/nn/scaling/gradient_writes.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace mp { inline namespace MP_ISA_NAMESPACE {

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
class gpu_optimizer {
    static constexpr std::string_view function = "mp::gpu_optimizer";

public:
    using state_type = device_optimizer<Options>;

    /// \param parameters  see gpu_parameter; their memory must outlive this object
    /// \throws argument_error  an option is out of range; there is not enough device memory
    gpu_optimizer(Executor exec, std::vector<Parameter> parameters, const Options& options)
        : exec_(exec),
          parameters_(std::move(parameters)),
          options_(options),
          state_(function, exec, make_device_optimizer(options)),
          norm_(function, exec, device_gradient_norm{}),
          sums_(function, exec, gradient_norm_workspace(parameters_)) {
        for (const Parameter& it : parameters_) writes_.add(it.gradient.data(), it.gradient.size_bytes());
    }

    [[nodiscard]] std::span<const Parameter> parameters() const { return parameters_; }
    [[nodiscard]] const Options& options() const { return options_; }

    /// Counts of the steps and the learning rate; waits.
    [[nodiscard]] state_type state() const { return state_.read(exec_); }
    /// Continues a run.
    void set_state(const state_type& state) { state_.write(exec_, state); }
    /// Sets that of the steps from now on. Not for graphs: what they replay reads the device's. Waits.
    void set_learning_rate(double learning_rate) {
        Options changed = options_;
        changed.learning_rate = learning_rate;
        detail::optimizer_traits<Options>::check(function, changed);
        state_type state = state_.read(exec_);
        state.learning_rate = learning_rate;
        state_.write(exec_, state);
    }
    /// The result of clip_gradient_norm, in device memory.
    [[nodiscard]] const device_gradient_norm* gradient_norm() const { return norm_.data(); }
    /// As gradient_norm(), on the host; waits.
    [[nodiscard]] device_gradient_norm read_gradient_norm() const { return norm_.read(exec_); }

    // --- for gpu_loss_scaler

    /// Adds what is wrong with the gradients to the findings of the scale.
    template <scale_policy Policy, std::size_t Events>
    void check_gradients(device_loss_scale<Policy, Events>* scale) {
        mp::check_gradients(exec_, parameters_, scale, 0, limit());
    }
    /// As check_gradients(), and finds the factor by which the next step clips the norm of the gradients.
    template <scale_policy Policy, std::size_t Events>
    void clip_gradient_norm(device_loss_scale<Policy, Events>* scale, double max_norm) {
        detail::run_gradient_norm(exec_, parameters_, &scale->inverse_scale,
                                  std::span<double>(sums_.data(), sums_size()), norm_.data(), max_norm,
                                  &scale->seen, 0, limit(), !detail::is_non_finite(max_norm));
        clipped_ = true;
    }
    /// The update, if the policy lets it happen.
    template <scale_policy Policy, std::size_t Events>
    void step(const Policy& policy, const device_loss_scale<Policy, Events>* scale) {
        const float* const factor = clipped_ ? &norm_.data()->clip_factor : nullptr;
        detail::run_step(exec_, std::span<const Parameter>(parameters_), options_, state_.data(),
                         detail::skip_by_policy<Policy, Events>{detail::rules_of(policy), scale},
                         &scale->inverse_scale, factor);
        clipped_ = false;
    }
    /// Where the norm of this optimizer's gradients is, and the factor that the step clips them by, which may
    /// be that of a norm over several optimizers.
    [[nodiscard]] device_gradient_norm* clipping() { return norm_.data(); }
    /// Forgets the clip factor.
    void skip_step() { clipped_ = false; }

    // --- for training_iteration

    [[nodiscard]] detail::gradient_writes& gradient_writes() noexcept { return writes_; }

private:
    [[nodiscard]] device_gradient_limit limit() const {
        return gradient_limit<Parameter>(options_, state_.data());
    }
    [[nodiscard]] std::size_t sums_size() const { return gradient_norm_workspace(parameters_); }

    Executor exec_;
    std::vector<Parameter> parameters_;
    Options options_;
    detail::device_values<Executor, state_type> state_;
    detail::device_values<Executor, device_gradient_norm> norm_;
    detail::device_values<Executor, double> sums_;
    detail::gradient_writes writes_;
    bool clipped_ = false;
};

template <gpu_executor Executor, class Parameter, class Options>
gpu_optimizer(const Executor&, std::vector<Parameter>, const Options&)
    -> gpu_optimizer<detail::executor_handle_t<Executor>, Parameter, Options>;

}}  // namespace mp
