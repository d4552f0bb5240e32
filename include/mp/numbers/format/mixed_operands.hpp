// SPDX-License-Identifier: MIT
/// \file
/// A number of a format beside a number of a built-in type, on codes: comparisons by the exact values of
/// both, and + - * / rounded once to the format. Integers throughout, so neither the rounding direction,
/// flushing nor -ffast-math of the caller has a say.
#pragma once

#include <mp/numbers/format/host_floats.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Integers that a number converts from and to: the standard ones, characters and 128-bit ones, but not bool.
template <class T>
concept integer = !std::same_as<std::remove_cv_t<T>, bool> &&
                  (std::integral<T> || (sizeof(T) == 16 && requires(T x) { x % x; } && !std::is_class_v<T>));

/// Enumerations that convert to integers by themselves.
template <class T>
concept unscoped_enum = std::is_enum_v<T> && std::is_convertible_v<T, long long>;

/// What stands beside a number as an integer: bool counts as 0 or 1, an enumeration as its value.
template <class T>
concept integer_operand = integer<T> || std::same_as<T, bool> || unscoped_enum<T>;

/// What stands beside a number of the format as a floating-point number: a type that holds all of its
/// numbers. Those of 16 bits are operands as the float that they are promoted to.
template <class T, class Format>
concept floating_operand = (built_in<T> && exactly_representable_in<Format, T>) ||
                           (host_float<T> && sizeof(T) == 2 && exactly_representable_in<Format, float>) ||
                           (host_float<T> && sizeof(T) > 2 && exactly_representable_in<Format, double>);

template <class T, class Format>
concept mixed_operand = integer_operand<T> || floating_operand<T, Format>;

/// The integer that an operand stands for: -1 of an enumeration of 8 bits is -1.
template <integer_operand X>
MP_HOST_DEVICE constexpr auto integer_of(X x) noexcept {
    if constexpr (std::is_enum_v<X>) {
        return integer_of(static_cast<std::underlying_type_t<X>>(x));
    } else if constexpr (std::same_as<X, bool>) {
        return static_cast<int>(x);
    } else {
        return x;
    }
}

/// Precondition of all but comparisons: an integer has at most 64 bits. The tail of a longer one is sticky.
MP_ANY_EXECUTION_SPACE
template <class X>
MP_HOST_DEVICE constexpr number_parts parts_of(X x) noexcept {
    if constexpr (built_in<X>) {
        using format = typename native_format<X>::type;
        return parts_of_code<format>(bit_cast<storage_of<format>>(x));
    } else if constexpr (host_float<X>) {
        return parts_of_host_float(x);
    } else {
        bool negative = false;
        if constexpr (X(-1) < X(0)) negative = x < 0;
        if (x == 0) return {category::zero, false};
        using word = std::conditional_t<(sizeof(X) > 8), uint128, std::uint64_t>;
        const word magnitude = negative ? word{0} - static_cast<word>(x) : static_cast<word>(x);
        return {category::finite, negative, to_64_bits(exact_number<word>{negative, 0, magnitude})};
    }
}

// --- comparisons

/// Two keys, integers that are in the order of two values, and whether the values are ordered at all. What is
/// asked of them has no branches.
template <class Key>
struct compared {
    Key a;
    Key b;
    bool ordered;
};

/// The order of two codes of one IEEE format as that of integers: magnitude codes with the sign of the
/// number.
template <class Format>
MP_HOST_DEVICE constexpr auto compare_codes(storage_of<Format> a, storage_of<Format> b) noexcept {
    using layout = layout_of<Format>;
    using key = std::make_signed_t<storage_of<Format>>;
    const auto key_of = [](storage_of<Format> code) {
        const auto magnitude = static_cast<key>(code & layout::magnitude_mask);
        const auto all_ones_if_negative = static_cast<key>(-static_cast<key>(is_negative<Format>(code)));
        return static_cast<key>((magnitude ^ all_ones_if_negative) - all_ones_if_negative);
    };
    const bool a_is_nan = (a & layout::magnitude_mask) > layout::infinity_code;
    const bool b_is_nan = (b & layout::magnitude_mask) > layout::infinity_code;
    return compared<key>{key_of(a), key_of(b), !(a_is_nan | b_is_nan)};
}

