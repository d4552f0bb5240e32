// SPDX-License-Identifier: MIT
/// \file
/// sin, cos, tan and sinpi, cospi, tanpi by double arithmetic; see fast_double.hpp for why it is right.
#pragma once

#include <mp/numbers/format/math/fast_double.hpp>
#include <mp/numbers/format/math/two_over_pi.hpp>

#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The magnitude of an angle as quarter turns, modulo 4, and a rest in radians of at most pi/4, whose error
/// is below 2^-36 of it.
struct fast_angle {
    unsigned quarters;
    double rest;
    bool is_known;
};

/// A fraction of a quarter turn, in units of 2^-62 of which the highest two bits count quarters.
///
/// Where the fraction is known to within 2^11 of these units, it has to be 2^47 of them, `least` in units of 2^-64,
/// for an error of 2^-36 of it.
MP_ALWAYS_INLINE fast_angle fast_angle_of(std::uint64_t quarters_and_fraction, std::uint64_t least) {
    const auto quarters = static_cast<unsigned>(quarters_and_fraction >> 62);
    const auto past_middle = static_cast<unsigned>(quarters_and_fraction >> 61) & 1;
    const auto fraction = static_cast<std::int64_t>(quarters_and_fraction << 2);  // in units of 2^-64
    constexpr double unit = 0x1.921fb54442d18p-64;                                // pi/2 2^-64
    const std::uint64_t from_least = static_cast<std::uint64_t>(fraction) + least;
    return {quarters + past_middle, static_cast<double>(fraction) * unit, from_least >= 2 * least};
}

/// 64 bits of 2/pi for the numbers of an exponent field: times the significand they are the angle in units of 2^-62
/// quarter turns, modulo four of them.
template <class Format>
MP_ALWAYS_INLINE constexpr std::uint64_t radians_window(int exponent_field) {
    const int exponent = exponent_field - Format::bias - layout_of<Format>::fraction_bits;
    const int first_bit = exponent + 62 > 0 ? exponent + 62 : 0;
    const int index = first_bit / 64;
    const int shift = first_bit % 64;
    return two_over_pi(index) << shift | two_over_pi(index + 1) >> 1 >> (63 - shift);
}
template <class Format>
struct radians_windows {
    std::uint64_t of_field[1 << Format::exponent_bits];
    consteval radians_windows() : of_field() {
        for (int i = 0; i < 1 << Format::exponent_bits; ++i) of_field[i] = radians_window<Format>(i);
    }
};
template <class Format>
inline constexpr radians_windows<Format> all_radians_windows;

/// As reduce_radians, with 64 bits of 2/pi; what they leave out is less than 2^-62 of a quarter turn times
/// the significand, which is below 2^11. That is 2^-36 of the smallest normal number of binary16. In formats of a
/// wider range magnitudes below 1/2 are left as they are, and there is no table.
struct fast_radians {
    static constexpr bool small_angles_are_their_sines = true;

    template <class Format>
    MP_ALWAYS_INLINE static fast_angle reduce(storage_of<Format> magnitude) {
        using layout = layout_of<Format>;
        const std::uint64_t significand = (magnitude & layout::fraction_mask) | layout::hidden_bit;
        const int field = static_cast<int>(magnitude >> layout::fraction_bits);
        if constexpr (layout::min_exponent >= -14) {
            return fast_angle_of(all_radians_windows<Format>.of_field[field] * significand,
                                 std::uint64_t{1} << 49);
        } else {
            const fast_angle angle =
                fast_angle_of(radians_window<Format>(field) * significand, std::uint64_t{1} << 55);
            const double x = double_of_normal<Format>(magnitude);
            const bool is_small = bit_cast<std::uint64_t>(x) < bit_cast<std::uint64_t>(0.5);
            return {angle.quarters, select_double(is_small, x, angle.rest),
                    static_cast<bool>(is_small | angle.is_known)};
        }
    }
};

