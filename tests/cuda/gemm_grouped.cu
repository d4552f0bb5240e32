// SPDX-License-Identifier: MIT
#include <mp/cuda.hpp>

#include <mp/gemm.hpp>
#include <mp/half.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace {

using mp::half;

std::vector<half> numbers(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<half> result(count);
    for (half& it : result) it = half(static_cast<float>(random() % 7) - 3.0F);  // sums are exact
    return result;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_CASE("gemm_grouped: groups of rows and of k, whose offsets only the device knows") {
    constexpr std::ptrdiff_t tokens = 150, in = 72, out = 40, experts = 4;
    const mp::unique_cuda_stream stream;
    const std::vector<half> x = numbers(tokens * in, 1), w = numbers(experts * in * out, 2),
                            dy = numbers(tokens * out, 3);
    const std::vector<std::int32_t> begins = {2, 70, 70, 73, 149};
    const mp::device_buffer<half> device_x(stream, x), device_w(stream, w), device_dy(stream, dy);
    const mp::device_buffer<std::int32_t> device_begins(stream, begins);
    if (mp::properties_of(stream.get()).capability < 80) return;
    const mp::cpu host;

    std::vector<float> y(tokens * out, 3.0F), dw(experts * in * out, 2.0F);
    mp::device_buffer<float> device_y(stream, y), device_dw(stream, dw);
    mp::gemm_grouped_m(stream.get(), 1.5F, mp::row_major(device_x.data(), tokens, in),
                       mp::matrix_batch{mp::row_major(device_w.data(), in, out), in * out},
                       device_begins.span(), 0.5F, mp::row_major(device_y.data(), tokens, out));
    mp::gemm_grouped_m(host, 1.5F, mp::row_major(x.data(), tokens, in),
                       mp::matrix_batch{mp::row_major(w.data(), in, out), in * out}, begins, 0.5F,
                       mp::row_major(y.data(), tokens, out));
    CHECK(same(device_y.to_host(stream), y));

    mp::gemm_grouped_k(stream.get(), 1, mp::transposed(mp::row_major(device_x.data(), tokens, in)),
                       mp::row_major(device_dy.data(), tokens, out), device_begins.span(), 1,
                       mp::matrix_batch{mp::row_major(device_dw.data(), in, out), in * out});
    mp::gemm_grouped_k(host, 1, mp::transposed(mp::row_major(x.data(), tokens, in)),
                       mp::row_major(dy.data(), tokens, out), begins, 1,
                       mp::matrix_batch{mp::row_major(dw.data(), in, out), in * out});
    CHECK(same(device_dw.to_host(stream), dw));
}

}  // namespace
