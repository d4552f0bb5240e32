// SPDX-License-Identifier: MIT
/// \file
/// sin, cos, tan and sinpi, cospi, tanpi by double arithmetic; see fast_double.hpp for why it is right.
#pragma once

#include <mp/format/math/fast_double.hpp>
#include <mp/format/math/two_over_pi.hpp>

#include <cstdint>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// The magnitude of an angle as quarter turns, modulo 4, and a rest in radians of at most pi/4, whose error
/// is below 2^-42 of it.
struct fast_angle {
    unsigned quarters;
    double rest;
    bool is_known;
};

/// A fraction of a quarter turn, in units of 2^-62 of which the highest two bits count quarters.
///
/// Where the fraction is known to within 2^11 of these units, it has to be 2^53 of them for an error of 2^-42
/// of it.
MP_ALWAYS_INLINE fast_angle fast_angle_of(std::uint64_t quarters_and_fraction, std::uint64_t least) {
    const auto quarters = static_cast<unsigned>(quarters_and_fraction >> 62);
    const auto past_middle = static_cast<unsigned>(quarters_and_fraction >> 61) & 1;
    const auto fraction = static_cast<std::int64_t>(quarters_and_fraction << 2);  // in units of 2^-64
    constexpr double unit = 0x1.921fb54442d18p-64;                                // pi/2 2^-64
    const std::uint64_t from_least = static_cast<std::uint64_t>(fraction) + least;
    return {quarters + past_middle, static_cast<double>(fraction) * unit, from_least >= 2 * least};
}

/// As reduce_radians, with 64 bits of 2/pi; what they leave out is less than 2^-62 of a quarter turn times
/// the significand, which is below 2^11. Magnitudes below 1/2 are left as they are.
struct fast_radians {
    template <class Format>
    MP_ALWAYS_INLINE static fast_angle reduce(storage_of<Format> magnitude) {
        using layout = layout_of<Format>;
        const std::uint64_t significand = (magnitude & layout::fraction_mask) | layout::hidden_bit;
        const int exponent =
            static_cast<int>(magnitude >> layout::fraction_bits) - Format::bias - layout::fraction_bits;
        const int first_bit = exponent + 62 > 0 ? exponent + 62 : 0;
        const int index = first_bit / 64;
        const int shift = first_bit % 64;
        const std::uint64_t window =
            two_over_pi(index) << shift | two_over_pi(index + 1) >> 1 >> (63 - shift);
        const fast_angle angle = fast_angle_of(window * significand, std::uint64_t{1} << 55);
        const double x = double_of_normal<Format>(magnitude);
        const bool is_small = bit_cast<std::uint64_t>(x) < bit_cast<std::uint64_t>(0.5);
        return {angle.quarters, select_double(is_small, x, angle.rest),
                static_cast<bool>(is_small | angle.is_known)};
    }
};

/// Half turns are reduced exactly, and what has a fraction of zero is left to the integers: exact cases.
/// Magnitudes below 1/4 need only the product with pi.
struct fast_half_turns {
    template <class Format>
    MP_ALWAYS_INLINE static fast_angle reduce(storage_of<Format> magnitude) {
        using layout = layout_of<Format>;
        const std::uint64_t significand = (magnitude & layout::fraction_mask) | layout::hidden_bit;
        const int shift =
            static_cast<int>(magnitude >> layout::fraction_bits) - Format::bias - layout::fraction_bits + 63;
        const bool has_bits = static_cast<unsigned>(shift) < 64;
        const std::uint64_t angle_bits = has_bits ? significand << (shift & 63) : 0;
        const fast_angle angle = fast_angle_of(angle_bits, 1);
        const double x = double_of_normal<Format>(magnitude);
        const bool is_small = bit_cast<std::uint64_t>(x) < bit_cast<std::uint64_t>(0.25);
        return {select(is_small, 0U, angle.quarters),
                select_double(is_small, x * 0x1.921fb54442d18p+1, angle.rest),
                static_cast<bool>(is_small | angle.is_known)};
    }
};

/// (sin(r)/r - 1) / r^2 and (cos(r) - 1) / r^2 as polynomials in r^2 up to (pi/4)^2, with errors of 2^-45.0
/// and 2^-41.3: 2^-45 of the sine, 2^-41.5 of the cosine.
struct fast_wave_coefficients {
    double c[5];
};
inline constexpr fast_wave_coefficients fast_waves[2] = {
    {{-0x1.555555555516bp-3, 0x1.1111110fd3ba1p-7, -0x1.a019fd9af6604p-13, 0x1.71d9a9c409c48p-19,
      -0x1.aa2841454c81fp-26}},
    {{-0x1.fffffffffe695p-2, 0x1.555555514f227p-5, -0x1.6c16bae5884c4p-10, 0x1.a012988a65212p-16,
      -0x1.2474cf998e6dap-22}}};

/// sin(r) if `quarters` is even, else cos(r): without a branch, which would be mispredicted half of the time.
MP_ALWAYS_INLINE double fast_wave(double r, unsigned quarters) {
    const unsigned odd = quarters & 1;
    const double(&c)[5] = fast_waves[odd].c;
    const double z = r * r;
    const double fourth = z * z;
    const double polynomial = (c[0] + z * c[1]) + fourth * ((c[2] + z * c[3]) + fourth * c[4]);
    const double factor = select_double(odd != 0, 1.0, r);
    return factor + factor * (z * polynomial);
}

/// The sine of an angle that many quarter turns later: 0 for the sine, 1 for the cosine.
template <class Reduction, unsigned QuartersLater>
struct fast_sine {
    template <class Format>
    MP_ALWAYS_INLINE static fast_result<Format> code(storage_of<Format> a) {
        if (!is_normal_code<Format>(a)) return {0, false};
        const auto magnitude = static_cast<storage_of<Format>>(a & layout_of<Format>::magnitude_mask);
        const fast_angle angle = Reduction::template reduce<Format>(magnitude);
        if (!angle.is_known) return {0, false};
        const unsigned quarters = angle.quarters + QuartersLater;
        const bool odd_function = QuartersLater == 0;
        const bool negative = ((quarters & 2) != 0) != (odd_function && is_negative<Format>(a));
        const double y = fast_wave(angle.rest, quarters);
        const std::uint64_t sign = static_cast<std::uint64_t>(negative) << 63;
        return round_unless_near_midpoint<Format>(bit_cast<double>(bit_cast<std::uint64_t>(y) ^ sign));
    }
};

/// The quotient of both, or minus its reciprocal. Errors add up to 2^-40.7 of it.
template <class Reduction>
struct fast_tangent {
    template <class Format>
    MP_ALWAYS_INLINE static fast_result<Format> code(storage_of<Format> a) {
        if (!is_normal_code<Format>(a)) return {0, false};
        const auto magnitude = static_cast<storage_of<Format>>(a & layout_of<Format>::magnitude_mask);
        const fast_angle angle = Reduction::template reduce<Format>(magnitude);
        if (!angle.is_known) return {0, false};
        const bool odd = (angle.quarters & 1) != 0;
        const double y = fast_wave(angle.rest, angle.quarters) / fast_wave(angle.rest, angle.quarters + 1);
        const std::uint64_t sign = static_cast<std::uint64_t>(odd != is_negative<Format>(a)) << 63;
        return round_unless_near_midpoint<Format>(bit_cast<double>(bit_cast<std::uint64_t>(y) ^ sign));
    }
};

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
