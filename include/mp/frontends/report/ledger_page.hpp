// SPDX-License-Identifier: MIT
/// \file
/// A cast ledger as a picture: one HTML page that needs nothing from anywhere else.
#pragma once

#include <mp/base/number_text.hpp>
#include <mp/error.hpp>
#include <mp/frontends/report/chart.hpp>
#include <mp/frontends/report/html.hpp>
#include <mp/frontends/report/ledger_text.hpp>
#include <mp/nn/autocast/cast_ledger.hpp>
#include <mp/nn/autocast/ledger_contents.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A place in a picture, in percent of its width.
inline std::string percent_of_width(double place) {
    return fixed_text(place, 2) + "%";
}

/// A rectangle from `left` to `right`, in percent of the width, and `top` to `bottom`, in pixels; `content`
/// is a title element or nothing.
inline std::string svg_rectangle(std::string_view style, double left, double top, double right, double bottom,
                                 std::string_view content = {}) {
    if (!(right > left)) return {};
    return "<rect class=\"" + std::string(style) + "\" x=\"" + percent_of_width(left) + "\" y=\"" +
           report::svg_number(top) + "\" width=\"" + percent_of_width(right - left) + "\" height=\"" +
           report::svg_number(bottom - top) + "\">" + std::string(content) + "</rect>\n";
}

inline std::string svg_title(std::string_view text) {
    return "<title>" + report::html_escaped(text) + "</title>";
}

/// Text of at most `most` characters; UTF-8 is not cut within a character.
inline std::string shortened(std::string_view text, std::size_t most) {
    if (text.size() <= most) return std::string(text);
    std::size_t end = most - 1;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
    return std::string(text.substr(0, end)) + "…";
}

/// Bytes as text: "1.5 MiB".
inline std::string bytes_text(std::uint64_t bytes) {
    constexpr std::array<std::string_view, 7> units = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 1024.0 && unit + 1 < units.size(); ++unit) value /= 1024.0;
    return fixed_text(value, value < 10.0 && unit != 0 ? 1 : 0).append(units[unit]);
}

/// The height of the pictures in a row, in pixels, and of the bars in them.
struct ledger_layout {
    static constexpr double row = 22;
    static constexpr double bar_top = 6;
    static constexpr double bar_bottom = 16;
};

/// A picture in a row, as wide as its place.
inline std::string ledger_strip(std::string_view style, std::string_view label, const std::string& content) {
    return "<svg class=\"strip " + std::string(style) + "\" role=\"img\" aria-label=\"" +
           report::html_escaped(label) + "\">\n" + content + "</svg>";
}

/// The common axis of all rows, as exponents of 2; places on it are in percent.
struct magnitude_axis {
    double lowest = 0.0;
    double highest = 0.0;

    double at(double magnitude) const {
        if (!(magnitude > 0.0)) return 0.0;
        const double part = (std::log2(magnitude) - lowest) / (highest - lowest);
        const double inside = part < 0.0 ? 0.0 : part > 1.0 ? 1.0 : part;
        return 100.0 * inside;
    }
};

/// What the format that a record was cast to can represent. A scaled cast puts the largest number of each
/// array just below the largest of the format, so its range is shown below the largest of all that was cast.
inline std::optional<format_range> target_range(const autocast::cast_record& record) {
    auto range = range_named(record.to);
    if (range && record.scaled && record.losses.largest > 0.0) {
        const double up = std::exp2(std::ceil(std::log2(record.losses.largest / range->largest)));
        range->smallest *= up;
        range->smallest_normal *= up;
        range->largest *= up;
    }
    return range;
}

/// An axis that holds all that was cast, and the limits of those formats that are narrow enough to be seen.
inline magnitude_axis axis_of(const std::vector<autocast::cast_record>& casts) {
    double smallest = 0.0;
    double largest = 0.0;
    const auto include = [&](double low, double high) {
        if (low > 0.0 && (!(smallest > 0.0) || low < smallest)) smallest = low;
        if (high > largest) largest = high;
    };
    for (const autocast::cast_record& it : casts) {
        include(it.losses.smallest, it.losses.largest);
        const auto range = target_range(it);
        if (range && range->largest / range->smallest < 0x1p64) include(range->smallest, range->largest);
    }
    if (!(largest > 0.0)) return {-1.0, 1.0};
    // Bounds for contents that are none of floats.
    return {(std::max)(std::floor(std::log2(smallest)) - 1.0, -1100.0),
            (std::min)(std::ceil(std::log2(largest)) + 1.0, 1100.0)};
}

