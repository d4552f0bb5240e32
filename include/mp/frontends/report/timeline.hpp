// SPDX-License-Identifier: MIT
/// \file
/// The history of a loss scale as a picture: one HTML page that needs nothing from anywhere else.
#pragma once

#include <mp/base/number_text.hpp>
#include <mp/frontends/report/chart.hpp>
#include <mp/frontends/report/html.hpp>
#include <mp/frontends/report/text_table.hpp>
#include <mp/nn/scaling/event_log.hpp>
#include <mp/nn/scaling/scale_event.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// What a mark in a timeline stands for: its class in the style sheet, its shape, which alone tells it from
/// the others, and its words.
struct timeline_mark {
    std::string_view style;
    std::string_view shape;
    std::string_view one;
    std::string_view many;
};
inline constexpr std::array<timeline_mark, 7> timeline_marks{{
    {"infinity", "m-5-5l10 10m0-10l-10 10", "iteration with infinities", "iterations with infinities"},
    {"nan", "m0-6l6 6l-6 6l-6-6z", "iteration with NaN and no infinity",
     "iterations with NaN and no infinity"},
    {"growth", "m0-6l5.5 9h-11z", "growth", "growths"},
    {"backoff", "m0 6l5.5-9h-11z", "back-off", "back-offs"},
    {"limit", "m-6 4h12m-6 0v-9", "time held by the floor", "times held by the floor"},
    {"limit", "m-6-4h12m-6 0v9", "time held by the ceiling", "times held by the ceiling"},
    {"other", "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "other change", "other changes"},
}};

/// The mark for bad values in an event, as an index of timeline_marks. A skip that no bad value explains was
/// decided by another rank, most likely for an infinity.
inline std::optional<std::size_t> mark_of_values(const scale_event& event) {
    if (event.seen.infinities != 0) return 0;
    if (event.seen.nans != 0) return 1;
    if (event.skipped != 0) return 0;
    return std::nullopt;
}

/// The mark for what became of the scale.
inline std::optional<std::size_t> mark_of_change(const scale_change& change) {
    switch (change.kind) {
        case scale_change_kind::grown:
            return 2;
        case scale_change_kind::backed_off:
        case scale_change_kind::vanished:
            return 3;
        case scale_change_kind::at_floor:
            return 4;
        case scale_change_kind::at_ceiling:
            return 5;
        case scale_change_kind::growth_refused:
        case scale_change_kind::replaced:
        case scale_change_kind::disabled:
        case scale_change_kind::failed:
            return 6;
        case scale_change_kind::unchanged:
        case scale_change_kind::no_gradients:
        case scale_change_kind::absorbed:
        case scale_change_kind::nan_kept:
            break;
    }
    return std::nullopt;
}

/// The extent of the events of a timeline.
struct timeline_extent {
    std::uint64_t first = ~0ULL;  ///< the least number of an iteration
    std::uint64_t last = 0;
    float smallest = infinite_scale;  ///< of the scales that can be drawn
    float largest = 0.0F;
    std::uint64_t not_drawable = 0;  ///< iterations whose scale is not finite and positive
    double largest_fraction = 0.0;   ///< the largest share of values that were flushed
    bool measured = false;           ///< whether any event has measurements
    std::size_t marks = 0;
};

/// The share of values that were flushed; nothing if none was measured.
inline std::optional<double> flushed_fraction(const gradient_observation& seen) {
    if (seen.values <= seen.zeros) return std::nullopt;
    return static_cast<double>(seen.flushed) / static_cast<double>(seen.values - seen.zeros);
}

template <class Events>
timeline_extent timeline_extent_of(const Events& events) {
    timeline_extent extent;
    for (const scale_event& event : events) {
        extent.first = (std::min)(extent.first, event.iteration);
        extent.last = (std::max)(extent.last, event.iteration);
        for (const float scale : {event.change.before, event.change.after}) {
            if (!is_drawable(scale)) continue;
            extent.smallest = (std::min)(extent.smallest, scale);
            extent.largest = (std::max)(extent.largest, scale);
        }
        if (!is_drawable(event.change.before)) ++extent.not_drawable;
        if (const auto share = flushed_fraction(event.seen)) {
            extent.measured = true;
            extent.largest_fraction = (std::max)(extent.largest_fraction, (std::min)(*share, 1.0));
        }
        extent.marks += mark_of_values(event).has_value() ? 1U : 0U;
        extent.marks += mark_of_change(event.change).has_value() ? 1U : 0U;
    }
    return extent;
}

/// The marks of a timeline. Up to `most_single` are drawn one by one; of more, those of a kind that fall into
/// the same column have one mark together, so that the page has a bounded length.
class timeline_mark_writer {
public:
    static constexpr std::size_t most_single = 400;
    static constexpr std::size_t columns = 160;

    timeline_mark_writer(report::chart& chart, const timeline_extent& extent)
        : chart_(chart), extent_(extent), merges_(extent.marks > most_single) {
        if (merges_) groups_.resize(timeline_marks.size() * columns);
    }

    void add(std::size_t mark, report::chart_point at, const scale_event& event) {
        if (!merges_) {
            write(mark, at, to_string(event));
            return;
        }
        const double range = static_cast<double>(extent_.last - extent_.first) + 1.0;
        const auto column = static_cast<std::size_t>(at.x / range * static_cast<double>(columns));
        group& it = groups_[mark * columns + (std::min)(column, columns - 1)];
        if (it.count++ == 0) it.first = event.iteration;
        it.last = event.iteration;
        it.at = at;
        it.event = &event;
    }

    void finish() {
        for (std::size_t i = 0; i < groups_.size(); ++i) {
            const group& it = groups_[i];
            const std::size_t mark = i / columns;
            if (it.count == 1) write(mark, it.at, to_string(*it.event));
            if (it.count > 1) {
                write(mark, it.at,
                      error_text(it.count) + " " + std::string(timeline_marks[mark].many) + ", iterations " +
                          error_text(it.first) + " to " + error_text(it.last));
            }
        }
    }

private:
    struct group {
        std::uint64_t count = 0;
        std::uint64_t first = 0;
        std::uint64_t last = 0;
        report::chart_point at{};
        const scale_event* event = nullptr;
    };

    void write(std::size_t mark, report::chart_point at, const std::string& tooltip) {
        chart_.mark(timeline_marks[mark].style, at, timeline_marks[mark].shape, tooltip);
    }

    report::chart& chart_;
    const timeline_extent& extent_;
    bool merges_;
    std::vector<group> groups_;
};

inline constexpr double timeline_height = 288;
inline constexpr double underflow_height = 60;

/// The line of the scale, and the marks on it.
template <class Events>
std::string timeline_chart(const Events& events, const timeline_extent& extent) {
    const bool any = extent.smallest <= extent.largest;
    const double bottom = any ? std::floor(std::log2(static_cast<double>(extent.smallest))) - 1 : -1.0;
    const double top = any ? std::ceil(std::log2(static_cast<double>(extent.largest))) + 1 : 1.0;
    const auto height = [&](float scale) {
        if (is_drawable(scale)) return std::log2(static_cast<double>(scale));
        return scale > 0.0F && !is_nan(static_cast<double>(scale)) ? top : bottom;
    };
    const double end = static_cast<double>(extent.last - extent.first) + 1.0;
    report::chart chart("The loss scale by iteration, with skipped steps and changes marked", {0.0, bottom},
                        {end, top}, timeline_height);
    chart.y_exponents(10);
    chart.x_counts(12, extent.first);
    chart.x_title("iteration");
    chart.y_title("loss scale");

    step_path line(chart);
    const scale_event* previous = nullptr;
    const auto after = [&](const scale_event& event) {
        return static_cast<double>(event.iteration - extent.first) + 1.0;
    };
    const auto finish_line = [&] {
        if (previous == nullptr) return;
        if (is_drawable(previous->change.after)) line.add(after(*previous), height(previous->change.after));
        line.stop(after(*previous));
    };
    for (const scale_event& event : events) {
        const double x = static_cast<double>(event.iteration - extent.first);
        if (previous == nullptr || event.iteration != previous->iteration + 1) finish_line();
        if (is_drawable(event.change.before)) {
            line.add(x, height(event.change.before));
        } else {
            line.stop(x);
        }
        previous = &event;
    }
    finish_line();
    chart.path("scale", line.data(), "loss scale");

    timeline_mark_writer marks(chart, extent);
    for (const scale_event& event : events) {
        const double x = static_cast<double>(event.iteration - extent.first);
        if (const auto mark = mark_of_values(event))
            marks.add(*mark, {x + 0.5, height(event.change.before)}, event);
        if (const auto mark = mark_of_change(event.change)) {
            marks.add(*mark, {x + 1.0, height(event.change.after)}, event);
        }
    }
    marks.finish();
    return chart.html();
}

/// The strip with the share of values that were flushed to zero: in every column of the picture the largest.
template <class Events>
std::string underflow_chart(const Events& events, const timeline_extent& extent) {
    const double end = static_cast<double>(extent.last - extent.first) + 1.0;
    const double top = extent.largest_fraction > 0.0 ? extent.largest_fraction : 1e-3;
    report::chart chart("The share of flushed values by iteration", {0.0, 0.0}, {end, top}, underflow_height);
    chart.y_title("share of the measured values other than zero that became zero");
    chart.y_tick(0.0, "0");
    chart.y_tick(top, percent_text(top));
    std::vector<double> columns(static_cast<std::size_t>(report::chart::width), 0.0);
    const double width = (std::max)(static_cast<double>(columns.size()) / end, 1.0);
    for (const scale_event& event : events) {
        const auto share = flushed_fraction(event.seen);
        if (!share) continue;
        const double x =
            static_cast<double>(event.iteration - extent.first) / end * static_cast<double>(columns.size());
        for (double at = x; at < x + width && at < static_cast<double>(columns.size()); at += 1.0) {
            double& column = columns[static_cast<std::size_t>(at)];
            column = (std::max)(column, (std::min)(*share, 1.0));
        }
    }
    const std::string bottom = report::svg_number(underflow_height);
    std::string data = "M0 " + bottom;
    std::string previous = bottom;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const std::string height = report::svg_number(chart.unit_y(columns[i]));
        if (height == previous) continue;
        data += "H" + error_text(i) + "V" + height;
        previous = height;
    }
    data += "H" + report::svg_number(report::chart::width) + "V" + bottom + "Z";
    chart.path("share", data, "largest share: " + percent_text(extent.largest_fraction));
    return chart.html();
}

