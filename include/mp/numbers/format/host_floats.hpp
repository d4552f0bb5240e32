// SPDX-License-Identifier: MIT
/// \file
/// Scalar conversions from and to the floating-point types that only hosts have: long double, and the
/// compiler's _Float16, __bf16 and __float128. On bits wherever those can be had, so that rounding direction,
/// flushing and -ffast-math of the caller change nothing and a signalling NaN is seen.
#pragma once

#include <mp/numbers/format/convert_scalar.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

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

/// Any number, decomposed.
struct number_parts {
    category kind;
    bool negative;
    exact_value value{};    ///< with its sign, if the kind is finite
    std::uint64_t nan = 0;  ///< the code of a NaN, as one of binary64
};

template <class Format>
MP_HOST_DEVICE constexpr number_parts parts_of_code(storage_of<Format> bits) {
    const category kind = categorize<Format>(bits);
    number_parts result{kind, is_negative<Format>(bits)};
    if (kind == category::finite) result.value = unpack<Format>(bits);
    return result;
}

/// The formats wider than double: 15 exponent bits of bias 16383 as in x87's format and binary128, with the
/// leading one of the significand written out at bit FractionBits.
template <class Word, int FractionBits>
struct extended_format {
    static constexpr int bias = 16383;
    static constexpr int highest_field = 0x7fff;
    static constexpr int quantum_exponent = 1 - bias - FractionBits;
    static constexpr Word leading_one = Word{1} << FractionBits;

    struct code {
        bool negative;
        int field;
        Word significand;
    };

    /// Of more than 64 bits the rest is sticky. Of a NaN 52 bits of the fraction are kept; what does not fit
    /// must not make it infinite.
    static constexpr number_parts parts(const code& x) {
        const Word fraction = x.significand & (leading_one - 1);
        if (x.field == highest_field && fraction == 0) return {category::infinite, x.negative};
        if (x.field == highest_field) {
            const auto leading = static_cast<std::uint64_t>(fraction >> (FractionBits - 52));
            return {category::nan, x.negative, {}, nan_code(x.negative, leading != 0 ? leading : 1)};
        }
        if (x.significand == 0) return {category::zero, x.negative};
        const int exponent = quantum_exponent + (x.field == 0 ? 0 : x.field - 1);
        return {category::finite, x.negative,
                to_64_bits(exact_number<Word>{x.negative, exponent, x.significand})};
    }
    static constexpr std::uint64_t nan_code(bool negative, std::uint64_t payload) {
        using binary64 = layout_of<formats::binary64>;
        return (negative ? binary64::sign_mask : 0) | binary64::infinity_code | payload;
    }

    /// A finite number of at most 32 bits, rounded to nearest even: that is exact except for what is too
    /// small or too large.
    static constexpr code nearest(exact_value x) {
        if (x.exponent < quantum_exponent) {
            const split_value split = split_at(x, quantum_exponent);
            const bool up = rounds_up(split, x.negative, (split.truncated & 1) != 0, projection{});
            x = {x.negative, quantum_exponent, split.truncated + (up ? 1 : 0)};
            if (x.significand == 0) return {x.negative, 0, 0};
        }
        const int last = 63 - leading_zeros(x.significand);
        const int field = last + x.exponent + bias;
        if (field >= highest_field) return {x.negative, highest_field, leading_one};
        if (field <= 0) return {x.negative, 0, Word{x.significand} << (x.exponent - quantum_exponent)};
        return {x.negative, field, Word{x.significand} << (FractionBits - last)};
    }
};

using x87_format = extended_format<std::uint64_t, 63>;
using binary128_format = extended_format<uint128, 112>;

constexpr number_parts parts_of_binary128(uint128 bits) {
    const int field = static_cast<int>(bits >> 112) & binary128_format::highest_field;
    const uint128 fraction = bits & (binary128_format::leading_one - 1);
    return binary128_format::parts(
        {(bits >> 127) != 0, field, field == 0 ? fraction : fraction | binary128_format::leading_one});
}
constexpr uint128 binary128_bits(const binary128_format::code& x) {
    return uint128{x.negative} << 127 | static_cast<uint128>(x.field) << 112 |
           (x.significand & (binary128_format::leading_one - 1));
}

/// What long double is: double itself, the 80 bits of x87, binary128, or something else, like IBM's pair of
/// doubles, which is left to arithmetic.
enum class long_double_kind : unsigned char { binary64, x87, binary128, other };
inline constexpr long_double_kind kind_of_long_double = [] {
    using limits = std::numeric_limits<long double>;
    if (limits::digits == 53) return long_double_kind::binary64;
#if defined(__x86_64__) || defined(__i386__)
    if (limits::digits == 64) return long_double_kind::x87;
#endif
    if (limits::digits == 113) return long_double_kind::binary128;
    return long_double_kind::other;
}();

// The ten bytes of x87's format; what fills them up has no meaning, and keeps constant expressions from them.
inline x87_format::code x87_code(long double x) {
    std::uint64_t significand = 0;
    std::uint16_t sign_and_field = 0;
    __builtin_memcpy(&significand, &x, 8);
    __builtin_memcpy(&sign_and_field, reinterpret_cast<const char*>(&x) + 8, 2);
    return {sign_and_field >> 15 != 0, sign_and_field & x87_format::highest_field, significand};
}
inline long double x87_from_code(const x87_format::code& code) {
    const auto sign_and_field = static_cast<std::uint16_t>((code.negative ? 0x8000 : 0) | code.field);
    long double x = 0;
    __builtin_memcpy(&x, &code.significand, 8);
    __builtin_memcpy(reinterpret_cast<char*>(&x) + 8, &sign_and_field, 2);
    return x;
}

