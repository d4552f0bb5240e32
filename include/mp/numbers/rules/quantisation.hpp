// SPDX-License-Identifier: MIT
/// \file
/// Operands of a float8 matrix product that are rounded to 8 bits and back: by current scaling, with a scale
/// that is a power of two.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/instruction_set.hpp>
#include <mp/config.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/format/operations.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The bits of |x|, which order as magnitudes do; zero for infinities and NaNs.
MP_HOST_DEVICE constexpr std::uint32_t finite_magnitude_bits(float x) {
    const std::uint32_t magnitude = bit_cast<std::uint32_t>(x) & 0x7fffffffU;
    return magnitude < 0x7f800000U ? magnitude : 0;
}

/// The exponent of the power of two s with amax * s in (max / 2, max], where max is the largest number of
/// Format; 0 for an amax of 0. Transformer Engine's current scaling with power-of-two scales. s and its
/// inverse are normal floats: for amax below 2^-118 s is 2^126 or what is nearest.
/// \param amax  bits of a magnitude that is finite
template <reduced Format>
MP_HOST_DEVICE constexpr int scale_exponent_for(std::uint32_t amax) {
    if (amax == 0) return 0;
    using layout = layout_of<typename Format::format>;
    constexpr auto largest =
        bit_cast<std::uint64_t>(to_double<typename Format::format>(layout::max_finite_code));
    // Both as 2^exponent times a fraction of 52 bits.
    constexpr int largest_exponent = static_cast<int>(largest >> 52) - 1023;
    constexpr std::uint64_t largest_fraction = largest & ((std::uint64_t{1} << 52) - 1);
    const int shift = (amax >> 23) == 0 ? leading_zeros(std::uint64_t{amax}) - 40 : 0;  // of a subnormal
    const int amax_exponent = (shift == 0 ? static_cast<int>(amax >> 23) : 1 - shift) - 127;
    const std::uint64_t amax_fraction = std::uint64_t{(amax << shift) & 0x7fffffU} << 29;
    const int exponent = largest_exponent - amax_exponent - (amax_fraction > largest_fraction ? 1 : 0);
    return exponent > 126 ? 126 : exponent < -126 ? -126 : exponent;
}

/// 2^exponent, normal.
MP_HOST_DEVICE constexpr float power_of_two_float(int exponent) {
    return bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

/// x rounded to Format after multiplication by 2^exponent, and scaled back. Exact after that one rounding.
/// Infinities and NaNs stay what they are.
template <reduced Format>
MP_HOST_DEVICE float quantised(float x, int exponent) {
    if (!isfinite(x)) return x;
    const float scaled = float_multiply(x, power_of_two_float(exponent));
    return float_multiply(static_cast<float>(Format(scaled)), power_of_two_float(-exponent));
}

/// Names the rounding of blocks of 32 along rows or columns to E4M3 with a power of two each.
struct mx_blocks {};

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Bits of the largest magnitudes of some values.
struct largest_magnitudes {
    std::uint32_t finite = 0;  ///< of finite values; 0 where there are none
    std::uint32_t all = 0;     ///< infinities and NaNs included, which are from 0x7f800000 on
};

/// What quantised() does to finite numbers whose exponent is scale_exponent_for() all of them, as kernels do it.
struct quantisation {
    float scale;
    float inverse;
    float least_normal;  ///< of the format
    std::uint32_t
        to_coarse;  ///< bits from a power of two to a float whose neighbours are as far away as those
                    ///< of the power in the format

    template <reduced Format>
        requires(layout_of<typename Format::format>::has_signed_zero)
    MP_ALWAYS_INLINE static constexpr quantisation of(int exponent) {
        using layout = layout_of<typename Format::format>;
        return {power_of_two_float(exponent), power_of_two_float(-exponent),
                power_of_two_float(layout::min_exponent),
                (static_cast<std::uint32_t>(23 - layout::fraction_bits) << 23) + 0x40'0000U};
    }

    /// Whether numbers can be rounded without scaling them, and are normal in bfloat16 then: what lies 24 binades
    /// around the format's, scaled back, is far from the ends of float.
    MP_ALWAYS_INLINE static constexpr bool in_place(int exponent) {
        return exponent >= -80 && exponent <= 80;
    }
};

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Returns the largest magnitudes among the values.
MP_CORE_FUNCTION largest_magnitudes magnitudes_of(instruction_set isa, const float* values,
                                                  std::size_t count);
/// to[i] = from[i], quantised, in the default modes of float arithmetic.
MP_CORE_FUNCTION void quantise_floats(instruction_set isa, std::size_t count, float* to, const float* from,
                                      const quantisation& q);
/// Overload for codes of bfloat16, where quantisation::in_place().
MP_CORE_FUNCTION void quantise_floats(instruction_set isa, std::size_t count, std::uint16_t* to,
                                      const float* from, const quantisation& q);

}}  // namespace mp::detail
