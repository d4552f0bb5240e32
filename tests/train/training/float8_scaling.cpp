// SPDX-License-Identifier: MIT
// Linear layers with operands of 8 bits: against products in double of operands rounded by the public conversions.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/block_scaled.hpp>
#include <mp/float8.hpp>
#include <mp/training.hpp>
#include <mp/workspace.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "nn/ops/reference.hpp"
#include "train/training/test_folder.hpp"

namespace {

namespace layers = mp::layers;
using mp::bfloat16;
using numbers = std::vector<double>;
using ops_test::message_of;

constexpr std::ptrdiff_t rows = 37, in = 70, out = 45;

/// A layer, an input and a gradient; the latter in a matrix with gaps between its rows.
template <class Policy, class Value = bfloat16>
struct workplace {
    mp::parameter_store<Value> store;
    layers::linear<Value, Value, Policy> layer;
    mp::tensor<Value> x{rows, in}, dy{rows, out + 3}, dx{rows, in};

    explicit workplace(const layers::float8_options& options = {})
        : layer(store, "fc", in, out, {.float8 = options}) {
        store.build(1);
        fill(1.0, 1e-5);
        mp::initialize(layer.bias().mutable_values(), mp::initializers::normal(0.1), 9, 0);
    }
    void fill(double of_x, double of_dy) {
        mp::initialize(x.values(), mp::initializers::normal(of_x), 3, 0);
        mp::initialize(dy.values(), mp::initializers::normal(of_dy), 4, 0);
    }
    [[nodiscard]] mp::matrix_view<Value> gradient() { return dy.view().block(0, 0, rows, out); }
    mp::matrix_view<Value> forward() { return layer.forward(mp::cpu{}, x.view()); }
    void backward(bool add = false) { layer.backward(mp::cpu{}, gradient(), dx.view(), add); }
};

template <class View>
numbers values_of(View view) {
    numbers result;
    for (std::ptrdiff_t r = 0; r < view.rows; ++r) {
        for (std::ptrdiff_t c = 0; c < view.columns; ++c) result.push_back(static_cast<double>(view(r, c)));
    }
    return result;
}

double largest_of(const numbers& values) {
    double most = 0;
    for (const double x : values) most = std::max(most, std::abs(x));
    return most;
}

/// The values as codes of a format that are values times a scale.
template <class Format>
numbers scaled(numbers values, double scale) {
    for (double& x : values) x = static_cast<double>(static_cast<Format>(x * scale)) / scale;
    return values;
}

/// y(i, j) = sum a(i, k) b(k, j), with the strides of i and k in a, and of k and j in b.
numbers product(const numbers& a, std::size_t m, std::size_t k, std::size_t ai, std::size_t ak,
                const numbers& b, std::size_t n, std::size_t bk, std::size_t bj) {
    numbers y;
    for (std::size_t i = 0; i < m; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
            double sum = 0;
            for (std::size_t p = 0; p < k; ++p) sum += a[i * ai + p * ak] * b[p * bk + j * bj];
            y.push_back(sum);
        }
    }
    return y;
}

/// Float sums, and results rounded to bfloat16.
void check_close(const numbers& found, const numbers& expected) {
    REQUIRE(found.size() == expected.size());
    const double most = largest_of(expected);
    for (std::size_t i = 0; i < found.size(); ++i) {
        CHECK(std::abs(found[i] - expected[i]) <= std::abs(expected[i]) / 256 + 1e-5 * most);
    }
}

/// y, dx and dw of operands.
template <class Place>
void check_products(Place& place, mp::matrix_view<bfloat16> y, const numbers& x, const numbers& w,
                    const numbers& dy, const numbers& x_for_dw, const numbers& w_for_dx,
                    const numbers& dy_for_dw) {
    numbers expected = product(x, rows, in, in, 1, w, out, 1, in);
    const numbers bias = values_of(place.layer.bias().weights());
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += bias[i % out];
    check_close(values_of(y), expected);
    check_close(values_of(place.dx.view()), product(dy, rows, out, out, 1, w_for_dx, in, in, 1));
    check_close(values_of(place.layer.weight().gradient()),
                product(dy_for_dw, out, rows, 1, out, x_for_dw, in, in, 1));
    numbers sums(out);
    const numbers terms = values_of(place.gradient());
    for (std::size_t i = 0; i < terms.size(); ++i) sums[i % out] += terms[i];
    check_close(values_of(place.layer.bias().gradient()), sums);
}

