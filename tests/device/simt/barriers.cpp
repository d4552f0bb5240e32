// SPDX-License-Identifier: MIT
#include "device/simt/body.hpp"

#include <mp/device/simt/matrix_descriptor.hpp>
#include <mp/device/simt/tensor_map.hpp>
#include <mp/error.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using mp::kernel_violation;
using mp::simt::memory_barrier;
using mp::simt::shared_pointer;
using mp::simt::tensor_map;
using mp::simt::tensor_tiles;

constexpr mp::simulated_gpu<mp::arch::sm_90> gpu(std::uint64_t seed) {
    return {.seed = seed};
}

template <int Threads, int ClusterBlocks = 1, class Function>
void run(Function function, std::uint64_t seed) {
    launch("test", gpu(seed), mp::simt::launch_size{.blocks = ClusterBlocks, .shared_bytes = 16384},
           simt_test::body<Threads, Function, ClusterBlocks>{function});
}

template <int Threads, int ClusterBlocks = 1, class Function>
mp::kernel_error error_of(const Function& function, std::uint64_t seed = 1) {
    try {
        run<Threads, ClusterBlocks>(function, seed);
    } catch (const mp::kernel_error& error) {
        return error;
    }
    throw std::logic_error("the kernel was expected to fail");
}

/// A matrix of 16-bit numbers on 16 bytes, with padding.
struct numbers {
    static constexpr std::int64_t lines = 50;
    static constexpr std::int64_t length = 70;
    static constexpr std::int64_t stride = 80;
    alignas(128) std::uint16_t values[lines * stride];

    numbers() { std::iota(std::begin(values), std::end(values), std::uint16_t{1}); }
    [[nodiscard]] tensor_tiles tiles(int tile_length, int tile_rows, int swizzle) const {
        return {values, 2, length, lines, stride * 2, tile_length, tile_rows, swizzle};
    }
    /// Zero where there is none.
    [[nodiscard]] std::uint16_t at(std::int64_t line, std::int64_t position) const {
        const bool inside = line >= 0 && line < lines && position >= 0 && position < length;
        return inside ? values[line * stride + position] : std::uint16_t{0};
    }
};

const shared_pointer<memory_barrier> full{0};
const shared_pointer<std::uint16_t> stage{1024};

/// Copies a tile by thread 0, and hands `read` its bytes in every thread after the wait.
template <class Thread>
void copy_and_wait(Thread thread, const tensor_map& map, int bytes, int position, int line) {
    if (thread.index() == 0) {
        thread.init_barrier(full, 1);
        thread.fence_barrier_init();
    }
    thread.sync_block();
    if (thread.index() == 0) {
        thread.arrive_expect(full, bytes);
        thread.copy_tile(stage, map, position, line, full);
    }
    thread.wait_barrier(full, false);
}

TEST_CASE("a tile arrives swizzled, with zeros outside of the matrix, when its barrier says so") {
    const numbers source;
    const numbers* const from = &source;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
        for (const auto& [position, line] :
             {std::pair{0, 0}, std::pair{32, 8}, std::pair{64, 44}, std::pair{-8, -4}}) {
            const tensor_map map = make_tensor_map(gpu(0), source.tiles(64, 16, 128));
            run<64>(
                [=, position = position, line = line](auto thread) {
                    copy_and_wait(thread, map, 64 * 16 * 2, position, line);
                    for (int l = 0; l < 16; ++l) {
                        const auto offset = static_cast<std::uint32_t>(l * 128 + thread.index() * 2);
                        const std::uint16_t got = thread.load(
                            shared_pointer<std::uint16_t>{1024 + mp::simt::swizzled<128>(offset)});
                        CHECK(got == from->at(line + l, position + thread.index()));
                    }
                },
                seed);
        }
    }
}

