// SPDX-License-Identifier: MIT
// Pools in the child of a process, which has none of their threads.
#include <mp/base/parallel.hpp>
#include <mp/thread_pool.hpp>

#include <doctest/doctest.h>

#if defined(__unix__) || defined(__APPLE__)

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <memory>
#include <thread>

namespace {

using namespace std::chrono_literals;

/// What a child returns that calls f; -1 where it does not end within ten seconds.
template <class Function>
int result_in_child(Function f) {
    const pid_t child = fork();
    if (child == 0) _exit(f());
    for (const auto begin = std::chrono::steady_clock::now();
         std::chrono::steady_clock::now() - begin < 10s;) {
        int status = 0;
        if (waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
        std::this_thread::sleep_for(1ms);
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    return -1;
}

/// How many of 12 tasks run.
int tasks_run(mp::thread_pool& pool) {
    std::atomic<int> count = 0;
    mp::detail::parallel_for(
        mp::cpu{.threads = 3, .pool = &pool}, 12, 1,
        [&](std::size_t begin, std::size_t end) { count += static_cast<int>(end - begin); });
    return count;
}

}  // namespace

TEST_CASE("a pool that sleeps, or waits for work, ends in a child and works there") {
    for (const std::chrono::nanoseconds spin : {0ns, 2'000'000'000ns}) {
        for (const bool has_run : {false, true}) {
            CAPTURE(has_run);
            auto pool = std::make_unique<mp::thread_pool>(2, spin);
            if (has_run) CHECK(tasks_run(*pool) == 12);
            std::this_thread::sleep_for(20ms);  // until threads are asleep, where they do not spin
            CHECK(result_in_child([&] {
                      pool.reset();
                      return 7;
                  }) == 7);
            CHECK(result_in_child([&] { return tasks_run(*pool); }) == 12);
            CHECK(result_in_child([&] {
                      const int before = tasks_run(*pool);
                      pool.reset();
                      mp::thread_pool own(3);
                      return before + tasks_run(own);
                  }) == 24);
            // The parent's has all of its threads.
            CHECK(tasks_run(*pool) == 12);
        }
    }
}

TEST_CASE("a pool that is at work for another thread ends in a child and works there") {
    mp::thread_pool pool(3);
    std::atomic<bool> stops = false;
    std::thread caller([&] {
        while (!stops) tasks_run(pool);
    });
    int wrong = 0;
    for (int round = 0; round < 20; ++round) {
        wrong += result_in_child([&] {
                     const int count = tasks_run(pool);
                     pool.~thread_pool();
                     return count;
                 }) == 12
                     ? 0
                     : 1;
    }
    stops = true;
    caller.join();
    CHECK(wrong == 0);
}

#endif
