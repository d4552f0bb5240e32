// SPDX-License-Identifier: MIT
/// \file
/// Gradients before a step: unscaling, checking, clipping.
#pragma once

#include <mp/error.hpp>
#include <mp/nn/optim/gradient_limits.hpp>
#include <mp/nn/optim/gradient_passes.hpp>
#include <mp/nn/optim/optimizer_memory.hpp>
#include <mp/nn/optim/option_checks.hpp>
#include <mp/nn/scaling/gradient_clipping.hpp>
#include <mp/nn/scaling/optimizer_protocol.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/nn/scaling/scaled_gradient.hpp>
#include <mp/nn/scaling/unscale.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The gradients of an optimizer between the backward pass and the step. See optimizer_base, which adds the
/// passes that apply an update.
template <class Weight, class Gradient, class Master, class State>
class optimizer_gradients : public optimizer_memory<Weight, Gradient, Master, State> {
    using memory = optimizer_memory<Weight, Gradient, Master, State>;

public:
    using typename memory::parameter_type;

    /// From now on, clipping and step() take all gradients times the inverse of the loss scale. Without loss
    /// scaling, pass 1.
    ///
    /// \returns what was found among the results
    /// \throws state_error     already unscaled since the last step, skip_step or zero_gradients
    /// \throws argument_error  the inverse scale is NaN or negative
    gradient_report unscale_gradients(float inverse_scale) {
        if (unscaled_) {
            detail::throw_error(state_error(
                "mp::optimizer_base::unscale_gradients: the gradients are already unscaled; step, skip_step "
                "or zero_gradients starts the next round"));
        }
        detail::require_inverse_scale("mp::optimizer_base::unscale_gradients", inverse_scale);
        allocate_square_sums();
        gradient_report report;
        if constexpr (std::is_same_v<Gradient, float>) {
            allocate_unscaled();
            const auto pass = detail::select_unscale<float>(isa_, inverse_scale, true, layout_.total());
            report = detail::report_on_gradients(
                exec_, layout_, parameters_, [&](std::size_t i, std::size_t first, std::size_t last) {
                    float* const values = unscaled_spans_[i].data() + first;
                    return pass(values, values, last - first, inverse_scale, limit_of(i));
                });
            has_copy_ = true;
        } else {
            report = check_gradients(inverse_scale);
            pending_ = {inverse_scale, 1.0F};
            has_copy_ = false;
        }
        unscaled_ = true;
        return report;
    }

