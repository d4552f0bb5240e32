// SPDX-License-Identifier: MIT
/// \file
/// Gradients whose type says whether the loss scale is still in them, so that what makes no sense with scaled
/// values does not compile. The types are views: a span, and for scaled gradients the scale. Turning raw
/// memory into one, and an unscaled one back, costs nothing at run time.
///
///     mp::scaled_gradient raw(gradient, scaler.current_scale());   // what the backward pass has filled
///     auto [clean, report] = mp::unscale_and_check(mp::cpu{}, raw, buffer);
///     mp::clip_gradient_norm(clean, 1.0);                          // with raw it would not compile
///
/// And sums of gradients that were computed at different loss scales.
#pragma once

#include <mp/base/argument_checks.hpp>
#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/scaling/kernels/unscale.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/nn/scaling/unscale.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#if MP_CORE_BODIES
#include <mp/base/runs.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <cstdint>
#endif

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// False, but only once a template is instantiated.
template <class...>
inline constexpr bool never = false;

}}  // namespace mp::detail

namespace mp {

/// Values times a loss scale: what a backward pass leaves. The memory is the caller's.
///
/// \tparam Value  float or a reduced format, const for gradients that are only read
template <class Value>
    requires detail::exact_in_float<std::remove_const_t<Value>>
class scaled_gradient {
public:
    using value_type = std::remove_const_t<Value>;

    /// Says that `values` carry `scale`.
    /// \throws argument_error  the scale is not finite or not greater than 2^-128
    scaled_gradient(std::span<Value> values, float scale) : values_(values), scale_(scale) {
        detail::require_scale("mp::scaled_gradient", "scale", scale);
    }

    /// The values with the scale in them.
    [[nodiscard]] std::span<Value> values_with_scale() const noexcept { return values_; }
    /// The factor of the values.
    [[nodiscard]] float scale() const noexcept { return scale_; }
    [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }

    /// The same to read only.
    operator scaled_gradient<const value_type>() const noexcept
        requires(!std::is_const_v<Value>)
    {
        return {values_, scale_};
    }

private:
    std::span<Value> values_;
    float scale_;
};

template <detail::contiguous Range>
scaled_gradient(Range&, float) -> scaled_gradient<detail::contiguous_element<Range>>;
template <detail::contiguous Range>
scaled_gradient(const Range&, float) -> scaled_gradient<detail::contiguous_element<const Range>>;

/// Values without a loss scale: what clipping and optimizers work on. The memory is the caller's.
///
/// \tparam Value  float or a reduced format, const for gradients that are only read
template <class Value>
    requires detail::exact_in_float<std::remove_const_t<Value>>
class unscaled_gradient {
public:
    using value_type = std::remove_const_t<Value>;

    /// Says that no scale is in `values`, because there was none, or because it has been taken out by hand.
    explicit unscaled_gradient(std::span<Value> values) noexcept : values_(values) {}

    /// The values.
    [[nodiscard]] std::span<Value> values() const noexcept { return values_; }
    [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }

    /// The same to read only.
    operator unscaled_gradient<const value_type>() const noexcept
        requires(!std::is_const_v<Value>)
    {
        return unscaled_gradient<const value_type>(values_);
    }

private:
    std::span<Value> values_;
};

template <detail::contiguous Range>
explicit unscaled_gradient(Range&) -> unscaled_gradient<detail::contiguous_element<Range>>;
template <detail::contiguous Range>
explicit unscaled_gradient(const Range&) -> unscaled_gradient<detail::contiguous_element<const Range>>;

/// Result of unscale_and_check() for a gradient that knows its scale.
struct unscaled_result {
    unscaled_gradient<float> gradient;  ///< the memory that was given for it
    non_finite_report report;           ///< infinities and NaNs among the results
};

}  // namespace mp

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Takes the scale out of a gradient: unscaled[i] = float(gradient[i]) * inverse_of_scale(scale), rounded
/// once; see unscale_and_check for ranges, which it calls.
///
/// \param unscaled  float memory of the same size; the gradient's own if that is float
/// \throws argument_error  as unscale_and_check for ranges
template <class Value>
[[nodiscard]] unscaled_result unscale_and_check(cpu exec, scaled_gradient<Value> gradient,
                                                std::span<float> unscaled) {
    const non_finite_report report =
        unscale_and_check(exec, gradient.values_with_scale(), unscaled, inverse_of_scale(gradient.scale()));
    return {unscaled_gradient<float>(unscaled), report};
}

