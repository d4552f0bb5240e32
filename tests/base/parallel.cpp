// SPDX-License-Identifier: MIT
#include <mp/base/parallel.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <initializer_list>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using chunks = std::set<std::pair<std::size_t, std::size_t>>;

chunks chunks_of(int threads, std::size_t count, std::size_t grain) {
    chunks result;
    std::mutex guard;
    mp::detail::parallel_for(mp::cpu{threads}, count, grain, [&](std::size_t begin, std::size_t end) {
        const std::lock_guard lock(guard);
        result.emplace(begin, end);
    });
    return result;
}

TEST_CASE(
    "the chunks cover the range once, in the number that threads and grain allow, of nearly equal size") {
    for (const int threads : {1, 2, 3, 8}) {
        for (const std::size_t count : {0U, 1U, 2U, 7U, 64U, 1000U}) {
            for (const std::size_t grain : {0U, 1U, 3U, 100U, 5000U}) {
                const chunks parts = chunks_of(threads, count, grain);
                std::size_t next = 0;
                std::size_t smallest = count;
                std::size_t largest = 0;
                for (const auto& [begin, end] : parts) {
                    CHECK(begin == next);
                    CHECK(begin < end);
                    smallest = std::min(smallest, end - begin);
                    largest = std::max(largest, end - begin);
                    next = end;
                }
                CHECK(next == count);
                CHECK(parts.size() <= static_cast<std::size_t>(threads));
                if (parts.size() > 1) {
                    CHECK(smallest >= grain);
                    CHECK(largest - smallest <= 1);
                }
                if (count >= static_cast<std::size_t>(threads) * std::max<std::size_t>(grain, 1)) {
                    CHECK(parts.size() == static_cast<std::size_t>(threads));
                }
            }
        }
    }
}

TEST_CASE("a single chunk runs on the calling thread, several run on as many threads") {
    std::thread::id seen;
    mp::detail::parallel_for(mp::cpu{}, 100, 1,
                             [&](std::size_t, std::size_t) { seen = std::this_thread::get_id(); });
    CHECK(seen == std::this_thread::get_id());
    mp::detail::parallel_for(mp::cpu{4}, 100, 60,
                             [&](std::size_t, std::size_t) { seen = std::this_thread::get_id(); });
    CHECK(seen == std::this_thread::get_id());

    std::mutex guard;
    std::set<std::thread::id> threads;
    mp::detail::parallel_for(mp::cpu{4}, 4, 1, [&](std::size_t, std::size_t) {
        const std::lock_guard lock(guard);
        threads.insert(std::this_thread::get_id());
    });
    CHECK(threads.size() == 4);
    CHECK(threads.contains(std::this_thread::get_id()));
}

TEST_CASE("the first exception in the order of the range reaches the caller after all chunks are done") {
    for (const int threads : {1, 2, 5}) {
        std::atomic<int> finished = 0;
        std::string message;
        try {
            mp::detail::parallel_for(mp::cpu{threads}, 5, 1, [&](std::size_t begin, std::size_t) {
                ++finished;
                throw std::runtime_error("chunk at " + std::to_string(begin));
            });
        } catch (const std::runtime_error& failure) {
            message = failure.what();
        }
        CHECK(message == "chunk at 0");
        CHECK(finished == threads);
    }
    CHECK_THROWS_WITH_AS(mp::detail::parallel_for(mp::cpu{3}, 3, 1,
                                                  [](std::size_t begin, std::size_t) {
                                                      if (begin == 1)
                                                          throw std::out_of_range("only the middle");
                                                  }),
                         "only the middle", std::out_of_range);
}

TEST_CASE("an executor with fewer than one thread is an error in the name of the function") {
    CHECK_NOTHROW(mp::detail::check_threads("mp::f", mp::cpu{}));
    CHECK_THROWS_WITH_AS(mp::detail::check_threads("mp::f", mp::cpu{0}),
                         "mp::f: exec.threads is 0; it must be at least 1", mp::argument_error);
    CHECK_THROWS_AS(mp::detail::check_threads("mp::f", mp::cpu{-3}), mp::argument_error);
}

}  // namespace
