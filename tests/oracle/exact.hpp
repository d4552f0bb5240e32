// SPDX-License-Identifier: MIT
#pragma once

#include <compare>
#include <cstdint>
#include <utility>

#include "oracle/natural.hpp"

/// An oracle for rounded arithmetic that shares no code and no method with the library.
///
/// The library computes a significand with a sticky bit and rounds that. The oracle never computes a result
/// at all: the non-negative codes of a format are in the order of their values, so it searches, by halving,
/// for the two neighbouring codes that enclose the exact result, and asks on which side of their midpoint the
/// exact result lies. Every question has the form "is the exact result less than, equal to or greater than
/// this number m * 2^k?" and is answered in integers: a sum is compared as it is, a quotient n / d by
/// comparing n with y * d, a square root of x by comparing x with y * y, a decimal by multiplying out the
/// power of ten.
namespace oracle {

/// Which codes are NaN: all with full exponent and non-zero fraction, only the one with all bits set, the one
/// that would be minus zero, or none.
enum class nan_codes { ieee, all_ones, negative_zero, none };

/// A format of sign, exponent and fraction, described by plain numbers.
struct format {
    int exponent_bits;
    int fraction_bits;
    int bias;
    bool has_infinity;
    nan_codes nans;
    bool is_signed = true;
    /// Code 0 is zero, and subnormal numbers follow; otherwise all codes are normal numbers.
    bool has_zero = true;
    /// Overflow and special cases are those of IEEE P3109.
    bool is_p3109 = false;