TEST_CASE("a read before the tile's barrier was waited for is refused in every schedule") {
    const numbers source;
    const tensor_map map = make_tensor_map(gpu(0), source.tiles(32, 8, 64));
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
        const auto error = error_of<64>(
            [map](auto thread) {
                if (thread.index() == 0) {
                    thread.init_barrier(full, 1);
                    thread.fence_barrier_init();
                }
                thread.sync_block();
                if (thread.index() == 0) {
                    thread.arrive_expect(full, 512);
                    thread.copy_tile(stage, map, 0, 0, full);
                }
                thread.sync_block();
                if (thread.index() == 7) static_cast<void>(thread.load(stage + 5));
                thread.wait_barrier(full, false);
            },
            seed);
        // Under way, or landed by chance: nothing orders the two.
        CHECK((error.violation() == kernel_violation::unfinished_copy ||
               error.violation() == kernel_violation::race));
    }
}

TEST_CASE("a stage must not be copied into again while it is read") {
    const numbers source;
    const tensor_map map = make_tensor_map(gpu(0), source.tiles(32, 8, 64));
    const auto kernel = [map](bool waits) {
        return [map, waits](auto thread) {
            const shared_pointer<memory_barrier> empty{8};
            if (thread.index() == 0) {
                thread.init_barrier(full, 1);
                thread.init_barrier(empty, 32);
                thread.fence_barrier_init();
            }
            thread.sync_block();
            for (int step = 0; step < 3; ++step) {
                const bool parity = step % 2 != 0;
                if (thread.warp() == 1) {
                    if (thread.lane() == 0) {
                        if (waits) thread.wait_barrier(empty, !parity);
                        thread.arrive_expect(full, 512);
                        thread.copy_tile(stage, map, 0, step, full);
                    }
                } else {
                    thread.wait_barrier(full, parity);
                    const std::uint16_t got = thread.load(stage + thread.lane());
                    CHECK(got == step * 80 + thread.lane() + 1);
                    thread.arrive(empty);
                }
            }
        };
    };
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
        CHECK_NOTHROW(run<64>(kernel(true), seed));
        CHECK_THROWS_AS(run<64>(kernel(false), seed), mp::kernel_error);
    }
}

TEST_CASE("barrier objects are refused where they were not made, seen or fenced") {
    const numbers source;
    const tensor_map map = make_tensor_map(gpu(0), source.tiles(32, 8, 64));
    CHECK(error_of<32>([](auto thread) { thread.arrive(full); }).violation() ==
          kernel_violation::uninitialised_read);
    CHECK(error_of<64>([](auto thread) {
              if (thread.index() == 0) thread.init_barrier(full, 1);
              if (thread.index() == 40) thread.arrive(full);
          }).violation() != kernel_violation::deadlock);
    CHECK(error_of<32>([map](auto thread) {
              if (thread.index() != 0) return;
              thread.init_barrier(full, 1);
              thread.arrive_expect(full, 512);
              thread.copy_tile(stage, map, 0, 0, full);
          }).violation() == kernel_violation::missing_fence);
    CHECK(error_of<32>([](auto thread) {
              if (thread.index() != 0) return;
              thread.init_barrier(full, 1);
              thread.store(shared_pointer<int>{4}, 1);
          }).violation() == kernel_violation::argument);
    CHECK(error_of<32>([](auto thread) {
              if (thread.index() != 0) return;
              thread.init_barrier(full, 0);
          }).violation() == kernel_violation::argument);
    // Too few bytes announced: the phase never ends.
    CHECK(error_of<32>([map](auto thread) {
              if (thread.index() != 0) return;
              thread.init_barrier(full, 1);
              thread.fence_barrier_init();
              thread.arrive_expect(full, 500);
              thread.copy_tile(stage, map, 0, 0, full);
              thread.wait_barrier(full, false);
          }).violation() == kernel_violation::deadlock);
    // The block must not end before its copies.
    CHECK(error_of<32>(
              [map](auto thread) {
                  if (thread.index() != 0) return;
                  thread.init_barrier(full, 1);
                  thread.fence_barrier_init();
                  thread.arrive_expect(full, 512);
                  thread.copy_tile(stage, map, 0, 0, full);
              },
              0)
              .violation() == kernel_violation::unfinished_copy);
}

