// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/losses.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
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

static_assert(std::same_as<ac::output_type_t<ac::fp16, mp::ops::mean_squared_error_op,
                                             mp::matrix_view<const half>, mp::matrix_view<const half>>,
                           float>);

struct squared_case {
    static constexpr std::string_view name = "mean_squared_error";
    static float loss(mp::cpu exec, auto x, auto t, const loss_factors& factors = {}) {
        return mp::ops::mean_squared_error(exec, x, t, factors);
    }
    static void backward(mp::cpu exec, auto x, auto t, auto dx, const loss_factors& factors = {}) {
        mp::ops::mean_squared_error_backward(exec, x, t, dx, factors);
    }
    static double value(double difference) { return difference * difference; }
};
struct absolute_case {
    static constexpr std::string_view name = "mean_absolute_error";
    static float loss(mp::cpu exec, auto x, auto t, const loss_factors& factors = {}) {
        return mp::ops::mean_absolute_error(exec, x, t, factors);
    }
    static void backward(mp::cpu exec, auto x, auto t, auto dx, const loss_factors& factors = {}) {
        mp::ops::mean_absolute_error_backward(exec, x, t, dx, factors);
    }
    static double value(double difference) { return std::fabs(difference); }
};

double number(auto x) {
    return static_cast<double>(static_cast<float>(x));
}

template <class Case, class X, class T, class DX>
void check(storage_order order, std::ptrdiff_t padding) {
    const std::ptrdiff_t rows = 70, columns = 9;
    matrix<X> x(rows, columns, padding, order);
    matrix<T> t(rows, columns, 1, storage_order::row_major);
    matrix<DX> dx(rows, columns, padding, order);
    x.randomize(1);
    t.randomize(2);
    const loss_factors factors{.weight = 0.75F, .scale = 4096.0F};
    long double sum = 0;
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
        for (std::ptrdiff_t c = 0; c < columns; ++c) {
            sum += static_cast<long double>(Case::value(number(x.view(r, c)) - number(t.view(r, c))));
        }
    }
    // The sum in double is the exact one except for 2^-43 of it; one rounding to float.
    const auto mean = static_cast<double>(sum / (rows * columns));
    CHECK(std::abs(number(Case::loss(mp::cpu{}, x.view, t.view)) / mean - 1) <= 0x1p-24 * 1.001);
    CHECK(std::abs(number(Case::loss(mp::cpu{}, x.view, t.view, factors)) / mean / 0.75 - 1) <=
          0x1p-24 * 1.001);
    Case::backward(mp::cpu{}, x.view, t.view, dx.view, factors);
    int wrong = 0;
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
        for (std::ptrdiff_t c = 0; c < columns; ++c) {
            double variable = number(x.view(r, c));
            const auto part = [&] { return Case::value(variable - number(t.view(r, c))); };
            if (std::abs(variable - number(t.view(r, c))) < 0x1p-12) continue;  // where |x| has a corner
            const double expected = ops_test::derivative(variable, part, 0x1p-14) / 630 * 0.75 * 4096;
            // Differences of squares are exact except for rounding, 2^-53 / step; one rounding to DX.
            const double allowed =
                0.5001 * ops_test::unit_in_last_place<DX>(expected) + 1e-10 + 0x1p-24 * std::abs(expected);
            wrong += std::abs(number(dx.view(r, c)) - expected) <= allowed ? 0 : 1;
        }
    }
    CHECK(wrong == 0);
    CHECK(dx.padding_is_untouched());
}

TEST_CASE_TEMPLATE("losses are those of the definition, and gradients those of central differences", Case,
                   squared_case, absolute_case) {
    ops_test::for_each_layout([](storage_order order, std::ptrdiff_t padding) {
        check<Case, float, float, float>(order, padding);
        check<Case, half, half, half>(order, padding);
        check<Case, bfloat16, float, bfloat16>(order, padding);
        check<Case, mp::float8_e4m3fn, half, float>(order, padding);
    });
}

TEST_CASE_TEMPLATE("half gradients of a small loss flush to zero, and the loss scale prevents it", Case,
                   squared_case, absolute_case) {
    matrix<half> x(4, 4), t(4, 4), dx(4, 4);
    x.randomize(1);
    t.fill([](auto, auto) { return half(2); });
    const auto count = [&](loss_factors factors, auto predicate) {
        Case::backward(mp::cpu{}, x.view, t.view, dx.view, factors);
        int found = 0;
        for (const half value : dx.elements) found += predicate(value) ? 1 : 0;
        return found;
    };
    const auto is_zero = [](half value) { return value == half(0); };
    CHECK(count({}, is_zero) == 0);
    CHECK(count({.weight = 0x1p-24F}, is_zero) == 16);
    CHECK(count({.weight = 0x1p-24F, .scale = 0x1p24F}, is_zero) == 0);
    CHECK(count({.scale = 0x1p24F}, [](half value) { return mp::isinf(value); }) == 16);
}

