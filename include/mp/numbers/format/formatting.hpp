// SPDX-License-Identifier: MIT
/// \file
/// The format specifications of std::format and {fmt} for numbers, apart from either library:
///
///     [[fill]align][sign][#][0][width][.precision][type]
///
/// with align <, >, ^; sign +, -, space; type a A e E f F g G. Width and precision may be {} or {n}. The
/// texts are those of printing.hpp. <mp/frontends/interop/fmt.hpp> and <mp/frontends/interop/std_format.hpp> are thin covers of
/// this.
#pragma once

#include <mp/error.hpp>
#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/format/printing.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

enum class alignment : unsigned char { none, left, right, center };

/// A width or precision that another argument of the formatting call gives.
template <class Character>
struct argument_reference {
    enum class origin : unsigned char { none, index, name };
    origin from = origin::none;
    int index = 0;
    const Character* name = nullptr;
    int name_length = 0;
};

/// A parsed specification.
template <class Character>
struct format_spec {
    Character fill[4] = {Character(' ')};  ///< the code units of one character
    int fill_length = 1;
    alignment align = alignment::none;
    char sign = '-';  ///< what non-negative numbers get: '+', ' ', or '-' for nothing
    bool alternate = false;
    bool zeros = false;
    int width = 0;
    int precision = -1;
    char type = '\0';
    argument_reference<Character> width_argument;
    argument_reference<Character> precision_argument;
};

// What the parser says; the covers throw it in the words of their library.
inline constexpr const char* locale_refused =
    "mp: the option L is not supported: the text of a number does not depend on a locale";
inline constexpr const char* type_refused = "mp: a number is formatted as one of a A e E f F g G";
inline constexpr const char* spec_refused = "mp: this is no format specification of a number";
inline constexpr const char* size_refused =
    "mp: width and precision of a number are whole numbers up to 2147483647, and not negative";

/// The whole number that an argument is, from 0 to the largest int; others throw an Error.
template <class Error>
struct size_visitor {
    template <class Argument>
    int operator()(Argument value) const {
        if constexpr (std::is_integral_v<Argument> && !std::is_same_v<Argument, bool>) {
            if (value >= 0 && static_cast<unsigned long long>(value) <= 2147483647u)
                return static_cast<int>(value);
        }
        throw_error(Error(size_refused));
    }
};

template <class Character>
constexpr alignment to_alignment(Character c) {
    return c == Character('<')   ? alignment::left
           : c == Character('>') ? alignment::right
           : c == Character('^') ? alignment::center
                                 : alignment::none;
}

