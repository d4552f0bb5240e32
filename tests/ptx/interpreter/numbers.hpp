// SPDX-License-Identifier: MIT
// Numbers as instructions of PTX see them: formats as constants, exact values, and one function that rounds. Written
// from the text of the instruction set, and from nothing in include/mp.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace ptx {

enum class round_mode { nearest_even, toward_zero, downward, upward, nearest_away };

/// A format of floating-point numbers of at most 64 bits.
struct float_format {
    int exponent_bits;
    int fraction_bits;
    bool has_infinity;
    /// NaN is every code behind infinity (IEEE), or the last code alone, or there is none.
    enum { ieee, last_code, none } nan;

    [[nodiscard]] constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
    [[nodiscard]] constexpr int width() const { return 1 + exponent_bits + fraction_bits; }
    [[nodiscard]] constexpr std::uint64_t sign_bit() const { return std::uint64_t{1} << (width() - 1); }
    [[nodiscard]] constexpr std::uint64_t exponent_mask() const {
        return ((std::uint64_t{1} << exponent_bits) - 1) << fraction_bits;
    }
    [[nodiscard]] constexpr std::uint64_t largest() const {
        if (nan == ieee) return exponent_mask() - 1;
        return nan == last_code ? sign_bit() - 2 : sign_bit() - 1;
    }
    [[nodiscard]] constexpr std::uint64_t canonical_nan() const {
        return nan == ieee && width() == 64 ? 0xFFF8'0000'0000'0000U : sign_bit() - 1;
    }
};

inline constexpr float_format binary64{11, 52, true, float_format::ieee};
inline constexpr float_format binary32{8, 23, true, float_format::ieee};
inline constexpr float_format binary16{5, 10, true, float_format::ieee};
inline constexpr float_format bfloat16{8, 7, true, float_format::ieee};
inline constexpr float_format tf32{8, 10, true, float_format::ieee};
inline constexpr float_format e4m3{4, 3, false, float_format::last_code};
inline constexpr float_format e5m2{5, 2, true, float_format::ieee};
inline constexpr float_format e2m3{2, 3, false, float_format::none};
inline constexpr float_format e3m2{3, 2, false, float_format::none};
inline constexpr float_format e2m1{2, 1, false, float_format::none};

/// (-1)^negative * digits * 2^exponent, exactly, or a little more in magnitude where `more`.
struct exact_number {
    enum { finite, infinite, not_a_number } kind = finite;
    bool negative = false;
    std::uint64_t digits = 0;
    int exponent = 0;
    bool more = false;
};

constexpr exact_number decompose(std::uint64_t bits, const float_format& format) {
    exact_number result;
    result.negative = (bits & format.sign_bit()) != 0;
    const std::uint64_t magnitude = bits & (format.sign_bit() - 1);
    const std::uint64_t fraction = magnitude & ((std::uint64_t{1} << format.fraction_bits) - 1);
    const auto exponent = static_cast<int>(magnitude >> format.fraction_bits);
    if (format.nan == float_format::ieee && (magnitude & format.exponent_mask()) == format.exponent_mask()) {
        result.kind = fraction != 0 ? exact_number::not_a_number : exact_number::infinite;
        return result;
    }
    if (format.nan == float_format::last_code && magnitude == format.sign_bit() - 1) {
        result.kind = exact_number::not_a_number;
        return result;
    }
    result.digits = exponent == 0 ? fraction : fraction | (std::uint64_t{1} << format.fraction_bits);
    result.exponent = (exponent == 0 ? 1 : exponent) - format.bias() - format.fraction_bits;
    return result;
}

/// Whether digits whose last place has been cut off grow by one: `half` is the first bit behind, `rest` whether any
/// later bit is set.
constexpr bool rounds_up(round_mode mode, bool negative, bool odd, bool half, bool rest) {
    switch (mode) {
        case round_mode::nearest_even:
            return half && (rest || odd);
        case round_mode::nearest_away:
            return half;
        case round_mode::toward_zero:
            return false;
        case round_mode::downward:
            return negative && (half || rest);
        case round_mode::upward:
            return !negative && (half || rest);
    }
    return false;
}

/// The digits without their last `cut` places, rounded.
constexpr std::uint64_t cut_digits(const exact_number& number, int cut, round_mode mode) {
    if (cut <= 0) return number.digits << -cut;
    const std::uint64_t kept = cut > 63 ? 0 : number.digits >> cut;
    const bool half = cut <= 64 && ((number.digits >> (cut - 1)) & 1U) != 0;
    const std::uint64_t below = cut > 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << (cut - 1)) - 1;
    const bool rest = (number.digits & below) != 0 || number.more;
    return kept + (rounds_up(mode, number.negative, (kept & 1U) != 0, half, rest) ? 1U : 0U);
}

