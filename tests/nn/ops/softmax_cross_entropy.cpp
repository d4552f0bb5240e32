// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/argmax.hpp>
#include <mp/nn/ops/softmax_cross_entropy.hpp>

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "reference.hpp"

namespace {

using mp::bfloat16;
using mp::half;
using mp::storage_order;
using mp::ops::loss_factors;
using ops_test::matrix;
using ops_test::message_of;
using ops_test::same_bits;
namespace ac = mp::autocast;

static_assert(
    std::same_as<ac::compute_type_t<ac::fp16, mp::ops::softmax_cross_entropy_op, mp::matrix_view<const half>>,
                 float>);

/// The mean loss in double.
double reference_loss(const matrix<double>& logits, const std::vector<int>& labels) {
    double total = 0;
    for (std::ptrdiff_t r = 0; r < logits.view.rows; ++r) {
        double sum = 0;
        for (std::ptrdiff_t c = 0; c < logits.view.columns; ++c) sum += std::exp(logits.view(r, c));
        total += std::log(sum) - logits.view(r, labels[static_cast<std::size_t>(r)]);
    }
    return total / static_cast<double>(logits.view.rows);
}

struct batch {
    matrix<double> logits{6, 10};
    std::vector<int> labels = {0, 9, 3, 3, 7, 1};

    batch() {
        logits.randomize(1);
        // Values that half holds, up to 4 in magnitude.
        logits.fill([&](auto r, auto c) { return static_cast<double>(half(4.0 * logits.view(r, c))); });
    }
};

TEST_CASE("the loss is that of the closed form in double, times the weight") {
    const batch b;
    const double expected = reference_loss(b.logits, b.labels);
    const auto logits = ops_test::cast<float>(b.logits);
    CHECK(static_cast<double>(mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, b.labels)) ==
          doctest::Approx(expected).epsilon(1e-6));
    const float weighted =
        mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, b.labels, {.weight = 0x1p-14F});
    CHECK(static_cast<double>(weighted) == doctest::Approx(expected * 0x1p-14).epsilon(1e-6));
    // The scale is for gradients alone.
    CHECK(mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, b.labels,
                                         {.weight = 0x1p-14F, .scale = 1024}) == weighted);
    CHECK(mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, b.labels, {.weight = 0}) == 0.0F);
}

TEST_CASE("equal logits give the logarithm of the number of classes, a certain answer gives zero") {
    matrix<float> logits(3, 4);
    logits.fill([](auto, auto) { return 2.5F; });
    const std::vector<std::uint8_t> labels = {0, 3, 1};
    CHECK(mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, labels) == doctest::Approx(std::log(4.0)));
    std::array<int, 3> array = {0, 3, 1};  // any contiguous range of integers will do
    CHECK(mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, array) == doctest::Approx(std::log(4.0)));
    CHECK(mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, std::span<int>(array)) ==
          doctest::Approx(std::log(4.0)));
    logits.fill([](auto r, auto c) { return c == (r == 0 ? 0 : r == 1 ? 3 : 1) ? 1000.0F : -1000.0F; });
    CHECK(mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, labels) == 0.0F);
    logits.fill([](auto, auto c) { return c == 2 ? 1000.0F : -1000.0F; });
    CHECK(mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, labels) == 2000.0F);
}

TEST_CASE("the gradient is that of central differences, times weight and scale") {
    batch b;
    const auto logits = ops_test::cast<float>(b.logits);
    matrix<float> gradient(6, 10, 3, storage_order::column_major);
    const loss_factors factors{.weight = 0.25F, .scale = 1024.0F};
    mp::ops::softmax_cross_entropy_backward(mp::cpu{}, logits.view, b.labels, gradient.view, factors);
    for (std::ptrdiff_t r = 0; r < 6; ++r) {
        double row_sum = 0;
        for (std::ptrdiff_t c = 0; c < 10; ++c) {
            const double expected =
                256 * ops_test::derivative(
                          b.logits.view(r, c), [&] { return reference_loss(b.logits, b.labels); }, 0x1p-12);
            CHECK(std::abs(static_cast<double>(gradient.view(r, c)) - expected) < 1e-4);
            row_sum += static_cast<double>(gradient.view(r, c));
        }
        CHECK(std::abs(row_sum) < 1e-4);
    }
    CHECK(gradient.padding_is_untouched());
}

TEST_CASE("a low-precision gradient is the float one rounded once") {
    const batch b;
    const auto logits = ops_test::cast<half>(b.logits);
    matrix<float> exact(6, 10);
    matrix<half> narrow(6, 10);
    matrix<bfloat16> brain(6, 10);
    mp::ops::softmax_cross_entropy_backward(mp::cpu{}, logits.view, b.labels, exact.view);
    mp::ops::softmax_cross_entropy_backward(mp::cpu{}, logits.view, b.labels, narrow.view);
    mp::ops::softmax_cross_entropy_backward(mp::cpu{}, logits.view, b.labels, brain.view);
    CHECK(same_bits(narrow, ops_test::cast<half>(exact)));
    CHECK(same_bits(brain, ops_test::cast<bfloat16>(exact)));
    auto in_place = ops_test::cast<half>(b.logits);
    mp::ops::softmax_cross_entropy_backward(mp::cpu{}, in_place.view, b.labels, in_place.view);
    CHECK(same_bits(in_place, narrow));
}

