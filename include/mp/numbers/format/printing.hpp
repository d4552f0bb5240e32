// SPDX-License-Identifier: MIT
/// \file
/// Numbers in fixed, scientific, general and hexadecimal notation, rounded once from the exact value. Nothing here
/// depends on the format but the size of integers, see text_class.
#pragma once

#include <mp/numbers/format/digits.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// `shortest` is fixed or scientific notation, whichever is shorter, and fixed if they are equal. Whole
/// numbers in fixed notation have all their digits. `exact` has all digits of every number; in scientific
/// notation where fixed notation would be mostly zeros.
enum class notation : unsigned char { shortest, general, fixed, scientific, hexadecimal, exact };

/// How a number is to be written. Without a precision (any negative one) with the fewest digits that read
/// back as the same number, in hexadecimal notation all digits.
struct number_style {
    notation form = notation::shortest;
    int precision = -1;
    bool alternate = false;  ///< always with a point, and general notation keeps its zeros, as # in printf
    bool upper = false;
};

/// Writes the text of a number of a format that fits texts of double: from the character with index `skip` on, and at
/// most `size` characters. Returns the length of the whole text.
[[nodiscard]] MP_CORE_FUNCTION std::int64_t core_write_text(decoded_number x, const number_style& style,
                                                            char* to, std::int64_t size,
                                                            std::int64_t skip) noexcept;

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

MP_HOST_DEVICE constexpr char upper_case(char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - ('a' - 'A')) : c;
}

/// Takes the characters of a text, each with its index, and keeps those with indices from 0 to size - 1. Functions
/// return the next index.
struct text_window {
    char* to;
    std::int64_t size;
    [[nodiscard]] MP_HOST_DEVICE constexpr std::int64_t put(std::int64_t index, char c) const {
        if (static_cast<std::uint64_t>(index) < static_cast<std::uint64_t>(size)) to[index] = c;
        return index + 1;
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr std::int64_t fill(std::int64_t index, char c, int count) const {
        if (count <= 0) return index;
        const std::int64_t end = index + count;
        if (index < 0) index = end < 0 ? end : 0;
        while (index < end && index < size) index = put(index, c);
        return end;
    }
};

/// The text of one number, ready to be written.
template <class Class>
class number_text {
public:
    MP_HOST_DEVICE constexpr number_text(const decoded_number& x, const number_style& style)
        : kind_(x.kind), negative_(x.negative), point_(style.alternate), upper_(style.upper) {
        if (kind_ == category::nan || kind_ == category::infinite) return;
        if (style.form == notation::hexadecimal) {
            prepare_hexadecimal(x, style.precision);
        } else if (style.form == notation::exact) {
            set_exact(x);
            choose(digits_.exponent >= -6 && digits_.exponent <= 20);
        } else if (style.precision < 0) {
            prepare_shortest(x, style);
        } else {
            prepare_rounded(x, style);
        }
    }

    MP_HOST_DEVICE constexpr std::int64_t write(text_window out, std::int64_t index) const {
        if (negative_) index = out.put(index, '-');
        if (kind_ == category::nan || kind_ == category::infinite) {
            const char* word = kind_ == category::nan ? "nan" : "inf";
            for (int i = 0; i < 3; ++i) index = out.put(index, cased(word[i]));
            return index;
        }
        if (form_ == notation::hexadecimal) return write_hexadecimal(out, index);
        return form_ == notation::scientific ? write_scientific(out, index) : write_fixed(out, index);
    }

private:
    // --- what is to be written

