// SPDX-License-Identifier: MIT
/// \file
/// A number taken from a stream one character at a time, as a stream must be read: what belongs to the number
/// is decided before the next character is seen, and nothing is put back.
#pragma once

#include <mp/numbers/format/parsing.hpp>

#include <cstddef>
#include <cstdint>

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

}}  // namespace mp::detail
