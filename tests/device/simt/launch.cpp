// SPDX-License-Identifier: MIT
#include <mp/simt.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <numeric>
#include <vector>

namespace {

/// Adds the numbers of each block, by way of shared memory, to one sum.
struct sum_kernel {
    static constexpr int threads = 128;
    const float* from;
    float* to;

    template <class Thread>
    void operator()(Thread thread) const {
        const mp::simt::shared_pointer<float> turned{};
        thread.store(turned + (threads - 1 - thread.index()),
                     thread.load(from + thread.block() * threads + thread.index()));
        thread.sync_block();
        float sum = thread.load(turned + thread.index());
        for (int distance = 16; distance != 0; distance /= 2) sum += thread.shuffle_xor(sum, distance);
        if (thread.lane() == 0) thread.atomic_add(to, sum);
    }
};

TEST_CASE("a kernel gives the same result in every schedule and on several threads of the host") {
    constexpr std::ptrdiff_t blocks = 7;
    std::vector<float> numbers(blocks * sum_kernel::threads);
    std::iota(numbers.begin(), numbers.end(), 0.0F);
    const float expected = static_cast<float>(numbers.size() * (numbers.size() - 1) / 2);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        for (const int host_threads : {1, 2}) {
            float sum = 0;
            launch("test", mp::simulated_gpu<mp::arch::sm_80>{.seed = seed, .threads = host_threads},
                   mp::simt::launch_size{.blocks = blocks, .shared_bytes = 512},
                   sum_kernel{numbers.data(), &sum});
            CHECK(sum == expected);
        }
    }
}

}  // namespace
