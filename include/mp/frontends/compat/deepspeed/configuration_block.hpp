// SPDX-License-Identifier: MIT
/// \file
/// Blocks of DeepSpeed's configuration: their keys are asked for one by one, and values are what DeepSpeed, which
/// reads them through Pydantic, takes for a truth value or a number. The text is Hjson, a form of JSON: comments, commas that
/// may be left out or stand at the end, keys and strings without quotes. Needs nlohmann-json 3.
///
/// Grammar: hjson.github.io/syntax.html, and where that is silent what hjson 3.1.0 for Python does.
#pragma once

#include <mp/arrays/io/text_excerpt.hpp>
#include <mp/error.hpp>
#include <mp/nn/scaling/scale_checks.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace mp::detail {

/// Reads one text. What is wrong with it is an argument_error in the name of `function` with the line.
class hjson_reader {
public:
    hjson_reader(std::string_view function, std::string_view text) : function_(function), text_(text) {
        if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);
    }

    /// The object that the text is; its outer braces may be missing.
    nlohmann::json object() {
        // Strings without quotes go into the result as they are, and what is not UTF-8 could not be written again.
        (void)guarded([&] { return nlohmann::json(nlohmann::json(std::string(text_)).dump()); });
        const char first = next();
        if (at_end()) fail("there is nothing in it");
        nlohmann::json result = first == '{' || first == '[' ? value(0) : members('\0', 0);
        (void)next();
        if (!at_end()) fail("there is more behind its end");
        return result;
    }

