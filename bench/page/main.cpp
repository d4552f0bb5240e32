// SPDX-License-Identifier: MIT
// Makes a page of the raw figures of the benchmark programs: bench_page --results=FOLDER reads all
// <program>_<build>.csv there, and writes results.csv, which holds them all, and index.html. --compiler,
// --generic and --native say what the programs were built with, --avx2 what they were kept to.
#include <mp/frontends/report/chart.hpp>
#include <mp/frontends/report/html.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "../../examples/common/replace_file.hpp"
#include "plots.hpp"
#include "records.hpp"
#include "style.hpp"

namespace bench::page { namespace {

/// Runs of all programs, in the order of the page.
constexpr const char* sections[] = {"generic", "native", "avx2"};

struct options {
    std::filesystem::path results;
    std::string compiler = "unknown compiler";
    std::string generic;
    std::string native;
    std::string avx2;

    [[nodiscard]] const std::string& flags_of(std::string_view section) const {
        return section == "generic" ? generic : section == "native" ? native : avx2;
    }
};

options parse(int argc, char** argv) {
    options result;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        const auto take = [&](std::string_view name, auto& to) {
            if (!argument.starts_with(name)) return false;
            to = std::string(argument.substr(name.size()));
            return true;
        };
        if (!take("--results=", result.results) && !take("--compiler=", result.compiler) &&
            !take("--generic=", result.generic) && !take("--native=", result.native) &&
            !take("--avx2=", result.avx2)) {
            throw std::runtime_error("unknown argument " + std::string(argument));
        }
    }
    if (result.results.empty()) throw std::runtime_error("say --results=FOLDER");
    return result;
}

std::string processor_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("model name")) return line.substr(line.find(": ") + 2);
    }
    return "unknown processor";
}

std::string today() {
    const std::chrono::year_month_day date(
        std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()));
    char text[32];
    std::snprintf(text, sizeof text, "%d-%02u-%02u", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
    return text;
}

void write(const std::filesystem::path& path, std::string_view text) {
    if (!examples::replace_file(path, text)) throw std::runtime_error("cannot write " + path.string());
}

constexpr std::string_view peaks_table = "multiply-adds from registers";
constexpr std::string_view moves_table = "moves of memory on one thread, read and written";

/// A limit is what the machine does when nothing disturbs it: of all repetitions the fastest counts.
///
/// Of the peaks on one thread those whose name begins with one of these, in this order.
std::vector<roof> roofs_of(const results& machine, const std::vector<std::string_view>& beginnings) {
    std::vector<roof> result;
    const table* const peaks = machine.find(peaks_table);
    if (peaks == nullptr) return result;
    for (const std::string_view beginning : beginnings) {
        for (const std::string& row : peaks->rows) {
            const record* const found = peaks->find(row, "one thread");
            if (row.starts_with(beginning) && found != nullptr)
                result.push_back({row, found->figure(found->fastest)});
        }
    }
    return result;
}

/// What the fastest way to move memory reaches, by the size of what is moved.
std::vector<slope> slopes_of(const results& machine) {
    std::vector<slope> result;
    const table* const moves = machine.find(moves_table);
    if (moves == nullptr) return result;
    for (const std::string& row : moves->rows) {
        double most = 0;
        for (const record* it : moves->in_row(row)) most = std::max(most, it->figure(it->fastest));
        result.push_back({row.substr(0, row.find(',')), most});
    }
    return result;
}

/// Without those that are hardly slower than the next one, which would only cover it.
std::vector<slope> distinct(const std::vector<slope>& all) {
    std::vector<slope> result;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (i + 1 == all.size() || all[i].gigabytes > 1.4 * all[i + 1].gigabytes) result.push_back(all[i]);
    }
    return result;
}

std::string cards(const results& machine) {
    std::string html = "<div class=\"cards\">\n";
    const auto card = [&](double value, std::string_view unit, std::string_view what) {
        html += "<div class=\"card\"><b>" + number_text(value) + " <small>" + html_escaped(unit) +
                "</small></b><span>" + html_escaped(what) + "</span></div>\n";
    };
    for (const roof& it : roofs_of(machine, {"float", "half", "bfloat16", "int8"})) {
        card(it.gigaflops, "GFLOP/s", it.name);
    }
    for (const slope& it : slopes_of(machine)) card(it.gigabytes, "GB/s", it.name + ", fastest way to move");
    return html + "</div>\n";
}

std::string notes(const table& it) {
    if (it.notes.empty()) return {};
    std::string html = "<p class=\"note\">";
    for (const std::string& note : it.notes) html += html_escaped(note) + " ";
    html.back() = '<';
    return html + "/p>\n";
}

std::string rooflines(const std::string& build, const results& measured, const results& machine) {
    struct panel {
        std::string_view table;
        std::vector<std::string_view> roofs;
    };
    const panel panels[] = {{"bfloat16 matrix product", {"bfloat16", "float, AVX-512"}},
                            {"float matrix product", {"float"}},
                            {"half matrix product", {"half", "float, AVX-512"}}};
    const std::vector<std::string_view> only_avx2 = {"float, AVX2"};
    std::string html;
    for (const panel& it : panels) {
        const table* const products = measured.find(it.table);
        if (products == nullptr) continue;
        html += "<h3>" + html_escaped(products->name) +
                " <small>one thread; shapes are m x k x n</small></h3>\n" +
                roofline(*products, roofs_of(machine, build == "avx2" ? only_avx2 : it.roofs),
                         distinct(slopes_of(machine))) +
                notes(*products);
    }
    return html;
}

