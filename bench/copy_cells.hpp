// SPDX-License-Identifier: MIT
/// \file
/// Cells that only move memory: what a pass over arrays can be compared with.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "cells.hpp"
#include "limits/limits.hpp"
#include "shared_memory.hpp"

namespace bench {

/// Adds two columns to a row that reads `read` and writes `written` bytes with `elements` elements: memcpy of half of
/// the sum, and the fastest way to read and write as many without calculating, which is the limit of the row.
inline void add_copies(const std::string& table, const std::string& row, std::size_t read,
                       std::size_t written, std::size_t elements) {
    const std::size_t bytes = read + written;
    const std::size_t half = bytes / 2 / 256 * 256;
    const double moved = 2.0 * static_cast<double>(half);
    add(
        table, row, "memcpy",
        [=](benchmark::State& state) {
            const char* const from = shared_memory<char, 0>(half);
            char* const to = shared_memory<char, 1>(half);
            for (auto _ : state) {
                std::memcpy(to, from, half);
                benchmark::ClobberMemory();
            }
            count_elements(state, elements, moved);
        },
        role::reference);
    add(
        table, row, "fastest move",
        [=](benchmark::State& state) {
            const char* const from = shared_memory<char, 0>(std::max(read, half));
            char* const to = shared_memory<char, 1>(std::max(written, half));
            const limits::move& move = limits::fastest_move(to, from, read, written);
            for (auto _ : state) {
                move(to, from, read, written);
                benchmark::ClobberMemory();
            }
            count_elements(state, elements, static_cast<double>(bytes));
        },
        role::limit);
}

}  // namespace bench