/// The sentence of a row's tooltip.
inline std::string cast_words(const autocast::cast_record& it) {
    const auto count = [&](std::uint64_t number, std::string_view words) {
        return number == 0 ? std::string()
                           : ", " + error_text(number) + " " + std::string(words) + " (" +
                                 fraction_text(number, it.losses) + ")";
    };
    std::string text =
        it.op + ", " + (it.direction == autocast::cast_direction::input ? "argument " : "result ") +
        it.argument + ": " + it.from + " to " + it.to + (it.scaled ? ", scaled" : "") + "; " +
        counted(it.casts, "cast", "casts") + " of " + counted(it.losses.elements, "number", "numbers") +
        ", magnitudes " + magnitudes_text(it.losses.smallest, it.losses.largest);
    return text + count(it.losses.overflowed, "overflowed") + count(it.losses.flushed, "became zero") +
           count(it.losses.subnormal, "became subnormal") + count(it.losses.inexact, "changed");
}

/// What the format can hold, and over it what was cast to it.
inline std::string range_bar(const autocast::cast_record& it, const magnitude_axis& axis) {
    const double zone_top = 1.0;
    const double zone_bottom = ledger_layout::row - 1.0;
    std::string svg;
    const auto range = target_range(it);
    if (range) {
        const std::string limits = it.to + ": normal numbers from " + magnitude_text(range->smallest_normal) +
                                   " to " + magnitude_text(range->largest) + ", subnormal ones from " +
                                   magnitude_text(range->smallest) +
                                   (it.scaled ? "; after scaling by the largest number" : "");
        svg += svg_rectangle("zone-subnormal", axis.at(range->smallest), zone_top,
                             axis.at(range->smallest_normal), zone_bottom, svg_title(limits));
        svg += svg_rectangle("zone", axis.at(range->smallest_normal), zone_top, axis.at(range->largest),
                             zone_bottom, svg_title(limits));
    }
    if (!(it.losses.largest > 0.0)) {
        const std::string_view words = it.losses.elements == 0 ? "no numbers" : "zeros only";
        return svg + "<text class=\"tick\" x=\"50%\" y=\"15\" text-anchor=\"middle\">" + std::string(words) +
               "</text>\n";
    }
    // Even a single magnitude is to be seen.
    double left = axis.at(it.losses.smallest);
    double right = axis.at(it.losses.largest);
    if (right - left < 0.6) {
        left -= 0.3;
        right += 0.3;
    }
    const std::string words = svg_title(cast_words(it));
    const auto part = [&](std::string_view style, double from, double to) {
        svg += svg_rectangle(style, (std::max)(left, from), ledger_layout::bar_top, (std::min)(right, to),
                             ledger_layout::bar_bottom, words);
    };
    if (!range) {
        part("bar", left, right);
        return svg;
    }
    // What is at most half of the smallest number becomes zero.
    const double zero = it.losses.flushed == 0 ? left : axis.at(range->smallest / 2.0);
    const double normal =
        it.losses.flushed == 0 && it.losses.subnormal == 0 ? left : axis.at(range->smallest_normal);
    const double over = it.losses.overflowed == 0 ? right : axis.at(range->largest);
    part("bar flushed", left, zero);
    part("bar subnormal", zero, normal);
    part("bar", normal, over);
    part("bar overflowed", over, right);
    return svg;
}

/// The shares of the numbers other than zero in one bar; a share above zero is at least a line.
inline std::string fractions_bar(const autocast::cast_record& it) {
    if (nonzero_elements(it.losses) == 0) return {};
    const std::array<std::pair<std::string_view, std::uint64_t>, 3> parts{
        {{"bar overflowed", it.losses.overflowed},
         {"bar flushed", it.losses.flushed},
         {"bar subnormal", it.losses.subnormal}}};
    const std::string words = svg_title(cast_words(it));
    double at = 0.0;
    std::string svg;
    const auto part = [&](std::string_view style, double end) {
        svg += svg_rectangle(style, at, ledger_layout::bar_top, end, ledger_layout::bar_bottom, words);
        at = end;
    };
    for (const auto& [style, count] : parts) {
        if (count == 0) continue;
        part(style, (std::min)(at + (std::max)(100.0 * fraction_of(count, it.losses), 1.5), 100.0));
    }
    part("bar", 100.0);
    return svg;
}

