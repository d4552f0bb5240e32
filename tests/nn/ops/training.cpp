// SPDX-License-Identifier: MIT
// A two-layer network trained with plain gradient descent, to show that the ops fit together in each of the
// ways that mixed precision is used.
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/ops.hpp>

#include <cstddef>
#include <vector>

#include "reference.hpp"

namespace {

using mp::bfloat16;
using mp::half;
using ops_test::matrix;

/// Trains on points of the plane, labelled by whether x y > 0 (which no linear model can tell), with weights,
/// activations and gradients of type Value. Returns the share of points told rightly.
template <class Value>
double train(float learning_rate, float weight = 1, float scale = 1, int steps = 500) {
    constexpr std::ptrdiff_t points = 64, hidden = 16;
    const mp::cpu exec{};
    matrix<Value> x(points, 2), h(points, hidden), logits(points, 2), dlogits(points, 2), dh(points, hidden);
    matrix<Value> w1(hidden, 2), dw1(hidden, 2), w2(2, hidden), dw2(2, hidden);
    std::vector<Value> b1(hidden), db1(hidden), b2(2), db2(2);
    x.randomize(1);
    w1.randomize(2);
    w2.randomize(3);
    std::vector<int> labels;
    for (std::ptrdiff_t i = 0; i < points; ++i) {
        labels.push_back(static_cast<float>(x.view(i, 0)) * static_cast<float>(x.view(i, 1)) > 0 ? 1 : 0);
    }
    const auto descend = [&](std::vector<Value>& parameters, const std::vector<Value>& gradients) {
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            parameters[i] = Value(static_cast<float>(parameters[i]) -
                                  learning_rate / scale * static_cast<float>(gradients[i]));
        }
    };
    const auto forward = [&] {
        mp::ops::linear(exec, x.view, w1.view, b1, h.view, mp::ops::activation::relu);
        mp::ops::linear(exec, h.view, w2.view, b2, logits.view);
    };
    for (int step = 0; step < steps; ++step) {
        forward();
        mp::ops::softmax_cross_entropy_backward(exec, logits.view, labels, dlogits.view,
                                                {.weight = weight, .scale = scale});
        mp::ops::linear_backward(exec, h.view, w2.view, dlogits.view, dh.view, dw2.view, db2);
        mp::ops::relu_backward(exec, h.view, dh.view, dh.view);
        mp::ops::linear_backward(exec, x.view, w1.view, dh.view, mp::ops::absent, dw1.view, db1);
        descend(w1.elements, dw1.elements);
        descend(w2.elements, dw2.elements);
        descend(b1, db1);
        descend(b2, db2);
    }
    forward();
    return mp::ops::accuracy(exec, logits.view, labels);
}

TEST_CASE("a network learns in float, in half, in bfloat16, and in float under autocast") {
    CHECK(train<float>(0.5F) > 0.95);
    CHECK(train<half>(0.5F) > 0.95);
    CHECK(train<bfloat16>(0.5F) > 0.9);
    const mp::autocast_region region(mp::precision::fp16);
    CHECK(train<float>(0.5F) > 0.95);
    const mp::autocast_region inner(mp::precision::bf16);
    CHECK(train<float>(0.5F) > 0.9);
}

TEST_CASE("with a tiny loss, half gradients vanish and loss scaling brings the training back") {
    constexpr float weight = 0x1p-20F;
    const double untrained = train<half>(0, 1, 1, 1);
    const double alone = train<half>(0.5F / weight, weight);
    const double scaled = train<half>(0.5F / weight, weight, 1 / weight);
    CHECK(alone == untrained);
    CHECK(scaled > 0.95);
}

}  // namespace
