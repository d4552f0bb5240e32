// SPDX-License-Identifier: MIT
// Operations of a warp some of whose lanes have left the kernel: as CUDA has it, those that are left vote,
// exchange values and wait for each other; matrices want all of them.
#include "device/simt/body.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

namespace {

using mp::kernel_violation;
using mp::simt::shared_pointer;
using simt_test::error_of;
using simt_test::run;

TEST_CASE("lanes that are left exchange values, whenever the others leave") {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        CHECK_NOTHROW(run<64>(
            [](auto thread) {
                const int lane = thread.lane();
                if (lane % 4 == 3) return;
                CHECK(thread.shuffle(lane, 2) == 2);
                CHECK(thread.uniform(lane + 10) == 10);
                CHECK(thread.ballot(lane < 8) == 0x77U);
                if (lane >= 16) return;
                CHECK(thread.all(lane < 16));
                CHECK_FALSE(thread.all(lane != 5));
                CHECK(thread.any(lane == 5));
                CHECK_FALSE(thread.any(lane == 7));
                CHECK(thread.shuffle_xor(lane, lane % 4 == 2 ? 0 : 1) == (lane % 4 == 2 ? lane : lane ^ 1));
                const shared_pointer<int> place = shared_pointer<int>{} + thread.warp();
                if (lane == 4) thread.store(place, 9);
                thread.sync_warp();
                CHECK(thread.load(place) == 9);
            },
            seed));
    }
}

TEST_CASE("the value of a lane that has left is undefined") {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        const auto error = error_of<64>(
            [](auto thread) {
                if (thread.index() == 35) return;
                static_cast<void>(thread.shuffle_xor(thread.index(), 1));
            },
            seed);
        CHECK(error.violation() == kernel_violation::divergence);
        CHECK(error.thread() == 34);
        CHECK(std::string(error.what())
                  .find("takes by shuffle_xor the value of lane 3, which has left the kernel") !=
              std::string::npos);
    }
}

TEST_CASE("what lanes that left wrote is in no order with the others") {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        CHECK(error_of<32>(
                  [](auto thread) {
                      const shared_pointer<int> place{};
                      if (thread.lane() == 31) {
                          thread.store(place, 1);
                          return;
                      }
                      thread.sync_warp();
                      if (thread.lane() == 0) static_cast<void>(thread.load(place));
                  },
                  seed)
                  .violation() != kernel_violation::deadlock);
    }
}

TEST_CASE("matrices are loaded by all lanes") {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        const auto error = error_of<32>(
            [](auto thread) {
                for (int i = 0; i < 4; ++i) thread.store(shared_pointer<int>{} + (thread.lane() * 4 + i), i);
                thread.sync_warp();
                if (thread.lane() == 31) return;
                static_cast<void>(thread.template load_matrix<4>(
                    shared_pointer<float>{static_cast<std::uint32_t>(thread.lane() * 16)}));
            },
            seed);
        CHECK(error.violation() == kernel_violation::divergence);
        const std::string text = error.what();
        CHECK((text.find("waits in load_matrix for block 0, thread 31 (warp 0, lane 31), which has left") !=
                   std::string::npos ||
               text.find("comes to load_matrix after others of its warp left the kernel") !=
                   std::string::npos));
    }
}

}  // namespace
