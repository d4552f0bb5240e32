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

/// From float or double.
template <class To, built_in Native, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<To> from_native(Native x, Context&& context) {
    using native = typename native_format<Native>::type;
    if constexpr (fits_in<To, Native> && !keeps_flags<Context>) {
        if (MP_HARDWARE_FLOAT && context == projection{}) {
            if constexpr (std::same_as<Native, float>) {
                return from_float<To>(x);
            } else {
#if MP_DEVICE_CODE
                if constexpr (rounds_doubles_by_instruction<To>) {
                    if (!__builtin_is_constant_evaluated()) return device_narrow<To>(x);
                }
#endif
                return narrow_nearest_even<To>(x);
            }
        }
    }
#if MP_DEVICE_CODE
    if constexpr (std::same_as<Native, float> && narrows_by_instruction<To> && !keeps_flags<Context>) {
        if (!__builtin_is_constant_evaluated() && device_projects<To>(context)) {
            return device_narrow<To>(x, context);
        }
    }
#endif
    return convert_bits<To, native>(bit_cast<storage_of<native>>(x), context);
}

/// From a number of another format. On the device by way of float where every number of the format is one:
/// that rounds nothing, and a NaN keeps its sign and what there is of its payload.
template <class To, class From, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<To> from_number(storage_of<From> bits, Context&& context) {
#if MP_DEVICE_CODE
    if constexpr (fits_in<From, float> && fits_in<To, float> && !keeps_flags<Context>) {
        if (!__builtin_is_constant_evaluated()) return from_native<To>(to_float<From>(bits), context);
    }
#endif
    return convert_bits<To, From>(bits, context);
}

/// From long double: the x87 format, or whatever wider format the target has, decoded by arithmetic. NaN and
/// infinity are told apart by the bits of the double next to x, which stay right under -ffast-math.
template <class To, context Context = const projection&>
constexpr storage_of<To> from_long_double(long double x, Context&& context) {
    if constexpr (std::numeric_limits<long double>::digits == std::numeric_limits<double>::digits) {
        return from_native<To>(static_cast<double>(x), context);
    } else {
        using binary64 = layout_of<formats::binary64>;
        const auto bits = bit_cast<std::uint64_t>(static_cast<double>(x));
        const bool negative = (bits & binary64::sign_mask) != 0;
        const std::uint64_t magnitude_bits = bits & binary64::magnitude_mask;
        if (magnitude_bits > binary64::infinity_code) {
            return convert_nan<To, formats::binary64>(bits, projection_of(context));
        }
        long double magnitude = negative ? -x : x;
        int exponent = 0;
        if (magnitude_bits == binary64::infinity_code) {
            // Too large for double: a finite value comes back into double's range, an infinity does not.
            for (int step = 0; step < 8; ++step) magnitude *= 0x1p-2000L;
            const auto scaled = bit_cast<std::uint64_t>(static_cast<double>(magnitude));
            if (scaled == binary64::infinity_code) return pack_infinity<To>(negative, context);
            return round_and_pack<To>({negative, 5000, std::uint64_t{1} << 62}, context);
        }
        if (!(magnitude > 0)) return pack_zero<To>(negative, context);
        // Bring the value into [2^62, 2^63) by exact scaling; what is left behind the point is sticky.
        for (; magnitude < 0x1p62L; --exponent) magnitude *= 2;
        for (; magnitude >= 0x1p63L; ++exponent) magnitude *= 0.5L;
        const auto significand = static_cast<std::uint64_t>(magnitude);
        const bool sticky = static_cast<long double>(significand) < magnitude;
        return round_and_pack<To>({negative, exponent, significand, sticky}, context);
    }
}

/// From any integer type, the 128-bit ones included.
template <class To, class Integer, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<To> from_integer(Integer value, Context&& context) {
    bool negative = false;
    if constexpr (Integer(-1) < Integer(0)) negative = value < 0;
#if MP_DEVICE_CODE
    if constexpr (rounds_integers_by_instruction<To, Integer> && !keeps_flags<Context>) {
        if (!__builtin_is_constant_evaluated() && context == projection{}) {
            return device_from_integer<To>(value);
        }
    }
#endif
    if (value == 0) return pack_zero<To>(false, context);
    using word = std::conditional_t<(sizeof(Integer) > 8), uint128, std::uint64_t>;
    const word magnitude = negative ? word{0} - static_cast<word>(value) : static_cast<word>(value);
    if constexpr (sizeof(Integer) <= 8) {
        return round_and_pack<To>({negative, 0, magnitude}, context);
    } else {
        return round_and_pack<To>(to_64_bits(exact_number<uint128>{negative, 0, magnitude}), context);
    }
}

/// An integer, and whether it is the one that was asked for.
template <class Integer>
struct integer_conversion {
    Integer value;
    bool fits;
};

