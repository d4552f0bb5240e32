// SPDX-License-Identifier: MIT
// Ranks that are threads: what they compare beyond what MPI would.
#include <mp/parallel.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <vector>

#include "nn/scaling/thrown.hpp"

TEST_CASE("calls that do not match end all ranks") {
    std::atomic<int> found = 0;
    static_cast<void>(thrown<mp::rank_error>([&] {
        mp::run_loopback(2, [&](auto& self) {
            std::vector<std::byte> bytes(self.rank() == 0 ? 8 : 16);
            try {
                self.broadcast(bytes, 0);
            } catch (const mp::rank_error& problem) {
                if (holds(problem.what(), "makes broadcast number 0 with")) ++found;
                throw;
            }
        });
    }));
    CHECK(found == 2);
}
