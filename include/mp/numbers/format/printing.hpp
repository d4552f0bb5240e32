// SPDX-License-Identifier: MIT
/// \file
/// Numbers in fixed, scientific, general and hexadecimal notation, rounded once from the exact value. What
/// is to be written is decided first (number_text), and then goes to any sink, so that its length can be
/// counted before it is written.
#pragma once

#include <mp/numbers/format/digits.hpp>

#include <charconv>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// `shortest` is fixed or scientific notation, whichever is shorter, and fixed if they are equal. Whole
/// numbers in fixed notation have all their digits.
enum class notation : unsigned char { shortest, general, fixed, scientific, hexadecimal };

/// How a number is to be written. Without a precision (any negative one) with the fewest digits that read
/// back as the same number, in hexadecimal notation all digits.
struct number_style {
    notation form = notation::shortest;
    int precision = -1;
    bool alternate = false;  ///< always with a point, and general notation keeps its zeros, as # in printf
    bool upper = false;
};

MP_HOST_DEVICE constexpr char upper_case(char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - ('a' - 'A')) : c;
}

/// A sink that counts.
struct counting_sink {
    std::int64_t length = 0;
    MP_HOST_DEVICE constexpr void put(char) { ++length; }
    MP_HOST_DEVICE constexpr void fill(char, int count) { length += count; }
};

/// A sink that writes to [first, last), and remembers whether that was too small.
struct bounded_sink {
    char* next;
    char* last;
    bool overflows = false;
    MP_HOST_DEVICE constexpr void put(char c) {
        if (next == last) {
            overflows = true;
        } else {
            *next++ = c;
        }
    }
    MP_HOST_DEVICE constexpr void fill(char c, int count) {
        for (; count > 0 && !overflows; --count) put(c);
    }
};

/// The text of one number, ready to be written.
template <class Format>
class number_text {
public:
    MP_HOST_DEVICE constexpr number_text(storage_of<Format> bits, const number_style& style)
        : point_(style.alternate), upper_(style.upper) {
        kind_ = categorize<Format>(bits);
        // The NaN in the place of minus zero has no sign.
        const bool no_sign = kind_ == category::nan && Format::nans == nan_encoding::negative_zero;
        negative_ = is_negative<Format>(bits) && !no_sign;
        if (kind_ == category::nan || kind_ == category::infinite) return;
        exact_value value{};
        if (kind_ == category::finite) value = unpack<Format>(bits);
        if (style.form == notation::hexadecimal) {
            prepare_hexadecimal(value, style.precision);
        } else if (style.precision < 0) {
            prepare_shortest(value, (bits & 1) == 0, style);
        } else {
            prepare_rounded(value, style);
        }
    }

