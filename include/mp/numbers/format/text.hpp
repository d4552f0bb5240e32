// SPDX-License-Identifier: MIT
/// \file
/// Numbers as text: to_chars and from_chars as in `<charconv>`, literals and streams, for the numbers of every
/// format and for float and double. No locale, no detour through another type: reading rounds once, printing
/// rounds once from the exact value, and without a precision it is the shortest for the narrow type itself.
#pragma once

#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/format/parsing.hpp>
#include <mp/numbers/format/printing.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iosfwd>

// A number taken from a stream one character at a time, as a stream must be read: what belongs to the number
// is decided before the next character is seen, and nothing is put back.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Takes characters as std::num_get takes those of a float in the C locale: a sign; digits with at most one
/// point; then, behind at least one digit, `e`, a sign, and more digits. So "3.5kg" leaves "kg", "1.5.5"
/// leaves ".5", and "1e" is no number. Besides these, `inf`, `infinity` and `nan` in any case.
///
/// A text may be of any length: of its digits those are kept on which a rounding of the format can depend,
/// and whether what follows them is all zeros (see decimal_limits_of()).
template <class Class>
class number_extraction {
public:
    /// Takes `c` if it can go on with what was taken before; false ends the number.
    constexpr bool take(char c) {
        switch (place_) {
            case place::front:
                place_ = place::sign;
                if (c == '-' || c == '+') {
                    negative_ = c == '-';
                    return true;
                }
                [[fallthrough]];
            case place::sign:
                if (lower_case(c) == 'i' || lower_case(c) == 'n') {
                    word_ = lower_case(c) == 'i' ? "infinity" : "nan";
                    place_ = place::word;
                    return take_letter(c);
                }
                place_ = place::digits;
                [[fallthrough]];
            case place::digits:
                return take_digit_point_or_e(c);
            case place::behind_e:
                place_ = place::exponent;
                if (c == '-' || c == '+') {
                    negative_exponent_ = c == '-';
                    return true;
                }
                [[fallthrough]];
            case place::exponent:
                return take_exponent_digit(c);
            case place::word:
                break;
        }
        return take_letter(c);
    }

    /// What was taken; length 0 if that is no number. Its digits are kept in this object.
    [[nodiscard]] constexpr parsed_number result() {
        parsed_number x{};
        x.negative = negative_;
        x.text = text_;
        if (place_ == place::word) {
            if (letters_ != 3 && word_[letters_] != '\0') return x;
            x.kind = word_[0] == 'n' ? category::nan : category::infinite;
        } else {
            if (!text_.any || (has_e_ && !has_exponent_)) return x;
            if (text_.count != 0) x.kind = category::finite;
            x.exponent = negative_exponent_ ? -exponent_ : exponent_;
            x.text.first = digits_;
            if (more_) {
                // One digit stands for all that were not kept.
                digits_[text_.count] = '1';
                ++x.text.count;
                --x.text.exponent;
            }
        }
        x.length = 1;
        return x;
    }

private:
    enum class place : unsigned char { front, sign, digits, behind_e, exponent, word };

    constexpr bool take_letter(char c) {
        if (word_[letters_] == '\0' || lower_case(c) != word_[letters_]) return false;
        ++letters_;
        return true;
    }

    constexpr bool take_digit_point_or_e(char c) {
        const int value = digit_value(c, 10);
        if (value >= 0) {
            add_digit(value);
            return true;
        }
        if (c == '.' && !has_point_) {
            has_point_ = true;
            return true;
        }
        if (lower_case(c) == 'e' && text_.any) {
            has_e_ = true;
            place_ = place::behind_e;
            return true;
        }
        return false;
    }

    constexpr void add_digit(int value) {
        text_.any = true;
        if (has_point_) --text_.exponent;
        if (text_.count == 0 && value == 0) return;
        if (text_.count == digits_kept) {
            ++text_.exponent;
            more_ = more_ || value != 0;
            return;
        }
        digits_[text_.count++] = static_cast<char>('0' + value);
        if (text_.count <= 19) text_.leading = text_.leading * 10 + static_cast<std::uint64_t>(value);
    }

    /// Larger exponents than any number needs are cut off, as in parse_exponent.
    constexpr bool take_exponent_digit(char c) {
        const int value = digit_value(c, 10);
        if (value < 0) return false;
        has_exponent_ = true;
        if (exponent_ < largest_text_exponent) exponent_ = exponent_ * 10 + value;
        return true;
    }

