// SPDX-License-Identifier: MIT
/// \file
/// Factors of a float8 matrix product, scaled by a power of two and rounded.
#pragma once

#include <mp/autocast/types.hpp>
#include <mp/format/operations.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// The power of two s with amax * s in (max / 2, max], where max is the largest number of Format; 1 where
/// amax is 0. Transformer Engine's current scaling with power-of-two scales. s is a normal float: for
/// amax below 2^-118 it stays at 2^126 or what is nearest.
template <reduced Format>
float factor_scale(float amax) {
    if (!(amax > 0.0F)) return 1.0F;
    constexpr double max =
        static_cast<double>(Format::from_bits(layout_of<typename Format::format>::max_finite_code));
    const double ratio = max / static_cast<double>(amax);  // normal: amax is at least 2^-149
    const int exponent = static_cast<int>((std::bit_cast<std::uint64_t>(ratio) >> 52U) & 0x7ffU) - 1023;
    const int limited = exponent > 126 ? 126 : exponent < -126 ? -126 : exponent;
    return std::bit_cast<float>(static_cast<std::uint32_t>(limited + 127) << 23U);
}

/// The largest finite magnitude; 0 where there is none.
inline float amax_of(std::span<const float> values) {
    float amax = 0.0F;
    for (const float x : values) {
        const float magnitude = x < 0.0F ? -x : x;
        if (isfinite(x) && magnitude > amax) amax = magnitude;
    }
    return amax;
}

/// to[i] = from[i] rounded to Format after scaling, and scaled back, as a To. Exact after that one rounding:
/// To has the precision of Format and the exponents of float. Infinities and NaNs stay what they are.
template <reduced Format, autocast::eligible To>
void quantise_factor(std::span<const float> from, std::span<To> to) {
    const float scale = factor_scale<Format>(amax_of(from));
    const float inverse = 1.0F / scale;  // a power of two, too
    for (std::size_t i = 0; i < from.size(); ++i) {
        to[i] = isfinite(from[i]) ? static_cast<To>(static_cast<float>(Format(from[i] * scale)) * inverse)
                                  : static_cast<To>(from[i]);
    }
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