/// The shapes with their words; limits and other changes only if there are any.
inline std::string timeline_legend(const scale_event_totals& totals, bool others, bool measured) {
    const std::array<std::pair<std::string_view, bool>, 7> words{
        {{"infinity", true},
         {"NaN, no infinity", true},
         {"scale grew", true},
         {"scale backed off", true},
         {"held by the floor", totals.at_floor != 0},
         {"held by the ceiling", totals.at_ceiling != 0},
         {"other change", others}}};
    std::string html =
        "<div class=\"legend\">" + report::legend_entry("scale", report::legend_line, "loss scale");
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (!words[i].second) continue;
        html += report::legend_entry(timeline_marks[i].style, "M17 8" + std::string(timeline_marks[i].shape),
                                     words[i].first);
    }
    if (measured) html += report::legend_entry("share", "M6 14V4H28V14Z", "flushed to zero");
    return html + "</div>\n";
}

inline std::string timeline_table(const scale_event_totals& totals, const timeline_extent& extent) {
    std::vector<std::vector<std::string>> rows{
        {"iterations", error_text(totals.iterations)},
        {"with a skipped step", error_text(totals.skips)},
        {"with infinities", error_text(totals.with_infinities)},
        {"with NaN and no infinity", error_text(totals.with_nans_only)},
        {"growths of the scale", error_text(totals.growths)},
        {"back-offs", error_text(totals.backoffs)},
        {"overflows absorbed by hysteresis", error_text(totals.absorbed)},
        {"held by the floor", error_text(totals.at_floor)},
        {"held by the ceiling", error_text(totals.at_ceiling)},
        {"scale set by the caller", error_text(totals.replaced)}};
    if (extent.smallest <= extent.largest) {
        rows.push_back({"smallest scale", scale_text(static_cast<double>(extent.smallest))});
        rows.push_back({"largest scale", scale_text(static_cast<double>(extent.largest))});
    }
    if (totals.nonzero != 0) {
        const double share = static_cast<double>(totals.flushed) / static_cast<double>(totals.nonzero);
        rows.push_back({"values flushed to zero", percent_text(share)});
        rows.push_back({"largest share in an iteration", percent_text(extent.largest_fraction)});
    }
    return "<h2>In numbers</h2>\n<div class=\"scroll\"><table>\n<tbody>\n" + report::html_rows(rows) +
           "</tbody>\n</table></div>\n";
}

