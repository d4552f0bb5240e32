// SPDX-License-Identifier: MIT
// Atomic additions of several threads lose none.
#include <mp/atomic.hpp>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/tfloat32.hpp>

#include <doctest/doctest.h>
#include <atomic>
#include <ostream>
#include <thread>
#include <vector>

TEST_CASE_TEMPLATE("additions of four threads all arrive", Value, mp::half, mp::tfloat32) {
    Value neighbours[3] = {Value(7.0F), Value(0.0F), Value(7.0F)};
    std::atomic<Value> shared{Value(0.0F)};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int n = 0; n < 500; ++n) {
                mp::atomic_fetch_add(neighbours[1], Value(1.0F));
                mp::atomic_fetch_add(shared, Value(1.0F), std::memory_order_relaxed);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(neighbours[1] == 2000);
    CHECK(shared.load() == 2000);
    CHECK(neighbours[0] == 7);
    CHECK(neighbours[2] == 7);
}

TEST_CASE("an atomic addition returns the value before, and rounds") {
    mp::bfloat16 x(256.0F);
    CHECK(mp::atomic_fetch_add(x, mp::bfloat16(1.0F)) == 256);
    CHECK(x == 256);
    CHECK(std::atomic<mp::half>::is_always_lock_free);
}
