// SPDX-License-Identifier: MIT
/// \file
/// What the mathematical functions are evaluated in: 64 leading bits and an exponent, all in integers.
///
/// Why integers and not double: the results must be the same on every host and device, in constant
/// expressions, under -ffast-math, with and without contraction of products and sums, in every rounding mode
/// of the processor and when it flushes subnormal numbers. Integer arithmetic is immune to all of that, has
/// eleven bits more than double and no limits of range. A product costs as much as one of doubles does.
/// (Narrow formats take double to nearest even all the same, where its bits cannot matter: fast_double.hpp.)
///
/// How a result becomes right: the exact cases of every function are known from number theory (the
/// exponential of an algebraic number is transcendental unless the number is zero, and so on) and are dealt
/// with before. All other results are irrational, or at least no numbers of the format nor midpoints between
/// two of them, so the evaluated bits are passed on with a sticky tail. That is right in every mode unless
/// the exact result is closer to a number or midpoint than the error of the evaluation, which is below 2^-50
/// of the result unless a comment says otherwise. Where functions come systematically close, as sin(x) to x
/// for small x, the arithmetic below keeps to the right side: all operations truncate, so a number from which
/// something ever so small is taken away becomes less than that number. For the rest the tests run through
/// all arguments.
#pragma once

#include <mp/numbers/format/exact_arithmetic.hpp>

#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// (-1)^negative * significand * 2^exponent with the highest bit of the significand set, or zero.
/// Operations truncate: the magnitude of the result is that of the exact one of the operands, cut off.
struct approximation {
    bool negative = false;
    int exponent = 0;
    std::uint64_t significand = 0;

