// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/pooling.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "reference.hpp"

namespace {

using mp::bfloat16;
using mp::half;
using mp::storage_order;
using mp::ops::average_over;
using mp::ops::pool2d_geometry;
using ops_test::matrix;
using ops_test::message_of;
using ops_test::same_bits;
namespace ac = mp::autocast;

static_assert(
    std::same_as<ac::compute_type_t<ac::fp16, mp::ops::max_pool2d_op, mp::matrix_view<const float>>, float>);
static_assert(
    std::same_as<ac::compute_type_t<ac::fp16, mp::ops::average_pool2d_op, mp::matrix_view<const bfloat16>>,
                 bfloat16>);

const pool2d_geometry geometries[] = {
    {},
    {.channels = 2, .height = 4, .width = 6, .kernel = {2, 2}},
    {.channels = 2, .height = 7, .width = 5, .kernel = {3, 2}, .stride = {2, 1}},
    {.channels = 3, .height = 5, .width = 6, .kernel = {3, 4}, .stride = {1, 2}, .padding = {1, 2}},
    {.channels = 1, .height = 1, .width = 1, .kernel = {2, 3}, .stride = {5, 5}, .padding = {1, 1}},
};

/// The cells of every window of one channel, found by trying all of them, and how many cells the window has.
struct window {
    std::vector<std::ptrdiff_t> cells;
    double area;
};
std::vector<window> windows_of(const pool2d_geometry& g) {
    const auto step = g.stride.height == 0 ? g.kernel : g.stride;
    std::vector<window> all;
    for (auto top = -g.padding.height; top + g.kernel.height <= g.height + g.padding.height;
         top += step.height) {
        for (auto left = -g.padding.width; left + g.kernel.width <= g.width + g.padding.width;
             left += step.width) {
            window w{{}, static_cast<double>(g.kernel.height * g.kernel.width)};
            for (std::ptrdiff_t cell = 0; cell < g.height * g.width; ++cell) {
                const auto line = cell / g.width, column = cell % g.width;
                if (line >= top && line < top + g.kernel.height && column >= left &&
                    column < left + g.kernel.width) {
                    w.cells.push_back(cell);
                }
            }
            all.push_back(w);
        }
    }
    return all;
}

/// The pooled images and their gradients in double, against the ops, where x has values with many ties.
template <class X, class Y>
void check_pooling(const pool2d_geometry& g, storage_order order) {
    const std::ptrdiff_t batch = 3, cells = g.height * g.width;
    const auto windows = windows_of(g);
    const auto positions = static_cast<std::ptrdiff_t>(windows.size());
    CHECK(positions == g.output_size().height * g.output_size().width);
    matrix<X> x(batch, g.channels * cells, 2, order);
    matrix<Y> y(batch, g.channels * positions, 1, order), dy(batch, g.channels * positions, 3);
    matrix<X> dx(batch, g.channels * cells, 1, order);
    x.randomize(1);
    x.fill([&](auto r, auto c) {
        return mp::round_to<X>(std::floor(4.0 * static_cast<double>(x.view(r, c))) / 4.0);
    });
    dy.randomize(2);
    // Half the distance of the numbers around a value, and what two sums in double can differ by.
    const auto unit = [](double value, auto type) {
        using format = mp::detail::format_of_t<decltype(type)>;
        return std::abs(value) * std::ldexp(1.0, -mp::layout_of<format>::precision) +
               0.5 * static_cast<double>(std::numeric_limits<decltype(type)>::denorm_min()) + 1e-12;
    };
    enum class op { largest, whole, inside };
    for (const op which : {op::largest, op::whole, op::inside}) {
        const auto over = which == op::whole ? average_over::whole_window : average_over::pixels_inside;
        if (which == op::largest) {
            mp::ops::max_pool2d(mp::cpu{}, x.view, y.view, g);
            mp::ops::max_pool2d_backward(mp::cpu{}, x.view, dy.view, dx.view, g);
        } else {
            mp::ops::average_pool2d(mp::cpu{}, x.view, y.view, g, over);
            mp::ops::average_pool2d_backward(mp::cpu{}, dy.view, dx.view, g, over);
        }
        bool y_is_right = true, dx_is_right = true;
        for (std::ptrdiff_t n = 0; n < batch; ++n) {
            for (std::ptrdiff_t channel = 0; channel < g.channels; ++channel) {
                std::vector<double> sums(static_cast<std::size_t>(cells));
                for (std::ptrdiff_t position = 0; position < positions; ++position) {
                    const window& w = windows[static_cast<std::size_t>(position)];
                    const auto gradient = static_cast<double>(dy.view(n, channel * positions + position));
                    const auto divisor = which == op::whole ? w.area : static_cast<double>(w.cells.size());
                    double expected = which == op::largest ? -1e9 : 0;
                    std::ptrdiff_t chosen = -1;
                    for (const auto cell : w.cells) {
                        const auto value = static_cast<double>(x.view(n, channel * cells + cell));
                        if (which != op::largest) {
                            expected += value / divisor;
                            sums[static_cast<std::size_t>(cell)] += gradient / divisor;
                        } else if (value > expected) {
                            expected = value;
                            chosen = cell;
                        }
                    }
                    if (chosen >= 0) sums[static_cast<std::size_t>(chosen)] += gradient;
                    const auto found = static_cast<double>(y.view(n, channel * positions + position));
                    y_is_right = y_is_right && std::abs(found - expected) <= unit(expected, Y{});
                }
                for (std::ptrdiff_t cell = 0; cell < cells; ++cell) {
                    const double expected = sums[static_cast<std::size_t>(cell)];
                    const auto found = static_cast<double>(dx.view(n, channel * cells + cell));
                    dx_is_right = dx_is_right && std::abs(found - expected) <= unit(expected, X{});
                }
            }
        }
        CHECK(y_is_right);
        CHECK(dx_is_right);
        CHECK(y.padding_is_untouched());
        CHECK(dx.padding_is_untouched());
    }
}

TEST_CASE("pooling and its gradients are those of the definition, in every mix of formats and orders") {
    for (const pool2d_geometry& g : geometries) {
        for (const storage_order order : {storage_order::row_major, storage_order::column_major}) {
            check_pooling<float, float>(g, order);
            check_pooling<half, half>(g, order);
            check_pooling<bfloat16, float>(g, order);
            check_pooling<float, bfloat16>(g, order);
            check_pooling<mp::float8_e4m3fn, half>(g, order);
        }
    }
}

TEST_CASE("the gradient of the largest cell goes to the first of equals and to the first NaN") {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const pool2d_geometry g{.channels = 1, .height = 2, .width = 6, .kernel = {2, 2}};
    matrix<half> x(1, 12), y(1, 3), dy(1, 3), dx(1, 12);
    const float values[12] = {1, 7, 2,   nan, 5, 5,  //
                              7, 1, nan, 9,   5, 5};
    x.fill([&](auto, auto c) { return half(values[c]); });
    dy.fill([](auto, auto c) { return half(c + 1); });
    mp::ops::max_pool2d(mp::cpu{}, x.view, y.view, g);
    CHECK(y.view(0, 0) == half(7));
    CHECK(mp::isnan(y.view(0, 1)));
    CHECK(y.view(0, 2) == half(5));
    mp::ops::max_pool2d_backward(mp::cpu{}, x.view, dy.view, dx.view, g);
    for (std::ptrdiff_t c = 0; c < 12; ++c) {
        CHECK(dx.view(0, c) == half(c == 1 ? 1 : c == 3 ? 2 : c == 4 ? 3 : 0));
    }
    mp::ops::average_pool2d(mp::cpu{}, x.view, y.view, g);
    CHECK(y.view(0, 0) == half(4));
    CHECK(mp::isnan(y.view(0, 1)));
}

TEST_CASE("windows in the padding see values below zero, and infinity is the largest or smallest value") {
    const float infinity = std::numeric_limits<float>::infinity();
    const pool2d_geometry g{.height = 1, .width = 3, .kernel = {1, 2}, .stride = {1, 1}, .padding = {0, 1}};
    matrix<float> x(1, 3), y(1, 4);
    const float values[3] = {-3, -infinity, infinity};
    x.fill([&](auto, auto c) { return values[c]; });
    mp::ops::max_pool2d(mp::cpu{}, x.view, y.view, g);
    CHECK(y.elements == std::vector<float>{-3, -3, infinity, infinity});
    x.view(0, 0) = -infinity;
    mp::ops::max_pool2d(mp::cpu{}, x.view, y.view, g);
    CHECK(y.elements == std::vector<float>{-infinity, -infinity, infinity, infinity});
    mp::ops::average_pool2d(mp::cpu{}, x.view, y.view, g);
    CHECK(mp::isnan(y.view(0, 2)));  // -infinity + infinity
}

TEST_CASE("an average in half is a wide sum, rounded once") {
    const pool2d_geometry g{.height = 64, .width = 64, .kernel = {64, 64}};
    matrix<half> x(1, 4096), y(1, 1);
    x.fill([](auto, auto) { return half(60000); });  // the sum is far above what half holds
    mp::ops::average_pool2d(mp::cpu{}, x.view, y.view, g);
    CHECK(y.view(0, 0) == half(60000));
}

TEST_CASE("autocast leaves pooling in the formats of its arguments") {
    const pool2d_geometry g = geometries[3];
    matrix<float> x(2, 90), y(2, 60), plain(2, 60), dy(2, 60), dx(2, 90), plain_dx(2, 90);
    x.randomize(1);
    dy.randomize(2);
    mp::ops::max_pool2d(mp::cpu{}, x.view, plain.view, g);
    mp::ops::max_pool2d_backward(mp::cpu{}, x.view, dy.view, plain_dx.view, g);
    const mp::autocast_region region(mp::precision::fp16);
    mp::ops::max_pool2d(mp::cpu{}, x.view, y.view, g);
    mp::ops::max_pool2d_backward(mp::cpu{}, x.view, dy.view, dx.view, g);
    CHECK(same_bits(y, plain));
    CHECK(same_bits(dx, plain_dx));
}

TEST_CASE("pooling does not depend on the number of threads, and an empty batch is nothing") {
    const pool2d_geometry g{
        .channels = 3, .height = 20, .width = 20, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
    matrix<half> x(60, 1200), dy(60, 300);
    x.randomize(1);
    dy.randomize(2);
    const auto run = [&](mp::cpu exec) {
        matrix<half> y(60, 300), average(60, 300), dx(60, 1200), average_dx(60, 1200);
        mp::ops::max_pool2d(exec, x.view, y.view, g);
        mp::ops::average_pool2d(exec, x.view, average.view, g);
        mp::ops::max_pool2d_backward(exec, x.view, dy.view, dx.view, g);
        mp::ops::average_pool2d_backward(exec, dy.view, average_dx.view, g);
        std::vector<half> all;
        for (const auto* part : {&y, &average, &dx, &average_dx}) {
            all.insert(all.end(), part->elements.begin(), part->elements.end());
        }
        return all;
    };
    CHECK(run({.threads = 1}) == run({.threads = 3}));
    matrix<half> none(0, 1200), pooled(0, 300);
    mp::ops::max_pool2d(mp::cpu{}, none.view, pooled.view, g);
    mp::ops::average_pool2d_backward(mp::cpu{}, pooled.view, none.view, g);
}

TEST_CASE("pooling names the argument that does not fit, and writes nothing") {
    const mp::cpu exec{};
    const pool2d_geometry g{.channels = 1, .height = 4, .width = 4, .kernel = {2, 2}};
    matrix<float> x(2, 16), y(2, 4), dx(2, 16);
    x.randomize(1);
    const auto fails = [&](auto xv, auto yv, const pool2d_geometry& geometry) {
        std::string largest = message_of([&] { mp::ops::max_pool2d(exec, xv, yv, geometry); });
        std::string average = message_of([&] { mp::ops::average_pool2d(exec, xv, yv, geometry); });
        REQUIRE(largest.starts_with("mp::ops::max_pool2d: "));
        REQUIRE(average.starts_with("mp::ops::average_pool2d: "));
        CHECK(largest.substr(21) == average.substr(25));
        CHECK(y.elements == std::vector<float>(8, -88.0F));
        return largest.substr(21);
    };
    CHECK(fails(x.view.block(0, 0, 2, 15), y.view, g) ==
          "x.columns is 15; it must equal geometry.channels * geometry.height * geometry.width, which is 16");
    CHECK(fails(x.view, y.view.block(0, 0, 1, 4), g) == "y.rows is 1; it must equal x.rows, which is 2");
    CHECK(fails(x.view, y.view.block(0, 0, 2, 3), g) ==
          "y.columns is 3; it must equal geometry.channels * the output positions of geometry, which is 4");
    CHECK(fails(mp::row_major(y.view.data, 2, 16), y.view, g) ==
          "y overlaps x; they must not share elements, because y is written while x is in use");
    CHECK(fails(x.view, y.view, {.kernel = {2, 2}}) ==
          "geometry.kernel.height is 2; it must, spread by the dilation, fit into the padded image, which "
          "has 1 "
          "cells there");
    CHECK(fails(x.view, y.view, {.height = 4, .width = 4, .kernel = {3, 3}, .padding = {2, 0}}) ==
          "geometry.padding.height is 2; it must be at most half of geometry.kernel.height, which is 3");
    CHECK(fails(x.view, y.view, {.height = 4, .width = 4, .kernel = {3, 3}, .padding = {1, 2}}) ==
          "geometry.padding.width is 2; it must be at most half of geometry.kernel.width, which is 3");
    CHECK(fails(x.view, y.view, {.height = 4, .width = 4, .stride = {0, 1}}) ==
          "geometry.stride.height is 0; it must be at least 1");
    CHECK(message_of([&] {
              mp::ops::average_pool2d(exec, x.view, y.view, g, static_cast<average_over>(7));
          }) == "mp::ops::average_pool2d: over is 7; it must be an enumerator of mp::ops::average_over");
    y.randomize(2);
    CHECK(message_of([&] { mp::ops::max_pool2d_backward(exec, x.view, y.view, x.view, g); }) ==
          "mp::ops::max_pool2d_backward: dx overlaps x; they must not share elements, because dx is written "
          "while "
          "x is in use");
    CHECK(message_of([&] {
              mp::ops::max_pool2d_backward(exec, x.view, y.view, dx.view.block(0, 0, 1, 16), g);
          }) == "mp::ops::max_pool2d_backward: dx.rows is 1; it must equal x.rows, which is 2");
    CHECK(message_of([&] { mp::ops::average_pool2d_backward(exec, y.view.block(0, 0, 2, 3), dx.view, g); }) ==
          "mp::ops::average_pool2d_backward: dy.columns is 3; it must equal geometry.channels * the output "
          "positions of geometry, which is 4");
    CHECK(message_of([&] { mp::ops::max_pool2d(mp::cpu{.threads = 0}, x.view, y.view, g); }) ==
          "mp::ops::max_pool2d: exec.threads is 0; it must be at least 1");
    matrix<float> one_y(1, 4);
    one_y.randomize(3);
    const pool2d_geometry same{.height = 2, .width = 2};
    CHECK(message_of([&] {
              mp::ops::max_pool2d_backward(exec, x.view.block(0, 0, 1, 4), one_y.view, one_y.view, same);
          }) ==
          "mp::ops::max_pool2d_backward: dx overlaps dy; they must not share elements, because dx is written "
          "while "
          "dy is in use");
    CHECK(message_of([&] { mp::ops::average_pool2d_backward(exec, one_y.view, one_y.view, same); }) ==
          "mp::ops::average_pool2d_backward: dx overlaps dy; they must not share elements, because dx is "
          "written "
          "while dy is in use");
    CHECK(dx.elements == std::vector<float>(32, -88.0F));
}

}  // namespace
