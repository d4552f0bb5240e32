// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/error.hpp>
#include <mp/float8.hpp>
#include <mp/nn/ops/pooling/gpu.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>

#include "matrices.hpp"

namespace {

using gpu_test::layout;
using gpu_test::matrix;
using gpu_test::same_bits;
using gpu_test::simulated;
using gpu_test::watched;
using mp::bfloat16;
using mp::half;
using mp::ops::average_over;
using mp::ops::pool2d_geometry;

const pool2d_geometry geometries[] = {
    {},
    {.channels = 2, .height = 4, .width = 6, .kernel = {2, 2}},
    {.channels = 2, .height = 7, .width = 5, .kernel = {3, 2}, .stride = {2, 1}},
    {.channels = 3, .height = 5, .width = 6, .kernel = {3, 4}, .stride = {1, 2}, .padding = {1, 2}},
    {.channels = 1, .height = 1, .width = 1, .kernel = {2, 3}, .stride = {5, 5}, .padding = {1, 1}},
    {.channels = 1, .height = 9, .width = 8, .kernel = {2, 2}, .stride = {3, 4}},
    {.channels = 1, .height = 33, .width = 31, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
};

/// A few values, so that many are equal, and some that a sum in float would lose.
template <class Value>
void fill(matrix<Value>& x, unsigned seed) {
    std::mt19937 random(seed);
    x.fill([&](auto, auto) { return static_cast<float>(random() % 16) - 8.0F; });
}

template <class X, class Y>
void check_layouts(const pool2d_geometry& g, std::ptrdiff_t batch) {
    const auto out = g.output_size();
    const std::ptrdiff_t size = g.channels * g.height * g.width, pooled = g.channels * out.height * out.width;
    CAPTURE(size);
    CAPTURE(pooled);
    std::uint64_t seed = 1;
    for (const layout& in : gpu_test::layouts) {
        for (const layout& to : {gpu_test::layouts[0], gpu_test::layouts[2], gpu_test::layouts[4]}) {
            matrix<X> x(batch, size, in), dy(batch, pooled, in);
            matrix<Y> y(batch, pooled, to), expected(batch, pooled, to);
            matrix<Y> dx(batch, size, to), dx0(batch, size, to);
            fill(x, 3);
            dy.randomize(4, 3.0F);
            const auto compare = [&] {
                CHECK(same_bits(y, expected));
                CHECK(same_bits(dx, dx0));
                CHECK(y.is_contained());
                CHECK(dx.is_contained());
            };
            mp::ops::max_pool2d(watched(simulated{.seed = seed++}), x.view, y.view, g);
            mp::ops::max_pool2d(mp::cpu{}, x.view, expected.view, g);
            mp::ops::max_pool2d_backward(watched(simulated{.seed = seed++}), x.view, dy.view, dx.view, g);
            mp::ops::max_pool2d_backward(mp::cpu{}, x.view, dy.view, dx0.view, g);
            compare();
            for (const average_over over : {average_over::whole_window, average_over::pixels_inside}) {
                mp::ops::average_pool2d(watched(simulated{.seed = seed++}), x.view, y.view, g, over);
                mp::ops::average_pool2d(mp::cpu{}, x.view, expected.view, g, over);
                mp::ops::average_pool2d_backward(watched(simulated{.seed = seed++}), dy.view, dx.view, g,
                                                 over);
                mp::ops::average_pool2d_backward(mp::cpu{}, dy.view, dx0.view, g, over);
                compare();
            }
        }
    }
}

TEST_CASE("pooling and its gradients have the CPU's bits, in every layout, format and schedule") {
    for (const pool2d_geometry& g : geometries) {
        check_layouts<float, float>(g, 1);
        check_layouts<half, half>(g, 3);
    }
    check_layouts<float, bfloat16>(geometries[3], 2);
    check_layouts<bfloat16, float>(geometries[3], 2);
    check_layouts<half, mp::float8_e4m3fn>(geometries[2], 2);
}

TEST_CASE("the first of equals and the first NaN are chosen, and subnormals are compared") {
    const pool2d_geometry g{.height = 2, .width = 8, .kernel = {2, 2}};
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    const float values[] = {0, 0x1p-149F, 1, nan, -0.0F, 0, 5, 5,  //
                            0, 0,         9, nan, 0,     0, 5, 5};
    const float gradients[] = {1, 2, 3, 4};
    const float expected[] = {0, 1, 0, 2, 3, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    float y[4], dx[16];
    mp::ops::max_pool2d(simulated{}, mp::row_major(values, 1, 16), mp::row_major(y, 1, 4), g);
    CHECK(y[0] == 0x1p-149F);
    CHECK(gpu_test::is_nan(y[1]));
    CHECK(same_bits(y[2], -0.0F));
    CHECK(y[3] == 5.0F);
    mp::ops::max_pool2d_backward(simulated{}, mp::row_major(values, 1, 16), mp::row_major(gradients, 1, 4),
                                 mp::row_major(dx, 1, 16), g);
    for (int i = 0; i < 16; ++i) CHECK(same_bits(dx[i], expected[i]));
}

TEST_CASE("wrong arguments are refused before anything is written") {
    matrix<float> x(2, 16), y(2, 4), other(2, 5);
    y.fill([](auto, auto) { return 7.0F; });
    const pool2d_geometry g{.height = 4, .width = 4, .kernel = {2, 2}};
    CHECK_THROWS_AS(mp::ops::max_pool2d(simulated{}, x.view, other.view, g), mp::argument_error);
    CHECK_THROWS_AS(mp::ops::average_pool2d(simulated{}, x.view, y.view, g, static_cast<average_over>(9)),
                    mp::argument_error);
    CHECK_THROWS_AS(mp::ops::max_pool2d_backward(simulated{}, x.view, y.view, x.view, g), mp::argument_error);
    CHECK_THROWS_WITH_AS(
        mp::ops::average_pool2d(simulated{}, x.view, y.view, {.height = 4, .width = 4, .kernel = {0, 2}}),
        "mp::ops::average_pool2d: geometry.kernel.height is 0; it must be at least 1", mp::argument_error);
    CHECK(y.view(1, 3) == 7.0F);
    const mp::matrix_view<float> none{nullptr, 0, 16, 16}, no_results{nullptr, 0, 4, 4};
    mp::ops::max_pool2d(simulated{}, none, no_results, g);
}

}  // namespace
