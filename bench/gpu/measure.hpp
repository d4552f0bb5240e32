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
    /// Throws std::runtime_error when the file cannot be written.
    measurements(device& on, std::string program, const std::string& path)
        : device_(&on), program_(std::move(program)), file_(std::fopen(path.c_str(), "w")) {
        if (file_ == nullptr) throw std::runtime_error("cannot write " + path);
        put("program,build,table,row,contender,role,unit,elements,bytes,operations,repetitions,seconds_min,"
            "seconds_median,seconds_max\n");
    }

    void add(const row& what, const std::vector<contender>& contenders) {
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
    }

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

/// Runs a benchmark program: its first argument is the file of its results. Calls run(device, measurements, the
/// other arguments). What was measured before a failure stays in the file. Ends with 1 where a contender was wrong.
template <class Run>
int run_program(int argc, char** argv, const char* program, Run run) {
    try {
        if (argc < 2) throw std::runtime_error("say the file that the results go to");
        device on;
        std::printf("%s\n", on.description().c_str());
        std::fflush(stdout);
        measurements to(on, program, argv[1]);
        const std::vector<std::string> others(argv + 2, argv + argc);
        if constexpr (std::is_invocable_v<Run&, device&, measurements&, const std::vector<std::string>&>) {
            run(on, to, others);
        } else {
            if (!others.empty())
                throw std::runtime_error("say the file that the results go to, and nothing else");
            run(on, to);
        }
        if (!to.found_wrong()) return 0;
        throw std::runtime_error("results are WRONG: see above");
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
        return 1;
    }
}

}  // namespace bench::gpu
