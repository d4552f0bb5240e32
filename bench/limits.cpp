// SPDX-License-Identifier: MIT
// The limits of the machine: multiply-adds from registers alone, and moves of memory by size and way.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <string>
#include <thread>

#include "cells.hpp"
#include "limits/limits.hpp"
#include "shared_memory.hpp"

namespace {

using bench::role;

/// As many threads as the machine has processors, if that is more than one.
int all_threads() {
    return static_cast<int>(std::thread::hardware_concurrency());
}

void register_peaks() {
    const std::string table = "multiply-adds from registers";
    for (const bench::limits::peak& it : bench::limits::peaks()) {
        const auto add = [&](const std::string& contender, int threads) {
            auto* const cell = bench::add(
                table, std::string(it.name), contender,
                [&it, threads](benchmark::State& state) {
                    // Long enough to start threads for.
                    const double enough = it.operations * (threads == 1 ? 1e4 : 1e5);
                    double done = 0;
                    for (auto _ : state) done = bench::limits::run(it, enough, threads);
                    bench::count_operations(state, done);
                },
                role::limit);
            if (threads > 1) cell->UseRealTime();
        };
        add("one thread", 1);
        if (all_threads() > 1) add("all " + std::to_string(all_threads()) + " processors", all_threads());
    }
}

void register_moves() {
    struct size {
        const char* name;
        std::size_t bytes;
    };
    const std::string table = "moves of memory on one thread, read and written";
    for (const size& it : {size{"L1, 16 KiB", 16 << 10}, size{"L2, 512 KiB", 512 << 10},
                           size{"L3, 16 MiB", 16 << 20}, size{"memory, 512 MiB", std::size_t{512} << 20}}) {
        const std::size_t half = it.bytes / 2;
        for (const bench::limits::move& copy : bench::limits::copies()) {
            bench::add(
                table, it.name, std::string(copy.name),
                [=, &copy](benchmark::State& state) {
                    const char* const from = bench::shared_memory<char, 0>(half);
                    char* const to = bench::shared_memory<char, 1>(half);
                    for (auto _ : state) {
                        copy(to, from, half, half);
                        benchmark::ClobberMemory();
                    }
                    bench::count_bytes(state, static_cast<double>(it.bytes));
                },
                role::limit);
        }
        bench::add(
            table, it.name, "reading alone",
            [=](benchmark::State& state) {
                const char* const from = bench::shared_memory<char, 2>(it.bytes);
                for (auto _ : state) bench::limits::read(from, it.bytes);
                bench::count_bytes(state, static_cast<double>(it.bytes));
            },
            role::limit);
    }
}

}  // namespace

void bench::register_benchmarks() {
    register_peaks();
    register_moves();
}
