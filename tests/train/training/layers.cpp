// SPDX-License-Identifier: MIT
// Layers against the definitions of a small transformer block in double, forward and by central differences.
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/train/training/layers/attention.hpp>
#include <mp/train/training/layers/embedding.hpp>
#include <mp/train/training/layers/linear.hpp>
#include <mp/train/training/layers/normalization.hpp>
#include <mp/workspace.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "larger_error.hpp"
#include "nn/ops/reference.hpp"

namespace {

namespace layers = mp::layers;
namespace ac = mp::autocast;
using mp::ops::absent;
using mp::ops::add_to;
using ops_test::message_of;

constexpr std::ptrdiff_t batch = 2, tokens = 3, rows = batch * tokens, width = 4, heads = 2, hidden = 6;

using numbers = std::vector<double>;

/// The parameters of a store by name, in double.
template <class Store>
std::map<std::string, numbers> parameters_of(const Store& store) {
    std::map<std::string, numbers> result;
    for (const auto& it : store.parameters()) {
        numbers& values = result[it.name];
        for (const auto x : it.weights) values.push_back(static_cast<double>(x));
    }
    return result;
}

numbers linear_of(const numbers& x, const numbers& w, const numbers& b, std::size_t in) {
    const std::size_t out = w.size() / in;
    numbers y;
    for (std::size_t r = 0; r < x.size() / in; ++r) {
        for (std::size_t o = 0; o < out; ++o) {
            double sum = b.empty() ? 0 : b[o];
            for (std::size_t i = 0; i < in; ++i) sum += x[r * in + i] * w[o * in + i];
            y.push_back(sum);
        }
    }
    return y;
}

numbers norm_of(const numbers& x, const numbers& gamma, const numbers& beta, bool centered) {
    const std::size_t n = gamma.size();
    numbers y(x.size());
    for (std::size_t first = 0; first < x.size(); first += n) {
        double mean = 0, square = 0;
        for (std::size_t i = 0; i < n && centered; ++i) mean += x[first + i] / static_cast<double>(n);
        for (std::size_t i = 0; i < n; ++i) square += (x[first + i] - mean) * (x[first + i] - mean);
        const double scale = 1 / std::sqrt(square / static_cast<double>(n) + static_cast<double>(1e-5F));
        for (std::size_t i = 0; i < n; ++i) {
            y[first + i] = (x[first + i] - mean) * scale * gamma[i] + (beta.empty() ? 0 : beta[i]);
        }
    }
    return y;
}

/// Causal self-attention; the row of a token has queries, then keys and values of `key_heads` heads.
numbers attention_of(const numbers& qkv, std::size_t key_heads) {
    const std::size_t head_dim = width / heads, stride = width + 2 * key_heads * head_dim;
    numbers y(static_cast<std::size_t>(rows * width));
    for (std::size_t s = 0; s < batch; ++s) {
        for (std::size_t h = 0; h < heads; ++h) {
            const std::size_t kh = h * key_heads / heads;
            const auto at = [&](std::size_t t, std::size_t column) {
                return qkv[(s * tokens + t) * stride + column];
            };
            for (std::size_t t = 0; t < tokens; ++t) {
                numbers p;
                double sum = 0;
                for (std::size_t u = 0; u <= t; ++u) {
                    double score = 0;
                    for (std::size_t c = 0; c < head_dim; ++c) {
                        score += at(t, h * head_dim + c) * at(u, width + kh * head_dim + c);
                    }
                    p.push_back(std::exp(score / std::sqrt(static_cast<double>(head_dim))));
                    sum += p.back();
                }
                for (std::size_t u = 0; u <= t; ++u) {
                    for (std::size_t c = 0; c < head_dim; ++c) {
                        y[(s * tokens + t) * width + h * head_dim + c] +=
                            p[u] / sum * at(u, width + (key_heads + kh) * head_dim + c);
                    }
                }
            }
        }
    }
    return y;
}

double gelu_of(double x, bool tanh) {
    if (!tanh) return x * std::erfc(-x / std::sqrt(2.0)) / 2;
    return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

/// A layer under test: it adds its parameters to a store, runs, and is defined in double.
struct tested {
    using store_type = mp::parameter_store<float>;
    using view = mp::matrix_view<float>;
    std::function<view(mp::cpu, view)> forward;
    std::function<void(mp::cpu, view, view, bool add_dx, bool add)> backward;
    std::function<numbers(const numbers& x, std::map<std::string, numbers>& p)> definition;
};

/// y against the definition; dx and the gradients of all parameters against its central differences.
void check(mp::parameter_store<float>& store, const tested& layer, std::ptrdiff_t out) {
    mp::host_workspace workspace;
    const mp::cpu exec{.workspace = &workspace};
    store.build(3);
    ops_test::matrix<float> x(rows, width), dy(rows, out), dx(rows, width);
    x.randomize(1);
    dy.randomize(2);
    const auto y = layer.forward(exec, x.view);
    auto p = parameters_of(store);
    numbers wide_x(x.elements.begin(), x.elements.end());
    const numbers expected = layer.definition(wide_x, p);
    REQUIRE(y.rows == rows);
    REQUIRE(y.columns == out);
    bool y_is_right = true;
    for (std::ptrdiff_t i = 0; i < rows * out; ++i) {
        y_is_right = y_is_right && std::abs(static_cast<double>(y(i / out, i % out)) -
                                            expected[static_cast<std::size_t>(i)]) < 2e-6;
    }
    CHECK(y_is_right);

    const auto loss = [&] {
        const numbers result = layer.definition(wide_x, p);
        double sum = 0;
        for (std::size_t i = 0; i < result.size(); ++i)
            sum += result[i] * static_cast<double>(dy.elements[i]);
        return sum;
    };
    const auto gradients_are = [&](double factor, double old) {
        bool right = true;
        for (const auto& it : store.parameters()) {
            for (std::size_t i = 0; i < it.gradient.size(); ++i) {
                const double slope = ops_test::derivative(p[it.name][i], loss, 0x1p-13);
                right =
                    right && std::abs(static_cast<double>(it.gradient[i]) - (factor * slope + old)) < 1e-5;
            }
        }
        return right;
    };
    const auto dx_is = [&](double factor, double old) {
        bool right = true;
        for (std::size_t i = 0; i < wide_x.size(); ++i) {
            const double slope = ops_test::derivative(wide_x[i], loss, 0x1p-13);
            right = right && std::abs(static_cast<double>(dx.elements[i]) - (factor * slope + old)) < 1e-5;
        }
        return right;
    };
    layer.backward(exec, dy.view, dx.view, false, false);
    CHECK(dx_is(1, 0));
    CHECK(gradients_are(1, 0));
    layer.backward(exec, dy.view, dx.view, true, true);  // the second micro batch of two
    CHECK(dx_is(2, 0));
    CHECK(gradients_are(2, 0));
    layer.backward(exec, dy.view, dx.view, false, false);
    CHECK(gradients_are(1, 0));

    // What a workspace gave in the first pass is enough for ever.
    const std::size_t bytes = workspace.size();
    layer.forward(exec, x.view);
    layer.backward(exec, dy.view, dx.view, false, false);
    CHECK(workspace.size() == bytes);
    CHECK(workspace.used() == 0);
    const auto kept = dx.elements;
    layer.backward(mp::cpu{.threads = 3}, dy.view, dx.view, false, false);  // and without one
    CHECK(dx.elements == kept);
}

template <class Layer>
tested with(Layer& layer) {
    return {.forward = [&](mp::cpu exec, auto x) { return layer.forward(exec, x); },
            .backward = [&](mp::cpu exec, auto dy, auto dx, bool add_dx,
                            bool add) { layer.backward(exec, dy, add_to(dx, add_dx), add); },
            .definition = {}};
}

TEST_CASE("a linear layer is x w^T + b, with its gradients, with and without a bias") {
    for (const bool bias : {true, false}) {
        mp::parameter_store<float> store;
        layers::linear<float, float, ac::off> layer(store, "fc", width, hidden, {.bias = bias});
        CHECK(layer.bias().exists() == bias);
        tested it = with(layer);
        it.definition = [&](const numbers& x, auto& p) {
            return linear_of(x, p["fc.weight"], bias ? p["fc.bias"] : numbers{}, width);
        };
        check(store, it, hidden);
    }
}

TEST_CASE("norms are their definitions, with their gradients") {
    mp::parameter_store<float> store;
    layers::layer_norm<float, float, ac::off> layer(store, "n", width);
    tested it = with(layer);
    it.definition = [](const numbers& x, auto& p) { return norm_of(x, p["n.weight"], p["n.bias"], true); };
    check(store, it, width);
    CHECK(layer.gamma().values()[1] == 1);
    CHECK(layer.beta().values()[1] == 0);

    mp::parameter_store<float> other;
    layers::rms_norm<float, float, ac::off> rms(other, "n", width);
    it = with(rms);
    it.definition = [](const numbers& x, auto& p) { return norm_of(x, p["n.weight"], {}, false); };
    check(other, it, width);
}

TEST_CASE(
    "an attention layer is its projections and causal heads, with their gradients, also with shared keys") {
    for (const std::ptrdiff_t key_heads : {0, 1}) {
        mp::parameter_store<float> store;
        layers::attention<float, float, ac::off> layer(store, "a", width,
                                                       {.heads = heads, .key_heads = key_heads});
        tested it = with(layer.qkv());
        it.forward = [&](mp::cpu exec, auto x) { return layer.forward(exec, x, batch); };
        it.backward = [&](mp::cpu exec, auto dy, auto dx, bool add_dx, bool add) {
            layer.backward(exec, dy, add_to(dx, add_dx), add);
        };
        it.definition = [&](const numbers& x, auto& p) {
            const numbers qkv = linear_of(x, p["a.qkv.weight"], p["a.qkv.bias"], width);
            return linear_of(attention_of(qkv, key_heads == 0 ? heads : 1), p["a.out.weight"],
                             p["a.out.bias"], width);
        };
        check(store, it, width);
    }
}

TEST_CASE("an mlp is two products and a gelu, with their gradients") {
    for (const auto formula : {mp::ops::gelu_formula::tanh, mp::ops::gelu_formula::exact}) {
        mp::parameter_store<float> store;
        layers::mlp<float, float, ac::off> layer(store, "m", width, hidden, {.formula = formula});
        tested it = with(layer);
        it.definition = [&](const numbers& x, auto& p) {
            numbers h = linear_of(x, p["m.fc.weight"], p["m.fc.bias"], width);
            for (double& value : h) value = gelu_of(value, formula == mp::ops::gelu_formula::tanh);
            return linear_of(h, p["m.proj.weight"], p["m.proj.bias"], hidden);
        };
        check(store, it, width);
    }
}

TEST_CASE(
    "an embedding is a row of its table; rows that are used twice add up, to a tied head's gradient too") {
    mp::parameter_store<float> store;
    layers::embedding<float, float, ac::off> layer(store, "e", 5, width);
    store.build(1);
    const std::vector<int> ids{3, 1, 3};
    ops_test::matrix<float> y(3, width), dy(3, width);
    layer.forward(mp::cpu{}, ids, y.view);
    dy.randomize(1);
    for (std::ptrdiff_t c = 0; c < width; ++c) {
        CHECK(y.view(0, c) == layer.weight().weights()(3, c));
        CHECK(y.view(1, c) == layer.weight().weights()(1, c));
    }
    const auto gradient = layer.weight().gradient();
    for (const bool add : {false, true}) {
        std::fill(layer.weight().gradient_values().begin(), layer.weight().gradient_values().end(), 2.0F);
        layer.backward(mp::cpu{}, dy.view, add);
        const float old = add ? 2 : 0;
        for (std::ptrdiff_t c = 0; c < width; ++c) {
            CHECK(gradient(3, c) == doctest::Approx(old + dy.view(0, c) + dy.view(2, c)));
            CHECK(gradient(1, c) == old + dy.view(1, c));
            CHECK(gradient(0, c) == old);
        }
    }
}

TEST_CASE(
    "a layer follows the region, casts its weights once a step, and takes no gradient of x where none is "
    "wanted") {
    mp::parameter_store<float> store;
    layers::linear<float> layer(store, "fc", width, hidden);
    store.build(1);
    ops_test::matrix<float> x(rows, width), dy(rows, hidden);
    x.randomize(1);
    dy.randomize(2);
    const auto trusting = std::make_shared<ac::cast_cache>(ac::cast_cache::default_max_bytes, false);
    const mp::autocast_region region({.cpu = mp::precision::fp16, .cache = trusting});
    const auto kept = layer.weight().mutable_values();
    const auto y = layer.forward(mp::cpu{}, x.view);
    bool low = true;
    for (std::ptrdiff_t i = 0; i < rows * hidden; ++i) {
        const float value = y(i / hidden, i % hidden);
        low = low && static_cast<float>(mp::round_to<mp::half>(value)) == value;
    }
    CHECK(low);
    std::vector<float> before(y.data, y.data + rows * hidden);
    kept[0] += 1;  // not reported: the kept cast is used
    layer.forward(mp::cpu{}, x.view);
    const bool same = std::equal(before.begin(), before.end(), y.data);
    CHECK(same);
    store.weights_changed();
    layer.forward(mp::cpu{}, x.view);
    CHECK_FALSE(std::equal(before.begin(), before.end(), y.data));
    before.assign(y.data, y.data + rows * hidden);
    layer.weight().mutable_values()[0] += 1;
    layer.forward(mp::cpu{}, x.view);
    CHECK_FALSE(std::equal(before.begin(), before.end(), y.data));
    layer.backward(mp::cpu{}, dy.view, absent);
    CHECK(layer.weight().gradient()(0, 0) != 0);
}

TEST_CASE("layers keep weights, gradients and activations in the formats that they are told") {
    mp::parameter_store<mp::bfloat16, float> store;
    layers::linear<mp::bfloat16, mp::half, ac::off, float> layer(store, "fc", width, hidden);
    store.build(1);
    ops_test::matrix<mp::half> x(rows, width), dy(rows, hidden), dx(rows, width);
    x.randomize(1);
    dy.randomize(2);
    static_assert(std::is_same_v<decltype(layer.forward(mp::cpu{}, x.view)), mp::matrix_view<mp::half>>);
    layer.forward(mp::cpu{}, x.view);
    layer.backward(mp::cpu{}, dy.view, dx.view);
    double sum = 0;
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
        sum += static_cast<double>(dy.view(r, 2)) * static_cast<double>(x.view(r, 1));
    }
    CHECK(static_cast<double>(layer.weight().gradient()(2, 1)) == doctest::Approx(sum).epsilon(1e-6));
    CHECK(layer.bytes() == static_cast<std::size_t>(rows * hidden) * 2);
}

TEST_CASE("an attention layer names the heads that do not fit") {
    mp::parameter_store<float> store;
    const auto message = [&](layers::attention_options options) {
        return message_of([&] { layers::attention<float, float, ac::off>(store, "a", 6, options); });
    };
    CHECK(message({.heads = 0}) == "mp::layers::attention: options.heads is 0; it must be at least 1");
    CHECK(message({.heads = 4}) ==
          "mp::layers::attention: width is 6; it must be a multiple of options.heads, which is 4");
    CHECK(
        message({.heads = 6, .key_heads = 4}) ==
        "mp::layers::attention: options.heads is 6; it must be a multiple of options.key_heads, which is 4");
    CHECK(message({.heads = 6, .key_heads = -1}) ==
          "mp::layers::attention: options.key_heads is -1; it must not be negative");
    store.build(1);
    CHECK(store.count() == 0);  // nothing was added
}

TEST_CASE("norms of rows far from zero have the gradients of the same layer in double") {
    mp::parameter_store<float> store;
    mp::parameter_store<double> wide_store;
    mp::layers::layer_norm<float> layer(store, "norm", 40);
    mp::layers::layer_norm<double> wide(wide_store, "norm", 40, {.epsilon = static_cast<double>(1e-5F)});
    store.build(1);
    wide_store.build(1);
    mp::tensor<float> x(2, 40), dy(2, 40), dx(2, 40);
    mp::tensor<double> wide_x(2, 40), wide_dy(2, 40), wide_dx(2, 40);
    for (std::ptrdiff_t r = 0; r < 2; ++r) {
        for (std::ptrdiff_t c = 0; c < 40; ++c) {
            const auto at = static_cast<double>(r * 40 + c);
            x.view()(r, c) =
                static_cast<float>((r == 0 ? 1e4 : -3e5) + (r == 0 ? 4.6e-3 : 0.2) * std::sin(at * 1.7));
            dy.view()(r, c) = static_cast<float>(std::cos(at));
            wide_x.view()(r, c) = static_cast<double>(x.view()(r, c));
            wide_dy.view()(r, c) = static_cast<double>(dy.view()(r, c));
        }
    }
    layer.forward(mp::cpu{}, x.view());
    layer.backward(mp::cpu{}, dy.view(), dx.view());
    wide.forward(mp::cpu{}, wide_x.view());
    wide.backward(mp::cpu{}, wide_dy.view(), wide_dx.view());
    for (std::ptrdiff_t r = 0; r < 2; ++r) {
        double worst = 0, largest = 0;
        for (std::ptrdiff_t c = 0; c < 40; ++c) {
            worst = tests::larger_error(
                worst, std::abs(static_cast<double>(dx.view()(r, c)) - wide_dx.view()(r, c)));
            largest = std::max(largest, std::abs(wide_dx.view()(r, c)));
        }
        CHECK(worst < 1e-5 * largest);
    }
}

TEST_CASE(
    "gradients of a layer are not rounded to the precision of the region, nor those of the first micro "
    "batch") {
    mp::parameter_store<float> store;
    layers::linear<float> layer(store, "l", 4, 4);
    store.build(1);
    const mp::autocast_region region(mp::precision::fp16);
    mp::tensor<float> x(2, 4), dy(2, 4), dx(2, 4);
    std::fill(x.values().begin(), x.values().end(), 0x1p-14F);
    std::fill(dy.values().begin(), dy.values().end(), 0x1p-14F);
    for (const bool adds : {false, true}) {
        layer.forward(mp::cpu{}, x.view());
        layer.backward(mp::cpu{}, dy.view(), dx.view(), adds);
        // Half has nothing between 0 and 2^-24.
        for (const float it : layer.weight().gradient_values()) CHECK(it == (adds ? 0x1p-26F : 0x1p-27F));
    }
}

}  // namespace
