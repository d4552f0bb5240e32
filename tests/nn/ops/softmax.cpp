// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/softmax.hpp>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <concepts>
#include <cstddef>
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
using ops_test::matrix;
using ops_test::message_of;
using ops_test::same_bits;
using exact = boost::multiprecision::cpp_bin_float_50;
namespace ac = mp::autocast;

static_assert(
    std::same_as<ac::output_type_t<ac::fp16, mp::ops::softmax_op, mp::matrix_view<const half>>, float>);
static_assert(std::same_as<
              ac::output_type_t<ac::bf16, mp::ops::log_softmax_backward_op, mp::matrix_view<const bfloat16>>,
              float>);

struct softmax_case {
    static constexpr std::string_view name = "softmax";
    static void forward(mp::cpu exec, auto x, auto y) { mp::ops::softmax(exec, x, y); }
    static void backward(mp::cpu exec, auto y, auto dy, auto dx) {
        mp::ops::softmax_backward(exec, y, dy, dx);
    }
    template <class Real>
    static Real value(const Real& x, const Real& sum) {
        using std::exp;
        return exp(x) / sum;
    }
};
struct log_softmax_case {
    static constexpr std::string_view name = "log_softmax";
    static void forward(mp::cpu exec, auto x, auto y) { mp::ops::log_softmax(exec, x, y); }
    static void backward(mp::cpu exec, auto y, auto dy, auto dx) {
        mp::ops::log_softmax_backward(exec, y, dy, dx);
    }
    template <class Real>
    static Real value(const Real& x, const Real& sum) {
        using std::log;
        return x - log(sum);
    }
};

double number(auto x) {
    return static_cast<double>(static_cast<float>(x));
}

/// The results of one row by the definition, in Real, whose range nothing leaves.
template <class Case, class Real, class Value>
std::vector<Real> reference_row(const matrix<Value>& x, std::ptrdiff_t row) {
    using std::exp;
    Real sum = 0;
    std::vector<Real> results;
    for (std::ptrdiff_t c = 0; c < x.view.columns; ++c) sum += exp(Real(static_cast<double>(x.view(row, c))));
    for (std::ptrdiff_t c = 0; c < x.view.columns; ++c) {
        results.push_back(Case::value(Real(static_cast<double>(x.view(row, c))), sum));
    }
    return results;
}

/// Against 50 digits, in units in the last place; rows of small, large and widely spread elements.
template <class Case, class X, class Y>
void check_accuracy(double allowed, storage_order order, std::ptrdiff_t padding) {
    matrix<X> x(6, 131, padding, order);
    matrix<Y> y(6, 131, padding, storage_order::row_major);
    x.randomize(1);
    const float factors[] = {0.01F, 1, 8, 30, 8, 2}, shifts[] = {0, 0, 100, -200, 0, -350};
    x.fill([&](auto r, auto c) { return X(static_cast<float>(x.view(r, c)) * factors[r] + shifts[r]); });
    Case::forward(mp::cpu{}, x.view, y.view);
    double worst = 0;
    for (std::ptrdiff_t r = 0; r < 6; ++r) {
        const auto expected = reference_row<Case, exact>(x, r);
        for (std::ptrdiff_t c = 0; c < 131; ++c) {
            const exact& value = expected[static_cast<std::size_t>(c)];
            const exact error = abs(exact(number(y.view(r, c))) - value);
            // The absolute error of logarithms is a relative one of 2^-40 where they are 1.
            const exact unit = ops_test::unit_in_last_place<Y>(static_cast<double>(value));
            worst = tests::larger_error(worst, static_cast<double>((error - exact(0x1p-40)) / unit));
        }
    }
    CHECK(worst <= allowed);
    CHECK(y.padding_is_untouched());
}

TEST_CASE_TEMPLATE("the results are the exact ones rounded to float and then to the format", Case,
                   softmax_case, log_softmax_case) {
    ops_test::for_each_layout([](storage_order order, std::ptrdiff_t padding) {
        check_accuracy<Case, float, float>(2.5, order, padding);
        check_accuracy<Case, half, float>(2.5, order, padding);
        check_accuracy<Case, half, half>(0.5 + 2.5 * 0x1p-13, order, padding);
        check_accuracy<Case, bfloat16, bfloat16>(0.5 + 2.5 * 0x1p-16, order, padding);
        check_accuracy<Case, mp::float8_e4m3fn, mp::float8_e5m2>(0.5 + 2.5 * 0x1p-21, order, padding);
    });
}