TEST_CASE("current scaling: each tensor by its own largest magnitude, all three products of 8-bit operands") {
    for (const bool power_of_two : {false, true}) {
        workplace<layers::float8_current_scaling> place({.power_of_two = power_of_two});
        const auto y = place.forward();
        place.backward();
        const auto rounded = [&]<class Format>(Format, const numbers& values, double largest) {
            const double scale = static_cast<double>(static_cast<float>(largest / largest_of(values)));
            return scaled<Format>(values, power_of_two ? std::exp2(std::floor(std::log2(scale))) : scale);
        };
        const numbers x = rounded(mp::float8_e4m3fn{}, values_of(place.x.view()), 448);
        const numbers w = rounded(mp::float8_e4m3fn{}, values_of(place.layer.weight().weights()), 448);
        const numbers dy = rounded(mp::float8_e5m2{}, values_of(place.gradient()), 57344);
        check_products(place, y, x, w, dy, x, w, dy);
    }
}

TEST_CASE("delayed scaling: by the largest magnitudes of earlier iterations, margin and window as told") {
    workplace<layers::float8_delayed_scaling> place({.amax_history_length = 2, .margin = 1});
    const numbers weights = values_of(place.layer.weight().weights());
    std::vector<double> seen;
    for (const double size : {1.0, 8.0, 0.5, 0.5, 0.5}) {
        place.fill(size, size * 1e-5);
        const auto y = place.forward();
        // A forward pass alone, such as of a validation, is not remembered.
        CHECK(values_of(place.forward()) == values_of(y));
        place.backward();
        const numbers all_x = values_of(place.x.view()), all_dy = values_of(place.gradient());
        // The window is two iterations; the first one has but itself.
        double decides = seen.empty() ? largest_of(all_x) : seen.back();
        if (seen.size() > 1) decides = std::max(decides, seen[seen.size() - 2]);
        const double ratio = largest_of(all_dy) / largest_of(all_x);
        const auto clamped = [](numbers values, double scale, double largest) {
            for (double& x : values) x = std::clamp(x, -largest / scale, largest / scale);
            return values;
        };
        const auto scale_of = [](double amax, double largest) {
            return static_cast<double>(static_cast<float>(largest / 2 / amax));
        };
        const double x_scale = scale_of(decides, 448), dy_scale = scale_of(decides * ratio, 57344);
        const numbers x = scaled<mp::float8_e4m3fn>(clamped(all_x, x_scale, 448), x_scale);
        const numbers w = scaled<mp::float8_e4m3fn>(weights, scale_of(largest_of(weights), 448));
        const numbers dy = scaled<mp::float8_e5m2>(clamped(all_dy, dy_scale, 57344), dy_scale);
        check_products(place, y, x, w, dy, x, w, dy);
        seen.push_back(largest_of(all_x));
        place.store.weights_changed();
    }
}

TEST_CASE("MXFP8: blocks of 32 along the k of each product") {
    workplace<layers::mxfp8_block_scaling> place;
    const auto y = place.forward();
    place.backward();
    const auto blocks = [](auto view, mp::block_direction direction) {
        // The smallest power of two for which nothing is too large.
        const auto codes = mp::quantize<mp::mxfp8_e4m3>(
            mp::cpu{}, view, {.rule = mp::scale_rule::ceil, .direction = direction});
        std::vector<float> back(static_cast<std::size_t>(view.rows * view.columns));
        mp::dequantize(mp::cpu{}, codes, mp::row_major(back.data(), view.rows, view.columns));
        return numbers(back.begin(), back.end());
    };
    const auto along = mp::block_direction::along_rows, across = mp::block_direction::along_columns;
    check_products(place, y, blocks(place.x.view(), along), blocks(place.layer.weight().weights(), along),
                   blocks(place.gradient(), along), blocks(place.x.view(), across),
                   blocks(place.layer.weight().weights(), across), blocks(place.gradient(), across));
}