    static constexpr int digits_kept = decimal_limits_of<Class>().digits;
    static_assert(digits_kept >= 19, "mp: the leading digits are all digits if there are no more");

    place place_ = place::front;
    bool negative_ = false;
    bool has_point_ = false;
    bool more_ = false;  ///< of the digits that were not kept not all are zeros
    bool has_e_ = false;
    bool has_exponent_ = false;
    bool negative_exponent_ = false;
    int letters_ = 0;
    const char* word_ = "";
    std::int64_t exponent_ = 0;
    digit_string text_{};
    char digits_[std::size_t{digits_kept} + 1];
};

/// Never defined: a literal that comes here is no constant expression, and does not compile.
[[noreturn]] void refuse_literal(const char* why);

/// Body of the literal operators; a text that is no number, or one out of range, does not compile. Neither do
/// whole numbers with a leading zero, which would be octal elsewhere in C++.
template <class Value, char... Digits>
consteval Value parse_literal() {
    constexpr char text[] = {Digits..., 0};
    const char* const digits = text;
    const char* last = digits;
    bool whole = true;
    for (; *last != 0; ++last) whole = whole && (digit_value(*last, 10) >= 0 || *last == '\'');
    if (whole && last - digits > 1 && *digits == '0') refuse_literal("mp: octal literals are not supported");
    const parsed_number x = parse_number(digits, last, {std::chars_format::general, true});
    if (x.length == 0 || digits + x.length != last)
        refuse_literal("mp: this literal is not a decimal or hexadecimal number");
    const auto [bits, in_range] = pack_parsed<typename Value::format>(x, projection{});
    const Value result = Value::from_bits(bits);
    if (x.kind == category::finite && is_zero(result))
        refuse_literal("mp: this literal is too small for its type");
    if (x.kind == category::zero && !in_range) refuse_literal("mp: the type of this literal has no zero");
    if (!in_range) refuse_literal("mp: this literal is too large for its type");
    return result;
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Writes the shortest text that reads back as the same number, in fixed or scientific notation, whichever is
/// shorter (fixed if equal), as std::to_chars does for float. At most 24 characters. On failure, as in
/// `<charconv>`, ec is std::errc::value_too_large and ptr is last.
///
///     char buffer[24];
///     auto [end, ec] = mp::to_chars(buffer, buffer + 24, 0.1_h);   // "0.1"
template <number T>
MP_HOST_DEVICE constexpr std::to_chars_result to_chars(char* first, char* last, T x) noexcept {
    return detail::write_bounded<detail::format_of_t<T>>(first, last, detail::bits_of(x), {});
}

/// The shortest digits that read back as the same number in the given notation; std::chars_format::general
/// chooses as printf's %g would. Hexadecimal notation is exact, without 0x, and begins with 1 for every
/// number but zero.
template <number T>
MP_HOST_DEVICE constexpr std::to_chars_result to_chars(char* first, char* last, T x,
                                                       std::chars_format format) noexcept {
    return detail::write_bounded<detail::format_of_t<T>>(first, last, detail::bits_of(x),
                                                         {.form = detail::to_notation(format)});
}

/// Writes in the given notation, with `precision` digits after the point (significant digits for general),
/// as printf would: the exact value rounded once to nearest, ties to the even digit. A negative precision is
/// 6, and all digits in hexadecimal notation.
///
///     mp::to_chars(buffer, buffer + 24, 0.1_h, std::chars_format::fixed, 12);   // "0.099975585938"
template <number T>
MP_HOST_DEVICE constexpr std::to_chars_result to_chars(char* first, char* last, T x, std::chars_format format,
                                                       int precision) noexcept {
    const detail::notation form = detail::to_notation(format);
    if (precision < 0 && form != detail::notation::hexadecimal) precision = 6;
    return detail::write_bounded<detail::format_of_t<T>>(first, last, detail::bits_of(x),
                                                         {.form = form, .precision = precision});
}

}}  // namespace mp

