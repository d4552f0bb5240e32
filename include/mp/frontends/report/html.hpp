// SPDX-License-Identifier: MIT
/// \file
/// Text of pages: HTML and SVG that need nothing from anywhere else, and the style sheet that all pages of
/// the library share.
#pragma once

#include <mp/base/number_text.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mp::report { inline namespace MP_ISA_NAMESPACE {

/// Text that stands for itself in HTML, in content and between quotes. Control characters, which HTML does
/// not allow, become the replacement character.
inline std::string html_escaped(std::string_view text) {
    std::string result;
    for (const char c : text) {
        switch (c) {
            case '<':
                result += "&lt;";
                break;
            case '>':
                result += "&gt;";
                break;
            case '&':
                result += "&amp;";
                break;
            case '"':
                result += "&quot;";
                break;
            case '\'':
                result += "&#39;";
                break;
            default: {
                const auto byte = static_cast<unsigned char>(c);
                const bool control = (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f;
                control ? result.append("&#xFFFD;") : result.append(1, c);
            }
        }
    }
    return result;
}

/// A coordinate in a picture, to a tenth.
inline std::string svg_number(double value) {
    return detail::fixed_text(value, 1);
}

/// Escaped text, with powers of two such as 2^-14 set as such.
inline std::string html_typeset(std::string_view text) {
    std::string result;
    for (;;) {
        const std::size_t power = text.find("2^");
        result += html_escaped(text.substr(0, power));
        if (power == std::string_view::npos) return result;
        text.remove_prefix(power + 2);
        const std::size_t end = text.find_first_not_of("-0123456789");
        result.append("2<sup>").append(text.substr(0, end)).append("</sup>");
        if (end == std::string_view::npos) return result;
        text.remove_prefix(end);
    }
}

/// Rows of a table's cells; powers of two are set as such.
inline std::string html_rows(const std::vector<std::vector<std::string>>& rows) {
    std::string html;
    for (const auto& row : rows) {
        html += "<tr>";
        for (const std::string& cell : row) html += "<td>" + html_typeset(cell) + "</td>";
        html += "</tr>\n";
    }
    return html;
}

/// A table with its headings; powers of two in cells are set as such.
template <class Headings>
std::string html_table(const Headings& headings, const std::vector<std::vector<std::string>>& rows) {
    std::string html = "<div class=\"scroll\"><table>\n<thead><tr>";
    for (const std::string_view heading : headings) html.append("<th>").append(heading).append("</th>");
    return html + "</tr></thead>\n<tbody>\n" + html_rows(rows) + "</tbody>\n</table></div>\n";
}

/// The beginning of a page that needs nothing from anywhere else, with its title as a heading; `style`
/// follows the common style sheet.
inline std::string html_page_begin(std::string_view title, std::string_view style) {
    return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
           html_escaped(title) + "</title>\n<style>" + R"(
:root { color-scheme: light dark; --text: #1d2329; --dim: #5c6670; --back: #ffffff; --grid: #e6eaee; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8ec; --dim: #9aa5b0; --back: #15191d;
  --grid: #2c343c; } }
body { margin: 0; background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 24px 20px 48px; overflow-wrap: break-word; }
@media (max-width: 640px) { main { padding: 16px 12px 32px; } }
h1 { font-size: 24px; margin: 8px 0; } h2 { font-size: 18px; margin: 32px 0 8px; }
p { margin: 4px 0 12px; } .scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; }
th { color: var(--dim); font-weight: 600; vertical-align: bottom; }
th, td { padding: 4px 10px; text-align: right; border-bottom: 1px solid var(--grid);
  font-variant-numeric: tabular-nums; }
td { white-space: nowrap; } th:first-child, td:first-child { text-align: left; padding-left: 0; }
sup { line-height: 0; font-size: .75em; }
.note { color: var(--dim); font-size: 13px; }
)" + std::string(style) +
           "</style>\n</head>\n<body>\n<main>\n<h1>" + html_escaped(title) + "</h1>\n";
}

/// The end of such a page.
inline std::string html_page_end() {
    return "</main>\n</body>\n</html>\n";
}

}}  // namespace mp::report
