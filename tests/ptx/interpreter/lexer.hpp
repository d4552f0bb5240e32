// SPDX-License-Identifier: MIT
// Words of PTX.
#pragma once

#include "text.hpp"

#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace ptx {

class lexer {
public:
    lexer(std::string_view text, std::size_t at, std::size_t end, int line)
        : text_(text.substr(0, end)), at_(at), line_(line) {
        next();
    }

    /// A name with its dots and colons, a number, a text in quotes, or one character; empty at the end.
    [[nodiscard]] std::string_view word() const { return word_; }
    [[nodiscard]] bool done() const { return word_.empty(); }
    [[nodiscard]] int line() const { return word_line_; }
    [[nodiscard]] std::size_t begin() const { return begin_; }
    [[nodiscard]] bool is(std::string_view word) const { return word_ == word; }

    bool accept(std::string_view word) {
        if (word_ != word) return false;
        next();
        return true;
    }
    void expect(std::string_view word) {
        if (!accept(word)) fail("expected " + std::string(word));
    }
    std::string_view take() {
        const std::string_view result = word_;
        next();
        return result;
    }
    [[noreturn]] void fail(const std::string& what) const {
        throw failure("PTX, line " + std::to_string(word_line_) + ": " + what + ", found '" +
                      std::string(word_) + "'");
    }
    /// Goes on behind the brace that closes the one that was just taken.
    std::size_t skip_braces() {
        int depth = 1;
        while (!done()) {
            if (is("{")) ++depth;
            if (is("}") && --depth == 0) {
                const std::size_t end = begin_;
                next();
                return end;
            }
            next();
        }
        fail("expected }");
    }

    [[nodiscard]] bool is_number() const {
        return !word_.empty() && (std::isdigit(static_cast<unsigned char>(word_[0])) != 0);
    }
    /// An integer, whose sign has been taken, or the bits of a number such as 0f3F800000.
    term number() {
        term result;
        const std::string word(take());
        if (word.size() > 2 && word[0] == '0' && (word[1] == 'f' || word[1] == 'F') && word.size() == 10) {
            result.kind = term::floating;
            result.value = static_cast<std::int64_t>(std::strtoull(word.c_str() + 2, nullptr, 16));
        } else if (word.size() == 18 && word[0] == '0' && (word[1] == 'd' || word[1] == 'D')) {
            result.kind = term::floating;
            result.is_double = true;
            result.value = static_cast<std::int64_t>(std::strtoull(word.c_str() + 2, nullptr, 16));
        } else {
            result.kind = term::integer;
            result.value = static_cast<std::int64_t>(std::strtoull(word.c_str(), nullptr, 0));
        }
        return result;
    }
    std::int64_t integer() {
        const bool negative = accept("-");
        if (!is_number()) fail("expected a number");
        const std::int64_t value = number().value;
        return negative ? -value : value;
    }

private:
    static bool in_name(char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '.' ||
               c == '%';
    }
    void next() {
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '\n') {
                ++line_;
                ++at_;
            } else if (c == ' ' || c == '\t' || c == '\r' || c == '\0') {
                ++at_;
            } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '/') {
                at_ = text_.find('\n', at_);
                if (at_ == std::string_view::npos) at_ = text_.size();
            } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '*') {
                std::size_t end = text_.find("*/", at_);
                end = end == std::string_view::npos ? text_.size() : end + 2;
                for (; at_ < end; ++at_) line_ += text_[at_] == '\n' ? 1 : 0;
            } else {
                break;
            }
        }
        begin_ = at_;
        word_line_ = line_;
        if (at_ == text_.size()) {
            word_ = {};
            return;
        }
        if (text_[at_] == '"') {
            const std::size_t end = text_.find('"', at_ + 1);
            at_ = end == std::string_view::npos ? text_.size() : end + 1;
        } else if (in_name(text_[at_])) {
            for (;;) {
                while (at_ < text_.size() && in_name(text_[at_])) ++at_;
                // .shared::cta is one word.
                if (at_ + 2 < text_.size() && text_[at_] == ':' && text_[at_ + 1] == ':') {
                    at_ += 2;
                } else {
                    break;
                }
            }
        } else {
            ++at_;
        }
        word_ = text_.substr(begin_, at_ - begin_);
    }

    std::string_view text_;
    std::size_t at_;
    std::size_t begin_ = 0;
    int line_;
    int word_line_ = 0;
    std::string_view word_;
};

}  // namespace ptx
