// SPDX-License-Identifier: MIT
// Whatever writes weights, in whatever order: nothing that is derived from them is stale.
#include "train/training/life_of_weights.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "train/training/test_folder.hpp"

TEST_CASE(
    "random sequences of everything that writes weights have the results of runs that derive all anew") {
    const test_folder folder;
    for (std::uint64_t number = 0; number < 1200; ++number) {
        CAPTURE(number);
        REQUIRE(life_of_weights::difference_of_sequence(number, folder.file("run")) == std::string());
    }
}
