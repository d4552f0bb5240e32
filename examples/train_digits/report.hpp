// SPDX-License-Identifier: MIT
/// \file
/// The report: one HTML page that needs nothing from anywhere else.
#pragma once

#include <mp/config.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "chart.hpp"
#include "data.hpp"
#include "findings.hpp"
#include "plots.hpp"
#include "style.hpp"
#include "summary.hpp"
#include "table.hpp"

namespace train_digits {

/// The file that the report goes to. Whether it can be written is known before the work begins.
class report_file {
public:
    /// Throws user_error if the file cannot be opened for writing. What is in it stays until write().
    explicit report_file(std::string path) : path_(std::move(path)) {
        std::error_code ignored;
        const bool existed = std::filesystem::exists(path_, ignored);
        if (!std::ofstream(path_, std::ios::app)) {
            throw user_error("cannot write the report to '" + path_ + "'");
        }
        if (!existed) std::filesystem::remove(path_, ignored);
    }

    /// Replaces the file. Throws user_error if that fails.
    void write(const std::string& text) const {
        std::ofstream file(path_);
        file << text;
        if (!file.flush()) throw user_error("cannot write the report to '" + path_ + "'");
    }

private:
    std::string path_;
};

namespace detail {

inline std::string figure(const std::string& title, const std::string& content, const std::string& caption) {
    if (content.empty()) return {};
    return "<figure>\n<h3>" + escaped(title) + "</h3>\n" + content + "<figcaption>" + escaped(caption) +
           "</figcaption>\n</figure>\n";
}

/// The lines of the recipes with their names; only those that scale, if so asked.
inline std::string legend(const setting_summary& setting, bool only_scaling) {
    std::string html = "<div class=\"legend\">";
    bool skips = false;
    for (const recipe_summary& it : setting.recipes) {
        if (only_scaling && !it.scales_loss()) continue;
        skips = skips || !it.runs().front().skipped.empty();
        html += "<span><svg viewBox=\"0 0 34 10\"><path class=\"line " + std::string(it.name()) +
                "\" d=\"M1 5H33\"/></svg>" + escaped(it.title()) + "</span>";
    }
    if (only_scaling && skips) {
        html +=
            "<span><svg viewBox=\"0 0 34 10\"><path class=\"cross\" d=\"M12 0l10 10m0 -10l-10 10\"/>"
            "</svg>skipped step</span>";
    }
    return html + "</div>\n";
}

inline std::string html_table(const table& it) {
    std::string html = "<div class=\"scroll\"><table>\n<thead><tr>";
    for (const auto& [first, second] : it.head)
        html.append("<th>").append(first).append(first.empty() ? "" : " ").append(second).append("</th>");
    html += "</tr></thead>\n<tbody>\n";
    for (const auto& row : it.rows) {
        html += "<tr>";
        for (const std::string& cell : row) html += "<td>" + typeset(cell) + "</td>";
        html += "</tr>\n";
    }
    return html + "</tbody>\n</table></div>\n";
}

inline std::string html_list(const std::vector<std::string>& items, const std::string& style) {
    std::string html = "<ul class=\"" + style + "\">\n";
    for (const std::string& item : items) html += "<li>" + typeset(item) + "</li>\n";
    return html + "</ul>\n";
}

/// The histogram of one kind of gradients: as they are, and times the loss scale where a recipe has one.
inline std::string exponent_figure(const setting_summary& setting, const std::string& title,
                                   mp::range_report gradient_record::*kind) {
    const recipe_summary* plain = &setting.recipes.front();
    const recipe_summary* scaled = setting.find("fp16-dynamic");
    if (scaled == nullptr) scaled = setting.find("fp16-static");
    if (scaled == plain) scaled = nullptr;
    const mp::range_report& bars = plain->gradients().*kind;
    const mp::range_report* line = scaled == nullptr ? nullptr : &(scaled->gradients().*kind);
    const std::string bars_name(plain->title());
    const std::string line_name = scaled == nullptr ? "" : std::string(scaled->title());

    std::string legend =
        "<div class=\"legend\"><span><svg viewBox=\"0 0 34 10\"><path class=\"bar\" "
        "d=\"M2 0H32V10H2Z\"/></svg>" +
        escaped(bars_name) + ", as they are</span>";
    if (line != nullptr) {
        legend += "<span><svg viewBox=\"0 0 34 10\"><path class=\"outline\" d=\"M2 10V3H32V10\"/></svg>" +
                  escaped(line_name) + ", times its loss scale</span>";
    }
    legend += "</div>\n";
    const double zeros =
        bars.count == 0 ? 0.0 : static_cast<double>(bars.zeros) / static_cast<double>(bars.count);
    return figure(title, legend + exponent_plot(bars, bars_name, line, line_name),
                  "Exact gradients, sampled once an epoch, by their binary exponent. " + percent(zeros) +
                      " of the bars' values are exactly zero, as behind a relu that is off, and not drawn.");
}

inline std::string setting_section(const setting_summary& setting) {
    std::string html = "<section>\n<h2>" + typeset(setting_title(setting)) + "</h2>\n";
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
    const std::string version = std::to_string(MP_VERSION_MAJOR) + "." + std::to_string(MP_VERSION_MINOR) +
                                "." + std::to_string(MP_VERSION_PATCH);
    std::string html =
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>Scanned digits in mixed precision</title>\n<style>" +
        std::string(style_sheet) + "</style>\n</head>\n<body>\n<main>\n";
    const std::size_t epochs = any.runs().front().losses.size();
    html += "<h1>Scanned digits in mixed precision</h1>\n<p>A network of linear layers " + network_text() +
            " with relu learns to read scanned digits: SGD with momentum " + formatted("%g", momentum) +
            ", learning rate " + formatted("%g", base_learning_rate) + ", batches of " +
            std::to_string(batch_size) + ", " + std::to_string(epochs) + " epochs of " +
            std::to_string(any.steps() / epochs) +
            " steps. Every recipe starts from the same weights and sees the same batches.</p>\n";
    for (const setting_summary& setting : settings) html += detail::setting_section(setting);
    html += "<section>\n<h2>In all settings</h2>\n" +
            detail::html_list(general_findings(settings.front()), "findings") + "<h2>The columns</h2>\n" +
            detail::html_list(table_notes(settings.front()), "notes") + "</section>\n";
    html += "<footer>Made by train_digits of mp " + version +
            ". The digits are the test set of &ldquo;Optical Recognition of Handwritten Digits&rdquo; by "
            "E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, CC BY 4.0. The histograms follow "
            "Micikevicius et al., &ldquo;Mixed Precision Training&rdquo;, 2018, figure 3.</footer>\n";
    return html + "</main>\n</body>\n</html>\n";
}

}  // namespace train_digits
