// SPDX-License-Identifier: MIT
/// \file
/// Regular expressions of Python, written again for std::regex: Keras's keys are such.
#pragma once

#include <mp/error.hpp>

#include <bitset>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>

namespace mp::detail {

/// Translates one pattern into the ECMAScript of std::regex that matches the same texts of ASCII. What Python's re
/// refuses is refused, and so is what std::regex cannot say: references back, conditions, flags, looking behind, atomic
/// groups and possessive counts. Grammar: docs.python.org/3/library/re.html, version 3.11.
///
/// Characters above ASCII stand for themselves; to `.` and classes each is as many characters as it has bytes.
class python_pattern {
public:
    explicit python_pattern(std::string_view pattern) : pattern_(pattern) {}

    /// Empty if the pattern is refused, and then error() says why.
    std::string translate() {
        alternatives();
        if (error_.empty() && !at_end()) fail("has a ')' too many");
        return error_.empty() ? result_ : std::string();
    }
    [[nodiscard]] const std::string& error() const noexcept { return error_; }

private:
    static constexpr int most_repeats = 1000;  // std::regex writes them out
    static constexpr int deepest = 100;
    enum class item : unsigned char { none, assertion, single, repeated };

    [[nodiscard]] bool at_end() const { return position_ >= pattern_.size(); }
    [[nodiscard]] char peek() const { return at_end() ? '\0' : pattern_[position_]; }
    [[nodiscard]] bool next_is(char character) const { return !at_end() && peek() == character; }
    bool take(std::string_view text) {
        if (!pattern_.substr(position_).starts_with(text)) return false;
        position_ += text.size();
        return true;
    }
    void fail(std::string_view what) {
        if (error_.empty()) error_ = what;
        position_ = pattern_.size();
    }
    static bool is_digit(char c) { return c >= '0' && c <= '9'; }
    static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
    static bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

    void alternatives() {
        if (++depth_ > deepest) fail("is nested too deeply");
        item last = item::none;
        while (!at_end() && !next_is(')')) last = next_is('|') ? bar() : element(last);
        --depth_;
    }
    item bar() {
        ++position_;
        result_.push_back('|');
        return item::none;
    }

    /// The next element of a sequence, or a count of the last one.
    item element(item last) {
        const char character = peek();
        if (character == '*' || character == '+' || character == '?' || character == '{') return count(last);
        ++position_;
        switch (character) {
            case '^':
            case '$':
                result_.push_back(character);
                if (character == '^') refuse_ahead();
                return item::assertion;
            case '.':
                result_.push_back(character);
                return item::single;
            case '(':
                return group(last);
            case '[':
                character_class();
                return item::single;
            case '\\':
                return escape();
            default:
                literal(character);
                return item::single;
        }
    }

    /// A character for itself; one of several bytes is a group, for a count behind it.
    void literal(char character) {
        if (!is_ascii(character)) {
            result_.append("(?:").push_back(character);
            while (!at_end() && (static_cast<unsigned char>(peek()) & 0xC0) == 0x80)
                result_.push_back(pattern_[position_++]);
            result_.push_back(')');
            return;
        }
        constexpr std::string_view special = "^$\\.*+?()[]{}|/";
        if (special.find(character) != std::string_view::npos) result_.push_back('\\');
        result_.push_back(character);
    }

    item count(item last) {
        const std::size_t first = position_;
        const char character = pattern_[position_++];
        std::string text(1, character);
        if (character == '{') {
            const std::string low = digits();
            const bool comma = take(",");
            const std::string high = comma ? digits() : low;
            if ((!comma && low.empty()) || !take("}")) {  // no count: a brace
                position_ = first + 1;
                literal('{');
                return item::single;
            }
            if (low.size() > 4 || high.size() > 4 || number(low) > most_repeats ||
                number(high) > most_repeats) {
                fail("has a count above 1000");
            } else if (!high.empty() && number(high) < number(low)) {
                fail("has a count whose limits are the wrong way round");
            }
            text = "{" + (low.empty() ? "0" : low) + "," + high + "}";
        }
        if (last == item::repeated) fail("repeats what is repeated already");
        if (last != item::single) fail("has nothing to repeat");
        if (next_is('+')) fail("has a possessive count, which is not supported");
        result_.append(text);
        if (take("?")) result_.push_back('?');
        return item::repeated;
    }
    std::string digits() {
        std::string found;
        while (is_digit(peek())) found.push_back(pattern_[position_++]);
        return found;
    }
    static int number(const std::string& digits) {
        int value = 0;
        for (const char digit : digits) value = 10 * value + (digit - '0');
        return value;
    }

