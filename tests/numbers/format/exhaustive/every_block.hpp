// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "numbers/format/exhaustive/progress.hpp"
#include "oracle/library.hpp"

namespace exhaustive {

/// What a run over many blocks found.
struct findings {
    long count = 0;
    std::string first;
};

/// Calls work(disagreements, block) for blocks 0, 1, ... count - 1 on all processors and shows how far it is.
template <class Work>
findings every_block(const char* name, std::uint64_t count, Work work) {
    progress bar(count);
    std::atomic<std::uint64_t> next{0};
    std::atomic<std::uint64_t> done{0};
    std::mutex mutex;
    findings result;
    std::vector<std::thread> workers;
    const unsigned threads = std::thread::hardware_concurrency();
    for (unsigned t = 0; t < (threads == 0 ? 1 : threads); ++t) {
        workers.emplace_back([&] {
            for (std::uint64_t block = next++; block < count; block = next++) {
                oracle::disagreements wrong;
                work(wrong, block);
                const std::lock_guard lock(mutex);
                if (result.count == 0) result.first = wrong.first();
                result.count += wrong.count;
                ++done;
            }
        });
    }
    while (done < count) {
        bar.show(done, name);
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    for (std::thread& worker : workers) worker.join();
    bar.show(done, name);
    bar.finish();
    return result;
}

}  // namespace exhaustive