/// Without its leading one a number of x87 is none, and the processor calls it invalid. (The smallest
/// exponent field counts the same with and without.)
constexpr number_parts parts_of_x87(const x87_format::code& x) {
    if (x.field != 0 && (x.significand & x87_format::leading_one) == 0) {
        return {category::nan, x.negative, {}, x87_format::nan_code(x.negative, 1)};
    }
    return x87_format::parts(x);
}

/// By exact arithmetic. NaN, infinity and sign are those of the double next to x, found on its bits.
constexpr number_parts parts_by_arithmetic(long double x) {
    using binary64 = layout_of<formats::binary64>;
    const auto bits = bit_cast<std::uint64_t>(static_cast<double>(x));
    const bool negative = (bits & binary64::sign_mask) != 0;
    const std::uint64_t magnitude_bits = bits & binary64::magnitude_mask;
    if (magnitude_bits > binary64::infinity_code) return {category::nan, negative, {}, bits};
    long double magnitude = negative ? -x : x;
    int exponent = 0;
    if (magnitude_bits == binary64::infinity_code) {
        // Too large for double: a finite value comes back into double's range, an infinity does not. The
        // scaling by powers of two is exact.
        for (; exponent < 16000; exponent += 1000) magnitude *= 0x1p-1000L;
        const auto scaled = bit_cast<std::uint64_t>(static_cast<double>(magnitude));
        if (scaled == binary64::infinity_code) return {category::infinite, negative};
    }
    if (!(magnitude > 0)) return {category::zero, negative};
    // Bring the value into [2^62, 2^63) by exact scaling; what is left behind the point is sticky.
    for (; magnitude < 0x1p62L; --exponent) magnitude *= 2;
    for (; magnitude >= 0x1p63L; ++exponent) magnitude *= 0.5L;
    const auto significand = static_cast<std::uint64_t>(magnitude);
    const bool sticky = static_cast<long double>(significand) < magnitude;
    return {category::finite, negative, {negative, exponent, significand, sticky}};
}

template <host_float From>
constexpr number_parts parts_of_host_float(From x) {
    if constexpr (!std::same_as<From, long double> || kind_of_long_double == long_double_kind::binary128) {
        return parts_of_binary128(bit_cast<uint128>(x));
    } else if constexpr (kind_of_long_double == long_double_kind::binary64) {
        const auto bits = bit_cast<std::uint64_t>(x);
        number_parts result = parts_of_code<formats::binary64>(bits);
        result.nan = bits;
        return result;
    } else {
        if constexpr (kind_of_long_double == long_double_kind::x87) {
            if (!__builtin_is_constant_evaluated()) return parts_of_x87(x87_code(x));
        }
        return parts_by_arithmetic(x);
    }
}

template <class To, host_float From, context Context = const projection&>
constexpr storage_of<To> from_host_float(From x, Context&& context) {
    if constexpr (sizeof(From) == 2) {
        return convert_bits<To, host_format<From>>(bit_cast<std::uint16_t>(x), context);
    } else {
        const number_parts parts = parts_of_host_float(x);
        switch (parts.kind) {
            case category::zero:
                return pack_zero<To>(parts.negative, context);
            case category::infinite:
                return pack_infinity<To>(parts.negative, context);
            case category::nan:
                return convert_nan<To, formats::binary64>(parts.nan, context);
            case category::finite:
                break;
        }
        return round_and_pack<To>(parts.value, context);
    }
}

/// A finite number of at most 32 bits as x87's long double or as binary128, rounded to nearest even once.
template <host_float To>
constexpr To beyond_double(const exact_value& x) {
    if constexpr (std::same_as<To, long double> && kind_of_long_double == long_double_kind::x87) {
        const x87_format::code code = x87_format::nearest(x);
        if (!__builtin_is_constant_evaluated()) return x87_from_code(code);
        auto magnitude = static_cast<long double>(code.significand);
        int exponent = x87_format::quantum_exponent + (code.field == 0 ? 0 : code.field - 1);
        if (code.field == x87_format::highest_field) {
            magnitude = std::numeric_limits<long double>::infinity();
            exponent = 0;
        }
        for (; exponent > 0; --exponent) magnitude *= 2;
        for (; exponent < 0; ++exponent) magnitude *= 0.5L;
        return code.negative ? -magnitude : magnitude;
    } else {
        return bit_cast<To>(binary128_bits(binary128_format::nearest(x)));
    }
}

/// Rounded to nearest even once. By way of double where that has all numbers of the format, or all of the
/// range of the type.
template <host_float To, class From>
constexpr To to_host_float(storage_of<From> bits) {
    constexpr bool has_range_of_double =
        std::same_as<To, long double> &&
        (kind_of_long_double == long_double_kind::binary64 || kind_of_long_double == long_double_kind::other);
    if constexpr (sizeof(To) == 2) {
        return bit_cast<To>(convert_bits<host_format<To>, From>(bits, {}));
    } else {
        const auto nearest_double = bit_cast<double>(convert_bits<formats::binary64, From>(bits, {}));
        if constexpr (!exactly_representable_in<From, double> && !has_range_of_double) {
            if (categorize<From>(bits) == category::finite) return beyond_double<To>(unpack<From>(bits));
        }
        return static_cast<To>(nearest_double);
    }
}

}}  // namespace mp::detail