    /// The power of two that the magnitude reaches: 2^top() <= magnitude < 2^(top() + 1).
    [[nodiscard]] MP_HOST_DEVICE constexpr int top() const { return exponent + 63; }
    [[nodiscard]] MP_HOST_DEVICE constexpr approximation operator-() const {
        return {!negative, exponent, significand};
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr approximation scaled(int power) const {
        return {negative, exponent + power, significand};
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr approximation magnitude() const {
        return {false, exponent, significand};
    }
};

/// The positive number significand * 2^exponent; the significand need not be normalised.
MP_HOST_DEVICE constexpr approximation approximate(std::uint64_t significand, int exponent) {
    if (significand == 0) return {};
    const int shift = leading_zeros(significand);
    return {false, exponent - shift, significand << shift};
}
MP_HOST_DEVICE constexpr approximation approximate(uint128 significand, int exponent) {
    if (significand == 0) return {};
    const int shift = leading_zeros(significand);
    return {false, exponent - shift + 64, static_cast<std::uint64_t>((significand << shift) >> 64)};
}
MP_HOST_DEVICE constexpr approximation approximate(int x) {
    approximation result = approximate(static_cast<std::uint64_t>(x < 0 ? -x : x), 0);
    result.negative = x < 0;
    return result;
}
MP_HOST_DEVICE constexpr approximation approximate(const exact_value& x) {
    approximation result = approximate(x.significand, x.exponent);
    result.negative = x.negative;
    return result;
}

/// The high half of a product.
MP_HOST_DEVICE constexpr std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
    return static_cast<std::uint64_t>((static_cast<uint128>(a) * b) >> 64);
}

MP_HOST_DEVICE constexpr approximation operator*(const approximation& a, const approximation& b) {
    if (a.significand == 0 || b.significand == 0) return {};
    const uint128 product = static_cast<uint128>(a.significand) * b.significand;
    const bool negative = a.negative != b.negative;
    const auto high = static_cast<std::uint64_t>(product >> 64);
    if (high >> 63 != 0) return {negative, a.exponent + b.exponent + 64, high};
    return {negative, a.exponent + b.exponent + 63, static_cast<std::uint64_t>(product >> 63)};
}

/// a / b; b must not be zero.
MP_HOST_DEVICE constexpr approximation operator/(const approximation& a, const approximation& b) {
    if (a.significand == 0) return {};
    const int shift = a.significand >= b.significand ? 63 : 64;
    const uint128 numerator = static_cast<uint128>(a.significand) << shift;
    return {a.negative != b.negative, a.exponent - b.exponent - shift,
            static_cast<std::uint64_t>(numerator / b.significand)};
}

/// a + b, truncated toward zero even if one of them is far smaller than the other.
MP_HOST_DEVICE constexpr approximation operator+(const approximation& a, const approximation& b) {
    if (a.significand == 0) return b;
    if (b.significand == 0) return a;
    const bool swap = a.exponent < b.exponent || (a.exponent == b.exponent && a.significand < b.significand);
    const approximation& larger = swap ? b : a;
    const approximation& smaller = swap ? a : b;
    const uint128 high = static_cast<uint128>(larger.significand) << 63;
    const uint128 low = static_cast<uint128>(smaller.significand) << 63;
    const int distance = larger.exponent - smaller.exponent;
    uint128 shifted = 0;
    bool cut_off = distance >= 64;  // nothing is cut off before, since low ends in 63 zeros
    if (distance < 64) {
        shifted = low >> distance;
    } else if (distance < 128) {
        shifted = low >> distance;
        cut_off = (shifted << distance) != low;
    }
    const uint128 sum =
        larger.negative == smaller.negative ? high + shifted : high - shifted - (cut_off ? 1 : 0);
    approximation result = approximate(sum, larger.exponent - 63);
    result.negative = larger.negative;
    return result;
}
MP_HOST_DEVICE constexpr approximation operator-(const approximation& a, const approximation& b) {
    return a + -b;
}

/// The magnitude in units of 2^-64, cut off; it must be less than one.
MP_HOST_DEVICE constexpr std::uint64_t to_fixed(const approximation& x) {
    const int shift = -64 - x.exponent;  // negative for zero, whose exponent is zero
    return static_cast<unsigned>(shift) < 64 ? x.significand >> shift : 0;
}

/// A constant to 128 bits: (high * 2^64 + low) * 2^exponent.
struct long_constant {
    std::uint64_t high;
    std::uint64_t low;
    int exponent;
};

MP_HOST_DEVICE constexpr approximation approximate_one() {
    return {false, -63, 0x8000000000000000};
}
MP_HOST_DEVICE constexpr approximation approximate_half_pi() {
    return {false, -63, 0xc90fdaa22168c234};
}
MP_HOST_DEVICE constexpr approximation approximate_pi() {
    return {false, -62, 0xc90fdaa22168c234};
}
MP_HOST_DEVICE constexpr approximation approximate_ln2() {
    return {false, -64, 0xb17217f7d1cf79ab};
}

/// c0 + c1 z + c2 z^2 + ... from every second coefficient of the list, beginning with the first.
template <std::uint64_t First, std::uint64_t... Rest>
struct every_second {
    MP_HOST_DEVICE static constexpr std::uint64_t at(std::uint64_t) { return First; }
};
template <std::uint64_t First, std::uint64_t Left, std::uint64_t Next, std::uint64_t... Rest>
struct every_second<First, Left, Next, Rest...> {
    MP_HOST_DEVICE static constexpr std::uint64_t at(std::uint64_t z) {
        return First + multiply_high(every_second<Next, Rest...>::at(z), z);
    }
};

/// c0 + c1 z + c2 z^2 + ...: coefficients in units of 2^-63 (or any other), z in units of 2^-64. Coefficients
/// as template arguments become operands of instructions, and need no table in device memory. Even and odd
/// powers are added up side by side, which takes half the time.
template <std::uint64_t First, std::uint64_t... Rest>
MP_HOST_DEVICE constexpr std::uint64_t polynomial(std::uint64_t z) {
    const std::uint64_t square = multiply_high(z, z);
    return every_second<First, Rest...>::at(square) + multiply_high(every_second<Rest...>::at(square), z);
}

/// c0 - c1 z + c2 z^2 - ..., which must be positive.
template <std::uint64_t First, std::uint64_t... Rest>
MP_HOST_DEVICE constexpr std::uint64_t alternating_polynomial(std::uint64_t z) {
    const std::uint64_t square = multiply_high(z, z);
    return every_second<First, Rest...>::at(square) - multiply_high(every_second<Rest...>::at(square), z);
}

/// floor(sqrt(x)) for x of 127 or 128 bits.
///
/// With a = x 2^-128 in [1/4, 1), the reciprocal root r of a is a polynomial (through the Chebyshev nodes, in
/// units of 2^-59; its error is below 2^-7.7) and three steps of Newton's r <- r (3 - a r^2) / 2, each of
/// which squares the relative error and multiplies it by 3/2, so that 2^-57 is left. The rest x - s^2 of s =
/// a r then tells what is missing to within one.
MP_HOST_DEVICE constexpr std::uint64_t square_root(uint128 x) {
    const auto a = static_cast<std::uint64_t>(x >> 64);
    std::uint64_t r = alternating_polynomial<0x1bb324c6d54b66f4, 0x45ab636564c8a2fe, 0x6f5ea02a0b9a59d0,
                                             0x5947955769bbf439, 0x1be44fd94f0476da>(a)
                      << 3;
    for (int i = 0; i < 3; ++i) {  // r in units of 2^-62
        const std::uint64_t near_one = multiply_high(multiply_high(r, r), a);
        const std::uint64_t factor = (std::uint64_t{3} << 60) - near_one;
        r = static_cast<std::uint64_t>((static_cast<uint128>(r) * factor) >> 61);
    }
    const uint128 product = (static_cast<uint128>(r) * a) >> 62;
    std::uint64_t root = (product >> 64) != 0 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(product);
    // The rest, and what follows from it, may be negative: modulo 2^128 and 2^64.
    uint128 rest = x - static_cast<uint128>(root) * root;
    const auto leading = static_cast<std::int64_t>(static_cast<std::uint64_t>(rest >> 48));
    const std::int64_t missing = leading * static_cast<std::int64_t>(r >> 32) >> 47;
    root += static_cast<std::uint64_t>(missing);
    rest = x - static_cast<uint128>(root) * root;
    if (highest_bit(rest)) return root - 1;
    if (rest > static_cast<uint128>(root) * 2) return root + 1;
    return root;
}

/// sqrt(x) of a number that is not negative.
MP_HOST_DEVICE constexpr approximation square_root(const approximation& x) {
    if (x.significand == 0) return {};
    const int shift = x.exponent % 2 != 0 ? 63 : 64;
    return {false, (x.exponent - shift) / 2, square_root(static_cast<uint128>(x.significand) << shift)};
}

/// 1 - z p for z in units of 2^-64 and p > 0 in units of 2^-63: less than 1 even where that cannot be seen.
MP_HOST_DEVICE constexpr approximation one_minus(std::uint64_t z, std::uint64_t p) {
    return approximate((std::uint64_t{1} << 63) - 1 - multiply_high(z, p), -63);
}
/// 1 + z p; never less than 1.
MP_HOST_DEVICE constexpr approximation one_plus(std::uint64_t z, std::uint64_t p) {
    return {false, -63, (std::uint64_t{1} << 63) + multiply_high(z, p)};
}

/// Whether an exact value is an integer, and its lowest bit. The significand is shifted right as far as it is
/// even, so that an exponent below zero means that there is a fraction.
MP_HOST_DEVICE constexpr exact_value without_trailing_zeros(exact_value x) {
    const int zeros = 63 - leading_zeros(x.significand & (~x.significand + 1));
    x.significand >>= zeros;
    x.exponent += zeros;
    return x;
}

MP_HOST_DEVICE constexpr exact_value inexact(const approximation& x) {
    return {x.negative, x.exponent, x.significand, true};
}
MP_HOST_DEVICE constexpr approximation with_sign(approximation x, bool negative) {
    x.negative = negative;
    return x;
}
/// Whether a finite value is one, apart from its sign.
MP_HOST_DEVICE constexpr bool is_one(const approximation& x) {
    return x.top() == 0 && x.significand == approximate_one().significand;
}

// How results and specials are packed.

/// Rounds what was evaluated, of which it is known that it is not exact.
template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> round_inexact(const approximation& x, Context&& context) {
    return round_and_pack<Format>({x.negative, x.exponent, x.significand, true}, context);
}

/// Rounds the integer or power of two significand * 2^exponent.
template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> round_exact(bool negative, std::uint64_t significand,
                                                        int exponent, Context&& context) {
    return round_and_pack<Format>({negative, exponent, significand}, context);
}

/// The exact infinity of a finite operand.
template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> pole(bool negative, Context&& context) {
    raise(context, status_flag::divide_by_zero);
    return pack_infinity<Format>(negative, projection_of(context));
}

/// Results of functions that are not rounded from evaluated bits. Signed ones have the sign of the operand, or the one
/// that a function_value has.
enum class special : unsigned char {
    number,  ///< none of these: the function is evaluated
    zero,
    signed_zero,
    one,
    minus_one,
    signed_one,
    signed_half,
    signed_half_pi,  ///< inexact
    two,
    infinity,
    signed_infinity,
    pole,  ///< an exact infinity of a finite operand
    minus_pole,
    signed_pole,
    two_sided_pole,  ///< a signed pole between infinities of both signs, which is invalid in formats of P3109
    invalid
};

/// The result of a function of a finite operand: inexact, exact, or a special one.
struct function_value {
    special kind = special::number;
    exact_value value{};  ///< of signed special results only the sign

