// SPDX-License-Identifier: MIT
/// \file
/// The results of replays as a picture: one HTML page that needs nothing from anywhere else.
#pragma once

#include <mp/base/number_text.hpp>
#include <mp/frontends/report/chart.hpp>
#include <mp/frontends/report/html.hpp>
#include <mp/frontends/report/replay.hpp>
#include <mp/frontends/report/text_table.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The axes of all charts of a page, so that they can be compared.
struct replay_axes {
    double steps = 1.0;
    double bottom = -1.0;  ///< as an exponent of 2
    double top = 1.0;
};

inline replay_axes axes_of(std::span<const replay_result> results) {
    float smallest = infinite_scale;
    float largest = 0.0F;
    replay_axes axes;
    for (const replay_result& it : results) {
        axes.steps = (std::max)(axes.steps, static_cast<double>(it.scales.size()));
        const auto include = [&](float scale) {
            if (!is_drawable(scale)) return;
            smallest = (std::min)(smallest, scale);
            largest = (std::max)(largest, scale);
        };
        for (const float scale : it.scales) include(scale);
        include(it.final_scale);
    }
    if (smallest <= largest) {
        axes.bottom = std::floor(std::log2(static_cast<double>(smallest))) - 1;
        axes.top = std::ceil(std::log2(static_cast<double>(largest))) + 1;
    }
    return axes;
}

/// Seven colours and four dashes, which differ for every kind of colour vision.
inline std::string replay_line_style(std::size_t index) {
    return "line c" + error_text(index % 7) + " d" + error_text(index / 7 % 4);
}

inline void draw_scales(report::chart& chart, const replay_result& it, std::string_view style, bool calm) {
    step_path line(chart, calm ? 4.0 : 2.0, calm);
    for (std::size_t step = 0; step < it.scales.size(); ++step) {
        const auto x = static_cast<double>(step);
        if (is_drawable(it.scales[step])) {
            line.add(x, std::log2(static_cast<double>(it.scales[step])));
        } else {
            line.stop(x);
        }
    }
    const auto end = static_cast<double>(it.scales.size());
    if (!it.scales.empty() && is_drawable(it.final_scale)) {
        line.add(end, std::log2(static_cast<double>(it.final_scale)));
    }
    line.stop(end);
    chart.path(style, line.data(), it.name);
    if (it.failed_at && is_drawable(it.final_scale)) {
        chart.mark("failure",
                   {static_cast<double>(*it.failed_at), std::log2(static_cast<double>(it.final_scale))},
                   "m-5-5l10 10m0-10l-10 10", it.name + " failed at step " + error_text(*it.failed_at));
    }
}

/// Short lines under the axis where steps were skipped, at most one for each column of the picture.
inline std::string skip_ticks(const report::chart& chart, const replay_result& it, double y) {
    std::string data;
    double next = 0.0;
    for (const std::uint64_t step : it.skipped_steps) {
        const double x = chart.unit_x(static_cast<double>(step) + 0.5);
        if (x < next) continue;
        data += "M" + report::svg_number(x) + " " + report::svg_number(y) + "v7";
        next = x + 1.0;
    }
    return data;
}

inline std::string replay_legend(std::span<const replay_result> results) {
    std::string html = "<div class=\"legend\">";
    for (std::size_t i = 0; i < results.size(); ++i) {
        html += report::legend_entry(replay_line_style(i), report::legend_line, results[i].name);
    }
    return html + "</div>\n";
}

/// All lines in one chart.
inline std::string replay_chart(std::span<const replay_result> results, const replay_axes& axes) {
    report::chart chart("The loss scale of each policy by step", {0.0, axes.bottom}, {axes.steps, axes.top},
                        368.0);
    chart.y_exponents(14);
    chart.x_counts(12, 0);
    chart.x_title("step");
    chart.y_title("loss scale");
    for (std::size_t i = 0; i < results.size(); ++i) {
        draw_scales(chart, results[i], replay_line_style(i), true);
    }
    return chart.html();
}

