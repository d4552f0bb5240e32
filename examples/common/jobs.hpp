// SPDX-License-Identifier: MIT
/// \file
/// Work that is done on several threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace examples {

/// Calls work(0) to work(count - 1) on `threads` threads. The first exception stops the rest and is thrown.
template <class Work>
void run_jobs(int threads, std::size_t count, Work work) {
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::exception_ptr failure;
    const auto run = [&] {
        for (std::size_t job = next++; job < count; job = next++) {
            try {
                work(job);
            } catch (...) {
                const std::lock_guard lock(mutex);
                if (!failure) failure = std::current_exception();
                next = count;
            }
        }
    };
    std::vector<std::thread> others;
    for (int i = 1; i < threads && static_cast<std::size_t>(i) < count; ++i) others.emplace_back(run);
    run();
    for (std::thread& thread : others) thread.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace examples
