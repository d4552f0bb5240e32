// SPDX-License-Identifier: MIT
/// \file
/// Charts as HTML with inline SVG, for pages that need nothing from anywhere else: a frame with two axes, and
/// lines, bars and marks in it.
///
///     mp::report::chart chart("loss by epoch", {1.0, 0.0}, {20.0, 2.5});
///     for (int epoch = 5; epoch <= 20; epoch += 5) chart.x_tick(epoch, std::to_string(epoch));
///     chart.y_tick(1.0, "1");
///     chart.polyline("line", points);
///     page += chart.html();
///
/// A chart is as wide as its place on the page. Text and marks keep their size in pixels while what they
/// stand at moves, so that a chart is as readable on a telephone as on a desk; labels for which a narrow
/// chart has no room have the class "wide" and are left out there. The page needs chart_style. Colours come
/// from the style sheet of the page, by class names, so that they suit a light and a dark background.
#pragma once

#include <mp/frontends/report/html.hpp>
#include <mp/nn/scaling/scale_checks.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mp::report {

/// A place in a chart, in the units of its axes.
struct chart_point {
    double x;
    double y;
};

/// The part of a page's style sheet that charts and legends need.
inline constexpr std::string_view chart_style = R"(
.chart { box-sizing: border-box; padding: 8px 14px 4px 0; overflow: hidden; container-type: inline-size;
  font: 12px system-ui, sans-serif; color: var(--dim); }
.chart .plot { display: block; width: 100%; overflow: visible; }
.chart .plot svg { width: 100%; height: 100%; overflow: visible; }
.chart .plot path, .chart .plot line { vector-effect: non-scaling-stroke; }
.chart text { fill: var(--dim); } .chart .exponent { font-size: 9px; }
.chart .axis { font-size: 13px; } .chart .x.axis { text-align: center; } .chart .y.axis { margin-bottom: 10px; }
.chart .grid { stroke: var(--grid); fill: none; } .chart .minor { opacity: .55; }
.chart .frame { stroke: var(--dim); fill: none; }
.chart .hover { fill: transparent; } .chart .hover:hover { fill: var(--text); fill-opacity: .25; }
@container (max-width: 640px) { .chart .wide { display: none; } }
.legend { display: flex; flex-wrap: wrap; gap: 2px 18px; margin: 4px 0 8px; font-size: 13px; }
.legend span { display: flex; align-items: center; gap: 6px; min-width: 0;
  overflow-wrap: anywhere; }
.legend svg { flex: none; width: 34px; height: 16px; overflow: visible; }
)";

}  // namespace mp::report

namespace mp::report { inline namespace MP_ISA_NAMESPACE {

/// A step between ticks, 1, 2 or 5 times a power of ten times `least`, and at least `least`, that makes at
/// most `ticks` of them.
inline double tick_step(double range, int ticks, double least = 1.0) {
    double step = least;
    for (int i = 0; range / step > ticks; ++i) step *= i % 3 == 1 ? 2.5 : 2.0;
    return step;
}

/// An entry of a legend: a shape of 34 by 16 pixels, given as path data, and its words. Entries stand in an
/// element of the class "legend".
inline std::string legend_entry(std::string_view style, std::string_view shape, std::string_view words) {
    return "<span><svg viewBox=\"0 0 34 16\"><path class=\"" + std::string(style) + "\" d=\"" +
           std::string(shape) + "\"/></svg>" + html_escaped(words) + "</span>";
}

/// The shape of a line in a legend.
inline constexpr std::string_view legend_line = "M1 8H33";

/// A chart in the making: parts are drawn in the order in which they are added. Both axes are linear; for a
/// logarithmic one, pass logarithms. What is not finite is not drawn.
class chart {
public:
    /// The units across the plot that path data is written in; along the height they are pixels.
    static constexpr double width = 1000.0;

