// SPDX-License-Identifier: MIT
/// \file
/// What every adapter of threads has to do.
#pragma once

#include <mp/base/parallel.hpp>
#include <mp/executor.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <stdexcept>
#include <vector>

/// Each task once, also from inside a task and for more tasks than threads, and the first exception.
inline void check_executor(mp::thread_executor& pool) {
    CHECK(pool.threads() >= 1);
    const auto count = [](const void* seen, std::size_t task) noexcept {
        ++(*static_cast<std::vector<std::atomic<int>>*>(const_cast<void*>(seen)))[task];
    };
    for (const std::size_t tasks : {0U, 1U, 2U, 3U, 40U}) {
        std::vector<std::atomic<int>> seen(tasks);
        pool.run(tasks, count, &seen);
        for (const auto& it : seen) CHECK(it == 1);
    }
    const mp::cpu exec{.threads = pool.threads(), .pool = &pool};
    std::atomic<std::size_t> covered = 0;
    mp::detail::parallel_for(exec, 8, 1, [&](std::size_t begin, std::size_t end) {
        for (; begin < end; ++begin) {
            mp::detail::parallel_for(exec, 8, 1,
                                     [&](std::size_t first, std::size_t last) { covered += last - first; });
        }
    });
    CHECK(covered == 64);
    CHECK_THROWS_WITH_AS(mp::detail::parallel_for(exec, 8, 1,
                                                  [](std::size_t begin, std::size_t) {
                                                      if (begin == 0) throw std::out_of_range("the first");
                                                  }),
                         "the first", std::out_of_range);
}
