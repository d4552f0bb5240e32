// SPDX-License-Identifier: MIT
/// \file
/// Collects what the cells measured, and writes it as Markdown tables and as a table of raw figures.
#pragma once

#include <benchmark/benchmark.h>
#include <mp/arrays/io/csv.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "cells.hpp"

namespace bench {

/// What one cell measured: the seconds of an iteration over all repetitions, and what an iteration did.
struct measurement {
    unit shown;
    double elements;
    double bytes;
    double operations;
    std::size_t repetitions;
    double fastest;
    double median;
    double slowest;

    /// The figure of the table for a time.
    [[nodiscard]] double figure(double seconds) const {
        switch (shown) {
            case unit::gigaflops:
                return operations / seconds * 1e-9;
            case unit::gigabytes:
                return bytes / seconds * 1e-9;
            case unit::nanoseconds_per_element:
                break;
        }
        return seconds * 1e9 / elements;
    }

    [[nodiscard]] double figure() const { return figure(median); }
    [[nodiscard]] bool more_is_better() const { return shown != unit::nanoseconds_per_element; }
};

/// How many times faster `one` is than `other`.
inline double times_faster(const measurement& one, const measurement& other) {
    return one.more_is_better() ? one.figure() / other.figure() : other.figure() / one.figure();
}

class table_reporter : public benchmark::BenchmarkReporter {
public:
    bool ReportContext(const Context&) override { return true; }

    void ReportRuns(const std::vector<Run>& runs) override {
        std::vector<double> seconds;
        const Run* last = nullptr;
        for (const Run& run : runs) {
            if (run.error_occurred) {
                GetErrorStream() << run.benchmark_name() << ": " << run.error_message << "\n";
                continue;
            }
            if (run.run_type != Run::RT_Iteration || run.counters.count(unit_counter) == 0) continue;
            const bool real = run.run_name.time_type == "real_time";
            seconds.push_back((real ? run.real_accumulated_time : run.cpu_accumulated_time) /
                              static_cast<double>(run.iterations));
            last = &run;
        }
        if (last == nullptr) return;
        std::sort(seconds.begin(), seconds.end());
        const std::size_t middle = seconds.size() / 2;
        const double median =
            seconds.size() % 2 == 1 ? seconds[middle] : (seconds[middle - 1] + seconds[middle]) / 2;
        const auto counter = [&](const char* name) { return last->counters.at(name).value; };
        results_[last->run_name.function_name] = {static_cast<unit>(static_cast<int>(counter(unit_counter))),
                                                  counter(elements_counter),
                                                  counter(bytes_counter),
                                                  counter(operations_counter),
                                                  seconds.size(),
                                                  seconds.front(),
                                                  median,
                                                  seconds.back()};
    }

    void Finalize() override {
        progress::done();
        print(GetOutputStream(), false);
    }

    /// The tables, without columns and rows of which nothing was run: the median of each cell, in brackets
    /// how many times faster mp is (below 1, mp is slower), and the share of the limit. With `spread` also
    /// the least and the greatest figure, in a line below.
    void print(std::ostream& out, bool spread) const {
        for (const table& it : tables()) {
            std::vector<column> columns;
            for (const column& c : it.columns) {
                const auto measured = [&](const std::string& row) {
                    return find(it, row, c.name) != nullptr;
                };
                if (std::any_of(it.rows.begin(), it.rows.end(), measured)) columns.push_back(c);
            }
            if (columns.empty()) continue;
            out << "**" << it.name << ", " << unit_of(it) << "**\n\n|";
            for (const column& c : columns) out << " | " << c.name;
            out << " |\n|---|";
            for (std::size_t i = 0; i < columns.size(); ++i) out << "---|";
            out << "\n";
            for (const std::string& row : it.rows) {
                const auto measured = [&](const column& c) { return find(it, row, c.name) != nullptr; };
                if (std::none_of(columns.begin(), columns.end(), measured)) continue;
                out << "| " << row;
                for (const column& c : columns) out << " | " << cell(it, row, c, spread);
                out << " |\n";
            }
            out << "\n";
            for (const std::string& line : it.notes) out << line << "\n\n";
        }
    }

