// SPDX-License-Identifier: MIT
/// \file
/// A reader of JSON (RFC 8259) that accepts the texts that serde_json accepts, which the reference
/// implementation of safetensors uses. Source: https://github.com/serde-rs/json, src/de.rs and src/read.rs.
#pragma once

#include <mp/arrays/io/stored_elements.hpp>

#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Returns the length of the longest prefix that is valid UTF-8 (Unicode 15, table 3-7).
constexpr std::size_t utf8_prefix(std::string_view text) noexcept {
    std::size_t at = 0;
    while (at < text.size()) {
        const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
        const unsigned char first = byte(0);
        std::size_t length = 1;
        if (first >= 0x80) {
            if (first < 0xC2 || first > 0xF4) return at;
            length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
        }
        if (length > text.size() - at) return at;
        // No overlong forms, no surrogates, nothing above U+10FFFF.
        const unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
        const unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
        if (length > 1 && (byte(1) < low || byte(1) > high)) return at;
        for (std::size_t i = 2; i < length; ++i) {
            if ((byte(i) & 0xC0) != 0x80) return at;
        }
        at += length;
    }
    return at;
}

/// Reads values from the front of a text. Errors are file_error and name the byte of the file.
class json_reader {
public:
    /// \param start  offset of the text in the file
    json_reader(const std::string& path, std::string_view text, std::size_t start)
        : path_(path), all_(text), rest_(text), start_(start) {
        rest_.remove_prefix(utf8_prefix(text));
        if (!rest_.empty()) fail("the text is not valid UTF-8");
        rest_ = text;
    }

    [[noreturn]] void fail(std::string_view what) const {
        std::string message = "the header is damaged at byte ";
        message.append(error_text(start_ + all_.size() - rest_.size())).append(": ").append(what);
        throw_file(path_, message);
    }
    /// Returns true if the next character that is no white space is this one.
    bool next_is(char character) {
        const std::size_t spaces = rest_.find_first_not_of(" \n\t\r");
        rest_.remove_prefix(spaces == std::string_view::npos ? rest_.size() : spaces);
        return !rest_.empty() && rest_.front() == character;
    }
    /// Calls entry(key) for every member of an object; `entry` must read the value.
    template <class Entry>
    void object(Entry entry) {
        open('{');
        if (!take('}')) {
            do {
                const std::string key = string();
                require(':');
                entry(key);
            } while (take(','));
            require('}');
        }
        --depth_;
    }
    /// Calls element(index) for every element of an array; `element` must read it. Returns the number of elements.
    template <class Element>
    std::size_t array(Element element) {
        std::size_t count = 0;
        open('[');
        if (!take(']')) {
            do {
                element(count++);
            } while (take(','));
            require(']');
        }
        --depth_;
        return count;
    }
    std::string string() {
        require('"');
        std::string result;
        for (;;) {
            if (rest_.empty()) fail("a string has no end");
            const char character = rest_.front();
            rest_.remove_prefix(1);
            if (character == '"') return result;
            if (static_cast<unsigned char>(character) < 0x20) fail("a string has a control character");
            if (character == '\\') {
                escape(result);
            } else {
                result.push_back(character);
            }
        }
    }
    /// Reads an integer written without sign, fraction and exponent.
    std::size_t whole_number() {
        const json_number it = number();
        if (!it.whole || it.value > (std::numeric_limits<std::size_t>::max)()) {
            fail("a whole number below 2^" + error_text(std::numeric_limits<std::size_t>::digits) +
                 " was expected");
        }
        return static_cast<std::size_t>(it.value);
    }
    /// Reads the word if it is next.
    bool take_word(std::string_view word) {
        if (!next_is(word.front()) || !rest_.starts_with(word)) return false;
        rest_.remove_prefix(word.size());
        return true;
    }
    /// Checks a value of any type and skips it.
    void skip_value() {
        if (next_is('{')) {
            object([&](const std::string&) { skip_value(); });
        } else if (next_is('[')) {
            array([&](std::size_t) { skip_value(); });
        } else if (next_is('"')) {
            static_cast<void>(string());
        } else if (!take_word("null") && !take_word("true") && !take_word("false")) {
            static_cast<void>(number());
        }
    }
    void require_end() {
        static_cast<void>(next_is('\0'));
        if (!rest_.empty()) fail("there is more after the end");
    }

private:
    struct json_number {
        bool whole;           ///< an integer from 0 to 2^64 - 1
        std::uint64_t value;  ///< only of those
    };

