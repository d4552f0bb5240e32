// SPDX-License-Identifier: MIT
/// \file
/// What the reports are made of: one HTML page that needs nothing from anywhere else.
#pragma once

#include <mp/config.hpp>
#include <mp/frontends/report/chart.hpp>
#include <mp/frontends/report/html.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "replace_file.hpp"
#include "style.hpp"
#include "table.hpp"
#include "user_error.hpp"

namespace examples {

using mp::report::html_escaped;
using mp::report::html_typeset;

/// The file that the report goes to. Whether it can be written is known before the work begins.
class report_file {
public:
    /// Throws user_error if the file cannot be opened for writing. What is in it stays until write().
    explicit report_file(std::string path) : path_(std::move(path)) {
        if (!can_replace_file(path_)) throw user_error("cannot write the report to '" + path_ + "'");
    }

    /// Replaces the file, in whole. Throws user_error if that fails; the file is as before then.
    void write(const std::string& text) const {
        if (!replace_file(path_, text)) throw user_error("cannot write the report to '" + path_ + "'");
    }

private:
    std::string path_;
};

/// The page up to its content, which begins with the title as a heading.
inline std::string page_begin(const std::string& title, std::string_view more_style) {
    return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
           html_escaped(title) + "</title>\n<style>" + std::string(style_sheet) +
           std::string(mp::report::chart_style) + std::string(more_style) +
           "</style>\n</head>\n<body>\n<main>\n<h1>" + html_escaped(title) + "</h1>\n";
}

/// The end of the page: who made it, and `more`, which is HTML.
inline std::string page_end(const std::string& program, const std::string& more) {
    const std::string version = std::to_string(MP_VERSION_MAJOR) + "." + std::to_string(MP_VERSION_MINOR) +
                                "." + std::to_string(MP_VERSION_PATCH);
    return "<footer>Made by " + program + " of mp " + version + ". " + more +
           "</footer>\n</main>\n</body>\n</html>\n";
}

/// Where the digits come from, as their licence asks.
inline constexpr std::string_view digits_source =
    "The digits are the test set of &ldquo;Optical Recognition of Handwritten Digits&rdquo; by E. Alpaydin "
    "and C. Kaynak, UCI Machine Learning Repository, CC BY 4.0.";

/// A chart with its title and what there is to say about it; empty for an empty chart.
inline std::string figure(const std::string& title, const std::string& content, const std::string& caption) {
    if (content.empty()) return {};
    return "<figure>\n<h3>" + html_escaped(title) + "</h3>\n" + content + "<figcaption>" +
           html_escaped(caption) + "</figcaption>\n</figure>\n";
}

/// The entry of a line in a legend.
inline std::string legend_line(const std::string& style, std::string_view title) {
    return mp::report::legend_entry("line " + style, mp::report::legend_line, title);
}

/// The entry of the crosses.
inline std::string legend_cross() {
    return mp::report::legend_entry("cross", "M12 3l10 10m0-10l-10 10", "skipped step");
}

inline std::string html_table(const table& it) {
    std::string html = "<div class=\"scroll\"><table>\n<thead><tr>";
    for (const auto& [first, second] : it.head)
        html.append("<th>").append(first).append(first.empty() ? "" : " ").append(second).append("</th>");
    html += "</tr></thead>\n<tbody>\n";
    for (const auto& row : it.rows) {
        html += "<tr>";
        for (const std::string& cell : row) html += "<td>" + html_typeset(cell) + "</td>";
        html += "</tr>\n";
    }
    return html + "</tbody>\n</table></div>\n";
}

inline std::string html_list(const std::vector<std::string>& items, const std::string& style) {
    std::string html = "<ul class=\"" + style + "\">\n";
    for (const std::string& item : items) html += "<li>" + html_typeset(item) + "</li>\n";
    return html + "</ul>\n";
}

}  // namespace examples