TEST_CASE("a tile that is stored has to be waited for") {
    const tensor_map map = [] {
        static numbers target;
        return make_tensor_map(gpu(0), target.tiles(32, 8, 64));
    }();
    const auto kernel = [map](int commits, bool waits) {
        return [=](auto thread) {
            for (int l = 0; l < 8; ++l) thread.store(stage + (l * 32 + thread.lane()), std::uint16_t{7});
            thread.fence_asynchronous();
            thread.sync_block();
            if (thread.index() != 0) return;
            thread.store_tile(map, 0, 0, stage);
            if (commits > 0) thread.commit_stores();
            if (commits > 1) thread.commit_stores();
            if (waits) thread.template wait_stores<1>();
        };
    };
    CHECK(error_of<32>(kernel(0, true)).violation() == kernel_violation::unfinished_copy);
    CHECK(error_of<32>(kernel(1, false)).violation() == kernel_violation::unfinished_copy);
    CHECK(error_of<32>(kernel(1, true)).violation() == kernel_violation::unfinished_copy);
}

TEST_CASE("a tile is stored into one of several matrices") {
    numbers target;
    const numbers before;
    tensor_tiles tiles = target.tiles(32, 8, 64);
    tiles.rows = 10;
    tiles.matrices = 5;
    tiles.matrix_bytes = 10 * tiles.row_bytes;
    const tensor_map map = make_tensor_map(gpu(0), tiles);
    run<32>(
        [map](auto thread) {
            for (int l = 0; l < 8; ++l) thread.store(stage + (l * 32 + thread.lane()), std::uint16_t{7});
            thread.fence_asynchronous();
            thread.sync_block();
            if (thread.index() != 0) return;
            thread.prefetch_map(map);
            for (const int matrix : {-1, 3, 5}) thread.store_tile(map, 0, 4, matrix, stage);
            thread.commit_stores();
            thread.template wait_stores<0>();
        },
        1);
    for (std::int64_t line = 0; line < numbers::lines; ++line) {
        for (std::int64_t position = 0; position < numbers::stride; ++position) {
            const bool stored = line >= 34 && line < 40 && position < 32;
            CHECK(target.values[line * numbers::stride + position] ==
                  (stored ? 7 : before.values[line * numbers::stride + position]));
        }
    }
}

TEST_CASE("a relaxed barrier of the cluster tells of barrier objects that were fenced, and of nothing else") {
    const auto kernel = [](bool fences, bool reads) {
        return [=](auto thread) {
            if (thread.index() == 0) {
                thread.init_barrier(full, 2);
                if (fences) thread.fence_barrier_init();
                thread.store(stage, std::uint16_t{1});
            }
            thread.sync_cluster_relaxed();
            if (thread.index() == 1) thread.arrive_remote(full, 0);
            if (thread.index() == 1 && thread.block_in_cluster() == 0) thread.wait_barrier(full, false);
            if (reads) static_cast<void>(thread.load(stage));
            thread.sync_cluster_relaxed();
        };
    };
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        run<32, 2>(kernel(true, false), seed);
        CHECK(error_of<32, 2>(kernel(false, false), seed).violation() == kernel_violation::race);
        CHECK(error_of<32, 2>(kernel(true, true), seed).violation() == kernel_violation::race);
    }
}

