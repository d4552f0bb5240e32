// SPDX-License-Identifier: MIT
/// \file
/// The pictures of the page: a strip of ratios, rooflines, and bars.
#pragma once

#include <mp/base/number_text.hpp>
#include <mp/frontends/report/chart.hpp>
#include <mp/frontends/report/html.hpp>

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
using mp::report::chart;
using mp::report::html_escaped;
using mp::report::svg_number;

// --- mp against the best peer

/// The shape of a dot, as path data.
inline std::string dot(int radius) {
    const std::string r = std::to_string(radius);
    const std::string arc = "a" + r + " " + r + " 0 1 0 ";
    return "m-" + r + " 0" + arc + std::to_string(2 * radius) + " 0" + arc + std::to_string(-2 * radius) +
           " 0z";
}

/// A line for each table in which mp has peers: a dot for each row, at how many times faster mp is than the
/// fastest of them.
inline std::string ratio_strip(const results& all) {
    struct place {
        double ratio;
        std::string text;
    };
    std::vector<std::pair<std::string, std::vector<place>>> lines;
    double least = 0.5;
    double most = 2.0;
    for (const table& it : all.tables) {
        if (!it.has_peers()) continue;
        std::vector<place> dots;
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
    const auto rows = static_cast<double>(lines.size());
    const double low = std::floor(std::log10(least) * 2) / 2 - 0.1;
    const double high = std::ceil(std::log10(most) * 2) / 2 + 0.1;
    chart plot("How many times faster mp is than the best peer", {low, 0.0}, {high, rows}, 38 * rows);
    plot.band("lead", 0.0, high, "", "mp is the fastest");
    for (const double tick : {0.01, 0.1, 1.0, 2.0, 5.0, 10.0, 100.0, 1000.0}) {
        const double at = std::log10(tick);
        if (at >= low && at <= high) plot.x_tick(at, fixed_text(tick, 2), true);
    }
    plot.segment("one", {0.0, 0.0}, {0.0, rows});
    plot.x_title("times as fast as the fastest other contender");
    // The name of a line stands above its dots, so that both have the whole width.
    double y = rows;
    for (const auto& [name, dots] : lines) {
        plot.text("name", {low, y}, 4.0, 14.0, "start", name.substr(0, name.find(',')));
        for (const place& it : dots) {
            plot.mark(it.ratio >= 1 ? "faster" : "slower", {std::log10(it.ratio), y - 0.7}, dot(5), it.text);
        }
        y -= 1.0;
        plot.y_minor(y);
    }
    return plot.html();
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

/// Four dashes, from the fastest memory on.
inline std::string slope_style(std::size_t index) {
    return "slope s" + std::to_string(index % 4);
}

inline std::string words_of(const slope& it) {
    return it.name + ", " + number_text(it.gigabytes) + " GB/s";
}

/// A shape of its own for each contender, so that colours are not needed to tell them apart.
inline std::string shape_of(std::string_view style) {
    if (style == "orange") return "m-5 -5h10v10h-10z";      // square
    if (style == "red") return "m0 -7l7 7l-7 7l-7 -7z";     // diamond
    if (style == "green") return "m0 -6.5l6.5 11.5h-13z";   // triangle
    if (style == "purple") return "m0 6.5l6.5 -11.5h-13z";  // triangle on its tip
    if (style == "mp packed") return "m0 -9l9 9l-9 9l-9 -9z";
    return dot(style == "mp" ? 7 : 5);
}

/// The contenders of the rows with their marks, and the lines of the memory.
inline std::string legend(const std::vector<const record*>& shown, const std::vector<slope>& slopes) {
    std::string html = "<div class=\"legend\">";
    std::vector<std::string> seen;
    for (const record* it : shown) {
        if (std::find(seen.begin(), seen.end(), it->contender) != seen.end()) continue;
        seen.push_back(it->contender);
        const std::string style(style_of(*it));
        html += mp::report::legend_entry("mark " + style, "M17 8" + shape_of(style), it->contender);
    }
    for (std::size_t i = 0; i < slopes.size(); ++i) {
        html += mp::report::legend_entry(slope_style(i), mp::report::legend_line, words_of(slopes[i]));
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
    const auto at = [](double intensity, double gigaflops) {
        return mp::report::chart_point{std::log2(intensity), std::log10(gigaflops)};
    };

    chart plot("Roofline of " + products.name, {begin, low}, {end, high}, 380);
    for (int decade = -2; decade <= 5; ++decade) {
        for (const int step : {1, 2, 5}) {
            const double value = step * std::pow(10.0, decade);
            if (std::log10(value) < low || std::log10(value) > high) continue;
            plot.y_tick(std::log10(value), fixed_text(value, 2));
        }
    }
    for (int power = static_cast<int>(std::ceil(begin)); power <= static_cast<int>(end); ++power) {
        plot.x_tick(power, fixed_text(std::exp2(power), 2));
    }
    plot.x_title("operations per byte of the three matrices");
    plot.y_title("GFLOP/s");

    // Shapes stand at the foot of their marks.
    std::vector<std::string> named;
    for (const record* it : shown) {
        if (std::find(named.begin(), named.end(), it->row) != named.end()) continue;
        named.push_back(it->row);
        const double place = std::log2(it->operations / it->bytes);
        plot.segment("guide", {place, low}, {place, high});
        plot.upward_text("shape", {place, low}, 11.0, 6.0, short_shape(it->row));
    }
    for (std::size_t i = 0; i < slopes.size(); ++i) {
        // From where it enters the picture to where it meets the highest roof.
        const slope& it = slopes[i];
        const double first = std::max(from, std::pow(10.0, low) / it.gigabytes);
        const double last = std::min(to, most / it.gigabytes);
        if (first >= last) continue;
        plot.polyline(slope_style(i), {at(first, first * it.gigabytes), at(last, last * it.gigabytes)},
                      words_of(it));
    }
    const double fastest_memory = slopes.empty() ? most : slopes.front().gigabytes;
    for (const roof& it : roofs) {
        const double first = std::max(from, it.gigaflops / fastest_memory);
        plot.segment("roof", at(first, it.gigaflops), at(to, it.gigaflops));
        plot.text("roof-name", at(to, it.gigaflops), -4.0, -5.0, "end",
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
                text += ", " + fraction_text(times_faster(*it, *limit)) + " of " + limit->contender;
            }
            const std::string_view style = style_of(*it);
            plot.mark(style, at(it->operations / it->bytes, it->figure()),
                      "m" + svg_number(aside) + " 0" + shape_of(style), text);
        }
    }
    return legend(shown, slopes) + plot.html();
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
                    fraction_text(share) + "</span></div>\n";
        }
        html += "</div>\n";
    }
    return html + "</div>\n";
}

}  // namespace bench::page
