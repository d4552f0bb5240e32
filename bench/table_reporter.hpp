// SPDX-License-Identifier: MIT
/// \file
/// How the benchmarks are named and reported: as Markdown tables in which mp stands beside its peers.
#pragma once

#include <benchmark/benchmark.h>

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

/// Each benchmark program defines this: adds all of its cells, and its notes.
void register_benchmarks();

/// The contender that the others are compared with.
inline constexpr std::string_view own_name = "mp";

/// Adds a cell to the tables: what `contender` does in `row` of `table`. None of the names has a slash. `run`
/// loops over its state and calls one of the functions `count_` below.
inline benchmark::internal::Benchmark* add(const std::string& table, const std::string& row,
                                           const std::string& contender,
                                           std::function<void(benchmark::State&)> run) {
    const std::string name = table + "/" + row + "/" + contender;
    return benchmark::RegisterBenchmark(name.c_str(),
                                        [run = std::move(run)](benchmark::State& state) { run(state); });
}

/// The cell shows nanoseconds per element; one iteration handles `elements`.
inline void count_elements(benchmark::State& state, std::size_t elements) {
    state.counters["ns/element"] =
        benchmark::Counter(static_cast<double>(elements) * 1e-9,
                           benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// The cell shows milliseconds per iteration.
inline void count_milliseconds(benchmark::State& state) {
    state.counters["ms"] =
        benchmark::Counter(1e-3, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// The cell shows 10^9 operations per second; one iteration does `operations`.
inline void count_operations(benchmark::State& state, double operations) {
    state.counters["GFLOP/s"] =
        benchmark::Counter(operations * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

/// Lines to be printed below a table.
inline std::map<std::string, std::vector<std::string>>& notes() {
    static std::map<std::string, std::vector<std::string>> result;
    return result;
}

/// Prints a line below a table: what a reader has to know about its numbers.
inline void add_note(const std::string& table, std::string text) {
    notes()[table].push_back(std::move(text));
}

/// Collects the medians of the repetitions and prints one table for each first part of a benchmark's name,
/// with a row for each second and a column for each third. Beside a peer's number stands, in brackets, how
/// many times faster mp is: below 1, mp is slower.
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
            if ((median || only_one) && !run.counters.empty()) collect(run);
        }
    }

    void Finalize() override { print(GetOutputStream()); }

    /// The tables so far.
    void print(std::ostream& out) const {
        for (const auto& [name, table] : tables_) {
            out << "**" << name << ", " << table.unit << "**\n\n|";
            for (const std::string& contender : table.contenders) out << " | " << contender;
            out << " |\n|---|";
            for (std::size_t i = 0; i < table.contenders.size(); ++i) out << "---|";
            out << "\n";
            for (const auto& [row_name, row] : table.rows) print_row(out, table, row_name, row);
            out << "\n";
            const auto found = notes().find(name);
            if (found == notes().end()) continue;
            for (const std::string& line : found->second) out << line << "\n\n";
        }
    }

private:
    using cells = std::map<std::string, double>;

    struct table_data {
        std::string unit;
        std::vector<std::string> contenders;
        std::vector<std::pair<std::string, cells>> rows;
    };

    template <class Value>
    static Value& entry(std::vector<std::pair<std::string, Value>>& list, const std::string& name) {
        for (auto& [key, value] : list) {
            if (key == name) return value;
        }
        return list.emplace_back(name, Value{}).second;
    }

    void collect(const Run& run) {
        const std::string& name = run.run_name.function_name;
        const std::size_t first = name.find('/');
        const std::size_t last = name.rfind('/');
        if (first == std::string::npos || first == last) return;
        table_data& table = entry(tables_, name.substr(0, first));
        const std::string contender = name.substr(last + 1);
        const auto& [unit, counter] = *run.counters.begin();
        table.unit = unit;
        bool known = false;
        for (const std::string& other : table.contenders) known = known || other == contender;
        if (!known) table.contenders.push_back(contender);
        entry(table.rows, name.substr(first + 1, last - first - 1))[contender] = counter.value;
    }

    static std::string number(double value) {
        char text[32];
        std::snprintf(text, sizeof text, value < 0.095 ? "%.3f" : value < 9.95 ? "%.2f" : "%.1f", value);
        return text;
    }

    static void print_row(std::ostream& out, const table_data& table, const std::string& name,
                          const cells& row) {
        const bool more_is_better = table.unit.find("/s") != std::string::npos;
        const auto own = row.find(std::string(own_name));
        out << "| " << name;
        for (const std::string& contender : table.contenders) {
            out << " | ";
            const auto cell = row.find(contender);
            if (cell == row.end()) {
                out << "-";
                continue;
            }
            out << number(cell->second);
            if (own == row.end() || cell == own) continue;
            const double ratio = more_is_better ? own->second / cell->second : cell->second / own->second;
            out << " (" << number(ratio) << ")";
        }
        out << " |\n";
    }

    std::vector<std::pair<std::string, table_data>> tables_;
};

}  // namespace bench
