// SPDX-License-Identifier: MIT
/// \file
/// A cast ledger as a picture: one HTML page that needs nothing from anywhere else.
#pragma once

#include <mp/autocast/cast_ledger.hpp>
#include <mp/autocast/ledger_contents.hpp>
#include <mp/detail/number_text.hpp>
#include <mp/error.hpp>
#include <mp/report/chart.hpp>
#include <mp/report/html.hpp>
#include <mp/report/ledger_text.hpp>

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

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// A rectangle; `content` is a title element or nothing.
inline std::string svg_rectangle(std::string_view style, double left, double top, double right, double bottom,
                                 std::string_view content = {}) {
    if (!(right > left)) return {};
    return "<rect class=\"" + std::string(style) + "\" x=\"" + report::svg_number(left) + "\" y=\"" +
           report::svg_number(top) + "\" width=\"" + report::svg_number(right - left) + "\" height=\"" +
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

/// Bytes for people: "1.5 MiB".
inline std::string bytes_text(std::uint64_t bytes) {
    constexpr std::array<std::string_view, 7> units = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 1024.0 && unit + 1 < units.size(); ++unit) value /= 1024.0;
    return fixed_text(value, value < 10.0 && unit != 0 ? 1 : 0).append(units[unit]);
}

/// The columns of the picture, in its units.
struct ledger_layout {
    static constexpr double axis_left = 216;
    static constexpr double axis_right = 690;
    static constexpr double shares_left = 716;
    static constexpr double shares_right = 836;
    static constexpr double overflowed = 898;
    static constexpr double flushed = 962;
    static constexpr double subnormal = 1036;
    static constexpr double row = 26;
    static constexpr double heading = 26;
};

/// The common axis of all rows, as exponents of 2.
struct magnitude_axis {
    double lowest = 0.0;
    double highest = 0.0;

