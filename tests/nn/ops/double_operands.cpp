// SPDX-License-Identifier: MIT
// Ops with double operands compute in double from end to end, in every autocast region and whatever the other
// operands are: against definitions in long double.
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/half.hpp>
#include <mp/ops.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

#include "larger_error.hpp"

namespace {

using namespace mp::ops;
using mp::row_major;
using wide = long double;
constexpr mp::cpu exec{};
constexpr double infinity = std::numeric_limits<double>::infinity();

std::vector<double> numbers(std::size_t count, unsigned seed, double size = 1.0) {
    std::mt19937 generator(seed);
    std::vector<double> x(count);
    for (double& it : x) it = size * (static_cast<double>(generator()) / 2147483648.0 - 1.0);
    return x;
}
mp::matrix_view<const double> in(const std::vector<double>& x, std::ptrdiff_t rows) {
    return row_major(x.data(), rows, static_cast<std::ptrdiff_t>(x.size()) / rows);
}
mp::matrix_view<double> out(std::vector<double>& x, std::ptrdiff_t rows) {
    return row_major(x.data(), rows, static_cast<std::ptrdiff_t>(x.size()) / rows);
}

/// The largest relative error of y against f(i).
template <class Function>
double error_of(const std::vector<double>& y, Function f) {
    wide worst = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
        const wide exact = f(i);
        worst = tests::larger_error(worst, std::fabs((static_cast<wide>(y[i]) - exact) / exact));
    }
    return static_cast<double>(worst);
}

wide logistic(wide x) {
    return 1 / (1 + std::exp(-x));
}
wide normal(wide x) {
    return std::erfc(-x / std::sqrt(wide{2})) / 2;
}
const wide pi = std::acos(wide{-1});

TEST_CASE("activations have the digits of double") {
    const std::vector<double> x = numbers(500, 1, 6.0);
    std::vector<double> y(500);
    const auto at = [&](std::size_t i) { return static_cast<wide>(x[i]); };
    gelu(exec, in(x, 10), out(y, 10));
    CHECK(error_of(y, [&](std::size_t i) { return at(i) * normal(at(i)); }) <
          6e-15);  // x / sqrt(2) is rounded
    gelu(exec, in(x, 10), out(y, 10), gelu_formula::tanh);
    const auto z = [&](wide v) { return 2 * std::sqrt(2 / pi) * (v + wide{0.044715L} * v * v * v); };
    CHECK(error_of(y, [&](std::size_t i) { return at(i) * logistic(z(at(i))); }) < 2e-14);
    silu(exec, in(x, 10), out(y, 10));
    CHECK(error_of(y, [&](std::size_t i) { return at(i) * logistic(at(i)); }) < 1e-15);
    mp::ops::tanh(exec, in(x, 10), out(y, 10));
    CHECK(error_of(y, [&](std::size_t i) { return std::tanh(at(i)); }) < 2e-16);
    sigmoid(exec, in(x, 10), out(y, 10));
    CHECK(error_of(y, [&](std::size_t i) { return logistic(at(i)); }) < 1e-15);
}

TEST_CASE("and their values at infinity and for NaN are those of floats") {
    const std::vector<double> x{infinity, -infinity, std::nan(""), 0.0, -0.0, 1e300, -1e300, 1e-310};
    const std::vector<double> ones(8, 1.0);
    std::vector<float> of_floats(8), fx(x.begin(), x.end()), fones(8, 1.0F);
    std::vector<double> y(8);
    const auto compare = [&](bool signs = true) {
        for (std::size_t i = 0; i < 7; ++i) {
            CAPTURE(i);
            if (std::isnan(of_floats[i])) {
                CHECK(std::isnan(y[i]));
            } else if (std::isinf(of_floats[i])) {
                CHECK((y[i] == static_cast<double>(of_floats[i]) || y[i] == x[i]));
            } else {
                CHECK(y[i] == static_cast<double>(of_floats[i]));
                if (signs) CHECK(std::signbit(y[i]) == std::signbit(of_floats[i]));
            }
        }
    };
    const auto f = row_major(static_cast<const float*>(fx.data()), 1, 8);
    const auto df = row_major(static_cast<const float*>(fones.data()), 1, 8);
    const auto to = row_major(of_floats.data(), 1, 8);
    for (const auto formula : {gelu_formula::exact, gelu_formula::tanh}) {
        gelu(exec, f, to, formula);
        gelu(exec, in(x, 1), out(y, 1), formula);
        compare();
        gelu_backward(exec, f, df, to, formula);
        gelu_backward(exec, in(x, 1), in(ones, 1), out(y, 1), formula);
        compare(false);  // of a slope that vanishes
    }
    silu(exec, f, to);
    silu(exec, in(x, 1), out(y, 1));
    compare();
    silu_backward(exec, f, df, to);
    silu_backward(exec, in(x, 1), in(ones, 1), out(y, 1));
    compare();
    sigmoid(exec, f, to);
    sigmoid(exec, in(x, 1), out(y, 1));
    compare();
    relu(exec, f, to);
    relu(exec, in(x, 1), out(y, 1));
    compare();
    relu_backward(exec, f, df, to);
    relu_backward(exec, in(x, 1), in(ones, 1), out(y, 1));
    compare();
}

