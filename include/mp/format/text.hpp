// SPDX-License-Identifier: MIT
/// \file
/// Numbers as text: to_chars and from_chars as in <charconv>, literals and streams. No locale, no detour
/// through float or double: parsing rounds once, and printing is the shortest for the narrow type itself.
#pragma once

#include <mp/format/decimal.hpp>
#include <mp/format/operations.hpp>

#include <charconv>
#include <iosfwd>

namespace mp {

namespace detail {

/// What was read from the front of a text, and where reading stopped; length 0 means that nothing was a
/// number.
struct parsed_number {
    category kind = category::zero;
    bool negative = false;
    exact_value value{};
    int length = 0;
};

MP_HOST_DEVICE constexpr char lower_case(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

MP_HOST_DEVICE constexpr int digit_value(char c, int base) {
    const char lower = lower_case(c);
    const int value = lower >= '0' && lower <= '9'   ? lower - '0'
                      : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10
                                                     : 99;
    return value < base ? value : -1;
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

/// Reads an optional sign and decimal digits after an exponent letter; returns the end, or `first` if there
/// is no exponent. Larger exponents than any number needs are cut off, which changes no result.
MP_HOST_DEVICE constexpr const char* parse_exponent(const char* first, const char* last, char letter,
                                                    int& exponent) {
    if (first == last || lower_case(*first) != letter) return first;
    const char* p = first + 1;
    const bool negative = p != last && *p == '-';
    if (p != last && (*p == '-' || *p == '+')) ++p;
    if (p == last || digit_value(*p, 10) < 0) return first;
    int value = 0;
    for (; p != last && digit_value(*p, 10) >= 0; ++p) {
        if (value < 100000000) value = value * 10 + digit_value(*p, 10);
    }
    exponent = negative ? -value : value;
    return p;
}

/// Reads digits of the given base with at most one point among them. Exponents count digits of that base.
/// The separator ' may stand between digits where `separators` says so, as in C++ literals.
struct digit_string {
    char digits[max_decimal_digits]{};
    int count = 0;
    long long exponent = 0;
    bool more = false;
    bool any = false;
};

MP_HOST_DEVICE constexpr const char* parse_digits(const char* first, const char* last, int base,
                                                  bool separators, digit_string& out) {
    bool point = false;
    const char* p = first;
    for (; p != last; ++p) {
        if (*p == '.' && !point) {
            point = true;
            continue;
        }
        if (separators && *p == '\'') continue;
        const int value = digit_value(*p, base);
        if (value < 0) break;
        out.any = true;
        if (point) --out.exponent;
        if (out.count == 0 && value == 0) continue;
        if (out.count < max_decimal_digits) {
            out.digits[out.count++] = *p;
        } else {
            out.more = out.more || value != 0;
            ++out.exponent;
        }
    }
    return p;
}

MP_HOST_DEVICE constexpr exact_value from_hexadecimal(const digit_string& text, int exponent) {
    std::uint64_t significand = 0;
    bool sticky = text.more;
    int used = 0;
    for (; used < text.count && used < 15; ++used) {
        significand = significand << 4 | static_cast<std::uint64_t>(digit_value(text.digits[used], 16));
    }
    for (int i = used; i < text.count; ++i) sticky = sticky || text.digits[i] != '0';
    const long long power = exponent + 4 * (text.exponent + text.count - used);
    const int limited = power > 100000 ? 100000 : power < -100000 ? -100000 : static_cast<int>(power);
    return {false, limited, significand, sticky};
}

/// Reads a number as std::from_chars would; with `literal` the C++ literal syntax: 0x announces hexadecimal
/// and separators are allowed.
MP_HOST_DEVICE constexpr parsed_number parse_number(const char* first, const char* last,
                                                    std::chars_format format, bool literal = false) {
    parsed_number result;
    const char* p = first;
    if (p != last && *p == '-') {
        result.negative = true;
        ++p;
    }
    if (const int length = match_word(p, last, "inf"); length > 0) {
        const int whole = match_word(p, last, "infinity");
        result.kind = category::infinite;
        result.length = static_cast<int>(p - first) + (whole > 0 ? whole : length);
        return result;
    }
    if (const int length = match_word(p, last, "nan"); length > 0) {
        result.kind = category::nan;
        p += length;
        if (p != last && *p == '(') {
            const char* q = p + 1;
            while (q != last && (digit_value(*q, 10) >= 0 || *q == '_' ||
                                 (lower_case(*q) >= 'a' && lower_case(*q) <= 'z')))
                ++q;
            if (q != last && *q == ')') p = q + 1;
        }
        result.length = static_cast<int>(p - first);
        return result;
    }
    bool hexadecimal = format == std::chars_format::hex;
    if (literal && match_word(p, last, "0x") > 0) {
        hexadecimal = true;
        p += 2;
    }
    digit_string text;
    p = parse_digits(p, last, hexadecimal ? 16 : 10, literal, text);
    if (!text.any) return result;
    int exponent = 0;
    const bool takes_exponent =
        hexadecimal || format == std::chars_format::scientific || format == std::chars_format::general;
    if (takes_exponent) {
        const char* end = parse_exponent(p, last, hexadecimal ? 'p' : 'e', exponent);
        const bool required = format == std::chars_format::scientific;
        if (required && end == p) return result;
        p = end;
    }
    result.length = static_cast<int>(p - first);
    if (text.count == 0) return result;
    result.kind = category::finite;
    if (hexadecimal) {
        result.value = from_hexadecimal(text, exponent);
    } else {
        const long long power = text.exponent + exponent;
        const int limited = power > 100000 ? 100000 : power < -100000 ? -100000 : static_cast<int>(power);
        result.value = from_decimal(text.digits, text.count, text.more, limited);
    }
    result.value.negative = result.negative;
    return result;
}

template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> pack_parsed(const parsed_number& x, Context&& context) {
    switch (x.kind) {
        case category::infinite:
            return pack_infinity<Format>(x.negative, context);
        case category::nan:
            return pack_nan<Format>(x.negative);
        case category::finite:
            return round_and_pack<Format>(x.value, context);
        case category::zero:
            break;
    }
    return pack_zero<Format>(x.negative, context);
}

/// Body of the literal operators; a text that is no number, or one out of range, does not compile.
template <class Value>
consteval Value parse_literal(const char* digits) {
    const char* last = digits;
    while (*last != 0) ++last;
    const parsed_number x = parse_number(digits, last, std::chars_format::general, true);
    if (x.length == 0 || digits + x.length != last)
        throw "mp: this literal is not a decimal or hexadecimal number";
    const Value result = Value::from_bits(pack_parsed<typename Value::format>(x, {}));
    if (x.kind == category::finite && !isfinite(result)) throw "mp: this literal is too large for its type";
    return result;
}

/// Copies text to [first, last), or reports that it does not fit.
MP_HOST_DEVICE constexpr std::to_chars_result copy_text(char* first, char* last, const char* text,
                                                        int length) {
    if (last - first < length) return {last, std::errc::value_too_large};
    for (int i = 0; i < length; ++i) first[i] = text[i];
    return {first + length, std::errc{}};
}

/// The digits in scientific notation, with an exponent of at least two digits.
MP_HOST_DEVICE constexpr int write_scientific(const decimal_digits& d, char* out) {
    int length = 0;
    out[length++] = d.digits[0];
    if (d.count > 1) out[length++] = '.';
    for (int i = 1; i < d.count; ++i) out[length++] = d.digits[i];
    out[length++] = 'e';
    out[length++] = d.exponent < 0 ? '-' : '+';
    const int magnitude = d.exponent < 0 ? -d.exponent : d.exponent;
    if (magnitude >= 100) out[length++] = static_cast<char>('0' + magnitude / 100);
    out[length++] = static_cast<char>('0' + magnitude / 10 % 10);
    out[length++] = static_cast<char>('0' + magnitude % 10);
    return length;
}

/// The digits in fixed notation. A whole number that has more places than digits is written out exactly, as
/// std::to_chars does: among texts of equal length the one nearest to the value is wanted.
MP_HOST_DEVICE constexpr int write_fixed(const decimal_digits& d, exact_value x, char* out) {
    int length = 0;
    if (d.exponent < 0) {
        out[length++] = '0';
        out[length++] = '.';
        for (int i = -1; i > d.exponent; --i) out[length++] = '0';
        for (int i = 0; i < d.count; ++i) out[length++] = d.digits[i];
        return length;
    }
    if (d.exponent + 1 > d.count) {
        // Whole numbers only come here, so nothing is lost when the exponent is negative.
        wide_integer<8> value(x.exponent < 0 ? x.significand >> -x.exponent : x.significand);
        if (x.exponent > 0) value.shift_left(x.exponent);
        for (int i = d.exponent; i >= 0; --i) {
            wide_integer<8> place(1);
            place.multiply_power_of_ten(i);
            char digit = '0';
            for (; value.compare(place) >= 0; ++digit) value.subtract(place);
            // The shortest digits may be those of the next power of ten: 1e2 for 96 in e4m3fn.
            if (length == 0 && digit == '0') continue;
            out[length++] = digit;
        }
        return length;
    }
    for (int i = 0; i < d.count; ++i) {
        if (i == d.exponent + 1) out[length++] = '.';
        out[length++] = d.digits[i];
    }
    return length;
}

}  // namespace detail

/// Writes the shortest text that reads back as the same number, in fixed or scientific notation, whichever is
/// shorter (fixed if equal), as std::to_chars does for float. At most 24 characters. On failure, as in
/// <charconv>, ec is std::errc::value_too_large and ptr is last.
///
///     char buffer[24];
///     auto [end, ec] = mp::to_chars(buffer, buffer + 24, 0.1_h);   // "0.1"
template <class Format>
MP_HOST_DEVICE constexpr std::to_chars_result to_chars(char* first, char* last, basic_float<Format> x) {
    char text[64]{};
    int length = 0;
    if (signbit(x)) text[length++] = '-';
    if (isnan(x) || isinf(x)) {
        const char* word = isnan(x) ? "nan" : "inf";
        for (int i = 0; i < 3; ++i) text[length++] = word[i];
    } else if (is_zero(x)) {
        text[length++] = '0';
    } else {
        const detail::exact_value value = detail::unpack<Format>(x.bits());
        const detail::decimal_digits digits = detail::shortest_digits<Format>(value);
        char scientific[32]{};
        const int scientific_length = detail::write_scientific(digits, scientific);
        const int point = digits.exponent + 1;
        const int fixed_length = point <= 0              ? 2 - point + digits.count
                                 : digits.count <= point ? point
                                                         : digits.count + 1;
        if (fixed_length <= scientific_length) {
            length += detail::write_fixed(digits, value, text + length);
        } else {
            for (int i = 0; i < scientific_length; ++i) text[length++] = scientific[i];
        }
    }
    return detail::copy_text(first, last, text, length);
}

/// Writes in the given notation, with `precision` digits after the point (significant digits for general),
/// exactly rounded; without a precision the shortest digits that a float needs to be told apart.
template <class Format>
std::to_chars_result to_chars(char* first, char* last, basic_float<Format> x, std::chars_format format,
                              int precision) {
    return std::to_chars(first, last, static_cast<float>(x), format, precision);
}

/// Reads a number as std::from_chars does: no leading space or plus sign, "inf" and "nan" in any case,
/// hexadecimal without 0x when asked for. The digits are rounded once, however many there are, as the
/// projection says. On a text that is no number, ec is std::errc::invalid_argument; when a finite text
/// overflows, or a non-zero one becomes zero, it is std::errc::result_out_of_range; in both cases `value`
/// keeps its old value.
template <class Format>
MP_HOST_DEVICE constexpr std::from_chars_result from_chars(
    const char* first, const char* last, basic_float<Format>& value,
    std::chars_format format = std::chars_format::general, projection p = {}) {
    const detail::parsed_number x = detail::parse_number(first, last, format);
    if (x.length == 0) return {first, std::errc::invalid_argument};
    const auto result = basic_float<Format>::from_bits(detail::pack_parsed<Format>(x, p));
    const bool out_of_range = x.kind == detail::category::finite && (!isfinite(result) || is_zero(result));
    if (!out_of_range) value = result;
    return {first + x.length, out_of_range ? std::errc::result_out_of_range : std::errc{}};
}

/// Writes the shortest text that reads back as the same number, padded to the stream's width. When the stream
/// asks for a notation or for a precision other than the default 6, the exact value is printed that way.
template <class Character, class Traits, class Format>
std::basic_ostream<Character, Traits>& operator<<(std::basic_ostream<Character, Traits>& stream,
                                                  basic_float<Format> x) {
    using base = std::basic_ostream<Character, Traits>;
    if ((stream.flags() & base::floatfield) != typename base::fmtflags{} || stream.precision() != 6) {
        return stream << static_cast<float>(x);
    }
    char text[32]{};
    const char sign = (stream.flags() & base::showpos) && !signbit(x) ? '+' : '\0';
    char* begin = text;
    if (sign != '\0') *begin++ = sign;
    *to_chars(begin, text + sizeof text - 1, x).ptr = '\0';
    return stream << static_cast<const char*>(text);
}

/// Reads a number after white space; the digits are rounded once. A text that is no number, or one out of
/// range, sets failbit and leaves `x` as it was.
template <class Character, class Traits, class Format>
std::basic_istream<Character, Traits>& operator>>(std::basic_istream<Character, Traits>& stream,
                                                  basic_float<Format>& x) {
    using base = std::basic_istream<Character, Traits>;
    const typename base::sentry ready(stream);
    if (!ready) return stream;
    constexpr int capacity = 1024;
    char text[capacity]{};
    int length = 0;
    for (auto c = stream.peek(); !Traits::eq_int_type(c, Traits::eof()); c = stream.peek()) {
        const char narrow = stream.narrow(Traits::to_char_type(c), '\0');
        const char lower = detail::lower_case(narrow);
        const char before = length > 0 ? detail::lower_case(text[length - 1]) : '\0';
        const bool sign = (narrow == '-' || narrow == '+') && (length == 0 || before == 'e' || before == 'p');
        const bool belongs =
            sign || narrow == '.' || detail::digit_value(narrow, 10) >= 0 || (lower >= 'a' && lower <= 'z');
        if (!belongs || length == capacity - 1) break;
        text[length++] = narrow;
        stream.get();
    }
    if (stream.eof() && length > 0) stream.clear(stream.rdstate() & ~base::failbit);
    const char* begin = text[0] == '+' ? text + 1 : text;
    basic_float<Format> value{};
    const std::from_chars_result result = from_chars(begin, static_cast<const char*>(text) + length, value);
    if (result.ec != std::errc{} || result.ptr != text + length) {
        stream.setstate(base::failbit);
    } else {
        x = value;
    }
    return stream;
}

}  // namespace mp