/// -1, 0 or 1 as |a| < |b|, |a| = |b| or |a| > |b|. Of two significands with the highest bit at the same
/// place the larger one is that of the larger number, and a tail decides between equal ones.
MP_HOST_DEVICE constexpr int compare_magnitudes(const exact_value& a, const exact_value& b) noexcept {
    const int zeros_a = leading_zeros(a.significand);
    const int zeros_b = leading_zeros(b.significand);
    const int top_a = a.exponent - zeros_a;
    const int top_b = b.exponent - zeros_b;
    if (top_a != top_b) return top_a < top_b ? -1 : 1;
    const std::uint64_t high_a = a.significand << zeros_a;
    const std::uint64_t high_b = b.significand << zeros_b;
    if (high_a != high_b) return high_a < high_b ? -1 : 1;
    return static_cast<int>(a.sticky) - static_cast<int>(b.sticky);
}

/// The order of any two numbers of which one at most has a tail.
MP_HOST_DEVICE constexpr compared<int> compare_parts(const number_parts& a, const number_parts& b) noexcept {
    if (a.kind == category::nan || b.kind == category::nan) return {0, 0, false};
    const auto sign_of = [](const number_parts& x) {
        return x.kind == category::zero ? 0 : x.negative ? -1 : 1;
    };
    const int sign = sign_of(a);
    if (sign != sign_of(b) || sign == 0) return {sign, sign_of(b), true};
    const bool a_is_infinite = a.kind == category::infinite;
    const bool b_is_infinite = b.kind == category::infinite;
    if (a_is_infinite || b_is_infinite) return {sign * a_is_infinite, sign * b_is_infinite, true};
    return {sign * compare_magnitudes(a.value, b.value), 0, true};
}

/// A number of a format against one of a built-in type, by their exact values. Where float or double has
/// both, by its codes.
MP_ANY_EXECUTION_SPACE
template <class Format, class X>
MP_HOST_DEVICE constexpr auto compare_with(storage_of<Format> bits, X x) noexcept {
    if constexpr (std::same_as<X, float> && exactly_representable_in<Format, float>) {
        return compare_codes<formats::binary32>(bit_cast<std::uint32_t>(to_float<Format>(bits)),
                                                bit_cast<std::uint32_t>(x));
    } else if constexpr (std::same_as<X, double> && exactly_representable_in<Format, double>) {
        return compare_codes<formats::binary64>(bit_cast<std::uint64_t>(to_double<Format>(bits)),
                                                bit_cast<std::uint64_t>(x));
    } else if constexpr (integer<X> && sizeof(X) <= 4 && exactly_representable_in<Format, double>) {
        return compare_codes<formats::binary64>(bit_cast<std::uint64_t>(to_double<Format>(bits)),
                                                bit_cast<std::uint64_t>(static_cast<double>(x)));
    } else {
        return compare_parts(parts_of_code<Format>(bits), parts_of(x));
    }
}

// --- arithmetic that is rounded once to the format of the left operand

enum class operation : unsigned char { add, subtract, multiply, divide };

/// a + b for two numbers without tails that are not NaN. The significands of both leave 16 bits of Word free.
template <class To, class Word>
MP_HOST_DEVICE constexpr storage_of<To> mixed_sum(const number_parts& a, const number_parts& b) {
    const projection nearest{};
    if (a.kind == category::infinite && b.kind == category::infinite && a.negative != b.negative) {
        return pack_nan<To>();
    }
    if (a.kind == category::infinite || b.kind == category::infinite) {
        return pack_infinity<To>(a.kind == category::infinite ? a.negative : b.negative, nearest);
    }
    if (a.kind == category::zero && b.kind == category::zero) {
        return pack_zero<To>(a.negative && b.negative, nearest);
    }
    if (b.kind == category::zero) return round_and_pack<To>(a.value, nearest);
    if (a.kind == category::zero) return round_and_pack<To>(b.value, nearest);
    const exact_value sum = to_64_bits(add_exact(widened<Word>(a.value), widened<Word>(b.value)));
    if (sum.significand == 0) return pack_zero<To>(false, nearest);
    return round_and_pack<To>(sum, nearest);
}

