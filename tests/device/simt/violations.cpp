// SPDX-License-Identifier: MIT
#include "device/simt/body.hpp"

#include <mp/error.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using mp::kernel_violation;
using mp::simt::shared_pointer;
using simt_test::error_of;
using simt_test::run;

bool contains(const mp::kernel_error& error, const std::string& text) {
    return std::string(error.what()).find(text) != std::string::npos;
}

TEST_CASE("a read of shared memory that nobody wrote names block, thread, lane, line and address") {
    const auto error = error_of<64>([](auto thread) {
        if (thread.index() == 37) static_cast<void>(thread.load(shared_pointer<float>{} + 25));
    });
    CHECK(error.violation() == kernel_violation::uninitialised_read);
    CHECK(error.block() == 0);
    CHECK(error.thread() == 37);
    CHECK(error.address() == 100);
    CHECK(contains(error, "mp::simulated_gpu: test: block 0, thread 37 (warp 1, lane 5), violations.cpp:"));
    CHECK(contains(error, ": reads 4 bytes at shared address 100, which nobody has written"));
}

/// The first block writes what the second one reads.
struct write_once {
    static constexpr int threads = 32;

    template <class Thread>
    void operator()(Thread thread) const {
        const shared_pointer<int> all{};
        if (thread.block() == 0) thread.store(all + thread.lane(), 1);
        if (thread.block() == 1) static_cast<void>(thread.load(all + thread.lane()));
    }
};

TEST_CASE("shared memory is poisoned again for every block") {
    CHECK_THROWS_AS(launch("test", mp::simulated_gpu<mp::arch::sm_80>{},
                           mp::simt::launch_size{.blocks = 2, .shared_bytes = 128}, write_once{}),
                    mp::kernel_error);
}

TEST_CASE("accesses beyond shared memory and misaligned ones are refused") {
    CHECK(error_of<32>([](auto thread) { thread.store(shared_pointer<float>{} + 1024, 1.0F); }).violation() ==
          kernel_violation::bounds);
    CHECK(error_of<32>([](auto thread) { thread.store(shared_pointer<float>{} + -1, 1.0F); }).violation() ==
          kernel_violation::bounds);
    CHECK(error_of<32>([](auto thread) { thread.store(shared_pointer<float>{2}, 1.0F); }).violation() ==
          kernel_violation::alignment);
    alignas(16) static const unsigned char bytes[32] = {};
    CHECK(error_of<32>([](auto thread) {
              static_cast<void>(thread.load(reinterpret_cast<const double*>(bytes + 4)));
          }).violation() == kernel_violation::alignment);
}

/// Thread 0 writes, thread `reader` reads, and `between` is what all threads do in between.
template <class Between>
void hand_over(int reader, std::uint64_t seed, Between between) {
    run<128>(
        [reader, between](auto thread) {
            const shared_pointer<int> place{};
            if (thread.index() == 0) thread.store(place, 7);
            between(thread);
            if (thread.index() == reader) {
                const int value = thread.load(place);  // not in CHECK, which would keep the exception
                CHECK(value == 7);
            }
        },
        seed);
}

TEST_CASE("a race is found in every schedule, also where the order happened to be right") {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        const auto nothing = [](auto) {};
        CHECK_THROWS_AS(hand_over(1, seed, nothing), mp::kernel_error);
        CHECK_THROWS_AS(hand_over(100, seed, nothing), mp::kernel_error);
        // The order of a warp's threads is enough for its own lanes, and not for another warp.
        const auto warp = [](auto thread) { thread.sync_warp(); };
        CHECK_NOTHROW(hand_over(1, seed, warp));
        CHECK_THROWS_AS(hand_over(100, seed, warp), mp::kernel_error);
        const auto block = [](auto thread) { thread.sync_block(); };
        CHECK_NOTHROW(hand_over(1, seed, block));
        CHECK_NOTHROW(hand_over(100, seed, block));
        // Votes and shuffles say nothing of memory.
        const auto vote = [](auto thread) { static_cast<void>(thread.any(true)); };
        CHECK_THROWS_AS(hand_over(1, seed, vote), mp::kernel_error);
    }
}

TEST_CASE("a write that overtakes a read is a race, too, and so is a second write") {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const auto overtaken = error_of<64>(
            [](auto thread) {
                const shared_pointer<int> place{};
                if (thread.index() == 0) thread.store(place, 1);
                thread.sync_block();
                static_cast<void>(thread.load(place));
                if (thread.index() == 40) thread.store(place, 2);
            },
            seed);
        CHECK(overtaken.violation() == kernel_violation::race);
        CHECK(contains(overtaken, "(the other is block 0, thread "));
        CHECK(error_of<64>(
                  [](auto thread) {
                      if (thread.lane() == 0) thread.store(shared_pointer<int>{}, thread.warp());
                  },
                  seed)
                  .violation() == kernel_violation::race);
    }
}

TEST_CASE("atomic operations on one place are no race with each other, but with plain accesses") {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
        CHECK_NOTHROW(run<64>(
            [](auto thread) {
                const shared_pointer<int> sum{};
                if (thread.index() == 0) thread.store(sum, 0);
                thread.sync_block();
                thread.atomic_add(sum, 1);
                thread.sync_block();
                CHECK(thread.load(sum) == 64);
            },
            seed));
        CHECK(error_of<64>(
                  [](auto thread) {
                      const shared_pointer<int> sum{};
                      if (thread.index() == 0) thread.store(sum, 0);
                      thread.sync_block();
                      thread.atomic_add(sum, 1);
                      if (thread.index() == 0) static_cast<void>(thread.load(sum));
                  },
                  seed)
                  .violation() == kernel_violation::race);
    }
}