    friend bool operator==(const format&, const format&) = default;
};

inline constexpr format binary16{5, 10, 15, true, nan_codes::ieee};
inline constexpr format bfloat16{8, 7, 127, true, nan_codes::ieee};
inline constexpr format tfloat32{8, 10, 127, true, nan_codes::ieee};
inline constexpr format float8_e4m3fn{4, 3, 7, false, nan_codes::all_ones};
inline constexpr format float8_e5m2{5, 2, 15, true, nan_codes::ieee};
inline constexpr format float8_e4m3{4, 3, 7, true, nan_codes::ieee};
inline constexpr format float8_e3m4{3, 4, 3, true, nan_codes::ieee};
inline constexpr format float8_e4m3fnuz{4, 3, 8, false, nan_codes::negative_zero};
inline constexpr format float8_e5m2fnuz{5, 2, 16, false, nan_codes::negative_zero};
inline constexpr format float8_e4m3b11fnuz{4, 3, 11, false, nan_codes::negative_zero};
inline constexpr format float8_e8m0fnu{8, 0, 127, false, nan_codes::all_ones, false, false};
inline constexpr format float6_e2m3fn{2, 3, 1, false, nan_codes::none};
inline constexpr format float6_e3m2fn{3, 2, 3, false, nan_codes::none};
inline constexpr format float4_e2m1fn{2, 1, 1, false, nan_codes::none};
inline constexpr format binary32{8, 23, 127, true, nan_codes::ieee};
inline constexpr format binary64{11, 52, 1023, true, nan_codes::ieee};

/// The formats of IEEE P3109, section 3.1 of the interim report.
constexpr format p3109(int bits, int precision, bool is_signed, bool extended) {
    const int exponent_bits = bits - precision + (is_signed ? 0 : 1);
    const int bias = is_signed ? 1 << (bits - precision - 1) : 1 << (bits - precision);
    return {exponent_bits,
            precision - 1,
            bias,
            extended,
            is_signed ? nan_codes::negative_zero : nan_codes::all_ones,
            is_signed,
            true,
            true};
}

enum class mode { nearest_even, nearest_away, toward_zero, upward, downward, to_odd };
inline constexpr mode modes[] = {mode::nearest_even, mode::nearest_away, mode::toward_zero,
                                 mode::upward,       mode::downward,     mode::to_odd};

enum class saturate { none, finite, propagate };
inline constexpr saturate saturations[] = {saturate::none, saturate::finite, saturate::propagate};

/// The number of magnitude codes, signs left aside.
inline std::uint64_t magnitude_count(const format& f) {
    return std::uint64_t{1} << (f.exponent_bits + f.fraction_bits);
}

/// The number of codes.
inline std::uint64_t code_count(const format& f) {
    return f.is_signed ? 2 * magnitude_count(f) : magnitude_count(f);
}

/// The bit of the sign, zero where there is none.
inline std::uint64_t sign_bit(const format& f) {
    return f.is_signed ? magnitude_count(f) : 0;
}

/// The code of the largest finite number: below the codes of infinity and NaN.
inline std::uint64_t max_finite_code(const format& f) {
    if (f.nans == nan_codes::ieee) return magnitude_count(f) - (std::uint64_t{1} << f.fraction_bits) - 1;
    return magnitude_count(f) - 1 - (f.nans == nan_codes::all_ones ? 1 : 0) - (f.has_infinity ? 1 : 0);
}

/// The code of +infinity, for formats that have one.
inline std::uint64_t infinity_code(const format& f) {
    return max_finite_code(f) + 1;
}

/// The code of the smallest normal number.
inline std::uint64_t min_normal_code(const format& f) {
    return f.has_zero ? std::uint64_t{1} << f.fraction_bits : 0;
}

/// The NaN that the oracle itself writes; which NaN an operation returns is not prescribed. Without NaN it is
/// the largest finite number.
inline std::uint64_t some_nan_code(const format& f) {
    if (f.nans == nan_codes::negative_zero) return sign_bit(f);
    return f.nans == nan_codes::none ? max_finite_code(f) : magnitude_count(f) - 1;
}

inline bool is_nan(const format& f, std::uint64_t code) {
    if (f.nans == nan_codes::negative_zero) return code == sign_bit(f);
    const std::uint64_t magnitude = code & (magnitude_count(f) - 1);
    return magnitude > max_finite_code(f) && !(f.has_infinity && magnitude == infinity_code(f));
}

inline bool is_negative(const format& f, std::uint64_t code) {
    return (code & sign_bit(f)) != 0;
}

inline std::uint64_t magnitude_code(const format& f, std::uint64_t code) {
    return code & (magnitude_count(f) - 1);
}

inline bool is_infinite(const format& f, std::uint64_t code) {
    return f.has_infinity && magnitude_code(f, code) == infinity_code(f);
}

inline bool is_zero(const format& f, std::uint64_t code) {
    return f.has_zero && magnitude_code(f, code) == 0 && !is_nan(f, code);
}

inline bool is_finite(const format& f, std::uint64_t code) {
    return magnitude_code(f, code) <= max_finite_code(f) && !is_nan(f, code);
}

inline bool is_subnormal(const format& f, std::uint64_t code) {
    return !is_zero(f, code) && magnitude_code(f, code) < min_normal_code(f) && !is_nan(f, code);
}

/// Whether a code is that of a NaN without the quiet bit.
inline bool is_signaling(const format& f, std::uint64_t code) {
    return f.nans == nan_codes::ieee && f.fraction_bits > 0 && is_nan(f, code) &&
           (code >> (f.fraction_bits - 1) & 1) == 0;
}

/// The code of sign and magnitude, where both are to be had together.
inline std::uint64_t signed_code(const format& f, bool negative, std::uint64_t magnitude) {
    if (f.nans == nan_codes::negative_zero && magnitude == 0) return 0;
    return magnitude | (negative ? sign_bit(f) : 0);
}

/// A non-negative number significand * 2^exponent.
struct dyadic {
    natural significand;
    int exponent = 0;
};

/// Compares two dyadic numbers exactly; sizes are compared first, so far-apart exponents cost nothing.
inline std::strong_ordering compare(const dyadic& left, const dyadic& right) {
    if (left.significand.is_zero() || right.significand.is_zero())
        return left.significand <=> right.significand;
    const int left_top = left.significand.bit_length() + left.exponent;
    const int right_top = right.significand.bit_length() + right.exponent;
    if (left_top != right_top) return left_top <=> right_top;
    if (left.exponent >= right.exponent) {
        return (left.significand << (left.exponent - right.exponent)) <=> right.significand;
    }
    return left.significand <=> (right.significand << (right.exponent - left.exponent));
}

inline dyadic product(const dyadic& left, const dyadic& right) {
    return {left.significand * right.significand, left.exponent + right.exponent};
}

/// The value of a magnitude code, from the definition of the format. The code after the largest finite one is
/// given the value that it would have in a format without upper limit: that is where overflow begins.
inline dyadic value_of_magnitude(const format& f, std::uint64_t magnitude) {
    const std::uint64_t fraction = magnitude & ((std::uint64_t{1} << f.fraction_bits) - 1);
    const int exponent_field = static_cast<int>(magnitude >> f.fraction_bits);
    if (exponent_field == 0 && f.has_zero) return {fraction, 1 - f.bias - f.fraction_bits};
    return {fraction + (std::uint64_t{1} << f.fraction_bits), exponent_field - f.bias - f.fraction_bits};
}

/// The middle between a magnitude code and the next one. Neighbours are m * 2^k and (m + 1) * 2^k.
inline dyadic middle_above(const format& f, std::uint64_t magnitude) {
    const dyadic value = value_of_magnitude(f, magnitude);
    return {value.significand + value.significand + natural(1), value.exponent - 1};
}

/// Where a positive real lies among the magnitudes of a format.
enum class place { at_lower, below_middle, at_middle, above_middle, beyond_range };

/// An exact result, before rounding: a special, a zero, or a position between two neighbours. With it, the
/// rounded result in every mode is one table look-up away; `finish` does that.
struct exact_result {
    enum class kind { nan, infinite, zero, between } what = kind::nan;
    bool negative = false;
    /// For zeros: the zero is a sum of terms of opposite sign, so its sign depends on the rounding mode.
    bool cancelled = false;
    /// The largest finite magnitude code whose value does not exceed the exact magnitude; the lowest code for
    /// what is below all numbers of a format without zero.
    std::uint64_t lower = 0;
    place where = place::at_lower;
    /// Where the exact magnitude is with respect to three quarters of the way from `lower` to the next code:
    /// negative, zero or positive for before, at and behind.
    int three_quarters = -1;
    /// The exact magnitude is below the smallest number, 2^k, of a format without zero. `where` is its place
    /// between 2^(k - 1) and 2^k, and at_lower for all that is below these.
    bool below_all = false;
};

inline exact_result exact_nan() {
    return {};
}

inline exact_result exact_infinity(bool negative) {
    return {exact_result::kind::infinite, negative, false, 0, place::at_lower};
}

inline exact_result exact_zero(bool negative, bool cancelled) {
    return {exact_result::kind::zero, negative, cancelled, 0, place::at_lower};
}

/// Finds a positive real among the codes of a format. `versus(y)` compares the real with a dyadic number.
template <class Versus>
exact_result locate(const format& f, bool negative, Versus versus) {
    exact_result result{exact_result::kind::between, negative, false, 0, place::at_lower};
    std::uint64_t low = 0;
    std::uint64_t high = max_finite_code(f) + 1;
    if (versus(value_of_magnitude(f, high)) >= 0) {
        result.lower = max_finite_code(f);
        result.where = place::beyond_range;
        return result;
    }
    // value(low) <= real < value(high)
    while (high - low > 1) {
        const std::uint64_t between = low + (high - low) / 2;
        if (versus(value_of_magnitude(f, between)) >= 0) {
            low = between;
        } else {
            high = between;
        }
    }
    result.lower = low;
    if (versus(value_of_magnitude(f, low)) == 0) {
        result.where = place::at_lower;
        return result;
    }
    if (!f.has_zero && low == 0 && versus(value_of_magnitude(f, 0)) < 0) {
        const dyadic smallest = value_of_magnitude(f, 0);
        const int half = smallest.exponent - 1;
        const std::strong_ordering side =
            versus({smallest.significand + smallest.significand + smallest.significand, half - 1});
        result.below_all = true;
        if (versus({smallest.significand, half}) <= 0) return result;
        result.where = side < 0 ? place::below_middle : side == 0 ? place::at_middle : place::above_middle;
        return result;
    }
    const dyadic value = value_of_magnitude(f, low);
    const natural twice = value.significand + value.significand;
    const std::strong_ordering quarter = versus({twice + twice + natural(3), value.exponent - 2});
    result.three_quarters = quarter < 0 ? -1 : quarter > 0 ? 1 : 0;
    const std::strong_ordering side = versus(middle_above(f, low));
    result.where = side < 0 ? place::below_middle : side == 0 ? place::at_middle : place::above_middle;
    return result;
}

/// A rounded result: a NaN, whose bits are not prescribed, or a code.
struct outcome {
    bool nan = false;
    std::uint64_t code = 0;
};

inline bool matches(const format& f, const outcome& expected, std::uint64_t code) {
    return expected.nan ? is_nan(f, code) : code == expected.code;
}

/// What an infinity of the given sign, or an overflow, comes to; a negative value of a format without signs
/// is one too.
inline outcome beyond(const format& f, bool negative, bool infinite, saturate saturation,
                      mode rounding = mode::nearest_even) {
    if (f.is_p3109) {
        const outcome limit{false,
                            negative && !f.is_signed ? 0 : signed_code(f, negative, max_finite_code(f))};
        const bool has_infinity = f.has_infinity && (f.is_signed || !negative);
        if (saturation == saturate::finite || (saturation == saturate::propagate && !infinite)) return limit;
        if (!infinite &&
            (rounding == mode::toward_zero || rounding == (negative ? mode::upward : mode::downward)))
            return limit;
        if (has_infinity) return {false, signed_code(f, negative, infinity_code(f))};
        if (negative && !f.is_signed && saturation == saturate::none) return {true, some_nan_code(f)};
        return limit;
    }
    const bool saturates = saturation == saturate::finite || (saturation == saturate::propagate && !infinite);
    if (negative && !f.is_signed) {
        if (saturates || f.nans == nan_codes::none) return {false, 0};
        return {true, some_nan_code(f)};
    }
    if (saturates) return {false, signed_code(f, negative, max_finite_code(f))};
    if (f.has_infinity) return {false, signed_code(f, negative, infinity_code(f))};
    if (f.nans == nan_codes::none) return {false, signed_code(f, negative, max_finite_code(f))};
    return {true, some_nan_code(f)};
}

/// Rounds an exact result of the kind zero.
inline outcome finish_zero(const format& f, const exact_result& exact, mode rounding, saturate saturation) {
    if (!f.has_zero) {
        if (saturation == saturate::none && f.nans != nan_codes::none) return {true, some_nan_code(f)};
        return {false, 0};
    }
    const bool negative = exact.cancelled ? rounding == mode::downward : exact.negative;
    return {false, signed_code(f, negative, 0)};
}

/// Whether rounding takes the larger magnitude of the two that enclose an exact result of the kind between.
/// Even and odd are those of codes.
inline bool takes_upper(const exact_result& exact, mode rounding) {
    if (exact.below_all) return false;
    const bool inexact = exact.where != place::at_lower;
    const bool lower_is_odd = exact.lower % 2 == 1;
    const bool past_middle = exact.where == place::above_middle || exact.where == place::beyond_range;
    switch (rounding) {
        case mode::nearest_even:
            return past_middle || (exact.where == place::at_middle && lower_is_odd);
        case mode::nearest_away:
            return past_middle || exact.where == place::at_middle;
        case mode::toward_zero:
            return false;
        case mode::upward:
            return inexact && !exact.negative;
        case mode::downward:
            return inexact && exact.negative;
        case mode::to_odd:
            return inexact && !lower_is_odd;
    }
    return false;
}

/// Rounds an exact result.
inline outcome finish(const format& f, const exact_result& exact, mode rounding, saturate saturation) {
    if (exact.what == exact_result::kind::nan) return {f.nans != nan_codes::none, some_nan_code(f)};
    if (exact.what == exact_result::kind::infinite) return beyond(f, exact.negative, true, saturation);
    if (exact.what == exact_result::kind::zero) return finish_zero(f, exact, rounding, saturation);
    const bool take_upper = takes_upper(exact, rounding);
    const std::uint64_t rounded = exact.lower + (take_upper ? 1 : 0);
    if (exact.negative && !f.is_signed && (rounded != 0 || !f.has_zero)) {
        return beyond(f, true, false, saturation, rounding);
    }
    const bool overflows = take_upper && exact.lower == max_finite_code(f);
    if (!overflows) return {false, signed_code(f, exact.negative, rounded)};
    // Rounding to odd stays in range whatever the parity of the largest code.
    if (rounding == mode::to_odd && !f.is_p3109)
        return {false, signed_code(f, exact.negative, max_finite_code(f))};
    return beyond(f, exact.negative, false, saturation, rounding);
}

/// Rounds sign * significand * 2^exponent. A zero keeps the given sign.
inline exact_result exact_from_dyadic(const format& f, bool negative, const dyadic& magnitude) {
    if (magnitude.significand.is_zero()) return exact_zero(negative, false);
    return locate(f, negative, [&](const dyadic& y) { return compare(magnitude, y); });
}

/// Rounds sign * digits * 10^exponent. A zero keeps the given sign.
inline exact_result exact_from_decimal(const format& f, bool negative, const natural& digits, int exponent) {
    if (digits.is_zero()) return exact_zero(negative, false);
    const natural power = natural::power(10, exponent < 0 ? -exponent : exponent);
    if (exponent >= 0) return exact_from_dyadic(f, negative, {digits * power, 0});
    return locate(f, negative,
                  [&](const dyadic& y) { return compare({digits, 0}, {y.significand * power, y.exponent}); });
}

/// The sum of two signed dyadic numbers that are not both zero, brought to a common exponent.
inline std::pair<bool, dyadic> signed_sum(bool left_negative, const dyadic& left, bool right_negative,
                                          const dyadic& right) {
    const int exponent = left.exponent < right.exponent ? left.exponent : right.exponent;
    const natural a = left.significand << (left.exponent - exponent);
    const natural b = right.significand << (right.exponent - exponent);
    if (left_negative == right_negative) return {left_negative, {a + b, exponent}};
    if (a >= b) return {left_negative, {a - b, exponent}};
    return {right_negative, {b - a, exponent}};
}

inline exact_result add_terms(const format& f, bool left_negative, const dyadic& left, bool right_negative,
                              const dyadic& right) {
    if (left.significand.is_zero() && right.significand.is_zero()) {
        return exact_zero(left_negative, left_negative != right_negative);
    }
    const auto [negative, sum] = signed_sum(left_negative, left, right_negative, right);
    if (sum.significand.is_zero()) return exact_zero(false, true);
    return exact_from_dyadic(f, negative, sum);
}

inline exact_result add(const format& f, std::uint64_t a, std::uint64_t b, bool negate_b = false) {
    const bool a_negative = is_negative(f, a);
    const bool b_negative = is_negative(f, b) != negate_b;
    if (is_nan(f, a) || is_nan(f, b)) return exact_nan();
    if (is_infinite(f, a) && is_infinite(f, b))
        return a_negative == b_negative ? exact_infinity(a_negative) : exact_nan();
    if (is_infinite(f, a)) return exact_infinity(a_negative);
    if (is_infinite(f, b)) return exact_infinity(b_negative);
    return add_terms(f, a_negative, value_of_magnitude(f, magnitude_code(f, a)), b_negative,
                     value_of_magnitude(f, magnitude_code(f, b)));
}

/// a - b is a + (-b).
inline exact_result subtract(const format& f, std::uint64_t a, std::uint64_t b) {
    return add(f, a, b, true);
}

inline exact_result multiply(const format& f, std::uint64_t a, std::uint64_t b) {
    const bool negative = is_negative(f, a) != is_negative(f, b);
    if (is_nan(f, a) || is_nan(f, b)) return exact_nan();
    if (is_infinite(f, a) || is_infinite(f, b)) {
        return is_zero(f, a) || is_zero(f, b) ? exact_nan() : exact_infinity(negative);
    }
    return exact_from_dyadic(
        f, negative,
        product(value_of_magnitude(f, magnitude_code(f, a)), value_of_magnitude(f, magnitude_code(f, b))));
}

inline exact_result divide(const format& f, std::uint64_t a, std::uint64_t b) {
    const bool negative = is_negative(f, a) != is_negative(f, b);
    if (is_nan(f, a) || is_nan(f, b)) return exact_nan();
    if (f.is_p3109 && is_zero(f, b)) return exact_nan();
    if (is_infinite(f, a)) return is_infinite(f, b) ? exact_nan() : exact_infinity(negative);
    if (is_infinite(f, b)) return exact_zero(negative, false);
    if (is_zero(f, b)) return is_zero(f, a) ? exact_nan() : exact_infinity(negative);
    if (is_zero(f, a)) return exact_zero(negative, false);
    const dyadic numerator = value_of_magnitude(f, magnitude_code(f, a));
    const dyadic denominator = value_of_magnitude(f, magnitude_code(f, b));
    return locate(f, negative, [&](const dyadic& y) { return compare(numerator, product(y, denominator)); });
}

inline exact_result fma(const format& f, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    const bool product_negative = is_negative(f, a) != is_negative(f, b);
    const bool c_negative = is_negative(f, c);
    if (is_nan(f, a) || is_nan(f, b) || is_nan(f, c)) return exact_nan();
    if (is_infinite(f, a) || is_infinite(f, b)) {
        if (is_zero(f, a) || is_zero(f, b)) return exact_nan();
        if (is_infinite(f, c) && c_negative != product_negative) return exact_nan();
        return exact_infinity(product_negative);
    }
    if (is_infinite(f, c)) return exact_infinity(c_negative);
    return add_terms(
        f, product_negative,
        product(value_of_magnitude(f, magnitude_code(f, a)), value_of_magnitude(f, magnitude_code(f, b))),
        c_negative, value_of_magnitude(f, magnitude_code(f, c)));
}

inline exact_result sqrt(const format& f, std::uint64_t a) {
    const bool negative = is_negative(f, a);
    if (is_nan(f, a)) return exact_nan();
    if (is_zero(f, a)) return exact_zero(negative, false);
    if (negative) return exact_nan();
    if (is_infinite(f, a)) return exact_infinity(false);
    const dyadic square = value_of_magnitude(f, magnitude_code(f, a));
    return locate(f, false, [&](const dyadic& y) { return compare(square, product(y, y)); });
}

/// The exact value of a code of one format, located in another.
inline exact_result convert(const format& from, std::uint64_t code, const format& to) {
    const bool negative = is_negative(from, code);
    if (is_nan(from, code)) return exact_nan();
    if (is_infinite(from, code)) return exact_infinity(negative);
    return exact_from_dyadic(to, negative, value_of_magnitude(from, magnitude_code(from, code)));
}

/// The NaN that a conversion between two formats with IEEE NaNs returns: the sign and the leading fraction
/// bits stay, and the quiet bit is set.
inline std::uint64_t converted_nan(const format& from, std::uint64_t code, const format& to) {
    const std::uint64_t sign =
        is_negative(from, code) && from.nans != nan_codes::negative_zero ? sign_bit(to) : 0;
    if (to.nans == nan_codes::negative_zero || to.nans == nan_codes::none) return some_nan_code(to);
    if (to.nans == nan_codes::all_ones) return sign | some_nan_code(to);
    if (from.nans != nan_codes::ieee)
        return sign | infinity_code(to) | std::uint64_t{1} << (to.fraction_bits - 1);
    std::uint64_t fraction = code & ((std::uint64_t{1} << from.fraction_bits) - 1);
    if (to.fraction_bits >= from.fraction_bits) {
        fraction <<= to.fraction_bits - from.fraction_bits;
    } else {
        fraction >>= from.fraction_bits - to.fraction_bits;
    }
    return sign | infinity_code(to) | fraction | std::uint64_t{1} << (to.fraction_bits - 1);
}

}  // namespace oracle
