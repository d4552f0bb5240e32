// SPDX-License-Identifier: MIT
/// \file
/// What all optimizers share: master weights, unscaled gradients, clipping, and the pass that applies an
/// update.
#pragma once

#include <mp/convert/bulk.hpp>
#include <mp/detail/parallel.hpp>
#include <mp/detail/runs.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/optim/float_blocks.hpp>
#include <mp/optim/option_checks.hpp>
#include <mp/optim/parameter.hpp>
#include <mp/scaling/optimizer_protocol.hpp>
#include <mp/scaling/scale_checks.hpp>
#include <mp/scaling/scaled_gradient.hpp>
#include <mp/scaling/unscale.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp {

/// Base of the optimizers, and of your own: derive, and call apply from step.
///
/// Weights are of type Weight, which the forward pass uses. If Master is another type, the optimizer keeps a
/// master copy of the weights in it, updates that, and writes the weights as its values rounded once to
/// nearest, ties to even; if it is the same type, the weights themselves are updated. State such as momentum
/// is kept in Master. All arithmetic is in float, on values read from these types; what is stored is rounded
/// once. So sgd<half> trains a half network with float master weights, and sgd<half, half, half> is half
/// alone.
///
/// Gradients that are unscaled explicitly go to float memory of their own, allocated at the first time, so
/// that nothing that scaling saved from underflow is lost again; gradients of type float are unscaled in
/// place.
///
/// The memory of the parameters belongs to the caller and must outlive the optimizer. Between a call of
/// unscale_gradients and step the gradients must not be added to. Results do not depend on the number of
/// threads. Objects are not synchronised. A function that throws has changed nothing.
template <class Weight, class Gradient = Weight, class Master = float>
    requires detail::exact_in_float<Weight> && detail::exact_in_float<Gradient> &&
        detail::exact_in_float<Master>
class optimizer_base {
public:
    using weight_type = Weight;
    using gradient_type = Gradient;
    using master_type = Master;
    using parameter_type = parameter<Weight, Gradient>;

    /// Whether there is a master copy beside the weights.
    static constexpr bool has_master_copy = !std::is_same_v<Weight, Master>;

    optimizer_base(const optimizer_base&) = delete;
    optimizer_base& operator=(const optimizer_base&) = delete;

    /// The parameters in the order in which they were given.
    [[nodiscard]] std::span<const parameter_type> parameters() const noexcept { return parameters_; }

    /// The name of a parameter, maybe empty. Valid as long as the optimizer.
    [[nodiscard]] std::string_view parameter_name(std::size_t index) const {
        return at("mp::optimizer_base::parameter_name", index).name;
    }

    /// The present learning rate.
    [[nodiscard]] double learning_rate() const noexcept { return learning_rate_; }

    /// Sets the learning rate of the following steps; finite and not negative, else argument_error.
    void set_learning_rate(double rate) {
        detail::require_non_negative("mp::optimizer_base::set_learning_rate", "rate", rate);
        learning_rate_ = rate;
    }

    /// Steps applied so far; skipped ones do not count.
    [[nodiscard]] std::uint64_t step_count() const noexcept { return steps_; }