/// Code units of the character that begins with this one: UTF-8 in char, one in wider types.
template <class Character>
constexpr int units_of_character(Character lead) {
    if constexpr (sizeof(Character) > 1) return 1;
    const auto byte = static_cast<unsigned char>(lead);
    return byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

template <class Character>
constexpr bool is_digit(const Character* p, const Character* last) {
    return p != last && *p >= Character('0') && *p <= Character('9');
}

/// Parses format specifications. `Arguments` knows the library's rules about arguments that are referred to,
/// next() and check(index) and allows_names, and reports errors by fail(message), which does not return.
template <class Character, class Arguments>
class spec_parser {
public:
    constexpr spec_parser(const Character* first, const Character* last, Arguments& arguments)
        : p_(first), last_(last), arguments_(arguments) {}

    /// Returns the end of the specification: the closing brace, or the end of the text.
    constexpr const Character* parse(format_spec<Character>& spec) {
        parse_alignment(spec);
        if (p_ != last_ && (*p_ == Character('+') || *p_ == Character('-') || *p_ == Character(' '))) {
            spec.sign = static_cast<char>(*p_++);
        }
        spec.alternate = accept('#');
        spec.zeros = accept('0');
        parse_size(spec.width, spec.width_argument);
        if (accept('.')) {
            if (!is_digit(p_, last_) && (p_ == last_ || *p_ != Character('{'))) arguments_.fail(spec_refused);
            parse_size(spec.precision, spec.precision_argument);
        }
        if (accept('L')) arguments_.fail(locale_refused);
        if (p_ != last_ && *p_ != Character('}')) {
            for (const char* type = "aAeEfFgG"; *type != '\0'; ++type) {
                if (*p_ == Character(*type)) spec.type = *type;
            }
            if (spec.type == '\0') arguments_.fail(type_refused);
            ++p_;
        }
        if (p_ != last_ && *p_ != Character('}')) arguments_.fail(spec_refused);
        return p_;
    }

private:
    constexpr bool accept(char c) {
        if (p_ == last_ || *p_ != Character(c)) return false;
        ++p_;
        return true;
    }

    constexpr void parse_alignment(format_spec<Character>& spec) {
        if (p_ == last_) return;
        const int units = units_of_character(*p_);
        if (last_ - p_ > units && to_alignment(p_[units]) != alignment::none) {
            if (*p_ == Character('{') || *p_ == Character('}')) arguments_.fail(spec_refused);
            for (int i = 0; i < units; ++i) spec.fill[i] = p_[i];
            spec.fill_length = units;
            spec.align = to_alignment(p_[units]);
            p_ += units + 1;
        } else if (to_alignment(*p_) != alignment::none) {
            spec.align = to_alignment(*p_++);
        }
    }

    constexpr int parse_integer() {
        std::int64_t value = 0;
        for (; is_digit(p_, last_); ++p_) {
            value = 10 * value + static_cast<std::int64_t>(*p_ - Character('0'));
            if (value > 2147483647) arguments_.fail(size_refused);
        }
        return static_cast<int>(value);
    }

    constexpr void parse_size(int& size, argument_reference<Character>& argument) {
        if (is_digit(p_, last_)) {
            size = parse_integer();
            return;
        }
        if (!accept('{')) return;
        using origin = typename argument_reference<Character>::origin;
        if (is_digit(p_, last_)) {
            argument.from = origin::index;
            argument.index = parse_integer();
            arguments_.check(argument.index);
        } else if (p_ != last_ && *p_ == Character('}')) {
            argument.from = origin::index;
            argument.index = arguments_.next();
        } else {
            argument.from = origin::name;
            argument.name = p_;
            while (p_ != last_ && *p_ != Character('}')) ++p_;
            argument.name_length = static_cast<int>(p_ - argument.name);
            if (!arguments_.allows_names || argument.name_length == 0) arguments_.fail(spec_refused);
        }
        if (!accept('}')) arguments_.fail(spec_refused);
    }

    const Character* p_;
    const Character* last_;
    Arguments& arguments_;
};

/// How the type and the precision of a specification want a number: e, f and g have precision 6 if none is
/// given; without a type a precision means general notation.
template <class Character>
constexpr number_style style_of(const format_spec<Character>& spec) {
    number_style style{notation::shortest, spec.precision, spec.alternate, false};
    style.upper = spec.type >= 'A' && spec.type <= 'G';
    switch (spec.type) {
        case '\0':
            if (spec.precision >= 0) style.form = notation::general;
            return style;
        case 'a':
        case 'A':
            style.form = notation::hexadecimal;
            return style;
        case 'e':
        case 'E':
            style.form = notation::scientific;
            break;
        case 'f':
        case 'F':
            style.form = notation::fixed;
            break;
        default:
            style.form = notation::general;
            break;
    }
    if (style.precision < 0) style.precision = 6;
    return style;
}

/// Where the libraries differ.
struct format_rules {
    bool prefix;         ///< hexadecimal numbers have 0x, as in printf
    bool specials_left;  ///< infinities and NaNs are aligned left if nothing is said
};

/// Writes a number as the specification says, and returns the end.
template <class Class, class Character, class Output>
constexpr Output format_decoded(Output out, const decoded_number& x, const format_spec<Character>& spec,
                                format_rules rules) {
    const number_style style = style_of(spec);
    text_pieces<Class> text(x, style);
    const char sign = x.negative ? '-' : spec.sign == '-' ? '\0' : spec.sign;
    const bool finite = x.kind == category::zero || x.kind == category::finite;
    const bool prefix = rules.prefix && finite && style.form == notation::hexadecimal;
    const std::int64_t length = text.length() + (sign != '\0' ? 1 : 0) + (prefix ? 2 : 0);
    const std::int64_t padding = spec.width > length ? spec.width - length : 0;
    // Zeros go between the sign and a finite number, if nothing is said about the place.
    const bool zeros = spec.zeros && spec.align == alignment::none && finite;
    const bool left_by_default = rules.specials_left && !finite && !spec.zeros;
    const alignment align = spec.align != alignment::none ? spec.align
                            : left_by_default             ? alignment::left
                                                          : alignment::right;
    const std::int64_t before = zeros || align == alignment::left ? 0
                                : align == alignment::center      ? padding / 2
                                                                  : padding;
    const auto put = [&](char c) { *out++ = static_cast<Character>(c); };
    const auto pad = [&](std::int64_t count) {
        for (; count > 0; --count) {
            for (int i = 0; i < spec.fill_length; ++i) *out++ = spec.fill[i];
        }
    };
    pad(before);
    if (sign != '\0') put(sign);
    if (prefix) {
        put('0');
        put(spec.type == 'A' ? 'X' : 'x');
    }
    if (zeros) {
        for (std::int64_t i = 0; i < padding; ++i) put('0');
    }
    text.write(put);
    if (!zeros) pad(padding - before);
    return out;
}
template <class Character, class Output, number T>
constexpr Output format_number(Output out, T x, const format_spec<Character>& spec, format_rules rules) {
    using format = format_of_t<T>;
    return format_decoded<text_class<format>>(static_cast<Output&&>(out), decode<format>(bits_of(x)), spec,
                                              rules);
}

}}  // namespace mp::detail
