// SPDX-License-Identifier: MIT
/// \file
/// Scalar conversions on codes, in every projection and each rounded once: between formats, from and to
/// float, double, long double and integers. Built on the integer core; nearest-even takes the fast paths.
#pragma once

#include <mp/format/hardware.hpp>

#include <concepts>
#include <limits>
#include <type_traits>

namespace mp::detail {

/// From a code of one format to a code of another, float and double included as binary32 and binary64.
template <class To, class From>
MP_HOST_DEVICE constexpr storage_of<To> convert_bits(storage_of<From> bits, projection p) {
    const bool negative = is_negative<From>(bits);
    switch (categorize<From>(bits)) {
        case category::zero:
            return pack_zero<To>(negative);
        case category::infinite:
            return pack_infinity<To>(negative, p);
        case category::nan:
            return convert_nan<To, From>(bits);
        case category::finite:
            break;
    }
    return round_and_pack<To>(unpack<From>(bits), p);
}

/// From float or double.
template <class To, class Native>
requires std::same_as<Native, float> || std::same_as<Native, double> MP_HOST_DEVICE constexpr storage_of<To>
from_native(Native x, projection p) {
    using native = typename native_format<Native>::type;
    if constexpr (fits_in<To, Native>) {
        if (MP_HARDWARE_FLOAT && p == projection{}) {
            if constexpr (std::same_as<Native, float>) {
                return from_float<To>(x);
            } else {
                return narrow_nearest_even<To>(x);
            }
        }
    }
    return convert_bits<To, native>(bit_cast<storage_of<native>>(x), p);
}

/// From long double: the x87 format, or whatever wider format the target has, decoded by arithmetic. NaN and
/// infinity are told apart by the bits of the double next to x, which stay right under -ffast-math.
template <class To>
constexpr storage_of<To> from_long_double(long double x, projection p) {
    if constexpr (std::numeric_limits<long double>::digits == std::numeric_limits<double>::digits) {
        return from_native<To>(static_cast<double>(x), p);
    } else {
        using binary64 = layout_of<formats::binary64>;
        const auto bits = bit_cast<std::uint64_t>(static_cast<double>(x));
        const bool negative = (bits & binary64::sign_mask) != 0;
        const std::uint64_t magnitude_bits = bits & binary64::magnitude_mask;
        if (magnitude_bits > binary64::infinity_code) return convert_nan<To, formats::binary64>(bits);
        long double magnitude = negative ? -x : x;
        int exponent = 0;
        if (magnitude_bits == binary64::infinity_code) {
            // Too large for double: a finite value comes back into double's range, an infinity does not.
            for (int step = 0; step < 8; ++step) magnitude *= 0x1p-2000L;
            const auto scaled = bit_cast<std::uint64_t>(static_cast<double>(magnitude));
            if (scaled == binary64::infinity_code) return pack_infinity<To>(negative, p);
            return round_and_pack<To>({negative, 5000, std::uint64_t{1} << 62}, p);
        }
        if (!(magnitude > 0)) return pack_zero<To>(negative);
        // Bring the value into [2^62, 2^63) by exact scaling; what is left behind the point is sticky.
        for (; magnitude < 0x1p62L; --exponent) magnitude *= 2;
        for (; magnitude >= 0x1p63L; ++exponent) magnitude *= 0.5L;
        const auto significand = static_cast<std::uint64_t>(magnitude);
        const bool sticky = static_cast<long double>(significand) != magnitude;
        return round_and_pack<To>({negative, exponent, significand, sticky}, p);
    }
}

/// From any integer type, the 128-bit ones included.
template <class To, class Integer>
MP_HOST_DEVICE constexpr storage_of<To> from_integer(Integer value, projection p) {
    bool negative = false;
    if constexpr (Integer(-1) < Integer(0)) negative = value < 0;
    if (value == 0) return pack_zero<To>(false);
    if constexpr (sizeof(Integer) <= 8) {
        auto magnitude = static_cast<std::uint64_t>(value);
        if (negative) magnitude = 0 - magnitude;
        return round_and_pack<To>({negative, 0, magnitude}, p);
    } else {
        __extension__ using wide = unsigned __int128;
        auto magnitude = static_cast<wide>(value);
        if (negative) magnitude = 0 - magnitude;
        const auto high = static_cast<std::uint64_t>(magnitude >> 64);
        const auto low = static_cast<std::uint64_t>(magnitude);
        if (high == 0) return round_and_pack<To>({negative, 0, low}, p);
        const int shift = 64 - leading_zeros(high);
        const auto kept = static_cast<std::uint64_t>(magnitude >> shift);
        const bool sticky = (static_cast<wide>(kept) << shift) != magnitude;
        return round_and_pack<To>({negative, shift, kept, sticky}, p);
    }
}

/// To an integer, toward zero as in C++; out of range goes to the nearest integer of the type and NaN to
/// zero, as the conversion instructions of GPUs do, instead of the undefined behaviour of the built-in types.
template <class Integer, class From>
MP_HOST_DEVICE constexpr Integer to_integer(storage_of<From> bits) {
    constexpr bool is_signed = Integer(-1) < Integer(0);
    constexpr int value_bits = static_cast<int>(sizeof(Integer)) * 8 - (is_signed ? 1 : 0);
    __extension__ using wide = unsigned __int128;
    using word = std::conditional_t<(sizeof(Integer) > 8), wide, std::uint64_t>;
    constexpr word largest =
        static_cast<word>(static_cast<word>(~word{0}) >> (static_cast<int>(sizeof(word)) * 8 - value_bits));
    const bool negative = is_negative<From>(bits);
    const category kind = categorize<From>(bits);
    if (kind == category::zero || kind == category::nan) return 0;
    constexpr word lowest_magnitude = is_signed ? largest + 1 : word{0};
    const word limit = negative ? lowest_magnitude : largest;
    word magnitude = limit;
    if (kind == category::finite) {
        const exact_value x = unpack<From>(bits);
        const int top = 63 - leading_zeros(x.significand);
        if (x.exponent <= -64) {
            magnitude = 0;
        } else if (x.exponent <= 0) {
            magnitude = x.significand >> -x.exponent;
        } else if (top + x.exponent < static_cast<int>(sizeof(word)) * 8) {
            magnitude = static_cast<word>(static_cast<word>(x.significand) << x.exponent);
        }
        if (magnitude > limit) magnitude = limit;
    }
    return static_cast<Integer>(negative ? word{0} - magnitude : magnitude);
}

}  // namespace mp::detail