/// a * b for the same. The product of the significands fits into Word.
template <class To, class Word>
MP_HOST_DEVICE constexpr storage_of<To> mixed_product(const number_parts& a, const number_parts& b) {
    const projection nearest{};
    const bool negative = a.negative != b.negative;
    const bool infinite = a.kind == category::infinite || b.kind == category::infinite;
    const bool zero = a.kind == category::zero || b.kind == category::zero;
    if (infinite && zero) return pack_nan<To>();
    if (infinite) return pack_infinity<To>(negative, nearest);
    if (zero) return pack_zero<To>(negative, nearest);
    const Word product = static_cast<Word>(a.value.significand) * b.value.significand;
    return round_and_pack<To>(
        to_64_bits(exact_number<Word>{negative, a.value.exponent + b.value.exponent, product}), nearest);
}

/// a / b for the same. The quotient has two bits less than Word, less those of the divisor, and must have two
/// more than the precision of To; the rest is sticky.
template <class To, class Word>
MP_HOST_DEVICE constexpr storage_of<To> mixed_quotient(const number_parts& a, const number_parts& b) {
    const projection nearest{};
    const bool negative = a.negative != b.negative;
    if (a.kind == b.kind && a.kind != category::finite) return pack_nan<To>();
    if (layout_of<To>::follows_p3109 && b.kind == category::zero) return pack_nan<To>();
    if (a.kind == category::infinite || b.kind == category::zero) return pack_infinity<To>(negative, nearest);
    if (a.kind == category::zero || b.kind == category::infinite) return pack_zero<To>(negative, nearest);
    const exact_number<Word> dividend = normalized(widened<Word>(a.value));
    const Word divisor = b.value.significand;
    const Word quotient = dividend.significand / divisor;
    const bool sticky = quotient * divisor != dividend.significand;
    return round_and_pack<To>(
        to_64_bits(exact_number<Word>{negative, dividend.exponent - b.value.exponent, quotient, sticky}),
        nearest);
}

/// `bits` + - * / x, the exact result rounded once to nearest even. (By way of float it would be rounded
/// twice: half 1 += 0x1.002001p-1f.) X is float, double or an integer of up to 64 bits.
///
/// Significands of a format have at most 31 bits, those of float 24, of double 53, of integers 64. With
/// float, 64 bits hold the product's 55, leave a sum its 16, and a quotient gets 62 - 24 = 38 bits, of which
/// 33 are needed. With the others 128 bits hold 95, leave 62, and a quotient gets 62 at least.
template <class To, class X>
MP_HOST_DEVICE constexpr storage_of<To> mixed_operation(operation kind, storage_of<To> bits, X x) noexcept {
    static_assert(sizeof(X) <= 8);
    using word = std::conditional_t<std::same_as<X, float>, std::uint64_t, uint128>;
    const number_parts a = parts_of_code<To>(bits);
    number_parts b = parts_of(x);
    if (a.kind == category::nan) return convert_nan<To, To>(bits);
    if constexpr (built_in<X>) {
        using format = typename native_format<X>::type;
        if (b.kind == category::nan) return convert_nan<To, format>(bit_cast<storage_of<format>>(x));
    }
    if (kind == operation::multiply) return mixed_product<To, word>(a, b);
    if (kind == operation::divide) return mixed_quotient<To, word>(a, b);
    if (kind == operation::subtract) {
        b.negative = !b.negative;
        b.value.negative = !b.value.negative;
    }
    return mixed_sum<To, word>(a, b);
}

}}  // namespace mp::detail
