// SPDX-License-Identifier: MIT
/// \file
/// Tables as text with commas, after RFC 4180: what logs, ledgers and traces are written in. Numbers go
/// through to_chars and from_chars, so that no locale changes them and floats come back exactly.
#pragma once

#include <mp/error.hpp>
#include <mp/numbers/format/text.hpp>

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

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
/// counted from 1, and the column by number and name. Cells stay where they are in the text, and those for
/// which there is no column are only counted, so that memory does not grow with what a text holds.
class csv_reader {
public:
    /// More columns than any table has that is read here; a header with more is refused.
    static constexpr std::size_t most_columns = 256;

    /// \param function  whom the messages name
    /// \param text      must outlive the reader; a byte order mark at its beginning is skipped
    csv_reader(std::string_view function, std::string_view text) : function_(function), text_(text) {
        constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
        if (text_.starts_with(byte_order_mark)) at_ = byte_order_mark.size();
    }

    /// Reads the first line, with the names of the columns.
    void read_header() {
        kept_ = most_columns;
        if (!read_line())
            throw_joined<argument_error>({function_, ": line 1 is missing; it must name the columns"});
        if (cell_count_ > most_columns) {
            throw_argument(function_, "the number of cells in line 1", cell_count_,
                           "must be that of the columns, at most " + error_text(most_columns));
        }
        for (std::size_t i = 0; i < cell_count_; ++i) names_.emplace_back(cell(i));
        kept_ = cell_count_;
    }

    /// Reads the next line, which must have as many cells as the header; false at the end of the text.
    bool next() {
        if (!read_line()) return false;
        if (cell_count_ != names_.size()) {
            throw_argument(function_, "the number of cells in line " + error_text(line_), cell_count_,
                           "must be " + error_text(names_.size()) + ", as in the header");
        }
        return true;
    }

    [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
    /// The text of a cell, without the quotes around it; good until the next line is read.
    [[nodiscard]] std::string_view cell(std::size_t column) const {
        const cell_range& it = cells_[column];
        return (it.in_unquoted ? std::string_view(unquoted_) : text_).substr(it.begin, it.length);
    }

    /// The number that all of the cell means.
    template <class Number>
    [[nodiscard]] Number number(std::size_t column, std::string_view expected) const {
        Number value{};
        const std::string_view text = cell(column);
        const char* const end = text.data() + text.size();
        std::from_chars_result read{};
        if constexpr (std::is_floating_point_v<Number>) {
            // Not every standard library reads them.
            read = mp::from_chars(text.data(), end, value);
        } else {
            read = std::from_chars(text.data(), end, value);
        }
        if (read.ec != std::errc{} || read.ptr != end) refuse(column, expected);
        return value;
    }

    /// Throws: the cell is not what was expected.
    [[noreturn]] void refuse(std::size_t column, std::string_view expected) const {
        std::string where = "line " + error_text(line_) + ", column " + error_text(column + 1);
        if (column < names_.size()) where += " (" + printable(names_[column]) + ")";
        throw_argument(function_, where, printable(cell(column)), expected);
    }

private:
    /// The range of a cell: in the text, or, if quotes in it were doubled, in unquoted_.
    struct cell_range {
        std::size_t begin;
        std::size_t length;
        bool in_unquoted;
    };

    [[noreturn]] void malformed(std::string_view what) const {
        throw_joined<argument_error>(
            {function_, ": line ", error_text(line_), ", column ", error_text(cell_count_ + 1), " ", what});
    }

    /// Splits one line into cells_.
    bool read_line() {
        line_ += ends_in_last_line_ + 1;
        ends_in_last_line_ = 0;
        cells_.clear();
        cell_count_ = 0;
        unquoted_.clear();
        if (at_ == text_.size()) return false;
        for (;;) {
            if (at_ < text_.size() && text_[at_] == '"') {
                read_quoted_cell();
            } else {
                read_plain_cell();
            }
            ++cell_count_;
            if (at_ == text_.size()) return true;
            const char c = text_[at_++];
            if (c == ',') continue;
            if (c == '\r') ++at_;  // the line feed behind it was seen
            return true;
        }
    }

    [[nodiscard]] bool at_end_of_line() const {
        return at_ == text_.size() || text_[at_] == '\n' || text_.substr(at_, 2) == "\r\n";
    }

    void keep(cell_range cell) {
        if (cell_count_ < kept_) cells_.push_back(cell);
    }

    void read_plain_cell() {
        const std::size_t begin = at_;
        while (!at_end_of_line() && text_[at_] != ',') {
            if (text_[at_] == '"') malformed("has a quote inside of a cell without quotes around it");
            ++at_;
        }
        keep({begin, at_ - begin, false});
    }

    void read_quoted_cell() {
        const std::size_t begin = ++at_;
        bool doubled = false;
        for (;; ++at_) {
            if (at_ == text_.size()) malformed("has a quote that is not closed");
            if (text_[at_] == '\n') ++ends_in_last_line_;
            if (text_[at_] != '"') continue;
            if (text_.substr(at_, 2) != "\"\"") break;
            doubled = true;
            ++at_;
        }
        const std::string_view inside = text_.substr(begin, at_ - begin);
        ++at_;
        if (!at_end_of_line() && text_[at_] != ',') malformed("has text behind the closing quote");
        if (!doubled) return keep({begin, inside.size(), false});
        if (cell_count_ >= kept_) return;
        const std::size_t start = unquoted_.size();
        for (std::size_t i = 0; i < inside.size(); ++i) {
            unquoted_ += inside[i];
            if (inside[i] == '"') ++i;
        }
        keep({start, unquoted_.size() - start, true});
    }

    std::string_view function_;
    std::string_view text_;
    std::size_t at_ = 0;
    std::size_t line_ = 0;               ///< in which the present cells begin
    std::size_t ends_in_last_line_ = 0;  ///< ends of lines within its quotes
    std::vector<std::string> names_;
    std::vector<cell_range> cells_;  ///< the first kept_ of the line
    std::size_t cell_count_ = 0;     ///< all of the line
    std::size_t kept_ = 0;
    std::string unquoted_;
};

}}  // namespace mp::detail
