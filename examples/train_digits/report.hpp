// SPDX-License-Identifier: MIT
/// \file
/// The report: one HTML page that needs nothing from anywhere else.
#pragma once

#include <mp/frontends/report/chart.hpp>

#include <string>
#include <vector>

#include "../common/page.hpp"
#include "../common/preset_style.hpp"
#include "findings.hpp"
#include "plots.hpp"
#include "style.hpp"
#include "summary.hpp"
#include "table.hpp"

namespace examples::train_digits {

namespace detail {

/// The lines of the recipes with their names; only those that scale, if so asked.
inline std::string legend(const setting_summary& setting, bool only_scaling) {
    std::string html = "<div class=\"legend\">";
    bool skips = false;
    for (const recipe_summary& it : setting.recipes) {
        if (only_scaling && !it.scales_loss()) continue;
        skips = skips || !it.runs().front().skipped.empty();
        html += legend_line(it.style(), it.title());
    }
    if (only_scaling && skips) html += legend_cross();
    return html + "</div>\n";
}

/// The histogram of one kind of gradients: as they are, and times the loss scale where a recipe has one.
inline std::string exponent_figure(const setting_summary& setting, const std::string& title,
                                   mp::range_report gradient_record::* kind) {
    const recipe_summary* plain = &setting.recipes.front();
    const recipe_summary* scaled = setting.find("fp16-dynamic");
    if (scaled == nullptr) scaled = setting.find("fp16-static");
    if (scaled == plain) scaled = nullptr;
    const mp::range_report& bars = plain->gradients().*kind;
    const mp::range_report* line = scaled == nullptr ? nullptr : &(scaled->gradients().*kind);
    const std::string bars_name(plain->title());
    const std::string line_name = scaled == nullptr ? "" : std::string(scaled->title());

    std::string legend = "<div class=\"legend\">" +
                         mp::report::legend_entry("bar", "M2 3H32V13H2Z", bars_name + ", as they are");
    if (line != nullptr) {
        legend += mp::report::legend_entry("outline", "M2 13V5H32V13", line_name + ", times its loss scale");
    }
    legend += "</div>\n";
    const double zeros =
        bars.count == 0 ? 0.0 : static_cast<double>(bars.zeros) / static_cast<double>(bars.count);
    return figure(title, legend + exponent_plot(bars, bars_name, line, line_name),
                  "Exact gradients, sampled once an epoch, by their binary exponent. " + percent(zeros) +
                      " of the bars' values are exactly zero, as behind a relu that is off, and not drawn.");
}

inline std::string setting_section(const setting_summary& setting) {
    std::string html = "<section>\n<h2>" + html_typeset(setting_title(setting)) + "</h2>\n";
    html += html_table(results_table(setting, true)) + html_list(findings(setting), "findings");
    const std::size_t runs = setting.recipes.front().runs().size();
    html += figure("Training loss", legend(setting, false) + loss_plot(setting),
                   runs == 1 ? "Mean over the batches of an epoch."
                             : "Mean over the batches of an epoch and over " + std::to_string(runs) +
                                   " trainings, and in a faint tone the range from the lowest to the "
                                   "highest.");
    const std::string scales = scale_plot(setting);
    if (!scales.empty()) {
        html += figure("Loss scale", legend(setting, true) + scales,
                       "The training with seed " + std::to_string(setting.first_seed) + ".");
    }
    html += exponent_figure(setting, "Gradients of the weights", &gradient_record::parameters);
    html += exponent_figure(setting, "Gradients between the layers", &gradient_record::outputs);
    return html + "</section>\n";
}

}  // namespace detail

/// The page on all settings.
inline std::string report_page(const std::vector<setting_summary>& settings) {
    const recipe_summary& any = settings.front().recipes.front();
    const std::size_t epochs = any.runs().front().losses.size();
    std::string html = page_begin("Scanned digits in mixed precision",
                                  std::string(recipe_style_sheet) + std::string(preset_style_sheet));
    html += "<p>A network of linear layers " + network_text() +
            " with relu learns to read scanned digits: SGD with momentum " + formatted("%g", momentum) +
            ", learning rate " + formatted("%g", base_learning_rate) + ", batches of " +
            std::to_string(batch_size) + ", " + std::to_string(epochs) + " epochs of " +
            std::to_string(any.steps() / epochs) + " steps" +
            (settings.front().gpu.empty() ? "" : ", on " + html_escaped(settings.front().gpu)) +
            ". Every recipe starts from the same weights and sees the same batches.</p>\n";
    for (const setting_summary& setting : settings) html += detail::setting_section(setting);
    html += "<section>\n<h2>In all settings</h2>\n" +
            html_list(general_findings(settings.front()), "findings") + "<h2>The columns</h2>\n" +
            html_list(table_notes(settings.front()), "notes") + "</section>\n";
    return html + page_end("train_digits", std::string(digits_source) +
                                               " The histograms follow Micikevicius et al., &ldquo;Mixed "
                                               "Precision Training&rdquo;, 2018, figure 3.");
}

}  // namespace examples::train_digits