/// The line of one policy, and its skipped steps.
inline std::string replay_small_chart(const replay_result& it, const replay_axes& axes, std::size_t index) {
    report::chart chart("The loss scale of " + it.name + " by step", {0.0, axes.bottom},
                        {axes.steps, axes.top}, 140.0);
    chart.y_exponents(6);
    draw_scales(chart, it, "line c" + error_text(index % 7) + " d0", false);
    chart.path("skips", skip_ticks(chart, it, 143),
               counted(it.totals.skips, "skipped step", "skipped steps"));
    const std::string below = counted(it.totals.skips, "skip", "skips") + ", " +
                              counted(it.totals.backoffs, "back-off", "back-offs") + ", " +
                              counted(it.totals.growths, "growth", "growths") + ", at the end " +
                              scale_text(static_cast<double>(it.final_scale));
    return "<figure>\n<h3>" + report::html_escaped(it.name) + "</h3>\n" + chart.html() + "<figcaption>" +
           report::html_typeset(it.failed_at ? below + "; failed at step " + error_text(*it.failed_at)
                                             : below) +
           "</figcaption>\n</figure>\n";
}

inline constexpr std::string_view replay_style =
    R"(:root { --c0: #3f4a55; --c1: #c2410c; --c2: #1f6fb4; --c3: #00795a;
  --c4: #a8690a; --c5: #8a3fb5; --c6: #2b95c9; --bad: #c2410c; }
@media (prefers-color-scheme: dark) { :root { --c0: #c3ccd4; --c1: #ff8a4c; --c2: #5aa6ee; --c3: #3fd1a4;
  --c4: #f0bf4c; --c5: #d9a0f5; --c6: #9adcf7; --bad: #ff8a4c; } }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round; } .line:hover { stroke-width: 4; }
.c0 { stroke: var(--c0); } .c1 { stroke: var(--c1); } .c2 { stroke: var(--c2); } .c3 { stroke: var(--c3); }
.c4 { stroke: var(--c4); } .c5 { stroke: var(--c5); } .c6 { stroke: var(--c6); }
.d1 { stroke-dasharray: 8 3; } .d2 { stroke-dasharray: 3 3; } .d3 { stroke-dasharray: 10 3 2 3; }
.failure { fill: none; stroke: var(--bad); stroke-width: 2.4; } .skips { fill: none; stroke: var(--bad); }
.multiples { display: grid; grid-template-columns: repeat(auto-fill, minmax(300px, 1fr)); gap: 16px 24px; }
figure { margin: 0; } h3 { font-size: 14px; margin: 0; }
figcaption { color: var(--dim); font-size: 12px; }
)";

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// One HTML page about the replays of one trace: the scale of every policy by step, all in one chart and each
/// in one of its own with its skipped steps, and the table of replay_table. It has everything in it and
/// follows the reader's choice of light or dark.
///
/// \param title, note  any text; what has a meaning in HTML is escaped. The note stands under the title
[[nodiscard]] inline std::string replay_page(std::span<const replay_result> results,
                                             std::string_view title = "Loss scales in replay",
                                             std::string_view note = {}) {
    std::string html =
        report::html_page_begin(title, std::string(report::chart_style).append(detail::replay_style));
    if (!note.empty()) html += "<p>" + report::html_escaped(note) + "</p>\n";
    if (results.empty()) return html + "<p>There are no results.</p>\n" + report::html_page_end();
    const detail::replay_axes axes = detail::axes_of(results);
    html += detail::replay_legend(results) + detail::replay_chart(results, axes);
    std::vector<std::vector<std::string>> rows;
    for (const replay_result& it : results) rows.push_back(detail::replay_cells(it));
    html += "<h2>In numbers</h2>\n" + report::html_table(detail::replay_headings, rows);
    html +=
        "<p class=\"note\">Underflow is the share of gradient values other than zero that became zero, over "
        "the "
        "steps that were applied.</p>\n<h2>One by one</h2>\n<p class=\"note\">The same axes everywhere; the "
        "short "
        "lines under an axis are skipped steps. A scale that goes up and down all the time has its mean in "
        "the chart "
        "above and its extremes here.</p>\n<div class=\"multiples\">\n";
    for (std::size_t i = 0; i < results.size(); ++i) {
        html += detail::replay_small_chart(results[i], axes, i);
    }
    return html + "</div>\n" + report::html_page_end();
}

}}  // namespace mp
