// SPDX-License-Identifier: MIT
/// \file
/// Gradients before a step: unscaling, checking, clipping.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/instruction_set.hpp>
#include <mp/config.hpp>
#include <mp/executor.hpp>
#include <mp/nn/optim/gradient_limits.hpp>
#include <mp/nn/optim/kernels/square_sums.hpp>
#include <mp/nn/optim/optimizer_state.hpp>
#include <mp/nn/optim/optimizer_traits.hpp>
#include <mp/nn/optim/parameter.hpp>
#include <mp/nn/scaling/optimizer_protocol.hpp>
#include <mp/nn/scaling/scaled_gradient.hpp>
#include <mp/nn/scaling/unscale.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#if MP_CORE_BODIES
#include <mp/error.hpp>
#include <mp/nn/optim/kernels/layer_norms.hpp>
#include <mp/nn/scaling/gradient_clipping.hpp>
#include <mp/nn/scaling/scale_checks.hpp>

#include <cstring>
#endif

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Calls pass(parameter, first, last), which reports on these elements of a gradient, over all gradients.
template <class Pass>
gradient_report report_on_gradients(cpu exec, const parameter_layout& layout,
                                    std::span<const untyped_parameter> parameters, Pass pass) {
    shared_report found;
    layout.for_each_chunk(exec, unscale_grain, [&](std::size_t i, std::size_t first, std::size_t last) {
        if (parameters[i].gradient_size != 0) found.add(layout.offset(i) + first, pass(i, first, last));
    });
    const non_finite_report total = found.total();
    gradient_report report;
    for (const untyped_parameter& it : parameters) report.checked += it.gradient_size;
    report.infinities = total.infinities;
    report.nans = total.nans;
    report.too_large = total.too_large;
    const std::size_t first = total.found() ? total.first_index : total.first_too_large;
    if (first != no_index) {
        report.first_parameter = layout.array_at(first);
        report.first_element = first - layout.offset(report.first_parameter);
    }
    return report;
}

/// Checks the products that a step uses of some gradients.
inline non_finite_report check_product(instruction_set isa, const gradient_type& type, const void* gradient,
                                       std::size_t size, pending_factors by, std::uint32_t limit) {
    constexpr std::size_t chunk = parameter_layout::chunk;
    const unscale_pass unscale = select_unscale(type, isa, by.inverse_scale, true, chunk);
    const check_pass check = select_check(gradient_record<float>::record, isa, by.clip_factor);
    shared_report report;
    for (std::size_t at = 0; at < size; at += chunk) {
        const std::size_t count = (std::min)(chunk, size - at);
        alignas(64) float values[chunk];
        static_cast<void>(unscale(static_cast<const std::byte*>(gradient) + at * type.rows->size, values,
                                  count, by.inverse_scale, no_check_limit));
        report.add(at, check(values, count, by.clip_factor, limit));
    }
    return report.total();
}