    /// Every measured cell as a line, after a line with the names of the columns.
    void print_csv(std::ostream& out, std::string_view program, std::string_view build) const {
        out << "program,build,table,row,contender,role,unit,elements,bytes,operations,repetitions,"
               "seconds_min,seconds_median,seconds_max\n";
        constexpr std::string_view roles[] = {"contender", "reference", "limit"};
        for (const table& it : tables()) {
            for (const std::string& row : it.rows) {
                for (const column& c : it.columns) {
                    const measurement* const found = find(it, row, c.name);
                    if (found == nullptr) continue;
                    const std::string_view part =
                        is_own(c.name) ? "mp" : roles[static_cast<std::size_t>(c.part)];
                    std::string line;
                    for (const std::string_view text :
                         {program, build, std::string_view(it.name), std::string_view(row),
                          std::string_view(c.name), part, name_of(found->shown)}) {
                        mp::detail::append_csv_text(line, text);
                        line += ',';
                    }
                    for (const double number : {found->elements, found->bytes, found->operations,
                                                static_cast<double>(found->repetitions), found->fastest,
                                                found->median, found->slowest}) {
                        mp::detail::append_csv_number(line, number);
                        line += ',';
                    }
                    line.back() = '\n';
                    out << line;
                }
            }
        }
    }

private:
    static std::string_view name_of(unit shown) {
        switch (shown) {
            case unit::gigaflops:
                return "GFLOP/s";
            case unit::gigabytes:
                return "GB/s";
            case unit::nanoseconds_per_element:
                break;
        }
        return "ns/element";
    }

    [[nodiscard]] const measurement* find(const table& it, const std::string& row,
                                          const std::string& contender) const {
        const auto found = results_.find(it.name + "/" + row + "/" + contender);
        return found == results_.end() ? nullptr : &found->second;
    }

    [[nodiscard]] std::string_view unit_of(const table& it) const {
        for (const std::string& row : it.rows) {
            for (const column& c : it.columns) {
                if (const measurement* const found = find(it, row, c.name)) return name_of(found->shown);
            }
        }
        return {};
    }

    /// What mp measured in a row, which may be the result of its first column alone.
    [[nodiscard]] const measurement* own(const table& it, const std::string& row) const {
        for (const column& c : it.columns) {
            if (!is_own(c.name)) continue;
            if (const measurement* const found = find(it, row, c.name)) return found;
        }
        return nullptr;
    }

    [[nodiscard]] const measurement* slowest_limit(const table& it, const std::string& row) const {
        const measurement* result = nullptr;
        for (const column& c : it.columns) {
            if (c.part != role::limit) continue;
            const measurement* const found = find(it, row, c.name);
            if (found != nullptr && (result == nullptr || times_faster(*result, *found) > 1.0))
                result = found;
        }
        return result;
    }

    static std::string number(double value) {
        char text[32];
        const char* const format = value < 0.0995  ? "%.3f"
                                   : value < 9.95  ? "%.2f"
                                   : value < 999.5 ? "%.1f"
                                                   : "%.0f";
        std::snprintf(text, sizeof text, format, value);
        return text;
    }

    [[nodiscard]] std::string cell(const table& it, const std::string& row, const column& c,
                                   bool spread) const {
        const measurement* const found = find(it, row, c.name);
        if (found == nullptr) return "-";
        std::string text = number(found->figure());
        const measurement* const self = own(it, row);
        if (self != nullptr && self != found) text += " (" + number(times_faster(*self, *found)) + ")";
        const measurement* const limit = slowest_limit(it, row);
        if (limit != nullptr && c.part == role::contender) {
            char share[32];
            const double percent = 100 * times_faster(*found, *limit);
            std::snprintf(share, sizeof share, percent < 9.95 ? ", %.1f %%" : ", %.0f %%", percent);
            text += share;
        }
        if (spread && found->repetitions > 1) {
            double low = found->figure(found->fastest);
            double high = found->figure(found->slowest);
            if (low > high) std::swap(low, high);
            text += "<br><sub>" + number(low) + " - " + number(high) + "</sub>";
        }
        return text;
    }

    std::map<std::string, measurement> results_;
};

}  // namespace bench
