// SPDX-License-Identifier: MIT
/// \file
/// Charts as inline SVG: a frame with two axes, and lines, bars and marks in it. Colours come from the style
/// sheet of the page, by class names, so that they suit a light and a dark background.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text.hpp"

namespace examples {

/// Text in which <, >, & and quotes stand for themselves in HTML.
inline std::string escaped(std::string_view text) {
    std::string result;
    for (const char c : text) {
        switch (c) {
            case '<':
                result += "&lt;";
                break;
            case '>':
                result += "&gt;";
                break;
            case '&':
                result += "&amp;";
                break;
            case '"':
                result += "&quot;";
                break;
            default:
                result += c;
        }
    }
    return result;
}

/// The same, with powers of two such as 2^-14 set as such.
inline std::string typeset(std::string_view text) {
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t power = std::min(text.find("2^", at), text.size());
        result += escaped(text.substr(at, power - at));
        at = power;
        if (at == text.size()) break;
        const std::size_t end = std::min(text.find_first_not_of("-0123456789", at + 2), text.size());
        result.append("2<sup>").append(text.substr(at + 2, end - at - 2)).append("</sup>");
        at = end;
    }
    return result;
}

/// A place in a chart, in the units of its axes.
struct point {
    double x;
    double y;
};

/// A chart in the making. Both axes are linear; for a logarithmic one, pass logarithms.
class chart {
public:
    static constexpr double width = 1040;
    static constexpr double height = 360;

    /// \param label  what the chart shows, for those who cannot see it
    /// \param from   the corner at the lower left
    /// \param to     the corner at the upper right, above and to the right of it
    chart(std::string_view label, point from, point to) : from_(from), to_(to) {
        svg_ = "<svg viewBox=\"0 0 " + number(width) + " " + number(height) +
               "\" role=\"img\" aria-label=\"" + escaped(label) + "\">\n";
    }

    /// A label under the x axis; a power of two is set as one. A line goes up from it where `grid` says so.
    void x_tick(double at, std::string_view label, bool grid = true) {
        const double x = pixel_x(at);
        if (grid) line("grid", x, top, x, bottom());
        text("tick", x, bottom() + 20, "middle", label);
    }
    /// The same on the left.
    void y_tick(double at, std::string_view label) {
        const double y = pixel_y(at);
        line("grid", left, y, right(), y);
        text("tick", left - 8, y + 4, "end", label);
    }
    /// A line without a label between the ticks of the y axis.
    void y_minor(double at) { line("grid minor", left, pixel_y(at), right(), pixel_y(at)); }

    void x_title(std::string_view title) { text("axis", (left + right()) / 2, height - 6, "middle", title); }
    void y_title(std::string_view title) {
        svg_ += "<text class=\"axis\" text-anchor=\"middle\" transform=\"translate(14 " +
                number((top + bottom()) / 2) + ") rotate(-90)\">" + escaped(title) + "</text>\n";
    }

    /// A strip over the full height, with its name at the top where there is room for it.
    void band(std::string_view style, double from, double to, std::string_view name,
              std::string_view tooltip) {
        const double begin = pixel_x(std::max(from, from_.x));
        const double end = pixel_x(std::min(to, to_.x));
        if (end <= begin) return;
        rectangle(style, begin, top, end - begin, bottom() - top, tooltip);
        constexpr double character = 6.4;  // of the style sheet's font, on average
        if (static_cast<double>(name.size()) * character < end - begin) {
            text("band-name", (begin + end) / 2, top + 15, "middle", name);
        }
    }

    /// A bar from the x axis up.
    void bar(std::string_view style, double from, double to, double up_to, std::string_view tooltip) {
        const double y = pixel_y(up_to);
        rectangle(style, pixel_x(from) + 0.5, y, pixel_x(to) - pixel_x(from) - 1, bottom() - y, tooltip);
    }

    /// Straight lines from point to point; a gap where a value is not finite.
    void polyline(std::string_view style, const std::vector<point>& points) {
        std::string path;
        bool drawing = false;
        for (const point& p : points) {
            if (!std::isfinite(p.x) || !std::isfinite(p.y)) {
                drawing = false;
                continue;
            }
            path += (drawing ? "L" : "M") + number(pixel_x(p.x)) + " " + number(pixel_y(p.y));
            drawing = true;
        }
        if (!path.empty()) svg_ += "<path class=\"" + std::string(style) + "\" d=\"" + path + "\"/>\n";
    }

