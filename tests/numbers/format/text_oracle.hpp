// SPDX-License-Identifier: MIT
// What texts of numbers should be, by rational numbers of Boost.Multiprecision. Nothing here is the library's
// but the constants of a descriptor.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/p3109.hpp>
#include <mp/tfloat32.hpp>

#include <boost/multiprecision/cpp_int.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace text_oracle {

using integer = boost::multiprecision::cpp_int;

inline integer power(unsigned base, int exponent) {
    return boost::multiprecision::pow(integer(base), static_cast<unsigned>(exponent));
}

/// numerator / denominator, not reduced: Boost's rationals would spend their time on that.
struct fraction {
    integer numerator;
    integer denominator = 1;
};
inline int compare(const fraction& a, const fraction& b) {
    return integer(a.numerator * b.denominator).compare(integer(b.numerator * a.denominator));
}

template <class Format>
constexpr bool has_zero_code() {
    if constexpr (requires { Format::has_zero; }) return Format::has_zero;
    return true;
}

/// The magnitude codes of finite numbers are 0 to this.
template <class Format>
std::uint64_t max_code() {
    const std::uint64_t codes = std::uint64_t{1} << (Format::exponent_bits + Format::fraction_bits);
    std::uint64_t specials = Format::has_infinity ? 1 : 0;
    if (Format::nans == mp::nan_encoding::all_ones) specials += 1;
    if (Format::nans == mp::nan_encoding::ieee) specials = std::uint64_t{1} << Format::fraction_bits;
    return codes - specials - 1;
}

/// A magnitude code as m * 2^exponent; codes beyond the largest finite one as if the format went on.
struct dyadic {
    integer significand;
    int exponent;
};
template <class Format>
dyadic magnitude(std::uint64_t code) {
    const std::uint64_t one = std::uint64_t{1} << Format::fraction_bits;
    const int field = static_cast<int>(code >> Format::fraction_bits);
    const std::uint64_t rest = code & (one - 1);
    if (!has_zero_code<Format>()) return {one + rest, field - Format::bias - Format::fraction_bits};
    if (field == 0) return {rest, 1 - Format::bias - Format::fraction_bits};
    return {one + rest, field - Format::bias - Format::fraction_bits};
}
/// Halfway between a magnitude code and the next.
template <class Format>
dyadic middle(std::uint64_t code) {
    const dyadic below = magnitude<Format>(code);
    const dyadic above = magnitude<Format>(code + 1);
    const int exponent = below.exponent < above.exponent ? below.exponent : above.exponent;
    const integer sum = (below.significand << (below.exponent - exponent)) +
                        (above.significand << (above.exponent - exponent));
    return {sum, exponent - 1};
}
inline fraction to_fraction(const dyadic& x) {
    if (x.exponent >= 0) return {x.significand << x.exponent, 1};
    return {x.significand, integer(1) << -x.exponent};
}

/// digits * 10^exponent
struct decimal {
    integer digits;
    int exponent;
};
/// m / 2^k = m * 5^k / 10^k
inline decimal to_decimal(const dyadic& x) {
    if (x.exponent >= 0) return {x.significand << x.exponent, 0};
    return {x.significand * power(5, -x.exponent), x.exponent};
}
inline std::string spelled(const decimal& x) {
    return x.digits.str() + "e" + std::to_string(x.exponent);
}

/// The shortest decimal nearer to a magnitude code than to others, and nearest to it among those; the even
/// one if two are equally near.
template <class Format>
decimal shortest(std::uint64_t code) {
    const bool lowest = !has_zero_code<Format>() && code == 0;
    const dyadic x = magnitude<Format>(code);
    const fraction value = to_fraction(x);
    // Below the smallest number of a format without zero one more is made up.
    const fraction low = to_fraction(lowest ? dyadic{3, x.exponent - 2} : middle<Format>(code - 1));
    const fraction high = to_fraction(middle<Format>(code));
    const bool even = code % 2 == 0;
    for (int count = 1;; ++count) {
        // The exponent for which value / 10^exponent has `count` digits before the point.
        int exponent = static_cast<int>(value.numerator.str().size()) -
                       static_cast<int>(value.denominator.str().size()) - count - 1;
        fraction scaled;
        for (;; ++exponent) {
            scaled = exponent >= 0 ? fraction{value.numerator, value.denominator * power(10, exponent)}
                                   : fraction{value.numerator * power(10, -exponent), value.denominator};
            if (compare(scaled, {power(10, count)}) < 0) break;
        }
        const integer below = scaled.numerator / scaled.denominator;
        std::vector<decimal> found;
        for (const integer& digits : {below, integer(below + 1)}) {
            const fraction candidate = exponent >= 0 ? fraction{digits * power(10, exponent)}
                                                     : fraction{digits, power(10, -exponent)};
            const int to_low = compare(candidate, low);
            const int to_high = compare(candidate, high);
            if ((to_low > 0 || (even && to_low == 0)) && (to_high < 0 || (even && to_high == 0))) {
                found.push_back({digits, exponent});
            }
        }
        if (found.size() == 2) {
            const int nearer = compare({2 * scaled.numerator, scaled.denominator}, {2 * below + 1});
            const bool take_below = nearer < 0 || (nearer == 0 && below % 2 == 0);
            return found[take_below ? 0 : 1];
        }
        if (!found.empty()) return found.front();
    }
}