    double at(double magnitude) const {
        if (!(magnitude > 0.0)) return ledger_layout::axis_left;
        const double part = (std::log2(magnitude) - lowest) / (highest - lowest);
        const double inside = part < 0.0 ? 0.0 : part > 1.0 ? 1.0 : part;
        return ledger_layout::axis_left + inside * (ledger_layout::axis_right - ledger_layout::axis_left);
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
                                 share_text(number, it.losses) + ")";
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
inline std::string range_bar(const autocast::cast_record& it, const magnitude_axis& axis, double top) {
    const double zone_top = top + 3;
    const double zone_bottom = top + ledger_layout::row - 3;
    const double bar_top = top + 8;
    const double bar_bottom = top + ledger_layout::row - 8;
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
        return svg + report::svg_text("tick", (ledger_layout::axis_left + ledger_layout::axis_right) / 2,
                                      top + ledger_layout::row / 2 + 4, "middle", words);
    }
    // Even a single magnitude is to be seen.
    double left = axis.at(it.losses.smallest);
    double right = axis.at(it.losses.largest);
    if (right - left < 3.0) {
        left -= 1.5;
        right += 1.5;
    }
    const std::string words = svg_title(cast_words(it));
    const auto part = [&](std::string_view style, double from, double to) {
        svg +=
            svg_rectangle(style, (std::max)(left, from), bar_top, (std::min)(right, to), bar_bottom, words);
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
inline std::string shares_bar(const autocast::cast_record& it, double top) {
    if (nonzero_elements(it.losses) == 0) return {};
    const double width = ledger_layout::shares_right - ledger_layout::shares_left;
    const std::array<std::pair<std::string_view, std::uint64_t>, 3> parts{
        {{"bar overflowed", it.losses.overflowed},
         {"bar flushed", it.losses.flushed},
         {"bar subnormal", it.losses.subnormal}}};
    const std::string words = svg_title(cast_words(it));
    const double bar_top = top + 8;
    const double bar_bottom = top + ledger_layout::row - 8;
    double at = ledger_layout::shares_left;
    std::string svg;
    for (const auto& [style, count] : parts) {
        if (count == 0) continue;
        const double end =
            (std::min)(at + (std::max)(width * share_of(count, it.losses), 2.0), ledger_layout::shares_right);
        svg += svg_rectangle(style, at, bar_top, end, bar_bottom, words);
        at = end;
    }
    return svg + svg_rectangle("bar", at, bar_top, ledger_layout::shares_right, bar_bottom, words);
}

/// The row of one cast.
inline std::string cast_row(const autocast::cast_record& it, const magnitude_axis& axis, double top) {
    const double baseline = top + ledger_layout::row / 2 + 4;
    const bool input = it.direction == autocast::cast_direction::input;
    std::string svg = report::svg_text("name", 12, baseline, "start", shortened(it.argument, 12));
    svg += report::svg_text("tick", ledger_layout::axis_left - 10, baseline, "end",
                            (input ? "→ " : "← ") + shortened(input ? it.to : it.from, 18));
    svg += range_bar(it, axis, top) + shares_bar(it, top);
    const auto share = [&](double x, std::string_view style, std::uint64_t count) {
        svg +=
            report::svg_text(count == 0 ? "tick" : style, x, baseline, "end", share_text(count, it.losses));
    };
    share(ledger_layout::overflowed, "number text-overflowed", it.losses.overflowed);
    share(ledger_layout::flushed, "number text-flushed", it.losses.flushed);
    share(ledger_layout::subnormal, "number text-subnormal", it.losses.subnormal);
    return svg;
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
    constexpr double first = 46;
    double y = first;
    std::string rows;
    for (const std::string& op : op_names_in(contents)) {
        const auto records = records_of(contents.casts, op);
        if (records.empty()) continue;
        const std::string name = shortened(op, 40);
        rows += report::svg_text("op", 0, y + 18, "start", name);
        const double beside = 8.5 * static_cast<double>(name.size()) + 14;
        rows += report::svg_text("tick", (std::max)(beside, ledger_layout::axis_left), y + 18, "start",
                                 shortened(op_words(contents, op), 110));
        y += ledger_layout::heading;
        for (const autocast::cast_record& it : records) {
            rows += cast_row(it, axis, y);
            y += ledger_layout::row;
        }
    }
    std::string grid;
    double step = 1.0;
    while ((axis.highest - axis.lowest) / step > 10.0) step *= 2.0;
    for (double exponent = std::ceil(axis.lowest / step) * step; exponent <= axis.highest; exponent += step) {
        const double x = axis.at(std::exp2(exponent));
        grid += "<path class=\"grid\" d=\"M" + report::svg_number(x) + " " + report::svg_number(first - 4) +
                "V" + report::svg_number(y + 4) + "\"/>\n";
        grid += report::svg_power_of_two(x, first - 8, "middle", exponent);
        grid += report::svg_power_of_two(x, y + 18, "middle", exponent);
    }
    const double middle = (ledger_layout::axis_left + ledger_layout::axis_right) / 2;
    const std::string headings =
        report::svg_text("axis", middle, 16, "middle", "magnitudes that were cast, logarithmic") +
        report::svg_text("axis", (ledger_layout::shares_left + ledger_layout::shares_right) / 2, 16, "middle",
                         "shares") +
        report::svg_text("axis", ledger_layout::overflowed, 16, "end", "overflow") +
        report::svg_text("axis", ledger_layout::flushed, 16, "end", "to zero") +
        report::svg_text("axis", ledger_layout::subnormal, 16, "end", "subnormal");
    return "<div class=\"scroll\"><svg class=\"wide\" viewBox=\"0 0 1040 " + report::svg_number(y + 28) +
           "\" role=\"img\" aria-label=\"For each cast, the range of magnitudes against the range of the "
           "format\">\n" +
           headings + grid + rows + "</svg></div>\n";
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
    constexpr double bytes_left = ledger_layout::axis_left;
    constexpr double bytes_right = 560;
    constexpr double reuse_left = 680;
    constexpr double reuse_right = 880;
    std::string svg =
        report::svg_text("axis", bytes_left, 16, "start", "bytes read and written by casts") +
        report::svg_text("axis", reuse_left, 16, "start", "casts made, and taken from the cache");
    double y = 24;
    for (const op_traffic& it : ops) {
        const double baseline = y + ledger_layout::row / 2 + 4;
        const double top = y + 6;
        const double bottom = y + ledger_layout::row - 6;
        const double end = bytes_left + (std::max)(static_cast<double>(it.bytes) / static_cast<double>(most) *
                                                       (bytes_right - bytes_left),
                                                   1.0);
        const std::string words = it.op + ": " + error_text(it.bytes) + " bytes, " +
                                  counted(it.casts, "cast", "casts") + " made, " + error_text(it.reused) +
                                  " taken from the cache";
        const std::string title = svg_title(words);
        svg += report::svg_text("name", 0, baseline, "start", shortened(it.op, 28));
        svg += svg_rectangle("bar bytes", bytes_left, top, end, bottom, title);
        svg += report::svg_text("tick", end + 6, baseline, "start", bytes_text(it.bytes));
        const double made = static_cast<double>(it.casts) / static_cast<double>(it.casts + it.reused);
        const double split = reuse_left + made * (reuse_right - reuse_left);
        svg += svg_rectangle("bar", reuse_left, top, split, bottom, title);
        svg += svg_rectangle("bar reused", split, top, reuse_right, bottom, title);
        svg += report::svg_text("tick", reuse_right + 8, baseline, "start",
                                error_text(it.casts) + " made, " + error_text(it.reused) + " reused");
        y += ledger_layout::row;
    }
    return "<div class=\"scroll\"><svg class=\"wide\" viewBox=\"0 0 1040 " + report::svg_number(y + 6) +
           "\" role=\"img\" aria-label=\"Bytes of the casts and use of the cache by op\">\n" + svg +
           "</svg></div>\n";
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
        html += "<span><svg viewBox=\"0 0 22 12\">" + svg_rectangle(style, 1, 1, 21, 11) + "</svg>" +
                std::string(text) + "</span>";
    }
    return html + "</div>\n";
}

inline std::string html_table(const std::vector<std::string_view>& headings,
                              const std::vector<std::vector<std::string>>& rows) {
    std::string html = "<div class=\"scroll\"><table>\n<thead><tr>";
    for (const std::string_view heading : headings) html += "<th>" + std::string(heading) + "</th>";
    return html + "</tr></thead>\n<tbody>\n" + report::html_rows(rows) + "</tbody>\n</table></div>\n";
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
    return html_table({"op", "argument", "cast", "casts", "reused", "numbers", "zeros", "overflowed",
                       "to zero", "subnormal", "inexact", "magnitudes"},
                      rows);
}

inline std::string ops_html(const autocast::ledger_contents& contents) {
    std::vector<std::vector<std::string>> rows;
    for (const autocast::op_record& it : contents.ops) {
        rows.push_back({it.op, error_text(it.calls), std::string(name_of(it.category)), it.compute_type,
                        std::string(name_of(it.active)), it.rule});
    }
    return html_table({"op", "calls", "category", "computes in", "region", "decided by"}, rows);
}

inline constexpr std::string_view ledger_style =
    R"(:root { --bar: #57636e; --low: #b98a1d; --flushed: #1f6fb4; --overflowed: #c2410c; --reused: #00795a;
  --zone: #dfe7ee; --zone-low: #f3ead0; --alarm: #fdeee6; --calm: #e8f4ef; }
@media (prefers-color-scheme: dark) { :root { --bar: #a9b4be; --low: #f0bf4c; --flushed: #6bb6f2;
  --overflowed: #ff8a4c; --reused: #3fd1a4; --zone: #2a333c; --zone-low: #51451f; --alarm: #3a2419;
  --calm: #17302a; } }
.wide { min-width: 880px; } .legend svg { width: 22px; height: 12px; }
.bar { fill: var(--bar); } .subnormal { fill: var(--low); } .flushed { fill: var(--flushed); }
.overflowed { fill: var(--overflowed); } .reused { fill: var(--reused); } .bytes { fill: var(--flushed); }
.zone { fill: var(--zone); } .zone-subnormal { fill: var(--zone-low); }
rect.bar:hover { stroke: var(--text); }
svg text.op { fill: var(--text); font-size: 14px; font-weight: 600; } svg text.name { fill: var(--text); }
svg text.number { font-weight: 600; } svg text.text-overflowed { fill: var(--overflowed); }
svg text.text-flushed { fill: var(--flushed); } svg text.text-subnormal { fill: var(--low); }
.box { border-left: 5px solid var(--reused); background: var(--calm); padding: 10px 14px; margin: 12px 0; }
.box.alarm { border-color: var(--overflowed); background: var(--alarm); }
)";

}  // namespace mp::detail::inline MP_ISA_NAMESPACE

namespace mp::autocast::inline MP_ISA_NAMESPACE {

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

/// The same for a ledger; see contents_of().
[[nodiscard]] inline std::string ledger_page(const cast_ledger& ledger,
                                             std::string_view title = "Casts of autocast") {
    return ledger_page(contents_of(ledger), title);
}

}  // namespace mp::autocast::inline MP_ISA_NAMESPACE
