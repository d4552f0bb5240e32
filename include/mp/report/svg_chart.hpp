// SPDX-License-Identifier: MIT
/// \file
/// Charts over iterations as inline SVG for the pages of timeline.hpp and replay_page.hpp. Colours come from
/// the style sheet of the page, by class names, so that they suit a light and a dark background.
#pragma once

#include <mp/error.hpp>
#include <mp/report/html.hpp>
#include <mp/scaling/scale_checks.hpp>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// A scale for people: powers of two beyond 1024 as such, "2^16", other numbers with up to six digits.
inline std::string scale_text(double scale) {
    if (is_non_finite(scale)) return is_nan(scale) ? "NaN" : scale > 0.0 ? "infinity" : "-infinity";
    int exponent = 0;
    const double fraction = std::frexp(scale, &exponent);
    const bool power = !(fraction < 0.5) && !(fraction > 0.5);
    if (power && (exponent > 11 || exponent < -2)) return "2^" + error_text(exponent - 1);
    char buffer[64];
    const std::to_chars_result end =
        std::to_chars(buffer, buffer + sizeof buffer, scale, std::chars_format::general, 6);
    return {buffer, end.ptr};
}

/// Whether a scale has a place on a logarithmic axis.
inline bool is_drawable(float scale) noexcept {
    return !is_non_finite(scale) && scale > 0.0F;
}

/// A step between ticks, 1, 2 or 5 times a power of ten and at least `least`, that makes at most `ticks`.
inline double tick_step(double range, int ticks, double least) {
    double step = least;
    for (int i = 0; range / step > ticks; ++i) step *= i % 3 == 1 ? 2.5 : 2.0;
    return step;
}

/// A place in a chart, in the units of its axes.
struct chart_point {
    double x;
    double y;
};

/// The rectangle within the picture that the axes frame, in its units.
struct chart_frame {
    double left;
    double top;
    double right;
    double bottom;
};

/// A chart in the making: parts append to text that becomes the content of an svg element. Both axes are
/// linear; for a logarithmic one, pass logarithms.
class svg_chart {
public:
    /// \param from, to  the corners at the lower left and the upper right, in the units of the axes
    svg_chart(const chart_frame& frame, chart_point from, chart_point to)
        : frame_(frame), from_(from), to_(to) {}

    [[nodiscard]] double pixel_x(double x) const {
        return frame_.left + (x - from_.x) / (to_.x - from_.x) * (frame_.right - frame_.left);
    }
    [[nodiscard]] double pixel_y(double y) const {
        return frame_.bottom - (y - from_.y) / (to_.y - from_.y) * (frame_.bottom - frame_.top);
    }

