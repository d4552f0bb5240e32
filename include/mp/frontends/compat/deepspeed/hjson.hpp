// SPDX-License-Identifier: MIT
/// \file
/// Hjson, the form of JSON in which DeepSpeed's configurations are written: comments, commas that may be left out
/// or stand at the end, keys and strings without quotes. Needs nlohmann-json 3.
///
/// Grammar: hjson.github.io/syntax.html, and where that is silent what hjson 3.1.0 for Python does.
#pragma once

#include <mp/arrays/io/text_excerpt.hpp>
#include <mp/error.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

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
