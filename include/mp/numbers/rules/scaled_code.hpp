// SPDX-License-Identifier: MIT
/// \file
/// Numbers times a scale, rounded once to a format of 8 bits, in floats alone.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/format/operations.hpp>
#if MP_DEVICE_CODE
#include <mp/numbers/format/device_conversions.hpp>
#endif

#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The code of an infinity, which is the largest finite number, or of NaN, which stays NaN.
template <reduced Format>
MP_HOST_DEVICE Format saturated_code(float x) {
    constexpr auto largest = layout_of<typename Format::format>::max_finite_code;
    const auto bits = bit_cast<std::uint32_t>(x);
    if ((bits & 0x7fffffffU) > 0x7f800000U) return Format(x);
    return Format::from_bits(static_cast<std::uint8_t>((bits >> 31 << 7) | largest));
}

/// x * scale rounded once to nearest even; what is too large, infinities included, becomes the largest finite
/// number, and NaN stays NaN: what quantize_with_scale stores, without double, of which many GPUs have little.
///
/// The product is rounded to odd: the nearest float if that is exact or odd, else its neighbour on the side of the
/// error, which the fused product tells. Rounding that to at least two bits fewer is rounding once (S. Boldo and
/// G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
/// Where the error is too small for float, below 2^-149, the product is below 2^-125 and becomes 0 either way.
template <reduced Format>
    requires(sizeof(Format) == 1 && layout_of<typename Format::format>::min_exponent >= -64)
MP_HOST_DEVICE Format scaled_code(float x, float scale) {
    constexpr std::uint32_t largest = bit_cast<std::uint32_t>(
        to_float<typename Format::format>(layout_of<typename Format::format>::max_finite_code));
    const float product = float_multiply(x, scale);
    auto bits = bit_cast<std::uint32_t>(product);
    if (!isfinite(x)) return saturated_code<Format>(x);
    if ((bits & 0x7fffffffU) >= largest) return Format(bit_cast<float>((bits & 0x80000000U) | largest));
    const auto error = bit_cast<std::uint32_t>(float_multiply_add(x, scale, -product));
    if ((error << 1) != 0 && (bits & 1) == 0) bits += (error >> 31) == (bits >> 31) ? 1U : ~0U;
    return Format(bit_cast<float>(bits));
}

/// The codes of two numbers, which are finite, or the results are some codes.
///
/// Devices that have an instruction for two round products toward zero, and set the last bit of those that are not
/// exact, which is rounding to odd as well; too large ones saturate.
template <reduced Format>
MP_HOST_DEVICE MP_ALWAYS_INLINE void scaled_code_pair(float first, float second, float scale,
                                                      Format& first_code, Format& second_code) {
#if MP_DEVICE_CODE
    if constexpr (narrows_to_small_by_instruction<typename Format::format>) {
        const auto to_odd = [scale](float x) {
            float product;
            asm("mul.rz.f32 %0, %1, %2;" : "=f"(product) : "f"(x), "f"(scale));
            const auto error = bit_cast<std::uint32_t>(float_multiply_add(x, scale, -product));
            return bit_cast<float>(bit_cast<std::uint32_t>(product) | ((error << 1) != 0 ? 1U : 0U));
        };
        const std::uint32_t both =
            device_satfinite_pair<typename Format::format>(to_odd(first), to_odd(second));
        first_code = Format::from_bits(static_cast<std::uint8_t>(both));
        second_code = Format::from_bits(static_cast<std::uint8_t>(both >> 8));
        return;
    }
#endif
    first_code = scaled_code<Format>(first, scale);
    second_code = scaled_code<Format>(second, scale);
}

}}  // namespace mp::detail
