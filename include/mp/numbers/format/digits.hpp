// SPDX-License-Identifier: MIT
/// \file
/// From an exact value to decimal digits, by integers: the shortest that read back as the same number, and
/// all of them, to be rounded once to as many as are wanted.
#pragma once

#include <mp/numbers/format/decimal.hpp>
#include <mp/numbers/format/named_formats.hpp>

#include <cstddef>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// A number as far as its text depends on it. Fits two registers.
struct decoded_number {
    category kind;
    bool negative;
    bool even;  ///< its code is even, so that the middles between it and its neighbours read back as it
    bool lower_is_closer;  ///< the distance to the number below is half of that to the number above
    int exponent;
    std::uint64_t significand;  ///< 0 for all kinds but finite
};

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Format>
MP_HOST_DEVICE constexpr decoded_number decode(storage_of<Format> bits) {
    using layout = layout_of<Format>;
    const category kind = categorize<Format>(bits);
    // The NaN in the place of minus zero has no sign.
    const bool no_sign = kind == category::nan && Format::nans == nan_encoding::negative_zero;
    if (kind != category::finite) {
        return {kind, is_negative<Format>(bits) && !no_sign, false, false, 0, 0};
    }
    const exact_value x = unpack<Format>(bits);
    const bool lowest_binade = layout::has_zero && x.exponent == layout::quantum_exponent;
    const bool lower_is_closer = x.significand == layout::hidden_bit && !lowest_binade;
    return {kind, x.negative, (bits & 1) == 0, lower_is_closer, x.exponent, x.significand};
}

/// The decimal digits of a positive number, d.ddd * 10^exponent, without zeros at the end. They end where the
/// array ends or before, because that is the order in which division finds them.
template <int Capacity>
struct decimal_digits {
    char digit[std::size_t{Capacity}];
    int begin = 0;
    int count = 0;
    int exponent = 0;

    /// The digit that counts 10^(exponent - i); zeros go on to both sides.
    [[nodiscard]] MP_HOST_DEVICE constexpr char at(int i) const {
        return i >= 0 && i < count ? digit[begin + i] : '0';
    }
    MP_HOST_DEVICE constexpr void trim_zeros() {
        while (count > 0 && digit[begin + count - 1] == '0') --count;
    }
};

/// Bits of the integers from which all digits of a number of the format follow: m * 5^-quantum with
/// m < 2^precision for the longest fraction, and the largest number. At least 128. The integers of
/// shortest_digits_in need no more where bits_for_shortest() is over 128: in the lowest binade it is at most
/// 12 - 0.7 * quantum + 0.31 * precision, which then is less than precision - 2.32 * quantum, and for the largest number
/// at most 12 + 0.7 * max_exponent. In between are numbers m * 2^e with a positive estimate E > e, for which
/// scale = 4 * 10^E / 2^e <= 4 * m < 2^(precision + 2).
template <class Format>
inline constexpr int exact_digit_bits = [] {
    using layout = layout_of<Format>;
    constexpr int quantum = layout::quantum_exponent;
    const int fraction = quantum < 0 ? layout::precision + bits_of_power_of_five(-quantum) : 0;
    const int most = fraction > layout::max_exponent ? fraction : layout::max_exponent + 1;
    return most < 128 ? 128 : most;
}();

template <class Class>
using digits_of = decimal_digits<ceil_log10_of_power_of_two(exact_digit_bits<Class>) + 1>;

// The three kinds of integers that digits are found with; those with 64 and 128 bits take the numbers that
// they are large enough for.
MP_HOST_DEVICE constexpr void multiply_fives(std::uint64_t& x, int power) {
    x *= power_of_five(power);
}
MP_HOST_DEVICE constexpr void multiply_fives(uint128& x, int power) {
    for (; power > 27; power -= 27) x *= power_of_five(27);
    x *= power_of_five(power);
}
template <int Words>
MP_HOST_DEVICE constexpr void multiply_fives(wide_integer<Words>& x, int power) {
    x.multiply_power_of_five(power);
}
template <class Integer>
MP_HOST_DEVICE constexpr int compare(const Integer& a, const Integer& b) {
    return a < b ? -1 : a > b ? 1 : 0;
}
template <int Words>
MP_HOST_DEVICE constexpr int compare(const wide_integer<Words>& a, const wide_integer<Words>& b) {
    return a.compare(b);
}
/// Takes `scale` away as often as possible, which is less than ten times, and returns how often.
MP_HOST_DEVICE constexpr int take_digit(uint128& remainder, const uint128& scale) {
    int digit = 0;
    for (; remainder >= scale; ++digit) remainder -= scale;
    return digit;
}
template <int Words>
MP_HOST_DEVICE constexpr int take_digit(wide_integer<Words>& remainder, const wide_integer<Words>& scale) {
    return static_cast<int>(remainder.divide_step(scale, 0));
}
MP_HOST_DEVICE constexpr int take_digit(std::uint64_t& remainder, const std::uint64_t& scale) {
    // The scale of numbers below 10 is a power of two, and division takes most of the time.
    const std::uint64_t digit =
        (scale & (scale - 1)) == 0 ? remainder >> (63 - leading_zeros(scale)) : remainder / scale;
    remainder -= digit * scale;
    return static_cast<int>(digit);
}

