// SPDX-License-Identifier: MIT
/// \file
/// Between numbers and decimal digits, by exact integers: the shortest digits that read back as the same
/// number, and the one rounding of a digit string of any length.
#pragma once

#include <mp/detail/wide_integer.hpp>
#include <mp/format/exact.hpp>

namespace mp::detail {

/// digits[0] . digits[1] digits[2] ... * 10^exponent
struct decimal_digits {
    char digits[20]{};
    int count = 0;
    int exponent = 0;
};

/// The fewest decimal digits that lie nearer to this finite positive number of the format than to any other,
/// and among those the digits nearest to it. (Steele and White 1990, with integers: remainder / scale is the
/// part still to print; low / scale and high / scale are half the distances to the neighbours.)
template <class Format>
MP_HOST_DEVICE constexpr decimal_digits shortest_digits(exact_value x) {
    static_assert(layout_of<Format>::quantum_exponent >= -160 && layout_of<Format>::max_exponent <= 160,
                  "mp: text conversion supports exponents that a float has");
    using wide = wide_integer<14>;  // 448 bits: 2^160 * 10^49 at the most, twice shifted by a few bits
    const bool lower_is_closer =
        x.significand == layout_of<Format>::hidden_bit && x.exponent > layout_of<Format>::quantum_exponent;
    const bool even = (x.significand & 1) == 0;  // then the halfway points read back as this number, too
    wide remainder(x.significand);
    wide scale(1);
    wide low(1);
    remainder.shift_left(2);
    scale.shift_left(2);
    low.shift_left(lower_is_closer ? 0 : 1);
    wide high(2);
    if (x.exponent >= 0) {
        remainder.shift_left(x.exponent);
        low.shift_left(x.exponent);
        high.shift_left(x.exponent);
    } else {
        scale.shift_left(-x.exponent);
    }

    // 10^exponent <= x < 10^(exponent + 1), from an estimate that is never too large, nor too small by more
    // than one.
    const int top = 63 - leading_zeros(x.significand) + x.exponent;
    const int scaled = top * 30103;
    int exponent = scaled >= 0 ? scaled / 100000 : -((-scaled + 99999) / 100000);
    const auto multiply_all = [&](int power) {
        remainder.multiply_power_of_ten(power);
        low.multiply_power_of_ten(power);
        high.multiply_power_of_ten(power);
    };
    if (exponent >= 0) {
        scale.multiply_power_of_ten(exponent);
    } else {
        multiply_all(-exponent);
    }
    const auto reaches = [&](const wide& limit, bool inclusive) {
        wide sum = remainder;
        sum.add(high);
        const int order = sum.compare(limit);
        return order > 0 || (inclusive && order == 0);
    };
    wide ten = scale;
    ten.multiply_add(10, 0);
    if (remainder.compare(ten) >= 0) {
        scale = ten;
        ++exponent;
    }

    decimal_digits result;
    result.exponent = exponent;
    for (;;) {
        int digit = 0;
        while (remainder.compare(scale) >= 0) {
            remainder.subtract(scale);
            ++digit;
        }
        const int below = remainder.compare(low);
        const bool low_enough = below < 0 || (even && below == 0);
        const bool high_enough = reaches(scale, even);
        if (low_enough || high_enough) {
            wide twice = remainder;
            twice.add(remainder);
            const bool up = low_enough && high_enough ? twice.compare(scale) > 0 : high_enough;
            digit += up ? 1 : 0;
            // Ten can only come of the first digit: a carry into an earlier one would have ended the loop
            // there.
            if (digit == 10) ++result.exponent;
            result.digits[result.count++] = digit == 10 ? '1' : static_cast<char>('0' + digit);
            return result;
        }
        result.digits[result.count++] = static_cast<char>('0' + digit);
        remainder.multiply_add(10, 0);
        low.multiply_add(10, 0);
        high.multiply_add(10, 0);
    }
}

/// Significant digits that decide between two numbers: every halfway point between numbers of a format with
/// an exponent range like float's has fewer than 120 of them, so that what follows only makes the value
/// sticky.
inline constexpr int max_decimal_digits = 128;

/// The value of `count` decimal digits (characters) times 10^exponent, as an exact value of at least 64 bits;
/// the digits start with a non-zero one, are at most max_decimal_digits, and `more` says that non-zero digits
/// follow.
MP_HOST_DEVICE constexpr exact_value from_decimal(const char* digits, int count, bool more, int exponent) {
    // Far outside every format: stands for something too large or too small, and keeps the integers below
    // small.
    if (exponent + count > 60) return {false, 400, std::uint64_t{1} << 63, true};
    if (exponent + count < -60) return {false, -600, std::uint64_t{1} << 63, true};
    using wide = wide_integer<28>;  // 896 bits hold 10^188 shifted up by 64 bits, and 10^60 * 10^128
    wide numerator(0);
    for (int i = 0; i < count; ++i) numerator.multiply_add(10, static_cast<std::uint32_t>(digits[i] - '0'));
    wide denominator(1);
    if (exponent >= 0) {
        numerator.multiply_power_of_ten(exponent);
    } else {
        denominator.multiply_power_of_ten(-exponent);
    }
    // Scale so that the quotient has 63 or 64 bits, then divide bit by bit.
    int shift = numerator.bit_length() - denominator.bit_length() - 63;
    if (shift > 0) {
        denominator.shift_left(shift);
    } else {
        numerator.shift_left(-shift);
    }
    denominator.shift_left(63);
    std::uint64_t quotient = 0;
    for (int bit = 63; bit >= 0; --bit) {
        quotient <<= 1;
        if (numerator.compare(denominator) >= 0) {
            numerator.subtract(denominator);
            quotient |= 1;
        }
        // Instead of shifting the denominator down, shift the remainder up.
        if (bit > 0) numerator.shift_left(1);
    }
    const bool sticky = more || numerator.bit_length() != 0;
    return {false, shift, quotient, sticky};
}

}  // namespace mp::detail
