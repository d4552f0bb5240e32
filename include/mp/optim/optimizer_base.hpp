// SPDX-License-Identifier: MIT
/// \file
/// What all optimizers share: master weights, unscaled gradients, clipping, and the passes that apply an
/// update.
#pragma once

#include <mp/detail/parallel.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/optim/gradient_passes.hpp>
#include <mp/optim/kernels/update.hpp>
#include <mp/optim/option_checks.hpp>
#include <mp/optim/parameter.hpp>
#include <mp/optim/parameter_layout.hpp>
#include <mp/optim/update_passes.hpp>
#include <mp/optim/weight_update.hpp>
#include <mp/scaling/optimizer_protocol.hpp>
#include <mp/scaling/scale_checks.hpp>
#include <mp/scaling/scaled_gradient.hpp>
#include <mp/scaling/unscale.hpp>
#include <mp/simd/instruction_set.hpp>
#include <mp/simd/processor.hpp>

#include <algorithm>
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
/// nearest, ties to even; if it is the same type, the weights themselves are updated, in the way that
/// mp::weight_update names. State such as momentum is kept in State. All arithmetic is in float, on values
/// read from these types, and every product, sum, quotient and root is rounded; what is stored is rounded
/// once. So sgd<half> trains a half network with float master weights, sgd<half, half, half> is half alone,
/// and adamw<bfloat16, bfloat16, bfloat16, float> has weights without a master copy and float state.
///
/// Gradients that are unscaled explicitly go to float memory of their own, allocated at the first time, so
/// that nothing that scaling saved from underflow is lost again; gradients of type float are unscaled in
/// place.
///
/// The memory of the parameters belongs to the caller and must outlive the optimizer. Between a call of
/// unscale_gradients and step the gradients must not be added to. Results depend neither on the number of
/// threads nor on the instruction set (but for the payload of a NaN that comes from two), nor on the modes of
/// rounding and flushing of the calling thread. Objects are not synchronised. A function that throws has
/// changed nothing. After the first round, one thread allocates nothing.
template <class Weight, class Gradient = Weight, class Master = float, class State = Master>
    requires detail::exact_in_float<Weight> && detail::exact_in_float<Gradient> &&
        detail::exact_in_float<Master> && detail::exact_in_float<State>
class optimizer_base {
public:
    using weight_type = Weight;
    using gradient_type = Gradient;
    using master_type = Master;
    using state_type = State;
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
        const auto pass = detail::select_unscale<Gradient>(level_, inverse_scale,
                                                           std::is_same_v<Gradient, float>, layout_.total());
        const gradient_report report = detail::report_on_gradients(
            exec_, layout_, parameters_, [&](std::size_t i, std::size_t first, std::size_t last) {
                return pass(parameters_[i].gradient.data() + first, unscaled_spans_[i].data() + first,
                            last - first, inverse_scale);
            });
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
        const auto pass = detail::select_check<Gradient>(level_, inverse_scale);
        return detail::report_on_gradients(
            exec_, layout_, parameters_, [&](std::size_t i, std::size_t first, std::size_t last) {
                return pass(parameters_[i].gradient.data() + first, last - first, inverse_scale);
            });
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
    /// torch.nn.utils.clip_grad_norm_. The norm is summed in double, in the order of
    /// <mp/optim/kernels/square_sums.hpp>. If it is not finite the gradients stay as they are; a scaler skips
    /// such a step.
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
        const double norm = detail::norm_of_gradients(exec_, level_, layout_, unscaled_spans_, square_sums_);
        if (detail::is_non_finite(norm)) return norm;
        const float factor = static_cast<float>(std::min(max_norm / (norm + 1e-6), 1.0));
        if (factor < 1.0F) {
            detail::scale_gradients(exec_, level_, layout_, unscaled_spans_, factor);
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
            return std::span<const Master>(masters_).subspan(layout_.offset(index), it.weights.size());
        } else {
            return it.weights;
        }
    }

    /// What rounding has taken away from each weight of a parameter so far; empty unless the weights are
    /// updated by weight_update::kahan.
    [[nodiscard]] std::span<const Master> weight_compensation(std::size_t index) const {
        const std::size_t size = at("mp::optimizer_base::weight_compensation", index).weights.size();
        if (how_ != weight_update::kahan) return {};
        return std::span<const Master>(compensation_).subspan(layout_.offset(index), size);
    }

    /// Takes over weights that were changed from outside, for example loaded from a file: sets the master
    /// copy to the weights, and compensations to zero. State such as momentum stays.
    void reload_master_weights() noexcept {
        std::fill(compensation_.begin(), compensation_.end(), Master{});
        if constexpr (has_master_copy) {
            for (std::size_t i = 0; i < parameters_.size(); ++i) {
                Master* const masters = masters_.data() + layout_.offset(i);
                const std::span<Weight> weights = parameters_[i].weights;
                for (std::size_t j = 0; j < weights.size(); ++j) {
                    masters[j] = static_cast<Master>(static_cast<float>(weights[j]));
                }
            }
        }
    }

    /// Memory that training takes for each weight, in bytes: weight, gradient, master copy or compensation,
    /// state, and the unscaled gradients once they have been needed.
    [[nodiscard]] double bytes_per_parameter() const noexcept {
        std::size_t bytes = (masters_.size() + compensation_.size()) * sizeof(Master) +
                            unscaled_memory_.size() * sizeof(float);
        for (const std::vector<State>& state : states_) bytes += state.size() * sizeof(State);
        for (const parameter_type& it : parameters_) {
            bytes += it.weights.size_bytes() + it.gradient.size_bytes();
        }
        const std::size_t total = layout_.total();
        return total == 0 ? 0.0 : static_cast<double>(bytes) / static_cast<double>(total);
    }