private:
    static constexpr int deepest = 100;

    [[nodiscard]] bool at_end(std::size_t ahead = 0) const { return position_ + ahead >= text_.size(); }
    /// The character there; 0 behind the end.
    [[nodiscard]] char peek(std::size_t ahead = 0) const {
        return at_end(ahead) ? '\0' : text_[position_ + ahead];
    }
    static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
    [[nodiscard]] bool at_line_end() const { return at_end() || peek() == '\n' || peek() == '\r'; }
    [[nodiscard]] bool at_comment() const {
        return peek() == '#' || (peek() == '/' && (peek(1) == '/' || peek(1) == '*'));
    }

    /// Skips spaces and comments, and returns the character behind them.
    char next() {
        while (true) {
            while (is_space(peek())) ++position_;
            if (!at_comment()) return peek();
            if (peek() == '/' && peek(1) == '*') {
                const std::size_t end = text_.find("*/", position_ + 2);
                if (end == std::string_view::npos) fail("a comment has no end");
                position_ = end + 2;
            } else {
                while (!at_line_end()) ++position_;
            }
        }
    }

    nlohmann::json value(int depth) {
        if (depth > deepest) fail("it is nested too deeply");
        switch (peek()) {
            case '{':
                ++position_;
                return members('}', depth);
            case '[':
                ++position_;
                return elements(depth);
            case '\'':
                if (text_.substr(position_).starts_with("'''")) return lines();
                return quoted();
            case '"':
                return quoted();
            default:
                return unquoted();
        }
    }

    /// Of an object, up to the closing character; 0 stands for the end of the text.
    nlohmann::json members(char close, int depth) {
        nlohmann::json result = nlohmann::json::object();
        while (true) {
            const char first = next();
            if (first == close && (close != '\0' || at_end())) break;
            const std::string key = first == '"' || first == '\'' ? quoted() : unquoted_key();
            if (next() != ':') fail("a ':' is missing behind the key " + quoted_excerpt(key));
            ++position_;
            (void)next();
            if (result.contains(key)) fail("the key " + quoted_excerpt(key) + " is there twice");
            result[key] = value(depth + 1);
            if (next() == ',') ++position_;
        }
        if (close != '\0') ++position_;
        return result;
    }

    nlohmann::json elements(int depth) {
        nlohmann::json result = nlohmann::json::array();
        while (next() != ']') {
            result.push_back(value(depth + 1));
            if (next() == ',') ++position_;
        }
        ++position_;
        return result;
    }

    std::string unquoted_key() {
        const std::size_t first = position_;
        while (peek() != ':') {
            if (at_end() || std::string_view("{}[],").find(peek()) != std::string_view::npos) {
                fail("a key is missing");
            }
            ++position_;
        }
        const std::string_view key = trimmed(text_.substr(first, position_ - first));
        if (key.empty() || std::any_of(key.begin(), key.end(), is_space)) fail("a key is missing");
        return std::string(key);
    }

    /// A string in quotes of either kind, by the rules of JSON.
    std::string quoted() {
        const char quote = peek();
        std::string json(1, '"');
        for (++position_; peek() != quote; ++position_) {
            if (at_end()) fail("a string has no end");
            if (peek() == '\\' && peek(1) == '\'') ++position_;
            if (peek() == '"' && quote != '"') json.push_back('\\');
            json.push_back(peek());
            if (peek() == '\\' && !at_end(1)) json.push_back(text_[++position_]);
        }
        ++position_;
        json.push_back('"');
        return guarded([&] { return nlohmann::json::parse(json); }).get<std::string>();
    }

    /// A string of several lines between ''', less the indentation of its first quote.
    std::string lines() {
        const std::size_t before = text_.substr(0, position_).rfind('\n');
        const std::size_t indent = position_ - (before == std::string_view::npos ? 0 : before + 1);
        const auto skip_spaces = [&](std::size_t most) {
            for (; most > 0 && (peek() == ' ' || peek() == '\t' || peek() == '\r'); --most) ++position_;
        };
        position_ += 3;
        skip_spaces(text_.size());
        if (peek() == '\n') {
            ++position_;
            skip_spaces(indent);
        }
        std::string result;
        while (!text_.substr((std::min)(position_, text_.size())).starts_with("'''")) {
            if (at_end()) fail("a string has no end");
            const char character = text_[position_++];
            if (character != '\r') result.push_back(character);
            if (character == '\n') skip_spaces(indent);
        }
        position_ += 3;
        if (result.ends_with('\n')) result.pop_back();
        return result;
    }

    /// true, false, null or a number if it ends before a comma, a bracket or a comment; else a string up to the
    /// end of the line, with all of those.
    nlohmann::json unquoted() {
        if (at_end() || std::string_view("{}[],:").find(peek()) != std::string_view::npos) {
            fail("a value is missing");
        }
        const std::size_t first = position_;
        for (;; ++position_) {
            const bool ends = at_line_end();
            if (!ends && std::string_view(",}]").find(peek()) == std::string_view::npos && !at_comment())
                continue;
            const std::string_view token = trimmed(text_.substr(first, position_ - first));
            if (token == "null" || token == "true" || token == "false" || is_number(token)) {
                return guarded([&] { return nlohmann::json::parse(token); });
            }
            if (ends) return std::string(token);
        }
    }

    static std::string_view trimmed(std::string_view text) {
        while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
        while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
        return text;
    }

    static bool is_number(std::string_view token) {
        return !token.empty() && (token[0] == '-' || (token[0] >= '0' && token[0] <= '9')) &&
               nlohmann::json::accept(token);
    }

    /// function(), and what nlohmann-json throws there as a mistake in the text.
    template <class Function>
    nlohmann::json guarded(Function&& function) const {
        return attempt<nlohmann::json::exception>(
            function, [&](const nlohmann::json::exception& refused) -> nlohmann::json {
                fail(quoted_excerpt(refused.what(), 150));
            });
    }

    [[noreturn]] void fail(std::string_view what) const {
        const std::string_view read = text_.substr(0, (std::min)(position_, text_.size()));
        throw_error(argument_error(std::string(function_)
                                       .append(": this is no JSON or Hjson: ")
                                       .append(what)
                                       .append(" (line ")
                                       .append(error_text(1 + std::count(read.begin(), read.end(), '\n')))
                                       .append(")")));
    }

    std::string_view function_;
    std::string_view text_;
    std::size_t position_ = 0;
};

}  // namespace mp::detail

