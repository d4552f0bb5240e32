// SPDX-License-Identifier: MIT
// The layer conv2d against the ops called by hand, bit for bit, and against central differences.
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/frontends/check/gradient_check.hpp>
#include <mp/ops.hpp>
#include <mp/train/training/layers/convolution.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "nn/ops/reference.hpp"

namespace {

namespace layers = mp::layers;
using mp::ops::absent;
using mp::ops::add_to;
using ops_test::message_of;
constexpr mp::cpu exec{};
constexpr std::ptrdiff_t batch = 3, out_channels = 6;
constexpr mp::ops::conv2d_geometry geometry{.channels = 4,
                                            .height = 5,
                                            .width = 6,
                                            .kernel = {3, 2},
                                            .stride = {2, 1},
                                            .padding = {1, 1},
                                            .dilation = {1, 2},
                                            .groups = 2};
constexpr std::ptrdiff_t image = 4 * 5 * 6, patch = 2 * 3 * 2, positions = 3 * 6;

template <class T>
void compare_with_ops(bool bias) {
    CAPTURE(bias);
    mp::parameter_store<T> store;
    layers::conv2d<T> layer(store, "c", out_channels, geometry, {.bias = bias});
    store.build(3);
    CHECK(layer.bias().exists() == bias);
    REQUIRE(layer.weight().rows() == out_channels);
    REQUIRE(layer.weight().columns() == patch);
    ops_test::matrix<T> x(batch, image), dy(batch, out_channels * positions);
    ops_test::matrix<T> y(batch, out_channels * positions), dx(batch, image), dx_by_hand(batch, image);
    ops_test::matrix<T> dw(out_channels, patch), db(1, out_channels);
    x.randomize(1);
    dy.randomize(2);
    const auto weights = mp::matrix_view<const T>(layer.weight().weights());
    const auto result = layer.forward(exec, x.view);
    if (bias) {
        mp::ops::conv2d(exec, x.view, weights, layer.bias().values(), y.view, geometry);
    } else {
        mp::ops::conv2d(exec, x.view, weights, absent, y.view, geometry);
    }
    REQUIRE(result.rows == batch);
    REQUIRE(result.columns == out_channels * positions);
    CHECK(std::equal(y.elements.begin(), y.elements.end(), result.data));
    CHECK(layer.bytes() == y.elements.size() * sizeof(T));

    for (const bool add : {false, true}) {
        layer.backward(exec, dy.view, add_to(dx.view, add), add);
        const auto by_hand = [&](auto&& to_db) {
            mp::ops::conv2d_backward(exec, x.view, weights, dy.view, add_to(dx_by_hand.view, add),
                                     add_to(dw.view, add), to_db, geometry);
        };
        if (bias) {
            by_hand(add_to(db.elements, add));
        } else {
            by_hand(absent);
        }
        CHECK(dx.elements == dx_by_hand.elements);
        const auto gradient = layer.weight().gradient();
        CHECK(std::equal(dw.elements.begin(), dw.elements.end(), gradient.data));
        if (bias) {
            const auto of_bias = layer.bias().gradient_values();
            CHECK(std::equal(db.elements.begin(), db.elements.end(), of_bias.begin(), of_bias.end()));
        }
    }
    layer.backward(exec, dy.view, absent);  // the first layer of a network
}

TEST_CASE("a convolution layer has the bits of the ops, with and without a bias, in regions, too") {
    for (const bool bias : {true, false}) {
        compare_with_ops<float>(bias);
        const mp::autocast_region region(mp::precision::bf16);
        compare_with_ops<float>(bias);
    }
    compare_with_ops<mp::bfloat16>(true);
}

TEST_CASE("gradients of a convolution layer in double are its central differences") {
    for (const bool bias : {true, false}) {
        mp::parameter_store<double> store;
        layers::conv2d<double> layer(store, "c", out_channels, geometry, {.bias = bias});
        store.build(5);
        ops_test::matrix<double> x(batch, image), dx(batch, image);
        ops_test::matrix<double> dy(batch, out_channels * positions);
        x.randomize(1);
        const std::vector<int> labels{7, 0, 50};
        const auto loss = [&] {
            return mp::ops::softmax_cross_entropy(exec, layer.forward(exec, x.view), labels);
        };
        static_cast<void>(loss());
        mp::ops::softmax_cross_entropy_backward(exec, layer.result(), labels, dy.view, {});
        layer.backward(exec, dy.view, dx.view);
        const auto of_parameters = mp::check_gradients(loss, store.parameters());
        INFO(to_string(of_parameters));
        CHECK(of_parameters.arrays.size() == (bias ? 2U : 1U));
        CHECK(of_parameters.passed(1e-5));  // single elements are small
        CHECK(of_parameters.norms_passed(1e-8));
        std::vector<mp::checked_gradient> images;
        images.emplace_back("x", std::span<double>(x.elements), std::span<double>(dx.elements));
        const auto of_images = mp::check_gradients(loss, images);
        INFO(to_string(of_images));
        CHECK(of_images.passed(1e-5));
        CHECK(of_images.norms_passed(1e-8));
    }
}

TEST_CASE("weights and bias of a convolution layer begin within 1 / sqrt(cells), or as they are told") {
    mp::parameter_store<float> store;
    const layers::conv2d<float> usual(store, "a", out_channels, geometry);
    const layers::conv2d<float> told(store, "b", out_channels, geometry,
                                     {.initial = mp::initializers::ones(),
                                      .initial_bias = mp::initializers::zeros(),
                                      .group = 1,
                                      .bias_group = 2});
    store.build(1);
    const float bound = 1 / std::sqrt(static_cast<float>(patch));
    for (const auto& values : {usual.weight().values(), usual.bias().values()}) {
        float most = 0;
        for (const float it : values) most = std::max(most, std::abs(it));
        CHECK(most <= bound);
        CHECK(most > bound / 2);
    }
    CHECK(told.weight().values()[5] == 1);
    CHECK(told.bias().values()[5] == 0);
    const auto parameters = store.parameters();
    REQUIRE(parameters.size() == 4);
    CHECK(parameters[0].name == "a.weight");
    CHECK(parameters[1].name == "a.bias");
    CHECK(parameters[2].group == 1);
    CHECK(parameters[3].group == 2);
}

TEST_CASE("a convolution layer names what does not fit, and adds nothing then") {
    mp::parameter_store<float> store;
    const auto message = [&](std::ptrdiff_t channels, mp::ops::conv2d_geometry wrong) {
        return message_of([&] { const layers::conv2d<float> layer(store, "c", channels, wrong); });
    };
    CHECK(message(0, geometry) == "mp::layers::conv2d: out_channels is 0; it must be at least 1");
    CHECK(message(3, geometry) ==
          "mp::layers::conv2d: out_channels is 3; it must be a multiple of geometry.groups, which is 2");
    mp::ops::conv2d_geometry wrong = geometry;
    wrong.stride.width = 0;
    CHECK(message(2, wrong) == "mp::layers::conv2d: geometry.stride.width is 0; it must be at least 1");
    store.build(1);
    CHECK(store.count() == 0);
}

}  // namespace
