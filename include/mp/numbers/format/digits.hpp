// SPDX-License-Identifier: MIT
/// \file
/// From an exact value to decimal digits, by integers: the shortest that read back as the same number, and
/// all of them, to be rounded once to as many as are wanted.
#pragma once

#include <mp/numbers/format/decimal.hpp>

#include <cstddef>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

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
    MP_HOST_DEVICE constexpr void epilogue_tile_zeros() {
        while (count > 0 && digit[begin + count - 1] == '0') --count;
    }
};

/// Numbers of the format have no more digits than this.
template <class Format>
inline constexpr int most_exact_digits = [] {
    using layout = layout_of<Format>;
    constexpr int quantum = layout::quantum_exponent;
    // m * 2^quantum = m * 5^-quantum * 10^quantum with m < 2^precision is the longest of the fractions.
    const int fraction =
        quantum < 0 ? ceil_log10_of_power_of_two(layout::precision + bits_of_power_of_five(-quantum)) : 0;
    const int whole = layout::max_exponent > 0 ? ceil_log10_of_power_of_two(layout::max_exponent + 1) : 0;
    const int most = (fraction > whole ? fraction : whole) + 1;
    return most < 20 ? 20 : most;
}();

template <class Format>
using digits_of = decimal_digits<most_exact_digits<Format>>;

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
MP_HOST_DEVICE constexpr void shift_up(Integer& x, int count) {
    x <<= count;
}
template <int Words>
MP_HOST_DEVICE constexpr void shift_up(wide_integer<Words>& x, int count) {
    x.shift_left(count);
}
template <class Integer>
MP_HOST_DEVICE constexpr void multiply_by_ten(Integer& x) {
    x *= 10;
}
template <int Words>
MP_HOST_DEVICE constexpr void multiply_by_ten(wide_integer<Words>& x) {
    x.multiply_add(10, 0);
}
template <class Integer>
MP_HOST_DEVICE constexpr int compare(const Integer& a, const Integer& b) {
    return a < b ? -1 : a > b ? 1 : 0;
}
template <int Words>
MP_HOST_DEVICE constexpr int compare(const wide_integer<Words>& a, const wide_integer<Words>& b) {
    return a.compare(b);
}
template <class Integer>
MP_HOST_DEVICE constexpr Integer sum(const Integer& a, const Integer& b) {
    return a + b;
}
template <int Words>
MP_HOST_DEVICE constexpr wide_integer<Words> sum(wide_integer<Words> a, const wide_integer<Words>& b) {
    a.add(b);
    return a;
}
/// Takes `scale` away as often as possible, which is less than ten times, and returns how often.
template <class Integer>
MP_HOST_DEVICE constexpr int take_digit(Integer& remainder, const Integer& scale) {
    int digit = 0;
    for (; compare(remainder, scale) >= 0; ++digit) {
        if constexpr (requires { remainder.subtract(scale); }) {
            remainder.subtract(scale);
        } else {
            remainder -= scale;
        }
    }
    return digit;
}
MP_HOST_DEVICE constexpr int take_digit(std::uint64_t& remainder, const std::uint64_t& scale) {
    const std::uint64_t digit = remainder / scale;
    remainder -= digit * scale;
    return static_cast<int>(digit);
}