namespace mp {

/// Values for what is "auto" in a file, by the path of the key: {{"fp16.enabled", "true"}, ...}.
using deepspeed_auto_values = std::map<std::string, std::string, std::less<>>;

namespace detail {

inline constexpr std::string_view deepspeed_function = "mp::read_deepspeed_configuration";

[[noreturn]] inline void fail_deepspeed(std::string_view what) {
    throw_error(argument_error(std::string(deepspeed_function).append(": ").append(what)));
}

/// How many letters have to be inserted, removed or replaced to make one name of the other.
inline std::size_t edit_distance(std::string_view from, std::string_view to) {
    std::vector<std::size_t> row(to.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < from.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < to.size(); ++j) {
            const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = (std::min)({replaced, diagonal + 1, row[j] + 1});
        }
    }
    return row.back();
}

/// What the blocks of one file have in common.
struct deepspeed_reading {
    const deepspeed_auto_values* auto_values;
    std::deque<nlohmann::json> filled_in{};  // what stands for "auto"
    std::set<std::string> defaults{};        // paths of what is "auto" without a value
    std::vector<std::string> warnings{};
};

/// The text without the spaces around it, in lower case.
inline std::string lower_trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return {};
    std::string result(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
    for (char& letter : result) {
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    }
    return result;
}

/// The whole text as a number; empty if it is none.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
    if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

/// A truth value, 0 or 1, or a word for one.
inline std::optional<bool> deepspeed_boolean(const nlohmann::json& value) {
    constexpr std::string_view yes[] = {"true", "t", "yes", "y", "on", "1"};
    constexpr std::string_view no[] = {"false", "f", "no", "n", "off", "0"};
    if (value.is_boolean()) return value.get<bool>();
    if (value.is_number() && (value == 0 || value == 1)) return value == 1;
    if (!value.is_string()) return std::nullopt;
    const std::string word = lower_trimmed(value.get_ref<const std::string&>());
    if (std::find(std::begin(yes), std::end(yes), word) != std::end(yes)) return true;
    if (std::find(std::begin(no), std::end(no), word) != std::end(no)) return false;
    return std::nullopt;
}

/// A number, or one in quotes.
inline std::optional<double> deepspeed_number(const nlohmann::json& value) {
    if (value.is_number()) return value.get<double>();
    if (!value.is_string()) return std::nullopt;
    return number_in<double>(lower_trimmed(value.get_ref<const std::string&>()));
}

/// A whole number, also written as 2.0 or in quotes; beyond 64 bits the largest.
inline std::optional<std::int64_t> deepspeed_integer(const nlohmann::json& value) {
    if (value.is_number_unsigned()) {
        const auto large = value.get<std::uint64_t>();
        return std::in_range<std::int64_t>(large) ? static_cast<std::int64_t>(large) : INT64_MAX;
    }
    if (value.is_number_integer()) return value.get<std::int64_t>();
    if (value.is_string()) {
        std::string digits = lower_trimmed(value.get_ref<const std::string&>());
        const std::size_t last = digits.find_last_not_of('0');
        if (last != std::string::npos && last > 0 && digits[last] == '.') digits.resize(last);
        return number_in<std::int64_t>(digits);
    }
    const double number = value.is_number_float() ? value.get<double>() : 0.5;
    if (!(std::abs(number) < 0x1p53) || std::trunc(number) < number || std::trunc(number) > number) {
        return std::nullopt;
    }
    return static_cast<std::int64_t>(number);
}

/// A block of the configuration, which is asked for its keys one by one.
class deepspeed_block {
public:
    /// \param path  of the block; empty for the whole file
    deepspeed_block(const nlohmann::json& block, std::string path, deepspeed_reading& reading)
        : block_(&block), path_(std::move(path)), reading_(&reading) {
        if (!block.is_object()) {
            fail_deepspeed((path_.empty() ? std::string("the configuration") : path_) + " must be an object");
        }
    }

    /// The value of a key, or what it is filled in with; null if it is not there, or "auto" without a value. From
    /// then on the key is known.
    const nlohmann::json* find(std::string_view key) {
        known_.emplace_back(key);
        const auto found = block_->find(known_.back());
        if (found == block_->end()) return nullptr;
        if (!found->is_string() || found->get_ref<const std::string&>() != "auto") return &*found;
        const std::string path = path_of(key);
        const auto given = reading_->auto_values->find(path);
        if (given != reading_->auto_values->end()) {
            return &reading_->filled_in.emplace_back(given->second);
        }
        if (reading_->defaults.insert(path).second) {
            reading_->warnings.push_back(
                path + " is \"auto\" and has no value in auto_values: the default is taken");
        }
        return nullptr;
    }

    /// The same where null says as much as no key, as it does for Python's dict.get().
    const nlohmann::json* find_unless_null(std::string_view key) {
        const nlohmann::json* const value = find(key);
        return value == nullptr || value->is_null() ? nullptr : value;
    }