TEST_CASE("a tile is stored without what lies outside of the matrix, behind a fence") {
    const auto kernel = [](const tensor_map& map, bool fences) {
        return [map, fences](auto thread) {
            for (int l = 0; l < 8; ++l) {
                const auto offset = static_cast<std::uint32_t>(l * 64 + thread.lane() * 2);
                thread.store(shared_pointer<std::uint16_t>{1024 + mp::simt::swizzled<64>(offset)},
                             static_cast<std::uint16_t>(1000 * l + thread.lane()));
            }
            if (fences) thread.fence_asynchronous();
            thread.sync_block();
            if (thread.index() == 0) {
                thread.store_tile(map, 48, 46, stage);
                thread.commit_stores();
                thread.template wait_stores<0>();
            }
        };
    };
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        numbers target;
        const numbers before;
        const tensor_map map = make_tensor_map(gpu(0), target.tiles(32, 8, 64));
        CHECK(error_of<32>(kernel(map, false), seed).violation() == kernel_violation::missing_fence);
        run<32>(kernel(map, true), seed);
        for (std::int64_t line = 0; line < numbers::lines; ++line) {
            for (std::int64_t position = 0; position < numbers::stride; ++position) {
                const bool stored = line >= 46 && position >= 48 && position < numbers::length;
                CHECK(target.values[line * numbers::stride + position] ==
                      (stored ? 1000 * (line - 46) + position - 48
                              : before.values[line * numbers::stride + position]));
            }
        }
    }
}

TEST_CASE("a tile for two blocks arrives in both, and blocks arrive at each other's barriers") {
    const numbers source;
    const numbers* const from = &source;
    const tensor_map map = make_tensor_map(gpu(0), source.tiles(32, 8, 64));
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
        run<32, 2>(
            [map, from](auto thread) {
                const shared_pointer<memory_barrier> other_is_done{8};
                if (thread.index() == 0) {
                    thread.init_barrier(full, 1);
                    thread.init_barrier(other_is_done, 1);
                    thread.fence_barrier_init();
                }
                thread.sync_cluster();
                if (thread.index() == 0) {
                    thread.arrive_expect(full, 512);
                    if (thread.block_in_cluster() == 0) {
                        thread.copy_tile_multicast(stage, map, 0, 3, full, std::uint16_t{3});
                    }
                }
                thread.wait_barrier(full, false);
                const std::uint16_t got = thread.load(stage + thread.lane());
                CHECK(got == from->at(3, thread.lane()));
                thread.sync_warp();
                if (thread.index() == 0) thread.arrive_remote(other_is_done, 1 - thread.block_in_cluster());
                thread.wait_barrier(other_is_done, false);
            },
            seed);
    }
}

TEST_CASE(
    "arriving at another block's barrier does not order what ordinary instructions did, unless it is to") {
    const numbers source;
    const tensor_map map = make_tensor_map(gpu(0), source.tiles(32, 8, 64));
    enum class order { none, cluster, arrival };
    const auto kernel = [map](order by) {
        return [=](auto thread) {
            const shared_pointer<memory_barrier> may_copy{8};
            const bool first = thread.block_in_cluster() == 0;
            if (thread.index() == 0) {
                thread.init_barrier(full, 1);
                thread.init_barrier(may_copy, 1);
                thread.fence_barrier_init();
            }
            thread.sync_cluster();
            if (thread.index() == 0) {
                thread.store(stage, 1);
                thread.fence_asynchronous();
                thread.arrive_expect(full, 512);
            }
            if (by == order::cluster) thread.sync_cluster();
            if (thread.index() == 0 && !first) {
                if (by == order::arrival) {
                    thread.arrive_remote_ordinary(may_copy, 0);
                } else {
                    thread.arrive_remote(may_copy, 0);
                }
            }
            if (thread.index() == 0 && first) {
                thread.wait_barrier(may_copy, false);
                thread.copy_tile_multicast(stage, map, 0, 3, full, std::uint16_t{3});
            }
            thread.wait_barrier(full, false);
            thread.sync_cluster();
        };
    };
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        CHECK(error_of<32, 2>(kernel(order::none), seed).violation() == kernel_violation::race);
        run<32, 2>(kernel(order::cluster), seed);
        run<32, 2>(kernel(order::arrival), seed);
    }
}