    MP_HOST_DEVICE constexpr void set_zero() {
        digits_.digit[0] = '0';
        digits_.begin = 0;
        digits_.count = 1;
        digits_.exponent = 0;
    }
    MP_HOST_DEVICE constexpr void set_exact(const decoded_number& x) {
        if (kind_ == category::zero) {
            set_zero();
        } else {
            exact_digits<Class>(x, digits_);
        }
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr int places_in_fixed() const {
        const int places = digits_.count - 1 - digits_.exponent;
        return places > 0 ? places : 0;
    }
    MP_HOST_DEVICE constexpr void choose(bool fixed) {
        form_ = fixed ? notation::fixed : notation::scientific;
        places_ = fixed ? places_in_fixed() : digits_.count - 1;
    }

    MP_HOST_DEVICE constexpr void prepare_shortest(const decoded_number& x, const number_style& style) {
        if (kind_ == category::zero) {
            set_zero();
        } else {
            shortest_digits<Class>(x, digits_);
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
        if (form_ == notation::fixed && digits_.exponent >= digits_.count) exact_digits<Class>(x, digits_);
    }

    /// Whether the shortest digits are a power of ten with one place more than the number has, which is whole
    /// then: the bfloat16 99840 lies next to 1e+05, but 99840 is as long.
    [[nodiscard]] MP_HOST_DEVICE constexpr bool is_rounded_up_to_power_of_ten(const decoded_number& x) const {
        if (digits_.exponent < 1 || digits_.count != 1 || digits_.digit[digits_.begin] != '1') return false;
        digits_of<Class> exact;
        exact_digits<Class>(x, exact);
        return exact.exponent < digits_.exponent;
    }

    MP_HOST_DEVICE constexpr void prepare_rounded(const decoded_number& x, const number_style& style) {
        set_exact(x);
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
    MP_HOST_DEVICE constexpr void prepare_hexadecimal(const decoded_number& x, int precision) {
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
    MP_HOST_DEVICE constexpr std::int64_t write_digits(text_window out, std::int64_t index, int first,
                                                       int places) const {
        const int left_of_all = first < 0 ? (-first < places ? -first : places) : 0;
        index = out.fill(index, '0', left_of_all);
        first += left_of_all;
        places -= left_of_all;
        for (; places > 0 && first < digits_.count; ++first, --places) {
            index = out.put(index, digits_.digit[digits_.begin + first]);
        }
        return out.fill(index, '0', places);
    }

    MP_HOST_DEVICE constexpr std::int64_t write_fixed(text_window out, std::int64_t index) const {
        const int exponent = digits_.exponent;
        index = exponent < 0 ? out.put(index, '0') : write_digits(out, index, 0, exponent + 1);
        if (places_ > 0 || point_) index = out.put(index, '.');
        return write_digits(out, index, exponent + 1, places_);
    }

    /// An exponent, with digits from that of `unit` or a higher one on.
    MP_HOST_DEVICE constexpr std::int64_t write_power(text_window out, std::int64_t index, char letter,
                                                      int power, int unit) const {
        index = out.put(index, cased(letter));
        index = out.put(index, power < 0 ? '-' : '+');
        const int magnitude = power < 0 ? -power : power;
        while (magnitude >= 10 * unit) unit *= 10;
        for (; unit > 0; unit /= 10) index = out.put(index, static_cast<char>('0' + magnitude / unit % 10));
        return index;
    }

    MP_HOST_DEVICE constexpr std::int64_t write_scientific(text_window out, std::int64_t index) const {
        index = write_digits(out, index, 0, 1);
        if (places_ > 0 || point_) index = out.put(index, '.');
        index = write_digits(out, index, 1, places_);
        return write_power(out, index, 'e', digits_.exponent, 10);
    }

    MP_HOST_DEVICE constexpr std::int64_t write_hexadecimal(text_window out, std::int64_t index) const {
        index = out.put(index, static_cast<char>('0' + (hexadecimal_ >> (4 * hexadecimal_places_))));
        if (places_ > 0 || point_) index = out.put(index, '.');
        for (int i = hexadecimal_places_ - 1; i >= 0; --i) {
            const auto digit = static_cast<int>(hexadecimal_ >> (4 * i) & 15);
            index = out.put(index, cased(static_cast<char>(digit < 10 ? '0' + digit : 'a' + digit - 10)));
        }
        index = out.fill(index, '0', places_ - hexadecimal_places_);
        return write_power(out, index, 'p', power_, 1);
    }

    category kind_;
    bool negative_;
    bool point_;
    bool upper_;
    notation form_ = notation::fixed;
    int places_ = 0;  ///< digits after the point
    int power_ = 0;
    int hexadecimal_places_ = 0;
    std::uint64_t hexadecimal_ = 0;
    digits_of<Class> digits_;
};

/// core_write_text() for every class, in constant expressions and device code, too.
template <class Class>
MP_HOST_DEVICE constexpr std::int64_t write_text(decoded_number x, const number_style& style, char* to,
                                                 std::int64_t size, std::int64_t skip) {
#if !MP_DEVICE_CODE
    if constexpr (fits_texts_of<Class, formats::binary64>) {
        if (!std::is_constant_evaluated()) return core_write_text(x, style, to, size, skip);
    }
#endif
    return number_text<Class>(x, style).write({to, size}, -skip) + skip;
}

/// Writes to [first, last), or reports that the text does not fit.
template <class Format>
MP_HOST_DEVICE constexpr std::to_chars_result write_bounded(char* first, char* last, storage_of<Format> bits,
                                                            const number_style& style) {
    const std::int64_t length =
        write_text<small_text_class<Format>>(decode<Format>(bits), style, first, last - first, 0);
    if (length > last - first) return {last, std::errc::value_too_large};
    return {first + length, std::errc{}};
}

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

/// The text of a number without its sign, for output that takes characters one by one. The pieces of long texts hold all
/// digits of a number at once.
template <class Class>
class text_pieces {
public:
    constexpr text_pieces(decoded_number x, const number_style& style) : x_(x), style_(style) {
        x_.negative = false;
        length_ = write_text<Class>(x_, style_, piece_, sizeof piece_, 0);
    }

    [[nodiscard]] constexpr std::int64_t length() const { return length_; }

    template <class Put>
    constexpr void write(const Put& put) {
        for (std::int64_t done = 0; done < length_;) {
            if (done != 0) static_cast<void>(write_text<Class>(x_, style_, piece_, sizeof piece_, done));
            for (std::size_t i = 0; i < sizeof piece_ && done < length_; ++i, ++done) put(piece_[i]);
        }
    }

private:
    decoded_number x_;
    number_style style_;
    std::int64_t length_;
    char piece_[sizeof digits_of<Class>::digit + 256];
};

}}  // namespace mp::detail

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION std::int64_t core_write_text(decoded_number x, const number_style& style, char* to,
                                              std::int64_t size, std::int64_t skip) noexcept {
    return number_text<formats::binary64>(x, style).write({to, size}, -skip) + skip;
}

}}  // namespace mp::detail
#endif
