// SPDX-License-Identifier: MIT
/// \file
/// Exact values: any number of the library, of the language or of Boost.Multiprecision as a fraction of big
/// integers, and numbers of the library as Boost numbers; and round_to_format(), which rounds a Boost number of any
/// width to any format in any projection, exactly once. Nothing else here rounds.
#pragma once

#include <mp/error.hpp>
#include <mp/numbers/format/operations.hpp>

#include <algorithm>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace mp {

/// A binary number of 256 bits with an exponent range that no product of doubles leaves: wide enough to
/// compute references for all formats of this library. It has no subnormals and needs none.
using reference_real = boost::multiprecision::number<
    boost::multiprecision::cpp_bin_float<256, boost::multiprecision::digit_base_2, void, std::int32_t,
                                         -1000000, 1000000>,
    boost::multiprecision::et_off>;

/// A number of Boost.Multiprecision: integer, rational or real.
template <class Number>
concept boost_number = boost::multiprecision::is_number<std::remove_cv_t<Number>>::value;

/// What a reference may be: a Boost number, or a float, double, long double or number of this library whose
/// value is then taken as exact.
template <class Number>
concept reference_number =
    boost_number<Number> || number<Number> || std::same_as<std::remove_cv_t<Number>, long double>;

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

using big_integer =
    boost::multiprecision::number<boost::multiprecision::cpp_int_backend<>, boost::multiprecision::et_off>;

/// (-1)^negative * numerator / denominator * 2^exponent. The integers are positive when `kind` is finite, and
/// mean nothing otherwise.
struct exact_fraction {
    category kind = category::zero;
    bool negative = false;
    big_integer numerator = 0;
    big_integer denominator = 1;
    std::int64_t exponent = 0;
};

/// 2^exponent. Not a shifted 1, about which g++ 12 warns from inside Boost.
inline big_integer integer_power_of_two(std::uint64_t exponent) {
    return pow(big_integer(2), static_cast<unsigned>(exponent));
}

/// An integer t for which 2^(t - 1) < |x| < 2^(t + 1).
inline std::int64_t rough_log2(const exact_fraction& x) {
    return static_cast<std::int64_t>(msb(x.numerator)) - static_cast<std::int64_t>(msb(x.denominator)) +
           x.exponent;
}

inline exact_fraction make_fraction(bool negative, big_integer numerator, big_integer denominator,
                                    std::int64_t exponent) {
    const category kind = numerator == 0 ? category::zero : category::finite;
    return {kind, negative, std::move(numerator), std::move(denominator), exponent};
}

/// The value of a number of the library, a float or a double.
template <number Value>
exact_fraction to_fraction(Value x) {
    using format = format_of_t<Value>;
    const auto bits = bits_of(x);
    exact_fraction result{categorize<format>(bits), is_negative<format>(bits)};
    if (result.kind == category::finite) {
        const exact_value value = unpack<format>(bits);
        result.numerator = value.significand;
        result.exponent = value.exponent;
    }
    return result;
}

/// A binary floating-point number is decomposed 32 bits at a time, so its precision does not matter.
template <class Real>
exact_fraction decompose_binary(Real magnitude, bool negative) {
    using std::frexp;
    using std::ldexp;
    int exponent = 0;
    magnitude = frexp(magnitude, &exponent);
    big_integer digits = 0;
    std::int64_t scale = exponent;
    while (magnitude > 0) {
        magnitude = ldexp(magnitude, 32);
        const auto next = static_cast<std::uint32_t>(magnitude);
        magnitude -= next;
        digits = (digits << 32) + next;
        scale -= 32;
    }
    return make_fraction(negative, std::move(digits), 1, scale);
}

inline exact_fraction to_fraction(long double x) {
    if constexpr (std::numeric_limits<long double>::digits == std::numeric_limits<double>::digits) {
        return to_fraction(static_cast<double>(x));
    } else {
        // A long double is a double, an infinity and a NaN exactly when its nearest double is, except that
        // large finite ones become infinite; those are scaled down first.
        const double nearest = static_cast<double>(x);
        if (isnan(nearest)) return {category::nan, signbit(nearest)};
        const bool infinite = isinf(nearest) && isinf(static_cast<double>(std::ldexp(x, -16000)));
        if (infinite) return {category::infinite, signbit(nearest)};
        return decompose_binary(signbit(nearest) ? -x : x, signbit(nearest));
    }
}

