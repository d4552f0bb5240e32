// SPDX-License-Identifier: MIT
// Twenty thousand steps with accumulation, skipped steps, groups that change and resumes end where the same in double
// does. tests/train/training/exhaustive/million_steps.cpp has a million.
#include <doctest/doctest.h>
#include <mp/half.hpp>

#include "train/training/long_run.hpp"
#include "train/training/test_folder.hpp"

namespace {

template <class Storage>
void check(double most, std::uint64_t fewest_skipped) {
    const test_folder folder;
    const long_run::outcome found =
        long_run::compare<Storage>({20000}, folder.file("run"), [](std::uint64_t) {});
    CHECK(found.difference < most);
    CHECK(found.counts_agree);
    CHECK(found.skipped >= fewest_skipped);
    CHECK(found.loss < 0.02);  // it has learned: 0.3 at first, and the noise is 0.006
}

TEST_CASE("a long training in floats, and in halves with float masters, ends where the same in double does") {
    check<float>(1e-5, 21);
    check<mp::half>(5e-4, 21 + 100);  // the scale grows until it overflows
}

}  // namespace