TEST_CASE_TEMPLATE("a region leaves the loss in float, and threads change nothing", Case, squared_case,
                   absolute_case) {
    matrix<half> x(501, 333), t(501, 333, 1);
    x.randomize(1);
    t.randomize(2);
    const float outside = Case::loss(mp::cpu{}, x.view, t.view);
    CHECK(Case::loss({.threads = 3}, x.view, t.view) == outside);
    CHECK(ops_test::same_with_three_threads<float>(
        501, 333, [&](mp::cpu exec, auto dx) { Case::backward(exec, x.view, t.view, dx); }));
    matrix<float> dx_outside(501, 333), dx_inside(501, 333);
    Case::backward(mp::cpu{}, x.view, t.view, dx_outside.view);
    const mp::autocast_region region(mp::precision::bf16);
    CHECK(Case::loss(mp::cpu{}, x.view, t.view) == outside);
    Case::backward(mp::cpu{}, x.view, t.view, dx_inside.view);
    CHECK(same_bits(dx_inside, dx_outside));
}

TEST_CASE_TEMPLATE("the gradient may be written over the prediction, and is zero where it is right", Case,
                   squared_case, absolute_case) {
    matrix<float> x(3, 3), t(3, 3), dx(3, 3);
    x.randomize(1);
    t.randomize(2);
    t.view(1, 1) = x.view(1, 1);
    Case::backward(mp::cpu{}, x.view, t.view, dx.view);
    CHECK(dx.view(1, 1) == 0.0F);
    Case::backward(mp::cpu{}, x.view, t.view, x.view);
    CHECK(same_bits(x, dx));
}

TEST_CASE_TEMPLATE("what is not finite reaches loss and gradient", Case, squared_case, absolute_case) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    matrix<float> x(1, 2), t(1, 2), dx(1, 2);
    x.fill([](auto, auto) { return 1.0F; });
    t.fill([](auto, auto) { return 0.0F; });
    x.view(0, 0) = infinity;
    CHECK(Case::loss(mp::cpu{}, x.view, t.view) == infinity);
    t.view(0, 0) = infinity;
    CHECK(mp::isnan(Case::loss(mp::cpu{}, x.view, t.view)));
    t.view(0, 0) = std::numeric_limits<float>::quiet_NaN();
    CHECK(mp::isnan(Case::loss(mp::cpu{}, x.view, t.view)));
    Case::backward(mp::cpu{}, x.view, t.view, dx.view);
    CHECK(mp::isnan(dx.view(0, 0)));
    CHECK(mp::isfinite(dx.view(0, 1)));
}

TEST_CASE_TEMPLATE("losses name the argument that does not fit, and write nothing", Case, squared_case,
                   absolute_case) {
    matrix<float> x(2, 3), t(2, 3), dx(2, 3), other(3, 2);
    x.randomize(1);
    const mp::cpu exec{};
    const std::string name = "mp::ops::" + std::string(Case::name);
    const auto fails = [&](auto xv, auto tv, loss_factors factors = {}) {
        const std::string forward = message_of([&] { Case::loss(exec, xv, tv, factors); });
        const std::string backward = message_of([&] { Case::backward(exec, xv, tv, dx.view, factors); });
        REQUIRE(backward.starts_with(name + "_backward"));
        CHECK(forward.substr(name.size()) == backward.substr(name.size() + 9));
        return forward.substr(name.size());
    };
    CHECK(fails(x.view, other.view) == ": target.rows is 3; it must equal prediction.rows, which is 2");
    CHECK(fails(x.view.block(0, 0, 0, 3), t.view) ==
          ": prediction.rows is 0; it must be at least 1, since the mean of no losses is undefined");
    CHECK(fails(x.view.block(0, 0, 2, 0), t.view) ==
          ": prediction.columns is 0; it must be at least 1, since the mean of no losses is undefined");
    CHECK(fails(mp::row_major<float>(nullptr, 2, 3), t.view) ==
          ": prediction.data is null; it must point to a matrix of 2 x 3 elements");
    CHECK(fails(x.view, t.view, {.weight = -1}) ==
          ": factors.weight is -1; it must be finite and not negative");
    CHECK(fails(x.view, t.view, {.scale = 0}) == ": factors.scale is 0; it must be finite and positive");
    CHECK(message_of([&] { Case::backward(exec, x.view, t.view, other.view); }) ==
          name + "_backward: dprediction.rows is 3; it must equal prediction.rows, which is 2");
    CHECK(message_of([&] {
              Case::backward(exec, x.view.block(0, 0, 2, 2), t.view.block(0, 0, 2, 2),
                             x.view.block(0, 1, 2, 2));
          }) == name +
                    "_backward: dprediction overlaps prediction; they must not share elements, because "
                    "dprediction is written while prediction is in use");
    CHECK(dx.elements == std::vector<float>(6, -88.0F));
}

}  // namespace