/// The Euclidean norm of all gradients together, as floats that are multiplied on the way, which happens a
/// chunk at a time in the first-level cache. gradient_of(i) is null for a parameter without one.
/// `sums` has layout.chunks() elements.
template <class GradientOf>
double norm_of_gradients(cpu exec, instruction_set isa, const parameter_layout& layout,
                         const gradient_type& type, const GradientOf& gradient_of, pending_factors by,
                         std::span<double> sums) {
    constexpr std::size_t chunk = parameter_layout::chunk;
    const gradient_type& floats = gradient_record<float>::record;
    const auto sum = MP_SELECT_TARGET(isa, &square_sums_portable, square_sums<chunk>);
    const unscale_pass unscale = select_unscale(type, isa, by.inverse_scale, true, chunk);
    const unscale_pass scale = select_unscale(floats, isa, by.clip_factor, true, chunk);
    const bool in_place =
        type.is_float && same_value(by.inverse_scale, 1.0F) && same_value(by.clip_factor, 1.0F);
    layout.for_each_chunk(exec, unscale_grain, [&](std::size_t i, std::size_t first, std::size_t last) {
        double* to = sums.data() + layout.first_chunk(i) + first / chunk;
        const auto* const gradient = static_cast<const std::byte*>(gradient_of(i));
        for (std::size_t at = first; at < last; at += chunk, ++to) {
            // A parameter without a gradient has chunks all the same; they count as zero.
            *to = 0.0;
            if (gradient == nullptr) continue;
            const std::size_t count = (std::min)(chunk, last - at);
            const std::byte* const from = gradient + at * type.rows->size;
            if (in_place) {
                sum(reinterpret_cast<const float*>(from), count, to);
                continue;
            }
            alignas(64) float values[chunk];
            static_cast<void>(unscale(from, values, count, by.inverse_scale, no_check_limit));
            if (!same_value(by.clip_factor, 1.0F)) {
                static_cast<void>(scale(values, values, count, by.clip_factor, no_check_limit));
            }
            sum(values, count, to);
        }
    });
    const default_floating_point_modes modes;
    return modes.held(double_sqrt(sum_of_blocks(sums.data(), sums.size())));
}

/// Multiplies all gradients by a factor.
inline void scale_gradients(cpu exec, instruction_set isa, const parameter_layout& layout,
                            std::span<const std::span<float>> gradients, float factor) {
    const unscale_pass pass =
        select_unscale(gradient_record<float>::record, isa, factor, true, layout.total());
    layout.for_each_chunk(exec, unscale_grain, [&](std::size_t i, std::size_t first, std::size_t last) {
        if (gradients[i].empty()) return;
        float* const values = gradients[i].data() + first;
        static_cast<void>(pass(values, values, last - first, factor, no_check_limit));
    });
}