    /// \param label   what the chart shows, for those who cannot see it
    /// \param from    the corner at the lower left, in the units of the axes
    /// \param to      the corner at the upper right, above and to the right of it
    /// \param height  of the plot, in pixels
    chart(std::string_view label, chart_point from, chart_point to, double height = 300.0)
        : label_(label), from_(from), to_(to), height_(height) {}

    /// Pixels of a place on an axis.
    [[nodiscard]] double unit_x(double x) const { return part_x(x) * width; }
    [[nodiscard]] double unit_y(double y) const { return part_y(y) * height_; }

    /// A label under the x axis; "2^10" is set as a power. A line goes up from it where `grid` says so.
    void x_tick(double at, std::string_view label, bool grid = false) {
        x_ticks_.push_back({part_x(at), std::string(label), grid});
    }
    /// Whole numbers under the x axis, at most `ticks`. The axis begins at 0, which is labelled `origin`: the
    /// numbers of iterations can be beyond those that double tells apart.
    void x_counts(int ticks, std::uint64_t origin) {
        const double step = tick_step(to_.x, ticks);
        const auto whole = static_cast<std::uint64_t>(step);
        const std::uint64_t offset = (whole - origin % whole) % whole;
        for (int i = 0; i <= ticks; ++i) {
            const double x = static_cast<double>(offset) + i * step;
            if (x > to_.x) break;
            x_tick(x, detail::error_text(origin + offset + static_cast<std::uint64_t>(i) * whole));
        }
    }
    /// A label beside the y axis, set as under the x axis, and a line to the right of it.
    void y_tick(double at, std::string_view label) {
        y_minor(at, "grid");
        has_y_labels_ = true;
        body_ += label_text("tick", "-8", percent(part_y(at)), 0, 4, "end", label);
    }
    /// A line without a label between the ticks of the y axis.
    void y_minor(double at, std::string_view style = "grid minor") {
        body_ += svg_line(style, "0", percent(part_y(at)), "100%", percent(part_y(at)));
    }
    /// Powers of two beside the y axis, which has logarithms to the base 2, at most `ticks`.
    void y_exponents(int ticks) {
        const double step = tick_step(to_.y - from_.y, ticks);
        for (double y = std::ceil(from_.y / step) * step; y <= to_.y; y += step) {
            y_tick(y, "2^" + detail::fixed_text(y, 0));
        }
    }
    /// What the axes show; it stands below the chart, and above it.
    void x_title(std::string_view title) { x_title_ = title; }
    void y_title(std::string_view title) { y_title_ = title; }