/// Unscales a gradient that already has no scale: does not compile.
template <class Value>
unscaled_result unscale_and_check(cpu, unscaled_gradient<Value>, std::span<float>) {
    static_assert(detail::never<Value>,
                  "mp::unscale_and_check: this gradient has no loss scale in it any more; "
                  "unscaling it again would make it too small");
    return {unscaled_gradient<float>({}), {}};
}

/// Scales a gradient down so that its Euclidean norm is at most `max_norm`: by max_norm / (norm + 1e-6) where
/// that is less than 1, as torch.nn.utils.clip_grad_norm_ does. The norm is summed in double. If it is not
/// finite the gradient stays as it is; a scaler skips such a step. For the gradients of an optimizer together
/// see optimizer_base::clip_gradient_norm.
///
/// \returns the norm before clipping
/// \throws argument_error  max_norm is NaN or not positive
inline double clip_gradient_norm(unscaled_gradient<float> gradient, double max_norm) {
    if (detail::is_nan(max_norm) || !(max_norm > 0.0)) {
        detail::throw_argument("mp::clip_gradient_norm", "max_norm", max_norm, "must be greater than 0");
    }
    return detail::in_default_modes([&] {
        double sum = 0.0;
        for (const float value : gradient.values())
            sum = detail::double_add(
                sum, detail::double_multiply(static_cast<double>(value), static_cast<double>(value)));
        const double norm = detail::double_sqrt(sum);
        if (detail::is_non_finite(norm)) return norm;
        const double factor = detail::double_divide(max_norm, detail::double_add(norm, 1e-6));
        if (factor < 1.0) {
            for (float& value : gradient.values()) value *= static_cast<float>(factor);
        }
        return norm;
    });
}

/// Clips a gradient that is still scaled: does not compile.
template <class Value>
double clip_gradient_norm(scaled_gradient<Value>, double) {
    static_assert(
        detail::never<Value>,
        "mp::clip_gradient_norm: this gradient still carries the loss scale, so the limit would apply "
        "to scaled values; call mp::unscale_and_check (or unscale of the loss scaler) first");
    return 0.0;
}

/// sum[i] += gradient[i], for gradients without a scale. For gradients with scales see
/// mp::gradient_accumulator.
///
/// \throws argument_error  the sizes differ
template <class Value>
void add_gradient(unscaled_gradient<float> sum, unscaled_gradient<Value> gradient) {
    if (sum.size() != gradient.size()) {
        detail::throw_argument("mp::add_gradient", "gradient.size()", gradient.size(),
                               "must equal sum.size(), which is " + detail::error_text(sum.size()));
    }
    for (std::size_t i = 0; i < sum.size(); ++i) {
        sum.values()[i] += static_cast<float>(gradient.values()[i]);
    }
}

