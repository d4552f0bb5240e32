// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/reductions.hpp>

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "reference.hpp"

namespace {

using mp::bfloat16;
using mp::half;
using mp::storage_order;
using mp::ops::per;
using ops_test::matrix;
using ops_test::message_of;
using ops_test::same_bits;
namespace ac = mp::autocast;

static_assert(std::same_as<ac::output_type_t<ac::fp16, mp::ops::sum_op, mp::matrix_view<const half>>, float>);
static_assert(
    std::same_as<ac::output_type_t<ac::bf16, mp::ops::mean_op, mp::matrix_view<const bfloat16>>, float>);

double number(auto x) {
    return static_cast<double>(static_cast<float>(x));
}

/// Sums as integers: the elements are quarters, so that every sum here is exact.
template <class X>
void check_sums(std::ptrdiff_t rows, std::ptrdiff_t columns) {
    ops_test::for_each_layout([=](storage_order order, std::ptrdiff_t padding) {
        matrix<X> x(rows, columns, padding, order);
        x.randomize(static_cast<unsigned>(rows));
        x.fill([&](auto r, auto c) {  // values that all formats hold, of magnitudes up to 2
            return X(std::floor(static_cast<float>(x.view(r, c)) * 8) / 4);
        });
        long long total = 0;
        std::vector<long long> row_sums(static_cast<std::size_t>(rows)),
            column_sums(static_cast<std::size_t>(columns));
        for (std::ptrdiff_t r = 0; r < rows; ++r) {
            for (std::ptrdiff_t c = 0; c < columns; ++c) {
                const auto quarters = static_cast<long long>(number(x.view(r, c)) * 4);
                total += quarters;
                row_sums[static_cast<std::size_t>(r)] += quarters;
                column_sums[static_cast<std::size_t>(c)] += quarters;
            }
        }
        const mp::cpu exec{.threads = 2};
        CHECK(mp::ops::sum(exec, x.view) == static_cast<float>(static_cast<double>(total) / 4));
        CHECK(mp::ops::mean(exec, x.view) ==
              static_cast<float>(static_cast<double>(total) / 4 / static_cast<double>(rows * columns)));
        const auto check = [&](per axis, const std::vector<long long>& expected, std::ptrdiff_t count) {
            std::vector<float> sums(expected.size()), means(expected.size());
            std::vector<half> narrow(expected.size());
            mp::ops::sum(exec, x.view, sums, axis);
            mp::ops::mean(exec, x.view, means, axis);
            mp::ops::sum(exec, x.view, std::span(narrow), axis);
            int wrong = 0;
            for (std::size_t i = 0; i < expected.size(); ++i) {
                const double sum = static_cast<double>(expected[i]) / 4;
                wrong += sums[i] == static_cast<float>(sum) ? 0 : 1;
                wrong += narrow[i].bits() == half(static_cast<float>(sum)).bits() ? 0 : 1;
                wrong += means[i] == static_cast<float>(sum / static_cast<double>(count)) ? 0 : 1;
            }
            CHECK(wrong == 0);
        };
        check(per::row, row_sums, columns);
        check(per::column, column_sums, rows);
    });
}

TEST_CASE("sums and means of all, of rows and of columns are exact where integers are") {
    for (const auto& [rows, columns] :
         {std::array<std::ptrdiff_t, 2>{1, 1}, std::array<std::ptrdiff_t, 2>{700, 3},
          std::array<std::ptrdiff_t, 2>{3, 700}, std::array<std::ptrdiff_t, 2>{520, 130}}) {
        check_sums<float>(rows, columns);
        check_sums<half>(rows, columns);
        check_sums<bfloat16>(rows, columns);
        check_sums<mp::float8_e4m3fn>(rows, columns);
    }
}

TEST_CASE("a sum of a million floats is the nearest float to the exact sum") {
    matrix<float> x(1000, 1000);
    x.randomize(1);
    x.view(500, 500) = 0x1p30F;  // a float sum would lose what comes after it
    long double exact = 0;       // 64 bits: exact to 2^-33 here
    for (const float value : x.elements) exact += static_cast<long double>(value);
    const double unit = ops_test::unit_in_last_place<float>(static_cast<double>(exact));
    const auto sum = static_cast<double>(mp::ops::sum(mp::cpu{}, x.view));
    CHECK(std::abs(sum - static_cast<double>(exact)) <= 0.5 * unit * (1 + 1e-6));
    CHECK(static_cast<double>(mp::ops::mean(mp::cpu{}, x.view)) ==
          doctest::Approx(static_cast<double>(exact / 1e6L)).epsilon(1e-7));
}

TEST_CASE("small elements after a large one are not lost") {
    // In float, 2^24 + 1 is 2^24.
    matrix<float> x(100, 70);
    x.fill([](auto r, auto) { return r == 0 ? 0x1p24F : 1.0F; });
    std::vector<float> sums(70);
    mp::ops::sum(mp::cpu{}, x.view, sums, per::column);
    CHECK(sums == std::vector<float>(70, 0x1p24F + 100.0F));  // 99 to the nearest even float
    mp::ops::sum(mp::cpu{}, mp::transposed(x.view), sums, per::row);
    CHECK(sums == std::vector<float>(70, 0x1p24F + 100.0F));
    CHECK(mp::ops::sum(mp::cpu{}, x.view) == 70 * 0x1p24F + 6912.0F);  // 6930, in steps of 128
}

TEST_CASE("sums depend neither on threads nor on storage order") {
    matrix<float> x(501, 777), by_columns(501, 777, 2, storage_order::column_major);
    x.randomize(5);
    x.fill([&](auto r, auto c) { return x.view(r, c) * std::ldexp(1.0F, static_cast<int>((r * c) % 60)); });
    by_columns.fill([&](auto r, auto c) { return x.view(r, c); });
    const float expected = mp::ops::sum({.threads = 1}, x.view);
    CHECK(mp::ops::sum({.threads = 3}, x.view) == expected);
    CHECK(mp::ops::sum({.threads = 3}, by_columns.view) == expected);
    for (const per axis : {per::row, per::column}) {
        std::vector<float> one(axis == per::row ? 501 : 777), three(one.size()), other(one.size());
        mp::ops::mean({.threads = 1}, x.view, one, axis);
        mp::ops::mean({.threads = 3}, x.view, three, axis);
        mp::ops::mean({.threads = 2}, by_columns.view, other, axis);
        CHECK(one == three);
        CHECK(one == other);
    }
    const std::vector<float> dy(501, 0.7F);
    CHECK(ops_test::same_with_three_threads<half>(
        501, 777, [&](mp::cpu exec, auto dx) { mp::ops::mean_backward(exec, dy, dx, per::row); }));
}

TEST_CASE("the gradients are those of central differences") {
    // L = sum of weights[i] * result[i], in double.
    const std::ptrdiff_t rows = 5, columns = 7;
    matrix<double> x(rows, columns);
    x.randomize(1);
    ops_test::for_each_layout([&](storage_order order, std::ptrdiff_t padding) {
        for (const bool mean : {false, true}) {
            matrix<float> dx(rows, columns, padding, order);
            const auto check = [&](auto loss) {
                for (std::ptrdiff_t r = 0; r < rows; ++r) {
                    for (std::ptrdiff_t c = 0; c < columns; ++c) {
                        const double expected = ops_test::derivative(x.view(r, c), loss, 0x1p-10);
                        // linear: no error but rounding
                        CHECK(std::abs(static_cast<double>(dx.view(r, c)) - expected) < 1e-6);
                    }
                }
                CHECK(dx.padding_is_untouched());
            };
            if (mean) {
                mp::ops::mean_backward(mp::cpu{}, 3.0F, dx.view);
            } else {
                mp::ops::sum_backward(mp::cpu{}, 3.0F, dx.view);
            }
            check([&] {
                double sum = 0;
                for (const double value : x.elements) sum += 3 * value;
                return mean ? sum / 35 : sum;
            });
            for (const per axis : {per::row, per::column}) {
                const auto weights = ops_test::random_vector<float>(axis == per::row ? 5 : 7, 9);
                if (mean) {
                    mp::ops::mean_backward(mp::cpu{}, weights, dx.view, axis);
                } else {
                    mp::ops::sum_backward(mp::cpu{}, weights, dx.view, axis);
                }
                check([&] {
                    double sum = 0;
                    for (std::ptrdiff_t r = 0; r < rows; ++r) {
                        for (std::ptrdiff_t c = 0; c < columns; ++c) {
                            const auto i = static_cast<std::size_t>(axis == per::row ? r : c);
                            sum += static_cast<double>(weights[i]) * x.view(r, c);
                        }
                    }
                    return !mean ? sum : axis == per::row ? sum / 7 : sum / 5;
                });
            }
        }
    });
}

TEST_CASE("a region leaves reductions in float") {
    matrix<half> x(1, 3000);
    x.fill([](auto, auto) { return half(40); });
    std::array<float, 1> sum{};
    matrix<float> dx(1, 3);
    const mp::autocast_region region(mp::precision::fp16);
    CHECK(mp::ops::sum(mp::cpu{}, x.view) == 120000.0F);
    mp::ops::sum(mp::cpu{}, x.view, sum, per::row);
    CHECK(sum[0] == 120000.0F);
    CHECK(mp::ops::sum<ac::bf16>(mp::cpu{}, x.view) == 120000.0F);
    mp::ops::sum_backward(mp::cpu{}, 0.1F, dx.view);
    CHECK(dx.view(0, 2) == 0.1F);
    mp::ops::sum_backward(mp::cpu{}, std::array{100000.0F}, dx.view, per::row);
    CHECK(dx.view(0, 2) == 100000.0F);
}

TEST_CASE("what is not finite reaches the sum, and a mean does not overflow") {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    constexpr float largest = std::numeric_limits<float>::max();
    matrix<float> x(1, 3);
    const auto set = [&](float a, float b, float c) {
        const float values[] = {a, b, c};
        x.fill([&](auto, auto i) { return values[i]; });
    };
    set(1, infinity, 2);
    CHECK(mp::isinf(mp::ops::sum(mp::cpu{}, x.view)));
    set(1, infinity, -infinity);
    CHECK(mp::isnan(mp::ops::sum(mp::cpu{}, x.view)));
    set(1, std::numeric_limits<float>::quiet_NaN(), 2);
    CHECK(mp::isnan(mp::ops::mean(mp::cpu{}, x.view)));
    set(largest, largest, largest);
    CHECK(mp::isinf(mp::ops::sum(mp::cpu{}, x.view)));
    CHECK(mp::ops::mean(mp::cpu{}, x.view) == largest);
    set(largest, largest, -largest);
    CHECK(mp::ops::sum(mp::cpu{}, x.view) == largest);
}

TEST_CASE("the sum of nothing is zero, its mean is refused") {
    const auto empty = mp::row_major<float>(nullptr, 0, 2);
    const mp::cpu exec{};
    CHECK(mp::ops::sum(exec, empty) == 0.0F);
    std::vector<float> y = {1, 2}, none;
    CHECK(message_of([&] { (void)mp::ops::mean(exec, empty); }) ==
          "mp::ops::mean: x.rows is 0; it must be at least 1, since the mean of no elements is undefined");
    CHECK(message_of([&] { mp::ops::mean(exec, empty, y, per::column); }) ==
          "mp::ops::mean: x.rows is 0; it must be at least 1, since the mean of no elements is undefined");
    CHECK(y == std::vector<float>{1, 2});
    mp::ops::mean(exec, empty, none, per::row);
    mp::ops::sum(exec, empty, y, per::column);
    CHECK(y == std::vector<float>{0, 0});
    mp::ops::mean_backward(exec, 1.0F, empty);
    mp::ops::mean_backward(exec, y, empty, per::column);
}

TEST_CASE("reductions name the argument that does not fit, and write nothing") {
    matrix<float> x(2, 3), dx(2, 3);
    std::vector<float> two(2, -88.0F), three(3, -88.0F);
    const mp::cpu exec{};
    CHECK(message_of([&] { mp::ops::sum(exec, x.view, three, per::row); }) ==
          "mp::ops::sum: y.size() is 3; it must equal x.rows, which is 2");
    CHECK(message_of([&] { mp::ops::mean(exec, x.view, two, per::column); }) ==
          "mp::ops::mean: y.size() is 2; it must equal x.columns, which is 3");
    CHECK(message_of([&] { mp::ops::sum(exec, x.view, two, static_cast<per>(5)); }) ==
          "mp::ops::sum: axis is 5; it must be an enumerator of mp::ops::per");
    CHECK(message_of([&] { mp::ops::sum(exec, x.view, std::span(x.view.data, 2), per::row); }) ==
          "mp::ops::sum: y overlaps x; they must not share elements, because y is written while x is in use");
    CHECK(message_of([&] { (void)mp::ops::sum(exec, mp::row_major<float>(nullptr, 2, 3)); }) ==
          "mp::ops::sum: x.data is null; it must point to a matrix of 2 x 3 elements");
    CHECK(message_of([&] { (void)mp::ops::mean(mp::cpu{.threads = 0}, x.view); }) ==
          "mp::ops::mean: exec.threads is 0; it must be at least 1");
    CHECK(message_of([&] { mp::ops::sum_backward(exec, three, dx.view, per::row); }) ==
          "mp::ops::sum_backward: dy.size() is 3; it must equal dx.rows, which is 2");
    CHECK(message_of([&] { mp::ops::mean_backward(exec, two, dx.view, per::column); }) ==
          "mp::ops::mean_backward: dy.size() is 2; it must equal dx.columns, which is 3");
    CHECK(message_of([&] { mp::ops::mean_backward(exec, 1.0F, mp::row_major<float>(nullptr, 2, 3)); }) ==
          "mp::ops::mean_backward: dx.data is null; it must point to a matrix of 2 x 3 elements");
    CHECK(two == std::vector<float>(2, -88.0F));
    CHECK(three == std::vector<float>(3, -88.0F));
    CHECK(dx.elements == std::vector<float>(6, -88.0F));
}

}  // namespace
