// SPDX-License-Identifier: MIT
// Products of warpgroups that are not ended, descriptors that do not fit, and registers that nobody gives up:
// each mistake is planted, and its correction is quiet.
#include "device/simt/body.hpp"

#include <mp/device/simt/tensor_map.hpp>
#include <mp/half.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace {

using mp::half;
using mp::kernel_violation;
using mp::simt::memory_barrier;
using mp::simt::shared_pointer;
using mp::simt::tensor_map;

constexpr shared_pointer<memory_barrier> full{0};
constexpr std::uint32_t a_begin = 1024;
constexpr std::uint32_t b_begin = 32768;

template <int Threads, class Function>
std::optional<mp::kernel_error> error_of(const Function& function, std::uint64_t seed = 1) {
    try {
        launch("planted", mp::simulated_gpu<mp::arch::sm_90>{.seed = seed},
               mp::simt::launch_size{.shared_bytes = std::size_t{64} << 10},
               simt_test::body<Threads, Function>{function});
    } catch (const mp::kernel_error& error) {
        return error;
    }
    return std::nullopt;
}

bool contains(const mp::kernel_error& error, const std::string& text) {
    return std::string(error.what()).find(text) != std::string::npos;
}

/// 128 rows of 64 numbers, all one.
struct ones {
    alignas(128) half values[128 * 64];

    ones() {
        for (half& x : values) x = half(1);
    }
    [[nodiscard]] tensor_map map(int rows) const {
        return mp::simt::make_tensor_map(mp::simulated_gpu<mp::arch::sm_90>{},
                                         {values, 2, 64, 128, 128, 64, rows, 128});
    }
};

/// What copies of a tile of A, in tiles of `Rows` rows, and one of B make.
template <class Thread>
void bring(Thread thread, const tensor_map& map, int rows) {
    if (thread.index() == 0) {
        thread.init_barrier(full, 1);
        thread.fence_barrier_init();
        thread.arrive_expect(full, 2 * 64 * 128);
        for (int row = 0; row < 64; row += rows) {
            const auto offset = static_cast<std::uint32_t>(row * 128);
            thread.copy_tile(shared_pointer<half>{a_begin + offset}, map, 0, row, full);
            thread.copy_tile(shared_pointer<half>{b_begin + offset}, map, 0, row, full);
        }
    }
    thread.sync_block();
    thread.wait_barrier(full, false);
}

/// How the sums of a product are asked for.
enum class ending { whole, no_commit, no_wait, reads_before_commit, reads_before_wait, adds_before_wait };

TEST_CASE("sums that were not committed or waited for are found, with the line of the product") {
    const ones source;
    const tensor_map map = source.map(64);
    std::vector<float> result(128);
    float* const to = result.data();
    const auto kernel = [map, to](ending how) {
        return [=](auto thread) {
            bring(thread, map, 64);
            float sum[32] = {};
            const auto left = thread.describe(a_begin, 16, 1024, 128);
            const auto right = thread.describe(b_begin, 16, 1024, 128);
            thread.fence_products();
            thread.template multiply_async<half, half, 64>(sum, left, right, false);
            float early = 0;
            if (how == ending::reads_before_commit) early = sum[7];
            if (how != ending::no_commit) thread.commit_products();
            if (how == ending::reads_before_wait) early = sum[7];
            if (how == ending::adds_before_wait) early = 3.0F * (1.0F - sum[7]);
            if (how != ending::no_wait) thread.template wait_products<0>();
            if (how == ending::no_wait || how == ending::no_commit) return;
            thread.store(to + thread.index(), how == ending::whole ? sum[7] : early);
        };
    };
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        CHECK_FALSE(error_of<128>(kernel(ending::whole), seed));
        CHECK(result[5] == 16.0F);
        const auto no_commit = error_of<128>(kernel(ending::no_commit), seed);
        REQUIRE(no_commit);
        CHECK(no_commit->violation() == kernel_violation::unfinished_copy);
        CHECK(contains(*no_commit, "warpgroup_mistakes.cpp:"));
        CHECK(contains(*no_commit, "leaves the kernel without commit_products()"));
        const auto no_wait = error_of<128>(kernel(ending::no_wait), seed);
        REQUIRE(no_wait);
        CHECK(contains(*no_wait, "leaves the kernel without wait_products() for it"));
        for (const ending how :
             {ending::reads_before_commit, ending::reads_before_wait, ending::adds_before_wait}) {
            const auto error = error_of<128>(kernel(how), seed);
            REQUIRE(error);
            CHECK(error->violation() == kernel_violation::unfinished_copy);
            CHECK(contains(*error, ": stores a sum of multiply_async at warpgroup_mistakes.cpp:"));
            CHECK(contains(*error, " that was read before wait_products() said that it is done"));
        }
    }
}

