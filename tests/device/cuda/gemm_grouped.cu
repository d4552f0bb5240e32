// SPDX-License-Identifier: MIT
#include <mp/cuda.hpp>

#include <mp/float8.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>
#include <mp/tensor_core.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
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

TEST_CASE("gemm_grouped: by wgmma, where the device has it, by single blocks and by clusters") {
    constexpr auto wgmma = mp::gpu_gemm_kernel::wgmma;
    const mp::unique_cuda_stream stream;
    if (!mp::properties_of(stream.get()).has_warpgroups) return;
    const mp::cpu host;
    constexpr std::ptrdiff_t tokens = 1400, in = 200, experts = 7;
    for (const std::ptrdiff_t out : {40, 256}) {
        CAPTURE(out);
        std::vector<half> x = numbers(static_cast<std::size_t>(tokens * in), 1),
                          dy = numbers(static_cast<std::size_t>(tokens * out), 3);
        const std::vector<half> w = numbers(static_cast<std::size_t>(experts * in * out), 2);
        const std::vector<std::int32_t> begins = {2, 3, 402, 599, 599, 1100, 1116, 1399},
                                        counts = {200, 0, 17, 1, 128, 129, 3};
        // What follows the last group is not added.
        x.back() = dy.back() = std::numeric_limits<half>::infinity();
        const mp::device_buffer<half> device_x(stream, x), device_w(stream, w), device_dy(stream, dy);
        const mp::device_buffer<std::int32_t> device_begins(stream, begins), device_counts(stream, counts);
        const auto weights = [&](const half* data) {
            return mp::matrix_batch{mp::row_major(data, in, out), in * out};
        };

        std::vector<float> y(static_cast<std::size_t>(tokens * out), 3.0F),
            dw(static_cast<std::size_t>(experts * in * out), 2.0F);
        mp::device_buffer<float> device_y(stream, y), device_dw(stream, dw);
        mp::gemm_grouped_m<wgmma>(stream.get(), 1.5F, mp::row_major(device_x.data(), tokens, in),
                                  weights(device_w.data()), device_begins.span(), 0,
                                  mp::row_major(device_y.data(), tokens, out));
        mp::gemm_grouped_m(host, 1.5F, mp::row_major(x.data(), tokens, in), weights(w.data()), begins, 0,
                           mp::row_major(y.data(), tokens, out));
        CHECK(same(device_y.to_host(stream), y));

        const auto capacity = [&](auto* data, std::ptrdiff_t columns) {
            return mp::matrix_batch{mp::row_major(data, tokens / experts, columns),
                                    tokens / experts * columns};
        };
        mp::gemm_masked<wgmma>(stream.get(), 1, capacity(device_x.data(), in), weights(device_w.data()),
                               device_counts.span(), 0.5F, capacity(device_y.data(), out));
        mp::gemm_masked(host, 1, capacity(x.data(), in), weights(w.data()), counts, 0.5F,
                        capacity(y.data(), out));
        CHECK(same(device_y.to_host(stream), y));

        mp::gemm_grouped_k<wgmma>(stream.get(), 1, mp::transposed(mp::row_major(device_x.data(), tokens, in)),
                                  mp::row_major(device_dy.data(), tokens, out), device_begins.span(), 0,
                                  mp::matrix_batch{mp::row_major(device_dw.data(), in, out), in * out});
        mp::gemm_grouped_k(host, 1, mp::transposed(mp::row_major(x.data(), tokens, in)),
                           mp::row_major(dy.data(), tokens, out), begins, 0,
                           mp::matrix_batch{mp::row_major(dw.data(), in, out), in * out});
        CHECK(same(device_dw.to_host(stream), dw));
    }
}

TEST_CASE("gemm_grouped: few rows in each group by wgmma, where the device has it") {
    constexpr auto wgmma = mp::gpu_gemm_kernel::wgmma;
    const mp::unique_cuda_stream stream;
    if (!mp::properties_of(stream.get()).has_warpgroups) return;
    const mp::cpu host;
    constexpr std::ptrdiff_t in = 200, out = 136, experts = 4, capacity = 40;
    constexpr std::ptrdiff_t tokens = experts * capacity;
    const std::vector<half> x = numbers(tokens * in, 1), w = numbers(experts * in * out, 2);
    const std::vector<std::int32_t> begins = {2, 3, 3, 21, 36}, counts = {17, 0, 40, 1};
    const mp::device_buffer<half> device_x(stream, x), device_w(stream, w);
    const mp::device_buffer<std::int32_t> device_begins(stream, begins), device_counts(stream, counts);
    const auto weights = [&](const half* data) {
        return mp::matrix_batch{mp::row_major(data, in, out), in * out};
    };
    const auto groups = [&](auto* data, std::ptrdiff_t columns) {
        return mp::matrix_batch{mp::row_major(data, capacity, columns), capacity * columns};
    };
    std::vector<float> y(tokens * out, 3.0F);
    mp::device_buffer<float> device_y(stream, y);
    mp::gemm_grouped_m<wgmma>(stream.get(), 1.5F, mp::row_major(device_x.data(), capacity, in),
                              weights(device_w.data()), device_begins.span(), 0.5F,
                              mp::row_major(device_y.data(), capacity, out));
    mp::gemm_grouped_m(host, 1.5F, mp::row_major(x.data(), capacity, in), weights(w.data()), begins, 0.5F,
                       mp::row_major(y.data(), capacity, out));
    CHECK(same(device_y.to_host(stream), y));
    mp::gemm_masked<wgmma>(stream.get(), 1, groups(device_x.data(), in), weights(device_w.data()),
                           device_counts.span(), 0, groups(device_y.data(), out));
    mp::gemm_masked(host, 1, groups(x.data(), in), weights(w.data()), counts, 0, groups(y.data(), out));
    CHECK(same(device_y.to_host(stream), y));
}