    item group(item last) {
        int ahead = 0;
        if (take("?#")) {
            const std::size_t end = pattern_.find(')', position_);
            if (end == std::string_view::npos) {
                fail("has a comment without end");
            } else {
                position_ = end + 1;
            }
            return last;
        }
        if (take("?:")) {
            result_.append("(?:");
        } else if (take("?=")) {
            ahead = 1;
            result_.append("(?=");
        } else if (take("?!")) {
            ahead = 1;
            result_.append("(?!");
        } else if (take("?P<")) {
            group_name();
            result_.push_back('(');
        } else if (next_is('?')) {
            fail(
                "has a group that is not supported: flags, a condition, a reference, an atomic group, or one "
                "that "
                "looks behind");
        } else {
            result_.push_back('(');
        }
        ahead_ += ahead;
        alternatives();
        ahead_ -= ahead;
        if (error_.empty() && !take(")")) fail("has a '(' without ')'");
        result_.push_back(')');
        return item::single;
    }
    /// What is looked at ahead has no past in libstdc++: a text begins there.
    void refuse_ahead() {
        if (ahead_ > 0) fail("has an assertion on the past in one that looks ahead, which is not supported");
    }
    void group_name() {
        const std::size_t end = pattern_.find('>', position_);
        const std::string name(
            pattern_.substr(position_, end == std::string_view::npos ? end : end - position_));
        bool good = end != std::string_view::npos && !name.empty() && !is_digit(name[0]);
        for (const char c : name) good &= is_letter(c) || is_digit(c) || c == '_';
        if (!good) return fail("has a group whose name is no identifier of ASCII");
        if (!names_.insert(name).second) return fail("has two groups of one name");
        position_ = end + 1;
    }

    item escape() {
        if (at_end()) {
            fail("ends with a backslash");
            return item::none;
        }
        const char character = peek();
        if (character == 'A' || character == 'Z') {
            ++position_;
            if (character == 'A') refuse_ahead();
            result_.push_back(character == 'A' ? '^' : '$');
            return item::assertion;
        }
        if (character == 'b' || character == 'B') {  // \B is in the empty text, as for Python from 3.14 on
            ++position_;
            result_.append(1, '\\').push_back(character);
            refuse_ahead();
            return item::assertion;
        }
        if (std::string_view("dDsSwW").find(character) != std::string_view::npos) {
            ++position_;
            const bool complement = character <= 'Z';
            write(complement ? ~category(character) : category(character), complement);
            return item::single;
        }
        if (is_digit(character) && character != '0' && !octal_ahead()) {
            fail("refers back to a group, which is not supported");
            return item::none;
        }
        literal_of(escaped_character());
        return item::single;
    }
    void literal_of(int code) {
        if (code >= 0x80) return fail("has the code of a character above ASCII; write the character itself");
        if (code < 0x20 || code == 0x7f) {
            write_code(code);
        } else {
            literal(static_cast<char>(code));
        }
    }
    void write_code(int code) {
        constexpr std::string_view hexadecimal = "0123456789abcdef";
        result_.append("\\x").append(1, hexadecimal[static_cast<std::size_t>(code / 16)]);
        result_.push_back(hexadecimal[static_cast<std::size_t>(code % 16)]);
    }

    [[nodiscard]] bool octal_ahead() const {
        const std::string_view rest = pattern_.substr(position_, 3);
        return rest.size() == 3 && rest[0] <= '3' &&
               rest.find_first_not_of("01234567") == std::string_view::npos;
    }
    /// The code that an escape for one character stands for, behind its backslash.
    int escaped_character() {
        const char character = pattern_[position_++];
        constexpr std::string_view letters = "afnrtv";
        constexpr std::string_view codes = "\a\f\n\r\t\v";
        if (const auto found = letters.find(character); found != std::string_view::npos) return codes[found];
        if (is_digit(character)) {
            --position_;
            int code = 0;
            for (int i = 0; i < 3 && peek() >= '0' && peek() <= '7'; ++i)
                code = 8 * code + (pattern_[position_++] - '0');
            return code;
        }
        const int length = character == 'x' ? 2 : character == 'u' ? 4 : character == 'U' ? 8 : 0;
        if (length > 0) {
            int code = 0;
            for (int i = 0; i < length; ++i) {
                const char digit = peek();
                const int value = is_digit(digit)                ? digit - '0'
                                  : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                                  : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                                                 : -1;
                if (at_end() || value < 0) {
                    fail("has an escape without its hexadecimal digits");
                    return 0;
                }
                code = code > 0xFFFFFF ? code : 16 * code + value;
                ++position_;
            }
            return code;
        }
        if (is_letter(character)) {
            fail("has the escape \\" + std::string(1, character) + ", which Python does not know");
            return 0;
        }
        if (!is_ascii(character)) return 0x80;
        return static_cast<unsigned char>(character);
    }

