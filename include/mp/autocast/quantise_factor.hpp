// SPDX-License-Identifier: MIT
/// \file
/// Factors of a float8 matrix product, scaled by a power of two and rounded.
#pragma once

#include <mp/autocast/types.hpp>
#include <mp/detail/bits.hpp>
#include <mp/format/operations.hpp>
#include <mp/rules/rounded_doubles.hpp>
#include <mp/simd/floating_point_modes.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// The exponent of the power of two s with amax * s in (max / 2, max], where max is the largest number of
/// Format and amax the largest finite magnitude of the values; 0 where that is 0. Transformer Engine's
/// current scaling with power-of-two scales. s and its inverse are normal floats: for amax below 2^-118 s is
/// 2^126 or what is nearest.
template <reduced Format>
int factor_exponent(std::span<const float> values) {
    return in_default_modes([values] {
        std::uint32_t amax = 0;  // magnitudes order as their bits do
        for (const float& x : values) {
            const std::uint32_t magnitude = bit_cast<std::uint32_t>(x) & 0x7fffffffU;
            if (magnitude > amax && magnitude < 0x7f800000U) amax = magnitude;
        }
        if (amax == 0) return 0;
        constexpr double max =
            to_double<typename Format::format>(layout_of<typename Format::format>::max_finite_code);
        // Normal, since amax is at least 2^-149; and below a power of two where the exact one is, which
        // 53 bits tell of numbers of 24.
        const double ratio = double_divide(max, static_cast<double>(bit_cast<float>(amax)));
        const int exponent = static_cast<int>((bit_cast<std::uint64_t>(ratio) >> 52) & 0x7ffU) - 1023;
        return exponent > 126 ? 126 : exponent < -126 ? -126 : exponent;
    });
}

/// to[i] = from[i] rounded to Format after scaling, and scaled back, as a To. Exact after that one rounding:
/// To has the precision of Format and the exponents of float. Infinities and NaNs stay what they are.
template <reduced Format, autocast::eligible To>
void quantise_factor(std::span<const float> from, std::span<To> to) {
    const int exponent = factor_exponent<Format>(from);
    const default_floating_point_modes modes;
    const float scale = modes.held(power_of_two<float>(exponent));
    const float inverse = modes.held(power_of_two<float>(-exponent));
    for (std::size_t i = 0; i < from.size(); ++i) {
        to[i] = isfinite(from[i]) ? static_cast<To>(static_cast<float>(Format(from[i] * scale)) * inverse)
                                  : static_cast<To>(from[i]);
    }
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