TEST_CASE("half gradients of a small loss flush to zero, and the loss scale prevents it") {
    const batch b;
    const auto logits = ops_test::cast<half>(b.logits);
    const auto zeros = [&](loss_factors factors) {
        matrix<half> gradient(6, 10);
        mp::ops::softmax_cross_entropy_backward(mp::cpu{}, logits.view, b.labels, gradient.view, factors);
        int count = 0;
        for (const half value : gradient.elements) count += value == half(0) ? 1 : 0;
        return count;
    };
    CHECK(zeros({}) == 0);
    CHECK(zeros({.weight = 0x1p-20F}) > 30);
    CHECK(zeros({.weight = 0x1p-20F, .scale = 0x1p20F}) == 0);
    matrix<half> gradient(6, 10);
    mp::ops::softmax_cross_entropy_backward(mp::cpu{}, logits.view, b.labels, gradient.view,
                                            {.scale = 0x1p24F});
    int infinite = 0;
    for (const half value : gradient.elements) infinite += mp::isinf(value) ? 1 : 0;
    CHECK(infinite > 30);
}

TEST_CASE("a region leaves the loss in float") {
    const batch b;
    const auto logits = ops_test::cast<float>(b.logits);
    const auto half_logits = ops_test::cast<half>(b.logits);
    const float outside = mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, b.labels);
    matrix<float> gradient_outside(6, 10), gradient_inside(6, 10);
    mp::ops::softmax_cross_entropy_backward(mp::cpu{}, logits.view, b.labels, gradient_outside.view);
    const mp::autocast_region region(mp::precision::bf16);
    CHECK(mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, b.labels) == outside);
    CHECK(mp::ops::softmax_cross_entropy(mp::cpu{}, half_logits.view, b.labels) == outside);
    CHECK(mp::ops::softmax_cross_entropy<ac::fp16>(mp::cpu{}, half_logits.view, b.labels) == outside);
    mp::ops::softmax_cross_entropy_backward(mp::cpu{}, half_logits.view, b.labels, gradient_inside.view);
    CHECK(same_bits(gradient_inside, gradient_outside));
}

TEST_CASE("what is not finite in the logits reaches the loss") {
    matrix<half> logits(2, 3);
    logits.fill([](auto, auto c) { return half(c); });
    const std::array<int, 2> labels = {0, 1};
    logits.view(1, 2) = std::numeric_limits<half>::quiet_NaN();
    CHECK(mp::isnan(mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, labels)));
    logits.view(1, 2) = std::numeric_limits<half>::infinity();
    CHECK(mp::isnan(mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, labels)));
    logits.view(1, 2) = -std::numeric_limits<half>::infinity();
    CHECK(mp::isfinite(mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, labels)));
}

TEST_CASE("loss and gradient do not depend on the number of threads") {
    matrix<float> logits(3000, 12), one(3000, 12), three(3000, 12);
    logits.randomize(9);
    std::vector<std::int64_t> labels(3000);
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int64_t>(i % 12);
    CHECK(mp::ops::softmax_cross_entropy({.threads = 1}, logits.view, labels) ==
          mp::ops::softmax_cross_entropy({.threads = 3}, logits.view, labels));
    mp::ops::softmax_cross_entropy_backward({.threads = 1}, logits.view, labels, one.view);
    mp::ops::softmax_cross_entropy_backward({.threads = 3}, logits.view, labels, three.view);
    CHECK(same_bits(one, three));
}