inline constexpr std::string_view timeline_style =
    R"(:root { --scale: #3f4a55; --infinity: #c2410c; --nan: #8a3fb5;
  --growth: #00795a; --backoff: #1f6fb4; --limit: #946200; --share: #1f6fb4; }
@media (prefers-color-scheme: dark) { :root { --scale: #c3ccd4; --infinity: #ff8a4c; --nan: #d9a0f5;
  --growth: #3fd1a4; --backoff: #6bb6f2; --limit: #f0bf4c; --share: #6bb6f2; } }
.scale { fill: none; stroke: var(--scale); stroke-width: 1.6; stroke-linejoin: round; }
.infinity { fill: none; stroke: var(--infinity); stroke-width: 2; pointer-events: all; }
.nan { fill: var(--back); stroke: var(--nan); stroke-width: 2; }
.growth { fill: var(--growth); stroke: var(--back); } .backoff { fill: var(--backoff); stroke: var(--back); }
.limit { fill: none; stroke: var(--limit); stroke-width: 2.4; }
.other { fill: var(--back); stroke: var(--scale); stroke-width: 2; }
.share { fill: var(--share); fill-opacity: .55; stroke: none; }
.mark:hover { stroke: var(--text); }
)";

template <class Events>
std::string timeline_page_of(const Events& events, std::size_t count, const scale_event_totals& totals,
                             std::string_view title) {
    std::string html =
        report::html_page_begin(title, std::string(report::chart_style).append(timeline_style));
    const timeline_extent extent = timeline_extent_of(events);
    if (count == 0) {
        html += "<p>There are no events.</p>\n";
    } else {
        bool others = false;
        for (const scale_event& event : events)
            others = others || mark_of_change(event.change) == std::size_t{6};
        if (totals.iterations > count) {
            html += "<p>The picture shows the last " + error_text(count) + " of " +
                    error_text(totals.iterations) + " iterations; the table counts all of them.</p>\n";
        }
        html += timeline_legend(totals, others, extent.measured);
        html += timeline_chart(events, extent);
        if (extent.measured) html += underflow_chart(events, extent);
        if (extent.not_drawable != 0) {
            html += "<p class=\"note\">" + counted(extent.not_drawable, "iteration has", "iterations have") +
                    " a scale that is not a finite number above 0 and not drawn.</p>\n";
        }
    }
    return html + timeline_table(totals, extent) + report::html_page_end();
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// One HTML page about the events that a log keeps and the totals of all that it saw: the scale by iteration
/// on a logarithmic axis, marks for infinities, NaNs, growth, back-off and limits with what happened as their
/// tooltips, the share of values that were flushed to zero if it was measured, and the totals. The page has
/// everything in it, follows the reader's choice of light or dark, and stays below some hundred KiB however
/// long the log is: where events are denser than the picture, those of a kind are drawn as one.
///
/// \param title  any text; what has a meaning in HTML is escaped
[[nodiscard]] inline std::string timeline_page(const scale_event_log& log,
                                               std::string_view title = "Loss scale") {
    return detail::timeline_page_of(log, log.size(), log.totals(), title);
}

/// Overload for events from elsewhere, such as scale_event_log::read_csv, in the order in which they
/// happened.
[[nodiscard]] inline std::string timeline_page(std::span<const scale_event> events,
                                               std::string_view title = "Loss scale") {
    scale_event_totals totals;
    for (const scale_event& event : events) totals += event;
    return detail::timeline_page_of(events, events.size(), totals, title);
}

}}  // namespace mp
