// SPDX-License-Identifier: MIT
/// \file
/// How the benchmarks are named and what they count: cells of tables in which mp stands beside its peers and
/// beside the limits of the machine.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "limits/limits.hpp"
#include "progress.hpp"

namespace bench {

/// Each benchmark program defines this: it adds all cells of its tables, and its notes.
void register_benchmarks();

/// The contender that the others are compared with: the first one of a table with this name, or with a name
/// that begins with it and a space.
inline constexpr std::string_view own_name = "mp";

inline bool is_own(std::string_view contender) {
    return contender == own_name || contender.starts_with(std::string(own_name) + " ");
}

/// What a column of a table stands for.
enum class role {
    contender,  ///< does the work of the row
    reference,  ///< does something familiar to compare with, as memcpy
    limit,      ///< does the part of the work that the machine cannot do any faster; where a row has several
                ///< limits, the slowest counts
};

struct column {
    std::string name;
    role part;
};

/// One table: its rows and columns in the order in which they were added, and lines to be printed below it.
struct table {
    std::string name;
    std::vector<std::string> rows = {};
    std::vector<column> columns = {};
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

/// Whether the program was started with --quick: the longest rows are then to be left out.
inline bool& quick() {
    static bool result = false;
    return result;
}

/// Adds a cell: what `contender` does in `row` of the table, in moments that the processor has to itself. No
/// slash in the names. `run` loops over its state and calls one of the functions count_... below.
inline benchmark::internal::Benchmark* add(const std::string& table_name, const std::string& row,
                                           const std::string& contender,
                                           std::function<void(benchmark::State&)> run,
                                           role part = role::contender) {
    table& target = table_of(table_name);
    if (std::find(target.rows.begin(), target.rows.end(), row) == target.rows.end()) {
        target.rows.push_back(row);
    }
    const auto same_name = [&](const column& it) { return it.name == contender; };
    if (std::none_of(target.columns.begin(), target.columns.end(), same_name)) {
        target.columns.push_back({contender, part});
    }
    const std::string name = table_name + "/" + row + "/" + contender;
    const std::shared_ptr<progress::cell> advance = progress::new_cell();
    return benchmark::RegisterBenchmark(name.c_str(),
                                        [run = std::move(run), advance](benchmark::State& state) {
                                            limits::await_peaks();
                                            run(state);
                                            progress::ran(*advance, state.max_iterations);
                                        });
}

/// Prints a line below a table: what a reader has to know about its numbers.
inline void add_note(const std::string& table_name, std::string text) {
    std::vector<std::string>& notes = table_of(table_name).notes;
    if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(std::move(text));
}

/// What one iteration of a cell does, by which its time becomes a rate. The counters have these names.
inline constexpr const char* elements_counter = "elements";
inline constexpr const char* bytes_counter = "bytes";
inline constexpr const char* operations_counter = "operations";
inline constexpr const char* unit_counter = "unit";

/// What the table shows.
enum class unit { nanoseconds_per_element, gigaflops, gigabytes };

inline void count(benchmark::State& state, unit shown, double elements, double bytes, double operations) {
    state.counters[unit_counter] = static_cast<double>(shown);
    state.counters[elements_counter] = elements;
    state.counters[bytes_counter] = bytes;
    state.counters[operations_counter] = operations;
}

/// The cell shows nanoseconds per element; one iteration handles `elements` and moves `bytes`, read and
/// written, of arrays, 0 if that does not matter.
inline void count_elements(benchmark::State& state, std::size_t elements, double bytes = 0,
                           double operations = 0) {
    count(state, unit::nanoseconds_per_element, static_cast<double>(elements), bytes, operations);
}

/// The cell shows 10^9 operations a second; one iteration does `operations` on arrays of `bytes` in all.
inline void count_operations(benchmark::State& state, double operations, double bytes = 0) {
    count(state, unit::gigaflops, 0, bytes, operations);
}

/// The cell shows 10^9 bytes a second, read and written.
inline void count_bytes(benchmark::State& state, double bytes) {
    count(state, unit::gigabytes, 0, bytes, 0);
}

}  // namespace bench
