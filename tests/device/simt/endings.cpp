// SPDX-License-Identifier: MIT
// What must have ended before a thread or a block leaves the kernel, and before memory is used again: each
// mistake is planted, and its correction is quiet.
#include "device/simt/body.hpp"

#include <mp/device/simt/tensor_map.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace {

using mp::kernel_violation;
using mp::simt::memory_barrier;
using mp::simt::shared_pointer;
using mp::simt::tensor_map;

constexpr shared_pointer<memory_barrier> full{0};
constexpr shared_pointer<memory_barrier> other_is_done{8};
constexpr shared_pointer<std::uint16_t> stage{1024};

template <int Threads, int ClusterBlocks = 1, class Function>
std::optional<mp::kernel_error> error_of(const Function& function, std::uint64_t seed = 1,
                                         mp::simt::memory_checker* checker = nullptr) {
    try {
        launch("planted", mp::simulated_gpu<mp::arch::sm_90>{.seed = seed, .checker = checker},
               mp::simt::launch_size{.blocks = ClusterBlocks, .shared_bytes = 16384},
               simt_test::body<Threads, Function, ClusterBlocks>{function});
    } catch (const mp::kernel_error& error) {
        return error;
    }
    return std::nullopt;
}

bool contains(const mp::kernel_error& error, const std::string& text) {
    return std::string(error.what()).find(text) != std::string::npos;
}

/// 16 rows of 32 numbers, in tiles of 8 rows.
struct matrix {
    alignas(128) std::uint16_t values[16 * 32] = {};

    [[nodiscard]] tensor_map map() {
        return mp::simt::make_tensor_map(mp::simulated_gpu<mp::arch::sm_90>{},
                                         {values, 2, 32, 16, 64, 32, 8, 64});
    }
};

TEST_CASE("a block stays until the others of its cluster have arrived at its barriers") {
    const auto kernel = [](bool stays) {
        return [stays](auto thread) {
            if (thread.index() == 0) {
                thread.init_barrier(other_is_done, 1);
                thread.fence_barrier_init();
            }
            thread.sync_cluster();
            // Block 1 arrives at a barrier of block 0, where nobody waits.
            if (thread.block_in_cluster() == 1 && thread.index() == 5) thread.arrive_remote(other_is_done, 0);
            if (stays) thread.sync_cluster();
        };
    };
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        CHECK_FALSE(error_of<32, 2>(kernel(true), seed));
        const auto error = error_of<32, 2>(kernel(false), seed);
        REQUIRE(error);
        CHECK(error->violation() == kernel_violation::early_exit);
        // The one or the other, as the schedule has it.
        CHECK((contains(*error,
                        "mp::simulated_gpu: planted: block 0: the block has ended, and nothing made it stay "
                        "until block 1, thread 5 (warp 0, lane 5) had reached into its shared memory "
                        "(endings.cpp:") ||
               contains(*error, "block 1, thread 5 (warp 0, lane 5), endings.cpp:")));
    }
}

TEST_CASE("a block stays until the copies into its memory have arrived") {
    matrix source;
    const tensor_map map = source.map();
    const auto kernel = [map](bool waits) {
        return [map, waits](auto thread) {
            if (thread.index() == 0) {
                thread.init_barrier(full, 1);
                thread.fence_barrier_init();
            }
            thread.sync_cluster();
            if (thread.index() == 0) {
                thread.arrive_expect(full, 512);
                if (thread.block_in_cluster() == 0) {
                    thread.copy_tile_multicast(stage, map, 0, 0, full, std::uint16_t{3});
                }
            }
            // Block 1 does not look at what it gets.
            if (waits || thread.block_in_cluster() == 0) thread.wait_barrier(full, false);
        };
    };
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        CHECK_FALSE(error_of<32, 2>(kernel(true), seed));
        const auto error = error_of<32, 2>(kernel(false), seed);
        REQUIRE(error);
        CHECK((error->violation() == kernel_violation::unfinished_copy ||
               error->violation() == kernel_violation::early_exit));
        CHECK(contains(*error, "endings.cpp:"));
    }
}

/// What a kernel may forget about the store of a tile.
enum class store_mistake { none, no_commit, no_wait, writes_again, reads_again, reads_early };

