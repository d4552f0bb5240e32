// SPDX-License-Identifier: MIT
/// \file
/// Tables for terminals.
#pragma once

#include <mp/config.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The lines with their cells in columns, two spaces apart. All lines have as many cells as the first.
///
/// \param is_text  is_text(column) says whether a column has text, which begins at the left; numbers end at
///                 the right
template <class IsText>
std::string aligned_text(const std::vector<std::vector<std::string>>& lines, IsText is_text) {
    if (lines.empty()) return {};
    std::vector<std::size_t> widths(lines[0].size());
    for (const auto& line : lines) {
        for (std::size_t i = 0; i < line.size(); ++i) widths[i] = (std::max)(widths[i], line[i].size());
    }
    std::string text;
    for (const auto& line : lines) {
        std::string row;
        for (std::size_t i = 0; i < line.size(); ++i) {
            const std::string fill(widths[i] - line[i].size(), ' ');
            row += (i == 0 ? "" : "  ") + (is_text(i) ? line[i] + fill : fill + line[i]);
        }
        row.erase(row.find_last_not_of(' ') + 1);
        text += row + "\n";
    }
    return text;
}

}}  // namespace mp::detail
