// SPDX-License-Identifier: MIT
/// \file
/// How the benchmarks of this folder measure: the contenders of a row take turns in random order, and what
/// counts is the median of the turns of each.
#pragma once

#include <mp/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "device.hpp"

namespace bench::gpu {

/// Somebody who does the work of a row.
struct contender {
    std::string name;  ///< "mp", or beginning with "mp " where the library has several ways
    std::function<void()> enqueue;
    /// Or "limit": does the part that the device cannot do any faster; or "wrong", see mark_unless_alike().
    std::string role = "contender";
};

/// A row of a table; no comma in `table` and `unit`.
struct row {
    std::string table;
    std::string name;
    std::string unit;  ///< TFLOP/s, GB/s or us
    double elements = 0;
    double bytes = 0;
    double operations = 0;
};

/// Measures rows and writes them to a file, a line for each contender: the columns that all benchmarks of mp
/// have.
class measurements {
public:
    /// Measures the row with the name `only`, "<table>: <row>", or all rows if it is empty. Throws std::runtime_error when
    /// the file cannot be written.
    measurements(device& on, std::string program, const std::string& path, std::string only = {})
        : device_(&on),
          program_(std::move(program)),
          file_(std::fopen(path.c_str(), "w")),
          only_(std::move(only)) {
        if (file_ == nullptr) throw std::runtime_error("cannot write " + path);
        put("program,build,table,row,contender,role,unit,elements,bytes,operations,repetitions,seconds_min,"
            "seconds_median,seconds_max\n");
    }

    /// Prints the names of rows, a line each, and measures nothing.
    measurements(device& on, std::string program)
        : device_(&on), program_(std::move(program)), only_names_(true) {}

    /// Returns true if the row is measured. Callers that launch kernels before they add a row check this first.
    [[nodiscard]] bool selects(const std::string& table, const std::string& row) {
        const std::string name = table + ": " + row;
        if (only_names_) std::printf("%s\n", name.c_str());
        return !only_names_ && (only_.empty() || name == only_);
    }
    /// Returns false if no row with this text in its name is measured, so that its operands need not be prepared.
    [[nodiscard]] bool may_select(std::string_view text) const {
        return only_.empty() || only_.find(text) != std::string::npos;
    }

