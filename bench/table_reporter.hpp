// SPDX-License-Identifier: MIT
/// \file
/// How the benchmarks are named and reported: as Markdown tables in which mp stands beside its peers.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench {

/// Each benchmark program defines this: it adds all cells of its tables, and its notes.
void register_benchmarks();

/// The contender that the others are compared with.
inline constexpr std::string_view own_name = "mp";

/// One table: its rows and columns in the order in which they were added, and lines to be printed below it.
struct table {
    std::string name;
    std::vector<std::string> rows = {};
    std::vector<std::string> contenders = {};
    std::vector<std::string> notes = {};
};

/// All tables of the program in the order in which they were added.
inline std::vector<table>& tables() {
    static std::vector<table> result;
    return result;
}

/// The table of this name, added if there is none.
inline table& table_of(const std::string& name) {
    for (table& known : tables()) {
        if (known.name == name) return known;
    }
    return tables().emplace_back(table{name});
}

/// Adds a cell: what `contender` does in `row` of the table. No slash in the names. `run` loops over its
/// state and calls one of the functions count_... below.
inline benchmark::internal::Benchmark* add(const std::string& table_name, const std::string& row,
                                           const std::string& contender,
                                           std::function<void(benchmark::State&)> run) {
    table& target = table_of(table_name);
    const auto insert = [](std::vector<std::string>& list, const std::string& name) {
        if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
    };
    insert(target.rows, row);
    insert(target.contenders, contender);
    const std::string name = table_name + "/" + row + "/" + contender;
    return benchmark::RegisterBenchmark(name.c_str(),
                                        [run = std::move(run)](benchmark::State& state) { run(state); });
}

/// Prints a line below a table: what a reader has to know about its numbers.
inline void add_note(const std::string& table_name, std::string text) {
    table_of(table_name).notes.push_back(std::move(text));
}

/// The cell shows nanoseconds per element; one iteration handles `elements`.
inline void count_elements(benchmark::State& state, std::size_t elements) {
    state.counters["ns/element"] =
        benchmark::Counter(static_cast<double>(elements) * 1e-9,
                           benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// The cell shows 10^9 operations per second; one iteration does `operations`.
inline void count_operations(benchmark::State& state, double operations) {
    state.counters["GFLOP/s"] =
        benchmark::Counter(operations * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

/// Collects the medians of the repetitions and prints the tables. Beside a peer's number stands, in brackets,
/// how many times faster mp is: below 1, mp is slower.
class table_reporter : public benchmark::BenchmarkReporter {
public:
    bool ReportContext(const Context&) override { return true; }

    void ReportRuns(const std::vector<Run>& runs) override {
        for (const Run& run : runs) {
            if (run.error_occurred) {
                GetErrorStream() << run.benchmark_name() << ": " << run.error_message << "\n";
                continue;
            }
            const bool median = run.run_type == Run::RT_Aggregate && run.aggregate_name == "median";
            const bool only_one = run.run_type == Run::RT_Iteration && run.repetitions <= 1;
            if ((!median && !only_one) || run.counters.empty()) continue;
            const auto& [unit, counter] = *run.counters.begin();
            results_[run.run_name.function_name] = {unit, counter.value};
        }
    }

    void Finalize() override { print(GetOutputStream()); }

    /// The tables, without cells that were not run.
    void print(std::ostream& out) const {
        for (const table& it : tables()) {
            const std::string unit = unit_of(it);
            if (unit.empty()) continue;
            out << "**" << it.name << ", " << unit << "**\n\n|";
            for (const std::string& contender : it.contenders) out << " | " << contender;
            out << " |\n|---|";
            for (std::size_t i = 0; i < it.contenders.size(); ++i) out << "---|";
            out << "\n";
            for (const std::string& row : it.rows) {
                out << "| " << row;
                for (const std::string& contender : it.contenders) out << " | " << cell(it, row, contender);
                out << " |\n";
            }
            out << "\n";
            for (const std::string& line : it.notes) out << line << "\n\n";
        }
    }

private:
    struct result {
        std::string unit;
        double value;
    };

    [[nodiscard]] const result* find(const table& it, const std::string& row,
                                     std::string_view contender) const {
        const auto found = results_.find(it.name + "/" + row + "/" + std::string(contender));
        return found == results_.end() ? nullptr : &found->second;
    }

    [[nodiscard]] std::string unit_of(const table& it) const {
        for (const std::string& row : it.rows) {
            for (const std::string& contender : it.contenders) {
                if (const result* found = find(it, row, contender)) return found->unit;
            }
        }
        return {};
    }

    static std::string number(double value) {
        char text[32];
        const char* const format = value < 0.0995 ? "%.3f" : value < 9.95 ? "%.2f" : "%.1f";
        std::snprintf(text, sizeof text, format, value);
        return text;
    }

    [[nodiscard]] std::string cell(const table& it, const std::string& row,
                                   const std::string& contender) const {
        const result* const peer = find(it, row, contender);
        const result* const own = find(it, row, own_name);
        if (peer == nullptr) return "-";
        if (own == nullptr || peer == own) return number(peer->value);
        const bool more_is_better = peer->unit.ends_with("/s");
        const double ratio = more_is_better ? own->value / peer->value : peer->value / own->value;
        return number(peer->value) + " (" + number(ratio) + ")";
    }

    std::map<std::string, result> results_;
};

}  // namespace bench