/// The row of one cast; `grid` has the lines of the axis.
inline std::string cast_row(const autocast::cast_record& it, const magnitude_axis& axis,
                            const std::string& grid) {
    const bool input = it.direction == autocast::cast_direction::input;
    std::string html = "<div class=\"row\"><span class=\"what\"><strong>" +
                       report::html_escaped(shortened(it.argument, 40)) + "</strong> " +
                       (input ? "→ " : "← ") + report::html_escaped(shortened(input ? it.to : it.from, 18)) +
                       "</span>";
    html += ledger_strip("range", cast_words(it), grid + range_bar(it, axis));
    html += ledger_strip("shares", "shares", fractions_bar(it));
    const auto share = [&](std::string_view style, std::uint64_t count) {
        html += "<span class=\"share" + (count == 0 ? std::string() : " " + std::string(style)) + "\">" +
                report::html_escaped(fraction_text(count, it.losses)) + "</span>";
    };
    share("text-overflowed", it.losses.overflowed);
    share("text-flushed", it.losses.flushed);
    share("text-subnormal", it.losses.subnormal);
    return html + "</div>\n";
}

/// The words beside an op's name.
inline std::string op_words(const autocast::ledger_contents& contents, std::string_view op) {
    const auto records = records_of(contents.ops, op);
    std::string text;
    for (std::size_t i = 0; i < records.size(); ++i) {
        if (i == 2) {
            text += "; and " + counted(records.size() - i, "other way", "other ways");
            break;
        }
        text += (i == 0 ? "" : "; ") + counted(records[i].calls, "call", "calls") + ", " +
                std::string(name_of(records[i].category)) + ", computes in " + records[i].compute_type;
    }
    return text;
}

/// The picture of the casts: for each op its casts, under one axis.
inline std::string casts_picture(const autocast::ledger_contents& contents) {
    const magnitude_axis axis = axis_of(contents.casts);
    double step = 1.0;
    while ((axis.highest - axis.lowest) / step > 8.0) step *= 2.0;
    std::string grid;
    std::string ticks;
    for (double exponent = std::ceil(axis.lowest / step) * step; exponent <= axis.highest; exponent += step) {
        const std::string x = percent_of_width(axis.at(std::exp2(exponent)));
        grid += "<line class=\"grid\" x1=\"" + x + "\" y1=\"0\" x2=\"" + x + "\" y2=\"100%\"/>\n";
        ticks += "<text class=\"tick\" x=\"" + x +
                 "\" y=\"16\" text-anchor=\"middle\">2<tspan class=\"exponent\" dy=\"-5\">" +
                 fixed_text(exponent, 0) + "</tspan></text>\n";
    }
    const std::string scale =
        "<div class=\"row\"><span></span>" + ledger_strip("range", "powers of two", ticks) + "</div>\n";
    std::string html =
        "<div class=\"casts\">\n<div class=\"row heading\"><span class=\"what\"></span><span "
        "class=\"range\">magnitudes that were cast, logarithmic</span><span "
        "class=\"shares\">shares</span><span "
        "class=\"share\">overflow</span><span class=\"share\">to zero</span><span "
        "class=\"share\">subnormal</span></div>\n" +
        scale;
    for (const std::string& op : op_names_in(contents)) {
        const auto records = records_of(contents.casts, op);
        if (records.empty()) continue;
        html += "<p class=\"op\"><strong>" + report::html_escaped(shortened(op, 60)) + "</strong> " +
                report::html_escaped(shortened(op_words(contents, op), 110)) + "</p>\n";
        for (const autocast::cast_record& it : records) html += cast_row(it, axis, grid);
    }
    return html + scale + "</div>\n";
}

/// Bytes read and written by casts, and how many casts a cache saved, by op.
struct op_traffic {
    std::string op;
    std::uint64_t bytes = 0;
    std::uint64_t casts = 0;
    std::uint64_t reused = 0;
};