TEST_CASE_TEMPLATE("micro batches add up, threads change no bit, and float is stored as well", Policy,
                   layers::float8_delayed_scaling, layers::float8_current_scaling,
                   layers::mxfp8_block_scaling) {
    workplace<Policy, float> once, twice;
    once.forward();
    once.backward();
    twice.layer.forward(mp::cpu{.threads = 3}, twice.x.view());
    twice.layer.backward(mp::cpu{.threads = 3}, twice.gradient(), twice.dx.view());
    const numbers first = values_of(once.layer.weight().gradient());
    CHECK(values_of(twice.layer.weight().gradient()) == first);
    CHECK(values_of(twice.dx.view()) == values_of(once.dx.view()));
    twice.forward();
    twice.backward(true);
    const numbers sum = values_of(twice.layer.weight().gradient());
    for (std::size_t i = 0; i < sum.size(); ++i) CHECK(sum[i] == doctest::Approx(2 * first[i]));
    // The gradient of the input is not always wanted.
    once.layer.backward(mp::cpu{}, once.gradient(), mp::ops::absent);
    CHECK(values_of(once.layer.weight().gradient()) == first);
}

TEST_CASE_TEMPLATE("an operand that is not finite is not made so by the largest code", Policy,
                   layers::float8_delayed_scaling, layers::float8_current_scaling,
                   layers::mxfp8_block_scaling) {
    for (const float bad :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
        workplace<Policy> place;
        place.forward();
        place.gradient()(5, 6) = static_cast<bfloat16>(bad);
        place.backward();
        const numbers dw = values_of(place.layer.weight().gradient());
        CHECK(std::any_of(dw.begin(), dw.end(), [](double x) { return !std::isfinite(x); }));
        // The next iterations go by what was finite.
        for (int iteration = 0; iteration < 3; ++iteration) {
            place.fill(1.0, 1e-5);
            place.store.weights_changed();
            place.forward();
            place.backward();
        }
        const numbers expected =
            product(values_of(place.gradient()), out, rows, 1, out, values_of(place.x.view()), in, in, 1);
        const numbers found = values_of(place.layer.weight().gradient());
        double error = 0, norm = 0;
        for (std::size_t i = 0; i < found.size(); ++i) {
            error += (found[i] - expected[i]) * (found[i] - expected[i]);
            norm += expected[i] * expected[i];
        }
        CHECK(error < 0.01 * norm);
    }
}

TEST_CASE("the windows of delayed scaling are saved with a run, which goes on to the same bits") {
    const test_folder folder;
    const std::string file = folder.file("state");
    using place = workplace<layers::float8_delayed_scaling>;
    const layers::float8_options options{.amax_history_length = 3};
    const auto step = [](place& it, double size) {
        it.store.weights_changed();
        it.fill(size, size);
        it.forward();
        it.backward();
    };
    place whole(options), resumed(options);
    for (const double size : {3.0, 1.0}) step(whole, size);
    const auto everything = [](place& it) {
        return [&](auto& visit) {
            visit("weights", it.store);
            visit("layer", it.layer);
        };
    };
    mp::save_checkpoint(file, everything(whole));
    mp::load_checkpoint(file, everything(resumed));
    for (const double size : {0.7, 2.0, 0.1}) {
        step(whole, size);
        step(resumed, size);
        CHECK(values_of(whole.layer.weight().gradient()) == values_of(resumed.layer.weight().gradient()));
        CHECK(values_of(whole.layer.result()) == values_of(resumed.layer.result()));
    }
    // Another window is another run.
    place other({.amax_history_length = 4});
    CHECK_THROWS_AS(mp::load_checkpoint(file, everything(other)), mp::error);
}

