// SPDX-License-Identifier: MIT
// A backward pass of every layer needs a forward pass that succeeded, and says so in the layer's name.
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/ops.hpp>
#include <mp/training.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nn/ops/reference.hpp"
#include "nn/scaling/thrown.hpp"

namespace {

namespace layers = mp::layers;
using mp::ops::absent;

constexpr std::ptrdiff_t rows = 4, width = 32;
const mp::cpu exec{};

/// Rows of ones; with another number of columns they fit no layer.
struct ones {
    std::vector<float> values = std::vector<float>(static_cast<std::size_t>(rows * width), 1.0F);
    [[nodiscard]] mp::matrix_view<const float> view(std::ptrdiff_t columns = width) const {
        return mp::row_major(values.data(), rows, columns);
    }
};
const ones x;

template <class Layer>
void check(const std::string& expected, Layer& layer, const auto& forward, const auto& backward) {
    const auto refused = [&](Layer& which) {
        CHECK(thrown<mp::state_error>([&] { backward(which); }) == expected);
    };
    refused(layer);
    forward(layer, x.view());
    backward(layer);
    backward(layer);  // as often as one likes
    CHECK_THROWS_AS(forward(layer, x.view(width - 1)), mp::argument_error);
    refused(layer);
    forward(layer, x.view());
    Layer moved = std::move(layer);
    refused(layer);  // NOLINT(bugprone-use-after-move)
    backward(moved);
    layer = std::move(moved);
    backward(layer);
}

template <class Layer>
void check(const std::string& expected, Layer& layer) {
    check(
        expected, layer, [](Layer& it, auto input) { it.forward(exec, input); },
        [](Layer& it) { it.backward(exec, x.view(), absent, true); });
}

}  // namespace

TEST_CASE("layers refuse a backward pass without a forward pass by their names") {
    mp::parameter_store<float> store;
    layers::linear<float> fc(store, "fc1", width, width);
    layers::linear<float> plain(store, "plain", width, width, {.bias = false});
    layers::mlp<float> feed(store, "block.mlp", width, width);
    layers::attention<float> attend(store, "block.attn", width, {.heads = 2});
    layers::layer_norm<float> norm(store, "ln", width);
    layers::rms_norm<float> rms(store, "rms", width);
    layers::conv2d<float> conv(store, "conv", 2,
                               {.channels = 2, .height = 4, .width = 4, .kernel = {3, 3}, .padding = {1, 1}});
    store.build(1);
    check("mp::layers::linear \"fc1\": backward() before forward()", fc);
    check("mp::layers::linear \"plain\": backward() before forward()", plain);
    check("mp::layers::mlp \"block.mlp\": backward() before forward()", feed);
    check(
        "mp::layers::attention \"block.attn\": backward() before forward()", attend,
        [](auto& it, auto input) { it.forward(exec, input, 2); },
        [](auto& it) { it.backward(exec, x.view(), absent, true); });
    check("mp::layers::layer_norm \"ln\": backward() before forward()", norm);
    check("mp::layers::rms_norm \"rms\": backward() before forward()", rms);
    check("mp::layers::conv2d \"conv\": backward() before forward()", conv);
}

TEST_CASE("an embedding refuses it as well") {
    mp::parameter_store<float> store;
    layers::embedding<float> table(store, "tokens", 3, width);
    store.build(1);
    const std::vector<int> good = {0, 2, 1, 1}, bad = {0, 3, 1, 1};
    std::vector<float> y(static_cast<std::size_t>(rows * width));
    const std::string expected = "mp::layers::embedding \"tokens\": backward() before forward()";
    const auto forward = [&](const std::vector<int>& indices) {
        table.forward(exec, indices, mp::row_major(y.data(), rows, width));
    };
    CHECK(thrown<mp::state_error>([&] { table.backward(exec, x.view()); }) == expected);
    forward(good);
    table.backward(exec, x.view());
    CHECK_THROWS_AS(forward(bad), mp::argument_error);
    CHECK(thrown<mp::state_error>([&] { table.backward(exec, x.view()); }) == expected);
}

TEST_CASE_TEMPLATE("layers with operands of 8 bits refuse it before they read them", Policy,
                   layers::float8_delayed_scaling, layers::float8_current_scaling,
                   layers::mxfp8_block_scaling) {
    mp::parameter_store<float> store;
    layers::linear<float, float, Policy> fc(store, "fc", width, width);
    layers::mlp<float, float, Policy> feed(store, "mlp", width, width);
    store.build(1);
    check("mp::layers::linear \"fc\": backward() before forward()", fc);
    check("mp::layers::mlp \"mlp\": backward() before forward()", feed);
}

TEST_CASE("fused passes of two layers name those that belong together") {
    mp::parameter_store<float> store;
    layers::linear<float> first(store, "a", width, width), second(store, "b", width, width);
    store.build(1);
    std::vector<float> room(static_cast<std::size_t>(rows * width));
    const auto dz = mp::row_major(room.data(), rows, width);
    const auto back = [&] { first.backward_from(exec, x.view(), absent, mp::ops::activation::gelu, second); };
    CHECK(thrown<mp::state_error>(back) == "mp::layers::linear \"a\": backward_from() before forward_into()");
    first.forward(exec, x.view());
    CHECK(thrown<mp::state_error>(back) == "mp::layers::linear \"b\": backward_from() before forward_into()");
    CHECK(thrown<mp::state_error>([&] {
              second.backward(exec, x.view(), x.view(), mp::ops::activation::gelu, dz);
          }) == "mp::layers::linear \"b\": backward() before forward()");
    first.forward_into(exec, x.view(), mp::ops::activation::gelu, second);
    back();
    first.backward(exec, x.view(), absent);
    first.forward(exec, x.view(), mp::ops::activation::silu, dz);
    first.backward(exec, x.view(), absent);
}