    [[nodiscard]] MP_HOST_DEVICE constexpr bool is_negative_number() const { return negative_; }
    [[nodiscard]] MP_HOST_DEVICE constexpr bool is_finite() const {
        return kind_ == category::zero || kind_ == category::finite;
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr bool is_hexadecimal() const {
        return form_ == notation::hexadecimal;
    }

    /// The text without a sign.
    MP_ANY_EXECUTION_SPACE
    template <class Sink>
    MP_HOST_DEVICE constexpr void write_magnitude(Sink& sink) const {
        if (!is_finite()) {
            const char* word = kind_ == category::nan ? "nan" : "inf";
            for (int i = 0; i < 3; ++i) sink.put(cased(word[i]));
        } else if (form_ == notation::hexadecimal) {
            write_hexadecimal(sink);
        } else if (form_ == notation::scientific) {
            write_scientific(sink);
        } else {
            write_fixed(sink);
        }
    }

    MP_ANY_EXECUTION_SPACE
    template <class Sink>
    MP_HOST_DEVICE constexpr void write(Sink& sink) const {
        if (negative_) sink.put('-');
        write_magnitude(sink);
    }

private:
    // --- what is to be written

    MP_HOST_DEVICE constexpr void set_zero() {
        digits_.digit[0] = '0';
        digits_.begin = 0;
        digits_.count = 1;
        digits_.exponent = 0;
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr int places_in_fixed() const {
        const int places = digits_.count - 1 - digits_.exponent;
        return places > 0 ? places : 0;
    }
    MP_HOST_DEVICE constexpr void choose(bool fixed) {
        form_ = fixed ? notation::fixed : notation::scientific;
        places_ = fixed ? places_in_fixed() : digits_.count - 1;
    }

    MP_HOST_DEVICE constexpr void prepare_shortest(const exact_value& x, bool even,
                                                   const number_style& style) {
        if (kind_ == category::zero) {
            set_zero();
        } else {
            shortest_digits<Format>(x, even, digits_);
        }
        if (style.form == notation::shortest) {
            const int power = digits_.exponent < 0 ? -digits_.exponent : digits_.exponent;
            const int scientific = digits_.count + (digits_.count > 1 ? 1 : 0) + (power >= 100 ? 5 : 4);
            const int point = digits_.exponent + 1;
            const int fixed = point <= 0               ? 2 - point + digits_.count
                              : digits_.count <= point ? point
                                                       : digits_.count + 1;
            choose(fixed <= scientific || (fixed == scientific + 1 && is_rounded_up_to_power_of_ten(x)));
        } else if (style.form == notation::general) {
            // As %g would choose with the precision that it has if it is given none.
            choose(digits_.exponent >= -4 && digits_.exponent < 6);
        } else {
            choose(style.form == notation::fixed);
        }
        // A whole number with more places than digits is written out exactly, as std::to_chars does: among
        // texts of equal length the one nearest to the value is wanted.
        if (form_ == notation::fixed && digits_.exponent >= digits_.count) exact_digits<Format>(x, digits_);
    }

    /// Whether the shortest digits are a power of ten with one place more than the number has, which is whole
    /// then: the bfloat16 99840 lies next to 1e+05, but 99840 is as long.
    [[nodiscard]] MP_HOST_DEVICE constexpr bool is_rounded_up_to_power_of_ten(const exact_value& x) const {
        if (digits_.exponent < 1 || digits_.count != 1 || digits_.digit[digits_.begin] != '1') return false;
        digits_of<Format> exact;
        exact_digits<Format>(x, exact);
        return exact.exponent < digits_.exponent;
    }

    MP_HOST_DEVICE constexpr void prepare_rounded(const exact_value& x, const number_style& style) {
        if (kind_ == category::zero) {
            set_zero();
        } else {
            exact_digits<Format>(x, digits_);
        }
        const int precision = style.precision;
        if (style.form == notation::fixed) {
            // More digits than any number has may be asked for; the sum must not overflow.
            const std::int64_t kept = std::int64_t{digits_.exponent} + 1 + precision;
            if (kept < digits_.count) round_digits(digits_, static_cast<int>(kept));
            form_ = notation::fixed;
            places_ = precision;
        } else if (style.form == notation::scientific) {
            if (precision < digits_.count) round_digits(digits_, precision + 1);
            form_ = notation::scientific;
            places_ = precision;
        } else {
            // So many that no sum with an exponent leaves int.
            const int bounded = precision < 2147480000 ? precision : 2147480000;
            const int significant = bounded == 0 ? 1 : bounded;
            round_digits(digits_, significant);
            choose(digits_.exponent >= -4 && digits_.exponent < significant);
            if (point_) {
                places_ = significant - 1 - (form_ == notation::fixed ? digits_.exponent : 0);
            }
        }
    }

    /// One hexadecimal digit before the point, 1 for all numbers but zero. (2 if rounding carries, as C
    /// prints it.)
    MP_HOST_DEVICE constexpr void prepare_hexadecimal(const exact_value& x, int precision) {
        form_ = notation::hexadecimal;
        hexadecimal_places_ = 0;
        if (kind_ == category::finite) {
            const int top = 63 - leading_zeros(x.significand);
            power_ = x.exponent + top;
            hexadecimal_places_ = (top + 3) / 4;
            hexadecimal_ = x.significand << (4 * hexadecimal_places_ - top);
        }
        if (precision < 0) {
            for (; hexadecimal_places_ > 0 && (hexadecimal_ & 15) == 0; --hexadecimal_places_) {
                hexadecimal_ >>= 4;
            }
            places_ = hexadecimal_places_;
            return;
        }
        if (precision < hexadecimal_places_) {
            const int dropped = 4 * (hexadecimal_places_ - precision);
            const std::uint64_t rest = hexadecimal_ & ((std::uint64_t{1} << dropped) - 1);
            const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
            hexadecimal_ >>= dropped;
            hexadecimal_ += rest > half || (rest == half && (hexadecimal_ & 1) != 0) ? 1 : 0;
            hexadecimal_places_ = precision;
        }
        places_ = precision;
    }

    // --- writing

    [[nodiscard]] MP_HOST_DEVICE constexpr char cased(char c) const { return upper_ ? upper_case(c) : c; }

    /// `places` digits from the one with index `first` on.
    MP_ANY_EXECUTION_SPACE
    template <class Sink>
    MP_HOST_DEVICE constexpr void write_digits(Sink& sink, int first, int places) const {
        const int left_of_all = first < 0 ? (-first < places ? -first : places) : 0;
        sink.fill('0', left_of_all);
        first += left_of_all;
        places -= left_of_all;
        for (; places > 0 && first < digits_.count; ++first, --places) {
            sink.put(digits_.digit[digits_.begin + first]);
        }
        sink.fill('0', places);
    }

    MP_ANY_EXECUTION_SPACE
    template <class Sink>
    MP_HOST_DEVICE constexpr void write_fixed(Sink& sink) const {
        if (digits_.exponent < 0) {
            sink.put('0');
        } else {
            write_digits(sink, 0, digits_.exponent + 1);
        }
        if (places_ > 0 || point_) sink.put('.');
        write_digits(sink, digits_.exponent + 1, places_);
    }

    MP_ANY_EXECUTION_SPACE
    template <class Sink>
    MP_HOST_DEVICE constexpr void write_power(Sink& sink, char letter, int power, int least) const {
        sink.put(cased(letter));
        sink.put(power < 0 ? '-' : '+');
        const int magnitude = power < 0 ? -power : power;
        // Exponents of two have up to five digits, with 16 bits for them in a format.
        for (int unit = 10000, place = 5; place > 0; unit /= 10, --place) {
            if (magnitude >= unit || place <= least) {
                sink.put(static_cast<char>('0' + magnitude / unit % 10));
            }
        }
    }

    MP_ANY_EXECUTION_SPACE
    template <class Sink>
    MP_HOST_DEVICE constexpr void write_scientific(Sink& sink) const {
        write_digits(sink, 0, 1);
        if (places_ > 0 || point_) sink.put('.');
        write_digits(sink, 1, places_);
        write_power(sink, 'e', digits_.exponent, 2);
    }

    MP_ANY_EXECUTION_SPACE
    template <class Sink>
    MP_HOST_DEVICE constexpr void write_hexadecimal(Sink& sink) const {
        sink.put(static_cast<char>('0' + (hexadecimal_ >> (4 * hexadecimal_places_))));
        if (places_ > 0 || point_) sink.put('.');
        for (int i = hexadecimal_places_ - 1; i >= 0; --i) {
            const auto digit = static_cast<int>(hexadecimal_ >> (4 * i) & 15);
            sink.put(cased(static_cast<char>(digit < 10 ? '0' + digit : 'a' + digit - 10)));
        }
        sink.fill('0', places_ - hexadecimal_places_);
        write_power(sink, 'p', power_, 1);
    }

    category kind_ = category::zero;
    bool negative_ = false;
    bool point_ = false;
    bool upper_ = false;
    notation form_ = notation::fixed;
    int places_ = 0;  ///< digits after the point
    int power_ = 0;
    int hexadecimal_places_ = 0;
    std::uint64_t hexadecimal_ = 0;
    digits_of<Format> digits_;
};

/// Notation of a std::chars_format; general where it names several.
MP_HOST_DEVICE constexpr notation to_notation(std::chars_format format) {
    switch (format) {
        case std::chars_format::fixed:
            return notation::fixed;
        case std::chars_format::scientific:
            return notation::scientific;
        case std::chars_format::hex:
            return notation::hexadecimal;
        default:
            return notation::general;
    }
}

/// Writes to [first, last), or reports that the text does not fit.
template <class Format>
MP_HOST_DEVICE constexpr std::to_chars_result write_bounded(char* first, char* last, storage_of<Format> bits,
                                                            const number_style& style) {
    bounded_sink sink{first, last};
    number_text<Format>(bits, style).write(sink);
    if (sink.overflows) return {last, std::errc::value_too_large};
    return {sink.next, std::errc{}};
}

}}  // namespace mp::detail
