// SPDX-License-Identifier: MIT
/// \file
/// The losses as a table and as a page.
#pragma once

#include <mp/frontends/report/chart.hpp>
#include <mp/frontends/report/html.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../common/page.hpp"
#include "../common/text.hpp"
#include "conversion.hpp"

namespace mp_convert {

inline std::string decibel_text(double decibels) {
    return std::isfinite(decibels) ? examples::fixed(decibels, 1) : decibels > 0 ? "exact" : "-";
}

inline std::string size_text(std::uint64_t bytes) {
    constexpr std::string_view units[] = {" B", " kB", " MB", " GB", " TB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 999.5 && unit + 1 < std::size(units); ++unit) value /= 1000;
    return examples::fixed(value, unit == 0 || value >= 99.5 ? 0 : 1).append(units[unit]);
}

/// All tensors together.
inline tensor_result total_of(const std::vector<tensor_result>& results) {
    tensor_result total;
    total.name = "all that is converted";
    for (const tensor_result& it : results) {
        if (!it.kept_because.empty()) continue;
        total.lost += it.lost;
        total.bytes_before += it.bytes_before;
        total.bytes_after += it.bytes_after;
    }
    return total;
}

inline std::vector<std::string> row_of(const tensor_result& it, std::string_view format) {
    std::vector<std::string> row{it.name, it.shape, it.from};
    if (!it.kept_because.empty()) {
        row.push_back("kept: " + it.kept_because);
        row.insert(row.end(), {"", "", "", "", ""});
    } else {
        const auto count = static_cast<double>(it.lost.count);
        row.emplace_back(format);
        row.push_back(examples::percent(static_cast<double>(it.lost.underflows) / count));
        row.push_back(std::to_string(it.lost.saturated));
        row.push_back(examples::formatted("%.3g", it.lost.max_relative));
        row.push_back(examples::formatted("%.3g", it.lost.rms_relative()));
        row.push_back(decibel_text(it.lost.decibels()));
    }
    row.push_back(size_text(it.bytes_after));
    return row;
}

/// A row for every tensor, and one for all that were converted.
inline examples::table table_of(const std::vector<tensor_result>& results, std::string_view format) {
    examples::table table;
    table.head = {{"", "tensor"},     {"", "shape"},    {"", "from"},          {"", "to"},
                  {"became", "zero"}, {"too", "large"}, {"max rel.", "error"}, {"rms rel.", "error"},
                  {"SNR,", "dB"},     {"", "size"}};
    for (const tensor_result& it : results) table.rows.push_back(row_of(it, format));
    const tensor_result total = total_of(results);
    if (total.lost.count != 0) table.rows.push_back(row_of(total, format));
    return table;
}

/// One line on everything.
inline std::string summary_of(const std::vector<tensor_result>& results, std::string_view format) {
    std::uint64_t before = 0;
    std::uint64_t after = 0;
    std::size_t converted = 0;
    std::uint64_t not_finite = 0;
    for (const tensor_result& it : results) {
        before += it.bytes_before;
        after += it.bytes_after;
        if (it.kept_because.empty()) ++converted;
        not_finite += it.lost.not_finite;
    }
    const tensor_result total = total_of(results);
    std::string text = std::to_string(converted) + " of " + std::to_string(results.size()) + " tensors to " +
                       std::string(format) + ", " + size_text(before) + " to " + size_text(after);
    if (converted != 0) {
        text += ", SNR " + decibel_text(total.lost.decibels()) +
                (std::isfinite(total.lost.decibels()) ? " dB" : "");
    }
    if (not_finite != 0)
        text += ", " + std::to_string(not_finite) + " values infinite or NaN before or after";
    return text;
}

/// The ratio of signal to noise of every tensor, in the order of names.
inline std::string chart_of(const std::vector<tensor_result>& results) {
    std::vector<const tensor_result*> drawn;
    double top = 10;
    double bottom = 0;
    for (const tensor_result& it : results) {
        if (!it.kept_because.empty() || !std::isfinite(it.lost.decibels())) continue;
        drawn.push_back(&it);
        top = std::max(top, std::ceil(it.lost.decibels() / 10) * 10);
        bottom = std::min(bottom, std::floor(it.lost.decibels() / 10) * 10);
    }
    if (drawn.empty()) return {};
    const auto end = static_cast<double>(drawn.size());
    mp::report::chart chart("signal to noise by tensor", {0, bottom}, {end, top}, 260);
    const double step = mp::report::tick_step(top - bottom, 8, 5);
    for (double y = bottom; y <= top; y += step) chart.y_tick(y, examples::fixed(y, 0));
    chart.y_title("signal to noise, dB");
    chart.x_title("tensors in the order of their names");
    for (std::size_t i = 0; i < drawn.size(); ++i) {
        const auto x = static_cast<double>(i);
        const double y = drawn[i]->lost.decibels();
        chart.bar("bar", x, x + 0.9, y, drawn[i]->name + ": " + examples::fixed(y, 1) + " dB");
    }
    return chart.html();
}

inline std::string page_of(const std::vector<tensor_result>& results, const options& chosen,
                           std::string_view format) {
    std::string page = examples::page_begin("What " + std::string(format) + " costs " + chosen.model,
                                            "td:nth-child(-n+4), th:nth-child(-n+4) { text-align: left; }");
    page += "<p>" + examples::html_escaped(summary_of(results, format)) + ".</p>\n";
    page += examples::figure("Signal to noise", chart_of(results),
                             "The power of the weights over that of their errors. Six decibels are a bit.");
    std::vector<const tensor_result*> worst;
    for (const tensor_result& it : results) {
        if (it.kept_because.empty() && std::isfinite(it.lost.decibels())) worst.push_back(&it);
    }
    std::stable_sort(worst.begin(), worst.end(),
                     [](const auto* a, const auto* b) { return a->lost.decibels() < b->lost.decibels(); });
    if (worst.size() > 10) {
        worst.resize(10);
        page += "<h2>The worst</h2>\n";
        examples::table table = table_of({}, format);
        for (const tensor_result* it : worst) table.rows.push_back(row_of(*it, format));
        page += examples::html_table(table);
    }
    page += "<h2>All tensors</h2>\n" + examples::html_table(table_of(results, format));
    return page +
           examples::page_end("mp-convert", "Errors are of finite values; relative ones leave out zeros.");
}

}  // namespace mp_convert
