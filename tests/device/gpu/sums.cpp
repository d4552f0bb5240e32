// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/error.hpp>
#include <mp/nn/ops/reductions/gpu.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "matrices.hpp"

namespace {

using gpu_test::layout;
using gpu_test::matrix;
using gpu_test::same_bits;
using gpu_test::simulated;
using gpu_test::watched;
using gpu_test::workspace;
using mp::bfloat16;
using mp::half;
using mp::ops::per;

template <class X, class Y>
std::vector<Y> sums(simulated exec, const matrix<X>& x, per axis) {
    std::vector<Y> y(static_cast<std::size_t>(axis == per::row ? x.view.rows : x.view.columns));
    workspace room(mp::ops::sum_workspace(x.view.rows, x.view.columns, axis));
    mp::ops::sum(room.on(exec), x.view, y, axis);
    return y;
}

template <class X, class Y>
void check_shape(std::ptrdiff_t rows, std::ptrdiff_t columns) {
    CAPTURE(rows);
    CAPTURE(columns);
    matrix<X> x0(rows, columns);
    x0.randomize(1, 3.0F);
    std::uint64_t seed = 1;
    for (const per axis : {per::row, per::column}) {
        std::vector<Y> expected(static_cast<std::size_t>(axis == per::row ? rows : columns));
        mp::ops::sum(mp::cpu{}, x0.view, expected, axis);
        for (const layout& how : gpu_test::layouts) {
            matrix<X> x(rows, columns, how);
            x.randomize(1, 3.0F);
            CHECK(same_bits(sums<X, Y>(watched(simulated{.seed = seed++}), x, axis), expected));
        }
    }
}

template <class DY, class DX>
void check_gradients(std::ptrdiff_t rows, std::ptrdiff_t columns) {
    CAPTURE(rows);
    CAPTURE(columns);
    for (const per axis : {per::row, per::column}) {
        matrix<DY> dy(1, axis == per::row ? rows : columns);
        dy.randomize(2, 3.0F);
        const std::span<const DY> gradient(dy.view.data, static_cast<std::size_t>(dy.view.columns));
        for (const layout& how : gpu_test::layouts) {
            for (const bool mean : {false, true}) {
                matrix<DX> expected(rows, columns, how);
                matrix<DX> dx(rows, columns, how);
                const auto compute = [&](auto exec, mp::matrix_view<DX> to) {
                    if (mean) {
                        mp::ops::mean_backward(exec, gradient, to, axis);
                    } else {
                        mp::ops::sum_backward(exec, gradient, to, axis);
                    }
                };
                compute(mp::cpu{}, expected.view);
                compute(watched(simulated{.seed = 3}), dx.view);
                CHECK(same_bits(dx, expected));
            }
        }
    }
}

TEST_CASE("gradients of sums and means have the CPU's bits, in every layout") {
    for (const std::ptrdiff_t rows : {1, 3, 65}) {
        for (const std::ptrdiff_t columns : {1, 9, 130}) {
            check_gradients<float, float>(rows, columns);
            check_gradients<half, bfloat16>(rows, columns);
        }
    }
}

TEST_CASE("sums of rows and columns have the CPU's bits, in every layout and schedule") {
    for (const std::ptrdiff_t rows : {1, 3, 65}) {
        for (const std::ptrdiff_t columns : {1, 9, 300}) check_shape<half, half>(rows, columns);
    }
    check_shape<float, float>(63, 130);
    check_shape<float, float>(700, 9);
    check_shape<half, half>(700, 130);
    check_shape<bfloat16, float>(20, 1500);
    check_shape<float, bfloat16>(1200, 40);
    check_shape<half, float>(17000, 8);
}

TEST_CASE("what cancels does not hide what is left") {
    matrix<float> x(301, 5);
    x.fill([](auto r, auto c) {
        return r == 7 ? 0x1p30F : r == 250 ? -0x1p30F : r == 100 ? static_cast<float>(c + 1) : 0.0F;
    });
    const std::vector<float> expected{1, 2, 3, 4, 5};
    CHECK(sums<float, float>(simulated{}, x, per::column) == expected);
}

TEST_CASE("infinities and NaN show in their sums and nowhere else") {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    matrix<float> x(100, 40);
    x.randomize(1);
    x.view(3, 5) = infinity;
    x.view(70, 6) = -infinity;
    x.view(9, 7) = infinity;
    x.view(10, 7) = -infinity;
    x.view(99, 8) = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> expected(40);
    mp::ops::sum(mp::cpu{}, x.view, expected, per::column);
    const auto found = sums<float, float>(simulated{}, x, per::column);
    for (std::size_t c = 0; c < 40; ++c) {
        CHECK(gpu_test::is_nan(found[c]) == gpu_test::is_nan(expected[c]));
        if (!gpu_test::is_nan(expected[c])) CHECK(found[c] == expected[c]);
    }
}

TEST_CASE("aligned matrices move in full sectors, and shared memory is free of conflicts") {
    const auto check = [](auto value) {
        matrix<decltype(value)> x(130, 1024);
        x.randomize(1);
        mp::simt::access_statistics statistics;
        static_cast<void>(sums<decltype(value), float>(simulated{.statistics = &statistics}, x, per::column));
        CHECK(statistics.bank_conflicts() == 0);
        for (const auto& cost : statistics.costs()) {
            // The results need not begin at a sector.
            if (!cost.shared && cost.operation == "load") CHECK(cost.transactions <= cost.ideal * 33 / 32);
        }
    };
    check(half{});
    check(0.0F);
}

TEST_CASE("no rows give zeros, and wrong arguments are refused") {
    float number = 0;
    const mp::matrix_view<float> empty{&number, 0, 3, 3};
    std::vector<float> y(3, 5.0F);
    workspace room(mp::ops::sum_workspace(0, 3, per::column));
    mp::ops::sum(room.on(), empty, y, per::column);
    CHECK(y == std::vector<float>(3, 0.0F));
    matrix<float> x(2, 3);
    CHECK_THROWS_WITH_AS(mp::ops::sum(simulated{}, x.view, y, per::row),
                         "mp::ops::sum: y.size() is 3; it must equal x.rows, which is 2", mp::argument_error);
    CHECK_THROWS_AS(mp::ops::sum(simulated{}, x.view, y, per::column), mp::argument_error);
    CHECK_THROWS_AS(mp::ops::sum(simulated{}, x.view, y, static_cast<per>(9)), mp::argument_error);
    std::vector<float> none;
    mp::ops::sum(simulated{}, mp::row_major(&number, 2, 0), none, per::column);
}

}  // namespace
