// SPDX-License-Identifier: MIT
/// \file
/// Scalar conversions on codes, in every projection and each rounded once: between formats, from and to
/// float, double and integers (host_floats.hpp has the host's other types). Built on the integer core;
/// nearest-even takes the fast paths.
#pragma once

#include <mp/numbers/format/hardware.hpp>

#include <concepts>
#include <limits>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// From float or double.
template <class To, built_in Native, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<To> from_native(Native x, Context&& context) {
    using native = typename native_format<Native>::type;
    if constexpr (fast_path_in<To, Native> && !keeps_flags<Context>) {
        if (MP_HARDWARE_FLOAT && context == projection{}) {
            if constexpr (std::same_as<Native, float>) {
                if constexpr (MP_DEVICE_CODE || (MP_HARDWARE_F16C && is_binary16<To>)) {
                    return from_float<To>(x);
                } else {
                    return static_cast<storage_of<To>>(narrow_to_word<To>(x));
                }
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
    if constexpr (fast_path_in<From, float> && fast_path_in<To, float> && !keeps_flags<Context>) {
        if (!__builtin_is_constant_evaluated()) return from_native<To>(to_float<From>(bits), context);
    }
#endif
    return convert_bits<To, From>(bits, context);
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
#if MP_HARDWARE_FLOAT && !MP_DEVICE_CODE
    // An integer of up to 53 bits is a double, and the conversion of that is shorter.
    if constexpr (sizeof(Integer) <= 8 && fast_path_in<To, double> && !keeps_flags<Context>) {
        constexpr std::uint64_t limit = std::uint64_t{1} << 53;
        const auto distance = static_cast<std::uint64_t>(value);
        if ((negative ? std::uint64_t{0} - distance : distance) <= limit && context == projection{}) {
            return from_native<To>(static_cast<double>(static_cast<std::int64_t>(value)), context);
        }
    }
#endif
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
    if constexpr (fast_path_in<From, float> && sizeof(Integer) <= 8) {
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

}}  // namespace mp::detail