    /// Whole numbers under the x axis, at most `ticks`. The axis begins at 0, which is labelled `origin`: the
    /// numbers of iterations can be beyond those that double tells apart.
    void x_ticks(int ticks, std::uint64_t origin) {
        const double step = tick_step(to_.x, ticks, 1.0);
        const auto whole = static_cast<std::uint64_t>(step);
        const std::uint64_t offset = (whole - origin % whole) % whole;
        for (int i = 0; i <= ticks; ++i) {
            const double x = static_cast<double>(offset) + i * step;
            if (x > to_.x) break;
            line("grid", pixel_x(x), frame_.bottom, pixel_x(x), frame_.bottom + 4);
            const std::string label = error_text(origin + offset + static_cast<std::uint64_t>(i) * whole);
            // At the right end it must not leave the picture.
            const double furthest = frame_.right + 14.0 - 3.6 * static_cast<double>(label.size());
            text("tick", pixel_x(x) < furthest ? pixel_x(x) : furthest, frame_.bottom + 18, "middle", label);
        }
    }
    /// Powers of two beside the y axis, at most `ticks`.
    void y_ticks_of_exponents(int ticks) {
        const double step = tick_step(to_.y - from_.y, ticks, 1.0);
        for (double y = std::ceil(from_.y / step) * step; y <= to_.y; y += step) {
            line("grid", frame_.left, pixel_y(y), frame_.right, pixel_y(y));
            svg_ += svg_power_of_two(frame_.left - 8, pixel_y(y) + 4, "end", y);
        }
    }
    /// A label beside the y axis and a line to the right of it.
    void y_tick(double y, std::string_view label) {
        line("grid", frame_.left, pixel_y(y), frame_.right, pixel_y(y));
        text("tick", frame_.left - 8, pixel_y(y) + 4, "end", label);
    }
    void x_title(std::string_view title) {
        text("axis", (frame_.left + frame_.right) / 2, frame_.bottom + 40, "middle", title);
    }
    void y_title(std::string_view title) {
        svg_ += "<text class=\"axis\" text-anchor=\"middle\" transform=\"translate(16 " +
                number((frame_.top + frame_.bottom) / 2) + ") rotate(-90)\">" + html_escaped(title) +
                "</text>\n";
    }
    /// The lines of the two axes.
    void axes() {
        svg_ += "<path class=\"frame\" d=\"M" + number(frame_.left) + " " + number(frame_.top) + "V" +
                number(frame_.bottom) + "H" + number(frame_.right) + "\"/>\n";
    }
    void text(std::string_view style, double x, double y, std::string_view anchor, std::string_view content) {
        svg_ += svg_text(style, x, y, anchor, content);
    }
    /// A shape around the point, given as path data relative to it.
    void mark(std::string_view style, chart_point at, std::string_view shape, std::string_view tooltip) {
        svg_ += "<path class=\"mark " + std::string(style) + "\" d=\"M" + number(pixel_x(at.x)) + " " +
                number(pixel_y(at.y)) + std::string(shape) + "\"><title>" + html_escaped(tooltip) +
                "</title></path>\n";
    }
    /// A path of finished data.
    void path(std::string_view style, std::string_view data, std::string_view tooltip) {
        if (data.empty()) return;
        svg_ += "<path class=\"" + std::string(style) + "\" d=\"" + std::string(data) + "\"><title>" +
                html_escaped(tooltip) + "</title></path>\n";
    }

    [[nodiscard]] const std::string& svg() const noexcept { return svg_; }

    /// A coordinate, to a tenth.
    static std::string number(double value) { return svg_number(value); }

private:
    void line(std::string_view style, double x1, double y1, double x2, double y2) {
        svg_ += "<path class=\"" + std::string(style) + "\" d=\"M" + number(x1) + " " + number(y1) + "L" +
                number(x2) + " " + number(y2) + "\"/>\n";
    }

    chart_frame frame_;
    chart_point from_;
    chart_point to_;
    std::string svg_;
};

/// The path of a line that keeps its height until the next point. Where several points fall into the same
/// column of the picture, only its first, lowest, highest and last height are drawn, which looks the same; so
/// the length of the path has a bound that does not depend on the number of points.
class step_path {
public:
    /// \param chart   must outlive the path
    /// \param column  width of a column, in the units of the picture
    /// \param calm    draws a column with more than three changes as its mean, so that a line that goes up
    /// and
    ///                down all the time does not cover the others
    explicit step_path(const svg_chart& chart, double column = 1.0, bool calm = false)
        : chart_(chart), column_(column), calm_(calm) {}

    /// The line is at `y` from `x` on. Not to the left of the point before.
    void add(double x, double y) {
        const double px = chart_.pixel_x(x);
        const double py = chart_.pixel_y(y);
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
        data_ += "H" + svg_chart::number(chart_.pixel_x(x));
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
            data_ += "M" + svg_chart::number(first_x_) + " " + svg_chart::number(first_);
            begun_ = true;
        } else if (svg_chart::number(first_) != height_ || low_ < high_) {
            data_ += "H" + svg_chart::number(first_x_);
            go_to(first_);
        }
        height_ = svg_chart::number(first_);
        if (low_ < high_) {
            go_to(low_);
            go_to(high_);
            go_to(last_);
        }
    }
    void go_to(double py) {
        const std::string height = svg_chart::number(py);
        if (height == height_) return;
        data_ += "V" + height;
        height_ = height;
    }

    const svg_chart& chart_;
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

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