    /// Multiplies all gradients by the inverse of the loss scale and keeps the results for clipping and for
    /// step(). Without loss scaling, pass 1.
    ///
    /// \returns what was found among the results
    /// \throws state_error     already unscaled since the last step, skip_step or zero_gradients
    /// \throws argument_error  the inverse scale is NaN or negative
    gradient_report unscale_gradients(float inverse_scale) {
        if (unscaled_) {
            throw state_error(
                "mp::optimizer_base::unscale_gradients: the gradients are already unscaled; step, skip_step "
                "or zero_gradients starts the next round");
        }
        detail::require_inverse_scale("mp::optimizer_base::unscale_gradients", inverse_scale);
        allocate_unscaled();
        gradient_report report;
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            report.add(i, unscaled_spans_[i].size(),
                       unscale_and_check(exec_, parameters_[i].gradient, unscaled_spans_[i], inverse_scale));
        }
        unscaled_ = true;
        return report;
    }

    /// The same for gradients that lie elsewhere, such as those of mp::gradient_accumulator: one for each
    /// parameter, each with a scale of its own. They are not changed; the parameters' own gradients are not
    /// looked at, and if they are float, overwritten by the results.
    ///
    /// \throws state_error     already unscaled since the last step, skip_step or zero_gradients
    /// \throws argument_error  there are not as many gradients as parameters, or one has another size than
    /// its
    ///                         parameter's gradient
    template <class Value>
    gradient_report unscale_gradients_from(std::span<const scaled_gradient<Value>> gradients) {
        constexpr std::string_view function = "mp::optimizer_base::unscale_gradients_from";
        if (unscaled_) {
            throw state_error(
                std::string(function) +
                ": the gradients are already unscaled; step, skip_step or zero_gradients starts "
                "the next round");
        }
        if (gradients.size() != parameters_.size()) {
            detail::throw_argument(
                function, "gradients.size()", gradients.size(),
                "must equal the number of parameters, which is " + detail::error_text(parameters_.size()));
        }
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            if (gradients[i].size() != parameters_[i].gradient.size()) {
                detail::throw_argument(function, "gradients[" + detail::error_text(i) + "].size()",
                                       gradients[i].size(),
                                       "must equal the size of the parameter's gradient, which is " +
                                           detail::error_text(parameters_[i].gradient.size()));
            }
        }
        allocate_unscaled();
        gradient_report report;
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            report.add(i, gradients[i].size(),
                       unscale_and_check(exec_, gradients[i], unscaled_spans_[i]).report);
        }
        unscaled_ = true;
        return report;
    }

    /// Gradients that already have no scale in them are taken as they are: give them a scale of 1.
    template <class Value>
    gradient_report unscale_gradients_from(std::span<const unscaled_gradient<Value>>) {
        static_assert(detail::never<Value>,
                      "mp::optimizer_base::unscale_gradients_from: these gradients carry no loss scale; wrap "
                      "their values in mp::scaled_gradient with a scale of 1");
        return {};
    }

    /// The report that unscale_gradients would give, without keeping anything.
    ///
    /// \throws state_error     the gradients are already unscaled
    /// \throws argument_error  the inverse scale is NaN or negative
    [[nodiscard]] gradient_report check_gradients(float inverse_scale) const {
        require_fused_step("mp::optimizer_base::check_gradients", inverse_scale);
        gradient_report report;
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            const std::span<Gradient> gradient = parameters_[i].gradient;
            report.add(i, gradient.size(), check_finite(exec_, gradient, inverse_scale));
        }
        return report;
    }

    /// Whether the unscaled gradients are there: after unscale_gradients and before the end of the step.
    [[nodiscard]] bool gradients_unscaled() const noexcept { return unscaled_; }

    /// The unscaled gradients, a span for each parameter (empty where it has no gradient), to be looked at
    /// and changed before step().
    ///
    /// \throws state_error  the gradients are not unscaled
    [[nodiscard]] std::span<const std::span<float>> unscaled_gradients() const {
        require_unscaled("mp::optimizer_base::unscaled_gradients");
        return unscaled_spans_;
    }

    /// Scales the unscaled gradients down, all by the same factor, so that their Euclidean norm is at most
    /// `max_norm`: the factor is max_norm / (norm + 1e-6) where that is less than 1, as in
    /// torch.nn.utils.clip_grad_norm_. The norm is summed in double. If it is not finite the gradients stay
    /// as they are; a scaler skips such a step.
    ///
    /// \returns the norm before clipping
    /// \throws state_error     the gradients are not unscaled, so the limit would apply to scaled values
    /// \throws argument_error  max_norm is NaN or not positive
    double clip_gradient_norm(double max_norm) {
        constexpr std::string_view function = "mp::optimizer_base::clip_gradient_norm";
        require_unscaled(function);
        if (detail::is_nan(max_norm) || !(max_norm > 0.0)) {
            detail::throw_argument(function, "max_norm", max_norm, "must be greater than 0");
        }
        const double norm = unscaled_norm();
        if (detail::is_non_finite(norm)) return norm;
        const float factor = static_cast<float>(std::min(max_norm / (norm + 1e-6), 1.0));
        if (factor < 1.0F) {
            for (const std::span<float> gradient : unscaled_spans_) {
                for (float& value : gradient) value *= factor;
            }
        }
        return norm;
    }

    /// Ends the round without a step: forgets the unscaled gradients and leaves weights, masters, state and
    /// counts as they are, to the last bit.
    void skip_step() noexcept { unscaled_ = false; }

    /// Sets all gradients to zero, for a backward pass that adds to them, and forgets the unscaled ones.
    void zero_gradients() noexcept {
        for (const parameter_type& it : parameters_) {
            std::fill(it.gradient.begin(), it.gradient.end(), Gradient{});
        }
        unscaled_ = false;
    }

    /// The weights in the precision in which they are trained: the master copy, or the weights themselves.
    [[nodiscard]] std::span<const Master> master_weights(std::size_t index) const {
        const parameter_type& it = at("mp::optimizer_base::master_weights", index);
        if constexpr (has_master_copy) {
            return std::span<const Master>(masters_).subspan(offsets_[index], it.weights.size());
        } else {
            return it.weights;
        }
    }

    /// Takes over weights that were changed from outside, for example loaded from a file: sets the master
    /// copy to the weights. State such as momentum stays.
    void reload_master_weights() noexcept {
        if constexpr (has_master_copy) {
            for (std::size_t i = 0; i < parameters_.size(); ++i) {
                Master* const masters = masters_.data() + offsets_[i];
                const std::span<Weight> weights = parameters_[i].weights;
                for (std::size_t j = 0; j < weights.size(); ++j) {
                    masters[j] = static_cast<Master>(static_cast<float>(weights[j]));
                }
            }
        }
    }

    /// Memory that training takes for each weight, in bytes: weight, gradient, master copy, state, and the
    /// unscaled gradients once they have been needed.
    [[nodiscard]] double bytes_per_parameter() const noexcept {
        std::size_t bytes = masters_.size() * sizeof(Master) + unscaled_memory_.size() * sizeof(float);
        for (const std::vector<Master>& state : states_) bytes += state.size() * sizeof(Master);
        for (const parameter_type& it : parameters_) {
            bytes += it.weights.size_bytes() + it.gradient.size_bytes();
        }
        return total_ == 0 ? 0.0 : static_cast<double>(bytes) / static_cast<double>(total_);
    }

