// SPDX-License-Identifier: MIT
/// \file
/// Measuring gradients for policies that look at more than infinities and NaNs.
#pragma once

#include <mp/arrays/convert/range_report.hpp>
#include <mp/base/contiguous.hpp>
#include <mp/executor.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/scaled_gradient.hpp>
#include <mp/nn/scaling/unscale.hpp>
#include <mp/numbers/format/basic_float.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// What became, or would become, of scaled gradients in the reduced format Target, in the words of the
/// policies: give it to loss_scaler::observe. Counts are those of range_report.
///
///     scaler.observe(mp::observe_gradients<mp::half>(mp::cpu{}, mp::scaled_gradient(gradient, scale)));
///
/// Measure gradients before they are rounded to Target: afterwards what was flushed is zero like any other.
///
/// \tparam Target  half, bfloat16, float8_e5m2 ...: the format in which the gradients are stored
/// \param edge     magnitudes above it, scale included, count as large; for histogram_policy, its
///                 histogram_edge(largest number of Target)
template <reduced Target, class Value>
[[nodiscard]] gradient_observation observe_gradients(cpu exec, scaled_gradient<Value> gradient,
                                                     double edge = std::numeric_limits<double>::infinity()) {
    const std::span<Value> values = gradient.values_with_scale();
    const range_report range = report_range<Target>(exec, values);
    gradient_observation seen;
    seen.infinities = range.infinities;
    seen.nans = range.nans;
    seen.values = range.count;
    seen.zeros = range.zeros;
    seen.flushed = range.flushed;
    seen.subnormals = range.subnormals;
    seen.overflows = range.overflows;
    seen.largest = range.largest_magnitude / static_cast<double>(gradient.scale());
    if (edge < (std::numeric_limits<double>::max)()) {
        std::atomic<std::uint64_t> large{0};
        detail::parallel_for(
            exec, values.size(), detail::unscale_grain, [&](std::size_t begin, std::size_t end) {
                std::uint64_t mine = 0;
                for (std::size_t i = begin; i < end; ++i) {
                    const auto value = static_cast<double>(static_cast<float>(values[i]));
                    // Infinities and NaNs are counted apart.
                    mine += (value > edge || value < -edge) && !detail::is_non_finite(value) ? 1U : 0U;
                }
                large += mine;
            });
        seen.large = large;
    }
    return seen;
}

}}  // namespace mp
