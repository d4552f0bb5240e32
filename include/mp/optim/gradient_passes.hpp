// SPDX-License-Identifier: MIT
/// \file
/// Passes over the gradients of all parameters together: many small arrays cost hardly more than one.
#pragma once

#include <mp/detail/bits.hpp>
#include <mp/executor.hpp>
#include <mp/format/float_arithmetic.hpp>
#include <mp/optim/kernels/square_sums.hpp>
#include <mp/optim/parameter.hpp>
#include <mp/optim/parameter_layout.hpp>
#include <mp/scaling/optimizer_protocol.hpp>
#include <mp/scaling/unscale.hpp>
#include <mp/simd/floating_point_modes.hpp>
#include <mp/simd/instruction_set.hpp>
#include <mp/simd/select_target.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// Calls pass(parameter, first, last), which reports on these elements of a gradient, over all gradients.
template <class Weight, class Gradient, class Pass>
gradient_report report_on_gradients(cpu exec, const parameter_layout& layout,
                                    const std::vector<parameter<Weight, Gradient>>& parameters, Pass pass) {
    shared_report found;
    layout.for_each_piece(exec, unscale_grain, [&](std::size_t i, std::size_t first, std::size_t last) {
        if (!parameters[i].gradient.empty()) found.add(layout.offset(i) + first, pass(i, first, last));
    });
    const non_finite_report total = found.total();
    gradient_report report;
    for (const parameter<Weight, Gradient>& it : parameters) report.checked += it.gradient.size();
    report.infinities = total.infinities;
    report.nans = total.nans;
    if (total.found()) {
        report.first_parameter = layout.array_at(total.first_index);
        report.first_element = total.first_index - layout.offset(report.first_parameter);
    }
    return report;
}

/// The Euclidean norm of all gradients together. `sums` has room for layout.chunks() numbers.
inline double norm_of_gradients(cpu exec, instruction_set isa, const parameter_layout& layout,
                                std::span<const std::span<float>> gradients, std::span<double> sums) {
    const auto pass = MP_SELECT_TARGET(isa, &square_sums_portable, square_sums<parameter_layout::chunk>);
    layout.for_each_piece(exec, unscale_grain, [&](std::size_t i, std::size_t first, std::size_t last) {
        double* const to = sums.data() + layout.first_chunk(i) + first / parameter_layout::chunk;
        // A parameter without a gradient has chunks all the same; they count as zero.
        for (std::size_t at = first; at < last; at += parameter_layout::chunk) {
            to[(at - first) / parameter_layout::chunk] = 0.0;
        }
        if (!gradients[i].empty()) pass(gradients[i].data() + first, last - first, to);
    });
    const default_floating_point_modes modes;
    return modes.held(double_sqrt(sum_of_blocks(sums.data(), sums.size())));
}

/// Multiplies all gradients by a factor.
inline void scale_gradients(cpu exec, instruction_set isa, const parameter_layout& layout,
                            std::span<const std::span<float>> gradients, float factor) {
    const auto pass = select_unscale<float>(isa, factor, true, layout.total());
    layout.for_each_piece(exec, unscale_grain, [&](std::size_t i, std::size_t first, std::size_t last) {
        if (gradients[i].empty()) return;
        float* const values = gradients[i].data() + first;
        static_cast<void>(pass(values, values, last - first, factor));
    });
}

/// Brings all gradients into [-limit, limit]; a NaN stays one. Magnitudes are compared by their codes.
inline void clamp_gradients(cpu exec, const parameter_layout& layout,
                            std::span<const std::span<float>> gradients, float limit) {
    const auto most = bit_cast<std::uint32_t>(limit);
    layout.for_each_piece(exec, unscale_grain, [&](std::size_t i, std::size_t first, std::size_t last) {
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

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
