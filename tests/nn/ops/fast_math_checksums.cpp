// SPDX-License-Identifier: MIT
// Compiled with -ffast-math, under which compilers fuse, reorder and approximate, and programs flush
// subnormal numbers: no op's result may differ by a bit, forward or backward, whatever the modes of the
// processor are when it is called. tests/portability has the same table for other machines.
#include "portability/ops_checksums.hpp"
#include "portability/ops_checksums_expected.hpp"

#include <doctest/doctest.h>

#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

namespace {

using found_checksums = std::vector<portability::named_checksum>;

void check(const found_checksums& found) {
    REQUIRE(found.size() == std::size(portability::expected_ops_checksums));
    for (std::size_t i = 0; i < found.size(); ++i) {
        const portability::expected_checksum& expected = portability::expected_ops_checksums[i];
        CHECK(found[i].name == expected.name);
        CHECK_MESSAGE(found[i].value == expected.value, expected.name);
    }
}

TEST_CASE("the ops have the same bits under every flag, forward and backward") {
    check(portability::ops_checksums());
}

TEST_CASE("and in every direction of rounding") {
    for (const int direction : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
        const int before = std::fegetround();
        REQUIRE(std::fesetround(direction) == 0);
        const found_checksums found = portability::ops_checksums();
        const bool kept = std::fegetround() == direction;
        std::fesetround(before);
        CHECK(kept);
        check(found);
    }
}

#if defined(__SSE2__) && defined(__GNUC__)
TEST_CASE("and where the processor flushes subnormal numbers, or does not") {
    std::uint32_t before = 0;
    __asm__ volatile("stmxcsr %0" : "=m"(before) : : "memory");
    // MXCSR: flush to zero is bit 15, denormals are zero is bit 6.
    for (const std::uint32_t wanted : {before | 0x8040U, before & ~0x8040U}) {
        __asm__ volatile("ldmxcsr %0" : : "m"(wanted) : "memory");
        const found_checksums found = portability::ops_checksums();
        __asm__ volatile("ldmxcsr %0" : : "m"(before) : "memory");
        check(found);
    }
}
#endif

}  // namespace