TEST_CASE("a named barrier orders only the threads that come there") {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
        // Warps 0 and 1 meet; warp 2 does not.
        const auto meet = [](int reader) {
            return [reader](auto thread) {
                const shared_pointer<int> place{};
                if (thread.index() == 0) thread.store(place, 7);
                if (thread.warp() < 2) thread.sync_barrier(3, 64);
                if (thread.index() == reader) static_cast<void>(thread.load(place));
            };
        };
        CHECK_NOTHROW(run<96>(meet(40), seed));
        CHECK(error_of<96>(meet(70), seed).violation() != kernel_violation::deadlock);
        // Who only arrives tells, and is not told.
        CHECK_NOTHROW(run<64>(
            [](auto thread) {
                const shared_pointer<int> place{};
                if (thread.warp() == 0) {
                    if (thread.lane() == 0) thread.store(place, 7);
                    thread.arrive_barrier(1, 64);
                } else {
                    thread.sync_barrier(1, 64);
                    CHECK(thread.load(place) == 7);
                }
            },
            seed));
    }
}

TEST_CASE("divergent operations of a warp are found") {
    const auto two_operations = error_of<32>([](auto thread) {
        if (thread.lane() < 3) {
            static_cast<void>(thread.any(true));
        } else {
            thread.sync_warp();
        }
    });
    CHECK(two_operations.violation() == kernel_violation::divergence);
    CHECK(contains(two_operations, "waits for this thread in any at violations.cpp:"));
    const auto two_barriers = error_of<32>([](auto thread) {
        if (thread.lane() < 3) {
            thread.sync_block();
        } else {
            thread.sync_block();
        }
    });
    CHECK(two_barriers.violation() == kernel_violation::divergence);
    const auto after_exit = error_of<32>([](auto thread) {
        if (thread.lane() == 0) return;
        static_cast<void>(thread.shuffle(1, 0));
    });
    CHECK((after_exit.violation() == kernel_violation::divergence ||
           after_exit.violation() == kernel_violation::deadlock));
}

TEST_CASE("a deadlock says who waits where") {
    const auto error = error_of<64>([](auto thread) {
        if (thread.warp() == 0) {
            thread.sync_barrier(2, 64);
        } else {
            thread.sync_barrier(5, 64);
        }
    });
    CHECK(error.violation() == kernel_violation::deadlock);
    CHECK(error.thread() == -1);
    CHECK(contains(error,
                   "block 0, thread 0 (warp 0, lane 0) and 31 more wait in sync_barrier at violations.cpp:"));
    CHECK(contains(error, "block 0, thread 32 (warp 1, lane 0) and 31 more wait in sync_barrier"));
}

TEST_CASE("threads that have left the kernel are not waited for at the block's barrier") {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
        CHECK_NOTHROW(run<64>(
            [](auto thread) {
                if (thread.warp() == 1) return;
                thread.sync_block();
            },
            seed));
    }
}

TEST_CASE("barriers are checked for what the instruction takes") {
    CHECK(error_of<64>([](auto thread) { thread.sync_barrier(0, 64); }).violation() ==
          kernel_violation::argument);
    CHECK(error_of<64>([](auto thread) { thread.sync_barrier(16, 64); }).violation() ==
          kernel_violation::argument);
    CHECK(error_of<64>([](auto thread) { thread.sync_barrier(1, 40); }).violation() ==
          kernel_violation::argument);
    CHECK(error_of<64>([](auto thread) {
              thread.sync_barrier(1, thread.warp() == 0 ? 32 : 64);
          }).violation() == kernel_violation::deadlock);
}

TEST_CASE("an exception of the kernel comes out of the launch, and the next launch works") {
    struct own_error {};
    int destroyed = 0;
    struct count_destruction {
        int* count;
        ~count_destruction() { ++*count; }
    };
    CHECK_THROWS_AS(run<64>([&destroyed](auto thread) {
                        const count_destruction on_the_stack{&destroyed};
                        if (thread.index() == 33) throw own_error{};
                        thread.sync_block();
                    }),
                    own_error);
    // All stacks that were begun are unwound.
    CHECK(destroyed >= 2);
    CHECK_NOTHROW(run<64>([](auto thread) { thread.sync_block(); }));
}

TEST_CASE("launches that no device can run are refused") {
    auto nothing = [](auto) {};
    using empty = simt_test::body<32, decltype(nothing)>;
    const mp::simulated_gpu<mp::arch::sm_80> gpu{};
    CHECK_THROWS_WITH_AS(
        launch("test", gpu, mp::simt::launch_size{.blocks = 0}, empty{nothing}),
        "test: size.blocks is 0; it must be a positive multiple of the blocks of a cluster, below "
        "2^31",
        mp::argument_error);
    CHECK_THROWS_AS(launch("test", gpu, mp::simt::launch_size{.shared_bytes = 228 << 10}, empty{nothing}),
                    mp::argument_error);
    mp::simt::access_statistics statistics;
    CHECK_THROWS_AS(
        launch("test", mp::simulated_gpu<mp::arch::sm_80>{.threads = 2, .statistics = &statistics},
               mp::simt::launch_size{}, empty{nothing}),
        mp::argument_error);
}

}  // namespace
