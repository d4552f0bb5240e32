// SPDX-License-Identifier: MIT
// Makes tables (results.md) and a page (index.html) of the figures that the programs of this folder have
// written into a folder: bench_gpu_report FOLDER BUILD, where BUILD is cuda or simulated. The lines of
// machine.txt, if it is there, say what they were measured on.
#include <mp/base/number_text.hpp>
#include <mp/frontends/report/chart.hpp>
#include <mp/frontends/report/html.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../../examples/common/replace_file.hpp"
#include "../page/plots.hpp"
#include "../page/records.hpp"
#include "../page/style.hpp"

namespace {

using bench::page::number_text;
using bench::page::record;
using bench::page::results;
using bench::page::table;
using mp::report::html_escaped;
namespace page = bench::page;

/// What mp's best is compared with in the last column.
struct comparison {
    const char* heading;
    const record* with;
};

comparison comparison_of(const table& it, const std::string& row) {
    if (const record* const limit = it.limit(row)) return {"share of the limit", limit};
    return {"mp / best other", it.best_peer(row)};
}

std::string markdown(const table& it) {
    std::string text = "**" + it.name + ", " + it.unit + "**\n\n| |";
    for (const std::string& name : it.contenders) text += " " + name + " |";
    text += std::string(" ") + comparison_of(it, it.rows.front()).heading + " |\n|---|";
    for (std::size_t i = 0; i <= it.contenders.size(); ++i) text += "---|";
    text += "\n";
    for (const std::string& row : it.rows) {
        text += "| " + row + " |";
        for (const std::string& name : it.contenders) {
            const record* const cell = it.find(row, name);
            text += cell == nullptr ? " |" : " " + number_text(cell->figure()) + " |";
        }
        const record* const own = it.own(row);
        const record* const other = comparison_of(it, row).with;
        text += own == nullptr || other == nullptr
                    ? " |\n"
                    : " " + mp::detail::fixed_text(page::times_faster(*own, *other), 2) + " |\n";
    }
    return text + "\n";
}

/// The rows of a table side by side: a bar for each contender, the best one is full.
std::string best_bars(const table& it) {
    std::string html = "<div class=\"panels\">\n";
    for (const std::string& row : it.rows) {
        const std::vector<const record*> bars = it.in_row(row);
        const record* const best = *std::max_element(
            bars.begin(), bars.end(),
            [](const record* a, const record* b) { return page::times_faster(*a, *b) < 1; });
        html += "<div class=\"panel\"><h4>" + html_escaped(row) + "</h4>\n";
        for (const record* bar : bars) {
            html += "<div class=\"bar" + std::string(bar->role == "mp" ? " own" : "") + "\" title=\"" +
                    html_escaped(page::figure_text(*bar)) + "\"><span>" + html_escaped(bar->contender) +
                    "</span><div class=\"track\"><div class=\"fill " + std::string(page::style_of(*bar)) +
                    "\" style=\"width:" + mp::report::svg_number(100 * page::times_faster(*bar, *best)) +
                    "%\"></div></div><span>" + number_text(bar->figure()) + "</span></div>\n";
        }
        html += "</div>\n";
    }
    return html + "</div>\n";
}

std::string html(const results& measured, const std::string& machine, const std::string& exactness) {
    std::string text = mp::report::html_page_begin(
        "mp on a GPU", std::string(mp::report::chart_style).append(page::style_sheet));
    text +=
        "<p class=\"note\">" + html_escaped(machine) +
        "</p>\n<p>Contenders of a row took turns in random order, on random data, and were checked before; "
        "figures are medians. The device's time alone: launches are replayed from a graph.</p>\n" +
        exactness;
    if (measured.tables.empty()) return text + mp::report::html_page_end();
    text +=
        "<h2>mp against the best peer</h2>\n<p>A dot for each row of a table: how many times faster mp is. "
        "Right of 1, mp is the fastest.</p>\n" +
        page::ratio_strip(measured);
    for (const table& it : measured.tables) {
        const bool has_limit = it.limit(it.rows.front()) != nullptr;
        text += "<h3>" + html_escaped(it.name) + ", <small>" +
                html_escaped(has_limit ? "share of what the device's own copy of as many bytes reaches"
                                       : it.unit) +
                "</small></h3>\n" + (has_limit ? page::share_bars(it) : best_bars(it));
    }
    return text + mp::report::html_page_end();
}

/// Returns the lines of exactness.csv: name, result, elements, different elements, first difference.
std::vector<std::vector<std::string>> read_exactness(const std::filesystem::path& folder) {
    std::vector<std::vector<std::string>> lines;
    if (!std::filesystem::exists(folder / "exactness.csv")) return lines;
    std::istringstream text(page::file_text(folder / "exactness.csv"));
    std::string line;
    std::getline(text, line);  // the heading
    while (std::getline(text, line)) {
        std::vector<std::string> cells;
        std::istringstream parts(line);
        for (std::string cell; std::getline(parts, cell, ',');) cells.push_back(cell);
        cells.resize(5);
        lines.push_back(std::move(cells));
    }
    return lines;
}

constexpr const char* exactness_heading =
    "Exactness of kernels: bits of products compared with the tensor-core model, of others with the CPU";

std::string exactness_markdown(const std::vector<std::vector<std::string>>& lines) {
    std::string text =
        "## " + std::string(exactness_heading) +
        "\n\n| kernel | result | elements | different | first difference |\n|---|---|---:|---:|---|\n";
    for (const auto& it : lines) {
        for (const std::string& cell : it) text += "| " + cell + " ";
        text += "|\n";
    }
    return text + "\n";
}

std::string exactness_html(const std::vector<std::vector<std::string>>& lines) {
    std::string text =
        "<h2>" + html_escaped(exactness_heading) +
        "</h2>\n<div "
        "class=\"scroll\"><table><tr><th>kernel</th><th>result</th><th>elements</th><th>different</th>"
        "<th>first difference</th></tr>\n";
    for (const auto& it : lines) {
        text += "<tr>";
        for (const std::string& cell : it) text += "<td>" + html_escaped(cell) + "</td>";
        text += "</tr>\n";
    }
    return text + "</table></div>\n";
}

void write(const std::filesystem::path& path, const std::string& text) {
    if (!examples::replace_file(path, text)) throw std::runtime_error("cannot write " + path.string());
}

void run(const std::filesystem::path& folder, const std::string& build) {
    const results measured = page::read_results(folder, build);
    const auto exactness = read_exactness(folder);
    if (measured.tables.empty() && exactness.empty()) {
        throw std::runtime_error("there are no files *_" + build + ".csv and no exactness.csv in " +
                                 folder.string());
    }
    std::string machine;
    if (std::filesystem::exists(folder / "machine.txt")) machine = page::file_text(folder / "machine.txt");
    std::string text = "# Figures of a GPU\n\n```\n" + machine + "```\n\n";
    if (!exactness.empty()) text += exactness_markdown(exactness);
    for (const table& it : measured.tables) text += markdown(it);
    write(folder / "results.md", text);
    write(folder / "index.html",
          html(measured, machine, exactness.empty() ? std::string() : exactness_html(exactness)));
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc != 3) throw std::runtime_error("say the folder of the results, and cuda or simulated");
        run(argv[1], argv[2]);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
        return 1;
    }
}