/// Half turns are reduced exactly, and what has a fraction of zero is left to the integers: exact cases.
/// Magnitudes below 1/4 need only the product with pi.
struct fast_half_turns {
    static constexpr bool small_angles_are_their_sines = false;

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

/// (sin(r)/r - 1) / r^2 and (cos(r) - 1) / r^2 as polynomials in r^2 up to (pi/4)^2: errors of the sine of 2^-35.6
/// of it, of the cosine of 2^-31.7.
struct fast_wave_coefficients {
    double c[4];
};
inline constexpr fast_wave_coefficients fast_waves[2] = {
    {{-0x1.555555545e0acp-3, 0x1.11110def2e1c9p-7, -0x1.a013a793b98cep-13, 0x1.6dbe0838a06e9p-19}},
    {{-0x1.fffffffab1da6p-2, 0x1.55554cbb440f1p-5, -0x1.6c0e087f57eebp-10, 0x1.9a6f2bb019f50p-16}}};
inline constexpr int fast_wave_accuracy = 31;

/// sin(r) if `quarters` is even, else cos(r), with the sign bit changed by `sign`: without a branch, which would be
/// mispredicted half of the time.
MP_ALWAYS_INLINE double fast_wave(double r, unsigned quarters, std::uint64_t sign) {
    const unsigned odd = quarters & 1;
    const double(&c)[4] = fast_waves[odd].c;
    const double z = r * r;
    const double polynomial = (c[0] + z * c[1]) + (z * z) * (c[2] + z * c[3]);
    const std::uint64_t one_or_r = select(odd != 0, bit_cast<std::uint64_t>(1.0), bit_cast<std::uint64_t>(r));
    const double factor = bit_cast<double>(one_or_r ^ sign);
    return factor + (factor * z) * polynomial;
}

/// The sine of an angle that many quarter turns later: 0 for the sine, 1 for the cosine.
template <class Reduction, unsigned QuartersLater>
struct fast_sine {
    template <class Format>
    MP_ALWAYS_INLINE static fast_result<Format> code(storage_of<Format> a) {
        using layout = layout_of<Format>;
        if (!is_normal_code<Format>(a)) [[unlikely]]
            return {0, false};
        const auto magnitude = static_cast<storage_of<Format>>(a & layout::magnitude_mask);
        const fast_angle angle = Reduction::template reduce<Format>(magnitude);
        if (!angle.is_known) return {0, false};
        const unsigned quarters = angle.quarters + QuartersLater;
        std::uint64_t sign = std::uint64_t{quarters} << 62;
        if (QuartersLater == 0) sign ^= std::uint64_t{a} << (63 - layout::magnitude_bits);
        sign &= std::uint64_t{1} << 63;
        return round_if_normal<Format, checked_accuracy<Format, fast_wave_accuracy>>(
            fast_wave(angle.rest, quarters, sign));
    }
    /// Below the normal numbers x - x^3/6 and 1 - x^2/2 round to their first terms.
    template <class Format>
    MP_ALWAYS_INLINE static fast_result<Format> rest(storage_of<Format> a) {
        using layout = layout_of<Format>;
        constexpr bool has_first_term = Reduction::small_angles_are_their_sines && layout::is_ieee &&
                                        2 * layout::min_exponent < -(layout::precision + 1) &&
                                        layout::max_exponent >= 0;
        constexpr auto one = static_cast<storage_of<Format>>(Format::bias << layout::fraction_bits);
        return {QuartersLater == 0 ? a : one,
                has_first_term && (a & layout::magnitude_mask) < layout::hidden_bit};
    }
};

/// The quotient of both, or minus its reciprocal. Errors add up to 2^-31.6 of it.
template <class Reduction>
struct fast_tangent {
    template <class Format>
    MP_ALWAYS_INLINE static fast_result<Format> code(storage_of<Format> a) {
        if (!is_normal_code<Format>(a)) return {0, false};
        const auto magnitude = static_cast<storage_of<Format>>(a & layout_of<Format>::magnitude_mask);
        const fast_angle angle = Reduction::template reduce<Format>(magnitude);
        if (!angle.is_known) return {0, false};
        const bool odd = (angle.quarters & 1) != 0;
        const std::uint64_t sign = static_cast<std::uint64_t>(odd != is_negative<Format>(a)) << 63;
        const double y =
            fast_wave(angle.rest, angle.quarters, sign) / fast_wave(angle.rest, angle.quarters + 1, 0);
        return round_unless_near_midpoint<Format, fast_wave_accuracy - 1>(y);
    }
};

}}  // namespace mp::detail
