// SPDX-License-Identifier: MIT
/// \file
/// The tables and the page.
#pragma once

#include <mp/frontends/report/chart.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "../common/page.hpp"
#include "../common/training_charts.hpp"
#include "training.hpp"

namespace examples::train_gpt {

/// A recipe and what came out of it.
struct result {
    const recipe* by = nullptr;
    training_record record;
};

inline constexpr std::string_view line_colours = R"(
.line.fp32 { stroke: #767676; } .line.bf16 { stroke: #2a6fb0; } .line.fp16 { stroke: #2a9d6f; }
.line.amp_bf16 { stroke: #7fb0dd; } .line.amp_fp16 { stroke: #7fcfae; }
.line.fp16_alone { stroke: #c8283c; } .line.fp8 { stroke: #8a4fb8; } .line.mxfp8 { stroke: #b8791f; }
.line.limit { stroke: var(--grid); } .line.dashed { stroke-dasharray: 5 4; }
pre { background: var(--grid); padding: 10px 12px; white-space: pre-wrap; overflow-wrap: anywhere; font-size: 12px; }
)";

inline double bits(double nats) {
    return nats / std::log(2.0);
}
inline std::string mebibytes(std::size_t bytes) {
    return fixed(static_cast<double>(bytes) / 1048576.0, bytes < 10 * 1048576 ? 2 : 1);
}

/// What the models have learned, and where time went.
inline table learning_table(const std::vector<result>& results) {
    table it{{{"", "recipe"},
              {"training", "bits/char"},
              {"validation", "bits/char"},
              {"skipped", "steps"},
              {"last", "scale"},
              {"tokens", "per s"},
              {"ms a step:", "forward"},
              {"", "backward"},
              {"of both", "casts"},
              {"", "optimizer"},
              {"", "in all"}},
             {}};
    for (const result& each : results) {
        const training_record& r = each.record;
        const auto steps = static_cast<double>(std::max<std::size_t>(r.losses.size(), 1));
        const std::size_t tail = std::min<std::size_t>(r.losses.size(), 20);
        double last = 0;
        for (std::size_t i = r.losses.size() - tail; i < r.losses.size(); ++i) last += r.losses[i];
        // A GPU does not tell how long the parts of a step take.
        const auto milliseconds = [&](double seconds) {
            return seconds > 0 ? fixed(1000 * seconds / steps, 1) : std::string("-");
        };
        it.rows.push_back(
            {std::string(each.by->name), fixed(bits(last / static_cast<double>(tail)), 3),
             fixed(bits(r.validation.empty() ? std::nan("") : r.validation.back()), 3),
             std::to_string(r.skipped.size()), r.scales.empty() ? "-" : power_text(r.scales.back()),
             fixed(r.tokens_per_second, 0), milliseconds(r.seconds.forward), milliseconds(r.seconds.backward),
             milliseconds(r.seconds.casts), milliseconds(r.seconds.optimizer), milliseconds(r.seconds.all)});
    }
    return it;
}

/// Where memory went, in MiB.
inline table memory_table(const std::vector<result>& results) {
    table it{{{"", "recipe"},
              {"MiB:", "weights"},
              {"", "gradients"},
              {"", "masters"},
              {"", "moments"},
              {"", "activations"},
              {"", "workspace"},
              {"", "kept casts"},
              {"", "in all"}},
             {}};
    for (const result& each : results) {
        const memory_use& m = each.record.memory;
        const std::size_t parts[] = {m.weights,     m.gradients, m.masters, m.moments,
                                     m.activations, m.workspace, m.casts};
        std::vector<std::string> row{std::string(each.by->name)};
        std::size_t sum = 0;
        for (const std::size_t bytes : parts) {
            row.push_back(mebibytes(bytes));
            sum += bytes;
        }
        row.push_back(mebibytes(sum));
        it.rows.push_back(std::move(row));
    }
    return it;
}

/// Losses in bits for each character, of steps as the mean over their neighbours, and of validation in dashes.
inline std::string loss_figure(const std::vector<result>& results) {
    double low = 8, high = 0, steps = 1;
    std::vector<std::vector<mp::report::chart_point>> trained, validated;
    const auto point = [&](double x, double nats) {
        const double y = bits(nats);
        const bool shown = std::isfinite(y) && y < 10;
        if (shown) low = std::min(low, y), high = std::max(high, y);
        steps = std::max(steps, x);
        return mp::report::chart_point{x, shown ? y : std::numeric_limits<double>::quiet_NaN()};
    };
    for (const result& each : results) {
        const training_record& r = each.record;
        const std::size_t width = std::max<std::size_t>(r.losses.size() / 200, 1);
        trained.emplace_back();
        for (std::size_t i = 0; i + width <= r.losses.size(); i += width) {
            double sum = 0;
            for (std::size_t j = i; j < i + width; ++j) sum += r.losses[j];
            trained.back().push_back(point(static_cast<double>(i + width), sum / static_cast<double>(width)));
        }
        validated.emplace_back();
        for (std::size_t i = 0; i < r.validation.size(); ++i) {
            validated.back().push_back(point(r.validated_at[i], r.validation[i]));
        }
    }
    mp::report::chart plot("Bits for each character by step", {0, std::floor(low)},
                           {steps, std::ceil(std::max(high, low + 1))});
    for (double y = std::floor(low); y <= std::ceil(high); ++y) plot.y_tick(y, fixed(y, 0));
    plot.x_counts(10, 0);
    plot.x_title("step");
    plot.y_title("bits/char");
    std::string legend = "<div class=\"legend\">";
    for (std::size_t i = 0; i < results.size(); ++i) {
        const std::string name(results[i].by->name);
        legend += legend_line(name, name);
        plot.polyline("line " + name, trained[i]);
        plot.polyline("line dashed " + name, validated[i]);
        for (const auto& at : validated[i]) {
            plot.hover(at, name + ", step " + fixed(at.x, 0) + ": " + fixed(at.y, 3) + " bits on other text");
        }
    }
    return figure(
        "Loss", legend + "</div>\n" + plot.html(),
        "Bits for each character of the text that is trained on, and in dashes of text that is not.");
}

/// How far the losses are from those of float, where that is among the recipes.
inline std::string difference_figure(const std::vector<result>& results) {
    const auto basis = std::find_if(results.begin(), results.end(),
                                    [](const result& each) { return each.by->name == "fp32"; });
    if (basis == results.end() || results.size() < 2) return {};
    const std::vector<double>& expected = basis->record.losses;
    const std::size_t width = std::max<std::size_t>(expected.size() / 200, 1);
    double most = 1e-3;
    std::vector<std::vector<mp::report::chart_point>> curves;
    for (const result& each : results) {
        const std::vector<double>& losses = each.record.losses;
        curves.emplace_back();
        for (std::size_t i = 0; i + width <= std::min(losses.size(), expected.size()); i += width) {
            double sum = 0;
            for (std::size_t j = i; j < i + width; ++j) sum += losses[j] - expected[j];
            const double y = 1000 * bits(sum / static_cast<double>(width));
            const bool shown = std::isfinite(y) && std::abs(y) < 500;
            if (shown) most = std::max(most, std::abs(y));
            curves.back().push_back(
                {static_cast<double>(i + width), shown ? y : std::numeric_limits<double>::quiet_NaN()});
        }
    }
    const double step = mp::report::tick_step(2 * most, 8);
    const double end = std::ceil(most / step) * step;
    mp::report::chart plot("Difference from the loss of float by step", {0, -end},
                           {static_cast<double>(std::max<std::size_t>(expected.size(), 1)), end});
    for (double y = -end; y <= end + step / 2; y += step)
        plot.y_tick(y, formatted("%.3g", std::abs(y) < step / 2 ? 0 : y));
    plot.x_counts(10, 0);
    plot.x_title("step");
    plot.y_title("thousandths of a bit");
    std::string legend = "<div class=\"legend\">";
    for (std::size_t i = 0; i < results.size(); ++i) {
        const std::string name(results[i].by->name);
        if (name == "fp32") continue;
        legend += legend_line(name, name);
        plot.polyline("line " + name, curves[i]);
    }
    return figure("Difference from float", legend + "</div>\n" + plot.html(),
                  "The loss of a step less that of fp32, in thousandths of a bit for each character.");
}

inline std::string scale_figure(const std::vector<result>& results) {
    std::vector<scale_curve> curves;
    std::string legend = "<div class=\"legend\">";
    for (const result& each : results) {
        const training_record& r = each.record;
        if (std::all_of(r.scales.begin(), r.scales.end(), [](double x) { return x == 1.0; })) continue;
        const std::string name(each.by->name);
        legend += legend_line(name, name);
        curves.push_back(
            {name, name, {r.scales.begin(), r.scales.end()}, {r.skipped.begin(), r.skipped.end()}});
    }
    if (curves.empty()) return {};
    return figure("Loss scale",
                  legend + legend_cross() + "</div>\n" + scale_chart("Loss scale by step", curves),
                  "A step whose gradients overflow is skipped, and the scale halves.");
}

/// What half makes of gradients: of those of other recipes, if they were stored in it.
inline table gradient_table(const std::vector<result>& results) {
    table it{{{"", "recipe"},
              {"last", "scale"},
              {"largest", "magnitude"},
              {"", "zeros"},
              {"half:", "flushed"},
              {"", "subnormal"},
              {"", "overflown"}},
             {}};
    for (const result& each : results) {
        const mp::range_report& r = each.record.gradients;
        const auto share = [&](std::uint64_t count) {
            return fixed(100 * static_cast<double>(count) /
                             static_cast<double>(std::max<std::uint64_t>(r.count, 1)),
                         2) +
                   "%";
        };
        it.rows.push_back({std::string(each.by->name), formatted("%g", each.record.scales.back()),
                           formatted("%.2e", r.largest_magnitude), share(r.zeros), share(r.flushed),
                           share(r.subnormals), share(r.overflows + r.infinities)});
    }
    return it;
}

/// How the magnitudes of gradients are spread over powers of two.
inline std::string gradient_figure(const std::vector<result>& results) {
    int low = 0, high = -60;
    double most = 1;
    const auto share = [](const mp::range_report& r, int exponent) {
        return 100 * static_cast<double>(r.with_exponent(exponent)) /
               static_cast<double>(std::max<std::uint64_t>(r.count, 1));
    };
    for (const result& each : results) {
        for (int e = -60; e <= 30; ++e) {
            const double y = share(each.record.gradients, e);
            if (y < 0.02) continue;
            low = std::min(low, e);
            high = std::max(high, e);
            most = std::max(most, y);
        }
    }
    const double top = 5 * std::ceil(most / 5);
    low = std::min(low, -26) - 1;
    high = std::max(high, -8) + 1;
    mp::report::chart plot("Gradients by power of two", {static_cast<double>(low), 0},
                           {static_cast<double>(high), top});
    for (int e = low + (4 - low % 4) % 4; e <= high; e += 4) plot.x_tick(e, "2^" + std::to_string(e));
    for (double y = 0; y <= top; y += 5) plot.y_tick(y, fixed(y, 0) + "%");
    plot.x_title("magnitude");
    plot.y_title("of all elements");
    // Below the first, half has no numbers; below the second, with fewer bits.
    for (const auto& [exponent, name] :
         {std::pair(-24.0, "half: smallest"), std::pair(-14.0, "half: smallest normal")}) {
        plot.segment("line limit", {exponent, 0}, {exponent, top});
        plot.upward_text("label", {exponent, top / 2}, -4, 0, name);
    }
    std::string legend = "<div class=\"legend\">";
    for (const result& each : results) {
        const std::string name(each.by->name);
        std::vector<mp::report::chart_point> points;
        for (int e = low; e <= high; ++e) points.push_back({e + 0.5, share(each.record.gradients, e)});
        legend += legend_line(name, name);
        plot.polyline("line " + name, points);
    }
    return figure("Gradients", legend + "</div>\n" + plot.html(),
                  "Magnitudes of the gradients of all matrices as they are stored, times the loss scale, "
                  "every 50 steps.");
}

/// The page on all trainings.
inline std::string report_page(const std::vector<result>& results, const training_task& task) {
    std::string html = page_begin("A GPT in several precisions", line_colours);
    html +=
        "<p>" + std::to_string(task.sizes.layers) + " layers, " + std::to_string(task.sizes.width) +
        " wide, " + std::to_string(task.sizes.heads) + " heads, context " +
        std::to_string(task.sizes.context) + ": " + std::to_string(results.front().record.parameters) +
        " parameters, trained for " + std::to_string(task.steps) + " steps of " +
        std::to_string(task.batch * task.accumulate) +
        " sequences on the characters of a text. All recipes start from the same weights and see the same "
        "text.</p>\n";
    html += html_table(learning_table(results)) + loss_figure(results) + difference_figure(results) +
            scale_figure(results) + gradient_figure(results) + html_table(gradient_table(results)) +
            "<h2>Memory</h2>\n" + html_table(memory_table(results)) + "<section>\n<h2>What they write</h2>\n";
    for (const result& each : results) {
        html += "<h3>" + std::string(each.by->name) + ", " + std::string(each.by->meaning) + "</h3>\n<pre>" +
                html_escaped(each.record.sample) + "</pre>\n";
    }
    return html + "</section>\n" + page_end("train_gpt", "");
}

}  // namespace examples::train_gpt