    bool take(char character) {
        if (!next_is(character)) return false;
        rest_.remove_prefix(1);
        return true;
    }
    void require(char character) {
        if (!take(character)) fail(std::string("'") + character + "' was expected");
    }
    void open(char character) {
        require(character);
        constexpr unsigned deepest = 127;
        if (++depth_ > deepest) fail("it is nested more than 127 levels deep");
    }
    /// Reads the character if it follows without white space.
    bool take_next(char character) {
        if (rest_.empty() || rest_.front() != character) return false;
        rest_.remove_prefix(1);
        return true;
    }
    [[nodiscard]] bool at_digit() const {
        return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9';
    }
    unsigned digit() {
        const auto value = static_cast<unsigned>(rest_.front() - '0');
        rest_.remove_prefix(1);
        return value;
    }
    /// Appends a digit unless the number would exceed `limit`.
    template <class Number>
    static bool append_digit(Number& number, unsigned digit, Number limit) {
        if (number > (limit - digit) / 10) return false;
        number = number * 10 + digit;
        return true;
    }
    /// Returns true if significand * 10^exponent, rounded as serde_json rounds it (the significand to double,
    /// then the product), is infinite.
    static bool is_out_of_range(std::uint64_t significand, std::int64_t exponent) {
        constexpr double powers[] = {1e289, 1e290, 1e291, 1e292, 1e293, 1e294, 1e295, 1e296, 1e297, 1e298,
                                     1e299, 1e300, 1e301, 1e302, 1e303, 1e304, 1e305, 1e306, 1e307, 1e308};
        // Below, 2^64 * 10^288 is finite.
        if (significand == 0 || exponent < 289) return false;
        if (exponent > 308) return true;
        const double product = static_cast<double>(significand) * powers[exponent - 289];
        return (std::bit_cast<std::uint64_t>(product) >> 52 & 0x7FF) == 0x7FF;
    }
    json_number number() {
        const bool is_negative = take('-');
        if (!at_digit()) fail(is_negative ? "a digit was expected" : "a value was expected");
        constexpr std::uint64_t most = (std::numeric_limits<std::uint64_t>::max)();
        std::uint64_t significand = digit();
        std::int64_t exponent = 0;
        if (significand == 0 && at_digit()) fail("a number begins with 0");
        // Digits beyond 64 bits count as zeros.
        while (at_digit()) {
            const unsigned next = digit();
            if (exponent != 0 || !append_digit(significand, next, most)) ++exponent;
        }
        bool is_integer = exponent == 0;
        if (take_next('.')) {
            is_integer = false;
            if (!at_digit()) fail("a digit was expected");
            bool is_full = false;
            while (at_digit()) {
                const unsigned next = digit();
                is_full = is_full || !append_digit(significand, next, most);
                if (!is_full) --exponent;
            }
        }
        if (take_next('e') || take_next('E')) {
            is_integer = false;
            const bool is_small = take_next('-');
            if (!is_small) static_cast<void>(take_next('+'));
            if (!at_digit()) fail("a digit was expected");
            std::int64_t power = 0;
            constexpr std::int64_t largest = (std::numeric_limits<std::int32_t>::max)();
            while (at_digit()) {
                if (!append_digit(power, digit(), largest)) power = largest;
            }
            exponent += is_small ? -power : power;
        }
        if (!is_integer && is_out_of_range(significand, exponent)) fail("a number is out of range");
        return {is_integer && !is_negative, significand};
    }
    std::uint32_t hexadecimal() {
        std::uint32_t code = 0;
        const char* const end = rest_.data() + (rest_.size() < 4 ? 0 : 4);
        const auto [last, error] = std::from_chars(rest_.data(), end, code, 16);
        if (error != std::errc{} || last != end) fail("an escape is unknown");
        rest_.remove_prefix(4);
        return code;
    }
    /// Reads the rest of an escape, and the second half of a surrogate pair.
    void escape(std::string& result) {
        if (rest_.empty()) fail("a string has no end");
        const char kind = rest_.front();
        rest_.remove_prefix(1);
        constexpr std::string_view kinds = "\"\\/bfnrt";
        constexpr std::string_view values = "\"\\/\b\f\n\r\t";
        if (const std::size_t at = kinds.find(kind); at != std::string_view::npos) {
            result.push_back(values[at]);
            return;
        }
        if (kind != 'u') fail("an escape is unknown");
        std::uint32_t code = hexadecimal();
        if (code >= 0xD800 && code < 0xE000) {
            const bool is_first = code < 0xDC00 && take_next('\\') && take_next('u');
            const std::uint32_t second = is_first ? hexadecimal() : 0;
            if (second < 0xDC00 || second > 0xDFFF) fail("an escape is half of a surrogate pair");
            code = 0x10000 + ((code - 0xD800) << 10 | (second - 0xDC00));
        }
        const auto append = [&](std::uint32_t byte) { result.push_back(static_cast<char>(byte)); };
        if (code < 0x80) {
            append(code);
            return;
        }
        const unsigned more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
        constexpr std::uint32_t leads[] = {0, 0xC0, 0xE0, 0xF0};
        append(leads[more] | code >> (6 * more));
        for (unsigned i = more; i-- > 0;) append(0x80 | (code >> (6 * i) & 0x3F));
    }

    const std::string& path_;
    std::string_view all_;
    std::string_view rest_;
    std::size_t start_;
    unsigned depth_ = 0;
};

}}  // namespace mp::detail