protected:
    /// Takes over the parameters and initialises the master copy from the weights.
    ///
    /// \param name    of the derived class, for messages
    /// \param rate    the learning rate, checked already
    /// \param states  number of state arrays, all zero at the start
    optimizer_base(std::string_view name, cpu exec, std::vector<parameter_type> parameters, double rate,
                   std::size_t states)
        : exec_(exec), parameters_(std::move(parameters)), learning_rate_(rate) {
        detail::check_threads(name, exec);
        detail::check_parameters(name, parameters_);
        offsets_.reserve(parameters_.size());
        for (const parameter_type& it : parameters_) {
            offsets_.push_back(total_);
            total_ += it.weights.size();
        }
        updates_.resize(parameters_.size());
        unscaled_spans_.resize(parameters_.size());
        states_.assign(states, std::vector<Master>(total_));
        if constexpr (has_master_copy) masters_.resize(total_);
        reload_master_weights();
    }

    optimizer_base(optimizer_base&&) noexcept = default;
    optimizer_base& operator=(optimizer_base&&) noexcept = default;
    ~optimizer_base() = default;

    /// One pass over all parameters that have a gradient. `rule(update)` gives the update rule for a
    /// parameter, where `update` is the number of this update of it, from 1 on; the rule is called as
    /// `(float* weights, const float* gradient, std::array<float*, States> states, std::size_t count)` on
    /// pieces of it, from several threads, and must not throw. Gradients are the unscaled ones if they are
    /// there, else the raw ones times `inverse_scale`.
    template <std::size_t States, class Rule>
    void apply(float inverse_scale, Rule rule) {
        // Nothing below throws once the first piece has begun, so a failure to start threads changes nothing.
        detail::parallel_for(exec_, total_, detail::update_grain, [&](std::size_t begin, std::size_t end) {
            // The last parameter that starts at or before `begin`, then on to the end of the piece.
            const auto after = std::upper_bound(offsets_.begin(), offsets_.end(), begin);
            for (auto i = static_cast<std::size_t>(after - offsets_.begin()) - 1;
                 i < parameters_.size() && offsets_[i] < end; ++i) {
                const std::size_t size = parameters_[i].gradient.size();
                const std::size_t first = std::max(begin, offsets_[i]) - offsets_[i];
                const std::size_t last = std::min(end - offsets_[i], size);
                if (first < last) apply_to<States>(i, first, last, inverse_scale, rule(updates_[i] + 1));
            }
        });
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            if (!parameters_[i].gradient.empty()) ++updates_[i];
        }
        ++steps_;
        unscaled_ = false;
    }

    /// Checks the state and the argument of a fused step.
    void require_fused_step(std::string_view function, float inverse_scale) const {
        if (unscaled_) {
            throw state_error(std::string(function) +
                              ": the gradients are already unscaled; call step() without an inverse scale");
        }
        detail::require_inverse_scale(function, inverse_scale);
    }

    /// State array `state` of parameter `index`; empty if there are not so many.
    [[nodiscard]] std::span<const Master> state_of(std::string_view function, std::size_t index,
                                                   std::size_t state) const {
        const std::size_t size = at(function, index).weights.size();
        if (state >= states_.size()) return {};
        return std::span<const Master>(states_[state]).subspan(offsets_[index], size);
    }

