// SPDX-License-Identifier: MIT
// Compiled with -ffast-math, where comparisons with NaN mean nothing.
#include <doctest/doctest.h>
#include <mp/half.hpp>
#include <mp/nn/ops/activations.hpp>
#include <mp/nn/ops/arithmetic.hpp>
#include <mp/nn/ops/dropout.hpp>
#include <mp/nn/ops/linear.hpp>
#include <mp/nn/ops/losses.hpp>
#include <mp/nn/ops/reductions.hpp>
#include <mp/nn/ops/softmax.hpp>

#include <array>
#include <cmath>

namespace {

using mp::half;

template <class Value>
mp::matrix_view<Value> row(std::array<Value, 4>& values) {
    return mp::row_major(values.data(), 1, 4);
}

// NaN, -NaN, infinity, and a number
const std::array<half, 4> special = {half::from_bits(0x7E00), half::from_bits(0xFE00),
                                     half::from_bits(0x7C00), half(-1)};

template <class Value>
void check(const std::array<Value, 4>& y) {
    CHECK(mp::isnan(y[0]));
    CHECK(mp::isnan(y[1]));
    CHECK(mp::isinf(y[2]));
    CHECK(mp::isfinite(y[3]));
}

TEST_CASE("NaN and infinity pass through activations, sums and products whatever the compiler assumes") {
    std::array<half, 4> x = special, ones, y{};
    ones.fill(half(1));
    std::array<float, 4> wide{};
    const mp::cpu exec{};
    mp::ops::gelu(exec, row(x), row(y));
    check(y);
    mp::ops::gelu(exec, row(x), row(wide), mp::ops::gelu_formula::tanh);
    check(wide);
    mp::ops::silu(exec, row(x), row(y));
    check(y);
    CHECK(std::abs(static_cast<float>(y[3]) + 0.26894F) < 2e-4F);
    mp::ops::silu_backward(exec, row(ones), row(x), row(y));
    check(y);
    mp::ops::tanh(exec, row(x), row(y));
    CHECK(mp::isnan(y[0]));
    CHECK(mp::isnan(y[1]));
    CHECK(y[2] == half(1));
    mp::ops::add(exec, row(x), row(ones), row(y));
    check(y);
    mp::ops::multiply(exec, row(x), ones, row(wide));
    check(wide);
    mp::ops::dropout(exec, row(x), row(y), {.probability = 0});
    check(y);
    mp::ops::linear(exec, mp::row_major(x.data(), 4, 1), mp::row_major(ones.data(), 1, 1), mp::ops::absent,
                    mp::row_major(y.data(), 4, 1), mp::ops::activation::gelu);
    check(y);
}

TEST_CASE("NaN and infinity reach losses, sums and softmax whatever the compiler assumes") {
    std::array<half, 4> x = special, ones;
    ones.fill(half(1));
    std::array<float, 4> y{};
    const mp::cpu exec{};
    CHECK(mp::isnan(mp::ops::sum(exec, row(x))));
    CHECK(mp::isnan(mp::ops::mean_squared_error(exec, row(x), row(ones))));
    mp::ops::sum(exec, row(x), y, mp::ops::per::column);
    check(y);
    mp::ops::mean_squared_error_backward(exec, row(x), row(ones), row(y));
    check(y);
    mp::ops::mean_absolute_error_backward(exec, row(x), row(ones), row(y));
    CHECK(mp::isnan(y[0]));
    CHECK(mp::isnan(y[1]));
    CHECK(y[2] == 0.25F);
    mp::ops::softmax(exec, row(x), row(y));
    for (const float value : y) CHECK(mp::isnan(value));
    mp::ops::log_softmax(exec, row(x), row(y));
    for (const float value : y) CHECK(mp::isnan(value));
    x = {half(1), half::from_bits(0xFC00), half(1), half(1)};  // -infinity masks
    mp::ops::softmax(exec, row(x), row(y));
    CHECK(y[1] == 0.0F);
    CHECK(std::abs(y[0] - 1.0F / 3) < 1e-6F);
}

}  // namespace
