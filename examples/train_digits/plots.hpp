// SPDX-License-Identifier: MIT
/// \file
/// The plots of the report: loss curves, loss scale over time, and where the exponents of gradients lie.
#pragma once

#include <mp/convert.hpp>
#include <mp/half.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "chart.hpp"
#include "summary.hpp"
#include "table.hpp"
#include "text.hpp"

namespace train_digits {
namespace detail {

/// log10 of a loss; NaN, which leaves a gap, where there is none.
inline double log10_or_gap(double value) {
    return value > 0.0 && std::isfinite(value) ? std::log10(value) : std::numeric_limits<double>::quiet_NaN();
}

/// A step between ticks that makes at most `ticks` of them.
inline int tick_step(double range, int ticks) {
    for (const int step : {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000}) {
        if (range / step <= ticks) return step;
    }
    return 100000;
}

inline std::string line_style(const recipe_summary& it) {
    return "line " + std::string(it.name());
}

}  // namespace detail

/// Training loss by epoch, logarithmic: the mean of the trainings, and in a faint tone the range from the
/// lowest to the highest.
inline std::string loss_plot(const setting_summary& setting) {
    const std::size_t epochs = setting.recipes.front().runs().front().losses.size();
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const recipe_summary& it : setting.recipes) {
        for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
            for (const double loss : {it.loss_in(epoch).lowest, it.loss_in(epoch).highest}) {
                const double value = detail::log10_or_gap(loss);
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
    chart plot("Training loss of each recipe by epoch, on a logarithmic scale",
               {1.0, static_cast<double>(first)}, {std::max(end, 2.0), static_cast<double>(last)});
    for (int decade = first; decade <= last; ++decade) {
        plot.y_tick(decade, formatted("%g", std::pow(10.0, decade)));
        if (decade == last) break;
        for (int digit = 2; digit < 10; ++digit) plot.y_minor(decade + std::log10(digit));
    }
    const int step = detail::tick_step(end, 15);
    for (int epoch = step == 1 ? 1 : step; epoch <= static_cast<int>(epochs); epoch += step) {
        plot.x_tick(epoch, std::to_string(epoch), false);
    }
    plot.x_title("epoch");
    plot.y_title("training loss");

    std::vector<std::vector<point>> means;
    for (const recipe_summary& it : setting.recipes) {
        std::vector<point> lowest;
        std::vector<point> highest;
        means.emplace_back();
        for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
            const double x = static_cast<double>(epoch + 1);
            const spread loss = it.loss_in(epoch);
            lowest.push_back({x, detail::log10_or_gap(loss.lowest)});
            highest.push_back({x, detail::log10_or_gap(loss.highest)});
            means.back().push_back({x, detail::log10_or_gap(loss.mean)});
        }
        if (it.runs().size() > 1) plot.area("area " + std::string(it.name()), lowest, highest);
    }
    for (std::size_t i = 0; i < means.size(); ++i) {
        plot.polyline(detail::line_style(setting.recipes[i]), means[i]);
    }
    for (std::size_t i = 0; i < means.size(); ++i) {
        const recipe_summary& it = setting.recipes[i];
        for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
            plot.hover(means[i][epoch], std::string(it.title()) + ", epoch " + std::to_string(epoch + 1) +
                                            ": " + detail::loss_spread(it.loss_in(epoch), true));
        }
    }
    return plot.svg();
}

/// The loss scale by step in the first training of each recipe that scales, with crosses where steps were
/// skipped. Empty if no recipe scales.
inline std::string scale_plot(const setting_summary& setting) {
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const recipe_summary& it : setting.recipes) {
        if (!it.scales_loss()) continue;
        for (const float scale : it.runs().front().scales) {
            low = std::min(low, std::log2(static_cast<double>(scale)));
            high = std::max(high, std::log2(static_cast<double>(scale)));
        }
    }
    if (!(low <= high)) return {};
    const double bottom = std::floor(low) - 1;
    const double top = std::ceil(high) + 1;
    const std::size_t steps = setting.recipes.front().steps();
    chart plot("Loss scale by step, with skipped steps marked", {0.0, bottom},
               {static_cast<double>(steps), top});
    const int y_step = detail::tick_step(top - bottom, 10);
    for (int exponent = static_cast<int>(bottom); exponent <= static_cast<int>(top); ++exponent) {
        if (exponent % y_step == 0) plot.y_tick(exponent, "2^" + std::to_string(exponent));
    }
    const int x_step = detail::tick_step(static_cast<double>(steps), 12);
    for (int step = 0; step <= static_cast<int>(steps); step += x_step) {
        plot.x_tick(step, std::to_string(step), false);
    }
    plot.x_title("step");
    plot.y_title("loss scale");

    for (const recipe_summary& it : setting.recipes) {
        if (!it.scales_loss()) continue;
        const training_record& run = it.runs().front();
        std::vector<point> stairs;
        for (std::size_t step = 0; step < run.scales.size(); ++step) {
            const double y = std::log2(static_cast<double>(run.scales[step]));
            if (stairs.empty() || stairs.back().y != y) stairs.push_back({static_cast<double>(step), y});
            stairs.push_back({static_cast<double>(step + 1), y});
        }
        plot.polyline(detail::line_style(it), stairs);
        for (const std::size_t step : run.skipped) {
            const double scale = static_cast<double>(run.scales[step]);
            plot.cross("cross", {static_cast<double>(step) + 0.5, std::log2(scale)},
                       std::string(it.title()) + ": step " + std::to_string(step + 1) + " skipped at scale " +
                           power_text(scale));
        }
        for (std::size_t i = 0; i + 1 < stairs.size(); ++i) {
            if (stairs[i].y == stairs[i + 1].y && (i == 0 || stairs[i - 1].y != stairs[i].y)) {
                plot.hover(stairs[i], std::string(it.title()) + ": scale " +
                                          power_text(std::exp2(stairs[i].y)) + " from step " +
                                          std::to_string(static_cast<int>(stairs[i].x) + 1));
            }
        }
    }
    return plot.svg();
}

