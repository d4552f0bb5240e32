// SPDX-License-Identifier: MIT
/// \file
/// From decimal digits to an exact value, by integers: the one rounding of a digit string of any length. The
/// way back is in digits.hpp.
#pragma once

#include <mp/base/wide_integer.hpp>
#include <mp/config.hpp>
#include <mp/numbers/format/exact.hpp>
#include <mp/numbers/format/named_formats.hpp>

#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// What decimal texts are limited to by the format that they are read into, see decimal_limits_of().
struct decimal_limits {
    int finest;  ///< exponent of two
    int lowest;  ///< positive values below 10^lowest round like all others down to zero: 10^lowest <= 2^finest
    int highest;       ///< values of 10^highest and more overflow: 10^highest >= 2^(max_exponent + 2)
    int digits;        ///< significant digits of the numbers that values are compared with, at most
    int max_exponent;  ///< of the format
};

/// Significant decimal digits of a text. Texts may be longer than an int can count.
struct digit_string {
    const char* first = nullptr;  ///< the first digit that is not zero; points and separators lie among them
    std::int64_t count = 0;       ///< digits from there on, trailing zeros included
    std::uint64_t leading = 0;    ///< the number that the first 19 of them write
    std::int64_t exponent = 0;    ///< the power of the base that the last digit counts
    bool any = false;             ///< whether there were digits at all
};

/// from_decimal() for formats that fit texts of double, outside of constant expressions and device code.
[[nodiscard]] MP_CORE_FUNCTION exact_value core_from_decimal(const digit_string& text, std::int64_t exponent,
                                                             const decimal_limits& limits) noexcept;

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// At least log2(5^n), for n >= 0: 2.3219280... * 2^22 < 9738873.
MP_HOST_DEVICE constexpr int bits_of_power_of_five(int n) {
    return static_cast<int>((std::int64_t{n} * 9738873) >> 22) + 1;
}

/// Every rounding, with its ties and its flags, is decided by comparing the value with multiples of
/// 2^(quantum_exponent - 34): numbers of the format, the middles between them, and what the 32 bits of a
/// stochastic rounding tell apart with two to spare (see stochastically_up).
template <class Format>
MP_HOST_DEVICE constexpr decimal_limits decimal_limits_of() {
    using layout = layout_of<Format>;
    constexpr int finest = layout::quantum_exponent - 34;
    constexpr int highest = ceil_log10_of_power_of_two(layout::max_exponent + 2) + 1;
    // n * 2^finest = n * 5^-finest * 10^finest with n < 2^(precision + 35) in the lowest binade, where they are most.
    // A text that goes on after as many digits, and is not all zeros there, lies strictly between two of them.
    constexpr int fraction =
        finest < 0 ? ceil_log10_of_power_of_two(layout::precision + 35 + bits_of_power_of_five(-finest)) + 1
                   : 0;
    constexpr int whole = highest > 0 ? highest + 1 : 0;
    return {finest, floor_log10_of_power_of_two(finest) - 1, highest, fraction > whole ? fraction : whole,
            layout::max_exponent};
}

/// Words that hold 10^digits, 10^highest, and 5^(digits - lowest), shifted by up to four words.
template <class Format>
inline constexpr int decimal_words = [] {
    constexpr decimal_limits limits = decimal_limits_of<Format>();
    constexpr int longest = limits.digits > limits.highest ? limits.digits : limits.highest;
    const int numerator_bits = bits_of_power_of_five(longest) + longest;
    const int denominator_bits = bits_of_power_of_five(limits.digits - limits.lowest + 1);
    return (numerator_bits > denominator_bits ? numerator_bits : denominator_bits) / 32 + 6;
}();

/// Whether integers that are large enough for texts of `Wide` are for texts of `Format`.
template <class Format, class Wide>
inline constexpr bool fits_texts_of =
    layout_of<Format>::precision <= layout_of<Wide>::precision &&
    layout_of<Format>::quantum_exponent >= layout_of<Wide>::quantum_exponent &&
    layout_of<Format>::max_exponent <= layout_of<Wide>::max_exponent;

/// The format by which integers are dimensioned for texts of `Format`: double where that is large enough, so that formats
/// share their code.
template <class Format>
using text_class = std::conditional_t<fits_texts_of<Format, formats::binary64>, formats::binary64, Format>;
/// The same for functions that devices call, whose stacks are small: float where that is large enough.
template <class Format>
using small_text_class =
    std::conditional_t<fits_texts_of<Format, formats::binary32>, formats::binary32, text_class<Format>>;

/// The 64 highest bits of a number, and whether others are lost; what is lost, or `sticky`, makes it sticky.
MP_HOST_DEVICE constexpr exact_value shortened(uint128 x, int exponent, bool sticky) {
    const int zeros = leading_zeros(x);
    x <<= zeros;
    const auto high = static_cast<std::uint64_t>(x >> 64);
    return {false, exponent + 64 - zeros, high, sticky || static_cast<std::uint64_t>(x) != 0};
}

