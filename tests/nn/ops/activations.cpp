// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/activations.hpp>
#include <mp/nn/ops/linear.hpp>

#include <boost/math/special_functions/erf.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "larger_error.hpp"
#include "reference.hpp"

namespace {

using mp::bfloat16;
using mp::half;
using mp::storage_order;
using mp::ops::gelu_formula;
using ops_test::cast;
using ops_test::matrix;
using ops_test::message_of;
using ops_test::same_bits;
using exact = boost::multiprecision::cpp_bin_float_50;
namespace ac = mp::autocast;

static_assert(std::same_as<ac::compute_type_t<ac::fp16, mp::ops::gelu_op, float>, float>);
static_assert(std::same_as<ac::compute_type_t<ac::fp16, mp::ops::silu_op, bfloat16>, bfloat16>);

/// The functions as an argument of the tests: the op, its gradient, and the textbook formula in Real.
struct gelu_case {
    static constexpr std::string_view name = "gelu";
    static constexpr double ulp = 6;  // of float, as the op promises
    static constexpr double slope_error = 0x1p-22;
    static void forward(mp::cpu exec, auto x, auto y) { mp::ops::gelu(exec, x, y); }
    static void backward(mp::cpu exec, auto x, auto dy, auto dx) { mp::ops::gelu_backward(exec, x, dy, dx); }
    template <class Real>
    static Real value(const Real& x) {
        using std::sqrt;
        if constexpr (std::same_as<Real, double>) {
            return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
        } else {
            return x * boost::math::erfc(Real(-x / sqrt(Real(2)))) / 2;
        }
    }
};
struct gelu_tanh_case {
    static constexpr double ulp = 4;
    static constexpr double slope_error = 0x1p-21;
    static void forward(mp::cpu exec, auto x, auto y) { mp::ops::gelu(exec, x, y, gelu_formula::tanh); }
    static void backward(mp::cpu exec, auto x, auto dy, auto dx) {
        mp::ops::gelu_backward(exec, x, dy, dx, gelu_formula::tanh);
    }
    template <class Real>
    static Real value(const Real& x) {
        using std::sqrt, std::tanh, std::atan;
        const Real root = sqrt(Real(2) / (4 * atan(Real(1))));
        return x / 2 * (1 + tanh(root * (x + Real("0.044715") * x * x * x)));
    }
};
template <>
double gelu_tanh_case::value<double>(const double& x) {
    return x / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}
struct silu_case {
    static constexpr std::string_view name = "silu";
    static constexpr double ulp = 4;
    static constexpr double slope_error = 0x1p-22;
    static void forward(mp::cpu exec, auto x, auto y) { mp::ops::silu(exec, x, y); }
    static void backward(mp::cpu exec, auto x, auto dy, auto dx) { mp::ops::silu_backward(exec, x, dy, dx); }
    template <class Real>
    static Real value(const Real& x) {
        using std::exp;
        return x / (1 + exp(Real(-x)));
    }
};
/// Its gradient takes the result; the tests of gradients give it one in float.
struct tanh_case {
    static constexpr std::string_view name = "tanh";
    static constexpr double ulp = 3;
    static constexpr double slope_error = 0x1p-22;
    static void forward(mp::cpu exec, auto x, auto y) { mp::ops::tanh(exec, x, y); }
    template <class X>
    static void backward(mp::cpu exec, mp::matrix_view<X> x, auto dy, auto dx) {
        matrix<float> y(x.rows, x.columns);
        mp::ops::tanh(exec, x, y.view);
        mp::ops::tanh_backward(exec, y.view, dy, dx);
    }
    template <class Real>
    static Real value(const Real& x) {
        using std::tanh;
        return tanh(x);
    }
};

/// Likewise.
struct sigmoid_case {
    static constexpr std::string_view name = "sigmoid";
    static constexpr double ulp = 3;
    static constexpr double slope_error = 0x1p-22;
    static void forward(mp::cpu exec, auto x, auto y) { mp::ops::sigmoid(exec, x, y); }
    template <class X>
    static void backward(mp::cpu exec, mp::matrix_view<X> x, auto dy, auto dx) {
        matrix<float> y(x.rows, x.columns);
        mp::ops::sigmoid(exec, x, y.view);
        mp::ops::sigmoid_backward(exec, y.view, dy, dx);
    }
    template <class Real>
    static Real value(const Real& x) {
        using std::exp;
        return 1 / (1 + exp(Real(-x)));
    }
};

/// The largest distance from the exact results, in units in the last place of Value, over arguments of all
/// magnitudes.
template <class Case, class Value>
double worst_error(const matrix<Value>& x) {
    matrix<Value> y(x.view.rows, x.view.columns);
    Case::forward(mp::cpu{}, x.view, y.view);
    double worst = 0;
    for (std::ptrdiff_t c = 0; c < x.view.columns; ++c) {
        const auto argument = static_cast<double>(static_cast<float>(x.view(0, c)));
        const exact expected = Case::value(exact(argument));
        const exact actual = static_cast<double>(static_cast<float>(y.view(0, c)));
        const exact unit = ops_test::unit_in_last_place<Value>(static_cast<double>(expected));
        worst = tests::larger_error(worst, static_cast<double>(abs(actual - expected) / unit));
    }
    return worst;
}

template <class Case, class Value>
double worst_error_of_codes() {
    using format = typename Value::format;
    using storage = typename Value::storage;
    constexpr std::ptrdiff_t count = std::ptrdiff_t{1} << mp::layout_of<format>::width;
    const std::ptrdiff_t step = count > 256 ? 37 : 1;
    matrix<Value> x(1, (count - 1) / step + 1);
    x.fill([&](auto, auto c) {
        const auto value = Value::from_bits(static_cast<storage>(c * step));
        return mp::isfinite(value) ? value : Value(1);
    });
    return worst_error<Case>(x);
}

TEST_CASE_TEMPLATE("the values are within the promised ulp of float, and then rounded to the format", Case,
                   gelu_case, gelu_tanh_case, silu_case, tanh_case, sigmoid_case) {
    // An ulp of float is 2^-13 ulp of half.
    CHECK(worst_error_of_codes<Case, half>() <= 0.5 + Case::ulp * 0x1p-13);
    CHECK(worst_error_of_codes<Case, bfloat16>() <= 0.5 + Case::ulp * 0x1p-16);
    CHECK(worst_error_of_codes<Case, mp::float8_e4m3fn>() <= 0.5 + Case::ulp * 0x1p-20);
    CHECK(worst_error_of_codes<Case, mp::float8_e5m2>() <= 0.5 + Case::ulp * 0x1p-21);
    // Floats: the tails down to the smallest results, small numbers, large ones.
    matrix<float> x(1, 2000);
    x.fill([](auto, auto c) {
        const auto t = static_cast<float>(c % 500);
        if (c < 500) return t * 0.0712F - 18.0F;
        if (c < 1000) return t * 0.49F - 122.0F;
        if (c < 1500) return std::ldexp(t - 250, -static_cast<int>(c % 140));
        return t * 0.00811F - 2.0F;
    });
    CHECK(worst_error<Case>(x) <= Case::ulp);
}

TEST_CASE_TEMPLATE("the gradients are those of central differences in 50 digits", Case, gelu_case,
                   gelu_tanh_case, silu_case) {
    matrix<float> x(1, 400), dy(1, 400), dx(1, 400);
    x.fill([](auto, auto c) { return static_cast<float>(c) * 0.0871F - 17.5F; });
    dy.randomize(3);
    Case::backward(mp::cpu{}, x.view, dy.view, dx.view);
    double worst = 0;
    for (std::ptrdiff_t c = 0; c < 400; ++c) {
        const exact at = static_cast<double>(x.view(0, c));
        const exact step("1e-15");  // truncation 1e-30, cancellation 1e-35
        const exact slope = (Case::value(exact(at + step)) - Case::value(exact(at - step))) / (2 * step);
        const auto expected = static_cast<double>(slope) * static_cast<double>(dy.view(0, c));
        // Half a unit for the rounding to float, and the absolute error of the slope.
        const double allowed = 0.501 * ops_test::unit_in_last_place<float>(expected) +
                               Case::slope_error * std::abs(static_cast<double>(dy.view(0, c)));
        worst = tests::larger_error(worst, std::abs(static_cast<double>(dx.view(0, c)) - expected) / allowed);
    }
    CHECK(worst <= 1);
}

TEST_CASE_TEMPLATE("the gradients are those of central differences in double, in every layout and format",
                   Case, gelu_case, gelu_tanh_case, silu_case, tanh_case, sigmoid_case) {
    ops_test::for_each_layout([](storage_order order, std::ptrdiff_t padding) {
        matrix<half> x(70, 5, padding, order);
        matrix<float> dy(70, 5, 0, storage_order::row_major), dx(70, 5, padding);
        matrix<bfloat16> y(70, 5, padding, order);
        matrix<half> narrow(70, 5, padding, storage_order::column_major);
        x.randomize(5);
        dy.randomize(6);
        Case::forward(mp::cpu{}, x.view, y.view);
        Case::backward(mp::cpu{}, x.view, dy.view, dx.view);
        Case::backward(mp::cpu{}, x.view, dy.view, narrow.view);
        int wrong = 0;
        for (std::ptrdiff_t r = 0; r < 70; ++r) {
            for (std::ptrdiff_t c = 0; c < 5; ++c) {
                auto variable = static_cast<double>(static_cast<float>(x.view(r, c)));
                const auto value = [&] { return Case::value(variable); };
                const double expected =
                    ops_test::derivative(variable, value, 0x1p-16) * static_cast<double>(dy.view(r, c));
                // Differences are good to the square of the step, and the products and y of tanh to a few
                // 2^-25.
                wrong += std::abs(static_cast<double>(dx.view(r, c)) - expected) < Case::slope_error + 2e-7
                             ? 0
                             : 1;
                wrong += narrow.view(r, c).bits() == half(dx.view(r, c)).bits() ? 0 : 1;
                wrong += std::abs(static_cast<double>(static_cast<float>(y.view(r, c))) - value()) <=
                                 0x1p-8 * std::abs(value())
                             ? 0
                             : 1;
            }
        }
        CHECK(wrong == 0);
        CHECK(y.padding_is_untouched());
        CHECK(dx.padding_is_untouched());
        CHECK(narrow.padding_is_untouched());
    });
}

TEST_CASE_TEMPLATE("one thread and three write the same bits, in place as well", Case, gelu_case,
                   gelu_tanh_case, silu_case, tanh_case, sigmoid_case) {
    matrix<float> x(61, 1001), dy(61, 1001);
    x.randomize(1);
    dy.randomize(2);
    CHECK(ops_test::same_with_three_threads<half>(
        61, 1001, [&](mp::cpu exec, auto y) { Case::forward(exec, x.view, y); }));
    CHECK(ops_test::same_with_three_threads<float>(
        61, 1001, [&](mp::cpu exec, auto dx) { Case::backward(exec, x.view, dy.view, dx); }));
    matrix<float> y(61, 1001), dx(61, 1001);
    Case::forward(mp::cpu{}, x.view, y.view);
    Case::backward(mp::cpu{}, x.view, dy.view, dx.view);
    Case::backward(mp::cpu{}, x.view, dy.view, dy.view);
    Case::forward(mp::cpu{}, x.view, x.view);
    CHECK(same_bits(x, y));
    CHECK(same_bits(dx, dy));
}

TEST_CASE_TEMPLATE("a region casts nothing", Case, gelu_case, silu_case, tanh_case, sigmoid_case) {
    matrix<float> x(2, 3), dy(2, 3), outside(2, 3), inside(2, 3), dx_outside(2, 3), dx_inside(2, 3);
    x.randomize(4);
    dy.randomize(5);
    Case::forward(mp::cpu{}, x.view, outside.view);
    Case::backward(mp::cpu{}, x.view, dy.view, dx_outside.view);
    const mp::autocast_region region(mp::precision::bf16);
    Case::forward(mp::cpu{}, x.view, inside.view);
    Case::backward(mp::cpu{}, x.view, dy.view, dx_inside.view);
    CHECK(same_bits(inside, outside));
    CHECK(same_bits(dx_inside, dx_outside));
}

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

template <class Case>
void check_special_values(float at_infinity, float at_minus_infinity, float slope_at_infinity) {
    matrix<float> x(1, 6), y(1, 6), dy(1, 6), dx(1, 6);
    const float values[] = {infinity, -infinity, nan, -nan, 0.0F, -0.0F};
    x.fill([&](auto, auto c) { return values[c]; });
    dy.fill([](auto, auto) { return 2.0F; });
    Case::forward(mp::cpu{}, x.view, y.view);
    const auto same = [](float a, float b) { return mp::detail::bits_of(a) == mp::detail::bits_of(b); };
    CHECK(same(y.view(0, 0), at_infinity));
    CHECK(same(y.view(0, 1), at_minus_infinity));
    CHECK(mp::isnan(y.view(0, 2)));
    CHECK(mp::isnan(y.view(0, 3)));
    CHECK(same(y.view(0, 4), 0.0F));
    CHECK(same(y.view(0, 5), -0.0F));
    Case::backward(mp::cpu{}, x.view, dy.view, dx.view);
    CHECK(dx.view(0, 0) == 2 * slope_at_infinity);
    CHECK(dx.view(0, 1) == 0.0F);
    CHECK(mp::isnan(dx.view(0, 2)));
    CHECK(mp::isnan(dx.view(0, 3)));
    dy.fill([&](auto, auto c) { return c == 0 ? nan : infinity; });
    x.fill([](auto, auto) { return 0.5F; });
    Case::backward(mp::cpu{}, x.view, dy.view, dx.view);
    CHECK(mp::isnan(dx.view(0, 0)));
    CHECK(mp::isinf(dx.view(0, 1)));
}

TEST_CASE("NaN stays, and infinities give the limits of the functions") {
    check_special_values<gelu_case>(infinity, -0.0F, 1);
    check_special_values<gelu_tanh_case>(infinity, -0.0F, 1);
    check_special_values<silu_case>(infinity, -0.0F, 1);
    check_special_values<tanh_case>(1, -1, 0);
}

TEST_CASE("an activation after a layer equals the one in its epilogue, bit for bit") {
    using mp::ops::activation;
    matrix<half> x(6, 40), w(30, 40);
    matrix<float> before(6, 30), expected(6, 30), fused(6, 30);
    x.randomize(1);
    w.randomize(2);
    const auto b = ops_test::random_vector<half>(30, 3);
    const auto check = [&](activation act, auto apply) {
        const mp::cpu exec{};
        mp::ops::linear(exec, x.view, w.view, b, before.view);
        apply(before.view, expected.view);
        mp::ops::linear(exec, x.view, w.view, b, fused.view, act);
        CHECK(same_bits(expected, fused));
        mp::ops::linear(exec, x.view, w.view, mp::ops::absent, before.view);
        apply(before.view, expected.view);
        mp::ops::linear(exec, x.view, w.view, mp::ops::absent, fused.view, act);
        CHECK(same_bits(expected, fused));
        // In a narrow result, the activation comes before the one rounding.
        matrix<half> narrow(6, 30);
        mp::ops::linear(exec, x.view, w.view, mp::ops::absent, narrow.view, act);
        CHECK(same_bits(narrow, cast<half>(expected)));
    };
    check(activation::gelu, [](auto from, auto to) { mp::ops::gelu(mp::cpu{}, from, to); });
    check(activation::gelu_tanh,
          [](auto from, auto to) { mp::ops::gelu(mp::cpu{}, from, to, gelu_formula::tanh); });
    check(activation::silu, [](auto from, auto to) { mp::ops::silu(mp::cpu{}, from, to); });
}

TEST_CASE("activations of an empty matrix do nothing") {
    const auto empty = mp::row_major<float>(nullptr, 0, 3);
    mp::ops::gelu(mp::cpu{}, empty, empty);
    mp::ops::silu_backward(mp::cpu{}, empty, empty, mp::row_major<half>(nullptr, 0, 3));
    mp::ops::tanh(mp::cpu{}, mp::row_major<float>(nullptr, 3, 0), mp::row_major<half>(nullptr, 3, 0));
}

TEST_CASE_TEMPLATE("activations name the argument that does not fit, and write nothing", Case, gelu_case,
                   silu_case, tanh_case, sigmoid_case) {
    matrix<float> x(2, 3), y(2, 3), other(3, 2);
    const mp::cpu exec{};
    const std::string function = "mp::ops::" + std::string(Case::name);
    CHECK(message_of([&] { Case::forward(exec, x.view, other.view); }) ==
          function + ": y.rows is 3; it must equal x.rows, which is 2");
    CHECK(message_of([&] { Case::forward(mp::cpu{.threads = 0}, x.view, y.view); }) ==
          function + ": exec.threads is 0; it must be at least 1");
    CHECK(message_of([&] { Case::forward(exec, x.view.block(0, 0, 2, 2), x.view.block(0, 1, 2, 2)); }) ==
          function + ": y overlaps x; they must not share elements, because y is written while x is in use");
    CHECK(message_of([&] { Case::forward(exec, mp::row_major<float>(nullptr, 2, 3), y.view); }) ==
          function + ": x.data is null; it must point to a matrix of 2 x 3 elements");
    const std::string known = Case::name == "tanh" || Case::name == "sigmoid" ? "y" : "x";
    CHECK(message_of([&] { Case::backward(exec, x.view, other.view, y.view); }) ==
          function + "_backward: dy.rows is 3; it must equal " + known + ".rows, which is 2");
    CHECK(message_of([&] { Case::backward(exec, x.view, x.view, other.view); }) ==
          function + "_backward: dx.rows is 3; it must equal " + known + ".rows, which is 2");
    CHECK(message_of([&] {
              Case::backward(exec, x.view.block(0, 0, 2, 2), y.view.block(0, 0, 2, 2),
                             y.view.block(0, 1, 2, 2));
          }) == function +
                    "_backward: dx overlaps dy; they must not share elements, because dx is written "
                    "while dy is in use");
    CHECK(y.elements == std::vector<float>(6, -88.0F));
}

TEST_CASE("gelu refuses a formula that does not exist") {
    matrix<float> x(2, 3), y(2, 3);
    const auto unknown = static_cast<gelu_formula>(7);
    CHECK(message_of([&] { mp::ops::gelu(mp::cpu{}, x.view, y.view, unknown); }) ==
          "mp::ops::gelu: formula is 7; it must be an enumerator of mp::ops::gelu_formula");
    CHECK(message_of([&] { mp::ops::gelu_backward(mp::cpu{}, x.view, x.view, y.view, unknown); }) ==
          "mp::ops::gelu_backward: formula is 7; it must be an enumerator of mp::ops::gelu_formula");
    CHECK(y.elements == std::vector<float>(6, -88.0F));
}

}  // namespace