/// The value of a Boost number. The sign of a zero is kept where the number has one.
template <boost_number Number>
exact_fraction to_fraction(const Number& x) {
    namespace bmp = boost::multiprecision;
    constexpr int kind = bmp::number_category<Number>::value;
    if constexpr (kind == bmp::number_kind_integer) {
        return make_fraction(x < 0, big_integer(abs(x)), 1, 0);
    } else if constexpr (kind == bmp::number_kind_rational) {
        return make_fraction(x < 0, big_integer(abs(numerator(x))), big_integer(denominator(x)), 0);
    } else {
        static_assert(kind == bmp::number_kind_floating_point, "mp: complex numbers are not supported");
        const int fp_class = fpclassify(x);
        if (fp_class == FP_NAN) return {category::nan, false};
        const bool negative = signbit(x) != 0;
        if (fp_class == FP_INFINITE) return {category::infinite, negative};
        if constexpr (std::numeric_limits<Number>::radix == 2) {
            return decompose_binary(Number(abs(x)), negative);
        } else {
            // Boost's conversion of decimal numbers to rational ones is exact.
            const bmp::cpp_rational value(abs(x));
            return make_fraction(negative, numerator(value), denominator(value), 0);
        }
    }
}

/// |x|, correct to about 60 bits; values beyond double's range become infinity or zero.
inline double magnitude_to_double(const exact_fraction& x) {
    if (x.kind == category::zero) return 0;
    if (x.kind == category::nan) return std::numeric_limits<double>::quiet_NaN();
    if (x.kind == category::infinite) return std::numeric_limits<double>::infinity();
    const std::int64_t shift =
        64 - (static_cast<std::int64_t>(msb(x.numerator)) - static_cast<std::int64_t>(msb(x.denominator)));
    const big_integer quotient = shift >= 0 ? (x.numerator << static_cast<unsigned>(shift)) / x.denominator
                                            : x.numerator / (x.denominator << static_cast<unsigned>(-shift));
    const std::int64_t exponent = x.exponent - shift;
    if (exponent > 2000) return std::numeric_limits<double>::infinity();
    if (exponent < -3000) return 0;
    return std::ldexp(static_cast<double>(quotient), static_cast<int>(exponent));
}

inline double to_double_signed(const exact_fraction& x) {
    const double magnitude = magnitude_to_double(x);
    return x.negative ? -magnitude : magnitude;
}

/// x - y for finite or zero x and y; exponents up to a few thousand apart.
inline exact_fraction difference(const exact_fraction& x, const exact_fraction& y) {
    const std::int64_t exponent = x.kind == category::zero   ? y.exponent
                                  : y.kind == category::zero ? x.exponent
                                                             : (std::min)(x.exponent, y.exponent);
    const auto scaled = [exponent](const exact_fraction& value, const big_integer& factor) -> big_integer {
        if (value.kind == category::zero) return 0;
        const big_integer magnitude = (value.numerator * factor)
                                      << static_cast<unsigned>(value.exponent - exponent);
        return value.negative ? -magnitude : magnitude;
    };
    const big_integer numerator = scaled(x, y.denominator) - scaled(y, x.denominator);
    return make_fraction(numerator < 0, abs(numerator), x.denominator * y.denominator, exponent);
}

/// A finite value to 63 bits or more, with what is left over as sticky: all that rounding to any format
/// needs.
inline exact_value to_exact_value(const exact_fraction& x) {
    const auto bits = [](const big_integer& n) { return static_cast<std::int64_t>(msb(n)) + 1; };
    // 64 more bits above than below the fraction bar give a quotient of 64 or 65 bits; one less, of 63 or 64.
    const std::int64_t shift = 63 - (bits(x.numerator) - bits(x.denominator));
    const big_integer above = shift > 0 ? x.numerator << static_cast<unsigned>(shift) : x.numerator;
    const big_integer below = shift < 0 ? x.denominator << static_cast<unsigned>(-shift) : x.denominator;
    big_integer quotient;
    big_integer remainder;
    divide_qr(above, below, quotient, remainder);
    // Far beyond every format, and far from the limits of int.
    const std::int64_t exponent = std::clamp<std::int64_t>(x.exponent - shift, -100000, 100000);
    return {x.negative, static_cast<int>(exponent), static_cast<std::uint64_t>(quotient), remainder != 0};
}