/// digits * 10^exponent for at most 19 digits and |exponent| <= 27, exact except for the sticky tail.
///
/// Products: 19 digits are less than 2^64 and 5^27 less than 2^63, so nothing leaves 128 bits. Quotients: the
/// dividend has its highest bit at 127 and the divisor has at most 63 bits, so the quotient has at least 65.
MP_HOST_DEVICE constexpr exact_value from_short_decimal(std::uint64_t digits, int exponent) {
    if (exponent >= 0) return shortened(uint128{digits} * power_of_five(exponent), exponent, false);
    const int shift = 64 + leading_zeros(digits);
    const uint128 dividend = uint128{digits} << shift;
    const std::uint64_t divisor = power_of_five(-exponent);
    const uint128 quotient = dividend / divisor;
    return shortened(quotient, exponent - shift, quotient * divisor != dividend);
}

/// The value of digits times 10^last_exponent, not zero, as an exact value of 64 bits. It lies between
/// 10^lowest and 10^highest of the format.
template <class Class>
MP_NEVER_INLINE MP_HOST_DEVICE constexpr exact_value from_long_decimal(const digit_string& text,
                                                                       std::int64_t last_exponent,
                                                                       int most_digits) {
    using wide = wide_integer<decimal_words<Class>>;
    wide numerator;
    int used = 0;
    std::uint32_t group = 0;
    std::uint32_t scale = 1;
    const char* p = text.first;
    for (; used < text.count && used < most_digits; ++p) {
        if (*p < '0' || *p > '9') continue;
        group = group * 10 + static_cast<std::uint32_t>(*p - '0');
        scale *= 10;
        ++used;
        if (scale == 1000000000) {
            numerator.multiply_add(scale, group);
            group = 0;
            scale = 1;
        }
    }
    numerator.multiply_add(scale, group);
    bool more = false;
    for (std::int64_t left = text.count - used; left > 0 && !more; ++p) {
        if (*p < '0' || *p > '9') continue;
        more = *p != '0';
        --left;
    }
    // Of the last digit that was used: not far below `lowest`, however many follow it.
    int exponent = static_cast<int>(last_exponent + (text.count - used));

    wide denominator(1);
    if (exponent >= 0) {
        numerator.multiply_power_of_five(exponent);
    } else {
        denominator.multiply_power_of_five(-exponent);
    }
    // Shift both so that the divisor fills its words and the quotient has 95 or 96 bits, and divide by digits
    // of 32 bits: the first of them has 31 or 32 bits, and so each step finds less than 2^32.
    const int fill = 32 * denominator.size - denominator.bit_length();
    const int shift = 32 * denominator.size + 95 - numerator.bit_length();
    const int grow = shift < 0 ? (31 - shift) / 32 * 32 : 0;  // whole words, for a divisor much shorter
    denominator.shift_left(fill + grow);
    numerator.shift_left(shift + grow);
    uint128 quotient = 0;
    for (int offset = 2; offset >= 0; --offset) {
        quotient = quotient << 32 | numerator.divide_step(denominator, offset);
    }
    return shortened(quotient, exponent + fill - shift, more || !numerator.is_zero());
}

/// from_decimal() with the integers of a class of formats.
template <class Class>
MP_HOST_DEVICE constexpr exact_value from_decimal_of(const digit_string& text, std::int64_t exponent,
                                                     const decimal_limits& limits) {
    if (text.count <= 19 && exponent >= -27 && exponent <= 27) {
        return from_short_decimal(text.leading, static_cast<int>(exponent));
    }
    // The value lies in [10^(point - 1), 10^point). Far outside the format something simpler of the same kind
    // does, and the integers stay small.
    const std::int64_t point = exponent + text.count;
    constexpr std::uint64_t one = std::uint64_t{1} << 63;
    if (point > limits.highest) return {false, limits.max_exponent + 2 - 63, one, true};
    if (point <= limits.lowest) return {false, limits.finest - 1 - 63, one, true};
    return from_long_decimal<Class>(text, exponent, limits.digits);
}

/// The value of decimal digits times 10^exponent, not zero, as an exact value of 64 bits.
template <class Format>
MP_HOST_DEVICE constexpr exact_value from_decimal(const digit_string& text, std::int64_t exponent) {
    constexpr decimal_limits limits = decimal_limits_of<Format>();
#if !MP_DEVICE_CODE
    if constexpr (fits_texts_of<Format, formats::binary64>) {
        if (!std::is_constant_evaluated()) return core_from_decimal(text, exponent, limits);
    }
#endif
    return from_decimal_of<small_text_class<Format>>(text, exponent, limits);
}

}}  // namespace mp::detail

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION exact_value core_from_decimal(const digit_string& text, std::int64_t exponent,
                                               const decimal_limits& limits) noexcept {
    return from_decimal_of<formats::binary64>(text, exponent, limits);
}

}}  // namespace mp::detail
#endif