/// The code of a number rounded once. What is too large becomes infinity or, where `finite`, or where the format has
/// no infinity, or where the direction says so, the largest number; formats without infinity have no other choice.
constexpr std::uint64_t round_to(const exact_number& number, const float_format& format, round_mode mode,
                                 bool finite = false) {
    const std::uint64_t sign = number.negative ? format.sign_bit() : 0;
    if (number.kind == exact_number::not_a_number) {
        return format.nan == float_format::none ? format.largest() : format.canonical_nan();
    }
    if (number.kind == exact_number::infinite) {
        return sign | (finite || !format.has_infinity ? format.largest() : format.exponent_mask());
    }
    if (number.digits == 0 && !number.more) return sign;
    exact_number n = number;
    // At least two places behind those that are kept, so that `more` is below them.
    const int room = std::countl_zero(n.digits | 1U);
    n.digits <<= room;
    n.exponent -= room;
    const int leading = n.exponent + 63;
    const int smallest = 1 - format.bias();
    const int last = (leading < smallest ? smallest : leading) - format.fraction_bits;
    std::uint64_t code = cut_digits(n, last - n.exponent, mode);
    // A carry out of the digits goes into the exponent, as it should.
    if (leading >= smallest) code += static_cast<std::uint64_t>(leading - smallest) << format.fraction_bits;
    const std::uint64_t limit = format.largest();
    const bool exceeds = leading > format.bias() + 2 || code > limit;
    if (!exceeds) return sign | code;
    const bool inward = mode == round_mode::toward_zero || (mode == round_mode::upward && number.negative) ||
                        (mode == round_mode::downward && !number.negative);
    return sign | (finite || inward || !format.has_infinity ? limit : format.exponent_mask());
}

constexpr exact_number from_integer(bool negative, std::uint64_t magnitude) {
    exact_number result;
    result.negative = negative;
    result.digits = magnitude;
    return result;
}

/// As an integer between the limits, which it does not leave; NaN is 0.
constexpr std::int64_t round_to_signed(const exact_number& n, round_mode mode, int width) {
    const std::int64_t highest = static_cast<std::int64_t>((std::uint64_t{1} << (width - 1)) - 1);
    const std::int64_t lowest = -highest - 1;
    if (n.kind == exact_number::not_a_number) return 0;
    if (n.kind == exact_number::infinite) return n.negative ? lowest : highest;
    if (n.digits == 0) return 0;
    if (n.exponent + 64 - std::countl_zero(n.digits) > 64) return n.negative ? lowest : highest;
    const std::uint64_t magnitude = cut_digits(n, -n.exponent, mode);
    if (n.negative) {
        const std::uint64_t most = static_cast<std::uint64_t>(highest) + 1;
        return magnitude >= most ? lowest : -static_cast<std::int64_t>(magnitude);
    }
    return magnitude > static_cast<std::uint64_t>(highest) ? highest : static_cast<std::int64_t>(magnitude);
}

constexpr std::uint64_t round_to_unsigned(const exact_number& n, round_mode mode, int width) {
    const std::uint64_t highest = ~std::uint64_t{0} >> (64 - width);
    if (n.kind == exact_number::not_a_number) return 0;
    if (n.kind == exact_number::infinite) return n.negative ? 0 : highest;
    if (n.negative || n.digits == 0) return 0;
    if (n.exponent + 64 - std::countl_zero(n.digits) > 64) return highest;
    const std::uint64_t magnitude = cut_digits(n, -n.exponent, mode);
    return magnitude > highest ? highest : magnitude;
}

constexpr double to_double(std::uint64_t bits, const float_format& format) {
    const exact_number n = decompose(bits, format);
    return std::bit_cast<double>(round_to(n, binary64, round_mode::nearest_even));
}

/// x + y rounded to odd: exact, or with a last bit that tells any later rounding to fewer digits in which direction
/// the exact sum lies. The error of a sum is a double (Knuth), so this is exact, too.
inline double add_to_odd(double x, double y) {
    const double sum = x + y;
    const double part = sum - x;
    const double error = (x - (sum - part)) + (y - part);
    if (!(error != 0) || !std::isfinite(sum)) return sum;
    auto bits = std::bit_cast<std::uint64_t>(sum);
    if ((bits & 1U) != 0) return sum;
    bits += (error > 0) == (sum > 0) ? 1U : ~std::uint64_t{0};
    return std::bit_cast<double>(bits);
}

/// The same for a quotient and a root, whose remainders are exact.
inline double divide_to_odd(double x, double y) {
    const double quotient = x / y;
    if (!std::isfinite(quotient) || quotient == 0) return quotient;
    const double remainder = std::fma(-quotient, y, x);
    auto bits = std::bit_cast<std::uint64_t>(quotient);
    if (remainder == 0 || (bits & 1U) != 0) return quotient;
    const bool larger = ((remainder > 0) == (y > 0)) == (quotient > 0);
    return std::bit_cast<double>(bits + (larger ? 1U : ~std::uint64_t{0}));
}
inline double root_to_odd(double x) {
    const double root = std::sqrt(x);
    if (!std::isfinite(root) || root == 0) return root;
    const double remainder = std::fma(-root, root, x);
    auto bits = std::bit_cast<std::uint64_t>(root);
    if (remainder == 0 || (bits & 1U) != 0) return root;
    return std::bit_cast<double>(bits + (remainder > 0 ? 1U : ~std::uint64_t{0}));
}

inline std::uint64_t round_double(double x, const float_format& format, round_mode mode,
                                  bool finite = false) {
    return round_to(decompose(std::bit_cast<std::uint64_t>(x), binary64), format, mode, finite);
}

}  // namespace ptx