/// Adds gradients of which at least one is scaled: does not compile.
template <class Sum, class Value>
void add_gradient(scaled_gradient<Sum>, unscaled_gradient<Value>) {
    static_assert(detail::never<Sum>,
                  "mp::add_gradient: the sum carries a loss scale and the gradient does not; "
                  "unscale the sum first");
}
template <class Sum, class Value>
void add_gradient(unscaled_gradient<Sum>, scaled_gradient<Value>) {
    static_assert(detail::never<Sum>,
                  "mp::add_gradient: the gradient still carries its loss scale and the sum "
                  "does not; call mp::unscale_and_check on the gradient first");
}
template <class Sum, class Value>
void add_gradient(scaled_gradient<Sum>, scaled_gradient<Value>) {
    static_assert(detail::never<Sum>,
                  "mp::add_gradient: gradients with loss scales are added by "
                  "mp::gradient_accumulator, which knows when the scales differ");
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Body of gradient_accumulator::add, for a sum of `scale_of_sum`, or for its first gradient.
MP_CORE_FUNCTION non_finite_report accumulate_elements(cpu exec, const gradient_type& type, const void* in,
                                                       std::size_t count, float scale, std::span<float> sum,
                                                       float scale_of_sum, bool first);

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The sum of gradients of several backward passes, in float. The scale may differ from pass to pass, as it
/// does when it is updated in between or when each loss has its scaler: the sum carries the scale of
/// the gradient that was added last, and what was there before is multiplied by the ratio of the scales. With
/// scales that are powers of two that is exact, except for results beyond the range of float. (Apex calls
/// this unscaling with stashed gradients.)
///
///     mp::gradient_accumulator sum(weights.size());
///     sum.add(mp::cpu{}, mp::scaled_gradient(gradient, scale));        // of each micro batch
///     auto [clean, report] = sum.unscale(mp::cpu{});
///
/// Not synchronised. A function that throws has changed nothing.
class gradient_accumulator {
public:
    /// A sum of `size` zeros. Throws argument_error if the size cannot be addressed.
    explicit gradient_accumulator(std::size_t size)
        : values_(detail::addressable("mp::gradient_accumulator", "size", size, 8 * sizeof(float))) {}

    [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
    /// The scale that the sum carries; 1 while nothing was added.
    [[nodiscard]] float scale() const noexcept { return scale_; }
    /// Gradients added since the start or the last reset.
    [[nodiscard]] std::size_t count() const noexcept { return count_; }
    /// The sum with its scale, to be unscaled by a loss scaler.
    [[nodiscard]] scaled_gradient<float> gradient() { return {std::span<float>(values_), scale_}; }

    /// sum = sum * (gradient's scale / sum's scale) + gradient, in float. With scales that are powers of two
    /// only the addition rounds. The first gradient is copied, so that a minus zero stays one.
    ///
    /// \\returns infinities and NaNs of the sum
    /// \\throws argument_error  the size is not that of the sum, or its memory is null
    template <class Value>
    non_finite_report add(cpu exec, scaled_gradient<Value> gradient) {
        const std::span<Value> in = gradient.values_with_scale();
        const non_finite_report report =
            detail::accumulate_elements(exec, detail::gradient_record<std::remove_const_t<Value>>::record,
                                        in.data(), in.size(), gradient.scale(), values_, scale_, count_ == 0);
        scale_ = gradient.scale();
        ++count_;
        return report;
    }

    /// Takes the scale out of the sum, in place, and starts a new one: what is returned refers to the memory
    /// of the accumulator and holds until the next add.
    [[nodiscard]] unscaled_result unscale(cpu exec) {
        const unscaled_result result = unscale_and_check(exec, gradient(), std::span<float>(values_));
        count_ = 0;
        scale_ = 1.0F;
        return result;
    }

    /// Forgets what was added.
    void reset() noexcept {
        std::fill(values_.begin(), values_.end(), 0.0F);
        count_ = 0;
        scale_ = 1.0F;
    }

    /// For mp::save_checkpoint and mp::load_checkpoint.
    template <class Visitor>
    void visit_state(Visitor& visitor) {
        visitor("values", values_);
        visitor("scale", scale_);
        visitor("count", count_);
    }

private:
    std::vector<float> values_;
    float scale_ = 1.0F;
    std::size_t count_ = 0;
};

}}  // namespace mp

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Adds a block of a gradient. Returns true if a result is infinite or NaN.
inline bool accumulate_block(const gradient_type& type, const void* in, std::size_t at, float* __restrict sum,
                             std::size_t count, float ratio, bool first) noexcept {
    float buffer[unscale_block];
    const float* addend = buffer;
    if (type.is_float) {
        addend = static_cast<const float*>(in) + at;
    } else {
        type.rows->load(best_instruction_set(), in, at, count, static_cast<float*>(buffer));
    }
    std::uint32_t carries = 0;
    if (first) {
        in_runs(count, [&](std::size_t i) {
            sum[i] = addend[i];
            carries |= carry_of(sum[i]);
        });
    } else {
        in_runs(count, [&](std::size_t i) { sum[i] = sum[i] * ratio; });
#if defined(__GNUC__)
        __asm__ volatile("" : : : "memory");  // the products are not to be fused with the sums
#endif
        in_runs(count, [&](std::size_t i) {
            sum[i] = sum[i] + addend[i];
            carries |= carry_of(sum[i]);
        });
    }
    return (carries >> 31) != 0;
}

MP_CORE_FUNCTION non_finite_report accumulate_elements(cpu exec, const gradient_type& type, const void* in,
                                                       std::size_t count, float scale, std::span<float> sum,
                                                       float scale_of_sum, bool first) {
    constexpr std::string_view function = "mp::gradient_accumulator::add";
    check_threads(function, exec);
    if (count != sum.size()) {
        throw_argument(function, "gradient.size()", count,
                       "must equal the size of the sum, which is " + error_text(sum.size()));
    }
    require_memory(function, "gradient.values()", in, count);
    const default_floating_point_modes modes;
    // The quotient of two floats, rounded once; for powers of two it is exact.
    const float ratio = first ? 0.0F
                              : static_cast<float>(double_divide(static_cast<double>(scale),
                                                                 static_cast<double>(scale_of_sum)));
    return scan_blocks(exec, sum.data(), count, [&](std::size_t at, std::size_t length) {
        const default_floating_point_modes of_thread;
        return accumulate_block(type, in, at, sum.data() + at, length, ratio, first);
    });
}

}}  // namespace mp::detail
#endif
