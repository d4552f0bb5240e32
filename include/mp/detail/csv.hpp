// SPDX-License-Identifier: MIT
/// \file
/// Tables as text with commas, after RFC 4180: what logs, ledgers and traces are written in. Numbers go
/// through std::to_chars and std::from_chars, so that no locale changes them and floats come back exactly.
#pragma once

#include <mp/error.hpp>

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

namespace mp::detail {

/// Text of which every byte can be shown in a line: control characters and quotes as \xNN, and not more than
/// the first 60 bytes.
inline std::string printable(std::string_view text) {
    constexpr std::size_t most = 60;
    constexpr std::string_view digits = "0123456789abcdef";
    std::string result;
    for (const char c : text.substr(0, most)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7f) {
            result.append("\\x").append(1, digits[byte >> 4U]).append(1, digits[byte & 15U]);
        } else {
            result += c;
        }
    }
    if (text.size() > most) result += "...";
    return result;
}

/// Appends a text as a cell, between quotes if it holds a comma, a quote or an end of line.
inline void append_csv_text(std::string& to, std::string_view text) {
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
        to += text;
        return;
    }
    to += '"';
    for (const char c : text) to.append(c == '"' ? 2 : 1, c);
    to += '"';
}

/// Appends a number as a cell; floats in the shortest form that reads back the same.
template <class Number>
void append_csv_number(std::string& to, Number value) {
    char buffer[64];
    const std::to_chars_result end = std::to_chars(buffer, buffer + sizeof buffer, value);
    to.append(buffer, end.ptr);
}

/// Reads a table line by line. Everything that is not as it should be throws argument_error with the line,
/// counted from 1, and the column by number and name.
class csv_reader {
public:
    /// \param function  whom the messages name
    /// \param text      must outlive the reader; a byte order mark at its beginning is skipped
    csv_reader(std::string_view function, std::string_view text) : function_(function), text_(text) {
        constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
        if (text_.starts_with(byte_order_mark)) at_ = byte_order_mark.size();
    }

    /// Reads the first line, with the names of the columns.
    void read_header() {
        if (!read_line())
            throw argument_error(std::string(function_) + ": line 1 is missing; it must name the columns");
        names_ = cells_;
    }

    /// Reads the next line, which must have as many cells as the header; false at the end of the text.
    bool next() {
        if (!read_line()) return false;
        if (cells_.size() != names_.size()) {
            throw_argument(function_, "the number of cells in line " + error_text(line_), cells_.size(),
                           "must be " + error_text(names_.size()) + ", as in the header");
        }
        return true;
    }

    [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
    [[nodiscard]] std::string_view cell(std::size_t column) const { return cells_[column]; }

    /// The number that all of the cell means.
    template <class Number>
    [[nodiscard]] Number number(std::size_t column, std::string_view expected) const {
        Number value{};
        const std::string_view text = cells_[column];
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc{} || end != text.data() + text.size()) refuse(column, expected);
        return value;
    }

    /// Throws: the cell is not what was expected.
    [[noreturn]] void refuse(std::size_t column, std::string_view expected) const {
        std::string where = "line " + error_text(line_) + ", column " + error_text(column + 1);
        if (column < names_.size()) where += " (" + printable(names_[column]) + ")";
        throw_argument(function_, where, printable(cells_[column]), expected);
    }

private:
    [[noreturn]] void malformed(std::string_view what) const {
        throw argument_error(std::string(function_) + ": line " + error_text(line_) + ", column " +
                             error_text(cells_.size() + 1) + " " + std::string(what));
    }

    /// Splits one line into cells_.
    bool read_line() {
        line_ += ends_in_last_line_ + 1;
        ends_in_last_line_ = 0;
        cells_.clear();
        if (at_ == text_.size()) return false;
        for (;;) {
            cells_.push_back(at_ < text_.size() && text_[at_] == '"' ? quoted_cell() : plain_cell());
            if (at_ == text_.size()) return true;
            const char c = text_[at_++];
            if (c == ',') continue;
            if (c == '\r') ++at_;  // plain_cell and quoted_cell saw the line feed behind it
            return true;
        }
    }

    [[nodiscard]] bool at_end_of_line() const {
        return at_ == text_.size() || text_[at_] == '\n' || text_.substr(at_, 2) == "\r\n";
    }

    std::string plain_cell() {
        const std::size_t begin = at_;
        while (!at_end_of_line() && text_[at_] != ',') {
            if (text_[at_] == '"') malformed("has a quote inside of a cell without quotes around it");
            ++at_;
        }
        return std::string(text_.substr(begin, at_ - begin));
    }

    std::string quoted_cell() {
        std::string cell;
        ++at_;
        for (;;) {
            if (at_ == text_.size()) malformed("has a quote that is not closed");
            const char c = text_[at_++];
            if (c == '"') {
                if (at_ == text_.size() || text_[at_] != '"') break;
                ++at_;
            }
            if (c == '\n') ++ends_in_last_line_;
            cell += c;
        }
        if (!at_end_of_line() && text_[at_] != ',') malformed("has text behind the closing quote");
        return cell;
    }

    std::string_view function_;
    std::string_view text_;
    std::size_t at_ = 0;
    std::size_t line_ = 0;               ///< in which the present cells begin
    std::size_t ends_in_last_line_ = 0;  ///< ends of lines within its quotes
    std::vector<std::string> names_;
    std::vector<std::string> cells_;
};

}  // namespace mp::detail
