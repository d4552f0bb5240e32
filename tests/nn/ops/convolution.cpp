// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/convolution.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "reference.hpp"

namespace {

using mp::bfloat16;
using mp::half;
using mp::storage_order;
using mp::ops::absent;
using mp::ops::conv2d_geometry;
using ops_test::cast;
using ops_test::matrix;
using ops_test::message_of;
using ops_test::random_vector;
using ops_test::same_bits;
namespace ac = mp::autocast;

static_assert(
    std::same_as<ac::compute_type_t<ac::fp16, mp::ops::conv2d_op, mp::matrix_view<const float>>, half>);
static_assert(
    std::same_as<ac::compute_type_t<ac::bf16, mp::ops::conv2d_backward_op, mp::matrix_view<const float>>,
                 bfloat16>);

/// Places of the kernel, counted one by one.
std::ptrdiff_t count_places(std::ptrdiff_t size, std::ptrdiff_t kernel, std::ptrdiff_t stride,
                            std::ptrdiff_t padding, std::ptrdiff_t dilation) {
    std::ptrdiff_t count = 0;
    for (std::ptrdiff_t first = -padding; first + dilation * (kernel - 1) < size + padding; first += stride)
        ++count;
    return count;
}

struct output {
    std::ptrdiff_t height;
    std::ptrdiff_t width;
};
output output_of(const conv2d_geometry& g) {
    return {count_places(g.height, g.kernel.height, g.stride.height, g.padding.height, g.dilation.height),
            count_places(g.width, g.kernel.width, g.stride.width, g.padding.width, g.dilation.width)};
}

/// One element of the convolution in double, by the definition.
template <class X, class W>
double reference_element(const matrix<X>& x, const matrix<W>& w, const conv2d_geometry& g, std::ptrdiff_t n,
                         std::ptrdiff_t o, std::ptrdiff_t i, std::ptrdiff_t j) {
    const std::ptrdiff_t part = g.channels / g.groups;
    const std::ptrdiff_t group = o / (w.view.rows / g.groups);
    double sum = 0;
    for (std::ptrdiff_t c = 0; c < part; ++c) {
        for (std::ptrdiff_t r = 0; r < g.kernel.height; ++r) {
            for (std::ptrdiff_t s = 0; s < g.kernel.width; ++s) {
                const std::ptrdiff_t line = i * g.stride.height + r * g.dilation.height - g.padding.height;
                const std::ptrdiff_t column = j * g.stride.width + s * g.dilation.width - g.padding.width;
                if (line < 0 || line >= g.height || column < 0 || column >= g.width) continue;
                const auto cell = ((group * part + c) * g.height + line) * g.width + column;
                const auto weight = (c * g.kernel.height + r) * g.kernel.width + s;
                sum += static_cast<double>(x.view(n, cell)) * static_cast<double>(w.view(o, weight));
            }
        }
    }
    return sum;
}

/// Half a unit of Value's last place, and the error of a float sum of `terms` products below 1.
template <class Value>
double tolerance(double x, double terms) {
    return std::abs(x) * std::ldexp(1.0, -mp::layout_of<mp::detail::format_of_t<Value>>::precision) +
           terms * terms * 0x1p-24 + 0x1p-25;
}

const conv2d_geometry geometries[] = {
    {},
    {.channels = 3, .height = 5, .width = 4},
    {.channels = 2, .height = 6, .width = 5, .kernel = {3, 2}},
    {.channels = 2, .height = 5, .width = 7, .kernel = {3, 3}, .padding = {1, 1}},
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

/// Weights for 2 output channels in each group.
std::ptrdiff_t out_channels(const conv2d_geometry& g) {
    return 2 * g.groups;
}

template <class X, class W, class B, class Y>
void check_forward(const conv2d_geometry& g, storage_order order, bool with_bias) {
    const std::ptrdiff_t batch = 3;
    const output out = output_of(g);
    matrix<X> x(batch, g.channels * g.height * g.width, 3, order);
    matrix<W> w(out_channels(g), g.channels / g.groups * g.kernel.height * g.kernel.width, 1, order);
    matrix<Y> y(batch, w.view.rows * out.height * out.width, 2, order);
    x.randomize(1);
    w.randomize(2);
    const auto b = random_vector<B>(static_cast<std::size_t>(w.view.rows), 3);
    if (with_bias) {
        mp::ops::conv2d(mp::cpu{}, x.view, w.view, b, y.view, g);
    } else {
        mp::ops::conv2d(mp::cpu{}, x.view, w.view, absent, y.view, g);
    }
    bool all_close = true;
    for (std::ptrdiff_t n = 0; n < batch; ++n) {
        for (std::ptrdiff_t o = 0; o < w.view.rows; ++o) {
            for (std::ptrdiff_t i = 0; i < out.height; ++i) {
                for (std::ptrdiff_t j = 0; j < out.width; ++j) {
                    const double expected =
                        reference_element(x, w, g, n, o, i, j) +
                        (with_bias ? static_cast<double>(b[static_cast<std::size_t>(o)]) : 0);
                    const auto found = static_cast<double>(y.view(n, (o * out.height + i) * out.width + j));
                    const auto terms = static_cast<double>(w.view.columns + 1);
                    all_close = all_close && std::abs(found - expected) <= tolerance<Y>(expected, terms);
                }
            }
        }
    }
    CHECK(all_close);
    CHECK(y.padding_is_untouched());
}

TEST_CASE("a geometry counts the places of the kernel, and the cells of images and kernels") {
    for (const conv2d_geometry& g : geometries) {
        const output out = output_of(g);
        CHECK(g.output_size().height == out.height);
        CHECK(g.output_size().width == out.width);
        CHECK(g.output_positions() == out.height * out.width);
    }
    CHECK(geometries[5].image_size() == 4 * 8 * 7);
    CHECK(geometries[5].patch_size() == 2 * 3 * 2);
}

TEST_CASE("conv2d is the sum over the cells of the kernel, in every mix of formats, orders and geometries") {
    for (const conv2d_geometry& g : geometries) {
        for (const storage_order order : {storage_order::row_major, storage_order::column_major}) {
            for (const bool with_bias : {true, false}) {
                check_forward<float, float, float, float>(g, order, with_bias);
                check_forward<half, half, half, half>(g, order, with_bias);
                check_forward<bfloat16, half, float, bfloat16>(g, order, with_bias);
                check_forward<mp::float8_e4m3fn, mp::float8_e5m2, half, float>(g, order, with_bias);
            }
        }
    }
}

/// dx, dw and db of a geometry against central differences of L = sum of dy * conv2d(x, w, b). L is linear in
/// each variable, so the differences have no error but the rounding of double.
template <class Value>
void check_backward(const conv2d_geometry& g, storage_order order) {
    const std::ptrdiff_t batch = 2;
    const output out = output_of(g);
    matrix<double> x(batch, g.channels * g.height * g.width);
    matrix<double> w(out_channels(g), g.channels / g.groups * g.kernel.height * g.kernel.width);
    matrix<double> b(1, w.view.rows);
    matrix<double> t(batch, w.view.rows * out.height * out.width);
    unsigned seed = 10;
    for (auto* m : {&x, &w, &b, &t}) {
        m->randomize(seed++);
        m->fill([&](auto r, auto c) { return static_cast<double>(mp::round_to<Value>(m->view(r, c))); });
    }
    const auto loss = [&] {
        double sum = 0;
        for (std::ptrdiff_t n = 0; n < batch; ++n) {
            for (std::ptrdiff_t o = 0; o < w.view.rows; ++o) {
                for (std::ptrdiff_t i = 0; i < out.height; ++i) {
                    for (std::ptrdiff_t j = 0; j < out.width; ++j) {
                        sum += t.view(n, (o * out.height + i) * out.width + j) *
                               (b.view(0, o) + reference_element(x, w, g, n, o, i, j));
                    }
                }
            }
        }
        return sum;
    };
    const auto low = [&](const matrix<double>& from) {
        matrix<Value> to(from.view.rows, from.view.columns, 1, order);
        to.fill([&](auto r, auto c) { return mp::round_to<Value>(from.view(r, c)); });
        return to;
    };
    const auto low_x = low(x), low_w = low(w), low_t = low(t);
    matrix<Value> dx(batch, x.view.columns, 2, order), dw(w.view.rows, w.view.columns, 3, order);
    std::vector<Value> db(static_cast<std::size_t>(w.view.rows));
    mp::ops::conv2d_backward(mp::cpu{}, low_x.view, low_w.view, low_t.view, dx.view, dw.view, db, g);
    const auto terms = static_cast<double>(batch * out.height * out.width + w.view.columns * w.view.rows);
    bool all_close = true;
    const auto compare = [&](Value gradient, double& variable) {
        const double expected = ops_test::derivative(variable, loss, 0x1p-10);
        all_close = all_close && std::abs(static_cast<double>(gradient) - expected) <=
                                     tolerance<Value>(expected, terms) + 1e-10;
    };
    for (std::ptrdiff_t n = 0; n < batch; ++n) {
        for (std::ptrdiff_t c = 0; c < x.view.columns; ++c) compare(dx.view(n, c), x.view(n, c));
    }
    for (std::ptrdiff_t o = 0; o < w.view.rows; ++o) {
        for (std::ptrdiff_t c = 0; c < w.view.columns; ++c) compare(dw.view(o, c), w.view(o, c));
        compare(db[static_cast<std::size_t>(o)], b.view(0, o));
    }
    CHECK(all_close);
    CHECK(dx.padding_is_untouched());
    CHECK(dw.padding_is_untouched());
}

TEST_CASE("the gradients of conv2d are those of central differences") {
    for (const conv2d_geometry& g : geometries) {
        for (const storage_order order : {storage_order::row_major, storage_order::column_major}) {
            check_backward<float>(g, order);
            check_backward<half>(g, order);
            check_backward<bfloat16>(g, order);
        }
    }
}

/// A layer that every test below can use.
struct layer {
    conv2d_geometry geometry{.channels = 4,
                             .height = 9,
                             .width = 8,
                             .kernel = {3, 3},
                             .stride = {2, 1},
                             .padding = {1, 1},
                             .groups = 2};
    matrix<float> x{5, 4 * 9 * 8};
    matrix<float> w{6, 2 * 3 * 3};
    matrix<float> dy{5, 6 * 5 * 8};
    std::vector<float> b = random_vector<float>(6, 7);

    layer() {
        x.randomize(4);
        w.randomize(5);
        dy.randomize(6);
    }
};

template <class Low>
void check_equal_to_casting_by_hand(const layer& l) {
    matrix<float> y(5, 240, 1), dx(5, 288), dw(6, 18, 2, storage_order::column_major);
    std::vector<float> db(6);
    mp::ops::conv2d(mp::cpu{}, l.x.view, l.w.view, l.b, y.view, l.geometry);
    mp::ops::conv2d_backward(mp::cpu{}, l.x.view, l.w.view, l.dy.view, dx.view, dw.view, db, l.geometry);
    const auto x = cast<Low>(l.x), w = cast<Low>(l.w), dy = cast<Low>(l.dy);
    const auto b = cast<Low>(l.b);
    matrix<Low> low_y(5, 240), low_dx(5, 288), low_dw(6, 18);
    std::vector<Low> low_db(6);
    mp::ops::conv2d<ac::off>(mp::cpu{}, x.view, w.view, b, low_y.view, l.geometry);
    mp::ops::conv2d_backward<ac::off>(mp::cpu{}, x.view, w.view, dy.view, low_dx.view, low_dw.view, low_db,
                                      l.geometry);
    CHECK(same_bits(y, low_y));
    CHECK(same_bits(dx, low_dx));
    CHECK(same_bits(dw, low_dw));
    CHECK(db == cast<float>(low_db));
    CHECK(y.padding_is_untouched());
    matrix<float> plain(5, 240);
    mp::ops::conv2d<ac::off>(mp::cpu{}, l.x.view, l.w.view, l.b, plain.view, l.geometry);
    CHECK_FALSE(same_bits(y, plain));
}

TEST_CASE("autocast of conv2d equals casting by hand, bit for bit") {
    const layer l;
    {
        const mp::autocast_region region(mp::precision::fp16);
        check_equal_to_casting_by_hand<half>(l);
    }
    const mp::autocast_region region(mp::precision::bf16);
    check_equal_to_casting_by_hand<bfloat16>(l);
}

TEST_CASE("gradients of conv2d that nobody needs are not computed") {
    const layer l;
    matrix<float> dx(5, 288), dw(6, 18), all_dx(5, 288), all_dw(6, 18);
    std::vector<float> db(6), all_db(6);
    const auto backward = [&](auto to_x, auto to_w, auto&& to_b) {
        mp::ops::conv2d_backward(mp::cpu{}, l.x.view, l.w.view, l.dy.view, to_x, to_w, to_b, l.geometry);
    };
    backward(all_dx.view, all_dw.view, all_db);
    backward(dx.view, absent, absent);
    backward(absent, dw.view, absent);
    backward(absent, absent, db);
    backward(absent, absent, absent);
    CHECK(same_bits(dx, all_dx));
    CHECK(same_bits(dw, all_dw));
    CHECK(db == all_db);
}

TEST_CASE("the results of conv2d do not depend on the number of threads") {
    const conv2d_geometry g{.channels = 8, .height = 24, .width = 24, .kernel = {3, 3}, .padding = {1, 1}};
    for (const std::ptrdiff_t batch : {2, 7}) {
        matrix<half> x(batch, 8 * 576), w(16, 72), dy(batch, 16 * 576);
        x.randomize(30);
        w.randomize(31);
        dy.randomize(32);
        const auto b = random_vector<half>(16, 33);
        const auto run = [&](mp::cpu exec) {
            matrix<half> y(batch, 16 * 576), dx(batch, 8 * 576), dw(16, 72);
            std::vector<half> db(16);
            const mp::autocast_region region(mp::precision::bf16);
            mp::ops::conv2d(exec, x.view, w.view, b, y.view, g);
            mp::ops::conv2d_backward(exec, x.view, w.view, dy.view, dx.view, dw.view, db, g);
            std::vector<half> all;
            for (const auto* part : {&y.elements, &dx.elements, &dw.elements, &db}) {
                all.insert(all.end(), part->begin(), part->end());
            }
            return all;
        };
        CHECK(run({.threads = 1}) == run({.threads = 3}));
    }
}

TEST_CASE("the gradients of conv2d are wide sums over the batch, rounded once") {
    // In half the sums would stop at 2048. Wide ones are 4096 + 3, which half, with a spacing of 4, rounds
    // up.
    const std::ptrdiff_t batch = 2049;
    const conv2d_geometry g{.height = 1, .width = 2};
    matrix<half> x(batch, 2), w(1, 1), dy(batch, 2), dw(1, 1);
    x.fill([](auto, auto) { return half(1); });
    w.fill([](auto, auto) { return half(1); });
    dy.fill([&](auto n, auto) { return half(n == batch - 1 ? 1.5F : 1.0F); });
    std::vector<half> db(1);
    mp::ops::conv2d_backward(mp::cpu{}, x.view, w.view, dy.view, absent, dw.view, db, g);
    CHECK(dw.view(0, 0) == half(4100));
    CHECK(db[0] == half(4100));
}

TEST_CASE("half gradients of conv2d flush to zero, and a scale brings them back") {
    matrix<half> x(1, 1), w(1, 1), dy(1, 1), dw(1, 1);
    x.view(0, 0) = half(0x1p-3F);
    w.view(0, 0) = half(1);
    for (const bool scaled : {false, true}) {
        dy.view(0, 0) = half(scaled ? 0x1p-13F : 0x1p-23F);
        mp::ops::conv2d_backward(mp::cpu{}, x.view, w.view, dy.view, absent, dw.view, absent, {});
        CHECK(static_cast<float>(dw.view(0, 0)) == (scaled ? 0x1p-16F : 0.0F));
    }
}

TEST_CASE("NaN and infinity reach the places whose kernel covers them, and no others") {
    const conv2d_geometry g{.height = 1, .width = 6, .kernel = {1, 2}};
    matrix<half> x(1, 6), w(1, 2), y(1, 5);
    x.fill([](auto, auto c) {
        return c == 1 ? std::numeric_limits<half>::quiet_NaN()
                      : (c == 4 ? std::numeric_limits<half>::infinity() : half(1));
    });
    w.fill([](auto, auto) { return half(1); });
    mp::ops::conv2d(mp::cpu{}, x.view, w.view, absent, y.view, g);
    CHECK(mp::isnan(y.view(0, 0)));
    CHECK(mp::isnan(y.view(0, 1)));
    CHECK(y.view(0, 2) == half(2));
    CHECK(mp::isinf(y.view(0, 3)));
    CHECK(mp::isinf(y.view(0, 4)));
}

TEST_CASE("an empty batch of images gives zero gradients of the weights") {
    const conv2d_geometry g{.height = 3, .width = 3, .kernel = {2, 2}};
    matrix<float> x(0, 9), w(2, 4), y(0, 8), dw(2, 4);
    w.randomize(1);
    std::vector<float> db = {1.0F, 2.0F};
    mp::ops::conv2d(mp::cpu{}, x.view, w.view, absent, y.view, g);
    mp::ops::conv2d_backward(mp::cpu{}, x.view, w.view, y.view, absent, dw.view, db, g);
    CHECK(dw.elements == std::vector<float>(8, 0.0F));
    CHECK(db == std::vector<float>{0.0F, 0.0F});
}

TEST_CASE("a layer without output channels has a gradient of zero") {
    matrix<float> x(2, 9), w(0, 9), y(2, 0), dx(2, 9);
    const conv2d_geometry g{.height = 3, .width = 3, .kernel = {3, 3}};
    mp::ops::conv2d(mp::cpu{}, x.view, w.view, absent, y.view, g);
    mp::ops::conv2d_backward(mp::cpu{}, x.view, w.view, y.view, dx.view, w.view, absent, g);
    CHECK(dx.elements == std::vector<float>(18, 0.0F));
}

TEST_CASE("a geometry without output is refused by name") {
    const auto fails = [](const conv2d_geometry& g) { return message_of([&] { (void)g.output_size(); }); };
    CHECK(fails({.channels = 0}) ==
          "mp::ops::conv2d_geometry: geometry.channels is 0; it must be at least 1");
    CHECK(fails({.height = -1}) == "mp::ops::conv2d_geometry: geometry.height is -1; it must be at least 1");
    CHECK(fails({.width = 0x8000'0000}) ==
          "mp::ops::conv2d_geometry: geometry.width is 2147483648; it must be at most 2147483647");
    CHECK(fails({.kernel = {0, 1}}) ==
          "mp::ops::conv2d_geometry: geometry.kernel.height is 0; it must be at least 1");
    CHECK(fails({.stride = {1, 0}}) ==
          "mp::ops::conv2d_geometry: geometry.stride.width is 0; it must be at least 1");
    CHECK(fails({.padding = {-1, 0}}) ==
          "mp::ops::conv2d_geometry: geometry.padding.height is -1; it must not be negative");
    CHECK(fails({.dilation = {0, 1}}) ==
          "mp::ops::conv2d_geometry: geometry.dilation.height is 0; it must be at least 1");
    CHECK(fails({.channels = 4, .groups = 3}) ==
          "mp::ops::conv2d_geometry: geometry.groups is 3; it must divide geometry.channels, which is 4");
    CHECK(
        fails({.height = 3, .width = 4, .kernel = {3, 3}, .padding = {0, 0}, .dilation = {1, 2}}) ==
        "mp::ops::conv2d_geometry: geometry.kernel.width is 3; it must, spread by the dilation, fit into the "
        "padded image, which has 4 cells there");
    CHECK(
        fails({.channels = 0x7FFF'FFFF, .height = 0x7FFF'FFFF, .width = 2}) ==
        "mp::ops::conv2d_geometry: geometry.channels is 2147483647; it must be small enough for an image to "
        "fit in memory");
    CHECK(fails({.height = 3, .width = 4, .kernel = {3, 2}, .dilation = {1, 3}}) == "nothing was thrown");
}

TEST_CASE("conv2d names the argument that does not fit, and writes nothing") {
    const mp::cpu exec{};
    const conv2d_geometry g{.channels = 2, .height = 3, .width = 3, .kernel = {2, 2}, .groups = 2};
    matrix<float> x(2, 18), w(4, 4), y(2, 16), dx(2, 18), dw(4, 4);
    x.randomize(1);
    w.randomize(2);
    const std::vector<float> b(4);
    const auto fails = [&](auto xv, auto wv, const auto& bv, auto yv, const conv2d_geometry& geometry) {
        const auto call = [&] { mp::ops::conv2d(exec, xv, wv, bv, yv, geometry); };
        std::string outside = message_of(call);
        const mp::autocast_region region(mp::precision::fp16);
        CHECK(message_of(call) == outside);
        CHECK(y.elements == std::vector<float>(32, -88.0F));
        return outside;
    };
    CHECK(fails(x.view.block(0, 0, 2, 17), w.view, b, y.view, g) ==
          "mp::ops::conv2d: x.columns is 17; it must equal geometry.channels * geometry.height * "
          "geometry.width, "
          "which is 18");
    CHECK(fails(x.view, w.view.block(0, 0, 3, 4), b, y.view, g) ==
          "mp::ops::conv2d: w.rows is 3; it must be a multiple of geometry.groups, which is 2");
    CHECK(fails(x.view, w.view.block(0, 0, 4, 3), b, y.view, g) ==
          "mp::ops::conv2d: w.columns is 3; it must equal geometry.channels / geometry.groups * the cells of "
          "the "
          "kernel, which is 4");
    CHECK(fails(x.view, w.view, std::vector<float>(3), y.view, g) ==
          "mp::ops::conv2d: b.size() is 3; it must equal w.rows, which is 4");
    CHECK(fails(x.view, w.view, b, y.view.block(0, 0, 1, 16), g) ==
          "mp::ops::conv2d: y.rows is 1; it must equal x.rows, which is 2");
    CHECK(fails(x.view, w.view, b, y.view.block(0, 0, 2, 15), g) ==
          "mp::ops::conv2d: y.columns is 15; it must equal w.rows * the output positions of geometry, which "
          "is 16");
    CHECK(fails(mp::row_major<float>(nullptr, 2, 18), w.view, b, y.view, g) ==
          "mp::ops::conv2d: x.data is null; it must point to a matrix of 2 x 18 elements");
    CHECK(fails(x.view, mp::row_major(y.view.data, 4, 4), b, y.view, g) ==
          "mp::ops::conv2d: y overlaps w; they must not share elements, because y is written while w is in "
          "use");
    CHECK(fails(x.view, w.view, b, y.view, {.channels = 2, .stride = {0, 1}}) ==
          "mp::ops::conv2d: geometry.stride.height is 0; it must be at least 1");
    CHECK(message_of([&] { mp::ops::conv2d(mp::cpu{.threads = 0}, x.view, w.view, b, y.view, g); }) ==
          "mp::ops::conv2d: exec.threads is 0; it must be at least 1");

    std::vector<float> db(4);
    y.randomize(3);
    const auto backward_fails = [&](auto dyv, auto dxv, auto dwv, std::span<float> dbv) {
        return message_of([&] { mp::ops::conv2d_backward(exec, x.view, w.view, dyv, dxv, dwv, dbv, g); });
    };
    CHECK(backward_fails(y.view.block(0, 0, 2, 12), dx.view, dw.view, db) ==
          "mp::ops::conv2d_backward: dy.columns is 12; it must equal w.rows * the output positions of "
          "geometry, "
          "which is 16");
    CHECK(backward_fails(y.view, dx.view.block(0, 0, 1, 18), dw.view, db) ==
          "mp::ops::conv2d_backward: dx.rows is 1; it must equal x.rows, which is 2");
    CHECK(backward_fails(y.view, dx.view, dw.view.block(0, 0, 4, 3), db) ==
          "mp::ops::conv2d_backward: dw.columns is 3; it must equal w.columns, which is 4");
    CHECK(backward_fails(y.view, dx.view, dw.view, std::span(db).first(2)) ==
          "mp::ops::conv2d_backward: db.size() is 2; it must equal w.rows, which is 4");
    CHECK(backward_fails(y.view, mp::row_major(x.view.data, 2, 18), dw.view, db) ==
          "mp::ops::conv2d_backward: dx overlaps x; they must not share elements, because dx is written "
          "while x is "
          "in use");
    CHECK(backward_fails(y.view, dx.view, mp::row_major(dx.view.data, 4, 4), db) ==
          "mp::ops::conv2d_backward: dw overlaps dx; they must not share elements, because dw is written "
          "while dx "
          "is in use");
    CHECK(dx.elements == std::vector<float>(36, -88.0F));
    CHECK(backward_fails(y.view, dx.view, dw.view, db) == "nothing was thrown");
}

}  // namespace