/// An estimate of floor(log10(x)) that is never too large, nor too small by more than one.
MP_HOST_DEVICE constexpr int estimated_log10(const decoded_number& x) {
    return floor_log10_of_power_of_two(63 - leading_zeros(x.significand) + x.exponent);
}

/// Bits that the integers of shortest_digits_in need at most. All of them stay below 100 * scale: remainder
/// is less than 10 * 10 * scale when the estimate is one too small, and less than 10 * scale from then on,
/// low and high are not larger than it, and scale becomes ten times as large at most once, then with
/// remainder below 10 * scale. So the sums stay below 200 * scale < 2^8 * scale, and scale is 4 * 2^twos *
/// 5^fives.
MP_HOST_DEVICE constexpr int bits_for_shortest(int exponent, int estimate) {
    const int twos = exponent < estimate ? estimate - exponent : 0;
    return 8 + 3 + twos + (estimate > 0 ? bits_of_power_of_five(estimate) : 0);
}

/// Steele and White's algorithm (1990): x = remainder / scale * 10^exponent is the part still to be written;
/// low / scale and high / scale are half the distances to the neighbours. Powers of two that the powers of
/// ten share with x are left out, and for x < 1 the exponent begins as that of the next power of ten, so that the
/// scale has no fives.
template <class Integer, int Capacity>
MP_HOST_DEVICE constexpr void shortest_digits_in(const decoded_number& x, int estimate,
                                                 decimal_digits<Capacity>& out) {
    int exponent = estimate < 0 ? estimate + 1 : estimate;
    Integer remainder(x.significand << 2);
    Integer scale(std::uint64_t{4});
    Integer low(std::uint64_t{x.lower_is_closer ? 1u : 2u});
    Integer high(std::uint64_t{2});
    if (exponent > 0) multiply_fives(scale, exponent);
    if (exponent < 0) {
        multiply_fives(remainder, -exponent);
        multiply_fives(low, -exponent);
        multiply_fives(high, -exponent);
    }
    if (const int twos = x.exponent - exponent; twos > 0) {
        remainder <<= twos;
        low <<= twos;
        high <<= twos;
    } else if (twos < 0) {
        scale <<= -twos;
    }
    if (estimate >= 0) {
        Integer ten_times = scale;
        ten_times *= 10;
        if (compare(remainder, ten_times) >= 0) {
            scale = ten_times;
            ++exponent;
        }
    } else if (compare(remainder, scale) < 0) {
        remainder *= 10;
        low *= 10;
        high *= 10;
        --exponent;
    }
    if constexpr (requires { scale.bit_length(); }) {
        // As divide_step() has it.
        const int shift = 32 * scale.size - scale.bit_length();
        remainder <<= shift;
        scale <<= shift;
        low <<= shift;
        high <<= shift;
    }

    const int ties = x.even ? 1 : 0;
    int count = 0;
    for (;;) {
        int digit = take_digit(remainder, scale);
        const bool low_enough = compare(remainder, low) < ties;
        const bool high_enough = compare(remainder + high, scale) > -ties;
        if (int{low_enough} + int{high_enough} != 0) {  // with one branch
            const int half = compare(remainder + remainder, scale);
            const bool nearer_above = half > 0 || (half == 0 && digit % 2 != 0);
            const bool up = low_enough && high_enough ? nearer_above : high_enough;
            digit += up ? 1 : 0;
            // Ten can only come of the first digit: a carry into an earlier one would have ended the loop
            // there.
            out.digit[count] = digit == 10 ? '1' : static_cast<char>('0' + digit);
            out.begin = 0;
            out.count = count + 1;
            out.exponent = digit == 10 ? exponent + 1 : exponent;
            return;
        }
        out.digit[count++] = static_cast<char>('0' + digit);
        remainder *= 10;
        low *= 10;
        high *= 10;
    }
}

