// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/activations.hpp>
#include <mp/nn/ops/linear.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "reference.hpp"

namespace {

using mp::bfloat16;
using mp::half;
using mp::storage_order;
using ops_test::matrix;
using ops_test::message_of;
using ops_test::same_bits;

/// relu and its gradient on every code of a format.
template <class Value>
void check_all_codes() {
    using storage = typename Value::storage;
    constexpr auto count = std::ptrdiff_t{1} << mp::layout_of<typename Value::format>::width;
    matrix<Value> x(1, count), y(1, count), dy(1, count), dx(1, count);
    x.fill([](auto, auto c) { return Value::from_bits(static_cast<storage>(c)); });
    dy.fill([](auto, auto) { return Value(1.5F); });
    mp::ops::relu(mp::cpu{}, x.view, y.view);
    mp::ops::relu_backward(mp::cpu{}, x.view, dy.view, dx.view);
    std::ptrdiff_t wrong = 0;
    for (std::ptrdiff_t c = 0; c < count; ++c) {
        const Value before = x.view(0, c);
        const Value after = y.view(0, c);
        const float gradient = dx.view(0, c);
        if (mp::isnan(before)) {
            wrong += mp::isnan(after) && gradient == 1.5F ? 0 : 1;
        } else if (before > Value(0.0F)) {
            wrong += after.bits() == before.bits() && gradient == 1.5F ? 0 : 1;
        } else {
            wrong += after.bits() == 0 && dx.view(0, c).bits() == 0 ? 0 : 1;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("relu and its gradient are right for every code of every format") {
    check_all_codes<half>();
    check_all_codes<bfloat16>();
    check_all_codes<mp::float8_e4m3fn>();
    check_all_codes<mp::float8_e5m2>();
}

TEST_CASE("relu of float keeps NaN and infinity and makes -0 a +0") {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    matrix<float> x(1, 8), y(1, 8);
    const float values[] = {1.5F, -1.5F, 0.0F, -0.0F, infinity, -infinity, nan, -nan};
    x.fill([&](auto, auto c) { return values[c]; });
    mp::ops::relu(mp::cpu{}, x.view, y.view);
    const std::uint32_t expected[] = {0x3FC00000, 0, 0, 0, 0x7F800000, 0, 0x7FC00000, 0xFFC00000};
    for (std::ptrdiff_t c = 0; c < 8; ++c) CHECK(mp::detail::bits_of(y.view(0, c)) == expected[c]);
}

TEST_CASE("relu after a layer equals relu in its epilogue, bit for bit") {
    matrix<half> x(6, 40), w(30, 40), plain(6, 30), fused(6, 30);
    x.randomize(1);
    w.randomize(2);
    mp::ops::linear(mp::cpu{}, x.view, w.view, mp::ops::absent, plain.view);
    mp::ops::linear(mp::cpu{}, x.view, w.view, mp::ops::absent, fused.view, mp::ops::activation::relu);
    mp::ops::relu(mp::cpu{}, plain.view, plain.view);
    CHECK(same_bits(plain, fused));
}

TEST_CASE("relu works across storage orders, padding, formats and threads") {
    matrix<float> x(70, 500, 3, storage_order::column_major), dy(70, 500, 1);
    matrix<half> y(70, 500, 2), dx(70, 500, 0, storage_order::column_major);
    x.randomize(3);
    dy.randomize(4);
    mp::ops::relu(mp::cpu{.threads = 2}, x.view, y.view);
    mp::ops::relu_backward(mp::cpu{.threads = 3}, y.view, dy.view, dx.view);
    std::ptrdiff_t wrong = 0;
    for (std::ptrdiff_t r = 0; r < 70; ++r) {
        for (std::ptrdiff_t c = 0; c < 500; ++c) {
            const half expected(x.view(r, c) > 0 ? x.view(r, c) : 0.0F);
            const half gradient(expected > half(0) ? dy.view(r, c) : 0.0F);
            wrong +=
                y.view(r, c).bits() == expected.bits() && dx.view(r, c).bits() == gradient.bits() ? 0 : 1;
        }
    }
    CHECK(wrong == 0);
    CHECK(y.padding_is_untouched());
}

TEST_CASE("relu may be done in place") {
    matrix<bfloat16> x(3, 4), y(3, 4), dy(3, 4), dx(3, 4);
    x.randomize(5);
    dy.randomize(6);
    mp::ops::relu(mp::cpu{}, x.view, y.view);
    mp::ops::relu(mp::cpu{}, x.view, x.view);
    CHECK(same_bits(x, y));
    mp::ops::relu_backward(mp::cpu{}, y.view, dy.view, dx.view);
    mp::ops::relu_backward(mp::cpu{}, y.view, dy.view, dy.view);
    CHECK(same_bits(dy, dx));
}

TEST_CASE("relu is not cast in a region") {
    matrix<float> x(1, 2), y(1, 2), dx(1, 2);
    x.fill([](auto, auto) { return 0.1F; });
    const mp::autocast_region region(mp::precision::fp16);
    mp::ops::relu(mp::cpu{}, x.view, y.view);
    mp::ops::relu_backward(mp::cpu{}, y.view, x.view, dx.view);
    CHECK(y.view(0, 1) == 0.1F);
    CHECK(dx.view(0, 1) == 0.1F);
}

TEST_CASE("the gradient of relu is that of central differences away from zero") {
    matrix<double> x(2, 5);
    x.randomize(7);
    const auto fx = ops_test::cast<float>(x);
    matrix<float> ones(2, 5), dx(2, 5);
    ones.fill([](auto, auto) { return 1.0F; });
    mp::ops::relu_backward(mp::cpu{}, fx.view, ones.view, dx.view);
    for (std::ptrdiff_t r = 0; r < 2; ++r) {
        for (std::ptrdiff_t c = 0; c < 5; ++c) {
            double& variable = x.view(r, c);
            REQUIRE(std::abs(variable) > 0x1p-10);
            const auto relu = [&] { return variable > 0 ? variable : 0.0; };
            CHECK(static_cast<double>(dx.view(r, c)) ==
                  doctest::Approx(ops_test::derivative(variable, relu, 0x1p-12)));
        }
    }
}

TEST_CASE("relu of an empty matrix does nothing") {
    mp::ops::relu(mp::cpu{}, mp::row_major<float>(nullptr, 3, 0, 2), mp::row_major<half>(nullptr, 3, 0));
    mp::ops::relu(mp::cpu{}, mp::row_major<float>(nullptr, 0, 3), mp::row_major<half>(nullptr, 0, 3));
}

TEST_CASE("relu names the argument that does not fit") {
    matrix<float> x(2, 3), y(2, 3), other(3, 2);
    const mp::cpu exec{};
    CHECK(message_of([&] { mp::ops::relu(exec, x.view, other.view); }) ==
          "mp::ops::relu: y.rows is 3; it must equal x.rows, which is 2");
    CHECK(message_of([&] { mp::ops::relu(exec, x.view, mp::row_major(x.view.data + 1, 2, 2)); }) ==
          "mp::ops::relu: y.columns is 2; it must equal x.columns, which is 3");
    CHECK(
        message_of([&] { mp::ops::relu(exec, x.view.block(0, 0, 2, 2), x.view.block(0, 1, 2, 2)); }) ==
        "mp::ops::relu: y overlaps x; they must not share elements, because y is written while x is in use");
    CHECK(message_of([&] { mp::ops::relu(exec, mp::row_major<float>(nullptr, 2, 3), y.view); }) ==
          "mp::ops::relu: x.data is null; it must point to a matrix of 2 x 3 elements");
    CHECK(message_of([&] { mp::ops::relu_backward(exec, x.view, other.view, y.view); }) ==
          "mp::ops::relu_backward: dy.rows is 3; it must equal y.rows, which is 2");
    CHECK(message_of([&] { mp::ops::relu_backward(exec, x.view, y.view, other.view); }) ==
          "mp::ops::relu_backward: dx.rows is 3; it must equal y.rows, which is 2");
}

}  // namespace
