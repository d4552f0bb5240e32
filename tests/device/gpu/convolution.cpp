// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/error.hpp>
#include <mp/nn/ops/convolution.hpp>
#include <mp/nn/ops/convolution/gpu.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "larger_error.hpp"
#include "matrices.hpp"

namespace {

using gpu_test::layout;
using gpu_test::matrix;
using gpu_test::same_bits;
using gpu_test::simulated;
using mp::bfloat16;
using mp::half;
using mp::ops::absent;
using mp::ops::conv2d_geometry;

template <class Value>
constexpr double unit = 0x1p-24;
template <>
constexpr double unit<half> = 0x1p-11;
template <>
constexpr double unit<bfloat16> = 0x1p-8;

const conv2d_geometry geometries[] = {
    {},
    {.channels = 3, .height = 5, .width = 4},
    {.channels = 2, .height = 6, .width = 5, .kernel = {3, 2}},
    {.channels = 2, .height = 9, .width = 7, .kernel = {3, 3}, .padding = {1, 1}},
    {.channels = 1, .height = 7, .width = 9, .kernel = {2, 3}, .stride = {2, 3}, .padding = {1, 0}},
    {.channels = 4,
     .height = 8,
     .width = 7,
     .kernel = {3, 2},
     .stride = {1, 2},
     .padding = {2, 3},
     .dilation = {2, 3},
     .groups = 2},
    {.channels = 3, .height = 4, .width = 4, .kernel = {3, 3}, .padding = {1, 1}, .groups = 3},
    {.channels = 1, .height = 1, .width = 2, .kernel = {4, 5}, .stride = {3, 1}, .padding = {3, 4}},
};

/// What lies where in a convolution, counted cell by cell: calls f(n, o, place, cell, weight) for every
/// product of a cell of an image and a weight, of which place `place` of output channel o is the sum.
template <class Function>
void for_each_product(const conv2d_geometry& g, std::ptrdiff_t batch, std::ptrdiff_t out_channels,
                      Function f) {
    const std::ptrdiff_t part = g.channels / g.groups;
    for (std::ptrdiff_t n = 0; n < batch; ++n) {
        for (std::ptrdiff_t o = 0; o < out_channels; ++o) {
            const std::ptrdiff_t group = o / (out_channels / g.groups);
            std::ptrdiff_t place = 0;
            for (std::ptrdiff_t top = -g.padding.height;
                 top + g.dilation.height * (g.kernel.height - 1) < g.height + g.padding.height;
                 top += g.stride.height) {
                for (std::ptrdiff_t left = -g.padding.width;
                     left + g.dilation.width * (g.kernel.width - 1) < g.width + g.padding.width;
                     left += g.stride.width, ++place) {
                    for (std::ptrdiff_t c = 0; c < part; ++c) {
                        for (std::ptrdiff_t r = 0; r < g.kernel.height; ++r) {
                            for (std::ptrdiff_t s = 0; s < g.kernel.width; ++s) {
                                const std::ptrdiff_t line = top + r * g.dilation.height;
                                const std::ptrdiff_t column = left + s * g.dilation.width;
                                if (line < 0 || line >= g.height || column < 0 || column >= g.width) continue;
                                f(n, o, place, ((group * part + c) * g.height + line) * g.width + column,
                                  (c * g.kernel.height + r) * g.kernel.width + s);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A result in double and the sums of the magnitudes of its terms, which bound the error: in units of 2^-20,
/// more than 2^-24 for each of the additions of these sizes, or a tensor core's rounding toward zero.
struct exact_matrix {
    std::ptrdiff_t rows, columns;
    std::vector<double> sums, magnitudes;

    exact_matrix(std::ptrdiff_t r, std::ptrdiff_t c)
        : rows(r), columns(c), sums(static_cast<std::size_t>(r * c)), magnitudes(sums.size()) {}

    void add(std::ptrdiff_t row, std::ptrdiff_t column, double term) {
        const auto at = static_cast<std::size_t>(row * columns + column);
        sums[at] += term;
        magnitudes[at] += std::fabs(term);
    }
    template <class At>
    void check(At result, double last) const {
        double worst = 0;
        for (std::ptrdiff_t r = 0; r < rows; ++r) {
            for (std::ptrdiff_t c = 0; c < columns; ++c) {
                const auto at = static_cast<std::size_t>(r * columns + c);
                const double error = std::fabs(static_cast<double>(result(r, c)) - sums[at]);
                worst = tests::larger_error(
                    worst, error / (0x1p-20 * magnitudes[at] + last * std::fabs(sums[at]) + 0x1p-25));
            }
        }
        CHECK(worst <= 1);
    }
};

template <class X, class W = X, class Y = X>
struct problem {
    conv2d_geometry g;
    std::ptrdiff_t batch, out_channels;
    matrix<X> x;
    matrix<W> w;
    matrix<Y> y;
    std::vector<float> b;

    problem(const conv2d_geometry& geometry, std::ptrdiff_t images, layout how = {})
        : g(geometry),
          batch(images),
          out_channels(3 * geometry.groups),
          x(images, g.image_size(), how),
          w(out_channels, g.patch_size(), how),
          y(images, out_channels * g.output_positions(), how),
          b(static_cast<std::size_t>(out_channels)) {
        x.randomize(1);
        w.randomize(2);
        y.randomize(3);  // dy of the backward pass
        for (std::size_t i = 0; i < b.size(); ++i) b[i] = 0.25F * static_cast<float>(i) - 0.5F;
    }
    [[nodiscard]] std::ptrdiff_t positions() const { return g.output_positions(); }

    template <class Bias>
    void forward(simulated exec, const Bias& bias) {
        gpu_test::workspace memory(mp::ops::conv2d_workspace(batch, out_channels, g));
        mp::ops::conv2d<mp::autocast::off>(memory.on(exec), x.view, w.view, bias, y.view, g);
    }
    template <class DX, class DW, class DB>
    void backward(simulated exec, const DX& dx, const DW& dw, DB&& db) {
        gpu_test::workspace memory(mp::ops::conv2d_backward_workspace(batch, out_channels, g));
        mp::ops::conv2d_backward<mp::autocast::off>(memory.on(exec), x.view, w.view, y.view, dx, dw, db, g);
    }
};

template <class X, class W, class Y>
void check_forward(const conv2d_geometry& g, std::ptrdiff_t batch, bool with_bias, layout how = {}) {
    problem<X, W, Y> it(g, batch, how);
    exact_matrix exact(batch, it.y.view.columns);
    for_each_product(g, batch, it.out_channels, [&](auto n, auto o, auto place, auto cell, auto weight) {
        exact.add(n, o * it.positions() + place,
                  static_cast<double>(it.x.view(n, cell)) * static_cast<double>(it.w.view(o, weight)));
    });
    if (with_bias) {
        it.forward({.seed = 2}, it.b);
        for (std::ptrdiff_t n = 0; n < batch; ++n) {
            for (std::ptrdiff_t i = 0; i < it.y.view.columns; ++i) {
                exact.add(n, i, static_cast<double>(it.b[static_cast<std::size_t>(i / it.positions())]));
            }
        }
    } else {
        it.forward({.seed = 2}, absent);
    }
    exact.check(it.y.view, unit<Y>);
    CHECK(it.y.is_contained());
}

template <class X, class W, class Y>
void check_backward(const conv2d_geometry& g, std::ptrdiff_t batch, layout how = {}) {
    problem<X, W, Y> it(g, batch, how);
    matrix<X> dx(batch, it.x.view.columns, how);
    matrix<W> dw(it.out_channels, it.w.view.columns, how);
    std::vector<float> db(static_cast<std::size_t>(it.out_channels));
    exact_matrix exact_dx(batch, dx.view.columns), exact_dw(dw.view.rows, dw.view.columns),
        exact_db(1, it.out_channels);
    for_each_product(g, batch, it.out_channels, [&](auto n, auto o, auto place, auto cell, auto weight) {
        const auto slope = static_cast<double>(it.y.view(n, o * it.positions() + place));
        exact_dx.add(n, cell, slope * static_cast<double>(it.w.view(o, weight)));
        exact_dw.add(o, weight, slope * static_cast<double>(it.x.view(n, cell)));
    });
    for (std::ptrdiff_t n = 0; n < batch; ++n) {
        for (std::ptrdiff_t i = 0; i < it.y.view.columns; ++i) {
            exact_db.add(0, i / it.positions(), static_cast<double>(it.y.view(n, i)));
        }
    }
    it.backward({.seed = 3}, dx.view, dw.view, db);
    exact_dx.check(dx.view, unit<X>);
    exact_dw.check(dw.view, unit<W>);
    exact_db.check([&](auto, auto c) { return db[static_cast<std::size_t>(c)]; }, unit<float>);
    CHECK(dx.is_contained());
    CHECK(dw.is_contained());
}

TEST_CASE_TEMPLATE("conv2d is the convolution by its definition, in every geometry", Value, half, float) {
    for (const conv2d_geometry& g : geometries) {
        check_forward<Value, Value, Value>(g, 2, true);
        check_backward<Value, Value, Value>(g, 2);
    }
}

TEST_CASE("conv2d in every layout, and in a mix of formats") {
    for (const layout& how : gpu_test::layouts) {
        check_forward<half, half, half>(geometries[5], 2, true, how);
        check_backward<half, half, half>(geometries[5], 2, how);
    }
    check_forward<bfloat16, bfloat16, float>(geometries[3], 1, false);
    check_backward<bfloat16, bfloat16, bfloat16>(geometries[3], 1);
    check_forward<half, float, half>(geometries[3], 2, true);
    check_backward<half, float, bfloat16>(geometries[3], 2);
    check_forward<mp::float8_e4m3fn, mp::float8_e4m3fn, half>(geometries[3], 1, false);
}

TEST_CASE("an image has the same bits in every batch, layout and schedule") {
    const conv2d_geometry& g = geometries[3];
    problem<half> one(g, 1), five(g, 5), other(g, 5, gpu_test::layouts[4]);
    one.x.fill([&](auto, auto c) { return five.x.view(3, c); });
    one.forward({}, one.b);
    five.forward({.seed = 7}, five.b);
    other.forward({.seed = 8}, other.b);
    CHECK(same_bits(five.y, other.y));
    for (std::ptrdiff_t i = 0; i < one.y.view.columns; ++i) {
        CHECK(same_bits(one.y.view(0, i), five.y.view(3, i)));
    }
    matrix<half> dx(5, five.x.view.columns), dx2(5, five.x.view.columns),
        dw(five.w.view.rows, five.w.view.columns), dw2(dw.view.rows, dw.view.columns);
    std::vector<float> db(five.b.size()), db2(five.b.size());
    five.backward({.seed = 1}, dx.view, dw.view, db);
    five.backward({.seed = 2}, dx2.view, dw2.view, db2);
    CHECK(same_bits(dx, dx2));
    CHECK(same_bits(dw, dw2));
    CHECK(db == db2);
}

TEST_CASE("few images at a time give the bits of all at once") {
    const conv2d_geometry& g = geometries[3];
    const auto all = mp::detail::convolution_memory::of(5, 3, g, true);
    CHECK(all.images == 5);
    problem<float> it(g, 5);
    matrix<float> dx(5, it.x.view.columns), part(5, it.x.view.columns), dw(3, it.w.view.columns),
        dw2(3, it.w.view.columns);
    it.backward({}, dx.view, dw.view, absent);
    mp::host_workspace memory;
    const simulated exec{.workspace = &memory};
    auto few = all;
    few.images = 2;
    using in = mp::matrix_view<const float>;
    mp::detail::convolve_dx(exec, few, in(it.w.view), in(it.y.view), part.view, g);
    mp::detail::convolve_dw(exec, few, in(it.x.view), in(it.y.view), dw2.view, g);
    CHECK(same_bits(dx, part));
    CHECK(same_bits(dw, dw2));
    CHECK(memory.used() == 0);
    // What is taken does not grow with the batch for ever.
    CHECK(mp::ops::conv2d_workspace(
              1'000'000, 64, {.channels = 64, .height = 56, .width = 56, .kernel = {3, 3}}) < std::size_t{66}
                                                                                                  << 20);
}

TEST_CASE("products of floats are those of the CPU, bit for bit") {
    const conv2d_geometry& g = geometries[5];
    problem<float> it(g, 3), expected(g, 3);
    it.forward({}, it.b);
    const mp::cpu host{.products = mp::accumulation::ordered};
    mp::ops::conv2d<mp::autocast::off>(host, expected.x.view, expected.w.view, expected.b, expected.y.view,
                                       g);
    CHECK(same_bits(it.y, expected.y));
    matrix<float> dx(3, it.x.view.columns), dx0(3, it.x.view.columns), dw(it.w.view.rows, it.w.view.columns),
        dw0(it.w.view.rows, it.w.view.columns);
    it.backward({}, dx.view, dw.view, absent);
    mp::ops::conv2d_backward<mp::autocast::off>(host, it.x.view, it.w.view, it.y.view, dx0.view, dw0.view,
                                                absent, g);
    CHECK(same_bits(dx, dx0));
    CHECK(same_bits(dw, dw0));
}

TEST_CASE("each gradient alone, added to what is there, and none") {
    const conv2d_geometry& g = geometries[3];
    problem<float> it(g, 2);
    matrix<float> dx(2, it.x.view.columns), dw(3, it.w.view.columns), sum(3, it.w.view.columns);
    std::vector<float> db(3), db2(3);
    it.backward({}, dx.view, dw.view, db);
    it.backward({}, absent, absent, db2);
    it.backward({}, absent, absent, absent);
    CHECK(db == db2);
    sum.fill([](auto, auto) { return 2.0F; });
    mp::host_workspace memory;
    mp::ops::conv2d_backward<mp::autocast::off>(simulated{.workspace = &memory}, it.x.view, it.w.view,
                                                it.y.view, absent, mp::ops::add_to(sum.view), absent, g);
    for (std::ptrdiff_t c = 0; c < dw.view.columns; ++c) CHECK(sum.view(1, c) == 2.0F + dw.view(1, c));
}

TEST_CASE("wrong arguments are refused as on the CPU, before anything is written") {
    const conv2d_geometry& g = geometries[3];
    problem<half> it(g, 2);
    mp::host_workspace memory;
    const simulated exec{.workspace = &memory};
    matrix<half> small(2, 5);
    CHECK_THROWS_WITH_AS(mp::ops::conv2d(exec, it.x.view, it.w.view, absent, small.view, g),
                         "mp::ops::conv2d: y.columns is 5; it must equal w.rows * the output positions of "
                         "geometry, which is 189",
                         mp::argument_error);
    const half before = it.y.view(0, 0);
    CHECK_THROWS_AS(mp::ops::conv2d(simulated{}, it.x.view, it.w.view, absent, it.y.view, g),
                    mp::argument_error);
    gpu_test::workspace little(mp::ops::conv2d_workspace(2, 3, g) - 512);
    CHECK_THROWS_AS(mp::ops::conv2d(little.on(), it.x.view, it.w.view, absent, it.y.view, g),
                    mp::argument_error);
    CHECK(same_bits(it.y.view(0, 0), before));
    matrix<half> dx(2, it.x.view.columns);
    dx.fill([](auto, auto) { return 5.0F; });
    matrix<half> dw(3, it.w.view.columns);
    gpu_test::workspace less(mp::ops::conv2d_backward_workspace(2, 3, g) - 512);
    CHECK_THROWS_AS(
        mp::ops::conv2d_backward(less.on(), it.x.view, it.w.view, it.y.view, dx.view, dw.view, absent, g),
        mp::argument_error);
    CHECK(static_cast<float>(dx.view(0, 0)) == 5.0F);
    // No images: nothing, and gradients of zero. No output channels: dx of zero.
    const mp::matrix_view<half> no_images{nullptr, 0, it.x.view.columns, it.x.view.columns},
        no_results{nullptr, 0, it.y.view.columns, it.y.view.columns},
        no_weights{nullptr, 0, it.w.view.columns, it.w.view.columns}, nothing{nullptr, 2, 0, 0};
    std::vector<float> db(3, 5.0F);
    mp::ops::conv2d(exec, no_images, it.w.view, absent, no_results, g);
    mp::ops::conv2d_backward(exec, no_images, it.w.view, no_results, no_images, dw.view, db, g);
    CHECK(static_cast<float>(dw.view(2, 3)) == 0.0F);
    CHECK(db == std::vector<float>(3));
    mp::ops::conv2d(exec, it.x.view, no_weights, absent, nothing, g);
    mp::ops::conv2d_backward(exec, it.x.view, no_weights, nothing, dx.view, no_weights, absent, g);
    CHECK(static_cast<float>(dx.view(1, 7)) == 0.0F);
}

}  // namespace
