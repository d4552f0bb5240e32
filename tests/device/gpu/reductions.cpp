// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/device/gpu/reductions.hpp>
#include <mp/simt.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace {

using gpu = mp::simulated_gpu<mp::arch::sm_80>;

struct float_sum {
    float operator()(float a, float b) const { return a + b; }
};
struct larger {
    float operator()(float a, float b) const { return a < b ? b : a; }
};

template <class Group, class Combine>
struct reduce_kernel {
    static constexpr int threads = 256;
    const float* from;
    float* to;

    template <class Thread>
    void operator()(Thread thread) const {
        const std::ptrdiff_t place = thread.block() * threads + thread.index();
        // Twice, as the second one uses the room of the first one again.
        const float once = Group::reduce(thread, thread.load(from + place), Combine{});
        const float again = Group::reduce(thread, thread.load(from + place) + once * 0, Combine{});
        CHECK(once == again);
        thread.store(to + place, once);
    }
};

/// The documented order, by arrays.
template <class Combine>
std::vector<float> tree(std::vector<float> values, std::size_t first, std::size_t size, std::size_t step) {
    for (std::size_t distance = size / 2; distance != 0; distance /= 2) {
        std::vector<float> next = values;
        for (std::size_t i = 0; i < size; ++i) {
            next[first + i * step] =
                Combine{}(values[first + i * step], values[first + (i ^ distance) * step]);
        }
        values = next;
    }
    return values;
}

template <class Group, class Combine>
void check_reduction() {
    constexpr std::size_t blocks = 3, threads = 256;
    std::mt19937 random(5);
    std::vector<float> from(blocks * threads);
    for (float& x : from) x = static_cast<float>(random()) * 0x1p-30F - 2.0F;
    std::vector<float> expected = from;
    for (std::size_t warp = 0; warp < from.size() / 32; ++warp)
        expected = tree<Combine>(expected, warp * 32, 32, 1);
    if (Group::size != 32) {
        for (std::size_t block = 0; block < blocks; ++block) {
            const auto of_warps = tree<Combine>(expected, block * threads, threads / 32, 32);
            std::fill_n(expected.data() + block * threads, threads, of_warps[block * threads]);
        }
    }
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        std::vector<float> to(from.size());
        mp::simt::access_statistics statistics;
        launch("test", gpu{.seed = seed, .statistics = &statistics},
               mp::simt::launch_size{.blocks = blocks, .shared_bytes = Group::shared_bytes(256)},
               reduce_kernel<Group, Combine>{from.data(), to.data()});
        CHECK(to == expected);
        CHECK(statistics.bank_conflicts() == 0);
    }
}

TEST_CASE("warps and blocks combine values in the documented order, in every schedule, for every thread") {
    check_reduction<mp::gpu::warp_group, float_sum>();
    check_reduction<mp::gpu::warp_group, larger>();
    check_reduction<mp::gpu::block_group<256>, float_sum>();
    check_reduction<mp::gpu::block_group<256>, larger>();
}

}  // namespace
