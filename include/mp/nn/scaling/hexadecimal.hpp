// SPDX-License-Identifier: MIT
/// \file
/// Floats and doubles as hexadecimal text, one spelling for a number. By integers only, so that neither a
/// locale, nor a processor that flushes subnormals, nor the standard library at hand makes a difference.
#pragma once

#include <mp/base/bits.hpp>

#include <charconv>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The bits of float and double, and where their fields lie.
template <class Number>
    requires std::same_as<Number, float> || std::same_as<Number, double>
struct binary_fields {
    using bits_type = std::conditional_t<std::same_as<Number, float>, std::uint32_t, std::uint64_t>;
    static constexpr int fraction_bits = std::numeric_limits<Number>::digits - 1;
    static constexpr int bias = std::numeric_limits<Number>::max_exponent - 1;
    static constexpr int exponent_field_max = 2 * bias + 1;
    static constexpr std::uint64_t sign_bit = std::uint64_t{1} << (8 * sizeof(Number) - 1);
    static constexpr std::uint64_t hidden_bit = std::uint64_t{1} << fraction_bits;
    static constexpr std::uint64_t infinity = static_cast<std::uint64_t>(exponent_field_max) << fraction_bits;
};

/// A number as 0x1.8p+4: one digit before the point, no zeros at the end, the exponent of two with its sign.
/// Zero is 0x0p+0, subnormals have a 1 before the point as well; inf; nan without its payload.
template <class Number>
std::string hexadecimal_text(Number number) {
    using fields = binary_fields<Number>;
    const std::uint64_t bits = bit_cast<typename fields::bits_type>(number);
    const std::uint64_t magnitude = bits & ~fields::sign_bit;
    std::string text = magnitude != bits ? "-" : "";
    if (magnitude >= fields::infinity) return text.append(magnitude == fields::infinity ? "inf" : "nan");
    if (magnitude == 0) return text.append("0x0p+0");
    int exponent = static_cast<int>(magnitude >> fields::fraction_bits) - fields::bias;
    std::uint64_t significand = magnitude & (fields::hidden_bit - 1);
    if (exponent == -fields::bias) {
        ++exponent;
        for (; significand < fields::hidden_bit; --exponent) significand <<= 1;
    }
    text.append("0x1");
    // The fraction moves to the top of 64 bits, from where digits are taken; the hidden bit falls out.
    std::uint64_t fraction = significand << (64 - fields::fraction_bits);
    if (fraction != 0) text.push_back('.');
    for (; fraction != 0; fraction <<= 4) text.push_back("0123456789abcdef"[fraction >> 60]);
    char digits[8];
    const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, exponent);
    text.append(exponent < 0 ? "p" : "p+").append(digits, end.ptr);
    return text;
}

/// Result of reading.
enum class hexadecimal_outcome : unsigned char {
    good,
    malformed,     ///< not spelled as hexadecimal_text does it; NaN included
    out_of_range,  ///< no number of the type is that large
    inexact        ///< no number of the type is exactly that
};

/// Reads what hexadecimal_text writes, and nothing else; `number` is written only if that went well.
template <class Number>
hexadecimal_outcome read_hexadecimal(std::string_view text, Number& number) {
    using fields = binary_fields<Number>;
    using outcome = hexadecimal_outcome;
    const std::string_view whole = text;
    const bool negative = text.starts_with('-');
    if (negative) text.remove_prefix(1);
    std::uint64_t bits = 0;
    if (text == "inf") {
        bits = fields::infinity;
    } else if (text != "0x0p+0") {
        if (!text.starts_with("0x1")) return outcome::malformed;
        text.remove_prefix(3);
        std::uint64_t fraction = 0;  // at the top of 64 bits
        if (text.starts_with('.')) {
            text.remove_prefix(1);
            int shift = 60;
            for (; !text.empty() && text.front() != 'p'; text.remove_prefix(1), shift -= 4) {
                const char digit = text.front();
                const bool decimal = digit >= '0' && digit <= '9';
                if (!decimal && !(digit >= 'a' && digit <= 'f')) return outcome::malformed;
                if (shift < 0) return outcome::inexact;
                const int value = decimal ? digit - '0' : digit - 'a' + 10;
                fraction |= static_cast<std::uint64_t>(value) << shift;
            }
        }
        if (!text.starts_with("p+") && !text.starts_with("p-")) return outcome::malformed;
        text.remove_prefix(text[1] == '+' ? 2 : 1);
        int exponent = 0;
        const char* const end = text.data() + text.size();
        const std::from_chars_result read = std::from_chars(text.data(), end, exponent);
        if (read.ptr != end || read.ec == std::errc::invalid_argument) return outcome::malformed;
        const bool tiny = text.starts_with('-');
        if (read.ec != std::errc{}) return tiny ? outcome::inexact : outcome::out_of_range;
        if (exponent > fields::bias) return outcome::out_of_range;
        if (exponent < 1 - fields::bias - fields::fraction_bits) return outcome::inexact;
        if ((fraction << fields::fraction_bits) != 0) return outcome::inexact;
        bits = fraction >> (64 - fields::fraction_bits);
        const int below = 1 - fields::bias - exponent;  // how far below the normal numbers
        if (below > 0) {
            bits |= fields::hidden_bit;
            if ((bits & ((std::uint64_t{1} << below) - 1)) != 0) return outcome::inexact;
            bits >>= below;
        } else {
            bits |= static_cast<std::uint64_t>(exponent + fields::bias) << fields::fraction_bits;
        }
    }
    if (negative) bits |= fields::sign_bit;
    const auto read = bit_cast<Number>(static_cast<typename fields::bits_type>(bits));
    // Zeros at the end of the fraction or before the exponent.
    if (hexadecimal_text(read) != whole) return outcome::malformed;
    number = read;
    return outcome::good;
}

}}  // namespace mp::detail