/// Exponents of gradients: those of one recipe as bars and, if there is a second one, those of it as a line.
/// Bands show what half does with them.
inline std::string exponent_plot(const mp::range_report& bars, const std::string& bars_name,
                                 const mp::range_report* line, const std::string& line_name) {
    using report = mp::range_report;
    const auto share = [](const report& of, int exponent) {
        const auto nonzero = static_cast<double>(of.count - of.zeros - of.infinities - of.nans);
        return nonzero == 0 ? 0.0 : 100.0 * static_cast<double>(of.with_exponent(exponent)) / nonzero;
    };
    const auto tallest = [&](const report& of) {
        double result = 0.0;
        for (int e = report::min_exponent; e <= report::max_exponent; ++e) {
            result = std::max(result, share(of, e));
        }
        return result;
    };
    // The range of half is always in the picture, and all exponents that the eye could see a bar of.
    using half = std::numeric_limits<mp::half>;
    constexpr int zero_below = half::min_exponent - 1 - half::digits;  // 2^-25 and less round to zero
    constexpr int normal_from = half::min_exponent - 1;
    constexpr int overflow_from = half::max_exponent;
    int first = zero_below - 4;
    int last = overflow_from + 6;
    for (int e = report::min_exponent; e <= report::max_exponent; ++e) {
        if (share(bars, e) < 0.02 && (line == nullptr || share(*line, e) < 0.02)) continue;
        first = std::min(first, e - 1);
        last = std::max(last, e + 2);
    }
    const double highest = 1.18 * std::max({tallest(bars), line != nullptr ? tallest(*line) : 0.0, 1.0});
    chart plot("Share of gradient values by binary exponent, with the range of half",
               {static_cast<double>(first), 0.0}, {static_cast<double>(last), highest});
    plot.band("band zero", first, zero_below, "zero in half", "Up to 2^-25: half rounds these to zero");
    plot.band("band subnormal", zero_below, normal_from, "subnormal",
              "2^-25 to 2^-14: half keeps these with fewer than 11 bits");
    plot.band("band normal", normal_from, overflow_from, "normal in half", "2^-14 to 2^16: normal in half");
    plot.band("band overflow", overflow_from, last, "infinite", "From 65520 on: infinite in half");

    const int y_step = detail::tick_step(highest, 7);
    for (int y = 0; y <= static_cast<int>(highest); y += y_step) plot.y_tick(y, std::to_string(y) + "%");
    for (int e = first; e <= last; ++e) {
        if (e % 5 == 0) plot.x_tick(e, "2^" + std::to_string(e), false);
    }
    plot.x_title("magnitude of the gradient value");
    plot.y_title("share of the values");

    const auto tooltip = [&](const report& of, const std::string& name, int e) {
        return name + ": " + percent(share(of, e) / 100) + " from 2^" + std::to_string(e) + " to 2^" +
               std::to_string(e + 1);
    };
    for (int e = first; e < last; ++e) {
        if (share(bars, e) > 0) plot.bar("bar", e, e + 1, share(bars, e), tooltip(bars, bars_name, e));
    }
    if (line != nullptr) {
        std::vector<point> outline{{static_cast<double>(first), 0.0}};
        for (int e = first; e < last; ++e) {
            outline.push_back({static_cast<double>(e), share(*line, e)});
            outline.push_back({static_cast<double>(e + 1), share(*line, e)});
        }
        plot.polyline("outline", outline);
        for (int e = first; e < last; ++e) {
            if (share(*line, e) > 0) plot.hover({e + 0.5, share(*line, e)}, tooltip(*line, line_name, e));
        }
    }
    return plot.svg();
}

}  // namespace train_digits
