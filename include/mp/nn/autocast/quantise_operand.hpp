// SPDX-License-Identifier: MIT
/// \file
/// Operands of a float8 matrix product on the CPU, scaled by a power of two and rounded.
#pragma once

#include <mp/arrays/array/element_type.hpp>
#include <mp/arrays/convert/portable.hpp>
#include <mp/bfloat16.hpp>
#include <mp/config.hpp>
#include <mp/executor.hpp>
#include <mp/float8.hpp>
#include <mp/nn/autocast/operand_record.hpp>
#include <mp/nn/autocast/types.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/rules/quantisation.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>

#if MP_CORE_BODIES
#include <mp/arrays/array/element_rows.hpp>
#include <mp/numbers/rules/elementwise.hpp>
#include <mp/numbers/rules/quantised_operand.hpp>
#endif

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION void scale_floats(instruction_set isa, std::size_t count, float* to, const float* from,
                                   float factor);

}}  // namespace mp::detail

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
    const instruction_set isa = best_instruction_set();
    const largest_magnitudes largest = magnitudes_of(isa, from.data(), from.size());
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
    const element_type& target = element_record<To, false>::record;
    constexpr std::size_t block = 512;
    for (std::size_t first = 0; first < from.size(); first += block) {
        const std::size_t count = (std::min)(block, from.size() - first);
        float values[block];
        if constexpr (in_floats) {
            quantise_floats(isa, count, values, from.data() + first, quantisation::of<Format>(exponent));
        } else {
            const element_type& format = element_record<Format, false>::record;
            Format codes[block];
            scale_floats(isa, count, values, from.data() + first, power_of_two_float(exponent));
            format.narrow(isa, values, codes, count);
            format.widen(isa, codes, values, count);
            scale_floats(isa, count, values, values, power_of_two_float(-exponent));
        }
        target.narrow(isa, values, to.data() + first, count);
    }
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <reduced Format, autocast::eligible To>
void quantise_to(const cpu& exec, std::span<const float> from, void* to) {
    quantise_operand(quantised_to<Format>{}, exec, from, std::span<To>(static_cast<To*>(to), from.size()));
}
template <reduced Format, autocast::eligible To>
inline constexpr quantiser quantiser_to{facts_of<Format>(), &scale_exponent_of<Format>,
                                        &quantise_to<Format, To>};

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// That of autocast::fp8_hybrid.
#if MP_CORE_BODIES
#if defined(MP_COMPILED)
__attribute__((used))
#endif
inline constexpr float8_recipe region_float8{quantiser_to<float8_e4m3fn, bfloat16>,
                                             quantiser_to<float8_e5m2, bfloat16>};
#else
extern const float8_recipe region_float8;
#endif

}}  // namespace mp::detail