/// The fewest decimal digits that lie nearer to this positive number, x, than to any other of its format, and
/// among those the digits nearest to it, the even ones of two that are equally near. At its ends the format counts
/// as going on: the smallest and the largest number have neighbours of the usual distance on both sides.
template <class Class>
MP_HOST_DEVICE constexpr void shortest_digits(const decoded_number& x, digits_of<Class>& out) {
    const int estimate = estimated_log10(x);
    const int bits = bits_for_shortest(x.exponent, estimate);
    if (bits <= 64) return shortest_digits_in<std::uint64_t>(x, estimate, out);
    if (bits <= 128) return shortest_digits_in<uint128>(x, estimate, out);
    shortest_digits_in<wide_integer<exact_digit_bits<Class> / 32 + 3>>(x, estimate, out);
}

/// Writes the digits of x in front of those that are there already, `least` of them at least.
template <int Capacity>
MP_HOST_DEVICE constexpr void prepend(decimal_digits<Capacity>& out, std::uint64_t x, int least) {
    int begin = out.begin;
    for (const int last = begin - least; x != 0 || begin > last; x /= 10) {
        out.digit[--begin] = static_cast<char>('0' + x % 10);
    }
    out.begin = begin;
}

/// All digits of a positive number.
template <class Class>
MP_HOST_DEVICE constexpr void exact_digits(decoded_number x, digits_of<Class>& out) {
    constexpr int capacity = sizeof out.digit;
    // Without the twos that x has in common with the power of ten it is m * 5^-exponent or m * 2^exponent.
    const int zeros = 63 - leading_zeros(x.significand & (~x.significand + 1));
    x.significand >>= zeros;
    x.exponent += zeros;
    const int length = 64 - leading_zeros(x.significand);
    const int bits = length + (x.exponent < 0 ? bits_of_power_of_five(-x.exponent) : x.exponent);
    out.begin = capacity;
    if (bits <= 64) {
        prepend(out,
                x.exponent < 0 ? x.significand * power_of_five(-x.exponent) : x.significand << x.exponent, 0);
    } else if (bits <= 128) {
        uint128 whole = x.significand;
        if (x.exponent < 0) {
            multiply_fives(whole, -x.exponent);
        } else {
            whole <<= x.exponent;
        }
        constexpr std::uint64_t group = 10000000000000000000u;  // 10^19
        for (; (whole >> 64) != 0; whole /= group) {
            prepend(out, static_cast<std::uint64_t>(whole % group), 19);
        }
        prepend(out, static_cast<std::uint64_t>(whole), 0);
    } else {
        wide_integer<exact_digit_bits<Class> / 32 + 3> whole(x.significand);
        if (x.exponent < 0) {
            whole.multiply_power_of_five(-x.exponent);
        } else {
            whole.shift_left(x.exponent);
        }
        while (!whole.is_zero()) {
            const std::uint32_t group = whole.divide(1000000000);
            prepend(out, group, whole.is_zero() ? 0 : 9);
        }
    }
    out.count = capacity - out.begin;
    out.exponent = out.count - 1 + (x.exponent < 0 ? x.exponent : 0);
    out.trim_zeros();
}

/// Rounds to `kept` digits, which may be zero or less, to nearest; a tie goes to the even digit. What is left
/// may be nothing at all.
template <int Capacity>
MP_HOST_DEVICE constexpr void round_digits(decimal_digits<Capacity>& x, int kept) {
    if (kept >= x.count) return;
    if (kept < 0) {
        x.count = 0;
        return;
    }
    const char next = x.at(kept);
    // There are no zeros at the end, so what follows the next digit is more than nothing.
    const bool tie = next == '5' && x.count == kept + 1;
    const bool up = tie ? (x.at(kept - 1) - '0') % 2 != 0 : next >= '5';
    x.count = kept;
    if (up) {
        while (x.count > 0 && x.digit[x.begin + x.count - 1] == '9') --x.count;
        if (x.count > 0) {
            ++x.digit[x.begin + x.count - 1];
        } else {
            x.digit[x.begin] = '1';
            x.count = 1;
            ++x.exponent;
        }
    }
    x.trim_zeros();
}

}}  // namespace mp::detail