/// The integer part of a value, or the nearest integer of the type.
template <class Integer>
MP_HOST_DEVICE constexpr integer_conversion<Integer> clamped_integer(const exact_value& x) {
    constexpr bool is_signed = Integer(-1) < Integer(0);
    constexpr int value_bits = static_cast<int>(sizeof(Integer)) * 8 - (is_signed ? 1 : 0);
    using word = std::conditional_t<(sizeof(Integer) > 8), uint128, std::uint64_t>;
    constexpr word largest = static_cast<word>(static_cast<word>(~word{0}) >> (bits_in<word> - value_bits));
    constexpr word lowest_magnitude = is_signed ? largest + 1 : word{0};
    const word limit = x.negative ? lowest_magnitude : largest;
    word magnitude = 0;
    bool fits = true;
    if (x.significand != 0 && x.exponent > -64) {
        const int top = 63 - leading_zeros(x.significand);
        if (x.exponent <= 0) {
            magnitude = x.significand >> -x.exponent;
        } else {
            fits = top + x.exponent < bits_in<word>;
            magnitude = fits ? static_cast<word>(static_cast<word>(x.significand) << x.exponent) : limit;
        }
    }
    fits = fits && magnitude <= limit;
    if (!fits) magnitude = limit;
    return {static_cast<Integer>(x.negative ? word{0} - magnitude : magnitude), fits};
}

/// To an integer, toward zero as in C++; out of range goes to the nearest integer of the type and NaN to
/// zero, as the conversion instructions of GPUs do, instead of the undefined behaviour of the built-in types.
template <class Integer, class From>
MP_HOST_DEVICE constexpr Integer to_integer(storage_of<From> bits) {
#if MP_DEVICE_CODE
    if constexpr (fits_in<From, float> && sizeof(Integer) <= 8) {
        if (!__builtin_is_constant_evaluated()) return device_to_integer<Integer>(to_float<From>(bits));
    }
#endif
    switch (categorize<From>(bits)) {
        case category::finite:
            return clamped_integer<Integer>(unpack<From>(bits)).value;
        case category::infinite:
            // Stands for a value beyond the range of every integer.
            return clamped_integer<Integer>({is_negative<From>(bits), 200, 1}).value;
        case category::zero:
        case category::nan:
            break;
    }
    return 0;
}

#if MP_HAS_COMPILER_BINARY16
__extension__ using compiler_binary16 = _Float16;
#else
struct compiler_binary16;
#endif
#if MP_HAS_COMPILER_BFLOAT16
__extension__ using compiler_bfloat16 = __bf16;
#else
struct compiler_bfloat16;
#endif
#if MP_HAS_COMPILER_BINARY128
__extension__ using compiler_binary128 = __float128;
#else
struct compiler_binary128;
#endif

/// Floating-point types that devices do not have.
template <class T>
concept host_float = std::same_as<T, long double> || std::same_as<T, compiler_binary16> ||
    std::same_as<T, compiler_bfloat16> || std::same_as<T, compiler_binary128>;

/// The format of a 16-bit one.
template <class T>
using host_format =
    std::conditional_t<std::same_as<T, compiler_bfloat16>, formats::bfloat16, formats::binary16>;

#if MP_HAS_COMPILER_BINARY128
/// From __float128, that is binary128: 15 exponent and 112 fraction bits.
template <class To, context Context = const projection&>
constexpr storage_of<To> from_binary128(compiler_binary128 x, Context&& context) {
    const auto bits = bit_cast<uint128>(x);
    const bool negative = (bits >> 127) != 0;
    const int field = static_cast<int>(bits >> 112) & 0x7fff;
    const uint128 fraction = bits & ((uint128{1} << 112) - 1);
    if (field == 0x7fff && fraction == 0) return pack_infinity<To>(negative, context);
    if (field == 0x7fff) {
        // The leading 52 bits of the fraction as those of a double; what does not fit must not make it
        // infinite.
        const auto leading = static_cast<std::uint64_t>(fraction >> 60);
        const std::uint64_t quiet_or_not = leading != 0 ? leading : 1;
        const std::uint64_t narrowed =
            (std::uint64_t{negative} << 63) | layout_of<formats::binary64>::infinity_code | quiet_or_not;
        return convert_nan<To, formats::binary64>(narrowed, context);
    }
    if (field == 0 && fraction == 0) return pack_zero<To>(negative, context);
    const uint128 significand = field == 0 ? fraction : fraction | (uint128{1} << 112);
    const int exponent = (field == 0 ? 1 : field) - 16383 - 112;
    return round_and_pack<To>(to_64_bits(exact_number<uint128>{negative, exponent, significand}), context);
}
#endif

template <class To, host_float From, context Context = const projection&>
constexpr storage_of<To> from_host_float(From x, Context&& context) {
    if constexpr (std::same_as<From, long double>) {
        return from_long_double<To>(x, context);
    } else if constexpr (sizeof(From) == 2) {
        return convert_bits<To, host_format<From>>(bit_cast<std::uint16_t>(x), context);
    } else {
#if MP_HAS_COMPILER_BINARY128
        return from_binary128<To>(x, context);
#endif
    }
}

}  // namespace mp::detail