TEST_CASE(
    "gemm_scaled_grouped_m, gemm_scaled_masked and gemm_scaled_grouped_k: by wgmma, where the device has "
    "it") {
    using mp::float8_e4m3fn;
    constexpr auto wgmma = mp::gpu_gemm_kernel::wgmma;
    constexpr std::ptrdiff_t rows = 200, k = 272, blocks = 3, out = 144, experts = 7;
    const mp::unique_cuda_stream stream;
    if (!mp::properties_of(stream.get()).has_warpgroups) return;
    const mp::emulated<mp::arch::sm_90> model{};
    std::mt19937 random(1);
    const auto draw = [&]<class Value>(std::ptrdiff_t count, Value) {
        std::vector<Value> result(static_cast<std::size_t>(count));
        for (Value& it : result) it = Value(std::normal_distribution<float>()(random));
        return result;
    };
    const auto x = draw(experts * rows * k, float8_e4m3fn{}), w = draw(experts * k * out, float8_e4m3fn{});
    const auto x_scales = draw(experts * rows * blocks, 0.0F), w_scales = draw(experts * blocks * 2, 0.0F);
    const std::vector<std::int32_t> begins = {2, 3, 402, 599, 599, 1100, 1116, 1399},
                                    counts = {200, 0, 17, 1, 128, 129, 3};
    std::vector<float> y(static_cast<std::size_t>(experts * rows * out), 3.0F);
    const mp::device_buffer<float8_e4m3fn> device_x(stream, x), device_w(stream, w);
    const mp::device_buffer<float> device_x_scales(stream, x_scales), device_w_scales(stream, w_scales);
    const mp::device_buffer<std::int32_t> device_begins(stream, begins), device_counts(stream, counts);
    mp::device_buffer<float> device_y(stream, y);
    const auto weights = [&](const float8_e4m3fn* data) {
        return mp::matrix_batch{mp::column_major(data, k, out), k * out};
    };
    const auto weight_scales = [&](const float* data) {
        return mp::k_block_scales_batch{{mp::column_major(data, blocks, 2), 128}, blocks * 2};
    };
    mp::gemm_scaled_grouped_m<wgmma>(stream.get(), 1, mp::row_major(device_x.data(), experts * rows, k),
                                     {mp::row_major(device_x_scales.data(), experts * rows, blocks)},
                                     weights(device_w.data()), weight_scales(device_w_scales.data()),
                                     device_begins.span(), 0,
                                     mp::row_major(device_y.data(), experts * rows, out));
    mp::gemm_scaled_grouped_m(model, 1, mp::row_major(x.data(), experts * rows, k),
                              {mp::row_major(x_scales.data(), experts * rows, blocks)}, weights(w.data()),
                              weight_scales(w_scales.data()), begins, 0,
                              mp::row_major(y.data(), experts * rows, out));
    CHECK(same(device_y.to_host(stream), y));

    mp::gemm_scaled_masked<wgmma>(
        stream.get(), 1, mp::matrix_batch{mp::row_major(device_x.data(), rows, k), rows * k},
        {{mp::row_major(device_x_scales.data(), rows, blocks)}, rows * blocks}, weights(device_w.data()),
        weight_scales(device_w_scales.data()), device_counts.span(), 0.5F,
        mp::matrix_batch{mp::row_major(device_y.data(), rows, out), rows * out});
    mp::gemm_scaled_masked(model, 1, mp::matrix_batch{mp::row_major(x.data(), rows, k), rows * k},
                           {{mp::row_major(x_scales.data(), rows, blocks)}, rows * blocks}, weights(w.data()),
                           weight_scales(w_scales.data()), counts, 0.5F,
                           mp::matrix_batch{mp::row_major(y.data(), rows, out), rows * out});
    CHECK(same(device_y.to_host(stream), y));

    // Along k, of blocks of 128.
    const std::vector<std::int32_t> k_begins = {0, 128, 128, 272};
    const mp::device_buffer<std::int32_t> device_k_begins(stream, k_begins);
    std::vector<float> dw(3 * rows * out, 1.0F);
    mp::device_buffer<float> device_dw(stream, dw);
    const auto gradients = [&](float* data) {
        return mp::matrix_batch{mp::row_major(data, rows, out), rows * out};
    };
    mp::gemm_scaled_grouped_k<wgmma>(stream.get(), 1, mp::row_major(device_x.data(), rows, k),
                                     {mp::row_major(device_x_scales.data(), rows, blocks)},
                                     mp::column_major(device_w.data(), k, out),
                                     {mp::column_major(device_w_scales.data(), blocks, 2), 128},
                                     device_k_begins.span(), 0.5F, gradients(device_dw.data()));
    mp::gemm_scaled_grouped_k(
        model, 1, mp::row_major(x.data(), rows, k), {mp::row_major(x_scales.data(), rows, blocks)},
        mp::column_major(w.data(), k, out), {mp::column_major(w_scales.data(), blocks, 2), 128}, k_begins,
        0.5F, gradients(dw.data()));
    CHECK(same(device_dw.to_host(stream), dw));
}

}  // namespace