private:
    template <std::size_t States, class Update>
    void apply_to(std::size_t index, std::size_t first, std::size_t last, float inverse_scale,
                  const Update& update) noexcept {
        const std::size_t offset = offsets_[index];
        Master* masters = nullptr;
        if constexpr (has_master_copy) {
            masters = masters_.data() + offset;
        } else {
            masters = parameters_[index].weights.data();
        }
        detail::float_window<Master> weight_window;
        std::array<detail::float_window<Master>, States> state_windows;
        float gradient_buffer[detail::float_block];
        for (std::size_t at = first; at < last; at += detail::float_block) {
            const std::size_t count = std::min(detail::float_block, last - at);
            const float* const gradient = gradient_block(index, at, count, inverse_scale, gradient_buffer);
            float* const weights = weight_window.load(masters + at, count);
            std::array<float*, States> states{};
            for (std::size_t s = 0; s != States; ++s) {
                states[s] = state_windows[s].load(states_[s].data() + offset + at, count);
            }
            update(weights, gradient, states, count);
            weight_window.store(masters + at, count);
            for (std::size_t s = 0; s != States; ++s) {
                state_windows[s].store(states_[s].data() + offset + at, count);
            }
            if constexpr (has_master_copy) {
                detail::convert_nearest(masters + at, parameters_[index].weights.data() + at, count);
            }
        }
    }

    /// The gradient that an update uses, from element `at` on: in `buffer` unless it exists as float already.
    const float* gradient_block(std::size_t index, std::size_t at, std::size_t count, float inverse_scale,
                                float* __restrict buffer) const noexcept {
        if (unscaled_) return unscaled_spans_[index].data() + at;
        const Gradient* __restrict const raw = parameters_[index].gradient.data() + at;
        if constexpr (std::is_same_v<Gradient, float>) {
            if (inverse_scale == 1.0F) return raw;
            detail::in_runs(count, [=](std::size_t j) { buffer[j] = raw[j] * inverse_scale; });
        } else {
            detail::convert_nearest(raw, buffer, count);
            if (inverse_scale != 1.0F) {
                detail::in_runs(count, [=](std::size_t j) { buffer[j] *= inverse_scale; });
            }
        }
        return buffer;
    }

    void allocate_unscaled() {
        if constexpr (!std::is_same_v<Gradient, float>) unscaled_memory_.resize(total_);
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            const std::span<Gradient> gradient = parameters_[i].gradient;
            if constexpr (std::is_same_v<Gradient, float>) {
                unscaled_spans_[i] = gradient;
            } else {
                unscaled_spans_[i] = std::span<float>(unscaled_memory_).subspan(offsets_[i], gradient.size());
            }
        }
    }

    /// The sum runs in eight lanes, which a compiler may keep in one register, in an order that never
    /// changes.
    [[nodiscard]] double unscaled_norm() const noexcept {
        std::array<double, 8> sums{};
        for (const std::span<float> gradient : unscaled_spans_) {
            std::size_t i = 0;
            for (; i + sums.size() <= gradient.size(); i += sums.size()) {
                for (std::size_t lane = 0; lane < sums.size(); ++lane) {
                    const double value = static_cast<double>(gradient[i + lane]);
                    sums[lane] += value * value;
                }
            }
            for (; i < gradient.size(); ++i) {
                const double value = static_cast<double>(gradient[i]);
                sums[0] += value * value;
            }
        }
        double sum = 0.0;
        for (const double lane : sums) sum += lane;
        return std::sqrt(sum);
    }

    void require_unscaled(std::string_view function) const {
        if (!unscaled_) {
            throw state_error(std::string(function) +
                              ": the gradients have not been unscaled since the last step; call unscale of "
                              "the loss scaler first (without loss scaling: unscale_gradients(1))");
        }
    }

    const parameter_type& at(std::string_view function, std::size_t index) const {
        if (index >= parameters_.size()) {
            detail::throw_argument(function, "index", index,
                                   "must be less than the number of parameters, which is " +
                                       detail::error_text(parameters_.size()));
        }
        return parameters_[index];
    }

    cpu exec_;
    std::vector<parameter_type> parameters_;
    std::vector<std::size_t> offsets_;  // of each parameter in the arrays below
    std::vector<Master> masters_;       // empty without a master copy
    std::vector<std::vector<Master>> states_;
    std::vector<float> unscaled_memory_;  // empty for float gradients, and until the first unscaling
    std::vector<std::span<float>> unscaled_spans_;
    std::vector<std::uint64_t> updates_;  // of each parameter
    std::size_t total_ = 0;
    std::uint64_t steps_ = 0;
    double learning_rate_;
    bool unscaled_ = false;
};

}  // namespace mp