TEST_CASE("rows have the digits of double, and their statistics too") {
    constexpr std::size_t columns = 9;
    const std::vector<double> x = numbers(4 * columns, 2, 8.0);
    std::vector<double> y(x.size());
    std::vector<basic_normalization_statistics<double>> statistics(4);
    const auto sum_of_row = [&](std::size_t i, auto f) {
        wide sum = 0;
        for (std::size_t c = 0; c < columns; ++c) sum += f(static_cast<wide>(x[i / columns * columns + c]));
        return sum;
    };
    const auto exponentials = [&](std::size_t i) {
        return sum_of_row(i, [](wide v) { return std::exp(v); });
    };
    softmax(exec, in(x, 4), out(y, 4));
    CHECK(error_of(y, [&](std::size_t i) { return std::exp(wide(x[i])) / exponentials(i); }) < 2e-15);
    log_softmax(exec, in(x, 4), out(y, 4));
    CHECK(error_of(y, [&](std::size_t i) { return wide(x[i]) - std::log(exponentials(i)); }) < 1e-14);

    const auto average = [&](std::size_t i) { return sum_of_row(i, [](wide v) { return v; }) / columns; };
    const auto deviation = [&](std::size_t i) {
        const wide center = average(i);
        const wide square = sum_of_row(i, [center](wide v) { return (v - center) * (v - center); }) / columns;
        return std::sqrt(square + wide{0.5});
    };
    layer_norm(exec, in(x, 4), absent, absent, out(y, 4), {.epsilon = 0.5}, statistics);
    std::vector<double> mean, inverse;
    for (const auto& row : statistics) {
        mean.push_back(row.mean());
        inverse.push_back(row.inverse_deviation());
    }
    CHECK(error_of(y, [&](std::size_t i) { return (wide(x[i]) - average(i)) / deviation(i); }) < 1e-14);
    CHECK(error_of(mean, [&](std::size_t r) { return average(r * columns); }) < 1e-14);
    CHECK(error_of(inverse, [&](std::size_t r) { return 1 / deviation(r * columns); }) < 1e-15);

    const std::vector<int> labels{0, 3, 5, 8};
    wide loss = 0;
    for (std::size_t r = 0; r < 4; ++r) {
        const std::size_t at = r * columns + static_cast<std::size_t>(labels[r]);
        loss += (std::log(exponentials(at)) - wide(x[at])) / 4;
    }
    CHECK(std::fabs(softmax_cross_entropy(exec, in(x, 4), labels) - static_cast<double>(loss)) <= 1e-14);
}

TEST_CASE("softmax of rows without a meaning, as with floats") {
    const std::vector<double> x{1, -infinity, -infinity, -infinity, infinity, 0, std::nan(""), 0};
    std::vector<double> y(8);
    softmax(exec, in(x, 4), out(y, 4));
    CHECK(y[0] == 1.0);
    CHECK(y[1] == 0.0);
    CHECK(std::all_of(y.begin() + 2, y.end(), [](double v) { return std::isnan(v); }));
}

TEST_CASE("attention has the digits of double") {
    const std::vector<double> q = numbers(12, 3), k = numbers(15, 4), v = numbers(10, 5);
    std::vector<double> y(8), log_sums;
    std::vector<basic_softmax_statistics<double>> statistics(4);
    scaled_dot_product_attention(exec, in(q, 4), in(k, 5), in(v, 5), absent, out(y, 4), {}, statistics);
    for (const auto& row : statistics) log_sums.push_back(row.log_sum());
    const auto score = [&](std::size_t i, std::size_t j) {
        wide sum = 0;
        for (std::size_t c = 0; c < 3; ++c) sum += wide(q[3 * i + c]) * wide(k[3 * j + c]);
        return sum / std::sqrt(wide{3});
    };
    const auto total = [&](std::size_t i) {
        wide sum = 0;
        for (std::size_t j = 0; j < 5; ++j) sum += std::exp(score(i, j));
        return sum;
    };
    CHECK(error_of(log_sums, [&](std::size_t i) { return std::log(total(i)); }) < 1e-15);
    CHECK(error_of(y, [&](std::size_t at) {
              wide sum = 0;
              for (std::size_t j = 0; j < 5; ++j) sum += std::exp(score(at / 2, j)) * wide(v[2 * j + at % 2]);
              return sum / total(at / 2);
          }) < 1e-13);
}