auto stores_tile(const tensor_map& map, const std::uint16_t* target, store_mistake what) {
    return [=](auto thread) {
        for (int l = 0; l < 8; ++l) {
            thread.store(stage + (l * 32 + thread.lane()), static_cast<std::uint16_t>(l));
        }
        thread.fence_asynchronous();
        thread.sync_block();
        if (thread.index() == 0) {
            thread.store_tile(map, 0, 0, stage);
            if (what == store_mistake::no_commit) return;
            thread.commit_stores();
            if (what == store_mistake::no_wait) return;
            if (what == store_mistake::writes_again) thread.store(stage, std::uint16_t{7});
            thread.template wait_stores_read<0>();
            if (what != store_mistake::writes_again) thread.store(stage, std::uint16_t{7});
            // Shared memory may be written now, but global memory need not have been.
            if (what == store_mistake::reads_early) static_cast<void>(thread.load(target + 3));
            thread.template wait_stores<0>();
            static_cast<void>(thread.load(target + 3));
        }
    };
}

TEST_CASE("stores of tiles are waited for before their memory is used, and before the thread leaves") {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        const auto error = [seed](store_mistake what) {
            matrix target;
            mp::simt::memory_checker checker;
            checker.add_unwritten(std::span(target.values), "target");
            const auto found = error_of<32>(stores_tile(target.map(), target.values, what), seed, &checker);
            if (!found) CHECK(target.values[7 * 32 + 3] == 7);
            return found;
        };
        CHECK_FALSE(error(store_mistake::none));
        const auto no_commit = error(store_mistake::no_commit);
        REQUIRE(no_commit);
        CHECK(no_commit->thread() == 0);
        CHECK(contains(*no_commit, "endings.cpp:"));
        CHECK(contains(*no_commit, "begins to store a tile, and leaves the kernel without commit_stores()"));
        const auto no_wait = error(store_mistake::no_wait);
        REQUIRE(no_wait);
        CHECK(contains(*no_wait, "leaves the kernel without waiting until shared memory has been read"));
        CHECK(error(store_mistake::writes_again)->violation() == kernel_violation::unfinished_copy);
        const auto early = error(store_mistake::reads_early);
        REQUIRE(early);
        CHECK(early->violation() == kernel_violation::unfinished_copy);
        CHECK(contains(*early,
                       "reads 2 bytes of global memory, at byte 6 of \"target\" (1024 bytes), which a store "
                       "of a tile is still to write: it has not been waited for"));
    }
    // Without a checker, too, global memory is written late.
    matrix target;
    target.values[3] = 99;
    const std::uint16_t* const at = target.values + 3;
    std::uint16_t seen = 0;
    std::uint16_t* const got = &seen;
    const tensor_map map = target.map();
    CHECK_FALSE(error_of<32>([=](auto thread) {
        for (int l = 0; l < 8; ++l) thread.store(stage + (l * 32 + thread.lane()), std::uint16_t{1});
        thread.fence_asynchronous();
        thread.sync_block();
        if (thread.index() != 0) return;
        thread.store_tile(map, 0, 0, stage);
        thread.commit_stores();
        thread.template wait_stores_read<0>();
        *got = thread.load(at);
    }));
    CHECK(seen == 99);
    CHECK(target.values[3] == 1);
}

TEST_CASE("a tile that comes from memory which the same kernel wrote wants a fence, and order") {
    matrix source;
    mp::simt::memory_checker checker;
    const tensor_map map = source.map();
    std::uint16_t* const values = source.values;
    const auto kernel = [map, values](bool writes_before, bool writes_after, bool waits) {
        return [=](auto thread) {
            if (thread.index() == 0) {
                thread.init_barrier(full, 1);
                thread.fence_barrier_init();
                if (writes_before) thread.store(values + 40, std::uint16_t{3});
                thread.arrive_expect(full, 512);
                thread.copy_tile(stage, map, 0, 0, full);
            }
            thread.sync_block();
            if (waits) thread.wait_barrier(full, false);
            if (writes_after && thread.index() == 9) thread.store(values + 40, std::uint16_t{3});
            if (!waits) thread.wait_barrier(full, false);
        };
    };
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
        CHECK_FALSE(error_of<32>(kernel(false, true, true), seed, &checker));
        CHECK(error_of<32>(kernel(true, false, true), seed, &checker)->violation() ==
              kernel_violation::missing_fence);
        const auto error = error_of<32>(kernel(false, true, false), seed, &checker);
        REQUIRE(error);
        CHECK((error->violation() == kernel_violation::race ||
               error->violation() == kernel_violation::missing_fence));
    }
}

}  // namespace
