// SPDX-License-Identifier: MIT
// Epilogues that multiply with the slope of an activation: what passes over the product in float would write.
#include <mp/gemm.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include "larger_error.hpp"
#include "linalg/gemm/reference.hpp"

namespace {

using reference::generator;
using reference::matrix;

constexpr mp::storage_order orders[2] = {mp::storage_order::row_major, mp::storage_order::column_major};

double gelu_slope(double x) {
    return 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0));
}
double gelu_tanh_slope(double x) {
    const double scale = std::sqrt(2 / std::acos(-1.0));
    const double t = std::tanh(scale * (x + 0.044715 * x * x * x));
    return (1 + t) / 2 + x / 2 * (1 - t * t) * scale * (1 + 3 * 0.044715 * x * x);
}
double silu_slope(double x) {
    const double s = 1 / (1 + std::exp(-x));
    return s * (1 + x * (1 - s));
}
double relu_slope(double x) {
    return x > 0 ? 1 : 0;
}

/// C = (a b) act'(z), of a float C to the rounding of the slope, of another one as its rounding.
template <class A, class C, class Z, class Make>
void check(generator& random, mp::cpu exec, std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t k,
           unsigned number, const Make& epilogue, double (*slope)(double)) {
    matrix<A> a(rows, k, orders[number % 2], 1), b(k, columns, orders[number / 2 % 2], 2);
    const auto order = orders[number / 4 % 2];
    matrix<C> c(rows, columns, order, 3);
    matrix<float> wide(rows, columns, order, 0), product(rows, columns, order, 2);
    matrix<Z> z(rows, columns, orders[number / 8 % 2], 5);
    a.fill_integers(random, 20);
    b.fill_integers(random, 20);
    z.fill([&] { return std::uniform_real_distribution<double>(-4, 4)(random); });
    c.fill([] { return 1e9; });  // not read
    mp::gemm(exec, 0.5F, a.view(), b.view(), 0.0F, c.view(), epilogue(z.view()));
    mp::gemm(exec, 0.5F, a.view(), b.view(), 0.0F, wide.view(), epilogue(z.view()));
    mp::gemm(exec, 0.5F, a.view(), b.view(), 0.0F, product.view());
    bool same = true;
    double error = 0;
    for (std::ptrdiff_t i = 0; i < rows; ++i) {
        for (std::ptrdiff_t j = 0; j < columns; ++j) {
            const double gradient = product.get(i, j);
            error = tests::larger_error(
                error, std::fabs(wide.get(i, j) - slope(z.get(i, j)) * gradient) / (std::fabs(gradient) + 1));
            same = same &&
                   reference::same_value(c.get(i, j), reference::value_of(static_cast<C>(wide.view()(i, j))));
            // The operator, which GPUs call, too.
            same = same && epilogue(z.view())(product.view()(i, j), i, j) == wide.view()(i, j);
        }
    }
    CAPTURE(rows);
    CAPTURE(columns);
    CAPTURE(number);
    CHECK(same);
    CHECK(error < 0x1p-20);
    CHECK(c.surroundings_untouched());
}

template <class A, class C, class Z>
void check_shapes(unsigned seed) {
    generator random(seed);
    unsigned number = 0;
    constexpr std::ptrdiff_t shapes[][3] = {{1, 1, 1}, {3, 300, 17}, {37, 45, 20}, {130, 70, 9}};
    for (const auto& [rows, columns, k] : shapes) {
        for (int turn = 0; turn < 4; ++turn, number += 5) {
            const mp::cpu exec{.threads = turn % 2 + 1};
            const auto with = [&](const auto& make, double (*slope)(double)) {
                check<A, C, Z>(random, exec, rows, columns, k, number, make, slope);
            };
            with([](auto z) { return mp::dgelu(z); }, gelu_slope);
            with([](auto z) { return mp::dgelu_tanh(z); }, gelu_tanh_slope);
            with([](auto z) { return mp::dsilu(z); }, silu_slope);
            with([](auto z) { return mp::drelu(z); }, relu_slope);
        }
    }
}

TEST_CASE("the slope of an activation multiplies the sum of the product, before it is rounded") {
    check_shapes<float, mp::bfloat16, float>(1);
    check_shapes<mp::bfloat16, mp::half, mp::bfloat16>(2);
}

TEST_CASE("the matrix of what came before the activation has the shape of C, and may be C") {
    std::vector<float> a{1, 2, 3, 4}, z{-1, 2, 0, 3, 1, 1}, c(4);
    const auto square = [](std::vector<float>& values) { return mp::row_major(values.data(), 2, 2); };
    CHECK_THROWS_WITH_AS(mp::gemm(mp::cpu{}, 1.0F, square(a), square(a), 0.0F, square(c),
                                  mp::drelu(mp::row_major(z.data(), 2, 3))),
                         "mp::gemm: preactivation.columns is 3; it must equal c.columns, which is 2",
                         mp::argument_error);
    CHECK(c == std::vector<float>(4));
    mp::gemm(mp::cpu{}, 1.0F, square(a), square(a), 0.0F, square(z),
             mp::compose(mp::drelu(square(z)), mp::bias_per_column(std::vector<float>{1, 2})));
    CHECK(z == std::vector<float>{1, 12, 1, 24, 1, 1});
}

}  // namespace
