// SPDX-License-Identifier: MIT
/// \file
/// Numbers times a scale, rounded once to a format of 8 bits, in floats alone.
#pragma once

#include <mp/config.hpp>
#include <mp/detail/bits.hpp>
#include <mp/format/float_arithmetic.hpp>
#include <mp/format/operations.hpp>

#include <cstdint>

namespace mp::detail::inline MP_ISA_NAMESPACE {

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
    constexpr std::uint32_t infinity = 0x7f800000U;
    constexpr std::uint32_t largest = bit_cast<std::uint32_t>(
        to_float<typename Format::format>(layout_of<typename Format::format>::max_finite_code));
    const float product = float_multiply(x, scale);
    auto bits = bit_cast<std::uint32_t>(product);
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    if (magnitude > infinity) return Format(product);
    if (magnitude >= largest) return Format(bit_cast<float>((bits & 0x80000000U) | largest));
    const auto error = bit_cast<std::uint32_t>(float_multiply_add(x, scale, -product));
    if ((error << 1) != 0 && (bits & 1) == 0) bits += (error >> 31) == (bits >> 31) ? 1U : ~0U;
    return Format(bit_cast<float>(bits));
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