TEST_CASE("descriptors are compared with the tiles that copies brought") {
    const ones source;
    const auto multiply = [](const tensor_map& map, int rows, int stride, int swizzle, std::uint32_t first,
                             int leading = 16) {
        return [=](auto thread) {
            bring(thread, map, rows);
            float sum[32] = {};
            thread.fence_products();
            thread.template multiply_async<half, half, 64>(
                sum, thread.describe(a_begin + first, leading, stride, swizzle).advanced(32),
                thread.describe(b_begin, 16, 1024, 128), false);
            thread.commit_products();
            thread.template wait_products<0>();
        };
    };
    // One tile, several that follow each other, and the second half of one.
    CHECK_FALSE(error_of<128>(multiply(source.map(64), 64, 1024, 128, 0)));
    CHECK_FALSE(error_of<128>(multiply(source.map(8), 8, 1024, 128, 0)));
    CHECK_FALSE(error_of<128>(multiply(source.map(32), 32, 1024, 128, 0)));
    const auto half_the_stride = error_of<128>(multiply(source.map(64), 64, 512, 128, 0));
    REQUIRE(half_the_stride);
    CHECK(half_the_stride->violation() == kernel_violation::argument);
    CHECK(contains(
        *half_the_stride,
        "multiplies a tile by a descriptor that does not fit its layout (leading_bytes 16, stride_bytes "
        "512, swizzle_bytes 128): what it calls row 8, byte 0 is row 4, byte 32 of the tile that "
        "warpgroup_mistakes.cpp:"));
    CHECK(contains(*half_the_stride, " copied, with rows of 128 bytes, swizzled by 128"));
    for (const int stride : {0, 16, 768, 1040, 2048}) {
        const auto error = error_of<128>(multiply(source.map(64), 64, stride, 128, 0));
        REQUIRE(error);
        CHECK(error->violation() != kernel_violation::deadlock);
    }
    for (const int swizzle : {0, 32, 64}) {
        const auto error = error_of<128>(multiply(source.map(64), 64, 1024, swizzle, 0));
        REQUIRE(error);
        CHECK(error->violation() == kernel_violation::argument);
    }
    CHECK(error_of<128>(multiply(source.map(64), 64, 1024, 0, 0, 64)));
}

TEST_CASE("descriptors are checked for what they can hold") {
    const auto error = [](std::uint32_t offset, int leading, int stride, int swizzle) {
        const auto found = error_of<128>(
            [=](auto thread) { static_cast<void>(thread.describe(offset, leading, stride, swizzle)); });
        return found ? std::string(found->what()) : std::string();
    };
    CHECK(error(1024, 16, 1024, 128).empty());
    CHECK(error(1032, 16, 1024, 128)
              .ends_with("describes a tile whose offset is 1032; it must be a multiple of 16"));
    CHECK(error(1024, 8, 1024, 128).ends_with("leading_bytes is 8; it must be a multiple of 16, below 2^18"));
    CHECK(error(1024, 16, 1 << 18, 128)
              .ends_with("stride_bytes is 262144; it must be a multiple of 16, below 2^18"));
    CHECK(error(1024, 16, 1024, 96).ends_with("swizzle_bytes is 96; it must be 0, 32, 64 or 128"));
    CHECK(contains(*error_of<64>([](auto thread) { thread.fence_products(); }),
                   "works as a warpgroup; the threads of the block must be a multiple of 128"));
}

TEST_CASE("registers that one warpgroup takes have been given up by others") {
    // A block of 384 threads has 168 registers for each.
    const auto kernel = [](auto give, auto take) {
        return [=](auto thread) {
            if (thread.index() < 128) {
                give(thread);
            } else {
                take(thread);
            }
        };
    };
    const auto give_128 = [](auto thread) { thread.template setmaxnreg_decrease<40>(); };
    const auto take_64 = [](auto thread) { thread.template setmaxnreg_increase<232>(); };
    const auto take_72 = [](auto thread) { thread.template setmaxnreg_increase<240>(); };
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
        CHECK_FALSE(error_of<384>(kernel(give_128, take_64), seed));
        const auto error = error_of<384>(kernel(give_128, take_72), seed);
        REQUIRE(error);
        CHECK(error->violation() == kernel_violation::deadlock);
        CHECK(contains(*error, "wait in setmaxnreg_increase at warpgroup_mistakes.cpp:"));
        CHECK(
            contains(*error,
                     " wants 240 registers a thread in place of 168, 9216 in all, and the others have given "
                     "up 7168"));
    }
    CHECK(contains(*error_of<384>(kernel([](auto) {}, take_64)), "and the others have given up 0"));
    CHECK(contains(
        *error_of<384>(kernel([](auto thread) { thread.template setmaxnreg_decrease<240>(); }, take_64)),
        "comes to setmaxnreg_decrease<240> with 168 registers a thread"));
    CHECK(contains(
        *error_of<384>(kernel(give_128, [](auto thread) { thread.template setmaxnreg_increase<160>(); })),
        "comes to setmaxnreg_increase<160> with 168 registers a thread"));
}

}  // namespace
