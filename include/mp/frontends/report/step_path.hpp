// SPDX-License-Identifier: MIT
/// \file
/// Lines of a chart that go up and down in steps.
#pragma once

#include <mp/frontends/report/chart.hpp>
#include <mp/frontends/report/html.hpp>

#include <cmath>
#include <cstdint>
#include <string>

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