    /// Path data in the units of unit_x and unit_y. Nothing without data.
    void path(std::string_view style, std::string_view data, std::string_view tooltip = {}) {
        if (data.empty()) return;
        body_ += "<svg viewBox=\"0 0 1000 " + svg_number(height_) + "\" preserveAspectRatio=\"none\">" +
                 shape(style, data, tooltip) + "</svg>\n";
    }
    /// Straight lines from point to point; a gap where a value is not finite.
    void polyline(std::string_view style, const std::vector<chart_point>& points,
                  std::string_view tooltip = {}) {
        std::string data;
        bool drawing = false;
        for (const chart_point& it : points) {
            if (!is_finite(it)) {
                drawing = false;
                continue;
            }
            data += (drawing ? "L" : "M") + place(it);
            drawing = true;
        }
        path(style, data, tooltip);
    }
    /// The area between two lines with the same x.
    void area(std::string_view style, const std::vector<chart_point>& low,
              const std::vector<chart_point>& high) {
        std::string data;
        const auto add = [&](const chart_point& it) {
            if (is_finite(it)) data += (data.empty() ? "M" : "L") + place(it);
        };
        for (const chart_point& it : low) add(it);
        for (std::size_t i = high.size(); i-- > 0;) add(high[i]);
        if (!data.empty()) path(style, data + "Z");
    }
    /// A strip over the full height, with its name at the top where there is room for it.
    void band(std::string_view style, double from, double to, std::string_view name,
              std::string_view tooltip) {
        const double begin = clamped(part_x(from));
        const double end = clamped(part_x(to));
        if (!(end > begin)) return;
        rectangle(style, begin, 0.0, end, 1.0, tooltip);
        const double room = static_cast<double>(name.size()) * character;
        if (room >= (end - begin) * desk) return;
        const bool always = room < (end - begin) * telephone;
        body_ += label_text(always ? "band-name" : "band-name wide", percent((begin + end) / 2), "0", 0, 15,
                            "middle", name);
    }
    /// A bar from the x axis up.
    void bar(std::string_view style, double from, double to, double up_to, std::string_view tooltip) {
        rectangle(style, part_x(from), part_y(up_to), part_x(to), 1.0, tooltip);
    }
    /// A straight line.
    void segment(std::string_view style, chart_point from, chart_point to) {
        if (!is_finite(from) || !is_finite(to)) return;
        body_ += svg_line(style, percent(part_x(from.x)), percent(part_y(from.y)), percent(part_x(to.x)),
                          percent(part_y(to.y)));
    }
    /// A shape around the point, given as path data in pixels relative to it.
    void mark(std::string_view style, chart_point at, std::string_view data, std::string_view tooltip) {
        if (!is_finite(at)) return;
        body_ += nested(at) + shape("mark " + std::string(style), "M0 0" + std::string(data), tooltip) +
                 "</svg>\n";
    }
    /// A small cross, which shows its tooltip when the pointer comes near.
    void cross(std::string_view style, chart_point at, std::string_view tooltip) {
        if (!is_finite(at)) return;
        body_ += nested(at) + "<title>" + html_escaped(tooltip) +
                 "</title><circle class=\"hover\" r=\"7\"/>" + shape(style, "M-5-5l10 10m0-10l-10 10", {}) +
                 "</svg>\n";
    }
    /// A place that shows its tooltip when the pointer comes near.
    void hover(chart_point at, std::string_view tooltip) {
        if (!is_finite(at)) return;
        body_ += "<circle class=\"hover\" cx=\"" + percent(part_x(at.x)) + "\" cy=\"" +
                 percent(part_y(at.y)) + "\" r=\"7\"><title>" + html_escaped(tooltip) + "</title></circle>\n";
    }
    /// Text at a point, `right` and `down` pixels beside it; `anchor` is one of start, middle and end.
    void text(std::string_view style, chart_point at, double right, double down, std::string_view anchor,
              std::string_view content) {
        if (!is_finite(at)) return;
        body_ +=
            label_text(style, percent(part_x(at.x)), percent(part_y(at.y)), right, down, anchor, content);
    }
    /// Text that goes up from a point.
    void upward_text(std::string_view style, chart_point at, double right, double up,
                     std::string_view content) {
        if (!is_finite(at)) return;
        body_ += nested(at) + "<text class=\"" + std::string(style) + "\" transform=\"translate(" +
                 svg_number(right) + " " + svg_number(-up) + ") rotate(-90)\">" + html_escaped(content) +
                 "</text></svg>\n";
    }

    /// The finished chart.
    [[nodiscard]] std::string html() const {
        std::string result = "<div class=\"chart\">\n";
        if (!y_title_.empty()) result += "<div class=\"y axis\">" + html_escaped(y_title_) + "</div>\n";
        // Room for the labels of the y axis, and for those below.
        const int below = x_ticks_.empty() ? 12 : 26;
        result += "<div style=\"padding:2px 0 " + detail::error_text(below) + "px " +
                  (has_y_labels_ ? "56" : "8") +
                  "px\"><svg class=\"plot\" style=\"height:" + svg_number(height_) +
                  "px\" role=\"img\" aria-label=\"" + html_escaped(label_) + "\">\n";
        const std::size_t step = narrow_step();
        for (std::size_t i = 0; i < x_ticks_.size(); ++i) {
            const tick& it = x_ticks_[i];
            const std::string x = percent(it.at);
            result += it.grid ? svg_line("grid", x, "0", x, "100%") : std::string();
            // It is centred, but does not leave the chart at the right end.
            const double room = 12.0 + (1.0 - it.at) * telephone;
            const bool fits = half_width(it.label) <= room;
            result += label_text(i % step == 0 ? "tick" : "tick wide", x, "100%", fits ? 0.0 : room, 18,
                                 fits ? "middle" : "end", it.label);
        }
        result += body_ + svg_line("frame", "0", "0", "0", "100%") +
                  svg_line("frame", "0", "100%", "100%", "100%") + "</svg></div>\n";
        if (!x_title_.empty()) result += "<div class=\"x axis\">" + html_escaped(x_title_) + "</div>\n";
        return result + "</div>\n";
    }

private:
    struct tick {
        double at;  ///< as a part of the width
        std::string label;
        bool grid;
    };

