// SPDX-License-Identifier: MIT
// Products on several threads beside each other; compiled with ThreadSanitizer.
#include <doctest/doctest.h>
#include <mp/gemm.hpp>
#include <mp/thread_pool.hpp>
#include <mp/workspace.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace {

/// A batch of products of ones, m x 64 x 64.
void check_batch(const mp::cpu& exec, std::ptrdiff_t m) {
    constexpr std::ptrdiff_t n = 64, count = 32;
    const auto size = [](std::ptrdiff_t rows) { return static_cast<std::size_t>(count * rows * n); };
    const std::vector<float> a(size(m), 1.0F), b(size(n), 1.0F);
    std::vector<float> c(size(m));
    mp::gemm_batched(exec, count, 1.0F, mp::matrix_batch{mp::row_major(a.data(), m, n), m * n},
                     mp::matrix_batch{mp::row_major(b.data(), n, n), n * n}, 0.0F,
                     mp::matrix_batch{mp::row_major(c.data(), m, n), m * n});
    CHECK(std::all_of(c.begin(), c.end(), [](float x) { return x == 64.0F; }));
}

TEST_CASE("the products of a batch share an executor with a workspace, and none of them touches it") {
    mp::host_workspace workspace;
    mp::thread_pool pool(3);
    for (int i = 0; i < 10; ++i) {
        for (const std::ptrdiff_t m : {2, 64}) {
            check_batch({.threads = 3, .workspace = &workspace}, m);
            check_batch({.threads = 3, .workspace = &workspace, .pool = &pool}, m);
        }
    }
    CHECK(workspace.high_water() == 0);
}

}  // namespace