inline std::string traffic_picture(const autocast::ledger_contents& contents) {
    std::vector<op_traffic> ops;
    std::uint64_t most = 1;
    for (const std::string& op : op_names_in(contents)) {
        op_traffic sum{op, 0, 0, 0};
        for (const autocast::cast_record& it : records_of(contents.casts, op)) {
            sum.bytes += it.bytes;
            sum.casts += it.casts;
            sum.reused += it.reused;
        }
        most = (std::max)(most, sum.bytes);
        if (sum.casts + sum.reused != 0) ops.push_back(sum);
    }
    std::string html =
        "<div class=\"traffic\">\n<div class=\"row heading\"><span class=\"what\"></span><span>bytes read "
        "and "
        "written by casts</span><span></span><span>casts made, and taken from the "
        "cache</span><span></span></div>\n";
    for (const op_traffic& it : ops) {
        const auto bar = [&](std::string_view style, double from, double to, const std::string& title) {
            return svg_rectangle(style, from, ledger_layout::bar_top, to, ledger_layout::bar_bottom, title);
        };
        const double length = 100.0 * static_cast<double>(it.bytes) / static_cast<double>(most);
        const double made = 100.0 * static_cast<double>(it.casts) / static_cast<double>(it.casts + it.reused);
        const std::string words = it.op + ": " + error_text(it.bytes) + " bytes, " +
                                  counted(it.casts, "cast", "casts") + " made, " + error_text(it.reused) +
                                  " taken from the cache";
        const std::string title = svg_title(words);
        html += "<div class=\"row\"><span class=\"what\"><strong>" +
                report::html_escaped(shortened(it.op, 40)) + "</strong></span>" +
                ledger_strip("bytes", words, bar("bar bytes", 0.0, (std::max)(length, 0.3), title)) +
                "<span>" + bytes_text(it.bytes) + "</span>" +
                ledger_strip("cache", words,
                             bar("bar", 0.0, made, title) + bar("bar reused", made, 100.0, title)) +
                "<span>" + error_text(it.casts) + " made, " + error_text(it.reused) +
                " reused</span></div>\n";
    }
    return html + "</div>\n";
}

inline std::string ledger_legend() {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 7> words{
        {{"bar", "cast to a normal number"},
         {"bar subnormal", "cast to a subnormal number, with fewer bits"},
         {"bar flushed", "too small, became zero"},
         {"bar overflowed", "too large, became infinity, NaN or the largest number"},
         {"zone", "normal range of the format that was cast to"},
         {"zone-subnormal", "its subnormal range"},
         {"bar reused", "taken from the cache"}}};
    std::string html = "<div class=\"legend\">";
    for (const auto& [style, text] : words) {
        html += report::legend_entry(style, "M6 3H28V13H6Z", text);
    }
    return html + "</div>\n";
}

inline std::string casts_html(const autocast::ledger_contents& contents) {
    std::vector<std::vector<std::string>> rows;
    for (const autocast::cast_record& it : contents.casts) {
        rows.push_back({it.op, it.argument, it.from + " → " + it.to, error_text(it.casts),
                        error_text(it.reused), error_text(it.losses.elements), error_text(it.losses.zeros),
                        error_text(it.losses.overflowed), error_text(it.losses.flushed),
                        error_text(it.losses.subnormal), error_text(it.losses.inexact),
                        magnitudes_text(it.losses.smallest, it.losses.largest)});
    }
    return report::html_table(
        std::array<std::string_view, 12>{"op", "argument", "cast", "casts", "reused", "numbers", "zeros",
                                         "overflowed", "to zero", "subnormal", "inexact", "magnitudes"},
        rows);
}

inline std::string ops_html(const autocast::ledger_contents& contents) {
    std::vector<std::vector<std::string>> rows;
    for (const autocast::op_record& it : contents.ops) {
        rows.push_back({it.op, error_text(it.calls), std::string(name_of(it.category)), it.compute_type,
                        std::string(name_of(it.active)), it.rule});
    }
    return report::html_table(
        std::array<std::string_view, 6>{"op", "calls", "category", "computes in", "region", "decided by"},
        rows);
}

inline constexpr std::string_view ledger_style =
    R"(:root { --bar: #57636e; --low: #b98a1d; --low-text: #856008; --flushed: #1f6fb4; --overflowed: #c2410c;
  --reused: #00795a; --zone: #dfe7ee; --zone-low: #f3ead0; --alarm: #fdeee6; --calm: #e8f4ef; }
