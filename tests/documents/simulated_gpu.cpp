// SPDX-License-Identifier: MIT
// The code of docs/gpu.md that needs no device: kernels on the host.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/gpu.hpp>
#include <mp/half.hpp>
#include <mp/training.hpp>

#include <array>
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

TEST_CASE("docs/gpu.md: the parts of layers of 8 bits") {
    mp::simt::launch_recorder recorder;
    const mp::simulated_gpu<mp::arch::sm_75> exec{.recorder = &recorder};
    constexpr std::ptrdiff_t rows = 16, in = 16, out = 16;
    mp::tensor<mp::bfloat16> x(exec, rows, in), w(exec, out, in), y(exec, rows, out);
    x.copy_from(exec, std::vector<mp::bfloat16>(rows * in, mp::bfloat16(0.5F)));
    w.copy_from(exec, std::vector<mp::bfloat16>(out * in, mp::bfloat16(3.0F)));
    mp::tensor<mp::float8_e4m3fn> x8(exec, rows, in), w8(exec, out, in), x8_turned(exec, in, rows),
        w8_turned(exec, in, out);
    constexpr int steps = 4;
#include "gpu_4.inl"
    CHECK(y.to_host(exec)[255] == mp::bfloat16(24.0F));
    CHECK(scales.to_host(exec)[1].updates == 3);
    CHECK(scales.to_host(exec)[1].scale == 448.0F / 3.0F);
}

TEST_CASE("docs/gpu.md: kernels without a GPU") {
    const std::vector<mp::half> a(16 * 16, mp::half(1.0F)), b(16 * 16, mp::half(0.5F));
    std::vector<float> c(16 * 16);
    const auto a_view = mp::row_major(a, 16, 16), b_view = mp::row_major(b, 16, 16);
    const auto c_view = mp::row_major(c, 16, 16);
    std::vector<float> numbers(256), turned(256);
    std::iota(numbers.begin(), numbers.end(), 0.0F);
    const float* const from = numbers.data();
    float* const to = turned.data();
#include "gpu_5.inl"
    CHECK(turned[0] == 63.0F);
    CHECK(c[255] == 8.0F);
}

}  // namespace