/// The digits of a decimal without zeros at the end, and the exponent of the first of them.
struct scientific_digits {
    std::string digits;
    int power;
};
inline scientific_digits digits_of(const decimal& x) {
    std::string digits = x.digits.str();
    const int power = x.exponent + static_cast<int>(digits.size()) - 1;
    while (digits.size() > 1 && digits.back() == '0') digits.pop_back();
    return {digits, power};
}

/// Those in scientific notation.
inline std::string scientific_text(const decimal& x) {
    const auto [digits, power] = digits_of(x);
    std::string text = digits.substr(0, 1);
    if (digits.size() > 1) text.append(".").append(digits, 1);
    const std::string power_digits = std::to_string(power < 0 ? -power : power);
    return text + (power < 0 ? "e-" : "e+") + (power_digits.size() < 2 ? "0" : "") + power_digits;
}

/// The text that std::to_chars prescribes for the shortest digits: fixed or scientific, whichever is shorter.
template <class Format>
std::string text_of(std::uint64_t code, const decimal& x) {
    const auto [digits, power] = digits_of(x);
    const std::string scientific = scientific_text(x);
    std::string fixed;
    const auto point = static_cast<std::size_t>(power < 0 ? 0 : power + 1);
    if (power < 0) {
        fixed.append("0.").append(static_cast<std::size_t>(-power - 1), '0').append(digits);
    } else if (digits.size() <= point) {
        fixed = digits + std::string(point - digits.size(), '0');
        // A whole number is written exactly where it has room for all its digits.
        const fraction value = to_fraction(magnitude<Format>(code));
        if (digits.size() < point && fixed.size() <= scientific.size()) {
            fixed = integer(value.numerator / value.denominator).str();
        }
    } else {
        fixed.append(digits, 0, point).append(".").append(digits, point);
    }
    return fixed.size() <= scientific.size() ? fixed : scientific;
}

/// Where a magnitude lies between a code and the next.
enum class place { at_lower, below_middle, at_middle, above_middle };

/// The magnitude code that it is rounded to; one more than the largest finite one is overflow, if `away` is
/// said of it.
inline std::uint64_t rounded(std::uint64_t lower, place where, bool negative, mp::rounding mode) {
    if (where == place::at_lower) return lower;
    const bool odd = lower % 2 != 0;
    switch (mode) {
        case mp::rounding::nearest_even:
            return lower + (where == place::above_middle || (where == place::at_middle && odd) ? 1 : 0);
        case mp::rounding::nearest_away:
            return lower + (where != place::below_middle ? 1 : 0);
        case mp::rounding::upward:
            return lower + (negative ? 0 : 1);
        case mp::rounding::downward:
            return lower + (negative ? 1 : 0);
        case mp::rounding::to_odd:
            return lower + (odd ? 0 : 1);
        default:
            return lower;
    }
}

inline constexpr mp::rounding modes[] = {mp::rounding::nearest_even, mp::rounding::nearest_away,
                                         mp::rounding::toward_zero,  mp::rounding::upward,
                                         mp::rounding::downward,     mp::rounding::to_odd};

/// A format of the widest kind that the library takes: 32 bits.
template <int ExponentBits, int FractionBits, int Bias, bool HasInfinity = true>
struct own_format {
    static constexpr const char* name = "own";
    static constexpr int exponent_bits = ExponentBits;
    static constexpr int fraction_bits = FractionBits;
    static constexpr int bias = Bias;
    static constexpr bool is_signed = true;
    static constexpr bool has_infinity = HasInfinity;
    static constexpr mp::nan_encoding nans =
        HasInfinity ? mp::nan_encoding::ieee : mp::nan_encoding::all_ones;
};
using widest = mp::basic_float<own_format<11, 20, 1023>>;
using most_precise = mp::basic_float<own_format<1, 30, 0, false>>;
using precise = mp::basic_float<own_format<3, 28, 3>>;
using far_below = mp::basic_float<own_format<10, 21, 1040>>;
using far_above = mp::basic_float<own_format<8, 23, -900>>;

template <int K, int P, mp::signedness Signs = mp::signedness::is_signed,
          mp::domain Domain = mp::domain::extended>
using p3109 = mp::p3109<K, P, Signs, Domain>;
using p3109_8p1ue = p3109<8, 1, mp::signedness::is_unsigned>;
using p3109_6p3uf = p3109<6, 3, mp::signedness::is_unsigned, mp::domain::finite>;
using p3109_8p3sf = p3109<8, 3, mp::signedness::is_signed, mp::domain::finite>;

}  // namespace text_oracle