TEST_CASE("layers of one store, whose scales move together, have those of layers by themselves") {
    using layer = layers::linear<bfloat16, bfloat16, layers::float8_delayed_scaling>;
    struct model {
        mp::parameter_store<bfloat16> of_first, of_second;
        layer first, second;

        explicit model(bool together)
            : first(of_first, "a", in, out, {.float8 = {.amax_history_length = 2}}),
              second(together ? of_first : of_second, "b", in, out, {.float8 = {.amax_history_length = 3}}) {
            of_first.build(1);
            of_second.build(1);
        }
        void step(bool both, const mp::tensor<bfloat16>& x, const mp::tensor<bfloat16>& dy) {
            for (layer* const it : {&first, &second}) {
                if (it == &second && !both) continue;
                it->forward(mp::cpu{}, x.view());
                it->backward(mp::cpu{}, dy.view(), mp::ops::absent);
            }
            of_first.weights_changed();
            of_second.weights_changed();
        }
        auto scales() {
            return [this](auto& visit) {
                visit("first", first);
                visit("second", second);
            };
        }
    };
    const test_folder folder;
    model together(true), apart(false);
    mp::tensor<bfloat16> x(rows, in), dy(rows, out);
    for (int i = 0; i < 9; ++i) {
        mp::initialize(x.values(), mp::initializers::normal(1.0 + i % 4), 3, 0);
        mp::initialize(dy.values(), mp::initializers::normal(1e-5), 4, 0);
        // One of them does not run in every iteration; its scales stay then.
        for (model* const it : {&together, &apart}) it->step(i % 3 != 1, x, dy);
        if (i % 3 == 1) continue;
        mp::save_checkpoint(folder.file("together"), together.scales());
        mp::save_checkpoint(folder.file("apart"), apart.scales());
        CHECK(read_file(folder.file("together")) == read_file(folder.file("apart")));
    }
}

template <class Value>
numbers all_gradients(const mp::parameter_store<Value>& store) {
    const auto all = store.gradients();
    return values_of(mp::row_major(all.data(), 1, static_cast<std::ptrdiff_t>(all.size())));
}

/// Two layers with an activation between them, in which rounding to 8 bits is part of a product, against products and
/// passes by themselves; with something that is not finite in the fourth of seven iterations.
template <class Policy, class Value>
void check_two_layers(bool bias, mp::cpu exec) {
    using linear = layers::linear<Value, Value, Policy>;
    struct pair {
        mp::parameter_store<Value> store;
        linear first, second;
        mp::tensor<Value> active{rows, out}, dz{rows, out}, dx{rows, in};
        explicit pair(bool bias)
            : first(store, "first", in, out, {.bias = bias, .float8 = {.amax_history_length = 2}}),
              second(store, "second", out, in, {.bias = bias, .float8 = {.amax_history_length = 3}}) {
            store.build(1);
        }
        auto scales() {
            return [this](auto& visit) {
                visit("first", first);
                visit("second", second);
            };
        }
    };
    const auto act = mp::ops::activation::silu;
    const test_folder folder;
    pair together(bias), apart(bias);
    mp::tensor<Value> x(rows, in), dy(rows, in);
    for (int i = 0; i < 7; ++i) {
        CAPTURE(i);
        for (const bool add : {false, true}) {
            mp::initialize(x.values(), mp::initializers::normal(1.0 + (i + add) % 4), 3, 0);
            mp::initialize(dy.values(), mp::initializers::normal(1e-5 * (i + 1)), 4, 0);
            if (i == 3) x.values()[71] = Value(std::numeric_limits<float>::infinity());
            const auto y = together.first.forward_into(exec, x.view(), act, together.second);
            together.first.backward_from(exec, dy.view(), together.dx.view(), act, together.second, add);
            apart.first.forward(mp::cpu{}, x.view(), act, apart.active.view());
            const auto expected = apart.second.forward(mp::cpu{}, apart.active.view());
            if constexpr (std::is_same_v<Value, float>) {
                apart.second.backward(mp::cpu{}, dy.view(), apart.dz.view(), add);
                mp::ops::silu_backward(mp::cpu{}, apart.first.result(), apart.dz.view(), apart.dz.view());
            } else {
                apart.second.backward(mp::cpu{}, dy.view(), apart.first.result(), act, apart.dz.view(), add);
            }
            apart.first.backward(mp::cpu{}, apart.dz.view(), apart.dx.view(), add);
            const auto same = [](const numbers& a, const numbers& b) {
                return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double found, double wanted) {
                    return found == wanted || (std::isnan(found) && std::isnan(wanted));
                });
            };
            CHECK(same(values_of(y), values_of(expected)));
            CHECK(same(values_of(together.dx.view()), values_of(apart.dx.view())));
            CHECK(same(all_gradients(together.store), all_gradients(apart.store)));
        }
        mp::save_checkpoint(folder.file("together"), together.scales());
        mp::save_checkpoint(folder.file("apart"), apart.scales());
        CHECK(read_file(folder.file("together")) == read_file(folder.file("apart")));
        together.store.weights_changed();
        apart.store.weights_changed();
    }
}

