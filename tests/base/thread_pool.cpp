// SPDX-License-Identifier: MIT
// alone: counts all allocations
#include <mp/base/parallel.hpp>
#include <mp/gemm.hpp>
#include <mp/nn/ops/attention.hpp>
#include <mp/optim.hpp>
#include <mp/thread_pool.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "count_allocations.hpp"

namespace {

using namespace std::chrono_literals;

/// How often each task has run.
struct counters {
    std::vector<std::atomic<int>> of_task;

    explicit counters(std::size_t tasks) : of_task(tasks) {}
    static void count(const void* self, std::size_t task) noexcept {
        ++const_cast<counters*>(static_cast<const counters*>(self))->of_task[task];
    }
    [[nodiscard]] bool all(int expected) const {
        for (const std::atomic<int>& it : of_task) {
            if (it != expected) return false;
        }
        return true;
    }
};

/// Runs everything on the calling thread and writes down what it was asked for.
class recorder final : public mp::thread_executor {
public:
    explicit recorder(int threads) : threads_(threads) {}
    [[nodiscard]] int threads() const noexcept override { return threads_; }
    void run(std::size_t tasks, task function, const void* work) override {
        calls.push_back(tasks);
        for (std::size_t i = tasks; i != 0; --i) function(work, i - 1);
    }
    std::vector<std::size_t> calls;

private:
    int threads_;
};

mp::cpu on(mp::thread_executor& pool, int threads) {
    return {.threads = threads, .pool = &pool};
}

std::vector<float> numbers(std::size_t count, unsigned seed) {
    std::vector<float> result(count);
    for (float& x : result) {
        seed = seed * 1664525 + 1013904223;
        x = static_cast<float>(seed >> 8) * 0x1p-23F - 1.0F;
    }
    return result;
}

/// Gemm, attention and two steps of AdamW, one after the other.
std::vector<float> results_on(const mp::cpu& exec) {
    constexpr std::ptrdiff_t size = 160;
    const std::vector<float> a = numbers(size * size, 1);
    const std::vector<float> b = numbers(size * size, 2);
    std::vector<float> c(size * size);
    mp::gemm(exec, 1, mp::row_major(a.data(), size, size), mp::row_major(b.data(), size, size), 0,
             mp::row_major(c.data(), size, size));
    std::vector<float> y(size * size);
    const auto square = [](auto& data) { return mp::row_major(data.data(), size, size); };
    mp::ops::scaled_dot_product_attention(exec, square(a), square(b), square(a), mp::ops::absent, square(y),
                                          {.heads = 1});
    c.insert(c.end(), y.begin(), y.end());
    std::vector<float> weights = numbers(200'000, 3);
    std::vector<float> gradients = numbers(200'000, 4);
    mp::adamw<float> optimizer(exec, {{"w", weights, gradients}});
    optimizer.step();
    optimizer.step();
    c.insert(c.end(), weights.begin(), weights.end());
    return c;
}

}  // namespace

TEST_CASE("a pool runs each task exactly once, awake and asleep, with any number of threads") {
    for (const int threads : {1, 2, 3, 7}) {
        for (const std::chrono::nanoseconds spin : {0ns, 50'000ns}) {
            mp::thread_pool pool(threads, spin);
            CHECK(pool.threads() == threads);
            for (int round = 0; round < 400; ++round) {
                counters seen(static_cast<std::size_t>(round % 23));
                pool.run(seen.of_task.size(), &counters::count, &seen);
                CHECK(seen.all(1));
                if (round % 100 == 99) std::this_thread::sleep_for(1ms);
            }
        }
    }
    for (int round = 0; round < 50; ++round) const mp::thread_pool ends_without_work(3);
    CHECK(mp::thread_pool().threads() >= 1);
    CHECK_THROWS_WITH_AS(mp::thread_pool(-1), "mp::thread_pool: threads is -1; it must not be negative",
                         mp::argument_error);
}

TEST_CASE("other threads take part, awake and asleep") {
    for (const std::chrono::nanoseconds spin : {0ns, 1'000'000ns}) {
        mp::thread_pool pool(2, spin);
        for (int round = 0; round < 3; ++round) {
            std::atomic<int> arrived = 0;
            // Ends only when both tasks run at once.
            mp::detail::parallel_for(on(pool, 2), 2, 1, [&](std::size_t, std::size_t) {
                ++arrived;
                while (arrived < 2) std::this_thread::yield();
            });
            CHECK(arrived == 2);
            std::this_thread::sleep_for(20ms);
        }
    }
}

TEST_CASE("the first exception in the order of the range reaches the caller of a pool") {
    mp::thread_pool pool(4);
    for (int round = 0; round < 50; ++round) {
        std::atomic<int> finished = 0;
        std::string message;
        try {
            mp::detail::parallel_for(on(pool, 4), 4, 1, [&](std::size_t begin, std::size_t) {
                ++finished;
                if (begin != 0) throw std::runtime_error("task at " + std::to_string(begin));
            });
        } catch (const std::runtime_error& failure) {
            message = failure.what();
        }
        CHECK(message == "task at 1");
        CHECK(finished == 4);
    }
}

TEST_CASE("calls from inside a task and from several threads at once end, with each task run once") {
    mp::thread_pool pool(3);
    counters seen(9);
    mp::detail::parallel_for(on(pool, 3), 3, 1, [&](std::size_t outer, std::size_t) {
        mp::detail::parallel_for(on(pool, 3), 3, 1, [&](std::size_t inner, std::size_t) {
            counters::count(&seen, 3 * outer + inner);
        });
    });
    CHECK(seen.all(1));

    std::vector<std::thread> callers;
    std::atomic<int> wrong = 0;
    for (int caller = 0; caller < 3; ++caller) {
        callers.emplace_back([&] {
            for (int round = 0; round < 500; ++round) {
                counters mine(5);
                pool.run(5, &counters::count, &mine);
                if (!mine.all(1)) ++wrong;
            }
        });
    }
    for (std::thread& caller : callers) caller.join();
    CHECK(wrong == 0);
}

TEST_CASE("a call to a pool allocates nothing") {
    mp::thread_pool pool(3);
    std::vector<float> sums(3);
    const long before = allocations;
    for (int round = 0; round < 100; ++round) {
        mp::detail::parallel_for(on(pool, 3), 3, 1,
                                 [&](std::size_t begin, std::size_t) { sums[begin] += 1.0F; });
    }
    const long after = allocations;
    CHECK(after == before);
    CHECK(sums == std::vector<float>(3, 100.0F));
}

TEST_CASE("an executor is asked once a product, for no more tasks than it has threads") {
    recorder three(3);
    const std::vector<float> a = numbers(256 * 256, 1);
    std::vector<float> c(256 * 256);
    const auto square = [](auto* data) { return mp::row_major(data, 256, 256); };
    mp::gemm(on(three, 8), 1, square(a.data()), square(a.data()), 0, square(c.data()));
    CHECK(three.calls.size() == 1);
    CHECK(three.calls.at(0) > 1);
    CHECK(three.calls.at(0) <= 3);
    mp::gemm(on(three, 1), 1, square(a.data()), square(a.data()), 0, square(c.data()));
    CHECK(three.calls.size() == 1);
    // A thread that is there already is worth a fourth of the work.
    mp::detail::parallel_for(on(three, 3), 100, 100, [](std::size_t, std::size_t) {});
    CHECK(three.calls.size() == 2);
    mp::detail::parallel_for(on(three, 3), 49, 100, [](std::size_t, std::size_t) {});
    CHECK(three.calls.size() == 2);
}

TEST_CASE("products, attention and optimizers have the same bits on any threads") {
    const std::vector<float> expected = results_on({});
    mp::thread_pool pool(3);
    recorder inline_executor(2);
    CHECK(results_on({.threads = 3}) == expected);
    CHECK(results_on(on(pool, 3)) == expected);
    CHECK(results_on(on(inline_executor, 2)) == expected);
#if defined(FE_UPWARD)
    // Threads keep the modes in which they were started, and nothing depends on them.
    std::fesetround(FE_UPWARD);
    {
        mp::thread_pool upward(3);
        std::fesetround(FE_TONEAREST);
        CHECK(results_on(on(upward, 3)) == expected);
    }
#endif
}
