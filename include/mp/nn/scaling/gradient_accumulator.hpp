// SPDX-License-Identifier: MIT
/// \file
/// Adding up gradients that were computed at different loss scales.
#pragma once

#include <mp/base/container_size.hpp>
#include <mp/config.hpp>
#include <mp/executor.hpp>
#include <mp/nn/scaling/kernels/unscale.hpp>
#include <mp/nn/scaling/scaled_gradient.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#if MP_CORE_BODIES
#include <mp/base/require_memory.hpp>
#include <mp/base/runs.hpp>
#include <mp/base/thread_count.hpp>
#include <mp/error.hpp>
#include <mp/nn/scaling/unscale.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <cstdint>
#include <string_view>
#endif

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
