// SPDX-License-Identifier: MIT
#include "device/simt/body.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace {

using mp::kernel_violation;
using mp::simt::shared_pointer;
using simt_test::error_of;
using simt_test::run;

alignas(16) std::uint32_t source[64];

TEST_CASE("copies land when they are waited for, the rest of a chunk with zeros") {
    std::iota(std::begin(source), std::end(source), 1U);
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
        run<32>(
            [](auto thread) {
                const shared_pointer<std::uint32_t> to{};
                const int lane = thread.lane();
                if (lane < 16)
                    thread.template copy_async<16>(to + 4 * lane, source + 4 * lane, lane == 3 ? 7 : 16);
                thread.commit_copies();
                thread.template wait_copies<0>();
                thread.sync_warp();
                CHECK(thread.load(to + lane) == (lane == 13                 ? 14U & 0xFF'FFFFU
                                                 : lane == 14 || lane == 15 ? 0U
                                                                            : source[lane]));
            },
            seed);
    }
}

TEST_CASE("groups are waited for in their order") {
    run<32>([](auto thread) {
        const shared_pointer<std::uint32_t> to{};
        for (int group = 0; group < 3; ++group) {
            if (thread.lane() == 0) thread.template copy_async<4>(to + group, source + group);
            thread.commit_copies();
        }
        thread.template wait_copies<1>();
        if (thread.lane() == 0) CHECK(thread.load(to + 1) == source[1]);
        thread.template wait_copies<0>();
        if (thread.lane() == 0) CHECK(thread.load(to + 2) == source[2]);
    });
}

TEST_CASE("a read before the wait is refused, by anybody") {
    for (const int reader : {0, 5}) {
        const auto error = error_of<32>([reader](auto thread) {
            const shared_pointer<std::uint32_t> to{};
            if (thread.lane() == 0) {
                thread.template copy_async<16>(to, source);
                thread.commit_copies();
            }
            thread.sync_warp();
            if (thread.lane() == reader) static_cast<void>(thread.load(to + 2));
        });
        CHECK(error.violation() == kernel_violation::unfinished_copy);
        CHECK(error.address() == 8);
    }
    // One group too few.
    CHECK(error_of<32>([](auto thread) {
              const shared_pointer<std::uint32_t> to{};
              if (thread.lane() == 0) thread.template copy_async<16>(to, source);
              thread.commit_copies();
              thread.template wait_copies<1>();
              if (thread.lane() == 0) static_cast<void>(thread.load(to));
          }).violation() == kernel_violation::unfinished_copy);
}

TEST_CASE("who did not issue the copy needs a barrier behind the wait") {
    const auto reads_after = [](auto barrier) {
        return [barrier](auto thread) {
            const shared_pointer<std::uint32_t> to{};
            if (thread.index() == 0) {
                thread.template copy_async<16>(to, source);
                thread.commit_copies();
                thread.template wait_copies<0>();
            }
            barrier(thread);
            if (thread.index() == 63) static_cast<void>(thread.load(to));
        };
    };
    CHECK_NOTHROW(run<64>(reads_after([](auto thread) { thread.sync_block(); })));
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const auto error = error_of<64>(reads_after([](auto) {}), seed);
        CHECK((error.violation() == kernel_violation::race ||
               error.violation() == kernel_violation::unfinished_copy ||
               error.violation() == kernel_violation::uninitialised_read));
    }
}

TEST_CASE("the target of a copy must not be read by anybody when it is issued, nor the source change") {
    CHECK(error_of<64>([](auto thread) {
              const shared_pointer<std::uint32_t> to{};
              if (thread.index() == 0) thread.store(to, 1U);
              thread.sync_block();
              if (thread.index() == 40) static_cast<void>(thread.load(to));
              thread.sync_warp();
              if (thread.index() == 0) {
                  thread.template copy_async<16>(to, source);
              }
              thread.commit_copies();
              thread.template wait_copies<0>();
              thread.sync_block();
              if (thread.index() == 40) static_cast<void>(thread.load(to));
          }).violation() != kernel_violation::deadlock);
    std::uint32_t changing[4] = {1, 2, 3, 4};
    std::uint32_t* const pointer = changing;
    CHECK(error_of<32>([pointer](auto thread) {
              const shared_pointer<std::uint32_t> to{};
              if (thread.lane() == 0) {
                  thread.template copy_async<4>(to, pointer);
                  thread.commit_copies();
                  thread.store(pointer, 9U);
                  thread.template wait_copies<0>();
              }
          }).violation() == kernel_violation::unfinished_copy);
}

TEST_CASE("copies are checked for what the instruction takes") {
    CHECK(error_of<32>([](auto thread) {
              thread.template copy_async<16>(shared_pointer<std::uint32_t>{} + 1, source);
          }).violation() == kernel_violation::alignment);
    CHECK(error_of<32>([](auto thread) {
              thread.template copy_async<16>(shared_pointer<std::uint32_t>{}, source + 1);
          }).violation() == kernel_violation::alignment);
    CHECK(error_of<32>([](auto thread) {
              thread.template copy_async<4>(shared_pointer<std::uint32_t>{}, source, 5);
          }).violation() == kernel_violation::argument);
}

}  // namespace