TEST_CASE("the loss names the argument that does not fit, and writes nothing") {
    const mp::cpu exec{};
    matrix<float> logits(2, 3), gradient(2, 3);
    logits.randomize(1);
    const auto fails = [&](auto view, const auto& labels, loss_factors factors = {}) {
        const std::string forward =
            message_of([&] { mp::ops::softmax_cross_entropy(exec, view, labels, factors); });
        const std::string backward = message_of(
            [&] { mp::ops::softmax_cross_entropy_backward(exec, view, labels, gradient.view, factors); });
        CHECK(gradient.elements == std::vector<float>(6, -88.0F));
        const std::string name = "mp::ops::softmax_cross_entropy";
        REQUIRE(backward.starts_with(name + "_backward"));
        CHECK(forward.substr(name.size()) == backward.substr(name.size() + 9));
        return forward.substr(name.size());
    };
    const std::vector<int> labels = {0, 2};
    CHECK(fails(logits.view, std::vector<int>{0, 3}) ==
          ": labels[1] is 3; it must be a column of logits, from 0 to 2");
    CHECK(fails(logits.view, std::vector<int>{-1, 0}) ==
          ": labels[0] is -1; it must be a column of logits, from 0 to 2");
    CHECK(fails(logits.view, std::vector<std::uint8_t>{1, 255}) ==
          ": labels[1] is 255; it must be a column of logits, from 0 to 2");
    CHECK(fails(logits.view, std::vector<int>{0}) ==
          ": labels.size() is 1; it must equal logits.rows, which is 2");
    CHECK(fails(mp::row_major(logits.view.data, 0, 3), std::vector<int>{}) ==
          ": logits.rows is 0; it must be at least 1, since the mean of no losses is undefined");
    CHECK(fails(mp::row_major(logits.view.data, 2, 0), labels) ==
          ": logits.columns is 0; it must be at least 1");
    CHECK(fails(mp::row_major<float>(nullptr, 2, 3), labels) ==
          ": logits.data is null; it must point to a matrix of 2 x 3 elements");
    CHECK(fails(logits.view, labels, {.weight = -1}) ==
          ": factors.weight is -1; it must be finite and not negative");
    CHECK(fails(logits.view, labels, {.scale = 0}) == ": factors.scale is 0; it must be finite and positive");
    CHECK(fails(logits.view, labels, {.scale = std::numeric_limits<float>::infinity()}) ==
          ": factors.scale is inf; it must be finite and positive");
    CHECK(fails(logits.view, labels, {.scale = std::numeric_limits<float>::quiet_NaN()}) ==
          ": factors.scale is nan; it must be finite and positive");
    CHECK(
        message_of([&] {
            mp::ops::softmax_cross_entropy_backward(exec, logits.view, labels,
                                                    mp::row_major(gradient.view.data, 3, 2));
        }) ==
        "mp::ops::softmax_cross_entropy_backward: dlogits.rows is 3; it must equal logits.rows, which is 2");
    CHECK(message_of([&] {
              mp::ops::softmax_cross_entropy_backward(exec, logits.view.block(0, 0, 2, 2),
                                                      std::vector<int>{0, 1}, logits.view.block(0, 1, 2, 2));
          }) ==
          "mp::ops::softmax_cross_entropy_backward: dlogits overlaps logits; they must not share elements, "
          "because "
          "dlogits is written while logits is in use");
}

TEST_CASE("argmax finds the first of the largest, and NaN before all") {
    matrix<half> values(4, 3, 1, storage_order::column_major);
    const float rows[4][3] = {
        {1, 3, 2}, {5, 5, 5}, {-3, -2, -2}, {9, std::numeric_limits<float>::quiet_NaN(), 10}};
    values.fill([&](auto r, auto c) { return half(rows[r][c]); });
    std::array<std::uint8_t, 4> indices{};
    mp::ops::argmax(mp::cpu{}, values.view, indices);
    CHECK(indices == std::array<std::uint8_t, 4>{1, 0, 1, 1});
    CHECK(mp::ops::accuracy(mp::cpu{}, values.view, indices) == 0.75);  // a row with NaN is never right
    CHECK(mp::ops::accuracy(mp::cpu{}, values.view, std::array{1, 1, 1, 2}) == 0.5);
}

TEST_CASE("argmax and accuracy name the argument that does not fit") {
    matrix<float> values(2, 300);
    values.randomize(1);
    CHECK(message_of([&] { mp::ops::argmax(mp::cpu{}, values.view, std::vector<int>(3)); }) ==
          "mp::ops::argmax: indices.size() is 3; it must equal values.rows, which is 2");
    CHECK(message_of([&] { mp::ops::argmax(mp::cpu{}, values.view, std::vector<std::uint8_t>(2)); }) ==
          "mp::ops::argmax: values.columns is 300; it must be small enough for the type of indices");
    CHECK(message_of([&] {
              mp::ops::argmax(mp::cpu{}, values.view,
                              std::span(reinterpret_cast<int*>(&values.view(1, 3)), 2));
          }) ==
          "mp::ops::argmax: indices overlaps values; they must not share elements, because indices is "
          "written while values is in use");
    CHECK(message_of([&] {
              mp::ops::argmax(mp::cpu{}, values.view.block(0, 0, 2, 0), std::vector<int>(2));
          }) == "mp::ops::argmax: values.columns is 0; it must be at least 1");
    CHECK(message_of([&] { (void)mp::ops::accuracy(mp::cpu{}, values.view, std::vector<int>{0, 300}); }) ==
          "mp::ops::accuracy: labels[1] is 300; it must be a column of logits, from 0 to 299");
    CHECK(message_of([&] {
              (void)mp::ops::accuracy(mp::cpu{}, values.view.block(0, 0, 0, 3), std::vector<int>{});
          }) ==
          "mp::ops::accuracy: logits.rows is 0; it must be at least 1, since the mean of no losses is "
          "undefined");
}

}  // namespace
