// SPDX-License-Identifier: MIT
/// \file
/// The charts of a training: its loss by epoch, and its loss scale by step.
#pragma once

#include <mp/frontends/report/chart.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "spread.hpp"
#include "text.hpp"

namespace examples {

/// log10 of a loss; NaN, which leaves a gap, where there is none.
inline double log10_or_gap(double value) {
    return value > 0.0 && std::isfinite(value) ? std::log10(value) : std::numeric_limits<double>::quiet_NaN();
}

/// The losses of a training, or of several that are drawn as one.
struct loss_curve {
    std::string style;  ///< class of the style sheet, which goes with "line" and "area"
    std::string title;
    std::vector<spread> losses;  ///< by epoch
};

/// Losses by epoch on a logarithmic scale: the means, and in a faint tone the range from the lowest to the
/// highest. A loss that is not positive and finite leaves a gap.
inline std::string loss_chart(std::string_view label, const std::vector<loss_curve>& curves) {
    std::size_t epochs = 0;
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const loss_curve& curve : curves) {
        epochs = std::max(epochs, curve.losses.size());
        for (const spread& it : curve.losses) {
            for (const double loss : {it.lowest, it.highest}) {
                const double value = log10_or_gap(loss);
                if (!std::isfinite(value)) continue;
                low = std::min(low, value);
                high = std::max(high, value);
            }
        }
    }
    if (!(low <= high)) low = high = 0.0;
    const int first = static_cast<int>(std::floor(low));
    const int last = std::max(static_cast<int>(std::ceil(high)), first + 1);
    const auto end = static_cast<double>(epochs);
    mp::report::chart plot(label, {1.0, static_cast<double>(first)},
                           {std::max(end, 2.0), static_cast<double>(last)});
    for (int decade = first; decade <= last; ++decade) {
        plot.y_tick(decade, formatted("%g", std::pow(10.0, decade)));
        if (decade == last) break;
        for (int digit = 2; digit < 10; ++digit) plot.y_minor(decade + std::log10(digit));
    }
    const int step = static_cast<int>(mp::report::tick_step(end, 15));
    for (int epoch = step == 1 ? 1 : step; epoch <= static_cast<int>(epochs); epoch += step) {
        plot.x_tick(epoch, std::to_string(epoch));
    }
    plot.x_title("epoch");
    plot.y_title("training loss");

    const auto points = [](const loss_curve& curve, double spread::* which) {
        std::vector<mp::report::chart_point> result;
        for (const spread& it : curve.losses) {
            result.push_back({static_cast<double>(result.size() + 1), log10_or_gap(it.*which)});
        }
        return result;
    };
    for (const loss_curve& curve : curves) {
        const bool ranges = std::any_of(curve.losses.begin(), curve.losses.end(),
                                        [](const spread& it) { return it.lowest < it.highest; });
        if (!ranges) continue;
        plot.area("area " + curve.style, points(curve, &spread::lowest), points(curve, &spread::highest));
    }
    for (const loss_curve& curve : curves) {
        plot.polyline("line " + curve.style, points(curve, &spread::mean));
    }
    for (const loss_curve& curve : curves) {
        const std::vector<mp::report::chart_point> means = points(curve, &spread::mean);
        for (std::size_t epoch = 0; epoch < means.size(); ++epoch) {
            plot.hover(means[epoch], curve.title + ", epoch " + std::to_string(epoch + 1) + ": " +
                                         loss_spread(curve.losses[epoch], true));
        }
    }
    return plot.html();
}

/// The loss scale of every step of a training.
struct scale_curve {
    std::string style;  ///< class of the style sheet, which goes with "line"
    std::string title;
    std::vector<float> scales;         ///< by step
    std::vector<std::size_t> skipped;  ///< the steps that were skipped, counted from 0
};

/// Loss scales by step, with crosses where steps were skipped. Empty where there are no curves.
inline std::string scale_chart(std::string_view label, const std::vector<scale_curve>& curves) {
    std::size_t steps = 0;
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const scale_curve& curve : curves) {
        steps = std::max(steps, curve.scales.size());
        for (const float scale : curve.scales) {
            low = std::min(low, std::log2(static_cast<double>(scale)));
            high = std::max(high, std::log2(static_cast<double>(scale)));
        }
    }
    if (!(low <= high)) return {};
    const double bottom = std::floor(low) - 1;
    const double top = std::ceil(high) + 1;
    mp::report::chart plot(label, {0.0, bottom}, {static_cast<double>(steps), top});
    const int y_step = static_cast<int>(mp::report::tick_step(top - bottom, 10));
    for (int exponent = static_cast<int>(bottom); exponent <= static_cast<int>(top); ++exponent) {
        if (exponent % y_step == 0) plot.y_tick(exponent, "2^" + std::to_string(exponent));
    }
    const int x_step = static_cast<int>(mp::report::tick_step(static_cast<double>(steps), 12));
    for (int step = 0; step <= static_cast<int>(steps); step += x_step) {
        plot.x_tick(step, std::to_string(step));
    }
    plot.x_title("step");
    plot.y_title("loss scale");

    for (const scale_curve& curve : curves) {
        std::vector<mp::report::chart_point> stairs;
        for (std::size_t step = 0; step < curve.scales.size(); ++step) {
            const double y = std::log2(static_cast<double>(curve.scales[step]));
            if (stairs.empty() || stairs.back().y != y) stairs.push_back({static_cast<double>(step), y});
            stairs.push_back({static_cast<double>(step + 1), y});
        }
        plot.polyline("line " + curve.style, stairs);
        for (const std::size_t step : curve.skipped) {
            const double scale = static_cast<double>(curve.scales[step]);
            plot.cross("cross", {static_cast<double>(step) + 0.5, std::log2(scale)},
                       curve.title + ": step " + std::to_string(step + 1) + " skipped at scale " +
                           power_text(scale));
        }
        for (std::size_t i = 0; i + 1 < stairs.size(); ++i) {
            if (stairs[i].y == stairs[i + 1].y && (i == 0 || stairs[i - 1].y != stairs[i].y)) {
                plot.hover(stairs[i], curve.title + ": scale " + power_text(std::exp2(stairs[i].y)) +
                                          " from step " + std::to_string(static_cast<int>(stairs[i].x) + 1));
            }
        }
    }
    return plot.html();
}

}  // namespace examples
