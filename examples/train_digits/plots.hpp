// SPDX-License-Identifier: MIT
/// \file
/// The plots of the report: loss curves, loss scale over time, and where the exponents of gradients lie.
#pragma once

#include <mp/convert.hpp>
#include <mp/frontends/report/chart.hpp>
#include <mp/half.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "../common/text.hpp"
#include "../common/training_charts.hpp"
#include "summary.hpp"
#include "table.hpp"

namespace examples::train_digits {

/// Training loss by epoch: the mean of the trainings, and in a faint tone the range from the lowest to the
/// highest.
inline std::string loss_plot(const setting_summary& setting) {
    std::vector<loss_curve> curves;
    for (const recipe_summary& it : setting.recipes) {
        loss_curve curve{it.style(), std::string(it.title()), {}};
        const std::size_t epochs = it.runs().front().losses.size();
        for (std::size_t epoch = 0; epoch < epochs; ++epoch) curve.losses.push_back(it.loss_in(epoch));
        curves.push_back(std::move(curve));
    }
    return loss_chart("Training loss of each recipe by epoch, on a logarithmic scale", curves);
}

/// The loss scale by step in the first training of each recipe that scales, with crosses where steps were
/// skipped. Empty if no recipe scales.
inline std::string scale_plot(const setting_summary& setting) {
    std::vector<scale_curve> curves;
    for (const recipe_summary& it : setting.recipes) {
        if (!it.scales_loss()) continue;
        const training_record& run = it.runs().front();
        curves.push_back({it.style(), std::string(it.title()), run.scales, run.skipped});
    }
    return scale_chart("Loss scale by step, with skipped steps marked", curves);
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
    mp::report::chart plot("Share of gradient values by binary exponent, with the range of half",
                           {static_cast<double>(first), 0.0}, {static_cast<double>(last), highest});
    plot.band("band zero", first, zero_below, "zero in half", "Up to 2^-25: half rounds these to zero");
    plot.band("band subnormal", zero_below, normal_from, "subnormal",
              "2^-25 to 2^-14: half keeps these with fewer than 11 bits");
    plot.band("band normal", normal_from, overflow_from, "normal in half", "2^-14 to 2^16: normal in half");
    plot.band("band overflow", overflow_from, last, "infinite", "From 65520 on: infinite in half");

    const int y_step = static_cast<int>(mp::report::tick_step(highest, 7));
    for (int y = 0; y <= static_cast<int>(highest); y += y_step) plot.y_tick(y, std::to_string(y) + "%");
    for (int e = first; e <= last; ++e) {
        if (e % 5 == 0) plot.x_tick(e, "2^" + std::to_string(e));
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
        std::vector<mp::report::chart_point> outline{{static_cast<double>(first), 0.0}};
        for (int e = first; e < last; ++e) {
            outline.push_back({static_cast<double>(e), share(*line, e)});
            outline.push_back({static_cast<double>(e + 1), share(*line, e)});
        }
        plot.polyline("outline", outline);
        for (int e = first; e < last; ++e) {
            if (share(*line, e) > 0) plot.hover({e + 0.5, share(*line, e)}, tooltip(*line, line_name, e));
        }
    }
    return plot.html();
}

}  // namespace examples::train_digits