/// Those that are measured by elements and have a limit.
std::string bars(const results& measured) {
    std::string html;
    for (const table& it : measured.tables) {
        const auto has_limit = [&](const std::string& row) { return it.limit(row) != nullptr; };
        if (it.unit != "ns/element" || std::none_of(it.rows.begin(), it.rows.end(), has_limit)) continue;
        html += "<h3>" + html_escaped(it.name) + "</h3>\n" + share_bars(it) + notes(it);
    }
    return html;
}

std::string figures(const table& it) {
    std::string html = "<details><summary>" + html_escaped(it.name) + ", " + html_escaped(it.unit) +
                       "</summary>\n<div class=\"scroll\"><table>\n<tr><th></th>";
    for (const std::string& name : it.contenders) html += "<th>" + html_escaped(name) + "</th>";
    html += "</tr>\n";
    for (const std::string& row : it.rows) {
        html += "<tr><td>" + html_escaped(row) + "</td>";
        const record* const own = it.own(row);
        for (const std::string& name : it.contenders) {
            const record* const cell = it.find(row, name);
            if (cell == nullptr) {
                html += "<td>-</td>";
                continue;
            }
            html += std::string(cell == own && it.is_behind(row) ? "<td class=\"behind\"" : "<td") +
                    " title=\"" + html_escaped(figure_text(*cell)) + "\">" + number_text(cell->figure());
            if (own != nullptr && cell != own) {
                html += " <small>(" + number_text(times_faster(*own, *cell)) + ")</small>";
            }
            html += "</td>";
        }
        html += "</tr>\n";
    }
    return html + "</table></div>\n" + notes(it) + "</details>\n";
}

std::string section(const std::string& build, const results& measured, const results& machine) {
    std::string html = "<section class=\"" + build + "\">\n";
    html +=
        "<h2>mp against the best peer</h2>\n<p>A dot for each row of a table: how many times faster mp is "
        "than "
        "the fastest other contender. Right of 1, mp is the fastest.</p>\n" +
        ratio_strip(measured);
    html +=
        "<h2>Matrix products under the roofs of the machine</h2>\n<p>Dashed: what memory lets through. "
        "Solid: "
        "the multiply-adds of one core. Both were measured by the same suite.</p>\n" +
        rooflines(build, measured, machine);
    html +=
        "<h2>Passes over arrays: share of the limit</h2>\n<p>The right end of a bar's track is the limit: "
        "the "
        "same bytes read and written without calculating or, where a pass was written by hand for this "
        "processor, that pass.</p>\n" +
        bars(measured);
    html +=
        "<h2>All figures</h2>\n<p>Medians; in brackets how many times faster mp is. A bar stands before "
        "figures of mp that a peer surpasses, or that are below nine tenths of the row's limit.</p>\n";
    for (const table& it : measured.tables) html += figures(it);
    return html + "</section>\n";
}

std::string page(const options& chosen, const std::vector<std::pair<std::string, results>>& builds,
                 const results& machine) {
    std::string html = mp::report::html_page_begin("mp beside its peers and the limits of the machine",
                                                   std::string(mp::report::chart_style).append(style_sheet));
    html +=
        "<p class=\"note\">" +
        html_escaped(processor_name() + ", " + std::to_string(std::thread::hardware_concurrency()) +
                     " processors; " + chosen.compiler + "; " + today()) +
        "</p>\n<p>Contenders of a table took turns in random order in one process, and were checked before; "
        "figures are medians of their repetitions, on one core unless a row says otherwise. Compare figures "
        "of this page with each other, not across machines.</p>\n";
    html += "<h2>What this machine can do</h2>\n" + cards(machine);
    for (const auto& [build, measured] : builds) {
        const std::string& flags = chosen.flags_of(build);
        html += "<input class=\"build\" type=\"radio\" name=\"build\" id=\"" + build + "\"" +
                (build == builds.front().first ? " checked=\"checked\"" : "") +
                "/><label class=\"build\" for=\"" + build + "\">" +
                html_escaped(build + (flags.empty() ? "" : ": " + flags)) + "</label>\n";
    }
    for (const auto& [build, measured] : builds) html += section(build, measured, machine);
    return html + mp::report::html_page_end();
}

void run(const options& chosen) {
    std::string csv;
    std::set<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(chosen.results)) {
        const std::string name = entry.path().filename().string();
        for (const char* const section : sections) {
            if (name.ends_with("_" + std::string(section) + ".csv")) files.insert(entry.path());
        }
    }
    if (files.empty()) throw std::runtime_error("there are no results in " + chosen.results.string());
    for (const std::filesystem::path& path : files) {
        const std::string text = file_text(path);
        csv += csv.empty() ? text : text.substr(text.find('\n') + 1);
    }
    write(chosen.results / "results.csv", csv);

    std::vector<std::pair<std::string, results>> builds;
    results machine;
    for (const std::string build : sections) {
        results measured = read_results(chosen.results, build);
        if (build == "generic") machine = measured;
        if (!measured.tables.empty()) builds.emplace_back(build, std::move(measured));
    }
    const std::filesystem::path target = chosen.results / "index.html";
    write(target, page(chosen, builds, machine));
    std::printf("The page is %s\n", target.string().c_str());
}

}  // namespace
}  // namespace bench::page

int main(int argc, char** argv) {
    try {
        bench::page::run(bench::page::parse(argc, argv));
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
        return 1;
    }
}