/// An estimate of floor(log10(x)) that is never too large, nor too small by more than one.
MP_HOST_DEVICE constexpr int estimated_log10(const exact_value& x) {
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
/// ten share with x are left out.
template <class Integer, int Capacity>
MP_HOST_DEVICE constexpr void shortest_digits_in(const exact_value& x, bool lower_is_closer, bool even,
                                                 decimal_digits<Capacity>& out) {
    int exponent = estimated_log10(x);
    Integer remainder(x.significand << 2);
    Integer scale(std::uint64_t{4});
    Integer low(std::uint64_t{lower_is_closer ? 1u : 2u});
    Integer high(std::uint64_t{2});
    if (exponent > 0) multiply_fives(scale, exponent);
    if (exponent < 0) {
        multiply_fives(remainder, -exponent);
        multiply_fives(low, -exponent);
        multiply_fives(high, -exponent);
    }
    if (const int twos = x.exponent - exponent; twos > 0) {
        shift_up(remainder, twos);
        shift_up(low, twos);
        shift_up(high, twos);
    } else if (twos < 0) {
        shift_up(scale, -twos);
    }
    Integer ten_times = scale;
    multiply_by_ten(ten_times);
    if (compare(remainder, ten_times) >= 0) {
        scale = ten_times;
        ++exponent;
    }

    out.begin = 0;
    out.count = 0;
    out.exponent = exponent;
    for (;;) {
        int digit = take_digit(remainder, scale);
        const int below = compare(remainder, low);
        const int above = compare(sum(remainder, high), scale);
        const bool low_enough = below < 0 || (even && below == 0);
        const bool high_enough = above > 0 || (even && above == 0);
        if (low_enough || high_enough) {
            const int half = compare(sum(remainder, remainder), scale);
            const bool nearer_above = half > 0 || (half == 0 && digit % 2 != 0);
            const bool up = low_enough && high_enough ? nearer_above : high_enough;
            digit += up ? 1 : 0;
            // Ten can only come of the first digit: a carry into an earlier one would have ended the loop
            // there.
            if (digit == 10) ++out.exponent;
            out.digit[out.count++] = digit == 10 ? '1' : static_cast<char>('0' + digit);
            return;
        }
        out.digit[out.count++] = static_cast<char>('0' + digit);
        multiply_by_ten(remainder);
        multiply_by_ten(low);
        multiply_by_ten(high);
    }
}

/// The fewest decimal digits that lie nearer to this positive number of the format, x, than to any other, and
/// among those the digits nearest to it, the even ones of two that are equally near; `even` says that the
/// last bit of its code is zero, so that the middles between it and its neighbours read back as this number,
/// too. At its ends the format counts as going on: the smallest and the largest number have neighbours of the
/// usual distance on both sides.
template <class Format>
MP_HOST_DEVICE constexpr void shortest_digits(const exact_value& x, bool even, digits_of<Format>& out) {
    using layout = layout_of<Format>;
    const bool lower_is_closer =
        x.significand == layout::hidden_bit && (x.exponent > layout::quantum_exponent || !layout::has_zero);
    const int bits = bits_for_shortest(x.exponent, estimated_log10(x));
    if (bits <= 64) return shortest_digits_in<std::uint64_t>(x, lower_is_closer, even, out);
    // The most bits are those of the largest number or of those in the lowest binade. Between them are
    // numbers m * 2^e with a positive estimate E > e, for which scale = 4 * 10^E / 2^e <= 4 * m <
    // 2^(precision + 2).
    constexpr int smallest = bits_for_shortest(
        layout::quantum_exponent, floor_log10_of_power_of_two(layout::quantum_exponent + layout::precision));
    constexpr int largest = bits_for_shortest(layout::max_exponent - layout::fraction_bits,
                                              floor_log10_of_power_of_two(layout::max_exponent));
    constexpr int mixed = 8 + 3 + layout::precision;
    constexpr int most_of_two = smallest > largest ? smallest : largest;
    constexpr int most = most_of_two > mixed ? most_of_two : mixed;
    if constexpr (most > 128) {
        if (bits > 128) {
            using wide = wide_integer<most / 32 + 3>;
            return shortest_digits_in<wide>(x, lower_is_closer, even, out);
        }
    }
    shortest_digits_in<uint128>(x, lower_is_closer, even, out);
}

/// Writes the digits of x in front of those that are there already, `least` of them at least.
template <int Capacity>
MP_HOST_DEVICE constexpr void prepend(decimal_digits<Capacity>& out, std::uint64_t x, int least) {
    for (int i = 0; x != 0 || i < least; ++i, x /= 10) {
        out.digit[--out.begin] = static_cast<char>('0' + x % 10);
    }
}

/// All digits of a positive number of the format.
template <class Format>
MP_HOST_DEVICE constexpr void exact_digits(exact_value x, digits_of<Format>& out) {
    using layout = layout_of<Format>;
    constexpr int capacity = most_exact_digits<Format>;
    // Without the twos that x has in common with the power of ten it is m * 5^-exponent or m * 2^exponent.
    const int zeros = 63 - leading_zeros(x.significand & (~x.significand + 1));
    x.significand >>= zeros;
    x.exponent += zeros;
    const int length = 64 - leading_zeros(x.significand);
    const int bits = length + (x.exponent < 0 ? bits_of_power_of_five(-x.exponent) : x.exponent);
    out.begin = capacity;
    if (bits <= 128) {
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
        constexpr int fraction = layout::quantum_exponent < 0
                                     ? layout::precision + bits_of_power_of_five(-layout::quantum_exponent)
                                     : 0;
        constexpr int most = fraction > layout::max_exponent + 1 ? fraction : layout::max_exponent + 1;
        wide_integer<(most > 128 ? most : 128) / 32 + 3> whole(x.significand);
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
    out.epilogue_tile_zeros();
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
    x.epilogue_tile_zeros();
}

}}  // namespace mp::detail
