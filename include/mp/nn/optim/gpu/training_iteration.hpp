// SPDX-License-Identifier: MIT
/// \file
/// One iteration of training under loss scaling on a GPU as a scope.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/optim/gpu/loss_scaler.hpp>
#include <mp/nn/optim/gpu/optimizer.hpp>
#include <mp/nn/scaling/gradient_writes.hpp>
#include <mp/nn/scaling/training_iteration.hpp>

#include <cstddef>
#include <tuple>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The iteration of a gpu_loss_scaler: as that of loss_scaler, but that all of it is enqueued, and that the
/// step is skipped for all optimizers if it is for one.
///
///     mp::training_iteration iteration(scaler, optimizer);
///     backward(iteration.scale());
///     iteration.clip_gradient_norm(1.0);
///     iteration.finish();
///
/// A scope that is left without finish() changes neither weights nor scale. A gradient that two backward
/// passes write is refused, as there.
template <gpu_executor Executor, scale_policy Policy, std::size_t Events, class... Optimizers>
class [[nodiscard]] training_iteration<gpu_loss_scaler<Executor, Policy, Events>, Optimizers...>
    : public iteration_scope<Optimizers...> {
    using scaler_type = gpu_loss_scaler<Executor, Policy, Events>;
    using scope = iteration_scope<Optimizers...>;
    using scope::each;

public:
    [[nodiscard]] explicit training_iteration(scaler_type& scaler, Optimizers&... optimizers)
        : scope([] {}, optimizers...), scaler_(scaler) {}
    ~training_iteration() {
        static_cast<void>(detail::exception_of([&] { abandon(); }));
    }

    /// The scale in device memory, for the kernel of the loss.
    [[nodiscard]] const device_loss_scale<Policy, Events>* scale() const { return scaler_.scale(); }

    /// Clips the gradients of each optimizer for itself in the step. Once, and before finish().
    ///
    /// \throws state_error     the iteration is finished, the gradients have been clipped, or one was
    ///                         overwritten
    /// \throws argument_error  max_norm is not a limit
    void clip_gradient_norm(double max_norm) {
        require_complete("mp::training_iteration::clip_gradient_norm");
        each([&](auto& optimizer) { scaler_.clip_gradient_norm(optimizer, max_norm); });
    }

    /// The same with one norm over the gradients of all optimizers, as the host's iteration has it.
    void clip_global_gradient_norm(double max_norm) {
        require_complete("mp::training_iteration::clip_global_gradient_norm");
        std::apply([&](auto&... optimizer) { scaler_.clip_global_gradient_norm(max_norm, optimizer...); },
                   scope::optimizers_);
    }

    /// Looks at all gradients, steps every optimizer or none, and moves the scale.
    ///
    /// \throws state_error  the iteration is finished, or a gradient was overwritten
    void finish() {
        require_complete("mp::training_iteration::finish");
        scope::require_lasting_weights("mp::training_iteration::finish");
        each([&](auto& optimizer) { scaler_.check(optimizer); });
        {
            const typename detail::gradient_watch<Optimizers...>::steps steps(scope::watch_);
            each([&](auto& optimizer) { scaler_.step(optimizer); });
        }
        scaler_.update();
        scope::close();
    }

    /// Ends the scope as if nothing had happened.
    void abandon() {
        if (!scope::open_) return;
        scope::close();
        std::apply([&](auto&... optimizer) { scaler_.abandon(optimizer...); }, scope::optimizers_);
    }

private:
    void require_complete(const char* function) const {
        scope::require_open(function);
        scope::check_writes(function);
    }

    scaler_type& scaler_;
};

template <gpu_executor Executor, scale_policy Policy, std::size_t Events, class... Optimizers>
training_iteration(gpu_loss_scaler<Executor, Policy, Events>&, Optimizers&...)
    -> training_iteration<gpu_loss_scaler<Executor, Policy, Events>, Optimizers...>;

}}  // namespace mp
