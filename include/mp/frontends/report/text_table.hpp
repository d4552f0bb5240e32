// SPDX-License-Identifier: MIT
/// \file
/// Tables for terminals, and loss scales in tables and charts.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/nn/scaling/scale_checks.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
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

/// A human-readable scale: powers of two beyond 1024 as such, "2^16", other numbers with up to six digits.
inline std::string scale_text(double scale) {
    if (is_non_finite(scale)) return is_nan(scale) ? "NaN" : scale > 0.0 ? "infinity" : "-infinity";
    int exponent = 0;
    const double fraction = std::frexp(scale, &exponent);
    const bool power = !(fraction < 0.5) && !(fraction > 0.5);
    if (power && (exponent > 11 || exponent < -2)) return "2^" + error_text(exponent - 1);
    char buffer[64];
    const std::to_chars_result end =
        std::to_chars(buffer, buffer + sizeof buffer, scale, std::chars_format::general, 6);
    return {buffer, end.ptr};
}

/// Whether a scale has a place on a logarithmic axis.
inline bool is_drawable(float scale) noexcept {
    return !is_non_finite(scale) && scale > 0.0F;
}

}}  // namespace mp::detail