TEST_CASE("small probabilities have a small relative error, too") {
    matrix<float> x(1, 80), y(1, 80);
    x.fill([](auto, auto c) { return -static_cast<float>(c); });
    mp::ops::softmax(mp::cpu{}, x.view, y.view);
    const auto expected = reference_row<softmax_case, exact>(x, 0);
    double worst = 0;
    for (std::ptrdiff_t c = 0; c < 80; ++c) {
        const exact& value = expected[static_cast<std::size_t>(c)];
        worst = tests::larger_error(worst, static_cast<double>(abs(number(y.view(0, c)) / value - 1)));
    }
    CHECK(worst <= 2.5 * 0x1p-23);
}

TEST_CASE_TEMPLATE("the gradients are those of central differences", Case, softmax_case, log_softmax_case) {
    ops_test::for_each_layout([](storage_order order, std::ptrdiff_t padding) {
        const std::ptrdiff_t rows = 3, columns = 67;
        matrix<float> x(rows, columns), y(rows, columns, padding, order), dy(rows, columns);
        matrix<float> dx(rows, columns, padding, order);
        matrix<half> narrow(rows, columns, 0, storage_order::column_major);
        x.randomize(1);
        dy.randomize(2);
        Case::forward(mp::cpu{}, x.view, y.view);
        Case::backward(mp::cpu{}, y.view, dy.view, dx.view);
        Case::backward(mp::cpu{}, y.view, dy.view, narrow.view);
        matrix<double> variable(rows, columns);
        variable.fill([&](auto r, auto c) { return static_cast<double>(x.view(r, c)); });
        int wrong = 0;
        for (std::ptrdiff_t r = 0; r < rows; ++r) {
            const auto loss = [&] {
                double sum = 0;
                const auto results = reference_row<Case, double>(variable, r);
                for (std::ptrdiff_t c = 0; c < columns; ++c) {
                    sum += static_cast<double>(dy.view(r, c)) * results[static_cast<std::size_t>(c)];
                }
                return sum;
            };
            for (std::ptrdiff_t c = 0; c < columns; ++c) {
                const double expected = ops_test::derivative(variable.view(r, c), loss, 0x1p-12);
                // The differences are good to the square of the step, times third derivatives of some units;
                // y has a relative error of 2^-24 in softmax, and its logarithm an absolute one of 2^-23.
                wrong += std::abs(static_cast<double>(dx.view(r, c)) - expected) < 5e-7 ? 0 : 1;
                wrong += narrow.view(r, c).bits() == half(dx.view(r, c)).bits() ? 0 : 1;
            }
        }
        CHECK(wrong == 0);
        CHECK(dx.padding_is_untouched());
    });
}

TEST_CASE_TEMPLATE("one thread and three write the same bits, in place as well", Case, softmax_case,
                   log_softmax_case) {
    matrix<float> x(3001, 13), y(3001, 13), dy(3001, 13), dx(3001, 13);
    x.randomize(1);
    dy.randomize(2);
    Case::forward(mp::cpu{}, x.view, y.view);
    CHECK(ops_test::same_with_three_threads<half>(
        3001, 13, [&](mp::cpu exec, auto out) { Case::forward(exec, x.view, out); }));
    CHECK(ops_test::same_with_three_threads<float>(
        3001, 13, [&](mp::cpu exec, auto out) { Case::backward(exec, y.view, dy.view, out); }));
    Case::backward(mp::cpu{}, y.view, dy.view, dx.view);
    Case::backward(mp::cpu{}, y.view, dy.view, dy.view);
    CHECK(same_bits(dy, dx));
    Case::forward(mp::cpu{}, x.view, x.view);
    CHECK(same_bits(x, y));
}