TEST_CASE("what is rounded to 8 bits in the product before has the bits of passes by themselves") {
    mp::host_workspace workspace;
    check_two_layers<layers::float8_delayed_scaling, bfloat16>(true, {.threads = 3, .workspace = &workspace});
    check_two_layers<layers::float8_delayed_scaling, float>(false, {});
    check_two_layers<layers::float8_current_scaling, float>(true, {});
    check_two_layers<layers::mxfp8_block_scaling, bfloat16>(true, {});
    // Layers that do not fit.
    mp::parameter_store<float> store;
    layers::linear<float, float, layers::float8_delayed_scaling> first(store, "first", in, out),
        second(store, "second", in, out);
    store.build(1);
    const mp::tensor<float> x(rows, in);
    CHECK_THROWS_AS(first.forward_into(mp::cpu{}, x.view(), mp::ops::activation::gelu, second),
                    mp::argument_error);
    CHECK_THROWS_AS(first.forward_into(mp::cpu{}, x.view(), mp::ops::activation::relu, first),
                    mp::argument_error);
}

TEST_CASE_TEMPLATE("wrong shapes and options are named", Policy, layers::float8_delayed_scaling,
                   layers::mxfp8_block_scaling) {
    workplace<Policy> place;
    const auto message = [&](auto f) { return message_of(f); };
    CHECK(message([&] {
              place.layer.forward(mp::cpu{}, place.x.view().block(0, 0, rows, in - 1));
          }).find("mp::layers::linear: x.columns is 69") != std::string::npos);
    place.forward();
    CHECK(message([&] {
              place.layer.backward(mp::cpu{}, place.dy.view(), place.dx.view());
          }).find("mp::layers::linear: dy.columns is 48") != std::string::npos);
    CHECK(message([&] {
              place.layer.forward(mp::cpu{}, mp::transposed(mp::row_major(place.x.view().data, in, rows)));
          }).find("x.order is 'column_major'") != std::string::npos);
    // Weights that were written without a word.
    workplace<Policy> silent({.compare_weights = true});
    const auto kept = silent.layer.weight().mutable_values();
    silent.forward();
    silent.forward();
    kept[3] = bfloat16(7.0F);
    CHECK_THROWS_AS(silent.forward(), mp::state_error);
    silent.store.weights_changed();
    silent.forward();
    CHECK_THROWS_AS(workplace<layers::float8_delayed_scaling>({.amax_history_length = 0}),
                    mp::argument_error);
    CHECK_THROWS_AS(workplace<layers::float8_delayed_scaling>({.margin = 65}), mp::argument_error);
}

}  // namespace