    MP_HOST_DEVICE constexpr function_value(const exact_value& x) : value(x) {}
    MP_HOST_DEVICE constexpr function_value(const approximation& x) : value(inexact(x)) {}
    MP_HOST_DEVICE constexpr function_value(special result, bool negative = false)
        : kind(result), value{negative, 0, 0} {}
};

/// A function of one number: its results at zero, minus infinity and infinity, and Evaluate, which takes the exact
/// value of other operands or 64 bits of it, and zero where the first result is special::number. It returns an
/// approximation, which is known not to be exact, an exact_value or a function_value.
template <auto Evaluate, special Zero, special MinusInfinity, special Infinity>
struct math_function {
    static constexpr special at_zero = Zero;
    static constexpr special at_minus_infinity = MinusInfinity;
    static constexpr special at_infinity = Infinity;

    MP_HOST_DEVICE constexpr auto operator()(const exact_value& x) const {
        if constexpr (requires { Evaluate(x); }) {
            return Evaluate(x);
        } else {
            return Evaluate(approximate(x));
        }
    }
};

template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> pack_special(special result, bool negative, Context&& context) {
    switch (result) {
        case special::zero:
        case special::signed_zero:
            return pack_zero<Format>(negative && result == special::signed_zero, context);
        case special::one:
        case special::signed_one:
            return round_exact<Format>(negative && result == special::signed_one, 1, 0, context);
        case special::minus_one:
            return round_exact<Format>(true, 1, 0, context);
        case special::signed_half:
            return round_exact<Format>(negative, 1, -1, context);
        case special::signed_half_pi:
            return round_inexact<Format>(with_sign(approximate_half_pi(), negative), context);
        case special::two:
            return round_exact<Format>(false, 2, 0, context);
        case special::infinity:
        case special::signed_infinity:
            return pack_infinity<Format>(negative && result == special::signed_infinity, context);
        case special::two_sided_pole:
            if (layout_of<Format>::follows_p3109) return invalid_operation<Format>(context);
            return pole<Format>(negative, context);
        case special::pole:
        case special::signed_pole:
            return pole<Format>(negative && result == special::signed_pole, context);
        case special::minus_pole:
            return pole<Format>(true, context);
        case special::number:
        case special::invalid:
            break;
    }
    return invalid_operation<Format>(context);
}

/// The result of a math_function, rounded once.
template <class Format, class Function, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> function_bits(storage_of<Format> a, Function function,
                                                          Context&& context) {
    a = operand<Format>(a, context);
    const bool negative = is_negative<Format>(a);
    switch (categorize<Format>(a)) {
        case category::zero:
            if constexpr (Function::at_zero == special::signed_zero) return a;
            if constexpr (Function::at_zero == special::number) break;
            return pack_special<Format>(Function::at_zero, negative, context);
        case category::infinite:
            return pack_special<Format>(negative ? Function::at_minus_infinity : Function::at_infinity,
                                        negative, context);
        case category::nan:
            return convert_nan<Format, Format>(a, context);
        case category::finite:
            break;
    }
    const auto result = function(unpack<Format>(a));
    if constexpr (requires { result.kind; }) {
        if (result.kind != special::number)
            return pack_special<Format>(result.kind, result.value.negative, context);
        return round_and_pack<Format>(result.value, context);
    } else if constexpr (requires { result.sticky; }) {
        return round_and_pack<Format>(result, context);
    } else {
        return round_inexact<Format>(result, context);
    }
}

}}  // namespace mp::detail