TEST_CASE_TEMPLATE("a region leaves softmax in float", Case, softmax_case, log_softmax_case) {
    matrix<half> x(2, 5);
    matrix<float> outside(2, 5), inside(2, 5), dx_outside(2, 5), dx_inside(2, 5);
    x.randomize(1);
    Case::forward(mp::cpu{}, x.view, outside.view);
    Case::backward(mp::cpu{}, outside.view, x.view, dx_outside.view);
    const mp::autocast_region region(mp::precision::bf16);
    Case::forward(mp::cpu{}, x.view, inside.view);
    Case::backward(mp::cpu{}, outside.view, x.view, dx_inside.view);
    CHECK(same_bits(inside, outside));
    CHECK(same_bits(dx_inside, dx_outside));
}

TEST_CASE("masked elements get nothing, and what is undefined is NaN") {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    const float rows[4][3] = {
        {1, -infinity, 1}, {-infinity, -infinity, -infinity}, {0, infinity, 0}, {0, 0, nan}};
    matrix<float> x(4, 3), y(4, 3), log_y(4, 3), dy(4, 3), dx(4, 3);
    x.fill([&](auto r, auto c) { return rows[r][c]; });
    dy.fill([](auto, auto) { return 1.0F; });
    mp::ops::softmax(mp::cpu{}, x.view, y.view);
    mp::ops::log_softmax(mp::cpu{}, x.view, log_y.view);
    CHECK(y.view(0, 0) == 0.5F);
    CHECK(mp::detail::bits_of(y.view(0, 1)) == 0);
    CHECK(log_y.view(0, 2) == static_cast<float>(-std::log(2.0)));
    CHECK(log_y.view(0, 1) == -infinity);
    for (std::ptrdiff_t r = 1; r < 4; ++r) {
        for (std::ptrdiff_t c = 0; c < 3; ++c) {
            CHECK(mp::isnan(y.view(r, c)));
            CHECK(mp::isnan(log_y.view(r, c)));
        }
    }
    mp::ops::softmax_backward(mp::cpu{}, y.view, dy.view, dx.view);
    CHECK(dx.view(0, 1) == 0.0F);
    CHECK(mp::isnan(dx.view(2, 1)));
    mp::ops::log_softmax_backward(mp::cpu{}, log_y.view, dy.view, dx.view);
    CHECK(dx.view(0, 1) == 1.0F);
    CHECK(mp::isnan(dx.view(3, 0)));
}

TEST_CASE_TEMPLATE("softmax of an empty matrix does nothing", Case, softmax_case, log_softmax_case) {
    for (const auto& empty : {mp::row_major<float>(nullptr, 0, 3), mp::row_major<float>(nullptr, 3, 0)}) {
        Case::forward(mp::cpu{}, empty, empty);
        Case::backward(mp::cpu{}, empty, empty, empty);
    }
}

TEST_CASE_TEMPLATE("softmax names the argument that does not fit, and writes nothing", Case, softmax_case,
                   log_softmax_case) {
    matrix<float> x(2, 3), y(2, 3), other(3, 2);
    const mp::cpu exec{};
    const std::string function = "mp::ops::" + std::string(Case::name);
    CHECK(message_of([&] { Case::forward(exec, x.view, other.view); }) ==
          function + ": y.rows is 3; it must equal x.rows, which is 2");
    CHECK(message_of([&] { Case::forward(mp::cpu{.threads = 0}, x.view, y.view); }) ==
          function + ": exec.threads is 0; it must be at least 1");
    CHECK(message_of([&] { Case::forward(exec, x.view.block(0, 0, 2, 2), x.view.block(0, 1, 2, 2)); }) ==
          function + ": y overlaps x; they must not share elements, because y is written while x is in use");
    CHECK(message_of([&] { Case::backward(exec, x.view, other.view, y.view); }) ==
          function + "_backward: dy.rows is 3; it must equal y.rows, which is 2");
    CHECK(message_of([&] { Case::backward(exec, x.view, x.view, other.view); }) ==
          function + "_backward: dx.rows is 3; it must equal y.rows, which is 2");
    CHECK(y.elements == std::vector<float>(6, -88.0F));
}

}  // namespace