    // Widths of the plot and of a character, in pixels, as which labels are laid out.
    static constexpr double telephone = 270.0;
    static constexpr double desk = 900.0;
    static constexpr double character = 6.8;

    /// Of a label.
    static double half_width(std::string_view label) {
        return static_cast<double>(label.size()) * character / 2.0;
    }
    static double clamped(double part) { return part < 0.0 ? 0.0 : part > 1.0 ? 1.0 : part; }
    static bool is_finite(const chart_point& it) {
        return !detail::is_non_finite(it.x) && !detail::is_non_finite(it.y);
    }
    static std::string percent(double part) { return detail::fixed_text(100.0 * part, 2) + "%"; }

    [[nodiscard]] double part_x(double x) const { return (x - from_.x) / (to_.x - from_.x); }
    [[nodiscard]] double part_y(double y) const { return (to_.y - y) / (to_.y - from_.y); }
    [[nodiscard]] std::string place(chart_point at) const {
        return svg_number(unit_x(at.x)) + " " + svg_number(unit_y(at.y));
    }
    [[nodiscard]] std::string nested(chart_point at) const {
        return "<svg x=\"" + percent(part_x(at.x)) + "\" y=\"" + percent(part_y(at.y)) + "\">";
    }

    /// Of the labels under the x axis every how manieth has room on a telephone.
    [[nodiscard]] std::size_t narrow_step() const {
        for (std::size_t step = 1; step < x_ticks_.size(); ++step) {
            bool fits = true;
            for (std::size_t i = step; i < x_ticks_.size(); i += step) {
                const double distance = (x_ticks_[i].at - x_ticks_[i - step].at) * telephone;
                fits =
                    fits && (distance < 0.0 ? -distance : distance) >=
                                half_width(x_ticks_[i].label) + half_width(x_ticks_[i - step].label) + 10.0;
            }
            if (fits) return step;
        }
        return x_ticks_.empty() ? 1 : x_ticks_.size();
    }

    static std::string shape(std::string_view style, std::string_view data, std::string_view tooltip) {
        return "<path class=\"" + std::string(style) + "\" d=\"" + std::string(data) +
               (tooltip.empty() ? "\"/>" : "\"><title>" + html_escaped(tooltip) + "</title></path>");
    }
    static std::string svg_line(std::string_view style, std::string_view x1, std::string_view y1,
                                std::string_view x2, std::string_view y2) {
        std::string line = "<line class=\"" + std::string(style);
        line.append("\" x1=\"").append(x1).append("\" y1=\"").append(y1);
        return line.append("\" x2=\"").append(x2).append("\" y2=\"").append(y2).append("\"/>\n");
    }
    static std::string label_text(std::string_view style, std::string_view x, std::string_view y,
                                  double right, double down, std::string_view anchor,
                                  std::string_view content) {
        std::string text = "<text class=\"" + std::string(style);
        text.append("\" x=\"").append(x).append("\" y=\"").append(y);
        text.append("\" dx=\"").append(svg_number(right)).append("\" dy=\"").append(svg_number(down));
        text.append("\" text-anchor=\"").append(anchor).append("\">");
        if (content.starts_with("2^")) {
            text.append("2<tspan class=\"exponent\" dy=\"-5\">");
            return text.append(html_escaped(content.substr(2))).append("</tspan></text>\n");
        }
        return text.append(html_escaped(content)).append("</text>\n");
    }
    void rectangle(std::string_view style, double left, double top, double right, double bottom,
                   std::string_view tooltip) {
        if (!(right > left) || !(bottom > top)) return;
        body_ += "<rect class=\"" + std::string(style) + "\" x=\"" + percent(left) + "\" y=\"" +
                 percent(top) + "\" width=\"" + percent(right - left) + "\" height=\"" +
                 percent(bottom - top) + "\"><title>" + html_escaped(tooltip) + "</title></rect>\n";
    }

