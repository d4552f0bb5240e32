// SPDX-License-Identifier: MIT
// Workspaces: a stack that gives back in frames, grows where it may, and then allocates no more.
#include <mp/autocast.hpp>
#include <mp/half.hpp>
#include <mp/ops.hpp>
#include <mp/workspace.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace {

using frame = mp::workspace::frame;

bool aligned(const void* at) {
    return reinterpret_cast<std::uintptr_t>(at) % mp::workspace::alignment == 0;
}

TEST_CASE("what is taken is aligned, does not overlap, and is given back by frames") {
    mp::host_workspace space;
    {
        const frame outer(&space);
        double* const a = space.allocate<double>(3);
        const std::size_t after_a = space.used();
        char* inside = nullptr;
        {
            const frame inner(&space);
            inside = space.allocate<char>(100);
            CHECK(aligned(inside));
            CHECK(reinterpret_cast<char*>(a + 3) <= inside);
        }
        CHECK(space.used() == after_a);
        CHECK(space.allocate<char>(1) == inside);  // the same place again
        CHECK(aligned(a));
    }
    CHECK(space.used() == 0);
    CHECK(space.high_water() >= 3 * sizeof(double) + 100);
}

TEST_CASE("a workspace that has grown in blocks has one block afterwards, and stays as it is") {
    mp::host_workspace space;
    const auto step = [&] {
        const frame outer(&space);
        for (const std::size_t count : {1000u, 20000u, 5u, 300000u}) {
            int* const values = space.allocate<int>(count);
            for (std::size_t i = 0; i < count; ++i) values[i] = 1;  // AddressSanitizer watches
        }
    };
    step();
    const std::size_t size = space.size();
    const std::size_t high_water = space.high_water();
    for (int i = 0; i < 3; ++i) step();
    CHECK(space.size() == size);
    CHECK(space.high_water() == high_water);
    CHECK(size == high_water);
}

TEST_CASE("memory of the caller is all that a plain workspace uses") {
    std::vector<std::byte> memory(1000);
    mp::workspace space(memory);
    const frame outer(&space);
    CHECK(static_cast<void*>(space.allocate<char>(1)) >= memory.data());
    const std::size_t used = space.used();
    CHECK_THROWS_WITH_AS(static_cast<void>(space.allocate<float>(1000)),
                         doctest::Contains("mp::workspace::allocate: size() is "), mp::argument_error);
    CHECK(space.used() == used);
    CHECK_THROWS_WITH_AS(
        static_cast<void>(space.allocate<double>(std::numeric_limits<std::size_t>::max() / 4)),
        doctest::Contains("count is"), mp::argument_error);
    // The size that the message asks for is enough.
    std::vector<std::byte> enough(used + 4000 + 2 * mp::workspace::alignment);
    mp::workspace larger(enough);
    const frame of_larger(&larger);
    static_cast<void>(larger.allocate<char>(1));
    CHECK_NOTHROW(static_cast<void>(larger.allocate<float>(1000)));
}

TEST_CASE("an empty workspace gives empty arrays") {
    mp::workspace space{std::span<std::byte>()};
    const frame outer(&space);
    CHECK_THROWS_AS(static_cast<void>(space.allocate<char>(1)), mp::argument_error);
}

TEST_CASE("casts on a CPU take their memory from the executor's workspace") {
    std::vector<float> x(1000, 0.5F), y(1000);
    mp::host_workspace space;
    const mp::cpu exec{.workspace = &space};
    mp::autocast_region region({.cpu = mp::precision::fp16,
                                .rules = {{.op = "silu", .category = mp::op_category::lower_precision}}});
    mp::ops::silu(exec, mp::row_major(x.data(), 10, 100), mp::row_major(y.data(), 10, 100));
    CHECK(space.high_water() >= 2 * 1000 * sizeof(mp::half));  // x and y
    CHECK(space.used() == 0);
    const std::size_t size = space.size();
    mp::ops::silu(exec, mp::row_major(x.data(), 10, 100), mp::row_major(y.data(), 10, 100));
    CHECK(space.size() == size);
    std::vector<float> expected(1000);
    mp::ops::silu(mp::cpu{}, mp::row_major(x.data(), 10, 100), mp::row_major(expected.data(), 10, 100));
    CHECK(y == expected);
}

}  // namespace
