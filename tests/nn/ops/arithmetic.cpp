// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/arithmetic.hpp>

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference.hpp"

namespace {

using mp::bfloat16;
using mp::half;
using mp::storage_order;
using mp::ops::absent;
using ops_test::cast;
using ops_test::matrix;
using ops_test::message_of;
using ops_test::random_vector;
using ops_test::same_bits;
namespace ac = mp::autocast;

static_assert(std::same_as<ac::output_type_t<ac::fp16, mp::ops::add_op, half, float>, float>);
static_assert(std::same_as<ac::output_type_t<ac::fp16, mp::ops::add_op, half, bfloat16>, float>);
static_assert(std::same_as<ac::output_type_t<ac::fp16, mp::ops::multiply_op, half, half>, half>);
static_assert(std::same_as<ac::output_type_t<ac::bf16, mp::ops::multiply_backward_op, half, half>, half>);

struct add_case {
    static constexpr std::string_view name = "add";
    static void forward(mp::cpu exec, auto a, const auto& b, auto y) { mp::ops::add(exec, a, b, y); }
    static void backward(mp::cpu exec, auto, const auto&, auto dy, auto&& da, auto&& db) {
        mp::ops::add_backward(exec, dy, da, db);
    }
    static double value(double a, double b) { return a + b; }
};
struct multiply_case {
    static constexpr std::string_view name = "multiply";
    static void forward(mp::cpu exec, auto a, const auto& b, auto y) { mp::ops::multiply(exec, a, b, y); }
    static void backward(mp::cpu exec, auto a, const auto& b, auto dy, auto&& da, auto&& db) {
        mp::ops::multiply_backward(exec, a, b, dy, da, db);
    }
    static double value(double a, double b) { return a * b; }
};

double number(auto x) {
    return static_cast<double>(static_cast<float>(x));
}

/// Every element against double, where sums and products of elements of at most 11 bits are exact; rounding
/// to float first moves what is rounded to Y by no more than 2^-24 of it.
template <class Case, class A, class B, class Y>
void check_forward() {
    ops_test::for_each_layout([](storage_order order, std::ptrdiff_t padding) {
        matrix<A> a(70, 131, padding, order);
        matrix<B> b(70, 131, 1, storage_order::row_major);
        matrix<Y> y(70, 131, padding, storage_order::row_major), rows(70, 131, padding, order);
        a.randomize(1);
        b.randomize(2);
        const auto row = random_vector<B>(131, 3);
        Case::forward(mp::cpu{}, a.view, b.view, y.view);
        Case::forward(mp::cpu{}, a.view, row, rows.view);
        int wrong = 0;
        const auto check = [&](Y actual, double expected) {
            const double error = std::abs(number(actual) - expected);
            const double allowed =
                0.5 * ops_test::unit_in_last_place<Y>(expected) + 0x1p-24 * std::abs(expected);
            wrong += error <= allowed ? 0 : 1;
        };
        for (std::ptrdiff_t r = 0; r < 70; ++r) {
            for (std::ptrdiff_t c = 0; c < 131; ++c) {
                check(y.view(r, c), Case::value(number(a.view(r, c)), number(b.view(r, c))));
                check(rows.view(r, c),
                      Case::value(number(a.view(r, c)), number(row[static_cast<std::size_t>(c)])));
            }
        }
        CHECK(wrong == 0);
        CHECK(y.padding_is_untouched());
        CHECK(rows.padding_is_untouched());
    });
}

TEST_CASE_TEMPLATE("sums and products are rounded once, in every mix of formats and layouts", Case, add_case,
                   multiply_case) {
    check_forward<Case, float, float, float>();
    check_forward<Case, half, half, half>();
    check_forward<Case, bfloat16, bfloat16, bfloat16>();
    check_forward<Case, half, bfloat16, float>();
    check_forward<Case, mp::float8_e4m3fn, half, mp::float8_e5m2>();
}

/// Gradients against central differences of sum(dy * value(a, b)) in double.
template <class Case, class Value>
void check_gradients(storage_order order, std::ptrdiff_t padding) {
    const std::ptrdiff_t rows = 9, columns = 70;
    matrix<Value> a(rows, columns, padding, order), b(rows, columns, padding), dy(rows, columns);
    a.randomize(1);
    b.randomize(2);
    dy.randomize(3);
    const auto row = random_vector<Value>(columns, 4);
    matrix<Value> da(rows, columns, padding, order), db(rows, columns, padding, storage_order::column_major);
    matrix<float> da_row(rows, columns);
    std::vector<float> db_row(columns);
    Case::backward(mp::cpu{}, a.view, b.view, dy.view, da.view, db.view);
    Case::backward(mp::cpu{}, a.view, row, dy.view, da_row.view, db_row);
    const double one_rounding = sizeof(Value) == 4 ? 0x1p-24 : sizeof(Value) == 2 ? 0x1p-8 : 0x1p-3;
    int wrong = 0;
    const auto close = [&](double actual, double expected, double rounding) {
        // Linear functions: the differences have no error but rounding, some 2^-52 / step.
        wrong += std::abs(actual - expected) <= rounding * std::abs(expected) + 1e-7 ? 0 : 1;
    };
    for (std::ptrdiff_t c = 0; c < columns; ++c) {
        double row_value = number(row[static_cast<std::size_t>(c)]);
        const auto column_loss = [&] {
            double sum = 0;
            for (std::ptrdiff_t r = 0; r < rows; ++r) {
                sum += number(dy.view(r, c)) * Case::value(number(a.view(r, c)), row_value);
            }
            return sum;
        };
        close(static_cast<double>(db_row[static_cast<std::size_t>(c)]),
              ops_test::derivative(row_value, column_loss, 0x1p-10), 0x1p-24);
        for (std::ptrdiff_t r = 0; r < rows; ++r) {
            double x = number(a.view(r, c)), w = number(b.view(r, c));
            const auto loss = [&] { return number(dy.view(r, c)) * Case::value(x, w); };
            close(number(da.view(r, c)), ops_test::derivative(x, loss, 0x1p-10), one_rounding);
            close(number(db.view(r, c)), ops_test::derivative(w, loss, 0x1p-10), one_rounding);
            w = row_value;
            close(number(da_row.view(r, c)), ops_test::derivative(x, loss, 0x1p-10), 0x1p-24);
        }
    }
    CHECK(wrong == 0);
    CHECK(da.padding_is_untouched());
    CHECK(db.padding_is_untouched());
}

TEST_CASE_TEMPLATE("the gradients are those of central differences, also for a repeated row", Case, add_case,
                   multiply_case) {
    ops_test::for_each_layout([](storage_order order, std::ptrdiff_t padding) {
        check_gradients<Case, float>(order, padding);
        check_gradients<Case, half>(order, padding);
        check_gradients<Case, bfloat16>(order, padding);
    });
}

TEST_CASE("the gradient of a repeated row is a long sum, rounded once") {
    // In half the sum would stop at 2048, in float at 2^24.
    matrix<half> dy(5000, 1);
    dy.fill([](auto, auto) { return half(1); });
    std::array<half, 1> db{};
    mp::ops::add_backward(mp::cpu{}, dy.view, absent, db);
    CHECK(db[0] == half(5000));
    matrix<float> large(40, 1), a(40, 1);
    large.fill([](auto r, auto) { return r == 0 ? 0x1p24F : 1.0F; });
    a.fill([](auto, auto) { return 1.0F; });
    std::array<float, 1> sum{};
    const std::array<float, 1> b = {1.0F};
    mp::ops::multiply_backward(mp::cpu{}, a.view, b, large.view, absent, sum);
    CHECK(sum[0] == 0x1p24F + 40.0F);  // 39 to the nearest even float
}

TEST_CASE("gradients that nobody needs are not computed, and one may be written over dy") {
    matrix<half> a(3, 4), b(3, 4), dy(3, 4), da(3, 4), db(3, 4), only_da(3, 4), only_db(3, 4);
    a.randomize(1);
    b.randomize(2);
    dy.randomize(3);
    const mp::cpu exec{};
    mp::ops::multiply_backward(exec, a.view, b.view, dy.view, da.view, db.view);
    mp::ops::multiply_backward(exec, a.view, b.view, dy.view, only_da.view, absent);
    mp::ops::multiply_backward(exec, a.view, b.view, dy.view, absent, only_db.view);
    mp::ops::multiply_backward(exec, a.view, b.view, dy.view, absent, absent);
    CHECK(same_bits(da, only_da));
    CHECK(same_bits(db, only_db));
    mp::ops::multiply_backward(exec, a.view, b.view, dy.view, dy.view, only_db.view);
    CHECK(same_bits(da, dy));
    CHECK(same_bits(db, only_db));
    mp::ops::add_backward(exec, dy.view, dy.view, only_db.view);
    CHECK(same_bits(da, dy));
    CHECK(same_bits(da, only_db));
    mp::ops::add_backward(exec, dy.view, absent, absent);
}

TEST_CASE_TEMPLATE("operands may be written over, and be one", Case, add_case, multiply_case) {
    matrix<float> a(5, 7), b(5, 7, 2), y(5, 7), square(5, 7);
    a.randomize(1);
    b.randomize(2);
    Case::forward(mp::cpu{}, a.view, b.view, y.view);
    Case::forward(mp::cpu{}, a.view, a.view, square.view);
    CHECK(square.view(1, 2) == static_cast<float>(Case::value(number(a.view(1, 2)), number(a.view(1, 2)))));
    Case::forward(mp::cpu{}, a.view, b.view, b.view);
    CHECK(same_bits(y, b));
    Case::forward(mp::cpu{}, a.view, a.view, a.view);
    CHECK(same_bits(a, square));
}

TEST_CASE_TEMPLATE("one thread and three write the same bits", Case, add_case, multiply_case) {
    matrix<half> a(301, 333, 1), b(301, 333), dy(301, 333);
    a.randomize(1);
    b.randomize(2);
    dy.randomize(3);
    const auto row = random_vector<half>(333, 4);
    CHECK(ops_test::same_with_three_threads<half>(
        301, 333, [&](mp::cpu exec, auto y) { Case::forward(exec, a.view, b.view, y); }));
    CHECK(ops_test::same_with_three_threads<float>(
        301, 333, [&](mp::cpu exec, auto da) { Case::backward(exec, a.view, b.view, dy.view, da, absent); }));
    CHECK(ops_test::same_with_three_threads<float>(1, 333, [&](mp::cpu exec, auto db) {
        Case::backward(exec, a.view, row, dy.view, absent, std::span(db.data, 333));
    }));
}

TEST_CASE("in a region the result has the widest of the types of the inputs") {
    matrix<half> a(1, 1), b(1, 1);
    matrix<float> wide(1, 1), y(1, 1), outside(1, 1);
    a.view(0, 0) = half(1);
    b.view(0, 0) = half(0x1p-11F);
    wide.view(0, 0) = 0x1p-20F;
    const mp::autocast_region region(mp::precision::bf16);
    mp::ops::add(mp::cpu{}, a.view, b.view, y.view);
    CHECK(y.view(0, 0) == 1.0F);  // rounded to half
    mp::ops::add(mp::cpu{}, a.view, wide.view, y.view);
    CHECK(y.view(0, 0) == 1.0F + 0x1p-20F);
    mp::ops::add<ac::off>(mp::cpu{}, a.view, b.view, outside.view);
    CHECK(outside.view(0, 0) == 1.0F + 0x1p-11F);
    mp::ops::multiply_backward(mp::cpu{}, a.view, b.view, a.view, y.view, wide.view);
    CHECK(y.view(0, 0) == 0x1p-11F);
    CHECK(wide.view(0, 0) == 1.0F);
}

TEST_CASE("NaN, infinity and overflow are those of float arithmetic") {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    matrix<half> a(1, 4), b(1, 4), y(1, 4);
    const float left[] = {infinity, infinity, std::numeric_limits<float>::quiet_NaN(), 60000};
    const float right[] = {-infinity, 0, 1, 60000};
    a.fill([&](auto, auto c) { return half(left[c]); });
    b.fill([&](auto, auto c) { return half(right[c]); });
    mp::ops::add(mp::cpu{}, a.view, b.view, y.view);
    CHECK(mp::isnan(y.view(0, 0)));
    CHECK(mp::isinf(y.view(0, 1)));
    CHECK(mp::isnan(y.view(0, 2)));
    CHECK(mp::isinf(y.view(0, 3)));
    mp::ops::multiply(mp::cpu{}, a.view, b.view, y.view);
    CHECK(mp::isinf(y.view(0, 0)));
    CHECK(mp::isnan(y.view(0, 1)));
    CHECK(mp::isnan(y.view(0, 2)));
    CHECK(mp::isinf(y.view(0, 3)));
}

TEST_CASE("arithmetic of empty matrices gives empty results and zero gradients of rows") {
    const auto empty = mp::row_major<float>(nullptr, 0, 2);
    std::vector<float> row = {1, 2};
    mp::ops::add(mp::cpu{}, empty, row, empty);
    mp::ops::multiply(mp::cpu{}, empty, empty, empty);
    mp::ops::multiply_backward(mp::cpu{}, empty, std::vector<float>{3, 4}, empty, absent, row);
    CHECK(row == std::vector<float>{0, 0});
}

TEST_CASE_TEMPLATE("arithmetic names the argument that does not fit, and writes nothing", Case, add_case,
                   multiply_case) {
    matrix<float> a(2, 3), b(2, 3), y(2, 3), other(3, 2);
    const mp::cpu exec{};
    const std::string name = "mp::ops::" + std::string(Case::name);
    CHECK(message_of([&] { Case::forward(exec, a.view, other.view, y.view); }) ==
          name + ": b.rows is 3; it must equal a.rows, which is 2");
    CHECK(message_of([&] { Case::forward(exec, a.view, std::vector<float>(2), y.view); }) ==
          name + ": b.size() is 2; it must equal a.columns, which is 3");
    CHECK(message_of([&] { Case::forward(exec, a.view, b.view, other.view); }) ==
          name + ": y.rows is 3; it must equal a.rows, which is 2");
    CHECK(message_of([&] { Case::forward(mp::cpu{.threads = 0}, a.view, b.view, y.view); }) ==
          name + ": exec.threads is 0; it must be at least 1");
    CHECK(
        message_of([&] {
            Case::forward(exec, a.view.block(0, 0, 2, 2), y.view.block(0, 0, 2, 2), y.view.block(0, 1, 2, 2));
        }) == name + ": y overlaps b; they must not share elements, because y is written while b is in use");
    CHECK(message_of([&] { Case::forward(exec, a.view, std::span<const float>(y.view.data, 3), y.view); }) ==
          name + ": y overlaps b; they must not share elements, because y is written while b is in use");
    const std::string shape = Case::name == "add" ? "dy" : "a";
    CHECK(message_of([&] { Case::backward(exec, a.view, b.view, b.view, other.view, y.view); }) ==
          name + "_backward: da.rows is 3; it must equal " + shape + ".rows, which is 2");
    CHECK(message_of([&] { Case::backward(exec, a.view, b.view, b.view, y.view, other.view); }) ==
          name + "_backward: db.rows is 3; it must equal " + shape + ".rows, which is 2");
    CHECK(message_of([&] {
              Case::backward(exec, a.view, std::vector<float>(3), a.view, y.view, std::span(y.view.data, 3));
          }) == name +
                    "_backward: db overlaps da; they must not share elements, because db is written while "
                    "da is in use");
    CHECK(message_of([&] { Case::backward(exec, a.view, b.view, y.view, absent, y.view); }) ==
          name +
              "_backward: db overlaps dy; they must not share elements, because db is written while dy is "
              "in use");
    CHECK(y.elements == std::vector<float>(6, -88.0F));
}

}  // namespace
