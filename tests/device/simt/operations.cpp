// SPDX-License-Identifier: MIT
#include "device/simt/body.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace {

using mp::simt::shared_pointer;
using simt_test::run;

TEST_CASE("shuffles move values of any size between lanes") {
    struct wide {
        double x;
        std::int16_t y;
    };
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        run<64>(
            [](auto thread) {
                const int lane = thread.lane();
                CHECK(thread.shuffle(lane, 5) == 5);
                CHECK(thread.shuffle(lane, lane + 1) == (lane + 1) % 32);
                CHECK(thread.shuffle_xor(lane, 3) == (lane ^ 3));
                CHECK(thread.shuffle_down(lane, 4) == (lane < 28 ? lane + 4 : lane));
                CHECK(thread.shuffle_up(lane, 4) == (lane >= 4 ? lane - 4 : lane));
                CHECK(thread.uniform(lane) == 0);
                const wide got = thread.shuffle_xor(wide{lane + 0.5, static_cast<std::int16_t>(lane)}, 1);
                CHECK(got.x == (lane ^ 1) + 0.5);
                CHECK(got.y == (lane ^ 1));
            },
            seed);
    }
}

TEST_CASE("votes see all lanes of the warp, and none of another") {
    run<64>([](auto thread) {
        CHECK(thread.ballot(thread.index() % 3 == 0) == (thread.warp() == 0 ? 0x49249249U : 0x92492492U));
        CHECK(thread.any(thread.index() == 40) == (thread.warp() == 1));
        CHECK(thread.all(thread.index() < 40) == (thread.warp() == 0));
    });
}

TEST_CASE("a thread knows where it is") {
    std::vector<int> seen(3 * 96);
    int* const all = seen.data();
    const auto note = [all](auto thread) {
        CHECK(thread.threads() == 96);
        CHECK(thread.blocks() == 3);
        CHECK(thread.index() == thread.warp() * 32 + thread.lane());
        thread.atomic_add(all + thread.block() * 96 + thread.index(), 1);
    };
    launch("test", mp::simulated_gpu<mp::arch::sm_90>{.seed = 2}, mp::simt::launch_size{.blocks = 3},
           simt_test::body<96, decltype(note)>{note});
    CHECK(seen == std::vector<int>(3 * 96, 1));
}

TEST_CASE("atomic operations of global memory return what was there before") {
    std::array<unsigned, 4> cells{0, 1000, 0, 0};
    unsigned* const at = cells.data();
    std::array<unsigned, 64> before{};
    unsigned* const old = before.data();
    run<64>(
        [at, old](auto thread) {
            const auto index = static_cast<unsigned>(thread.index());
            old[thread.atomic_add(at, 1U)] += 1;
            thread.atomic_min(at + 1, 500 + index);
            thread.atomic_max(at + 2, index);
            thread.atomic_or(at + 3, 1U << (index % 32));
        },
        5);
    CHECK(cells == std::array<unsigned, 4>{64, 500, 63, 0xFFFF'FFFFU});
    for (const unsigned times : before) CHECK(times == 1);
}

TEST_CASE("schedules of different seeds differ, and one seed gives one schedule") {
    const auto order_of = [](std::uint64_t seed) {
        std::vector<int> order;
        std::vector<int>* const to = &order;
        run<128>(
            [to](auto thread) {
                to->push_back(thread.index());
                thread.sync_block();
                to->push_back(thread.index());
            },
            seed);
        return order;
    };
    const std::vector<int> first = order_of(1);
    CHECK(first.size() == 256);
    CHECK(first == order_of(1));
    CHECK(first != order_of(2));
    const std::vector<int> ordered = order_of(0);
    for (int i = 0; i < 128; ++i) CHECK(ordered[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("bank conflicts and sectors are counted by line") {
    using mp::simt::access_cost;
    const auto cost_of = [](auto function, bool shared) {
        mp::simt::access_statistics statistics;
        run<32>(function, 3, &statistics);
        for (const access_cost& it : statistics.costs()) {
            if (it.shared == shared) return it;
        }
        return access_cost{};
    };
    const auto stores_of_stride = [&](int stride) {
        return cost_of(
            [stride](auto thread) { thread.store(shared_pointer<float>{} + thread.lane() * stride, 1.0F); },
            true);
    };
    CHECK(stores_of_stride(1).transactions == 1);
    CHECK(stores_of_stride(2).transactions == 2);
    CHECK(stores_of_stride(3).transactions == 1);
    CHECK(stores_of_stride(32).transactions == 32);
    CHECK(stores_of_stride(32).ideal == 1);
    CHECK(stores_of_stride(1).instructions == 1);
    // 16 bytes a lane: four passes, or eight where the lanes that are served together meet in banks.
    using four = mp::simt::registers<4>;
    const auto wide_stores = [&](int stride) {
        return cost_of(
            [stride](auto thread) { thread.store(shared_pointer<four>{} + thread.lane() * stride, four{}); },
            true);
    };
    CHECK(wide_stores(1).transactions == 4);
    CHECK(wide_stores(2).transactions == 8);

    alignas(32) float numbers[256] = {};
    float* const from = numbers;
    const auto loads_of_stride = [&](int stride) {
        return cost_of(
            [stride, from](auto thread) { static_cast<void>(thread.load(from + thread.lane() * stride)); },
            false);
    };
    CHECK(loads_of_stride(1).transactions == 4);
    CHECK(loads_of_stride(1).ideal == 4);
    CHECK(loads_of_stride(8).transactions == 32);
}

}  // namespace
