// SPDX-License-Identifier: MIT
/// \file
/// Operands of a float8 matrix product on the CPU, scaled by a power of two and rounded.
#pragma once

#include <mp/autocast/types.hpp>
#include <mp/config.hpp>
#include <mp/convert/bulk.hpp>
#include <mp/detail/runs.hpp>
#include <mp/executor.hpp>
#include <mp/format/operations.hpp>
#include <mp/rules/elementwise.hpp>
#include <mp/rules/quantised_factor.hpp>
#include <mp/simd/floating_point_modes.hpp>
#include <mp/simd/processor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// scale_exponent_for() of the largest finite magnitude of the values.
template <reduced Format>
int scale_exponent_of(std::span<const float> values) {
    std::int32_t amax = 0;  // signed, as processors compare
    in_runs(values.size(), [&](std::size_t i) {
        const auto magnitude = static_cast<std::int32_t>(finite_magnitude_bits(values[i]));
        amax = magnitude > amax ? magnitude : amax;
    });
    return scale_exponent_for<Format>(static_cast<std::uint32_t>(amax));
}

/// Names the format of a quantisation.
template <reduced Format>
struct quantised_to {};

/// to[i] = quantised(from[i]) with the exponent of all of them, as a To, which has the precision of Format
/// and the exponents of float. On a GPU the function of this name in <mp/gpu/quantise_factor.hpp> does.
template <reduced Format, autocast::eligible To>
void quantise_factor(quantised_to<Format>, const cpu& /*exec*/, std::span<const float> from,
                     std::span<To> to) {
    const int exponent = scale_exponent_of<Format>(from);
    const default_floating_point_modes modes;
    const float scale = power_of_two_float(exponent);
    const float inverse = power_of_two_float(-exponent);
    const instruction_set level = conversion_level();
    constexpr std::size_t block = 512;
    for (std::size_t first = 0; first < from.size(); first += block) {
        const std::size_t count = (std::min)(block, from.size() - first);
        const float* const source = from.data() + first;
        // The same as quantised(), a step at a time.
        float values[block];
        Format codes[block];
        scale_floats(level, count, values, source, scale);
        convert_nearest(level, values, codes, count);
        widen_to_float(level, codes, values, count);
        scale_floats(level, count, values, values, inverse);
        std::uint32_t special = 0;
        in_runs(count, [&](std::size_t i) {
            special |=
                static_cast<std::uint32_t>((bit_cast<std::uint32_t>(source[i]) & 0x7f800000U) == 0x7f800000U);
        });
        if (special != 0) {
            for (std::size_t i = 0; i < count; ++i) values[i] = quantised<Format>(source[i], exponent);
        }
        convert_nearest(level, values, to.data() + first, count);
    }
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
