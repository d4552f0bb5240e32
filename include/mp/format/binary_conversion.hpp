// SPDX-License-Identifier: MIT
/// \file
/// Conversions between a format and float or double without branches, so that a loop over them vectorises.
/// Equal to the integer core (tests prove it for every code and for every float), but nearest-even only.
#pragma once

#include <mp/config.hpp>
#include <mp/detail/bits.hpp>
#include <mp/format/exact.hpp>

#include <cstdint>
#include <type_traits>

namespace mp::detail {

/// The descriptor of a built-in type.
template <class Native>
struct native_format;
template <>
struct native_format<float> {
    using type = formats::binary32;
};
template <>
struct native_format<double> {
    using type = formats::binary64;
};

/// 2^exponent as float or double; the exponent must be that of a normal number.
template <class Native>
MP_HOST_DEVICE constexpr Native power_of_two(int exponent) {
    using wide = layout_of<typename native_format<Native>::type>;
    constexpr int bias = native_format<Native>::type::bias;
    return bit_cast<Native>(static_cast<typename wide::storage>(
        static_cast<typename wide::storage>(exponent + bias) << wide::fraction_bits));
}

/// A format whose numbers are all numbers of Native, with room for the tricks below: either its exponent
/// field is smaller, or it is Native with fewer fraction bits (bfloat16 in float).
template <class Format, class Native>
inline constexpr bool fits_in = (Format::exponent_bits < native_format<Native>::type::exponent_bits &&
                                 Format::fraction_bits + 2 < native_format<Native>::type::fraction_bits) ||
                                (Format::exponent_bits == native_format<Native>::type::exponent_bits &&
                                 Format::bias == native_format<Native>::type::bias &&
                                 Format::fraction_bits < native_format<Native>::type::fraction_bits &&
                                 Format::nans == nan_encoding::ieee && Format::has_infinity);

/// The value of a code as float or double, exactly; NaNs become quiet and keep sign and payload.
///
/// Normal numbers: move the bits to their place and add the difference of the biases to the exponent field.
/// Subnormal numbers, code m: with M = 2^(quantum + fraction bits of Native), the bits of M with m in the
/// lowest places are the number M + m * quantum, so subtracting M leaves the value. Both are normal numbers
/// of Native, which is why flushing of subnormals in the environment does no harm.
template <class Native, class Format>
requires fits_in<Format, Native> MP_HOST_DEVICE constexpr Native widen(
    typename layout_of<Format>::storage bits) {
    using native = typename native_format<Native>::type;
    using narrow = layout_of<Format>;
    using wide = layout_of<native>;
    using word = typename wide::storage;
    constexpr int shift = wide::fraction_bits - narrow::fraction_bits;
    const word magnitude = bits & narrow::magnitude_mask;
    word sign = 0;
    if constexpr (Format::is_signed) {
        sign =
            static_cast<word>(static_cast<word>(bits & narrow::sign_mask) << (wide::width - narrow::width));
    }
    word result;
    if constexpr (Format::exponent_bits == native::exponent_bits) {
        result = static_cast<word>(magnitude << shift);
    } else {
        constexpr word bias_difference = static_cast<word>(native::bias - Format::bias)
                                         << wide::fraction_bits;
        constexpr Native unit = power_of_two<Native>(narrow::quantum_exponent + wide::fraction_bits);
        const word subnormal =
            bit_cast<word>(bit_cast<Native>(static_cast<word>(bit_cast<word>(unit) | magnitude)) - unit);
        const word normal = static_cast<word>((magnitude << shift) + bias_difference);
        result = magnitude < narrow::hidden_bit ? subnormal : normal;
        if constexpr (narrow::has_infinity) {
            result = magnitude == narrow::infinity_code ? wide::infinity_code : result;
        }
    }
    if constexpr (Format::nans == nan_encoding::negative_zero) {
        if (bits == narrow::nan_code) return bit_cast<Native>(wide::nan_code);
    } else if constexpr (narrow::has_nan) {
        constexpr word last_number =
            narrow::has_infinity ? word{narrow::infinity_code} : word{narrow::max_finite_code};
        const word payload =
            Format::nans == nan_encoding::ieee
                ? static_cast<word>(static_cast<word>(magnitude << shift) & wide::fraction_mask)
                : word{0};
        result = magnitude > last_number ? static_cast<word>(wide::nan_code | payload) : result;
    }
    return bit_cast<Native>(static_cast<word>(result | sign));
}

/// Rounds a float or double to nearest even once, overflow as saturation::none.
///
/// Results that are normal: adding (half a unit - 1) plus the lowest kept bit to the bits of the magnitude
/// carries into the kept bits exactly when nearest-even rounds up, and a carry out of the fraction lands in
/// the exponent field, as it should. Results that are subnormal: adding M = 2^(quantum + fraction bits of
/// Native) lets the hardware's own nearest-even addition round at the quantum; the low bits of the sum are
/// the code. A subnormal input that the environment takes for zero is far below half a quantum in any case.
template <class Format, class Native>
requires fits_in<Format, Native> MP_HOST_DEVICE constexpr typename layout_of<Format>::storage
narrow_nearest_even(Native x) {
    using native = typename native_format<Native>::type;
    using narrow = layout_of<Format>;
    using wide = layout_of<native>;
    using word = typename wide::storage;
    constexpr int shift = wide::fraction_bits - narrow::fraction_bits;
    const word bits = bit_cast<word>(x);
    const word magnitude = bits & wide::magnitude_mask;
    constexpr word bias_difference = static_cast<word>(native::bias - Format::bias) << wide::fraction_bits;
    constexpr word half_minus_one = (word{1} << (shift - 1)) - 1;

    word code = static_cast<word>(magnitude - bias_difference + half_minus_one + ((magnitude >> shift) & 1));
    code >>= shift;
    constexpr word overflow = narrow::has_infinity ? word{narrow::infinity_code}
                              : narrow::has_nan    ? word{narrow::nan_code}
                                                   : word{narrow::max_finite_code};
    // Everything from here on is beyond the largest finite number, and the code computed above may have
    // wrapped.
    constexpr word out_of_range =
        static_cast<word>(static_cast<word>(native::bias + narrow::max_exponent + 1) << wide::fraction_bits);
    code = magnitude >= out_of_range || code > narrow::max_finite_code ? overflow : code;
    if constexpr (Format::exponent_bits < native::exponent_bits) {
        constexpr word smallest_normal =
            static_cast<word>(static_cast<word>(native::bias + narrow::min_exponent) << wide::fraction_bits);
        constexpr Native unit = power_of_two<Native>(narrow::quantum_exponent + wide::fraction_bits);
        const word subnormal =
            static_cast<word>(bit_cast<word>(bit_cast<Native>(magnitude) + unit) - bit_cast<word>(unit));
        code = magnitude < smallest_normal ? subnormal : code;
    }
    if constexpr (Format::nans == nan_encoding::ieee) {
        const word payload = static_cast<word>((magnitude & wide::fraction_mask) >> shift);
        code = magnitude > wide::infinity_code ? static_cast<word>(narrow::nan_code | payload) : code;
    } else {
        code = magnitude > wide::infinity_code ? word{narrow::nan_code} : code;
    }
    return join<Format>((bits & wide::sign_mask) != 0, code);
}

}  // namespace mp::detail
