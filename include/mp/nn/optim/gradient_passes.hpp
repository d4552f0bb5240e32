// SPDX-License-Identifier: MIT
/// \file
/// Passes over the gradients of all parameters together: many small arrays cost hardly more than one.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/instruction_set.hpp>
#include <mp/executor.hpp>
#include <mp/nn/optim/kernels/square_sums.hpp>
#include <mp/nn/optim/optimizer_state.hpp>
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
