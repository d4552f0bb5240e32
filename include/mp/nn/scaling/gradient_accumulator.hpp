// SPDX-License-Identifier: MIT
/// \file
/// Adding up gradients that were computed at different loss scales.
#pragma once

#include <mp/arrays/convert/bulk.hpp>
#include <mp/base/container_size.hpp>
#include <mp/base/runs.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/scaling/scaled_gradient.hpp>
#include <mp/nn/scaling/unscale.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

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
        constexpr std::string_view function = "mp::gradient_accumulator::add";
        const std::span<Value> in = gradient.values_with_scale();
        detail::check_threads(function, exec);
        if (in.size() != values_.size()) {
            detail::throw_argument(
                function, "gradient.size()", in.size(),
                "must equal the size of the sum, which is " + detail::error_text(values_.size()));
        }
        detail::require_memory(function, "gradient.values()", in.data(), in.size());
        const detail::default_floating_point_modes modes;
        const bool first = count_ == 0;
        // The quotient of two floats, rounded once; for powers of two it is exact.
        const float ratio = first ? 0.0F
                                  : static_cast<float>(detail::double_divide(
                                        static_cast<double>(gradient.scale()), static_cast<double>(scale_)));
        float* const sum = values_.data();
        const auto block = [=](std::size_t at, std::size_t length) {
            const detail::default_floating_point_modes of_thread;
            return add_block(in.data() + at, sum + at, length, ratio, first);
        };
        const non_finite_report report = detail::scan_blocks(exec, sum, values_.size(), block);
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
    /// Adds a block; true if a result is infinite or NaN.
    template <class Value>
    static bool add_block(const Value* gradient, float* __restrict sum, std::size_t count, float ratio,
                          bool first) noexcept {
        float buffer[detail::unscale_block];
        const float* addend = buffer;
        if constexpr (std::is_same_v<std::remove_const_t<Value>, float>) {
            addend = gradient;
        } else {
            detail::convert_nearest(detail::conversion_isa(), gradient, static_cast<float*>(buffer), count);
        }
        std::uint32_t carries = 0;
        if (first) {
            detail::in_runs(count, [&](std::size_t i) {
                sum[i] = addend[i];
                carries |= detail::carry_of(sum[i]);
            });
        } else {
            detail::in_runs(count, [&](std::size_t i) { sum[i] = sum[i] * ratio; });
#if defined(__GNUC__)
            __asm__ volatile("" : : : "memory");  // the products are not to be fused with the sums
#endif
            detail::in_runs(count, [&](std::size_t i) {
                sum[i] = sum[i] + addend[i];
                carries |= detail::carry_of(sum[i]);
            });
        }
        return (carries >> 31) != 0;
    }

    std::vector<float> values_;
    float scale_ = 1.0F;
    std::size_t count_ = 0;
};

}}  // namespace mp
