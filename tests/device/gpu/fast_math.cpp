// SPDX-License-Identifier: MIT
// Compiled with -ffast-math: infinities and NaN are found all the same.
#include <doctest/doctest.h>
#include <mp/block_scaled.hpp>
#include <mp/device/gpu/block_quantize.hpp>
#include <mp/nn/ops/activations.hpp>
#include <mp/nn/ops/argmax/gpu.hpp>
#include <mp/nn/ops/dropout/gpu.hpp>
#include <mp/nn/ops/gpu_casts.hpp>
#include <mp/nn/ops/losses/gpu.hpp>
#include <mp/nn/ops/normalization/gpu.hpp>
#include <mp/nn/ops/pooling/gpu.hpp>
#include <mp/nn/ops/reductions/gpu.hpp>
#include <mp/nn/ops/softmax/gpu.hpp>
#include <mp/nn/ops/softmax_cross_entropy/gpu.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "matrices.hpp"

namespace {

using gpu_test::matrix;
using gpu_test::simulated;
using gpu_test::watched;

float from_bits(std::uint32_t bits) {
    return mp::detail::bit_cast<float>(bits);
}
constexpr std::uint32_t plus_infinity = 0x7F80'0000U;
constexpr std::uint32_t minus_infinity = 0xFF80'0000U;
constexpr std::uint32_t some_nan = 0xFFC0'1234U;

std::uint32_t bits_of(float x) {
    return mp::detail::bit_cast<std::uint32_t>(x);
}

/// One row for each kind: plain, masked, all masked, +infinity, NaN.
void fill_rows(matrix<float>& x) {
    x.fill([](auto r, auto c) {
        if (r == 2 || (r == 1 && c == 1)) return from_bits(minus_infinity);
        if (r == 3 && c == 2) return from_bits(plus_infinity);
        if (r == 4 && c == 3) return from_bits(some_nan);
        return static_cast<float>(c % 3);
    });
}

TEST_CASE("rows with infinities and NaN are what they are without -ffast-math") {
    for (const std::ptrdiff_t columns : {6, 1300}) {
        matrix<float> x(5, columns), y(5, columns), dx(5, columns);
        fill_rows(x);
        mp::ops::softmax(watched(simulated{.seed = 1}), x.view, y.view);
        const std::vector<int> labels(5, 0);
        std::vector<float> losses(6);
        mp::ops::softmax_cross_entropy_with_gradient(watched(simulated{.seed = 2}), x.view, labels,
                                                     &losses[5], std::span(losses).first(5), dx.view);
        for (std::ptrdiff_t r = 0; r < 5; ++r) {
            const bool undefined = r >= 2;
            for (std::ptrdiff_t c = 0; c < columns; ++c) {
                CHECK(gpu_test::is_nan(y.view(r, c)) == undefined);
                CHECK(gpu_test::is_nan(dx.view(r, c)) == undefined);
            }
            CHECK(gpu_test::is_nan(losses[static_cast<std::size_t>(r)]) == undefined);
        }
        CHECK(gpu_test::is_nan(losses[5]));
        // With smoothed labels a masked class has an infinite loss; with no rows that count there is no mean.
        mp::ops::softmax_cross_entropy(watched(simulated{.seed = 3}), x.view, labels, &losses[5],
                                       std::span(losses).first(5), {}, {.label_smoothing = 0.1F});
        CHECK(bits_of(losses[1]) == plus_infinity);
        CHECK(gpu_test::is_nan(losses[2]));
        mp::ops::softmax_cross_entropy(watched(simulated{.seed = 4}), x.view, labels, &losses[5],
                                       std::span(losses).first(5), {}, {.ignore_index = 0});
        CHECK(gpu_test::is_nan(losses[5]));
        for (std::size_t r = 0; r < 5; ++r) CHECK(bits_of(losses[r]) == 0);
        CHECK(bits_of(y.view(1, 1)) == 0);
        CHECK(y.view(0, 1) > 0.0F);
        mp::ops::layer_norm(simulated{}, x.view, mp::ops::absent, mp::ops::absent, y.view);
        for (std::ptrdiff_t r = 0; r < 5; ++r) {
            CHECK(gpu_test::is_nan(y.view(r, 0)) == (r != 0));
            CHECK(gpu_test::is_nan(y.view(r, columns - 1)) == (r != 0));
        }
        std::vector<float> sums(5);
        mp::ops::sum(simulated{}, x.view, sums, mp::ops::per::row);
        CHECK(bits_of(sums[1]) == minus_infinity);
        CHECK(bits_of(sums[3]) == plus_infinity);
        CHECK(gpu_test::is_nan(sums[4]));
    }
}

TEST_CASE("activations and block scales see infinities and NaN") {
    matrix<float> x(1, 32), y(1, 32);
    x.fill([](auto, auto c) {
        return c == 1   ? from_bits(plus_infinity)
               : c == 2 ? from_bits(minus_infinity)
               : c == 3 ? from_bits(some_nan)
                        : 1.0F;
    });
    mp::ops::gelu(simulated{}, x.view, y.view);
    CHECK(bits_of(y.view(0, 1)) == plus_infinity);
    CHECK(bits_of(y.view(0, 2)) == 0x8000'0000U);
    CHECK(bits_of(y.view(0, 3)) == some_nan);
    mp::ops::relu(simulated{}, x.view, y.view);
    CHECK(bits_of(y.view(0, 1)) == plus_infinity);
    CHECK(bits_of(y.view(0, 2)) == 0);
    CHECK(bits_of(y.view(0, 3)) == some_nan);
    std::vector<std::byte> elements(32);
    std::vector<mp::float8_e8m0fnu> scales(1);
    const mp::block_scaled_span<mp::mxfp8_e4m3> q{elements, scales, 1, 32};
    mp::quantize(simulated{}, x.view, q);
    CHECK(scales[0].bits() == 0xFF);
    mp::dequantize(simulated{}, q, y.view);
    CHECK(gpu_test::is_nan(y.view(0, 0)));
}

TEST_CASE("choices, losses and dropout find NaN and infinity") {
    matrix<float> x(5, 6), y(5, 6), dx(5, 6), pooled(5, 3), expected(5, 3);
    fill_rows(x);
    x.view(0, 5) = from_bits(1);
    std::vector<int> indices(5), on_cpu(5);
    mp::ops::argmax(simulated{}, x.view, indices);
    mp::ops::argmax(mp::cpu{}, x.view, on_cpu);
    CHECK(indices == on_cpu);
    CHECK(indices == std::vector<int>{2, 2, 0, 2, 3});
    const mp::ops::pool2d_geometry g{.height = 1, .width = 6, .kernel = {1, 2}};
    mp::ops::max_pool2d(simulated{}, x.view, pooled.view, g);
    mp::ops::max_pool2d(mp::cpu{}, x.view, expected.view, g);
    CHECK(gpu_test::same_bits(pooled, expected));
    CHECK(bits_of(pooled.view(0, 2)) == bits_of(1.0F));
    CHECK(gpu_test::is_nan(pooled.view(4, 1)));
    mp::host_workspace workspace;
    y.fill([](auto, auto) { return 1.0F; });
    float loss = 0.0F;
    mp::ops::mean_absolute_error(simulated{.workspace = &workspace}, x.view, y.view, &loss);
    CHECK(gpu_test::is_nan(loss));
    mp::ops::mean_absolute_error_backward(simulated{}, x.view, y.view, dx.view);
    CHECK(gpu_test::is_nan(dx.view(4, 3)));
    CHECK(bits_of(dx.view(3, 2)) == bits_of(1.0F / 30.0F));
    CHECK(bits_of(dx.view(2, 2)) == bits_of(-1.0F / 30.0F));
    mp::ops::dropout(simulated{}, x.view, y.view, {.probability = 1.0F});
    for (std::ptrdiff_t r = 0; r < 5; ++r) CHECK(bits_of(y.view(r, 3)) == 0);
}

}  // namespace