    static std::bitset<128> category(char letter) {
        std::bitset<128> set;
        for (std::size_t code = 0; code < 128; ++code) {
            const char c = static_cast<char>(code);
            const bool digit = is_digit(c);
            const bool space = c == ' ' || (code >= 9 && code <= 13) || (code >= 28 && code <= 31);
            const bool word = digit || is_letter(c) || c == '_';
            const bool wanted = letter == 'd' || letter == 'D'   ? digit
                                : letter == 's' || letter == 'S' ? space
                                                                 : word;
            set[code] = wanted;
        }
        return set;
    }

    /// A class of these characters, and of all above ASCII with `others`.
    void write(const std::bitset<128>& set, bool others) {
        const std::bitset<128> listed = others ? ~set : set;
        if (listed.none()) {
            result_.append(others ? "[\\s\\S]" : "[^\\s\\S]");
            return;
        }
        result_.append(others ? "[^" : "[");
        for (std::size_t code = 0; code < 128; ++code) {
            if (!listed[code]) continue;
            std::size_t last = code;
            while (last + 1 < 128 && listed[last + 1]) ++last;
            write_code(static_cast<int>(code));
            if (last > code) {
                result_.push_back('-');
                write_code(static_cast<int>(last));
            }
            code = last;
        }
        result_.push_back(']');
    }

    void character_class() {
        const bool negated = take("^");
        std::bitset<128> set;
        bool others = false;  // what is not ASCII
        bool first = true;
        while (true) {
            if (at_end()) return fail("has a '[' without ']'");
            if (next_is(']') && !first) break;
            first = false;
            bool is_category = false;
            const int low = class_member(set, others, is_category);
            if (!error_.empty()) return;
            const bool range =
                next_is('-') && position_ + 1 < pattern_.size() && pattern_[position_ + 1] != ']';
            if (!range) {
                if (!is_category) set[static_cast<std::size_t>(low)] = true;
                continue;
            }
            ++position_;
            bool ends_in_category = false;
            std::bitset<128> ignored;
            bool ignored_others = false;
            const int high = class_member(ignored, ignored_others, ends_in_category);
            if (!error_.empty()) return;
            if (is_category || ends_in_category || high < low) return fail("has a range that is none");
            for (int code = low; code <= high; ++code) set[static_cast<std::size_t>(code)] = true;
        }
        ++position_;
        write(negated ? ~set : set, negated != others);
    }
    /// One character of a class, or a category, which is added to the set.
    int class_member(std::bitset<128>& set, bool& others, bool& is_category) {
        const char character = pattern_[position_++];
        if (!is_ascii(character)) {
            fail("has a class with characters above ASCII, which is not supported");
            return 0;
        }
        if (character != '\\') return character;
        if (at_end()) {
            fail("ends with a backslash");
            return 0;
        }
        const char letter = peek();
        if (std::string_view("dDsSwW").find(letter) != std::string_view::npos) {
            ++position_;
            is_category = true;
            const bool complement = letter <= 'Z';
            set |= complement ? ~category(letter) : category(letter);
            others |= complement;
            return 0;
        }
        if (letter == 'b') {
            ++position_;
            return '\b';
        }
        if ((letter == '8' || letter == '9') && !octal_ahead()) {
            fail("has the escape \\" + std::string(1, letter) + ", which Python does not know");
            return 0;
        }
        const int code = escaped_character();
        if (code >= 0x80) fail("has a class with characters above ASCII, which is not supported");
        return code < 0x80 ? code : 0;
    }

    std::string_view pattern_;
    std::size_t position_ = 0;
    int depth_ = 0;
    int ahead_ = 0;  // assertions that look ahead around this place
    std::string result_;
    std::string error_;
    std::set<std::string> names_;
};

}  // namespace mp::detail