    /// The area between two lines with the same x.
    void area(std::string_view style, const std::vector<point>& low, const std::vector<point>& high) {
        std::string path;
        for (const point& p : low) path += step_to(path, p);
        for (std::size_t i = high.size(); i-- > 0;) path += step_to(path, high[i]);
        if (!path.empty()) svg_ += "<path class=\"" + std::string(style) + "\" d=\"" + path + "Z\"/>\n";
    }

    /// A place that shows its tooltip when the pointer comes near.
    void hover(point at, std::string_view tooltip) {
        if (!std::isfinite(at.y)) return;
        svg_ += "<circle class=\"hover\" cx=\"" + number(pixel_x(at.x)) + "\" cy=\"" + number(pixel_y(at.y)) +
                "\" r=\"6\"><title>" + escaped(tooltip) + "</title></circle>\n";
    }

    /// A small cross.
    void cross(std::string_view style, point at, std::string_view tooltip) {
        const double x = pixel_x(at.x);
        const double y = pixel_y(at.y);
        svg_ += "<g><title>" + escaped(tooltip) + "</title><circle class=\"hover\" cx=\"" + number(x) +
                "\" cy=\"" + number(y) + "\" r=\"7\"/><path class=\"" + std::string(style) + "\" d=\"M" +
                number(x - 5) + " " + number(y - 5) + "l10 10m0 -10l-10 10\"/></g>\n";
    }

    /// The finished picture.
    [[nodiscard]] std::string svg() const {
        return svg_ + "<path class=\"frame\" d=\"M" + number(left) + " " + number(top) + "V" +
               number(bottom()) + "H" + number(right()) + "\"/>\n</svg>\n";
    }

private:
    static constexpr double left = 70;
    static constexpr double top = 12;
    static constexpr double right() { return width - 16; }
    static constexpr double bottom() { return height - 48; }

    static std::string number(double value) {
        std::string result = fixed(value, 1);
        if (result.ends_with(".0")) result.resize(result.size() - 2);
        return result;
    }

    [[nodiscard]] double pixel_x(double x) const {
        return left + (x - from_.x) / (to_.x - from_.x) * (right() - left);
    }
    [[nodiscard]] double pixel_y(double y) const {
        return bottom() - (y - from_.y) / (to_.y - from_.y) * (bottom() - top);
    }

    [[nodiscard]] std::string step_to(const std::string& path, point p) const {
        if (!std::isfinite(p.y)) return {};
        return (path.empty() ? "M" : "L") + number(pixel_x(p.x)) + " " + number(pixel_y(p.y));
    }

    void line(std::string_view style, double x1, double y1, double x2, double y2) {
        svg_ += "<line class=\"" + std::string(style) + "\" x1=\"" + number(x1) + "\" y1=\"" + number(y1) +
                "\" x2=\"" + number(x2) + "\" y2=\"" + number(y2) + "\"/>\n";
    }

    void rectangle(std::string_view style, double x, double y, double wide, double high,
                   std::string_view tooltip) {
        svg_ += "<rect class=\"" + std::string(style) + "\" x=\"" + number(x) + "\" y=\"" + number(y) +
                "\" width=\"" + number(wide) + "\" height=\"" + number(std::max(high, 0.0)) + "\"><title>" +
                escaped(tooltip) + "</title></rect>\n";
    }

    void text(std::string_view style, double x, double y, std::string_view anchor, std::string_view content) {
        std::string inner = escaped(content);
        if (content.starts_with("2^")) {
            inner = "2<tspan class=\"exponent\" dy=\"-5\">" + escaped(content.substr(2)) + "</tspan>";
        }
        svg_ += "<text class=\"" + std::string(style) + "\" x=\"" + number(x) + "\" y=\"" + number(y) +
                "\" text-anchor=\"" + std::string(anchor) + "\">" + inner + "</text>\n";
    }

    point from_;
    point to_;
    std::string svg_;
};

}  // namespace examples
