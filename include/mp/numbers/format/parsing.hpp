// SPDX-License-Identifier: MIT
/// \file
/// The grammar of numbers in text, and the one rounding from a text to a code.
#pragma once

#include <mp/numbers/format/decimal.hpp>
#include <mp/numbers/format/named_formats.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// The grammar that a text is read by: that of std::from_chars, or that of literals, where 0x announces a
/// hexadecimal number and the separator ' may stand between digits.
struct grammar {
    std::chars_format format = std::chars_format::general;
    bool literal = false;
};

/// What was read from the front of a text, and where reading stopped; length 0 means that nothing was a
/// number. The digits of `text` stay where they are.
struct parsed_number {
    category kind = category::zero;
    bool negative = false;
    bool hexadecimal = false;
    digit_string text{};
    std::int64_t exponent = 0;  ///< of ten or two, to be applied to the last digit
    std::ptrdiff_t length = 0;
};

/// parse_number() outside of constant expressions and device code.
[[nodiscard]] MP_CORE_FUNCTION parsed_number core_parse_number(const char* first, const char* last,
                                                               grammar rules) noexcept;

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

MP_HOST_DEVICE constexpr char lower_case(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

/// The value of a digit; -1 for what is none.
MP_HOST_DEVICE constexpr int digit_value(char c, int base) {
    if (c >= '0' && c <= '9') return c - '0' < base ? c - '0' : -1;
    const char lower = lower_case(c);
    return lower >= 'a' && lower - 'a' + 10 < base ? lower - 'a' + 10 : -1;
}

/// Length of `word` (lower case) at the front of [first, last), whatever its case there; 0 if it is not
/// there.
MP_HOST_DEVICE constexpr int match_word(const char* first, const char* last, const char* word) {
    int length = 0;
    for (; word[length] != 0; ++length) {
        if (first + length == last || lower_case(first[length]) != word[length]) return 0;
    }
    return length;
}

/// Exponents in texts are cut off when they get as large, which changes no result: texts with more than 10^15
/// digits are not to be had.
inline constexpr std::int64_t largest_text_exponent = 10000000000000000;

/// Reads an optional sign and decimal digits after an exponent letter; returns the end, or `first` if there
/// is no exponent.
MP_HOST_DEVICE constexpr const char* parse_exponent(const char* first, const char* last, char letter,
                                                    bool separators, std::int64_t& exponent) {
    if (first == last || lower_case(*first) != letter) return first;
    const char* p = first + 1;
    const bool negative = p != last && *p == '-';
    if (p != last && (*p == '-' || *p == '+')) ++p;
    if (p == last || digit_value(*p, 10) < 0) return first;
    std::int64_t value = 0;
    for (; p != last; ++p) {
        if (separators && *p == '\'') continue;
        const int digit = digit_value(*p, 10);
        if (digit < 0) break;
        if (value < largest_text_exponent) value = value * 10 + digit;
    }
    exponent = negative ? -value : value;
    return p;
}

/// Reads digits of the given base with at most one point among them.
template <int Base>
MP_HOST_DEVICE constexpr const char* parse_digits(const char* first, const char* last, bool separators,
                                                  digit_string& out) {
    bool point = false;
    const char* p = first;
    for (; p != last; ++p) {
        if (*p == '.' && !point) {
            point = true;
            continue;
        }
        if (separators && *p == '\'') continue;
        const int value = digit_value(*p, Base);
        if (value < 0) break;
        out.any = true;
        if (point) --out.exponent;
        if (out.count == 0) {
            if (value == 0) continue;
            out.first = p;
        }
        if (++out.count <= 19) {
            out.leading = out.leading * Base + static_cast<std::uint64_t>(value);
        }
    }
    return p;
}

/// parse_number() in the source that calls it.
MP_HOST_DEVICE constexpr parsed_number parse_number_here(const char* first, const char* last, grammar rules) {
    parsed_number result{};
    const char* p = first;
    if (p != last && *p == '-') {
        result.negative = true;
        ++p;
    }
    const char letter = p != last ? lower_case(*p) : '\0';
    if (letter == 'i') {
        const int length = match_word(p, last, "inf");
        const int whole = match_word(p, last, "infinity");
        if (length == 0) return result;
        result.kind = category::infinite;
        result.length = (p - first) + (whole > 0 ? whole : length);
        return result;
    }
    if (letter == 'n') {
        const int length = match_word(p, last, "nan");
        if (length == 0) return result;
        result.kind = category::nan;
        p += length;
        if (p != last && *p == '(') {
            const char* q = p + 1;
            while (q != last && (digit_value(*q, 36) >= 0 || *q == '_')) ++q;
            if (q != last && *q == ')') p = q + 1;
        }
        result.length = p - first;
        return result;
    }
    result.hexadecimal = rules.format == std::chars_format::hex;
    if (rules.literal && match_word(p, last, "0x") > 0) {
        result.hexadecimal = true;
        p += 2;
    }
    p = result.hexadecimal ? parse_digits<16>(p, last, rules.literal, result.text)
                           : parse_digits<10>(p, last, rules.literal, result.text);
    if (!result.text.any) return result;
    // The operators of std::chars_format are not for devices.
    if (result.hexadecimal || rules.format == std::chars_format::scientific ||
        rules.format == std::chars_format::general) {
        const char letter_before = result.hexadecimal ? 'p' : 'e';
        const char* end = parse_exponent(p, last, letter_before, rules.literal, result.exponent);
        if (end == p && !result.hexadecimal && rules.format == std::chars_format::scientific) return result;
        p = end;
    }
    result.length = p - first;
    if (result.text.count != 0) result.kind = category::finite;
    return result;
}

/// Reads a number as the grammar says.
MP_HOST_DEVICE constexpr parsed_number parse_number(const char* first, const char* last, grammar rules) {
#if !MP_DEVICE_CODE
    if (!std::is_constant_evaluated()) return core_parse_number(first, last, rules);
#endif
    return parse_number_here(first, last, rules);
}

/// The value of hexadecimal digits times 2^exponent, not zero, as an exact value of 64 bits. Up to 31 digits
/// fit the integer; those behind them are far below what decides.
MP_HOST_DEVICE constexpr exact_value from_hexadecimal(const digit_string& text, std::int64_t exponent) {
    uint128 significand = 0;
    int used = 0;
    const char* p = text.first;
    for (; used < text.count && used < 31; ++p) {
        const int value = digit_value(*p, 16);
        if (value < 0) continue;
        significand = significand << 4 | static_cast<unsigned>(value);
        ++used;
    }
    bool sticky = false;
    for (std::int64_t left = text.count - used; left > 0 && !sticky; ++p) {
        const int value = digit_value(*p, 16);
        if (value < 0) continue;
        sticky = value != 0;
        --left;
    }
    const std::int64_t power = exponent + 4 * (text.count - used);
    const int limited = power > 100000 ? 100000 : power < -100000 ? -100000 : static_cast<int>(power);
    return shortened(significand, limited, sticky);
}

/// The exact value of what was read, whose kind is finite. The exponent of the text may be anything up to
/// 10^17, and that of its digits is less in magnitude than its length.
template <class Format>
MP_HOST_DEVICE constexpr exact_value value_of(const parsed_number& x) {
    exact_value value = x.hexadecimal ? from_hexadecimal(x.text, x.exponent + 4 * x.text.exponent)
                                      : from_decimal<Format>(x.text, x.exponent + x.text.exponent);
    value.negative = x.negative;
    return value;
}

/// A code, and whether the format has what the text says.
template <class Format>
struct read_code {
    storage_of<Format> bits;
    bool in_range;
};

/// Whether finite values beyond the largest number are turned away, and not taken to it: those that the
/// projection would take to infinity in a format that has infinities.
MP_HOST_DEVICE constexpr bool turns_overflow_away(bool negative, const projection& p) {
    return overflow_code<formats::binary16>(negative, false, p) >
           layout_of<formats::binary16>::max_finite_code;
}

/// Rounds what was read, once. Not in range are, in a format that has no such thing: NaN; infinity, overflow,
/// zero, and anything negative, unless the projection takes it to a finite number; and what is not zero and
/// becomes it.
template <class Format, context Context>
MP_HOST_DEVICE constexpr read_code<Format> pack_parsed(const parsed_number& x, Context&& context) {
    using layout = layout_of<Format>;
    const projection& p = projection_of(context);
    const bool below_all = !layout::is_signed && x.negative;
    switch (x.kind) {
        case category::nan:
            if (!layout::has_nan) raise(context, status_flag::invalid);
            return {pack_nan<Format>(x.negative, p), layout::has_nan};
        case category::infinite: {
            const bool exact = layout::has_infinity && !below_all;
            const auto bits = pack_infinity<Format>(x.negative, context);
            return {bits, exact || p.saturate == saturation::finite};
        }
        case category::zero:
            return {pack_zero<Format>(x.negative, context),
                    layout::has_zero || p.saturate != saturation::none};
        case category::finite:
            break;
    }
    const exact_value value = value_of<Format>(x);
    const auto bits = round_and_pack<Format>(value, context);
    if (below_all) return {bits, p.saturate != saturation::none};
    const bool finite = categorize<Format>(bits) == category::finite;
    if constexpr (layout::can_overflow) {
        return {bits, finite};
    } else {
        // The largest number may be one that overflowed, and does not say so by itself.
        environment env{.project = p};
        round_and_pack<Format>(value, env);
        const bool overflows = env.raised.test(status_flag::overflow);
        return {bits, finite && !(overflows && turns_overflow_away(x.negative, p))};
    }
}

/// What a stream stores for a text, and whether that is no failure: the largest number for one too large,
/// zero for one too small, which is none, and zero for what is no number.
template <class Format>
constexpr read_code<Format> code_of_extracted(const parsed_number& x) {
    if (x.length == 0) return {pack_zero<Format>(false, projection{}), false};
    const read_code<Format> code = pack_parsed<Format>(x, projection{});
    if (code.in_range) return code;
    if (x.kind == category::nan) return {pack_zero<Format>(false, projection{}), false};
    const auto nearest = pack_parsed<Format>(x, projection{.saturate = saturation::finite}).bits;
    const bool below_all = !layout_of<Format>::is_signed && x.negative;
    const bool too_small =
        x.kind == category::finite && !below_all && categorize<Format>(nearest) == category::zero;
    return {nearest, too_small};
}

}}  // namespace mp::detail

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION parsed_number core_parse_number(const char* first, const char* last,
                                                 grammar rules) noexcept {
    return parse_number_here(first, last, rules);
}

}}  // namespace mp::detail
#endif