TEST_CASE("regions and policies leave doubles alone") {
    const std::vector<double> x = numbers(24, 6), w = numbers(18, 7), b = numbers(3, 8);
    std::vector<double> y(12), gelus(24), norms(24), sums(24);
    const auto run = [&] {
        linear(exec, in(x, 4), in(w, 3), b, out(y, 4), activation::gelu);
        gelu(exec, in(x, 4), out(gelus, 4));
        layer_norm(exec, in(x, 4), absent, absent, out(norms, 4));
        add(exec, in(x, 4), in(x, 4), out(sums, 4));
        return softmax_cross_entropy(exec, in(x, 4), std::vector<int>{0, 1, 2, 3});
    };
    const double loss = run();
    const auto before = std::tuple(y, gelus, norms, sums);
    for (const auto precision : {mp::precision::fp16, mp::precision::bf16, mp::precision::fp8}) {
        const mp::autocast_region region(precision);
        CHECK(run() == loss);
        CHECK(std::tuple(y, gelus, norms, sums) == before);
    }
    const mp::autocast_region with_list(mp::precision::fp16);
    linear<mp::autocast::bf16>(exec, in(x, 4), in(w, 3), b, out(y, 4), activation::gelu);
    CHECK(y == std::get<0>(before));
}

TEST_CASE("with a double among them, operands of other formats are exact in it and results rounded once") {
    const std::vector<double> x = numbers(24, 9);
    std::vector<mp::half> w;
    for (const double it : numbers(18, 10)) w.emplace_back(it);
    std::vector<double> w_wide, y(12), expected(12);
    for (const mp::half it : w) w_wide.push_back(static_cast<double>(it));
    const auto half_w = row_major(static_cast<const mp::half*>(w.data()), 3, 6);
    linear(exec, in(x, 4), in(w_wide, 3), absent, out(expected, 4));
    linear(exec, in(x, 4), half_w, absent, out(y, 4));
    CHECK(y == expected);
    std::vector<float> rounded(12);
    linear(exec, in(x, 4), half_w, absent, row_major(rounded.data(), 4, 3));
    for (std::size_t i = 0; i < 12; ++i) CHECK(rounded[i] == static_cast<float>(expected[i]));
    static_assert(std::same_as<decltype(sum(exec, in(x, 4))), double>);
    static_assert(std::same_as<decltype(sum(exec, half_w)), float>);
}

TEST_CASE("sums of doubles are added to in double") {
    const std::vector<double> x = numbers(24, 11), w = numbers(18, 12), dy = numbers(12, 13);
    std::vector<double> dx(24, 0.1), dw(18, 0.2), db(3, 0.3), apart_x(24), apart_w(18), apart_b(3);
    linear_backward(exec, in(x, 4), in(w, 3), in(dy, 4), out(apart_x, 4), out(apart_w, 3), apart_b);
    linear_backward(exec, in(x, 4), in(w, 3), in(dy, 4), add_to(out(dx, 4)), add_to(out(dw, 3)), add_to(db));
    for (std::size_t i = 0; i < 24; ++i) CHECK(dx[i] == apart_x[i] + 0.1);
    for (std::size_t i = 0; i < 18; ++i) CHECK(dw[i] == apart_w[i] + 0.2);
    for (std::size_t i = 0; i < 3; ++i) CHECK(db[i] == apart_b[i] + 0.3);
    std::vector<double> gelus(24), sums(24, 0.7);
    gelu(exec, in(x, 4), out(gelus, 4));
    gelu(exec, in(x, 4), add_to(out(sums, 4)));
    for (std::size_t i = 0; i < 24; ++i) CHECK(sums[i] == gelus[i] + 0.7);
    std::vector<int> columns(4);
    argmax(exec, in(x, 4), columns);
    for (std::size_t r = 0; r < 4; ++r) {
        const auto row = x.begin() + static_cast<std::ptrdiff_t>(6 * r);
        CHECK(columns[r] == std::max_element(row, row + 6) - row);
    }
}

TEST_CASE("results do not depend on the number of threads") {
    const std::vector<double> x = numbers(64 * 64, 14);
    std::vector<double> one(64 * 64), four(64 * 64);
    matmul(exec, in(x, 64), in(x, 64), out(one, 64));
    matmul(mp::cpu{.threads = 4}, in(x, 64), in(x, 64), out(four, 64));
    CHECK(one == four);
}

}  // namespace