    std::string label_;
    chart_point from_;
    chart_point to_;
    double height_;
    std::string x_title_;
    std::string y_title_;
    bool has_y_labels_ = false;
    std::vector<tick> x_ticks_;
    std::string body_;
};

}}  // namespace mp::report

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The path of a line that keeps its height until the next point. Where several points fall into the same
/// column of the picture, only its first, lowest, highest and last height are drawn, which looks the same; so
/// the length of the path has a bound that does not depend on the number of points.
class step_path {
public:
    /// \param chart   must outlive the path
    /// \param column  width of a column, in the units of path data
    /// \param calm    draws a column with more than three changes as its mean, so that a line that goes up
    ///                and down all the time does not cover the others
    explicit step_path(const report::chart& chart, double column = 1.0, bool calm = false)
        : chart_(chart), column_(column), calm_(calm) {}

    /// The line is at `y` from `x` on. Not to the left of the point before.
    void add(double x, double y) {
        const double px = chart_.unit_x(x);
        const double py = chart_.unit_y(y);
        const auto cell = static_cast<std::int64_t>(std::floor(px / column_));
        if (drawing_ && cell == cell_) {
            if (py < low_) low_ = py;
            if (py > high_) high_ = py;
            if (py < last_ || py > last_) ++changes_;
            ++points_;
            sum_ += py;
        } else {
            flush();
            drawing_ = true;
            first_x_ = px;
            low_ = high_ = first_ = sum_ = py;
            changes_ = 0;
            points_ = 1;
            cell_ = cell;
        }
        last_ = py;
    }
    /// The line ends at `x`; the next point begins another.
    void stop(double x) {
        if (!drawing_) return;
        flush();
        data_ += "H" + report::svg_number(chart_.unit_x(x));
        drawing_ = false;
        begun_ = false;
    }
    [[nodiscard]] const std::string& data() const noexcept { return data_; }

private:
    /// Writes the column.
    void flush() {
        if (!drawing_) return;
        if (calm_ && changes_ > 3) low_ = high_ = first_ = last_ = sum_ / points_;
        if (!begun_) {
            data_ += "M" + report::svg_number(first_x_) + " " + report::svg_number(first_);
            begun_ = true;
        } else if (report::svg_number(first_) != height_ || low_ < high_) {
            data_ += "H" + report::svg_number(first_x_);
            go_to(first_);
        }
        height_ = report::svg_number(first_);
        if (low_ < high_) {
            go_to(low_);
            go_to(high_);
            go_to(last_);
        }
    }
    void go_to(double py) {
        const std::string height = report::svg_number(py);
        if (height == height_) return;
        data_ += "V" + height;
        height_ = height;
    }

    const report::chart& chart_;
    double column_;
    bool calm_;
    std::string data_;
    std::string height_;  ///< where the path is
    bool drawing_ = false;
    bool begun_ = false;
    std::int64_t cell_ = 0;
    double first_x_ = 0.0;
    double first_ = 0.0;
    double last_ = 0.0;
    double low_ = 0.0;
    double high_ = 0.0;
    double sum_ = 0.0;
    int changes_ = 0;
    int points_ = 0;
};

}}  // namespace mp::detail
