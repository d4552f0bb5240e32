// SPDX-License-Identifier: MIT
/// \file
/// The page on how training scales with ranks.
#pragma once

#include <mp/frontends/report/chart.hpp>
#include <mp/frontends/report/html.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "../../examples/common/text.hpp"
#include "scenarios.hpp"

namespace bench::ranks {

using examples::fixed;
using mp::report::chart_point;
using rows = std::vector<std::vector<std::string>>;

inline constexpr std::string_view style_sheet = R"(
:root { --float: #66788a; --bfloat: #1b63d6; --half: #2b8a53; --other: #d2720c; }
@media (prefers-color-scheme: dark) { :root { --float: #9fb0c0; --bfloat: #62a0ff; --half: #5cc68a; --other: #f0a04b; } }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; } .sharded { stroke-dasharray: 6 4; }
.float { stroke: var(--float); } .bfloat { stroke: var(--bfloat); } .half { stroke: var(--half); }
.other { stroke: var(--other); } .half.line:not(.sharded) { stroke-dasharray: 2 5; }
.half.sharded { stroke-dasharray: 2 3 8 3; } h3 { font-size: 15px; margin: 22px 0 6px; }
)";

inline std::string size_text(double bytes) {
    return bytes >= 1 << 20 ? fixed(bytes / (1 << 20), 0) + " MiB" : fixed(bytes / 1024, 0) + " KiB";
}
inline std::string html_table(const std::vector<std::string>& head, const rows& body) {
    std::string html = "<div class=\"scroll\"><table>\n<thead><tr>";
    for (const std::string& it : head) html += "<th>" + mp::report::html_escaped(it) + "</th>";
    return html + "</tr></thead>\n<tbody>\n" + mp::report::html_rows(body) + "</tbody>\n</table></div>\n";
}
inline std::string markdown(const std::vector<std::string>& head, const rows& body) {
    std::string text = "|";
    for (const std::string& it : head) text += " " + it + " |";
    text += "\n|---|";
    for (std::size_t i = 1; i < head.size(); ++i) text += "---:|";
    text += "\n";
    for (const auto& row : body) {
        text += "|";
        for (const std::string& cell : row) text += " " + cell + " |";
        text += "\n";
    }
    return text;
}

struct curve {
    std::string_view name;
    std::string style;
    std::vector<chart_point> points;  ///< by the base-2 logarithm of what is on the x axis
    std::vector<std::string> tips;
};

/// Curves in percent of something.
inline std::string percent_chart(std::string_view label, std::string_view x_title, std::string_view y_title,
                                 const std::vector<curve>& curves, double from, double to, double top,
                                 std::string (*x_text)(double)) {
    mp::report::chart plot(label, {from, 0}, {to, top}, 260);
    for (double x = from; x <= to; ++x) plot.x_tick(x, x_text(x));
    const double y_step = mp::report::tick_step(top, 6, 5);
    for (double y = 0; y <= top; y += y_step) plot.y_tick(y, fixed(y, 0) + "%");
    plot.x_title(x_title);
    plot.y_title(y_title);
    std::string legend = "<div class=\"legend\">";
    for (const curve& it : curves) {
        legend += mp::report::legend_entry("line " + it.style, mp::report::legend_line, it.name);
        std::vector<chart_point> shown = it.points;
        for (chart_point& at : shown) {
            if (at.y > top) at.y = std::nan("");
        }
        plot.polyline("line " + it.style, shown);
        for (std::size_t i = 0; i < it.tips.size(); ++i) plot.hover(shown[i], it.tips[i]);
    }
    return legend + "</div>\n" + plot.html();
}
inline std::string count_text(double power) {
    return fixed(std::exp2(power), 0);
}
inline std::string bucket_text(double power) {
    return power >= 20 ? fixed(std::exp2(power - 20), 0) + "M" : fixed(std::exp2(power - 10), 0) + "K";
}

/// How much of a rank is left with N of them, for every wire.
inline std::string efficiency_chart(const measured_rank& one, const named_link& by) {
    std::vector<curve> curves;
    for (const variant& how : variants) {
        curve it{how.name, std::string(how.style), {}, {}};
        for (const int n : rank_counts()) {
            const best_step best =
                best_of(one.times, link_of(by, one), reduction_of(one, how.wire, how.shard, n));
            const double part = 100 * efficiency(one.times, best.it.all);
            it.points.push_back({std::log2(n), part});
            it.tips.push_back(std::string(how.name) + ", " + std::to_string(n) + " ranks: " + fixed(part, 1) +
                              "%, " + fixed(1e3 * best.it.all, 2) + " ms a step, buckets of " +
                              size_text(best.bucket_bytes));
        }
        curves.push_back(it);
    }
    double top = 100;
    for (const curve& it : curves) {
        for (const chart_point& at : it.points) top = std::max(top, 10 * std::ceil(at.y / 10));
    }
    return percent_chart("Efficiency by the number of ranks, " + std::string(by.name), "ranks",
                         "tokens per second of a rank, of those of one alone", curves, 0, 10, top,
                         count_text);
}

/// Steps of some numbers of ranks, by wire.
inline rows step_rows(const measured_rank& one, const named_link& by) {
    rows body;
    for (const int n : rank_counts()) {
        std::vector<std::string> row{std::to_string(n)};
        for (const variant& how : variants) {
            if (how.wire == "half") continue;
            const best_step best =
                best_of(one.times, link_of(by, one), reduction_of(one, how.wire, how.shard, n));
            row.push_back(fixed(1e3 * best.it.all, 2));
            row.push_back(fixed(100 * efficiency(one.times, best.it.all), 1) + "%");
            if (!how.shard) row.push_back(n == 1 ? "" : size_text(best.bucket_bytes));
        }
        body.push_back(row);
    }
    return body;
}
inline const std::vector<std::string> step_head{
    "ranks",        "float32, ms",          "of one", "best buckets",          "bfloat16, ms", "of one",
    "best buckets", "float32, sharded, ms", "of one", "bfloat16, sharded, ms", "of one"};

/// How a step depends on the size of buckets.
inline std::string bucket_chart(const measured_rank& one, int ranks) {
    constexpr std::array styles{"other", "bfloat", "half"};
    std::vector<curve> curves;
    for (std::size_t i = 0; i < links.size(); ++i) {
        curve it{links[i].name, styles[i], {}, {}};
        reduction how = reduction_of(one, "bfloat16", false, ranks);
        const network_link over = link_of(links[i], one);
        const double best = best_of(one.times, over, how).it.all;
        for (int power = 16; power <= 27; ++power) {
            how.bucket_bytes = std::exp2(power);
            const double more = 100 * (simulate(one.times, over, how).all / best - 1);
            it.points.push_back({static_cast<double>(power), more});
            it.tips.push_back(std::string(it.name) + ", buckets of " + size_text(how.bucket_bytes) + ": " +
                              fixed(more, 1) + "% more than the best");
        }
        curves.push_back(it);
    }
    double top = 10;
    for (const curve& it : curves) {
        for (const chart_point& at : it.points) top = std::max(top, at.y);
    }
    return percent_chart("Time of a step by the size of buckets", "bytes of gradients in a bucket",
                         "longer than with the best buckets", curves, 16, 27,
                         std::min(100.0, 10 * std::ceil(top / 10)), bucket_text);
}

/// mp's exchange beside other algorithms.
inline std::string algorithm_chart(const measured_rank& one, const named_link& by) {
    constexpr std::array styles{"bfloat", "other", "half", "float"};
    std::vector<curve> curves;
    for (std::size_t i = 0; i < all_algorithms.size(); ++i) {
        curve it{name_of(all_algorithms[i]), styles[i], {}, {}};
        for (const int n : rank_counts()) {
            reduction how = reduction_of(one, "bfloat16", false, n);
            how.by = all_algorithms[i];
            const best_step best = best_of(one.times, link_of(by, one), how);
            const double part = 100 * efficiency(one.times, best.it.all);
            it.points.push_back({std::log2(n), part});
            it.tips.push_back(std::string(it.name) + ", " + std::to_string(n) + " ranks: " + fixed(part, 1) +
                              "%, buckets of " + size_text(best.bucket_bytes));
        }
        curves.push_back(it);
    }
    return percent_chart("Efficiency by algorithm, " + std::string(by.name), "ranks",
                         "tokens per second of a rank, of those of one alone", curves, 0, 10, 100,
                         count_text);
}

/// Two ranks as measured and as simulated.
inline rows validation_rows(const measured_rank& one) {
    rows body;
    for (const measured_step& it : one.two) {
        measured_rank beside = faster(one, 1 / one.together);
        beside.copy = one.copy;
        beside.reduce = one.reduce;
        reduction how = reduction_of(one, it.wire, it.shard, 2);
        how.bucket_bytes = it.bucket_bytes;
        const step simulated = simulate(beside.times, shared_memory(one), how);
        body.push_back({it.wire + (it.shard ? ", sharded" : ""), size_text(it.bucket_bytes),
                        fixed(1e3 * it.all, 1), fixed(1e3 * simulated.all, 1),
                        fixed(100 * (simulated.all / it.all - 1), 1) + "%", fixed(1e3 * it.waited, 1),
                        fixed(1e3 * simulated.waited, 1)});
    }
    return body;
}
inline const std::vector<std::string> validation_head{
    "wire", "buckets", "measured, ms", "simulated, ms", "difference", "waited, ms", "simulated, ms"};

inline std::string page(const measured_rank& one, const std::vector<double>& speeds) {
    const auto& t = one.times;
    std::string html = mp::report::html_page_begin("Ranks: how training would scale",
                                                   std::string(mp::report::chart_style).append(style_sheet));
    html += "<p>A simulation, not a measurement: the model of train_gpt with " +
            fixed(one.parameters / 1e6, 1) + " million parameters in float, " + fixed(one.tokens, 0) +
            " tokens a rank and step (weak scaling), trained on N ranks by mp::gradient_reduction. One rank "
            "was measured: "
            "forward " +
            fixed(1e3 * t.forward, 1) + " ms, backward " + fixed(1e3 * t.backward, 1) + " ms, update " +
            fixed(1e3 * t.update, 1) +
            " ms, and when each gradient is complete. Every point has the best buckets "
            "for its N, which the tooltips tell.</p>\n<h2>What is assumed</h2>\n<ul>\n"
            "<li>All ranks are equal and begin together: nobody waits for a slow one. Real runs do, the more "
            "the more "
            "ranks there are.</li>\n"
            "<li>A rank has one link, through a switch that is no bottleneck. A message takes a latency, an "
            "overhead "
            "where it is sent, and its bytes through the bandwidth, in both directions at once; collective "
            "calls take "
            "turns on the link. Their figures are round numbers of such networks";
    for (const named_link& it : links) {
        html += std::string(&it == &links.front() ? ": " : "; ") + std::string(it.name) + " " +
                fixed(1e6 * it.over.latency, 0) + " us, " + fixed(1e6 * it.over.overhead, 1) + " us, " +
                fixed(1e-9 * it.over.bandwidth, 1) + " GB/s" +
                (it.copies ? " and the processor copies, at " + fixed(1e9 * one.copy, 2) + " ns a byte" : "");
    }
    html +=
        ".</li>\n<li>Gradients move on only where mp looks: when an op has written one, and in finish(). The "
        "processor packs, adds up and unpacks, as measured";
    for (const auto& [wire, seconds] : one.reduce) {
        html += std::string(wire == one.reduce.begin()->first ? ": " : ", ") + wire + " " +
                fixed(1e9 * seconds, 2) + " ns an element";
    }
    html +=
        ".</li>\n<li>Pairwise, as mp does it: N - 1 messages at once, sums in the order of the ranks, N - 1 "
        "messages at "
        "once. Sharded: the first half only, an update of 1 / N of the weights, then all weights in float, "
        "which "
        "nothing hides.</li>\n"
        "<li>A faster rank is one whose forward, backward, update and sums take 1 / S of the "
        "time.</li>\n</ul>\n";
    if (!one.two.empty()) {
        html +=
            "<h2>Two ranks, measured and simulated</h2>\n<p>Two processes on two processors that share "
            "memory, where who "
            "sends and who receives copies. Two processes that train apart take " +
            fixed(one.together, 2) + " times as long as one alone, which is put in.</p>\n" +
            html_table(validation_head, validation_rows(one));
    }
    for (const double speed : speeds) {
        const measured_rank rank = faster(one, speed);
        html += "<h2>" +
                (speed <= 1 ? std::string("A rank is one processor")
                            : "A rank is " + fixed(speed, 0) + " times as fast") +
                "</h2>\n";
        for (const named_link& by : links) {
            html += "<h3>" + mp::report::html_escaped(by.name) + "</h3>\n" + efficiency_chart(rank, by) +
                    html_table(step_head, step_rows(rank, by));
        }
    }
    const measured_rank fast = faster(one, speeds.back());
    html +=
        "<h2>The size of buckets</h2>\n<p>64 ranks, " + fixed(speeds.back(), 0) +
        " times as fast, bfloat16. Small buckets cost latencies, large ones leave more to wait for at the "
        "end.</p>\n" +
        bucket_chart(fast, 64);
    html += "<h2>Algorithms</h2>\n<p>Ranks " + fixed(speeds.back(), 0) +
            " times as fast, bfloat16, with the best buckets of each. Only mp's has one order of summation "
            "whatever the "
            "number of bytes, and rounds once; its messages get short where there are many ranks.</p>\n" +
            algorithm_chart(fast, links[1]);
    return html + mp::report::html_page_end();
}

}  // namespace bench::ranks
