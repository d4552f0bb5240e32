// SPDX-License-Identifier: MIT
/// \file
/// A strict reader of one flat object in the syntax of JSON or of Python's repr, which is all that the states
/// of other systems' scalers need:
///
///     {"scale": 65536.0, "growth_interval": 2000}
///     {'scale': tensor([65536.], device='cuda:0'), 'dynamic': True, 'dtype': torch.float16}
///
/// Keys are strings, values are numbers, truth values, null or None, strings, dotted names, and tensors of
/// one number. Refused are nesting, escapes in strings, NaN and infinity, duplicate keys, and anything after
/// the object. Nothing here recurses, and no text makes it use more than a few kilobytes.
#pragma once

#include <mp/arrays/io/text_excerpt.hpp>
#include <mp/error.hpp>
#include <mp/numbers/format/text.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

enum class foreign_kind : unsigned char { number, boolean, null, word };

/// A value as it is written. Views of the text that was read.
struct foreign_value {
    foreign_kind kind = foreign_kind::null;
    std::string_view text;     ///< the number, without the tensor around it; of a string what is in quotes
    bool truth = false;        ///< of a boolean
    bool from_tensor = false;  ///< printed as a tensor, which rounds to four digits
};

struct foreign_member {
    std::string_view name;
    foreign_value value;
};

using flat_object = std::vector<foreign_member>;

/// More members than any system has.
inline constexpr std::size_t most_members = 64;

/// Reads from the front of a text and knows where it is.
class foreign_reader {
public:
    /// \param function  named in errors
    foreign_reader(std::string_view function, std::string_view text) : function_(function), text_(text) {}

    [[noreturn]] void fail(std::string_view what) const {
        std::string message(function_);
        message.append(": character ").append(error_text(position_ + 1)).append(": ").append(what);
        throw_error(argument_error(message));
    }

    /// An object whose values are read by `read_value(key)`.
    template <class ReadValue>
    void read_object(ReadValue&& read_value) {
        require('{', "'{', which begins an object");
        if (accept('}')) return;
        std::vector<std::string_view> keys;
        do {
            skip_space();
            const std::size_t start = position_;
            const std::string_view key = read_string("a key in quotes");
            for (const std::string_view other : keys) {
                if (other != key) continue;
                position_ = start;
                fail("the key " + quoted_excerpt(key) + " is there twice");
            }
            if (keys.size() == most_members)
                fail("there are more than " + error_text(most_members) + " keys");
            keys.push_back(key);
            require(':', "':' after the key");
            read_value(key);
        } while (accept(','));
        require('}', "',' or '}'");
    }

    flat_object read_flat_object() {
        flat_object object;
        read_object([&](std::string_view key) { object.push_back({key, read_value()}); });
        return object;
    }

    /// Nothing but white space may be left.
    void require_end() {
        skip_space();
        if (!rest().empty()) fail("there is more after the object: " + quoted_excerpt(rest()));
    }

private:
    [[nodiscard]] std::string_view rest() const { return text_.substr(position_); }

    void skip_space() {
        constexpr std::string_view space = " \t\r\n";
        while (position_ < text_.size() && space.find(text_[position_]) != std::string_view::npos)
            ++position_;
    }

    bool accept(char character) {
        skip_space();
        if (!rest().starts_with(character)) return false;
        ++position_;
        return true;
    }

    void require(char character, std::string_view expected) {
        if (accept(character)) return;
        fail_expecting(expected);
    }

    [[noreturn]] void fail_expecting(std::string_view expected) const {
        fail(rest().empty() ? "the text ends where " + std::string(expected) + " was expected"
                            : "there is " + quoted_excerpt(rest(), 20) + " where " + std::string(expected) +
                                  " was expected");
    }

    std::string_view read_string(std::string_view expected) {
        skip_space();
        const char quote = rest().empty() ? '\0' : rest().front();
        if (quote != '"' && quote != '\'') fail_expecting(expected);
        const std::size_t start = ++position_;
        for (; position_ < text_.size(); ++position_) {
            const auto byte = static_cast<unsigned char>(text_[position_]);
            if (byte == static_cast<unsigned char>(quote)) {
                return text_.substr(start, position_++ - start);
            }
            if (byte == '\\') fail("strings with escapes are not read");
            if (byte < 0x20 || byte == 0x7f) fail("there is a control character in a string");
        }
        fail("the text ends within a string");
    }

