// SPDX-License-Identifier: MIT
/// \file
/// The report: one HTML page that needs nothing from anywhere else.
#pragma once

#include <mp/frontends/compat/presets.hpp>
#include <mp/frontends/report/chart.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "../common/page.hpp"
#include "../common/preset_style.hpp"
#include "../common/training_charts.hpp"
#include "results.hpp"

namespace examples::train_convolution {
namespace detail {

inline std::string legend_of(const std::vector<group>& groups) {
    std::string html = "<div class=\"legend\">";
    for (const group& it : groups) html += legend_line(preset_style(*it.first->preset), it.names);
    return html;
}

inline std::string loss_figure(const std::vector<group>& groups) {
    std::vector<loss_curve> curves;
    for (const group& it : groups) {
        curves.push_back({preset_style(*it.first->preset), it.names, {}});
        for (const double loss : it.first->record.losses) curves.back().losses.push_back({loss, loss, loss});
    }
    return figure(
        "Training loss",
        legend_of(groups) + "</div>\n" +
            loss_chart("Training loss under each preset by epoch, on a logarithmic scale", curves),
        "Mean over the batches of an epoch. Presets whose trainings were the same in every bit share "
        "a line.");
}

/// The losses in relation to those without autocast; empty where there is nothing to compare.
inline std::string ratio_figure(const std::vector<group>& groups, const result* reference) {
    if (reference == nullptr || groups.size() < 2) return {};
    const std::vector<double>& basis = reference->record.losses;
    const auto ratio = [&](const group& it, std::size_t epoch) {
        return it.first->record.losses[epoch] / basis[epoch];
    };
    double low = 1.0;
    double high = 1.0;
    for (const group& it : groups) {
        for (std::size_t epoch = 0; epoch < basis.size(); ++epoch) {
            const double value = ratio(it, epoch);
            if (!(value > 0.0) || value > 10.0) continue;  // a training that broke
            low = std::min(low, value);
            high = std::max(high, value);
        }
    }
    const int step = static_cast<int>(mp::report::tick_step(100 * (high - low), 8));  // in percent
    const int first = static_cast<int>(std::floor(100 * low / step - 0.1)) * step;
    const int last = static_cast<int>(std::ceil(100 * high / step + 0.1)) * step;
    const auto end = static_cast<double>(basis.size());
    mp::report::chart plot("Training loss by epoch in relation to training in float",
                           {1.0, static_cast<double>(first)},
                           {std::max(end, 2.0), static_cast<double>(last)});
    for (int percents = first; percents <= last; percents += step) {
        plot.y_tick(percents, std::to_string(percents) + "%");
    }
    const int x_step = static_cast<int>(mp::report::tick_step(end, 15));
    for (int epoch = x_step; epoch <= static_cast<int>(basis.size()); epoch += x_step) {
        plot.x_tick(epoch, std::to_string(epoch));
    }
    plot.x_title("epoch");
    plot.y_title("loss, share of float");
    std::vector<std::vector<mp::report::chart_point>> curves;
    for (const group& it : groups) {
        curves.emplace_back();
        for (std::size_t epoch = 0; epoch < basis.size(); ++epoch) {
            const double value = 100 * ratio(it, epoch);
            const bool inside = value >= first && value <= last;
            curves.back().push_back(
                {static_cast<double>(epoch + 1), inside ? value : std::numeric_limits<double>::quiet_NaN()});
        }
        plot.polyline("line " + preset_style(*it.first->preset), curves.back());
    }
    for (std::size_t i = 0; i < groups.size(); ++i) {
        for (std::size_t epoch = 0; epoch < basis.size(); ++epoch) {
            plot.hover(curves[i][epoch], groups[i].names + ", epoch " + std::to_string(epoch + 1) + ": " +
                                             fixed(curves[i][epoch].y, 1) + "%");
        }
    }
    return figure("Training loss in relation to float", legend_of(groups) + "</div>\n" + plot.html(),
                  "The loss of the epoch as a share of the one that training without autocast has.");
}

inline std::string scale_figure(const std::vector<group>& groups) {
    std::vector<scale_curve> curves;
    std::vector<group> scaling;
    bool skips = false;
    for (const group& it : groups) {
        const training_record& record = it.first->record;
        if (!scales_loss(*it.first->preset)) continue;
        skips = skips || !record.skipped.empty();
        scaling.push_back(it);
        curves.push_back({preset_style(*it.first->preset), it.names, record.scales, record.skipped});
    }
    if (curves.empty()) return {};
    return figure("Loss scale",
                  legend_of(scaling) + (skips ? legend_cross() : "") + "</div>\n" +
                      scale_chart("Loss scale by step, with skipped steps marked", curves),
                  "The other presets compute in formats with the exponents of float and need no scale.");
}

}  // namespace detail

/// The page on all trainings.
inline std::string report_page(const std::vector<result>& results, const training_task& task) {
    const std::string steps =
        std::to_string(results.front().record.scales.size() / results.front().record.losses.size());
    std::string html =
        page_begin("A convolutional network under the presets of autocast", preset_style_sheet);
    html +=
        "<p>Two convolutions, layer normalization and a linear layer learn to read scanned digits: SGD with "
        "momentum " +
        formatted("%g", momentum) + ", learning rate " + formatted("%g", learning_rate) + ", batches of " +
        std::to_string(batch_size) + ", " + std::to_string(task.epochs) + " epochs of " + steps +
        " steps, seed " + std::to_string(task.seed) +
        ". Every preset starts from the same weights and sees the same batches; the line that names the "
        "preset is all that differs.</p>\n";
    html += html_table(results_table(results)) + html_list(findings(results), "findings");
    const std::vector<group> groups = groups_of(results);
    html += detail::loss_figure(groups) + detail::ratio_figure(groups, reference_among(results)) +
            detail::scale_figure(groups);
    std::vector<std::string> meanings;
    for (const result& it : results) {
        meanings.push_back(std::string(it.preset->name) + ": " + std::string(it.preset->meaning));
    }
    html += "<section>\n<h2>The presets</h2>\n" + html_list(meanings, "notes") + "<h2>The columns</h2>\n" +
            html_list(table_notes(results), "notes") + "</section>\n";
    return html + page_end("train_convolution", std::string(digits_source));
}

}  // namespace examples::train_convolution