/// Brings all gradients into [-limit, limit]; a NaN stays one. Magnitudes are compared by their codes.
inline void clamp_gradients(cpu exec, const parameter_layout& layout,
                            std::span<const std::span<float>> gradients, float limit) {
    const auto most = bit_cast<std::uint32_t>(limit);
    layout.for_each_chunk(exec, unscale_grain, [&](std::size_t i, std::size_t first, std::size_t last) {
        if (gradients[i].empty()) return;
        float* const values = gradients[i].data();
        for (std::size_t at = first; at < last; ++at) {
            const auto code = bit_cast<std::uint32_t>(values[at]);
            const std::uint32_t magnitude = code & 0x7FFF'FFFFU;
            const bool too_large = magnitude > most && magnitude <= 0x7F80'0000U;
            values[at] = bit_cast<float>(too_large ? (code & 0x8000'0000U) | most : code);
        }
    });
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_CORE_NAMESPACE {

/// The gradients of an optimizer between the backward pass and the step. See optimizer_base, which adds the
/// passes that apply an update.
class optimizer_gradients : public optimizer_state {
public:
    /// Has clipping and step() take all gradients times the inverse of the loss scale. Without loss
    /// scaling, pass 1.
    ///
    /// \returns what was found among the results
    /// \throws state_error     already unscaled since the last step, skip_step or zero_gradients
    /// \throws argument_error  the inverse scale is NaN or negative
    gradient_report unscale_gradients(float inverse_scale);

    /// Unscales gradients that lie elsewhere, such as those of mp::gradient_accumulator:
    /// one for each parameter, each with its own scale. They are not changed; the parameters' own gradients
    /// are not read, and if they are float, overwritten by the results.
    ///
    /// \throws state_error     already unscaled since the last step, skip_step or zero_gradients
    /// \throws argument_error  there are not as many gradients as parameters, or one has another size than
    ///                         its parameter's gradient
    template <class Value>
    gradient_report unscale_gradients_from(std::span<const scaled_gradient<Value>> gradients) {
        require_scaled("mp::optimizer_base::unscale_gradients_from", gradients.size());
        for (std::size_t i = 0; i < arrays_.size(); ++i) require_gradient_size(i, gradients[i].size());
        allocate_square_sums();
        allocate_unscaled();
        gradient_report report;
        for (std::size_t i = 0; i < arrays_.size(); ++i) {
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
    [[nodiscard]] gradient_report check_gradients(float inverse_scale) const;

    /// The report on the unscaled gradients as the next step uses them, which may have been clipped since. For a
    /// loss scaler, where the report before has values that are too large.
    ///
    /// \throws state_error  the gradients are not unscaled
    [[nodiscard]] gradient_report check_unscaled_gradients() const;

    /// Whether the unscaled gradients are there: after unscale_gradients and before the end of the step.
    [[nodiscard]] MP_ALWAYS_INLINE bool gradients_unscaled() const noexcept { return unscaled_; }

    /// The unscaled gradients, a span for each parameter (empty where it has no gradient), to be looked at
    /// and changed before step(). Unless gradients are float, they are copied for that: 4 bytes a parameter.
    ///
    /// \throws state_error  the gradients are not unscaled
    [[nodiscard]] std::span<const std::span<float>> unscaled_gradients();

    /// Scales the unscaled gradients down, all by the same factor, so that their Euclidean norm is at most
    /// `max_norm`: the factor is max_norm / (norm + 1e-6) where that is less than 1, as in
    /// torch.nn.utils.clip_grad_norm_. The norm is summed in double, in the order of
    /// <mp/nn/optim/kernels/square_sums.hpp>. If it is not finite the gradients stay as they are; a scaler skips
    /// such a step.
    ///
    /// \returns the norm before clipping
    /// \throws state_error     the gradients are not unscaled, so the limit would apply to scaled values
    /// \throws argument_error  max_norm is NaN or not positive
    double clip_gradient_norm(double max_norm);

    /// The Euclidean norm of the unscaled gradients, summed as in clip_gradient_norm.
    ///
    /// \throws state_error  the gradients are not unscaled
    [[nodiscard]] double gradient_norm();

    /// What gradient_norm() is the sum of: the squares of each 4096 elements of every parameter, in order, in
    /// the order of <mp/nn/optim/kernels/square_sums.hpp>. For ranks that have shares of parameters.
    ///
    /// \throws state_error  the gradients are not unscaled
    [[nodiscard]] std::span<const double> gradient_square_sums();

    /// Multiplies the unscaled gradients by `factor`, each product rounded to float; by 1 they stay as they
    /// are. The first factor costs no memory.
    ///
    /// \throws state_error  the gradients are not unscaled
    void scale_gradients(float factor);

    /// Brings every unscaled gradient into [-limit, limit], as torch.nn.utils.clip_grad_value_. A NaN stays
    /// one.
    ///
    /// \throws state_error     the gradients are not unscaled
    /// \throws argument_error  limit is NaN, or not positive as a float
    void clip_gradient_value(double limit);

    /// Ends the round without a step: forgets the unscaled gradients and leaves weights, masters, state and
    /// counts as they are, to the last bit. Versions advance, by which layers with delayed scales of 8-bit operands
    /// know that an iteration has ended.
    void skip_step() noexcept;

    /// Sets all gradients to zero, for a backward pass that adds to them, and forgets the unscaled ones.
    void zero_gradients() noexcept;

protected:
    using optimizer_state::optimizer_state;
    optimizer_gradients(optimizer_gradients&&) noexcept;
    optimizer_gradients& operator=(optimizer_gradients&&) noexcept;
    ~optimizer_gradients();

    /// Sets the largest gradients of a group; without a call only infinities and NaNs are reported.
    void limit_gradients(const detail::gradient_limits& limits, std::size_t group);

    /// Applies an update by one of the library's own rules to all parameters that have a gradient. `coefficients` are the
    /// factors of the rule for each parameter.
    template <class Coefficients>
    void apply_kernel(float inverse_scale, std::span<const Coefficients> coefficients);

    /// Computes the norms that coefficients depend on, of the parameters where they are wanted; nothing else changes.
    /// `sums` has norm_sums() elements. The caller has set default modes.
    template <class Coefficients>
    void measure_kernel(float inverse_scale, std::span<const Coefficients> coefficients,
                        std::span<double> sums, std::span<detail::layer_norms> norms);
    [[nodiscard]] MP_ALWAYS_INLINE std::size_t norm_sums() const noexcept { return 2 * layout_.chunks(); }

    /// Checks the state and the argument of a fused step.
    void require_fused_step(std::string_view function, float inverse_scale) const;

private:
    void forget_round() noexcept;

    /// Bits of the largest gradient that a step takes of a parameter.
    [[nodiscard]] std::uint32_t limit_of(std::size_t index) const;

    /// Has the unscaled gradients in unscaled_spans_.
    void copy_gradients();

    void require_unscaled(std::string_view function) const;
    /// Throws unless the gradients are not unscaled yet and there are `count` parameters.
    void require_scaled(std::string_view function, std::size_t count) const;
    void require_gradient_size(std::size_t index, std::size_t size) const;

    std::vector<detail::gradient_limits> limits_;  // of each group
};

}}  // namespace mp

#if MP_CORE_BODIES
namespace mp { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION optimizer_gradients::optimizer_gradients(optimizer_gradients&&) noexcept = default;
MP_CORE_FUNCTION optimizer_gradients& optimizer_gradients::operator=(optimizer_gradients&&) noexcept =
    default;
MP_CORE_FUNCTION optimizer_gradients::~optimizer_gradients() = default;

MP_CORE_FUNCTION void optimizer_gradients::require_scaled(std::string_view function,
                                                          std::size_t count) const {
    if (unscaled_) {
        detail::throw_joined<state_error>({function,
                                           ": the gradients are already unscaled; step, skip_step or "
                                           "zero_gradients starts the next round"});
    }
    if (count != arrays_.size()) {
        detail::throw_argument(
            function, "gradients.size()", count,
            "must equal the number of parameters, which is " + detail::error_text(arrays_.size()));
    }
}

MP_CORE_FUNCTION void optimizer_gradients::require_gradient_size(std::size_t index, std::size_t size) const {
    if (size == arrays_[index].gradient_size) return;
    detail::throw_argument("mp::optimizer_base::unscale_gradients_from",
                           "gradients[" + detail::error_text(index) + "].size()", size,
                           "must equal the size of the parameter's gradient, which is " +
                               detail::error_text(arrays_[index].gradient_size));
}

MP_CORE_FUNCTION gradient_report optimizer_gradients::unscale_gradients(float inverse_scale) {
    constexpr std::string_view function = "mp::optimizer_base::unscale_gradients";
    require_scaled(function, arrays_.size());
    detail::require_inverse_scale(function, inverse_scale);
    allocate_square_sums();
    gradient_report report;
    if (types_->gradient_is_float) {
        allocate_unscaled();
        const detail::unscale_pass pass =
            detail::select_unscale(*gradient_type_, isa_, inverse_scale, true, layout_.total());
        report = detail::report_on_gradients(
            exec_, layout_, arrays_, [&](std::size_t i, std::size_t first, std::size_t last) {
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

MP_CORE_FUNCTION gradient_report optimizer_gradients::check_gradients(float inverse_scale) const {
    require_fused_step("mp::optimizer_base::check_gradients", inverse_scale);
    const detail::check_pass pass = detail::select_check(*gradient_type_, isa_, inverse_scale);
    const std::size_t size = types_->gradient->size;
    return detail::report_on_gradients(
        exec_, layout_, arrays_, [&](std::size_t i, std::size_t first, std::size_t last) {
            return pass(static_cast<const std::byte*>(arrays_[i].gradient) + first * size, last - first,
                        inverse_scale, limit_of(i));
        });
}

MP_CORE_FUNCTION gradient_report optimizer_gradients::check_unscaled_gradients() const {
    require_unscaled("mp::optimizer_base::check_unscaled_gradients");
    const detail::gradient_type& floats = detail::gradient_record<float>::record;
    const std::size_t size = types_->gradient->size;
    return detail::report_on_gradients(
        exec_, layout_, arrays_, [&](std::size_t i, std::size_t first, std::size_t last) {
            const std::uint32_t limit = limit_of(i);
            if (has_copy_) {
                const detail::check_pass check = detail::select_check(floats, isa_, 1.0F);
                return check(unscaled_spans_[i].data() + first, last - first, 1.0F, limit);
            }
            return detail::check_product(isa_, *gradient_type_,
                                         static_cast<const std::byte*>(arrays_[i].gradient) + first * size,
                                         last - first, pending_, limit);
        });
}

MP_CORE_FUNCTION std::span<const std::span<float>> optimizer_gradients::unscaled_gradients() {
    require_unscaled("mp::optimizer_base::unscaled_gradients");
    copy_gradients();
    return unscaled_spans_;
}

MP_CORE_FUNCTION double optimizer_gradients::clip_gradient_norm(double max_norm) {
    constexpr std::string_view function = "mp::optimizer_base::clip_gradient_norm";
    require_unscaled(function);
    detail::require_limit(function, "max_norm", max_norm);
    const double norm = gradient_norm();
    scale_gradients(detail::in_default_modes([&] { return detail::clip_factor(norm, max_norm); }));
    return norm;
}

MP_CORE_FUNCTION double optimizer_gradients::gradient_norm() {
    require_unscaled("mp::optimizer_base::gradient_norm");
    const detail::gradient_type& floats = detail::gradient_record<float>::record;
    return detail::norm_of_gradients(
        exec_, isa_, layout_, has_copy_ ? floats : *gradient_type_,
        [&](std::size_t i) -> const void* {
            if (has_copy_) return unscaled_spans_[i].empty() ? nullptr : unscaled_spans_[i].data();
            return arrays_[i].gradient_size == 0 ? nullptr : arrays_[i].gradient;
        },
        has_copy_ ? detail::pending_factors{} : pending_, square_sums_);
}

MP_CORE_FUNCTION std::span<const double> optimizer_gradients::gradient_square_sums() {
    static_cast<void>(gradient_norm());
    return square_sums_;
}

MP_CORE_FUNCTION void optimizer_gradients::scale_gradients(float factor) {
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

MP_CORE_FUNCTION void optimizer_gradients::clip_gradient_value(double limit) {
    constexpr std::string_view function = "mp::optimizer_base::clip_gradient_value";
    require_unscaled(function);
    detail::require_limit(function, "limit", limit);
    detail::require_not_vanishing(function, "limit", limit);
    copy_gradients();
    detail::clamp_gradients(exec_, layout_, unscaled_spans_, static_cast<float>(limit));
}

MP_CORE_FUNCTION void optimizer_gradients::skip_step() noexcept {
    forget_round();
    const bool current = masters_are_current();
    for (const detail::untyped_parameter& it : arrays_) it.version.changed();
    if (current) adopt_weight_versions();
}

MP_CORE_FUNCTION void optimizer_gradients::zero_gradients() noexcept {
    for (const detail::untyped_parameter& it : arrays_) {
        if (it.gradient_size != 0) std::memset(it.gradient, 0, it.gradient_size * types_->gradient->size);
    }
    forget_round();
}

MP_CORE_FUNCTION void optimizer_gradients::limit_gradients(const detail::gradient_limits& limits,
                                                           std::size_t group) {
    limits_.resize((std::max)(limits_.size(), group + 1));
    limits_[group] = limits;
}

MP_CORE_FUNCTION void optimizer_gradients::require_fused_step(std::string_view function,
                                                              float inverse_scale) const {
    if (unscaled_) {
        detail::throw_joined<state_error>(
            {function, ": the gradients are already unscaled; call step() without an inverse scale"});
    }
    detail::require_inverse_scale(function, inverse_scale);
}

MP_CORE_FUNCTION void optimizer_gradients::forget_round() noexcept {
    unscaled_ = false;
    agreed_.clear();
}

MP_CORE_FUNCTION std::uint32_t optimizer_gradients::limit_of(std::size_t index) const {
    const std::size_t group = arrays_[index].group;
    if (group >= limits_.size()) return detail::no_check_limit;
    return detail::largest_gradient_bits(limits_[group], rates_[group]);
}

MP_CORE_FUNCTION void optimizer_gradients::copy_gradients() {
    if (has_copy_) return;
    allocate_unscaled();
    const std::size_t size = types_->gradient->size;
    const detail::unscale_pass unscale =
        detail::select_unscale(*gradient_type_, isa_, pending_.inverse_scale, false, layout_.total());
    layout_.for_each_chunk(
        exec_, detail::unscale_grain, [&](std::size_t i, std::size_t first, std::size_t last) {
            if (unscaled_spans_[i].empty()) return;
            static_cast<void>(unscale(static_cast<const std::byte*>(arrays_[i].gradient) + first * size,
                                      unscaled_spans_[i].data() + first, last - first, pending_.inverse_scale,
                                      detail::no_check_limit));
        });
    has_copy_ = true;
    const float factor = pending_.clip_factor;
    if (!detail::same_value(factor, 1.0F)) {
        detail::scale_gradients(exec_, isa_, layout_, unscaled_spans_, factor);
    }
}

MP_CORE_FUNCTION void optimizer_gradients::require_unscaled(std::string_view function) const {
    if (!unscaled_) {
        detail::throw_joined<state_error>(
            {function,
             ": the gradients have not been unscaled since the last step; call unscale of the loss "
             "scaler first (without loss scaling: unscale_gradients(1))"});
    }
}

template <class Coefficients>
void optimizer_gradients::apply_kernel(float inverse_scale, std::span<const Coefficients> coefficients) {
    begin_step();
    layout_.for_each_chunk(
        exec_, detail::update_grain, [&](std::size_t i, std::size_t first, std::size_t last) {
            if (!takes_part(i)) return;
            detail::update_chunk(isa_, arrays_of(i, first, last, inverse_scale), coefficients[i]);
        });
    finish_step();
}

template <class Coefficients>
void optimizer_gradients::measure_kernel(float inverse_scale, std::span<const Coefficients> coefficients,
                                         std::span<double> sums, std::span<detail::layer_norms> norms) {
    begin_step();
    double* const weight_sums = sums.data();
    double* const measured_sums = sums.data() + layout_.chunks();
    layout_.for_each_chunk(
        exec_, detail::update_grain, [&](std::size_t i, std::size_t first, std::size_t last) {
            if (!takes_part(i) || !norms[i].wanted) return;
            const std::size_t at = layout_.first_chunk(i) + first / detail::parameter_layout::chunk;
            detail::sum_layer_squares(isa_, arrays_of(i, first, last, inverse_scale), coefficients[i],
                                      weight_sums + at, measured_sums + at);
        });
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        if (!takes_part(i) || !norms[i].wanted) continue;
        const std::size_t begin = layout_.first_chunk(i);
        const std::size_t end = i + 1 < arrays_.size() ? layout_.first_chunk(i + 1) : layout_.chunks();
        norms[i].weights = detail::double_sqrt(detail::sum_of_blocks(weight_sums + begin, end - begin));
        norms[i].measured = detail::double_sqrt(detail::sum_of_blocks(measured_sums + begin, end - begin));
    }
}

}}  // namespace mp
#endif
