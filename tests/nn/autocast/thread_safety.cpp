// SPDX-License-Identifier: MIT
// Regions, tokens, the cache and the ledger with many threads; compiled a second time with ThreadSanitizer.
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/nn/ops/linear.hpp>

#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

namespace {

using mp::autocast_region;
using mp::bfloat16;
using mp::half;
using mp::precision;
namespace ac = mp::autocast;

constexpr int threads = 4;

/// Runs the function on several threads at once and waits for them.
void on_threads(auto function) {
    std::vector<std::thread> workers;
    for (int i = 0; i < threads; ++i) workers.emplace_back([&function, i] { function(i); });
    for (std::thread& worker : workers) worker.join();
}

/// y = x w with w = 0.1 I, under whatever region the thread is in.
float first_output(const std::vector<float>& weights, const ac::buffer_version& version) {
    constexpr std::ptrdiff_t n = 8;
    const std::vector<float> x(n, 1.0F);
    std::vector<float> y(n);
    mp::ops::linear(mp::cpu{}, mp::row_major(x.data(), 1, n),
                    ac::cached(mp::row_major(weights.data(), n, n), version), mp::ops::absent,
                    mp::row_major(y.data(), 1, n));
    return y[0];
}

std::vector<float> diagonal(float value) {
    std::vector<float> weights(64);
    for (std::size_t i = 0; i < 8; ++i) weights[9 * i] = value;
    return weights;
}

TEST_CASE("every thread has a region of its own") {
    const std::vector<float> weights = diagonal(0.1F);
    const ac::buffer_version version;
    std::atomic<int> wrong = 0;
    on_threads([&](int thread) {
        for (int round = 0; round < 50; ++round) {
            if (mp::autocast_active()) ++wrong;
            const auto value = (thread + round) % 2 == 0 ? precision::fp16 : precision::bf16;
            const autocast_region region(value);
            const mp::autocast_layer layer("layer" + std::to_string(thread));
            const float expected = value == precision::fp16 ? static_cast<float>(half(0.1F))
                                                            : static_cast<float>(bfloat16(0.1F));
            if (first_output(weights, version) != expected) ++wrong;
            const autocast_region off(precision::off);
            if (first_output(weights, version) != 0.1F) ++wrong;
            if (mp::autocast_layer_path() != "layer" + std::to_string(thread)) ++wrong;
        }
    });
    CHECK(wrong == 0);
}

TEST_CASE("threads with a token share its cache and ledger") {
    std::vector<float> weights;
    const ac::buffer_version version;
    ac::buffer_version writer = version;  // a copy counts for both
    ac::cast_ledger ledger;
    const autocast_region region({.cpu = precision::fp16, .ledger = &ledger});
    const auto token = mp::capture_autocast();
    std::atomic<int> wrong = 0;
    constexpr int steps = 4;
    constexpr int rounds = 25;
    for (int step = 0; step < steps; ++step) {
        const auto value = static_cast<float>(step) + 0.5F;
        weights = diagonal(value);
        writer.changed();
        on_threads([&](int thread) {
            for (int round = 0; round < rounds; ++round) {
                const autocast_region mine(token);
                if (first_output(weights, version) != value) ++wrong;
                if (thread == 0) {  // looking while others work
                    (void)ledger.casts();
                    (void)mp::autocast_cache()->contents();
                    (void)mp::autocast_cache()->statistics();
                }
            }
        });
    }
    CHECK(wrong == 0);
    const auto ops = ledger.ops();
    REQUIRE(ops.size() == 1);
    CHECK(ops[0].calls == steps * rounds * threads);
    const auto statistics = mp::autocast_cache()->statistics();
    CHECK(statistics.hits + statistics.misses == ops[0].calls);
    CHECK(statistics.misses >= steps);
    CHECK_FALSE(ledger.first_non_finite().has_value());
}

TEST_CASE("a token may outlive its region while threads use it") {
    const std::vector<float> weights = diagonal(0.1F);
    const ac::buffer_version version;
    mp::autocast_token token;
    {
        const autocast_region region(
            {.cpu = precision::bf16, .rules = {{"linear", mp::op_category::full_precision}}});
        token = mp::capture_autocast();
    }
    std::atomic<int> wrong = 0;
    on_threads([&](int) {
        for (int round = 0; round < 50; ++round) {
            const autocast_region mine(token);
            const autocast_region inner({.rules = {{"matmul", mp::op_category::pass_through}}});
            if (first_output(weights, version) != 0.1F) ++wrong;
        }
    });
    CHECK(wrong == 0);
}

TEST_CASE("a cast is written over only when no thread reads it") {
    constexpr std::ptrdiff_t n = 8;
    std::vector<float> weights(n * n, 0.0F);
    for (std::ptrdiff_t i = 0; i < n; ++i) weights[static_cast<std::size_t>(i * (n + 1))] = 0.1F;
    const float expected = static_cast<float>(static_cast<half>(0.1F));
    ac::buffer_version version;
    const autocast_region region(precision::fp16);
    const auto token = mp::capture_autocast();
    std::atomic<int> wrong{0};
    on_threads([&](int i) {
        const autocast_region same(token);
        for (int round = 0; round < 200; ++round) {
            if (i == 0) version.changed();
            if (first_output(weights, version) < expected || first_output(weights, version) > expected)
                ++wrong;
        }
    });
    CHECK(wrong == 0);
    CHECK(mp::autocast_cache()->statistics().invalidations > 0);
}

}  // namespace