protected:
    /// Takes over the parameters and initialises the master copy from the weights.
    ///
    /// \param name    of the derived class, for messages
    /// \param rate    the learning rate, checked already
    /// \param states  number of state arrays, all zero at the start
    /// \param how     what becomes of small updates; nearest unless Weight is a reduced format without master
    ///                copy. Looked at by apply_kernel only
    /// \param seed    of the random bits of weight_update::stochastic
    optimizer_base(std::string_view name, cpu exec, std::vector<parameter_type> parameters, double rate,
                   std::size_t states, weight_update how = weight_update::nearest, std::uint64_t seed = 0)
        : exec_(exec), parameters_(std::move(parameters)), learning_rate_(rate), how_(how), seed_(seed) {
        detail::check_threads(name, exec);
        level_ = detail::level_of(name, exec);
        if (how != weight_update::nearest && !weights_can_stall) {
            detail::throw_argument(name, "low_precision_update", name_of(how),
                                   has_master_copy ? "must be nearest, for there is a master copy"
                                                   : "must be nearest, for the weights are float");
        }
        detail::check_parameters(name, parameters_);
        for (const parameter_type& it : parameters_) layout_.add(it.weights.size());
        updates_.resize(parameters_.size());
        unscaled_spans_.resize(parameters_.size());
        states_.assign(states, std::vector<State>(layout_.total()));
        if constexpr (has_master_copy) masters_.resize(layout_.total());
        if (how == weight_update::kahan) compensation_.resize(layout_.total());
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
    ///
    /// The rule runs with the default modes of rounding and flushing. What it returns is rounded to nearest.
    template <std::size_t States, class Rule>
    void apply(float inverse_scale, Rule rule) {
        // Nothing below throws once the first piece has begun, so a failure to start threads changes nothing.
        layout_.for_each_piece(
            exec_, detail::update_grain, [&](std::size_t i, std::size_t first, std::size_t last) {
                if (parameters_[i].gradient.empty()) return;
                with_arrays<States>(i, first, last, inverse_scale, [&](const auto& arrays) {
                    detail::update_by_rule(arrays, rule(updates_[i] + 1));
                });
            });
        finish_step();
    }

    /// The same with one of the library's own rules, whose kernels keep everything in registers.
    /// `coefficients(update)` gives what the rule multiplies by.
    template <class Coefficients, class CoefficientsOf>
    void apply_kernel(float inverse_scale, CoefficientsOf coefficients) {
        switch (how_) {
            case weight_update::nearest:
                return run_kernel<weight_update::nearest, Coefficients>(inverse_scale, coefficients);
            case weight_update::stochastic:
                if constexpr (weights_can_stall) {
                    run_kernel<weight_update::stochastic, Coefficients>(inverse_scale, coefficients);
                }
                return;
            case weight_update::kahan:
                if constexpr (weights_can_stall) {
                    run_kernel<weight_update::kahan, Coefficients>(inverse_scale, coefficients);
                }
                return;
        }
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
    [[nodiscard]] std::span<const State> state_of(std::string_view function, std::size_t index,
                                                  std::size_t state) const {
        const std::size_t size = at(function, index).weights.size();
        if (state >= states_.size()) return {};
        return std::span<const State>(states_[state]).subspan(layout_.offset(index), size);
    }

private:
    /// Whether updates may be lost for want of digits, and there is a choice of what to do about it.
    static constexpr bool weights_can_stall = !has_master_copy && !std::is_same_v<Weight, float>;

    template <weight_update How, class Coefficients, class CoefficientsOf>
    void run_kernel(float inverse_scale, const CoefficientsOf& coefficients) {
        // Powers take long for small parameters, and nearly always all have had as many updates.
        const std::uint64_t usual = *std::max_element(updates_.begin(), updates_.end()) + 1;
        const Coefficients usual_coefficients = coefficients(usual);
        layout_.for_each_piece(
            exec_, detail::update_grain, [&](std::size_t i, std::size_t first, std::size_t last) {
                if (parameters_[i].gradient.empty()) return;
                const std::uint64_t number = updates_[i] + 1;
                const Coefficients c = number == usual ? usual_coefficients : coefficients(number);
                with_arrays<Coefficients::states>(
                    i, first, last, inverse_scale, [&]<class Arrays>(const Arrays& arrays) {
                        detail::select_update<How, Coefficients, Arrays>(level_)(arrays, c);
                    });
            });
        finish_step();
    }

    /// Calls f with a piece of parameter `index`, and with the gradient that an update uses: the unscaled one
    /// if it is there.
    template <std::size_t States, class Function>
    void with_arrays(std::size_t index, std::size_t first, std::size_t last, float inverse_scale,
                     Function f) {
        const auto call = [&](const auto* gradient, float scale) {
            using gradient_value = std::remove_const_t<std::remove_pointer_t<decltype(gradient)>>;
            const std::size_t at = layout_.offset(index) + first;
            detail::update_arrays<Weight, gradient_value, Master, State, States> arrays{};
            arrays.weights = parameters_[index].weights.data() + first;
            if constexpr (has_master_copy) {
                arrays.masters = masters_.data() + at;
            } else {
                arrays.masters = arrays.weights;
            }
            arrays.gradient = gradient + first;
            for (std::size_t s = 0; s < std::min(States, states_.size()); ++s) {
                arrays.states[s] = states_[s].data() + at;
            }
            if (how_ == weight_update::kahan) arrays.compensation = compensation_.data() + at;
            arrays.count = last - first;
            arrays.inverse_scale = scale;
            arrays.first = first;
            arrays.seed = seed_;
            arrays.parameter = static_cast<std::uint32_t>(index);
            arrays.update = updates_[index] + 1;
            f(arrays);
        };
        if (unscaled_) {
            call(static_cast<const float*>(unscaled_spans_[index].data()), 1.0F);
        } else {
            call(static_cast<const Gradient*>(parameters_[index].gradient.data()), inverse_scale);
        }
    }

    void finish_step() noexcept {
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            if (!parameters_[i].gradient.empty()) ++updates_[i];
        }
        ++steps_;
        unscaled_ = false;
    }

    void allocate_unscaled() {
        if constexpr (!std::is_same_v<Gradient, float>) unscaled_memory_.resize(layout_.total());
        square_sums_.resize(layout_.chunks());
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            const std::span<Gradient> gradient = parameters_[i].gradient;
            if constexpr (std::is_same_v<Gradient, float>) {
                unscaled_spans_[i] = gradient;
            } else {
                unscaled_spans_[i] =
                    std::span<float>(unscaled_memory_).subspan(layout_.offset(i), gradient.size());
            }
        }
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
    instruction_set level_ = instruction_set::portable;
    std::vector<parameter_type> parameters_;
    detail::parameter_layout layout_;   // of the parameters in the arrays below
    std::vector<Master> masters_;       // empty without a master copy
    std::vector<Master> compensation_;  // empty but for weight_update::kahan
    std::vector<std::vector<State>> states_;
    std::vector<float> unscaled_memory_;  // empty for float gradients, and until the first unscaling
    std::vector<std::span<float>> unscaled_spans_;
    std::vector<double> square_sums_;     // of the blocks of the unscaled gradients
    std::vector<std::uint64_t> updates_;  // of each parameter
    std::uint64_t steps_ = 0;
    double learning_rate_;
    weight_update how_;
    std::uint64_t seed_;
    bool unscaled_ = false;
};

}  // namespace mp