    /// Skips digits and returns how many there were.
    std::size_t skip_digits() {
        const std::size_t start = position_;
        while (position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9') ++position_;
        return position_ - start;
    }

    /// A number as JSON and Python write it; in tensors the digits after the point may be missing.
    std::string_view read_number(bool in_tensor) {
        const std::size_t start = position_;
        if (rest().starts_with('-')) ++position_;
        const std::size_t first = position_;
        const std::size_t whole = skip_digits();
        if (whole == 0) fail_expecting("a finite number");
        if (whole > 1 && text_[first] == '0') fail("a number begins with a zero too many");
        if (rest().starts_with('.')) {
            ++position_;
            if (skip_digits() == 0 && !in_tensor) fail_expecting("a digit after the point");
        }
        if (rest().starts_with('e') || rest().starts_with('E')) {
            ++position_;
            if (rest().starts_with('+') || rest().starts_with('-')) ++position_;
            if (skip_digits() == 0) fail_expecting("a digit of the exponent");
        }
        return text_.substr(start, position_ - start);
    }

    /// Letters, digits, underscores and points.
    std::string_view read_word() {
        const auto belongs = [](char character) {
            return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
                   (character >= '0' && character <= '9') || character == '_' || character == '.';
        };
        const std::size_t start = position_;
        while (position_ < text_.size() && belongs(text_[position_])) ++position_;
        return text_.substr(start, position_ - start);
    }

    foreign_value read_value() {
        skip_space();
        const char first = rest().empty() ? '\0' : rest().front();
        if (first == '"' || first == '\'') return {foreign_kind::word, read_string("a string")};
        if (first == '-' || (first >= '0' && first <= '9')) {
            return {foreign_kind::number, read_number(false)};
        }
        if (first == '{' || first == '[' || first == '(') fail("nested values are not read");
        const std::size_t start = position_;
        const std::string_view word = read_word();
        if (word == "true" || word == "True") return {foreign_kind::boolean, word, true};
        if (word == "false" || word == "False") return {foreign_kind::boolean, word, false};
        if (word == "null" || word == "None") return {foreign_kind::null, word};
        if (word == "tensor") return read_tensor();
        if (word.starts_with("torch.")) return {foreign_kind::word, word};
        position_ = start;
        fail_expecting("a finite number, a truth value, null or a string");
    }

    /// What follows `tensor`: a number, in brackets or not, and then device='cuda:0' or dtype=torch.int32.
    foreign_value read_tensor() {
        require('(', "'(' after tensor");
        const bool brackets = accept('[');
        skip_space();
        const std::string_view number = read_number(true);
        if (brackets) require(']', "']' after the one number of a tensor");
        while (accept(',')) {
            skip_space();
            const std::string_view name = read_word();
            if (name != "device" && name != "dtype" && name != "requires_grad") {
                fail_expecting("device, dtype or requires_grad");
            }
            require('=', "'='");
            skip_space();
            const bool in_quotes = rest().starts_with('\'') || rest().starts_with('"');
            if (in_quotes ? read_string("a string").empty() : read_word().empty()) fail_expecting("a word");
        }
        require(')', "')' after a tensor");
        return {foreign_kind::number, number, false, true};
    }

    std::string_view function_;
    std::string_view text_;
    std::size_t position_ = 0;
};

/// The members of an object by name and type. A member that is not read is an error: see finish.
class foreign_fields {
public:
    foreign_fields(std::string_view function, flat_object object)
        : function_(function), object_(std::move(object)), used_(object_.size(), false) {}

    [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }
    [[nodiscard]] bool empty() const { return object_.empty(); }

    [[noreturn]] void fail(std::string_view what) const {
        throw_error(argument_error(std::string(function_).append(": ").append(what)));
    }

    /// A finite number.
    [[nodiscard]] double number(std::string_view name) {
        const foreign_value& value = take(name, foreign_kind::number, "must be a number");
        if (value.from_tensor && value.text.find_first_of("eE") != std::string_view::npos) {
            fail_about(name, value, "was printed as a tensor, with too few digits; print it with .item()");
        }
        if (value.from_tensor && !value.text.ends_with('.') &&
            value.text.find('.') != std::string_view::npos) {
            fail_about(name, value,
                       "was printed as a tensor, which may have rounded it; print it with .item()");
        }
        double number = 0.0;
        const char* const end = value.text.data() + value.text.size();
        const std::from_chars_result read = mp::from_chars(value.text.data(), end, number);
        if (read.ec != std::errc{} || read.ptr != end)
            fail_about(name, value, "must be within double's range");
        return number;
    }

    /// A whole number from `least` to `greatest`.
    [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t least, std::int64_t greatest) {
        const foreign_value& value = take(name, foreign_kind::number, "must be a whole number");
        std::int64_t number = 0;
        const char* const end = value.text.data() + value.text.size();
        const std::from_chars_result read = std::from_chars(value.text.data(), end, number);
        if (read.ptr != end) fail_about(name, value, "must be a whole number");
        if (read.ec != std::errc{} || number < least || number > greatest) {
            fail_about(name, value, "must lie between " + error_text(least) + " and " + error_text(greatest));
        }
        return number;
    }

    [[nodiscard]] bool boolean(std::string_view name) {
        return take(name, foreign_kind::boolean, "must be true or false").truth;
    }

    /// The value of `name` is of no interest.
    void ignore(std::string_view name) {
        if (const foreign_member* const member = find(name)) mark(*member);
    }

    /// Throws if there is a member that was not asked for.
    void finish() const {
        for (std::size_t i = 0; i < object_.size(); ++i) {
            if (!used_[i]) fail("the key " + quoted_excerpt(object_[i].name) + " is not known");
        }
    }

private:
    [[nodiscard]] const foreign_member* find(std::string_view name) const {
        for (const foreign_member& member : object_) {
            if (member.name == name) return &member;
        }
        return nullptr;
    }

    void mark(const foreign_member& member) {
        used_[static_cast<std::size_t>(&member - object_.data())] = true;
    }

    const foreign_value& take(std::string_view name, foreign_kind kind, std::string_view expected) {
        const foreign_member* const member = find(name);
        if (member == nullptr) fail("the key " + quoted_excerpt(name) + " is missing");
        if (member->value.kind != kind) fail_about(name, member->value, expected);
        mark(*member);
        return member->value;
    }

    [[noreturn]] void fail_about(std::string_view name, const foreign_value& value,
                                 std::string_view expected) const {
        fail(std::string(name) + " is " + quoted_excerpt(value.text) + "; it " + std::string(expected));
    }

    std::string_view function_;
    flat_object object_;
    std::vector<bool> used_;
};

}}  // namespace mp::detail