    /// Measures a row, if selects() returns true for it. Contenders that are excluded are absent; without any there is no
    /// row.
    void add(const row& what, const std::vector<contender>& contenders) {
        if (contenders.empty() || !selects(what.table, what.name)) return;
        std::fprintf(stderr, "%s: %s, %s\n", program_.c_str(), what.table.c_str(), what.name.c_str());
        struct turn {
            recorded_work work;
            int times;
            std::vector<double> seconds;
        };
        std::vector<turn> turns;
        for (const contender& it : contenders) {
            // Twice before: the first run loads code.
            it.enqueue();
            device_->wait();
            const double once = std::max(device_->seconds(device_->record(it.enqueue, 1)), 1e-7);
            const int times =
                device::is_simulated ? 1 : static_cast<int>(std::clamp(target_seconds / once, 1.0, 500.0));
            turns.push_back({device_->record(it.enqueue, times), times, {}});
        }
        std::vector<std::size_t> order(turns.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        for (int round = 0; round < rounds; ++round) {
            std::shuffle(order.begin(), order.end(), random_);
            for (const std::size_t i : order) {
                turns[i].seconds.push_back(device_->seconds(turns[i].work) / turns[i].times);
            }
        }
        for (std::size_t i = 0; i < turns.size(); ++i) {
            write(what, contenders[i], turns[i].seconds);
            found_wrong_ = found_wrong_ || contenders[i].role == "wrong";
        }
        std::fflush(file_.get());
        ++measured_;
    }

    /// Number of rows that were measured, or if only their names are printed, -1.
    [[nodiscard]] int measured() const { return only_names_ ? -1 : measured_; }
    /// Whether a contender of a row was marked as wrong.
    [[nodiscard]] bool found_wrong() const { return found_wrong_; }

private:
    static constexpr int rounds = device::is_simulated ? 1 : 15;
    /// Of a turn: long against the resolution of the device's events, half a microsecond.
    static constexpr double target_seconds = 4e-3;

    void write(const row& what, const contender& who, std::vector<double> seconds) {
        std::sort(seconds.begin(), seconds.end());
        put(program_ + "," + device::build + "," + quoted(what.table) + "," + quoted(what.name) + "," +
            quoted(who.name) + "," + who.role + "," + what.unit);
        for (const double value : {what.elements, what.bytes, what.operations}) put("," + text(value));
        put("," + std::to_string(seconds.size()));
        for (const double value : {seconds.front(), seconds[seconds.size() / 2], seconds.back()}) {
            put("," + text(value));
        }
        put("\n");
    }
    void put(const std::string& line) {
        if (std::fputs(line.c_str(), file_.get()) < 0) throw std::runtime_error("cannot write results");
    }
    static std::string text(double value) {
        char buffer[40];
        std::snprintf(buffer, sizeof buffer, "%.9g", value);
        return buffer;
    }
    static std::string quoted(const std::string& cell) {
        return cell.find(',') == std::string::npos ? cell : '"' + cell + '"';
    }

    struct close_file {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };

    device* device_;
    std::string program_;
    std::unique_ptr<std::FILE, close_file> file_;
    std::string only_;
    bool only_names_ = false;
    int measured_ = 0;
    std::mt19937 random_{1};
    bool found_wrong_ = false;
};

/// How far two results are from each other: the norm of their difference over that of `expected`.
template <class One, class Other>
double relative_difference(const std::vector<One>& found, const std::vector<Other>& expected) {
    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double x = static_cast<double>(found[i]);
        const double y = static_cast<double>(expected[i]);
        difference += (x - y) * (x - y);
        norm += y * y;
    }
    return std::sqrt(difference / norm);
}

/// Marks a contender whose results are not those expected: its figures count for nothing, but are shown.
inline void mark_unless_alike(contender& it, std::string_view row, double difference, double bound) {
    if (difference <= bound) return;  // false for NaN
    std::printf("%s by %s is WRONG: it differs by %g of its norm\n", std::string(row).c_str(),
                it.name.c_str(), difference);
    it.name += " (WRONG)";
    it.role = "wrong";
}

/// Calls run(part) for each of `parts` whose name is among `chosen`, or for all if nothing is chosen. Throws
/// std::runtime_error for a name that no part has.
template <class Parts, class Run>
void for_chosen(const Parts& parts, const std::vector<std::string>& chosen, Run run) {
    std::string names;
    for (const auto& it : parts) names.append(names.empty() ? "" : ", ").append(it.name);
    for (const std::string& name : chosen) {
        const auto has_name = [&](const auto& it) { return name == it.name; };
        if (std::none_of(std::begin(parts), std::end(parts), has_name)) {
            throw std::runtime_error("'" + name + "' is none of " + names);
        }
    }
    for (const auto& it : parts) {
        if (chosen.empty() || std::find(chosen.begin(), chosen.end(), it.name) != chosen.end()) run(it);
    }
}

/// Runs a benchmark program.
///
///     PROGRAM FILE [ARGUMENT...] [--row ROW]   measures all rows, or one, and writes them to FILE
///     PROGRAM --rows [ARGUMENT...]             prints the names of the rows, a line each
///
/// Calls run(device, measurements, arguments). Rows that were measured before a failure stay in the file. Returns 1 if a
/// contender was wrong, 77 if nothing was measured.
template <class Run>
int run_program(int argc, char** argv, const char* program, Run run) {
    try {
        std::vector<std::string> arguments(argv + 1, argv + argc);
        if (arguments.empty()) {
            throw std::runtime_error("usage: FILE [ARGUMENT...] [--row ROW] | --rows [ARGUMENT...]");
        }
        const std::string path = arguments.front();
        arguments.erase(arguments.begin());
        std::string only;
        if (arguments.size() >= 2 && arguments[arguments.size() - 2] == "--row") {
            only = arguments.back();
            arguments.resize(arguments.size() - 2);
        }
        device on;
        const bool only_names = path == "--rows";
        if (!only_names) std::printf("%s\n", on.description().c_str());
        std::fflush(stdout);
        measurements to = only_names ? measurements(on, program) : measurements(on, program, path, only);
        if constexpr (std::is_invocable_v<Run&, device&, measurements&, const std::vector<std::string>&>) {
            run(on, to, arguments);
        } else {
            if (!arguments.empty()) throw std::runtime_error("'" + arguments.front() + "' is no option");
            run(on, to);
        }
        if (to.measured() == 0) {
            std::printf("nothing to measure\n");
            return 77;
        }
        if (!to.found_wrong()) return 0;
        throw std::runtime_error("results are WRONG: see above");
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
        return 1;
    }
}

}  // namespace bench::gpu