@media (prefers-color-scheme: dark) { :root { --bar: #a9b4be; --low: #f0bf4c; --low-text: #f0bf4c;
  --flushed: #6bb6f2; --overflowed: #ff8a4c; --reused: #3fd1a4; --zone: #2a333c; --zone-low: #51451f; --alarm: #3a2419;
  --calm: #17302a; } }
.row { display: grid; grid-template-columns: 190px minmax(0, 1fr) 110px 62px 62px 74px; gap: 0 12px;
  align-items: center; font-size: 12px; color: var(--dim); }
.traffic .row { grid-template-columns: 190px minmax(0, 1fr) 70px minmax(0, .6fr) 150px; }
.row strong, .op strong { color: var(--text); font-weight: 400; }
.op { margin: 8px 0 0; font-size: 12px; color: var(--dim); }
.op strong { font-size: 14px; font-weight: 600; } .heading { font-size: 13px; } .share { text-align: right; }
.what, .op { overflow-wrap: anywhere; }
.strip { display: block; width: 100%; height: 22px; overflow: visible; font: 12px system-ui, sans-serif; }
.strip .grid { stroke: var(--grid); } .strip text { fill: var(--dim); } .strip .exponent { font-size: 9px; }
@media (max-width: 640px) {
  .row { grid-template-columns: minmax(0, 1fr) 56px 52px 66px; margin: 4px 0; } .heading { font-size: 12px; }
  .row .range { grid-column: 1 / -1; grid-row: 2; } .row .shares { display: none; }
  .traffic .row { grid-template-columns: minmax(0, 1fr) 136px; } .traffic .what { grid-column: 1 / -1; } }
.bar { fill: var(--bar); } .subnormal { fill: var(--low); } .flushed { fill: var(--flushed); }
.overflowed { fill: var(--overflowed); } .reused { fill: var(--reused); } .bytes { fill: var(--flushed); }
.zone { fill: var(--zone); } .zone-subnormal { fill: var(--zone-low); }
rect.bar:hover { stroke: var(--text); }
.text-overflowed, .text-flushed, .text-subnormal { font-weight: 600; }
.text-overflowed { color: var(--overflowed); } .text-flushed { color: var(--flushed); }
.text-subnormal { color: var(--low-text); }
.box { border-left: 5px solid var(--reused); background: var(--calm); padding: 10px 14px; margin: 12px 0; }
.box.alarm { border-color: var(--overflowed); background: var(--alarm); }
)";

}}  // namespace mp::detail

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// One HTML page about what casts did to the numbers of a run. For every argument of every op a bar shows the
/// magnitudes that were cast, on a logarithmic axis, against those that the format has, with the parts that
/// overflowed, became zero or subnormal in colours and as shares of the numbers other than zero; then the
/// bytes that casts moved and how many of them a cache saved; where the first infinity or NaN came from; and
/// all of it as tables. The bar of what became zero reaches up to half of the smallest number of the format,
/// and a scaled cast is shown as if all arrays had the largest magnitude of the record. The page has
/// everything in it and follows the reader's choice of light or dark; details are tooltips.
///
/// \param title  any text; what has a meaning in HTML is escaped, like all names
[[nodiscard]] inline std::string ledger_page(const ledger_contents& contents,
                                             std::string_view title = "Casts of autocast") {
    std::string html =
        report::html_page_begin(title, std::string(report::chart_style).append(detail::ledger_style));
    html += contents.first_non_finite ? "<div class=\"box alarm\">" : "<div class=\"box\">";
    html += report::html_escaped(detail::non_finite_text(contents)) + "</div>\n";
    if (contents.casts.empty()) {
        html += "<p>Nothing was cast.</p>\n";
    } else {
        html +=
            "<h2>What was cast</h2>\n<p class=\"note\">A row for every argument of every op. The arrow "
            "points to the format that the op reads (→), or comes from the one that its result had (←). "
            "Shares are of the numbers other than zero. Ranges that go beyond the axis are cut off.</p>\n" +
            detail::ledger_legend() + detail::casts_picture(contents) + "<h2>What it cost</h2>\n" +
            detail::traffic_picture(contents) + "<h2>In numbers</h2>\n" + detail::casts_html(contents);
    }
    if (!contents.ops.empty()) html += "<h2>Ops</h2>\n" + detail::ops_html(contents);
    return html + report::html_page_end();
}

/// Overload for a ledger; see contents_of().
[[nodiscard]] inline std::string ledger_page(const cast_ledger& ledger,
                                             std::string_view title = "Casts of autocast") {
    return ledger_page(contents_of(ledger), title);
}

}}  // namespace mp::autocast
