// SPDX-License-Identifier: MIT
// The code of docs/gpu.md that needs no device: kernels on the host.
#include <doctest/doctest.h>
#include <mp/gpu.hpp>
#include <mp/half.hpp>

#include <numeric>
#include <span>
#include <vector>

namespace {

/// A kernel of one's own: the blocks turn their part of an array round, through shared memory.
struct my_kernel {
    static constexpr int threads = 64;

    const float* from;
    float* to;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const mp::simt::shared_pointer<float> part{};
        const auto first = thread.block() * threads;
        thread.store(part + thread.index(), thread.load(from + first + thread.index()));
        thread.sync_block();
        thread.store(to + first + thread.index(), thread.load(part + (threads - 1 - thread.index())));
    }
};

TEST_CASE("docs/gpu.md: kernels without a GPU") {
    const std::vector<mp::half> a(16 * 16, mp::half(1.0F)), b(16 * 16, mp::half(0.5F));
    std::vector<float> c(16 * 16);
    const auto a_view = mp::row_major(a, 16, 16), b_view = mp::row_major(b, 16, 16);
    const auto c_view = mp::row_major(c, 16, 16);
    std::vector<float> numbers(256), turned(256);
    std::iota(numbers.begin(), numbers.end(), 0.0F);
    const float* const from = numbers.data();
    float* const to = turned.data();
#include "gpu_4.inl"
    CHECK(turned[0] == 63.0F);
    CHECK(c[255] == 8.0F);
}

}  // namespace