namespace mp {

/// What reading a text gave: where reading stopped, how it went, and the number.
template <number T>
struct read_result {
    const char* ptr;
    std::errc ec;
    T value;  ///< zero bits where the text is no number
};

}  // namespace mp

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Reads a number as from_chars does, and returns what the text was rounded to even if that is out of range,
/// as strtod does: infinity (or NaN, or the largest finite number) for a text that overflows, zero for one
/// that is too small, and what the format has in place of what it has not, as round_to would.
///
///     mp::environment env;
///     auto [end, ec, x] = mp::read_number<mp::half>(first, last, std::chars_format::general, env);
template <number T, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr read_result<T> read_number(
    const char* first, const char* last, std::chars_format format = std::chars_format::general,
    Context&& context = projection{}) noexcept {
    using number_format = detail::format_of_t<T>;
    const detail::parsed_number x = detail::parse_number(first, last, {format, false});
    if (x.length == 0) return {first, std::errc::invalid_argument, detail::number_from_bits<T>(0)};
    const detail::read_code<number_format> result = detail::pack_parsed<number_format>(x, context);
    return {first + x.length, result.in_range ? std::errc{} : std::errc::result_out_of_range,
            detail::number_from_bits<T>(result.bits)};
}

/// Reads a number as std::from_chars does: no leading space or plus sign, "inf" and "nan" in any case,
/// hexadecimal without 0x when asked for. The digits are rounded once, however many there are, as the
/// projection or environment says; an environment also gets the flags.
///
/// On a text that is no number, ec is std::errc::invalid_argument and ptr is first. It is
/// std::errc::result_out_of_range, with ptr behind the text, when the format has no such number: when a
/// finite text overflows, or a non-zero one becomes zero; for "inf", "nan" or a zero that the format does not
/// have; for a minus sign before anything but zero or NaN in a format without signs. A projection that
/// saturates accepts what it takes to a finite number (never NaN). In both cases `value` keeps its old value.
///
///     mp::half x;
///     auto [end, ec] = mp::from_chars(first, last, x, std::chars_format::general,
///                                     {.round = mp::rounding::upward});
template <number T, detail::context Context = const projection&>
MP_HOST_DEVICE constexpr std::from_chars_result from_chars(
    const char* first, const char* last, T& value, std::chars_format format = std::chars_format::general,
    Context&& context = projection{}) noexcept {
    const read_result<T> result = read_number<T>(first, last, format, context);
    if (result.ec == std::errc{}) value = result.value;
    return {result.ptr, result.ec};
}
/// Overload in general notation.
///
///     mp::environment env;
///     mp::from_chars(first, last, x, env);
///     bool exact = !env.raised.test(mp::status_flag::inexact);
template <number T, detail::context Context>
MP_HOST_DEVICE constexpr std::from_chars_result from_chars(const char* first, const char* last, T& value,
                                                           Context&& context) noexcept {
    return from_chars(first, last, value, std::chars_format::general, context);
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// How a stream wants its numbers. The default, no notation and precision 6, stands for the shortest text.
template <class Character, class Traits>
number_style style_of(const std::basic_ostream<Character, Traits>& stream) {
    using base = std::basic_ostream<Character, Traits>;
    const auto flags = stream.flags();
    const auto form = flags & base::floatfield;
    number_style style{};
    style.alternate = (flags & base::showpoint) != typename base::fmtflags{};
    style.upper = (flags & base::uppercase) != typename base::fmtflags{};
    if (form == (base::fixed | base::scientific)) {
        style.form = notation::hexadecimal;
        return style;
    }
    if (form == typename base::fmtflags{} && stream.precision() == 6 && !style.alternate) return style;
    style.form = form == base::fixed        ? notation::fixed
                 : form == base::scientific ? notation::scientific
                                            : notation::general;
    const auto precision = stream.precision();
    style.precision = precision < 0 ? 6 : precision > 1000000000 ? 1000000000 : static_cast<int>(precision);
    return style;
}

/// Writes a number to a stream, as operator<< does.
template <class Class, class Character, class Traits>
std::basic_ostream<Character, Traits>& insert_number(std::basic_ostream<Character, Traits>& stream,
                                                     const decoded_number& x) {
    using base = std::basic_ostream<Character, Traits>;
    const typename base::sentry ready(stream);
    if (!ready) return stream;
    const number_style style = style_of(stream);
    text_pieces<Class> text(x, style);
    char head[3];
    int head_length = 0;
    const bool plus = (stream.flags() & base::showpos) != typename base::fmtflags{};
    if (x.negative || plus) head[head_length++] = x.negative ? '-' : '+';
    // As the standard has it, padding inside is behind a sign, or else behind "0x".
    const auto place = stream.flags() & base::adjustfield;
    int pad_after = place == base::internal ? head_length : 0;
    if (style.form == notation::hexadecimal && (x.kind == category::zero || x.kind == category::finite)) {
        head[head_length++] = '0';
        head[head_length++] = style.upper ? 'X' : 'x';
        if (place == base::internal && head_length == 2) pad_after = 2;
    }
    std::int64_t padding = stream.width() - text.length() - head_length;
    bool failed = false;
    const auto put_wide = [&](Character c) {
        failed = failed || Traits::eq_int_type(stream.rdbuf()->sputc(c), Traits::eof());
    };
    const auto put = [&](char c) { put_wide(static_cast<Character>(c)); };
    const auto pad = [&] {
        for (; padding > 0 && !failed; --padding) put_wide(stream.fill());
    };
    for (int i = 0; i < pad_after; ++i) put(head[i]);
    if (place != base::left) pad();
    for (int i = pad_after; i < head_length; ++i) put(head[i]);
    text.write(put);
    pad();
    stream.width(0);
    if (failed) stream.setstate(base::badbit);
    return stream;
}

/// Takes characters from a stream's buffer as long as they belong to the number. Returns what to tell the
/// stream about that.
template <class Character, class Traits, class Class>
typename std::basic_istream<Character, Traits>::iostate extract(std::basic_istream<Character, Traits>& stream,
                                                                number_extraction<Class>& number) {
    using base = std::basic_istream<Character, Traits>;
    auto* const buffer = stream.rdbuf();
    for (auto next = buffer->sgetc(); !Traits::eq_int_type(next, Traits::eof()); next = buffer->snextc()) {
        // The characters of numbers have the same codes in every kind of characters.
        const Character c = Traits::to_char_type(next);
        const char narrow = static_cast<std::uint_least32_t>(c) < 128 ? static_cast<char>(c) : '\0';
        if (!number.take(narrow)) return base::goodbit;
    }
    return base::eofbit;
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Writes the shortest text that reads back as the same number, padded to the stream's width. When the stream
/// asks for a notation, for a point, or for a precision other than the default 6, the exact value is rounded
/// once to that. The stream's locale is not asked for its decimal point.
template <class Character, class Traits, class Format>
std::basic_ostream<Character, Traits>& operator<<(std::basic_ostream<Character, Traits>& stream,
                                                  basic_float<Format> x) {
    return detail::insert_number<detail::text_class<Format>>(stream, detail::decode<Format>(x.bits()));
}

/// Reads a number after white space, as operator>> of float does in the C locale: it takes the characters
/// that can belong to a number and leaves the first one that cannot. "3.5kg" gives 3.5 and leaves "kg";
/// "1.5.5" gives 1.5 and leaves ".5"; "1e" is taken and is no number. A number of any length is read as a
/// whole, in bounded memory, and its digits are rounded once. As with float, a text that is no number sets
/// failbit and makes `x` zero; one too large sets failbit and makes `x` the largest number of its sign; one
/// too small makes `x` zero and is no failure. Differences from float:
///
/// - inf, infinity and nan are read, in any case, because operator<< writes them;
/// - a NaN or infinity that the format does not have is out of range;
/// - no separators of thousands and no decimal point of the stream's locale. (White space is the locale's.)
///
/// Hexadecimal numbers are not read: "0x1p3" gives 0 and leaves "x1p3".
template <class Character, class Traits, class Format>
std::basic_istream<Character, Traits>& operator>>(std::basic_istream<Character, Traits>& stream,
                                                  basic_float<Format>& x) {
    using base = std::basic_istream<Character, Traits>;
    const typename base::sentry ready(stream);
    if (!ready) return stream;
    detail::number_extraction<detail::text_class<Format>> number;
    auto state = base::goodbit;
#if defined(__cpp_exceptions)
    try {
        state = detail::extract(stream, number);
    } catch (...) {
        // As all formatted input does: badbit, and the exception itself only for those who asked for it.
        try {
            stream.setstate(base::badbit);
        } catch (...) {
        }
        if ((stream.exceptions() & base::badbit) != base::goodbit) throw;
        return stream;
    }
#else
    state = detail::extract(stream, number);
#endif
    const detail::parsed_number read = number.result();
    const detail::read_code<Format> code = detail::code_of_extracted<Format>(read);
    x = basic_float<Format>::from_bits(code.bits);
    if (!code.in_range) state |= base::failbit;
    stream.setstate(state);
    return stream;
}

}}  // namespace mp