    /// Whether the key is "auto" and its default was taken.
    [[nodiscard]] bool took_default(std::string_view key) const {
        return reading_->defaults.count(path_of(key)) != 0;
    }

    std::optional<deepspeed_block> find_block(std::string_view key) {
        const nlohmann::json* const value = find_unless_null(key);
        if (value == nullptr) return std::nullopt;
        return deepspeed_block(*value, path_of(key), *reading_);
    }

    bool boolean(std::string_view key, bool otherwise) {
        const nlohmann::json* const value = find(key);
        if (value == nullptr) return otherwise;
        const std::optional<bool> read = deepspeed_boolean(*value);
        if (!read) fail_about(key, *value, "must be true or false");
        return *read;
    }

    /// A finite number from `least` on; truth values are none.
    double number(std::string_view key, double least, double otherwise) {
        const nlohmann::json* const value = find(key);
        if (value == nullptr) return otherwise;
        const std::optional<double> read = deepspeed_number(*value);
        if (!read) fail_about(key, *value, "must be a number");
        if (is_non_finite(*read) || *read < least) {
            fail_about(key, *value, "must be finite and at least " + error_text(least));
        }
        return *read;
    }

    /// A whole number between two others.
    std::optional<std::int64_t> integer(std::string_view key, std::int64_t least, std::int64_t greatest) {
        const nlohmann::json* const value = find(key);
        if (value == nullptr) return std::nullopt;
        return integer(key, *value, least, greatest);
    }
    [[nodiscard]] std::int64_t integer(std::string_view key, const nlohmann::json& value, std::int64_t least,
                                       std::int64_t greatest) const {
        const std::optional<std::int64_t> read = deepspeed_integer(value);
        if (!read) fail_about(key, value, "must be a whole number");
        if (*read < least || *read > greatest) {
            fail_about(key, value, "must lie between " + error_text(least) + " and " + error_text(greatest));
        }
        return *read;
    }

    /// Keys that are DeepSpeed's and of no interest here.
    template <std::size_t Count>
    void ignore(const std::array<std::string_view, Count>& keys) {
        known_.insert(known_.end(), keys.begin(), keys.end());
    }

    /// Throws if there is a key that was not read.
    void refuse_others() const {
        for (const auto& [key, value] : block_->items()) {
            if (!is_known(key))
                fail_deepspeed("there is no key " + quoted_excerpt(path_of(key)) +
                               " in DeepSpeed's configuration" + suggestion(key));
        }
    }
    /// Warns of keys that were not read.
    void warn_of_others() const {
        for (const auto& [key, value] : block_->items()) {
            if (!is_known(key))
                reading_->warnings.push_back("DeepSpeed ignores the key " + quoted_excerpt(path_of(key)) +
                                             suggestion(key));
        }
    }

    [[nodiscard]] std::string path_of(std::string_view key) const {
        return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
    }

    [[noreturn]] void fail_about(std::string_view key, const nlohmann::json& value,
                                 std::string_view expected) const {
        std::string message = path_of(key);
        if (value.is_structured()) {
            message.append(" is ").append(value.type_name());
        } else {
            // What is not UTF-8 was refused when the file was read; auto_values may hold anything.
            message.append(" is ").append(
                quoted_excerpt(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
        }
        fail_deepspeed(message.append("; it ").append(expected));
    }

private:
    [[nodiscard]] bool is_known(std::string_view key) const {
        return std::find(known_.begin(), known_.end(), key) != known_.end();
    }
    /// "; did you mean ...?" if a known key is near.
    [[nodiscard]] std::string suggestion(const std::string& key) const {
        const std::string* nearest = nullptr;
        for (std::size_t least = 4; const std::string& it : known_) {
            // As many letters as the lengths differ by have to be inserted or removed.
            if ((std::max)(key.size(), it.size()) - (std::min)(key.size(), it.size()) >= least) continue;
            const std::size_t distance = edit_distance(key, it);
            if (distance < least) {
                least = distance;
                nearest = &it;
            }
        }
        if (nearest == nullptr) return {};
        return "; did you mean " + quoted_excerpt(path_of(*nearest)) + "?";
    }

    const nlohmann::json* block_;
    std::string path_;
    deepspeed_reading* reading_;
    std::vector<std::string> known_;
};

}  // namespace detail
}  // namespace mp