    /// As unscale_gradients(), for gradients that lie elsewhere, such as those of mp::gradient_accumulator:
    /// one for each parameter, each with its own scale. They are not changed; the parameters' own gradients
    /// are not looked at, and if they are float, overwritten by the results.
    ///
    /// \throws state_error     already unscaled since the last step, skip_step or zero_gradients
    /// \throws argument_error  there are not as many gradients as parameters, or one has another size than
    ///                         its parameter's gradient
    template <class Value>
    gradient_report unscale_gradients_from(std::span<const scaled_gradient<Value>> gradients) {
        constexpr std::string_view function = "mp::optimizer_base::unscale_gradients_from";
        if (unscaled_) {
            detail::throw_joined<state_error>(
                {function,
                 ": the gradients are already unscaled; step, skip_step or zero_gradients starts "
                 "the next round"});
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
        allocate_square_sums();
        allocate_unscaled();
        gradient_report report;
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            report.add(i, gradients[i].size(),
                       detail::unscale_within(exec_, gradients[i].values_with_scale(), unscaled_spans_[i],
                                              inverse_of_scale(gradients[i].scale()), limit_of(i)));
        }
        unscaled_ = true;
        has_copy_ = true;
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
    /// Finite values count as too large if, repeated for ever, they would take a state out of the range of its
    /// format, or if one would move a weight by more than half of its range: from such a state some weights never
    /// move again. docs/training.md has the bound of each optimizer.
    ///
    /// \throws state_error     the gradients are already unscaled
    /// \throws argument_error  the inverse scale is NaN or negative
    [[nodiscard]] gradient_report check_gradients(float inverse_scale) const {
        require_fused_step("mp::optimizer_base::check_gradients", inverse_scale);
        const auto pass = detail::select_check<Gradient>(isa_, inverse_scale);
        return detail::report_on_gradients(
            exec_, layout_, parameters_, [&](std::size_t i, std::size_t first, std::size_t last) {
                return pass(parameters_[i].gradient.data() + first, last - first, inverse_scale, limit_of(i));
            });
    }

    /// The report on the unscaled gradients as the next step uses them, which may have been clipped since. For a
    /// loss scaler, where the report before has values that are too large.
    ///
    /// \throws state_error  the gradients are not unscaled
    [[nodiscard]] gradient_report check_unscaled_gradients() const {
        require_unscaled("mp::optimizer_base::check_unscaled_gradients");
        return detail::report_on_gradients(
            exec_, layout_, parameters_, [&](std::size_t i, std::size_t first, std::size_t last) {
                const std::uint32_t limit = limit_of(i);
                if (has_copy_) {
                    const auto check = detail::select_check<float>(isa_, 1.0F);
                    return check(unscaled_spans_[i].data() + first, last - first, 1.0F, limit);
                }
                return detail::check_product(
                    isa_, std::span<const Gradient>(parameters_[i].gradient).subspan(first, last - first),
                    pending_, limit);
            });
    }

    /// Whether the unscaled gradients are there: after unscale_gradients and before the end of the step.
    [[nodiscard]] bool gradients_unscaled() const noexcept { return unscaled_; }

    /// The unscaled gradients, a span for each parameter (empty where it has no gradient), to be looked at
    /// and changed before step(). Unless gradients are float, they are copied for that: 4 bytes a parameter.
    ///
    /// \throws state_error  the gradients are not unscaled
    [[nodiscard]] std::span<const std::span<float>> unscaled_gradients() {
        require_unscaled("mp::optimizer_base::unscaled_gradients");
        copy_gradients();
        return unscaled_spans_;
    }

    /// Scales the unscaled gradients down, all by the same factor, so that their Euclidean norm is at most
    /// `max_norm`: the factor is max_norm / (norm + 1e-6) where that is less than 1, as in
    /// torch.nn.utils.clip_grad_norm_. The norm is summed in double, in the order of
    /// <mp/nn/optim/kernels/square_sums.hpp>. If it is not finite the gradients stay as they are; a scaler skips
    /// such a step.
    ///
    /// \returns the norm before clipping
    /// \throws state_error     the gradients are not unscaled, so the limit would apply to scaled values
    /// \throws argument_error  max_norm is NaN or not positive
    double clip_gradient_norm(double max_norm) {
        constexpr std::string_view function = "mp::optimizer_base::clip_gradient_norm";
        require_unscaled(function);
        detail::require_limit(function, "max_norm", max_norm);
        const double norm = gradient_norm();
        scale_gradients(detail::in_default_modes([&] { return detail::clip_factor(norm, max_norm); }));
        return norm;
    }

    /// The Euclidean norm of the unscaled gradients, summed as in clip_gradient_norm.
    ///
    /// \throws state_error  the gradients are not unscaled
    [[nodiscard]] double gradient_norm() {
        require_unscaled("mp::optimizer_base::gradient_norm");
        if (has_copy_) {
            return detail::norm_of_gradients<float>(
                exec_, isa_, layout_, [&](std::size_t i) { return unscaled_spans_[i]; }, {}, square_sums_);
        }
        return detail::norm_of_gradients<Gradient>(
            exec_, isa_, layout_, [&](std::size_t i) { return parameters_[i].gradient; }, pending_,
            square_sums_);
    }

    /// What gradient_norm() is the sum of: the squares of each 4096 elements of every parameter, in order, in
    /// the order of <mp/nn/optim/kernels/square_sums.hpp>. For ranks that have shares of parameters.
    ///
    /// \throws state_error  the gradients are not unscaled
    [[nodiscard]] std::span<const double> gradient_square_sums() {
        static_cast<void>(gradient_norm());
        return square_sums_;
    }

    /// Multiplies the unscaled gradients by `factor`, each product rounded to float; by 1 they stay as they
    /// are. The first factor costs no memory.
    ///
    /// \throws state_error  the gradients are not unscaled
    void scale_gradients(float factor) {
        require_unscaled("mp::optimizer_base::scale_gradients");
        if (detail::same_value(static_cast<double>(factor), 1.0)) return;
        if (!has_copy_ && detail::same_value(pending_.clip_factor, 1.0F)) {
            pending_.clip_factor = factor;
            return;
        }
        copy_gradients();
        const detail::default_floating_point_modes modes;
        detail::scale_gradients(exec_, isa_, layout_, unscaled_spans_, factor);
    }

    /// Brings every unscaled gradient into [-limit, limit], as torch.nn.utils.clip_grad_value_. A NaN stays
    /// one.
    ///
    /// \throws state_error     the gradients are not unscaled
    /// \throws argument_error  limit is NaN, or not positive as a float
    void clip_gradient_value(double limit) {
        constexpr std::string_view function = "mp::optimizer_base::clip_gradient_value";
        require_unscaled(function);
        detail::require_limit(function, "limit", limit);
        detail::require_not_vanishing(function, "limit", limit);
        copy_gradients();
        detail::clamp_gradients(exec_, layout_, unscaled_spans_, static_cast<float>(limit));
    }

    /// Ends the round without a step: forgets the unscaled gradients and leaves weights, masters, state and
    /// counts as they are, to the last bit. Versions advance, by which layers with delayed scales of 8-bit operands
    /// know that an iteration has ended.
    void skip_step() noexcept {
        forget_round();
        const bool current = memory::masters_are_current();
        for (const parameter_type& it : parameters_) it.version.changed();
        if (current) memory::adopt_weight_versions();
    }

    /// Sets all gradients to zero, for a backward pass that adds to them, and forgets the unscaled ones.
    void zero_gradients() noexcept {
        for (const parameter_type& it : parameters_) {
            std::fill(it.gradient.begin(), it.gradient.end(), Gradient{});
        }
        forget_round();
    }

protected:
    using memory::memory;

    optimizer_gradients(optimizer_gradients&&) noexcept = default;
    optimizer_gradients& operator=(optimizer_gradients&&) noexcept = default;
    ~optimizer_gradients() = default;

    /// Sets the largest gradients of a group; without a call only infinities and NaNs are reported.
    void limit_gradients(const detail::gradient_limits& limits, std::size_t group) {
        limits_.resize((std::max)(limits_.size(), group + 1));
        limits_[group] = limits;
    }

    /// Checks the state and the argument of a fused step.
    void require_fused_step(std::string_view function, float inverse_scale) const {
        if (unscaled_) {
            detail::throw_joined<state_error>(
                {function, ": the gradients are already unscaled; call step() without an inverse scale"});
        }
        detail::require_inverse_scale(function, inverse_scale);
    }

    using memory::agreed_;
    using memory::allocate_square_sums;
    using memory::allocate_unscaled;
    using memory::exec_;
    using memory::has_copy_;
    using memory::isa_;
    using memory::layout_;
    using memory::parameters_;
    using memory::pending_;
    using memory::rates_;
    using memory::square_sums_;
    using memory::unscaled_;
    using memory::unscaled_spans_;

private:
    void forget_round() noexcept {
        unscaled_ = false;
        agreed_.clear();
    }

    /// Bits of the largest gradient that a step takes of a parameter.
    [[nodiscard]] std::uint32_t limit_of(std::size_t index) const {
        const std::size_t group = parameters_[index].group;
        if (group >= limits_.size()) return detail::no_check_limit;
        return detail::largest_gradient_bits(limits_[group], rates_[group]);
    }

    /// Has the unscaled gradients in unscaled_spans_.
    void copy_gradients() {
        if (has_copy_) return;
        allocate_unscaled();
        const auto unscale =
            detail::select_unscale<Gradient>(isa_, pending_.inverse_scale, false, layout_.total());
        layout_.for_each_chunk(exec_, detail::unscale_grain,
                               [&](std::size_t i, std::size_t first, std::size_t last) {
                                   if (unscaled_spans_[i].empty()) return;
                                   static_cast<void>(unscale(parameters_[i].gradient.data() + first,
                                                             unscaled_spans_[i].data() + first, last - first,
                                                             pending_.inverse_scale, detail::no_check_limit));
                               });
        has_copy_ = true;
        const float factor = pending_.clip_factor;
        if (!detail::same_value(factor, 1.0F)) {
            detail::scale_gradients(exec_, isa_, layout_, unscaled_spans_, factor);
        }
    }

    void require_unscaled(std::string_view function) const {
        if (!unscaled_) {
            detail::throw_joined<state_error>(
                {function,
                 ": the gradients have not been unscaled since the last step; call unscale of "
                 "the loss scaler first (without loss scaling: unscale_gradients(1))"});
        }
    }

    std::vector<detail::gradient_limits> limits_;  // of each group
};

}}  // namespace mp
