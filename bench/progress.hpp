// SPDX-License-Identifier: MIT
/// \file
/// How far a benchmark program is, on the standard error: its cells take turns in random order, so that no
/// result is known before nearly all are.
#pragma once

#include <benchmark/benchmark.h>

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

namespace bench::progress {

/// What is known of one cell.
struct cell {
    benchmark::IterationCount iterations = 0;  ///< of the last run
    int runs = 0;                              ///< with that number of iterations
};

struct state {
    std::string program;
    int repetitions = 1;
    bool all_cells = true;  ///< none is filtered out
    int cells = 0;
    int runs = 0;  ///< that count: not those that find out how many iterations are enough
    int shown = -1;
    std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

inline state& current() {
    static state result;
    return result;
}

inline std::shared_ptr<cell> new_cell() {
    ++current().cells;
    return std::make_shared<cell>();
}

/// To be called after each run of a cell. Google Benchmark tries more and more iterations until they take
/// long enough, and repeats that number.
inline void ran(cell& it, benchmark::IterationCount iterations) {
    state& all = current();
    if (iterations != it.iterations) {
        all.runs -= it.runs;
        it = {iterations, 0};
    }
    ++it.runs;
    ++all.runs;
    const bool terminal = isatty(STDERR_FILENO) != 0;
    const int total = all.cells * all.repetitions;
    const int step = terminal ? 1 : 10;
    const int percent = total == 0 ? 0 : all.runs * 100 / total / step * step;
    if (percent == all.shown || (!terminal && percent < all.shown)) return;
    all.shown = percent;
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - all.start);
    if (all.all_cells) {
        std::fprintf(stderr, "%s%s: %3d %%, %lld s%s", terminal ? "\r" : "", all.program.c_str(), percent,
                     static_cast<long long>(seconds.count()), terminal ? " " : "\n");
    } else {
        std::fprintf(stderr, "%s%s: %d runs, %lld s%s", terminal ? "\r" : "", all.program.c_str(), all.runs,
                     static_cast<long long>(seconds.count()), terminal ? " " : "\n");
    }
    std::fflush(stderr);
}

inline void done() {
    if (isatty(STDERR_FILENO) != 0) std::fputs("\r\033[K", stderr);
}

}  // namespace bench::progress