/// The number of a format that an exact value rounds to, as bits.
template <class Format>
storage_of<Format> round_fraction(const exact_fraction& x, const projection& p) {
    switch (x.kind) {
        case category::zero:
            return pack_zero<Format>(x.negative, p);
        case category::nan:
            return pack_nan<Format>(x.negative, p);
        case category::infinite:
            return pack_infinity<Format>(x.negative, p);
        case category::finite:
            break;
    }
    return round_and_pack<Format>(to_exact_value(x), p);
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The value of x as a Boost number, exactly.
///
/// `Number` is an integer, rational or binary floating-point type of Boost.Multiprecision. A floating-point
/// type with fewer significant bits than x does not compile. NaN and infinities need a type that has them; an
/// integer type needs an integer: argument_error otherwise.
///
///     mp::to_exact<boost::multiprecision::cpp_rational>(mp::half{0.1f})   // 819/8192
template <boost_number Number, number Value>
[[nodiscard]] Number to_exact(Value x) {
    namespace bmp = boost::multiprecision;
    constexpr int kind = bmp::number_category<Number>::value;
    constexpr bool is_real = kind == bmp::number_kind_floating_point;
    const detail::exact_fraction value = detail::to_fraction(x);
    if (value.kind == detail::category::nan || value.kind == detail::category::infinite) {
        if constexpr (is_real) {
            using limits = std::numeric_limits<Number>;
            if (value.kind == detail::category::nan) return limits::quiet_NaN();
            return value.negative ? Number(-limits::infinity()) : limits::infinity();
        } else {
            const double shown = static_cast<double>(x);
            detail::throw_argument("mp::to_exact", "x", shown,
                                   "must be finite for a type without infinity and NaN");
        }
    }
    if constexpr (is_real) {
        static_assert(std::numeric_limits<Number>::radix == 2, "mp::to_exact: decimal numbers would round");
        static_assert(
            !std::numeric_limits<Number>::is_specialized || std::numeric_limits<Number>::digits == 0 ||
                std::numeric_limits<Number>::digits >= layout_of<detail::format_of_t<Value>>::precision,
            "mp::to_exact: the Boost type has fewer significant bits than the number");
        const Number magnitude = ldexp(Number(value.numerator), static_cast<int>(value.exponent));
        return value.negative ? Number(-magnitude) : magnitude;
    } else {
        const auto shift = static_cast<unsigned>(value.exponent < 0 ? -value.exponent : value.exponent);
        Number magnitude;
        if (value.exponent >= 0) {
            magnitude = Number(detail::big_integer(value.numerator << shift));
        } else if constexpr (kind == bmp::number_kind_rational) {
            magnitude = Number(value.numerator) / Number(detail::integer_power_of_two(shift));
        } else {
            const detail::big_integer whole = value.numerator >> shift;
            if ((whole << shift) != value.numerator) {
                detail::throw_argument("mp::to_exact", "x", static_cast<double>(x),
                                       "must be an integer for an integer type");
            }
            magnitude = Number(whole);
        }
        return value.negative ? Number(-magnitude) : magnitude;
    }
}

/// Rounds x to the format of `To` once, as the projection says, with gradual underflow.
///
/// x is a Boost integer, rational or real number of any width and either radix (cpp_int, cpp_rational,
/// cpp_bin_float, cpp_dec_float, and the wrappers of GMP and MPFR), a long double, or a number of the
/// library. The result is exact for the value that x has: a cpp_bin_float of too few bits has already been
/// rounded once by itself, and no conversion can undo that. For sums and fused products of half 113 bits hold
/// every exact result, for bfloat16 and float take cpp_rational or 640 bits.
///
/// Infinities and NaN follow the projection as in mp::round_to; the payload of NaN is dropped. A zero keeps
/// its sign if it has one. Mind that the sign of an exact zero from x - x is a matter of the rounding mode
/// (minus for downward, plus otherwise), which an exact number cannot know.
///
///     cpp_rational third(1, 3);
///     mp::round_to_format<mp::half>(third, {.round = mp::rounding::upward});
template <number To, reference_number From>
[[nodiscard]] To round_to_format(const From& x, projection p = {}) {
    return detail::number_from_bits<To>(
        detail::round_fraction<detail::format_of_t<To>>(detail::to_fraction(x), p));
}

/// Overload for an unevaluated expression of Boost numbers, such as a * b + c; it is evaluated in its own
/// type.
template <number To, class Tag, class A1, class A2, class A3, class A4>
[[nodiscard]] To round_to_format(const boost::multiprecision::detail::expression<Tag, A1, A2, A3, A4>& x,
                                 projection p = {}) {
    using value = typename boost::multiprecision::detail::expression<Tag, A1, A2, A3, A4>::result_type;
    return round_to_format<To>(value(x), p);
}

}}  // namespace mp