TEST_CASE("a tile of one of several matrices arrives, with zeros where there is no such matrix") {
    const numbers source;
    const numbers* const from = &source;
    for (const int matrix : {0, 1, 4, 5, -1}) {
        // Five matrices of 10 lines.
        tensor_tiles tiles = source.tiles(64, 16, 128);
        tiles.rows = 10;
        tiles.matrices = 5;
        tiles.matrix_bytes = 10 * tiles.row_bytes;
        const tensor_map map = make_tensor_map(gpu(0), tiles);
        run<64>(
            [=](auto thread) {
                if (thread.index() == 0) {
                    thread.init_barrier(full, 1);
                    thread.fence_barrier_init();
                }
                thread.sync_block();
                if (thread.index() == 0) {
                    thread.arrive_expect(full, 64 * 16 * 2);
                    thread.copy_tile(stage, map, 0, 2, matrix, full);
                }
                thread.wait_barrier(full, false);
                for (int l = 0; l < 16; ++l) {
                    const auto offset = static_cast<std::uint32_t>(l * 128 + thread.index() * 2);
                    const std::uint16_t got =
                        thread.load(shared_pointer<std::uint16_t>{1024 + mp::simt::swizzled<128>(offset)});
                    const bool inside = l + 2 < 10 && matrix >= 0 && matrix < 5;
                    CHECK(got == (inside ? from->at(matrix * 10 + l + 2, thread.index()) : 0));
                }
            },
            3);
    }
}

TEST_CASE("copies say which matrix exactly if their map is of several") {
    const numbers source;
    tensor_tiles tiles = source.tiles(64, 16, 128);
    const tensor_map one = make_tensor_map(gpu(0), tiles);
    tiles.matrices = 1;
    tiles.matrix_bytes = 16;
    const tensor_map several = make_tensor_map(gpu(0), tiles);
    const auto begin = [](auto thread) {
        thread.init_barrier(full, 1);
        thread.fence_barrier_init();
        thread.arrive_expect(full, 64 * 16 * 2);
    };
    const auto without = error_of<32>([=](auto thread) {
        if (thread.index() != 0) return;
        begin(thread);
        thread.copy_tile(stage, several, 0, 0, full);
    });
    CHECK(std::string(without.what()).find("without saying which of them") != std::string::npos);
    const auto with = error_of<32>([=](auto thread) {
        if (thread.index() != 0) return;
        begin(thread);
        thread.copy_tile(stage, one, 0, 0, 0, full);
    });
    CHECK(std::string(with.what()).find("of a map of one matrix without a number") != std::string::npos);
}

TEST_CASE("maps are checked for what the unit takes") {
    const numbers source;
    const auto refuses = [&](tensor_tiles tiles, const std::string& text) {
        try {
            static_cast<void>(make_tensor_map(gpu(0), tiles));
        } catch (const mp::argument_error& error) {
            CHECK(std::string(error.what()) == "mp::simt::make_tensor_map: " + text);
            return;
        }
        CHECK_MESSAGE(false, text);
    };
    tensor_tiles tiles = source.tiles(32, 8, 64);
    tiles.data = source.values + 1;
    refuses(tiles, "tiles.data % 16 is 2; it must be zero, and tiles.data not null");
    tiles = source.tiles(32, 8, 64);
    tiles.row_bytes = 150;
    refuses(tiles, "tiles.row_bytes is 150; it must be a multiple of 16, and no less than a row has");
    refuses(source.tiles(33, 8, 128),
            "tiles.tile_length is 33; it must be from 1 to 256, and a multiple of 16 bytes");
    refuses(source.tiles(64, 8, 64),
            "tiles.tile_length is 64; it must be no more than tiles.swizzle_bytes have room for");
    refuses(source.tiles(32, 257, 64), "tiles.tile_rows is 257; it must be from 1 to 256");
    refuses(source.tiles(32, 8, 48), "tiles.swizzle_bytes is 48; it must be 0, 32, 64 or 128");
    tiles = source.tiles(32, 8, 64);
    tiles.matrices = 2;
    refuses(tiles, "tiles.matrix_bytes is 0; it must be a positive multiple of 16");
    tiles.matrix_bytes = 1000;
    refuses(tiles, "tiles.matrix_bytes is 1000; it must be a positive multiple of 16");
    tiles.matrices = -1;
    refuses(tiles, "tiles.matrices is -1; it must be from 0 to 2^32");
}

}  // namespace
