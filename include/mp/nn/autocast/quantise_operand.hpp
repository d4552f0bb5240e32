// SPDX-License-Identifier: MIT
/// \file
/// Operands of a float8 matrix product on the CPU, scaled by a power of two and rounded.
#pragma once

#include <mp/arrays/convert/bulk.hpp>
#include <mp/arrays/convert/portable.hpp>
#include <mp/config.hpp>
#include <mp/executor.hpp>
#include <mp/nn/autocast/types.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/rules/elementwise.hpp>
#include <mp/numbers/rules/quantised_operand.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// scale_exponent_for() of the largest finite magnitude of the values.
template <reduced Format>
int scale_exponent_of(std::span<const float> values) {
    return scale_exponent_for<Format>(
        magnitudes_of(best_instruction_set(), values.data(), values.size()).finite);
}

/// Names the format of a quantisation.
template <reduced Format>
struct quantised_to {};

/// to[i] = quantised(from[i]) with the exponent of all of them, as a To, which has the precision of Format
/// and the exponents of float. On a GPU the function of this name in <mp/nn/autocast/gpu/quantise_operand.hpp> does.
template <reduced Format, autocast::eligible To>
void quantise_operand(quantised_to<Format>, const cpu& /*exec*/, std::span<const float> from,
                      std::span<To> to) {
    const instruction_set isa = conversion_isa();
    const largest_magnitudes largest = magnitudes_of(best_instruction_set(), from.data(), from.size());
    const int exponent = scale_exponent_for<Format>(largest.finite);
    const default_floating_point_modes modes;
    if (largest.all >= 0x7f800000U) {
        for (std::size_t i = 0; i < from.size(); ++i) {
            to[i] = static_cast<To>(quantised<Format>(from[i], exponent));
        }
        return;
    }
    // The same in vectors; without a code of -0, through codes.
    using layout = layout_of<typename Format::format>;
    constexpr bool in_floats = layout::has_signed_zero && layout::has_zero && layout::min_exponent >= -100;
    // bfloat16 is the upper half of a float, which holds all bits that the format has.
    if constexpr (in_floats && std::same_as<To, basic_float<formats::bfloat16>> &&
                  layout::fraction_bits <= layout_of<formats::bfloat16>::fraction_bits) {
        if (quantisation::in_place(exponent)) {
            const auto q = quantisation::of<Format>(exponent);
            return quantise_floats(isa, from.size(), codes_of(to.data()), from.data(), q);
        }
    }
    constexpr std::size_t block = 512;
    for (std::size_t first = 0; first < from.size(); first += block) {
        const std::size_t count = (std::min)(block, from.size() - first);
        float values[block];
        if constexpr (in_floats) {
            quantise_floats(isa, count, values, from.data() + first, quantisation::of<Format>(exponent));
        } else {
            Format codes[block];
            scale_floats(isa, count, values, from.data() + first, power_of_two_float(exponent));
            convert_nearest(isa, values, codes, count);
            widen_to_float(isa, codes, values, count);
            scale_floats(isa, count, values, values, power_of_two_float(-exponent));
        }
        convert_nearest(isa, values, to.data() + first, count);
    }
}

}}  // namespace mp::detail
