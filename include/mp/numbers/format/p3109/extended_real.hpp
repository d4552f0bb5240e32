// SPDX-License-Identifier: MIT
/// \file
/// The closed extended reals of IEEE P3109, over which its operations are defined: every number is decoded to
/// one, an operation makes another one of it, and that is projected to the format of the result, once.
#pragma once

#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/format/exact_arithmetic.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A closed extended real: zero, which has no sign, a finite number, an infinity, or NaN.
///
/// Finite numbers are exact unless their significand is sticky. Those of operands have at most 24 bits, with
/// a scale factor 48, and products of two such 96: so that add_exact() always has 16 bits to spare.
struct extended_real {
    category kind = category::zero;
    exact_number<uint128> value{false, 0, 0};  ///< of infinities only the sign

    [[nodiscard]] constexpr bool is_nan() const { return kind == category::nan; }
    [[nodiscard]] constexpr bool is_zero() const { return kind == category::zero; }
    [[nodiscard]] constexpr bool is_infinite() const { return kind == category::infinite; }
    [[nodiscard]] constexpr bool is_finite() const { return kind <= category::finite; }
    [[nodiscard]] constexpr bool is_negative() const {
        return (kind == category::finite || kind == category::infinite) && value.negative;
    }
    /// The same with this sign; zero and NaN have none.
    [[nodiscard]] constexpr extended_real with_sign(bool negative) const {
        extended_real result = *this;
        result.value.negative = negative;
        return result;
    }
};

constexpr extended_real real_nan() {
    return {category::nan, {false, 0, 0}};
}
constexpr extended_real real_infinity(bool negative = false) {
    return {category::infinite, {negative, 0, 0}};
}
/// A finite number; zero if its significand is zero and nothing follows.
constexpr extended_real as_real(const exact_number<uint128>& x) {
    return {x.significand == 0 ? category::zero : category::finite, x};
}
constexpr extended_real as_real(const exact_value& x) {
    return as_real(widened<uint128>(x));
}
constexpr extended_real real_integer(int x, int exponent = 0) {
    return as_real(exact_value{x < 0, exponent, static_cast<std::uint64_t>(x < 0 ? -x : x)});
}

/// Numbers that the operations of P3109 take and return.
template <class T>
concept p3109_operand = number<T> && layout_of<format_of_t<T>>::precision <= 24;

/// The format with P3109's overflow, which the report also has for binary32 and other external formats.
template <class Format>
struct projected_format : Format {
    static constexpr bool follows_p3109 = true;
};

/// The value of a number (P3109, 4.7.2). Minus zero is zero.
template <p3109_operand T>
constexpr extended_real decode(T x) {
    using format = format_of_t<T>;
    const auto bits = bits_of(x);
    const category kind = categorize<format>(bits);
    if (kind == category::finite) return as_real(unpack<format>(bits));
    if (kind == category::infinite) return real_infinity(mp::detail::is_negative<format>(bits));
    return {kind, {false, 0, 0}};
}

/// The number of a format that a value rounds and saturates to (P3109, 4.7.3). A zero is never negative.
template <p3109_operand T>
constexpr T project(const extended_real& x, const projection& p) {
    using format = projected_format<format_of_t<T>>;
    switch (x.kind) {
        case category::zero:
            return number_from_bits<T>(pack_zero<format>(false, p));
        case category::infinite:
            return number_from_bits<T>(pack_infinity<format>(x.value.negative, p));
        case category::nan:
            return number_from_bits<T>(pack_nan<format>(false, p));
        case category::finite:
            break;
    }
    const auto bits = round_and_pack<format>(to_64_bits(x.value), p);
    if (layout_of<format>::has_signed_zero && bits == layout_of<format>::sign_mask)
        return number_from_bits<T>(0);
    return number_from_bits<T>(bits);
}

// --- order

/// -1, 0 or 1 as the magnitude of a is less than, equal to or greater than that of b; neither is NaN.
constexpr int compare_magnitudes(const extended_real& a, const extended_real& b) {
    if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1;
    if (a.kind != category::finite) return 0;
    const exact_number<uint128> x = normalized(a.value, 0);
    const exact_number<uint128> y = normalized(b.value, 0);
    if (x.exponent != y.exponent) return x.exponent < y.exponent ? -1 : 1;
    return x.significand == y.significand ? 0 : x.significand < y.significand ? -1 : 1;
}
/// The same for the numbers themselves.
constexpr int compare_reals(const extended_real& a, const extended_real& b) {
    const bool negative = a.is_negative();
    if (negative != b.is_negative()) return negative ? -1 : 1;
    return negative ? compare_magnitudes(b, a) : compare_magnitudes(a, b);
}

// --- + - * /

constexpr extended_real real_negative(const extended_real& x) {
    return x.with_sign(!x.value.negative);
}

/// x + y (P3109, 4.10.3).
constexpr extended_real real_sum(const extended_real& x, const extended_real& y) {
    if (x.is_nan() || y.is_nan()) return real_nan();
    if (x.is_infinite() && y.is_infinite() && x.is_negative() != y.is_negative()) return real_nan();
    if (x.is_infinite() || y.is_zero()) return x;
    if (y.is_infinite() || x.is_zero()) return y;
    return as_real(add_exact(x.value, y.value));
}

/// x y for factors whose significands have together at most 128 bits (P3109, 4.10.4).
constexpr extended_real real_product(const extended_real& x, const extended_real& y) {
    if (x.is_nan() || y.is_nan()) return real_nan();
    const bool negative = x.is_negative() != y.is_negative();
    if (x.is_infinite() || y.is_infinite())
        return x.is_zero() || y.is_zero() ? real_nan() : real_infinity(negative);
    if (x.is_zero() || y.is_zero()) return {};
    return as_real(exact_number<uint128>{negative, x.value.exponent + y.value.exponent,
                                         x.value.significand * y.value.significand});
}

/// x / y for a divisor of at most 48 bits, so that the quotient has 78 (P3109, 4.10.5).
constexpr extended_real real_quotient(const extended_real& x, const extended_real& y) {
    if (x.is_nan() || y.is_nan() || y.is_zero()) return real_nan();
    if (x.is_infinite()) {
        return y.is_infinite() ? real_nan() : real_infinity(x.is_negative() != y.is_negative());
    }
    if (x.is_zero() || y.is_infinite()) return {};
    const exact_number<uint128> dividend = normalized(x.value, 0);
    const uint128 quotient = dividend.significand / y.value.significand;
    const bool rest = quotient * y.value.significand != dividend.significand;
    return as_real(exact_number<uint128>{x.is_negative() != y.is_negative(),
                                         dividend.exponent - y.value.exponent, quotient,
                                         x.value.sticky || rest});
}

/// x + y + z (P3109, 4.10.7).
constexpr extended_real real_sum_of_three(const extended_real& x, const extended_real& y,
                                          const extended_real& z) {
    if (!x.is_finite() || !y.is_finite() || !z.is_finite()) return real_sum(real_sum(x, y), z);
    return as_real(sum_of_three(x.value, y.value, z.value));
}

}}  // namespace mp::detail
