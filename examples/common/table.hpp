// SPDX-License-Identifier: MIT
/// \file
/// Tables and paragraphs for the terminal.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "text.hpp"

namespace examples {

/// Lines of cells under headings of two lines each. The first column is text, the others are numbers.
struct table {
    std::vector<std::array<std::string, 2>> head;
    std::vector<std::vector<std::string>> rows;
};

/// The table in fixed-width characters.
inline std::string to_text(const table& it) {
    std::vector<std::vector<std::string>> lines(2);
    for (const auto& [first, second] : it.head) {
        lines[0].push_back(first);
        lines[1].push_back(second);
    }
    lines.insert(lines.end(), it.rows.begin(), it.rows.end());
    std::vector<std::size_t> widths(it.head.size());
    for (const auto& line : lines) {
        for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width_of(line[i]));
    }
    std::size_t total = 2 * (widths.size() - 1);
    for (const std::size_t width : widths) total += width;
    std::string text;
    for (std::size_t line = 0; line < lines.size(); ++line) {
        if (line == 2) text += std::string(total, '-') + "\n";
        for (std::size_t i = 0; i < lines[line].size(); ++i) {
            text += (i == 0 ? "" : "  ") + padded(lines[line][i], widths[i], i != 0);
        }
        text.erase(text.find_last_not_of(' ') + 1);
        text += "\n";
    }
    return text;
}

/// A paragraph in lines of at most `width` characters, the first of them begun by `first` and the others by
/// as many spaces.
inline std::string wrapped(const std::string& paragraph, const std::string& first, std::size_t width) {
    std::string text = first;
    std::size_t column = width_of(first);
    bool begun = false;
    for (std::size_t at = 0; at < paragraph.size();) {
        const std::size_t end = std::min(paragraph.find(' ', at), paragraph.size());
        const std::string word = paragraph.substr(at, end - at);
        if (begun && column + 1 + width_of(word) > width) {
            text += "\n" + std::string(width_of(first), ' ');
            column = width_of(first);
            begun = false;
        }
        text += (begun ? " " : "") + word;
        column += (begun ? 1 : 0) + width_of(word);
        begun = true;
        at = end + 1;
    }
    return text + "\n";
}

}  // namespace examples
