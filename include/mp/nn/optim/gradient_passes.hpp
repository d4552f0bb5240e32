// SPDX-License-Identifier: MIT
/// \file
/// Passes over the gradients of all parameters together: many small arrays cost hardly more than one.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/instruction_set.hpp>
#include <mp/executor.hpp>
#include <mp/nn/optim/kernels/square_sums.hpp>
#include <mp/nn/optim/parameter.hpp>
#include <mp/nn/optim/parameter_layout.hpp>
#include <mp/nn/scaling/optimizer_protocol.hpp>
#include <mp/nn/scaling/unscale.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Whether a gradient has an element that is not zero, by bits: comparisons take subnormal numbers for zero where the
/// caller's modes or options say so.
template <class Value>
bool has_nonzero(std::span<Value> values) noexcept {
    return std::any_of(values.begin(), values.end(),
                       [](auto it) { return bit_cast<std::uint32_t>(static_cast<float>(it)) << 1 != 0; });
}

/// Calls pass(parameter, first, last), which reports on these elements of a gradient, over all gradients.
template <class Weight, class Gradient, class Pass>
gradient_report report_on_gradients(cpu exec, const parameter_layout& layout,
                                    const std::vector<parameter<Weight, Gradient>>& parameters, Pass pass) {
    shared_report found;
    layout.for_each_chunk(exec, unscale_grain, [&](std::size_t i, std::size_t first, std::size_t last) {
        if (!parameters[i].gradient.empty()) found.add(layout.offset(i) + first, pass(i, first, last));
    });
    const non_finite_report total = found.total();
    gradient_report report;
    for (const parameter<Weight, Gradient>& it : parameters) report.checked += it.gradient.size();
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

/// What gradients still are to be multiplied by, each product rounded to float: first by the inverse scale,
/// then by the factor.
struct pending_factors {
    float inverse_scale = 1.0F;
    float clip_factor = 1.0F;
};

/// Checks the products that a step uses of some gradients.
template <class Gradient>
non_finite_report check_product(instruction_set isa, std::span<const Gradient> gradient, pending_factors by,
                                std::uint32_t limit) {
    constexpr std::size_t chunk = parameter_layout::chunk;
    const auto unscale = select_unscale<Gradient>(isa, by.inverse_scale, true, chunk);
    const auto check = select_check<float>(isa, by.clip_factor);
    shared_report report;
    for (std::size_t at = 0; at < gradient.size(); at += chunk) {
        const std::size_t count = (std::min)(chunk, gradient.size() - at);
        alignas(64) float values[chunk];
        static_cast<void>(unscale(gradient.data() + at, values, count, by.inverse_scale, no_check_limit));
        report.add(at, check(values, count, by.clip_factor, limit));
    }
    return report.total();
}

/// The Euclidean norm of all gradients together, as floats that are multiplied on the way, which happens a
/// chunk at a time in the first-level cache. gradient_of(i) is a span, empty for a parameter without one.
/// `sums` has room for layout.chunks() numbers.
template <class Gradient, class GradientOf>
double norm_of_gradients(cpu exec, instruction_set isa, const parameter_layout& layout,
                         const GradientOf& gradient_of, pending_factors by, std::span<double> sums) {
    constexpr std::size_t chunk = parameter_layout::chunk;
    const auto sum = MP_SELECT_TARGET(isa, &square_sums_portable, square_sums<chunk>);
    const auto unscale = select_unscale<Gradient>(isa, by.inverse_scale, true, chunk);
    const auto scale = select_unscale<float>(isa, by.clip_factor, true, chunk);
    const bool in_place = std::is_same_v<Gradient, float> && same_value(by.inverse_scale, 1.0F) &&
                          same_value(by.clip_factor, 1.0F);
    layout.for_each_chunk(exec, unscale_grain, [&](std::size_t i, std::size_t first, std::size_t last) {
        double* to = sums.data() + layout.first_chunk(i) + first / chunk;
        const std::span<const Gradient> gradient = gradient_of(i);
        for (std::size_t at = first; at < last; at += chunk, ++to) {
            // A parameter without a gradient has chunks all the same; they count as zero.
            *to = 0.0;
            if (gradient.empty()) continue;
            const std::size_t count = (std::min)(chunk, last - at);
            if constexpr (std::is_same_v<Gradient, float>) {
                if (in_place) {
                    sum(gradient.data() + at, count, to);
                    continue;
                }
            }
            alignas(64) float values[chunk];
            static_cast<void>(unscale(gradient.data() + at, values, count, by.inverse_scale, no_check_limit));
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
    const auto pass = select_unscale<float>(isa, factor, true, layout.total());
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
