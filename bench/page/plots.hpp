// SPDX-License-Identifier: MIT
/// \file
/// The pictures of the page: a strip of ratios, rooflines, and bars.
#pragma once

#include <mp/detail/number_text.hpp>
#include <mp/report/html.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "records.hpp"
#include "style.hpp"

namespace bench::page {

using mp::detail::fixed_text;
using mp::detail::html_escaped;
using mp::detail::svg_number;
using mp::detail::svg_text;

inline std::string svg_line(std::string_view style, double x1, double y1, double x2, double y2) {
    return "<line class=\"" + std::string(style) + "\" x1=\"" + svg_number(x1) + "\" y1=\"" + svg_number(y1) +
           "\" x2=\"" + svg_number(x2) + "\" y2=\"" + svg_number(y2) + "\"/>\n";
}

inline std::string svg_begin(double width, double height, std::string_view label) {
    return "<svg viewBox=\"0 0 " + svg_number(width) + " " + svg_number(height) +
           "\" role=\"img\" aria-label=\"" + html_escaped(label) + "\">\n";
}

inline std::string title(std::string_view text) {
    return "<title>" + html_escaped(text) + "</title>";
}

// --- mp against the best peer

/// A line for each table in which mp has peers: a dot for each row, at how many times faster mp is than the
/// fastest of them.
inline std::string ratio_strip(const results& all) {
    struct dot {
        double ratio;
        std::string text;
    };
    std::vector<std::pair<std::string, std::vector<dot>>> lines;
    double least = 0.5;
    double most = 2.0;
    for (const table& it : all.tables) {
        if (!it.has_peers()) continue;
        std::vector<dot> dots;
        for (const std::string& row : it.rows) {
            const record* const own = it.own(row);
            const record* const peer = it.best_peer(row);
            if (own == nullptr || peer == nullptr) continue;
            const double ratio = times_faster(*own, *peer);
            least = std::min(least, ratio);
            most = std::max(most, ratio);
            dots.push_back({ratio, row + ": " + number_text(ratio) + " times as fast as " + peer->contender +
                                       ", " + figure_text(*own) + " against " + figure_text(*peer)});
        }
        const std::string before = it.records.front().program == "scalar" ? "single numbers of " : "";
        if (!dots.empty()) lines.emplace_back(before + it.name, std::move(dots));
    }
    if (lines.empty()) return {};
    constexpr double width = 1040;
    constexpr double left = 360;
    constexpr double right = width - 16;
    constexpr double top = 26;
    constexpr double line_height = 21;
    const double bottom = top + line_height * static_cast<double>(lines.size());
    const double low = std::floor(std::log10(least) * 2) / 2 - 0.1;
    const double high = std::ceil(std::log10(most) * 2) / 2 + 0.1;
    const auto x = [&](double ratio) {
        return left + (std::log10(ratio) - low) / (high - low) * (right - left);
    };
    std::string svg = svg_begin(width, bottom + 8, "How many times faster mp is than the best peer");
    svg += "<rect class=\"lead\" x=\"" + svg_number(x(1)) + "\" y=\"" + svg_number(top) + "\" width=\"" +
           svg_number(right - x(1)) + "\" height=\"" + svg_number(bottom - top) + "\"/>\n";
    for (const double tick : {0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0, 1000.0}) {
        if (std::log10(tick) < low || std::log10(tick) > high) continue;
        svg += svg_line(tick == 1.0 ? "one" : "grid", x(tick), top, x(tick), bottom);
        svg += svg_text("tick", x(tick), top - 8, "middle", fixed_text(tick, 2));
    }
    double y = top + line_height / 2;
    for (const auto& [name, dots] : lines) {
        const std::string shown = name.substr(0, name.find(','));
        svg += svg_text("name", left - 14, y + 4, "end", shown);
        svg += svg_line("grid", left, y + line_height / 2, right, y + line_height / 2);
        for (const dot& it : dots) {
            svg += "<circle class=\"" + std::string(it.ratio >= 1 ? "faster" : "slower") + "\" cx=\"" +
                   svg_number(x(it.ratio)) + "\" cy=\"" + svg_number(y) + "\" r=\"5\">" + title(it.text) +
                   "</circle>\n";
        }
        y += line_height;
    }
    return svg + "</svg>\n";
}

// --- rooflines

/// A limit of calculation: 10^9 operations a second.
struct roof {
    std::string name;
    double gigaflops;
};

/// A limit of memory: 10^9 bytes a second.
struct slope {
    std::string name;
    double gigabytes;
};

/// A mark of its own for each contender, so that colours are not needed to tell them apart.
inline std::string mark(std::string_view style, double x, double y, std::string_view tooltip) {
    const std::string begin = "class=\"mark " + std::string(style) + "\"";
    const std::string hover = title(tooltip);
    const auto path = [&](std::string_view shape) {
        return "<path " + begin + " d=\"M" + svg_number(x) + " " + svg_number(y) + std::string(shape) +
               "\">" + hover + "</path>\n";
    };
    if (style == "orange") return path("m-5 -5h10v10h-10z");      // square
    if (style == "red") return path("m0 -7l7 7l-7 7l-7 -7z");     // diamond
    if (style == "green") return path("m0 -6.5l6.5 11.5h-13z");   // triangle
    if (style == "purple") return path("m0 6.5l6.5 -11.5h-13z");  // triangle on its tip
    if (style == "mp packed") return path("m0 -9l9 9l-9 9l-9 -9z");
    return "<circle " + begin + " cx=\"" + svg_number(x) + "\" cy=\"" + svg_number(y) + "\" r=\"" +
           (style == "mp" ? "7" : "5") + "\">" + hover + "</circle>\n";
}

/// The contenders of the rows, with their marks.
inline std::string legend(const std::vector<const record*>& shown) {
    std::string html = "<div class=\"legend\">";
    std::vector<std::string> seen;
    for (const record* it : shown) {
        if (std::find(seen.begin(), seen.end(), it->contender) != seen.end()) continue;
        seen.push_back(it->contender);
        html += "<span><svg viewBox=\"0 0 16 16\" style=\"width:16px;height:16px\">" +
                mark(style_of(*it), 8, 8, it->contender) + "</svg>" + html_escaped(it->contender) + "</span>";
    }
    return html + "</div>\n";
}

/// "256x256x256" as "256³".
inline std::string short_shape(const std::string& row) {
    const std::string side = row.substr(0, row.find('x'));
    return row == side + "x" + side + "x" + side ? side + "\u00b3" : row;
}

/// The rows of a table of matrix products over their arithmetic intensity, operations by bytes of the three
/// matrices, both axes logarithmic. Rows whose name has a comma (", two threads") are left out.
inline std::string roofline(const table& products, const std::vector<roof>& roofs,
                            const std::vector<slope>& slopes) {
    std::vector<const record*> shown;
    for (const record& it : products.records) {
        if (it.row.find(',') == std::string::npos && (it.role == "mp" || it.role == "contender")) {
            shown.push_back(&it);
        }
    }
    if (shown.empty() || roofs.empty()) return {};
    constexpr double width = 1040;
    constexpr double height = 430;
    constexpr double left = 62;
    constexpr double right = width - 16;
    constexpr double top = 14;
    constexpr double bottom = height - 46;
    double most = 0;
    for (const roof& it : roofs) most = std::max(most, it.gigaflops);
    double least = most;
    double highest = most;
    double from = 0.25;
    double to = 4096;
    for (const record* it : shown) {
        least = std::min(least, it->figure());
        highest = std::max(highest, it->figure());
        from = std::min(from, it->operations / it->bytes / 2);
        to = std::max(to, it->operations / it->bytes * 2);
    }
    const double low = std::log10(least / 1.6);
    const double high = std::log10(highest * 1.5);
    const double begin = std::log2(from);
    const double end = std::log2(to);
    const auto x = [&](double intensity) {
        return left + (std::log2(intensity) - begin) / (end - begin) * (right - left);
    };
    const auto y = [&](double gigaflops) {
        return bottom - (std::log10(gigaflops) - low) / (high - low) * (bottom - top);
    };

    std::string svg = svg_begin(width, height, "Roofline of " + products.name);
    for (int decade = -2; decade <= 5; ++decade) {
        for (const int step : {1, 2, 5}) {
            const double value = step * std::pow(10.0, decade);
            if (std::log10(value) < low || std::log10(value) > high) continue;
            svg += svg_line("grid", left, y(value), right, y(value));
            svg += svg_text("tick", left - 8, y(value) + 4, "end", fixed_text(value, 2));
        }
    }
    for (int power = static_cast<int>(std::ceil(begin)); power <= static_cast<int>(end); ++power) {
        svg += svg_text("tick", x(std::exp2(power)), bottom + 18, "middle", fixed_text(std::exp2(power), 2));
    }
    svg += svg_text("axis", (left + right) / 2, height - 6, "middle",
                    "operations per byte of the three matrices");
    svg += "<text class=\"axis\" text-anchor=\"middle\" transform=\"translate(14 " +
           svg_number((top + bottom) / 2) + ") rotate(-90)\">GFLOP/s</text>\n";

    // Shapes stand at the foot of their marks.
    std::vector<std::string> named;
    for (const record* it : shown) {
        if (std::find(named.begin(), named.end(), it->row) != named.end()) continue;
        named.push_back(it->row);
        const double at = x(it->operations / it->bytes);
        svg += svg_line("guide", at, top, at, bottom);
        svg += svg_text("shape", at + 3, bottom - 6, "start", short_shape(it->row));
    }
    for (const slope& it : slopes) {
        // From where it enters the picture to where it meets the highest roof.
        const double first = std::max(from, std::pow(10.0, low) / it.gigabytes);
        const double last = std::min(to, most / it.gigabytes);
        if (first >= last) continue;
        svg += svg_line("slope", x(first), y(first * it.gigabytes), x(last), y(last * it.gigabytes));
        const double angle =
            -std::atan2(y(first * it.gigabytes) - y(last * it.gigabytes), x(last) - x(first)) * 180 /
            3.14159265;
        const double at = std::sqrt(first * last);
        svg += "<text class=\"roof-name\" text-anchor=\"middle\" transform=\"translate(" + svg_number(x(at)) +
               " " + svg_number(y(at * it.gigabytes) - 6) + ") rotate(" + svg_number(angle) + ")\">" +
               html_escaped(it.name + ", " + number_text(it.gigabytes) + " GB/s") + "</text>\n";
    }
    const double fastest_memory = slopes.empty() ? most : slopes.front().gigabytes;
    for (const roof& it : roofs) {
        const double first = std::max(from, it.gigaflops / fastest_memory);
        svg += svg_line("roof", x(first), y(it.gigaflops), right, y(it.gigaflops));
        svg += svg_text("roof-name", right - 4, y(it.gigaflops) - 5, "end",
                        it.name + ", " + number_text(it.gigaflops) + " GFLOP/s");
    }
    // mp last, so that nothing covers it. Those of a row stand side by side a little.
    for (const bool own : {false, true}) {
        for (const record* it : shown) {
            if ((it->role == "mp") != own) continue;
            const auto place =
                std::find(products.contenders.begin(), products.contenders.end(), it->contender) -
                products.contenders.begin();
            const double aside =
                own ? 0 : (place % 2 == 0 ? 5.0 : -5.0) * static_cast<double>((place + 1) / 2);
            std::string text = it->contender + ", " + it->row + ": " + figure_text(*it);
            if (const record* limit = products.limit(it->row)) {
                text += ", " + share_text(times_faster(*it, *limit)) + " of " + limit->contender;
            }
            svg += mark(style_of(*it), x(it->operations / it->bytes) + aside, y(it->figure()), text);
        }
    }
    svg += "<path class=\"frame\" d=\"M" + svg_number(left) + " " + svg_number(top) + "V" +
           svg_number(bottom) + "H" + svg_number(right) + "\"/>\n";
    return legend(shown) + "<div class=\"scroll\">" + svg + "</svg></div>\n";
}

// --- bars

/// The rows of a table side by side, a bar for each contender: its share of the row's limit.
inline std::string share_bars(const table& it) {
    std::string html = "<div class=\"panels\">\n";
    for (const std::string& row : it.rows) {
        const record* const limit = it.limit(row);
        if (limit == nullptr) continue;
        html += "<div class=\"panel\"><h4>" + html_escaped(row) + "</h4>\n";
        for (const record* bar : it.in_row(row)) {
            if (bar->role == "limit") continue;
            const double share = times_faster(*bar, *limit);
            const std::string tooltip = bar->contender + ": " + figure_text(*bar) + ", the limit is " +
                                        number_text(limit->figure()) + " (" + limit->contender + ")";
            html += "<div class=\"bar" + std::string(bar->role == "mp" ? " own" : "") + "\" title=\"" +
                    html_escaped(tooltip) + "\"><span>" + html_escaped(bar->contender) +
                    "</span><div class=\"track\"><div class=\"fill " + std::string(style_of(*bar)) +
                    "\" style=\"width:" + svg_number(100 * std::min(share, 1.0)) + "%\"></div></div><span>" +
                    share_text(share) + "</span></div>\n";
        }
        html += "</div>\n";
    }
    return html + "</div>\n";
}

}  // namespace bench::page
