// SPDX-License-Identifier: MIT
/// \file
/// One iteration of training under loss scaling as a scope, with the order of its parts built in.
#pragma once

#include <mp/error.hpp>
#include <mp/nn/scaling/gradient_clipping.hpp>
#include <mp/nn/scaling/gradient_writes.hpp>
#include <mp/nn/scaling/loss_scaler.hpp>
#include <mp/nn/scaling/optimizer_protocol.hpp>
#include <mp/nn/scaling/scale_event.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Optimizer>
concept clips_gradients = requires(Optimizer& optimizer) { optimizer.clip_gradient_norm(1.0); };
template <class Optimizer>
concept clips_gradients_together = requires(Optimizer& optimizer) {
    { optimizer.gradient_norm() } -> std::same_as<double>;
    optimizer.scale_gradients(1.0F);
    optimizer.clip_gradient_value(1.0);
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Base of the iterations of all scalers: the optimizers, and the watch over their gradients.
template <class... Optimizers>
class iteration_scope {
    static_assert(sizeof...(Optimizers) != 0, "mp::training_iteration needs at least one optimizer");

public:
    /// For backward passes that write a gradient more than once on purpose, such as those that are run again.
    void allow_overwriting() noexcept { allows_overwriting_ = true; }

protected:
    /// Calls open() before the watch begins, which another scope may have open.
    template <class Open>
    explicit iteration_scope(const Open& open, Optimizers&... optimizers)
        : optimizers_(opened(open, optimizers...)) {}
    ~iteration_scope() = default;

    template <class Function>
    void each(Function function) {
        std::apply([&](auto&... optimizer) { (function(optimizer), ...); }, optimizers_);
    }
    void close() noexcept {
        open_ = false;
        watch_.stop();
    }
    void require_open(const char* function) const {
        if (!open_)
            detail::throw_joined<state_error>({function, ": this iteration is finished; start a new one"});
    }
    /// Throws state_error if a gradient was overwritten that must not be.
    void check_writes(const char* function) const {
        if (!allows_overwriting_) watch_.check(function);
    }
    void require_lasting_weights(const char* function) {
        each([&](auto& optimizer) {
            if constexpr (requires { optimizer.require_lasting_weights(function); }) {
                optimizer.require_lasting_weights(function);
            }
        });
    }

    std::tuple<Optimizers&...> optimizers_;
    detail::gradient_watch<Optimizers...> watch_{optimizers_};
    bool open_ = true;

private:
    template <class Open>
    static std::tuple<Optimizers&...> opened(const Open& open, Optimizers&... optimizers) {
        const std::tuple<Optimizers&...> all(optimizers...);
        detail::gradient_watch<Optimizers...>::require_distinct("mp::training_iteration", all);
        open();
        return all;
    }

    bool allows_overwriting_ = false;
};

/// An iteration of a scaler and its optimizers as a scope: of mp::loss_scaler below, of mp::gpu_loss_scaler
/// in <mp/nn/optim/gpu/training_iteration.hpp>. The types follow from the arguments.
template <class Scaler, class... Optimizers>
class training_iteration;

/// An iteration from the first backward pass to the update of the scale: the optimizers are unscaled at most
/// once and step exactly once, the scale is the same all along and moves once at the end.
///
///     mp::training_iteration iteration(scaler, encoder_optimizer, decoder_optimizer);
///     for (const batch& it : micro_batches) backward(iteration.scale(loss(it) / micro_batches.size()));
///     iteration.clip_gradient_norm(1.0);
///     if (iteration.finish()) schedule.advance();
///
/// A scope that is left without finish, by an exception for example, leaves scale, counters, weights and
/// optimizer state as they were, and zeroes the gradients of the optimizers that can do that
/// (zero_gradients()). While it is open the scaler refuses update and a second scope. finish() zeroes
/// gradients as well, so that the next iteration can add to them.
///
/// A gradient that two backward passes write, where the second should have added to it, makes the loss of the
/// first one count for nothing: unscale() and finish() refuse that. Ops of <mp/ops.hpp> on the iteration's
/// thread are seen.
///
/// Not synchronised, and for the thread that makes it; neither copied nor moved.
template <scale_policy Policy, scalable_optimizer... Optimizers>
class [[nodiscard]] training_iteration<loss_scaler<Policy>, Optimizers...>
    : public iteration_scope<Optimizers...> {
    using scope = iteration_scope<Optimizers...>;
    using scope::each;

public:
    /// \throws state_error     another scope of this scaler is open, or optimizers have been unscaled or stepped
    ///                         outside of one since the last update
    /// \throws argument_error  two of the optimizers have a gradient in common
    [[nodiscard]] explicit training_iteration(loss_scaler<Policy>& scaler, Optimizers&... optimizers)
        : scope([&] { scaler.open_iteration(); }, optimizers...), scaler_(scaler) {}
    ~training_iteration() { abandon(); }

    /// The loss times the scale, see loss_scaler::scale. For every micro batch, and for every loss.
    template <class Loss>
    [[nodiscard]] auto scale(Loss loss) const noexcept {
        return scaler_.scale(loss);
    }

    /// The scale of this iteration.
    [[nodiscard]] float current_scale() const noexcept { return scaler_.current_scale(); }

    /// Unscales the gradients of all optimizers; the second time it does nothing. No gradient may be added
    /// after that.
    ///
    /// \throws state_error  the iteration is finished, or a gradient was overwritten
    void unscale() {
        constexpr const char* function = "mp::training_iteration::unscale";
        scope::require_open(function);
        if (unscaled_) return;
        scope::check_writes(function);
        each([&](auto& optimizer) { scaler_.unscale(optimizer); });
        unscaled_ = true;
    }

    /// Unscales if that has not been done, and clips the gradients of each optimizer for itself, by its
    /// clip_gradient_norm.
    ///
    /// \returns the norms before clipping, in the order of the optimizers
    /// \throws state_error     the iteration is finished, or a gradient was overwritten
    /// \throws argument_error  max_norm is not a limit
    std::array<double, sizeof...(Optimizers)> clip_gradient_norm(double max_norm)
        requires(detail::clips_gradients<Optimizers> && ...)
    {
        unscale();
        std::array<double, sizeof...(Optimizers)> norms{};
        std::size_t i = 0;
        each([&](auto& optimizer) { norms[i++] = optimizer.clip_gradient_norm(max_norm); });
        return norms;
    }

    /// As clip_gradient_norm(), with one norm over the gradients of all optimizers, as
    /// torch.nn.utils.clip_grad_norm_ of all parameters: each is multiplied by the same factor, whatever its
    /// format.
    ///
    /// \returns the norm before clipping; where it is not finite, nothing is clipped
    /// \throws state_error     the iteration is finished, or a gradient was overwritten
    /// \throws argument_error  max_norm is not a limit
    double clip_global_gradient_norm(double max_norm)
        requires(detail::clips_gradients_together<Optimizers> && ...)
    {
        detail::require_limit("mp::training_iteration::clip_global_gradient_norm", "max_norm", max_norm);
        unscale();
        const detail::default_floating_point_modes modes;
        double squares = 0.0;
        each([&](auto& optimizer) {
            const double norm = optimizer.gradient_norm();
            squares = detail::double_add(squares, detail::double_multiply(norm, norm));
        });
        const double norm = detail::double_sqrt(squares);
        const float factor = detail::clip_factor(norm, max_norm);
        each([&](auto& optimizer) { optimizer.scale_gradients(factor); });
        return norm;
    }

    /// Unscales if that has not been done, and brings every gradient into [-limit, limit].
    ///
    /// \throws state_error     the iteration is finished, or a gradient was overwritten
    /// \throws argument_error  limit is NaN, or not positive as a float
    void clip_gradient_value(double limit)
        requires(detail::clips_gradients_together<Optimizers> && ...)
    {
        unscale();
        each([&](auto& optimizer) { optimizer.clip_gradient_value(limit); });
    }

    /// Result of finish().
    struct result {
        std::array<step_result, sizeof...(Optimizers)> steps = {};  ///< in the order of the optimizers
        scale_change change = {};                                   ///< the scale before and after
        scale_event event = {};  ///< the same in one struct, with everything that was seen

        /// True if no optimizer was skipped: the moment for a learning rate schedule to advance.
        [[nodiscard]] explicit operator bool() const {
            for (const step_result& step : steps) {
                if (step.status != step_status::applied && step.status != step_status::no_gradients)
                    return false;
            }
            return true;
        }
    };

    /// Steps every optimizer whose gradients are finite, moves the scale, and zeroes the gradients.
    ///
    /// \returns what happened; true in a condition if every optimizer with gradients stepped
    /// \throws state_error  the iteration is finished, a gradient was overwritten, or weights are those of an average
    ///                      that is applied; nothing has changed, and the scope is still open
    /// \throws scale_error  the policy refuses to go on. Optimizers with finite gradients have stepped by
    /// then;
    ///                      the scope is closed, and scale and counters are as before
    result finish() {
        constexpr const char* function = "mp::training_iteration::finish";
        scope::require_open(function);
        if (!unscaled_) scope::check_writes(function);
        scope::require_lasting_weights(function);
        result outcome;
        std::size_t i = 0;
        {
            const typename detail::gradient_watch<Optimizers...>::steps steps(scope::watch_);
            each([&](auto& optimizer) { outcome.steps[i++] = scaler_.step(optimizer); });
        }
        close();
        const auto failure = detail::exception_of([&] { outcome.change = scaler_.update(); });
        if (failure) {
            scaler_.abandon_iteration();
            zero_gradients();
            std::rethrow_exception(failure);
        }
        outcome.event = scaler_.last_event();
        zero_gradients();
        return outcome;
    }

    /// Ends the scope as if nothing had happened.
    void abandon() {
        if (!scope::open_) return;
        close();
        scaler_.abandon_iteration();
        zero_gradients();
    }

private:
    void zero_gradients() {
        each([](auto& optimizer) {
            if constexpr (requires { optimizer.zero_gradients(); }) optimizer.zero_gradients();
        });
    }

    void close() noexcept {
        scope::close();
        scaler_.close_iteration();
    }

    loss_scaler<Policy>& scaler_;
    bool unscaled_ = false;
};

/// Finds the template arguments by those of the constructor.
template <scale_policy Policy, scalable_optimizer... Optimizers>
training_iteration(loss_scaler<Policy>&, Optimizers&...)
    -> training_iteration<loss_scaler<Policy>, Optimizers...>;

/// Result of train_with_retries().
struct retry_result {
    int attempts = 0;      ///< backward passes over the batch, at least 1
    bool applied = false;  ///< whether the last of them was applied
    scale_change change = {};
};

/// One iteration that runs the same batch again, at the lower scale, as long as its step is skipped: no batch
/// is lost to a search for the scale (as fairseq's amp_batch_retries).
///
///     mp::train_with_retries(scaler, [&](auto& iteration) { backward(iteration.scale(loss(batch))); },
///                            2, optimizer);
///
/// \param backward    called with the training_iteration; computes the gradients anew each time
/// \param retries     attempts after the first; at least 0
/// \throws argument_error  retries is negative
template <scale_policy Policy, class Backward, scalable_optimizer... Optimizers>
retry_result train_with_retries(loss_scaler<Policy>& scaler, Backward&& backward, int retries,
                                Optimizers&... optimizers) {
    detail::require_counter("mp::train_with_retries", "retries", retries, 0);
    retry_result outcome;
    do {
        training_iteration<loss_scaler<Policy>, Optimizers...> iteration(scaler, optimizers...);
        backward(iteration);
        const auto finished = iteration.finish();
        ++outcome.attempts;
        outcome.applied = static_cast<bool>(finished);
        outcome.change = finished.change;
        // Where the scale does not move, as under hysteresis or with a static one, the same would happen
        // again for as long; it is tried all the same, since the policy counts it.
    } while (!outcome.applied && outcome.attempts <= retries);
    return outcome;
}

}}  // namespace mp
