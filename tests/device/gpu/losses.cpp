// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/error.hpp>
#include <mp/float8.hpp>
#include <mp/nn/ops/losses/gpu.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

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

constexpr mp::ops::loss_factors factors{.weight = 0.3F, .scale = 1000.0F};

template <class X, class T>
struct losses {
    float squared;
    float absolute;

    template <class Executor>
    losses(const Executor& exec, const matrix<X>& x, const matrix<T>& t) {
        mp::ops::mean_squared_error(exec, x.view, t.view, &squared, factors);
        mp::ops::mean_absolute_error(exec, x.view, t.view, &absolute, factors);
    }
};

template <class X, class T, class DX = X>
void check_layouts(std::ptrdiff_t rows, std::ptrdiff_t columns) {
    CAPTURE(rows);
    CAPTURE(columns);
    matrix<X> x0(rows, columns);
    matrix<T> t0(rows, columns);
    matrix<DX> squared0(rows, columns), absolute0(rows, columns);
    x0.randomize(1, 3.0F);
    t0.randomize(2, 3.0F);
    t0.view(rows - 1, columns - 1) = T(static_cast<float>(x0.view(rows - 1, columns - 1)));
    const losses<X, T> expected(mp::cpu{}, x0, t0);
    CHECK(expected.squared == mp::ops::mean_squared_error(mp::cpu{}, x0.view, t0.view, factors));
    mp::ops::mean_squared_error_backward(mp::cpu{}, x0.view, t0.view, squared0.view, factors);
    mp::ops::mean_absolute_error_backward(mp::cpu{}, x0.view, t0.view, absolute0.view, factors);
    std::uint64_t seed = 1;
    for (const layout& in : gpu_test::layouts) {
        for (const layout& out : {gpu_test::layouts[1], gpu_test::layouts[4]}) {
            matrix<X> x(rows, columns, in);
            matrix<T> t(rows, columns, out);
            x.randomize(1, 3.0F);
            t.randomize(2, 3.0F);
            t.view(rows - 1, columns - 1) = T(static_cast<float>(x.view(rows - 1, columns - 1)));
            workspace room(mp::ops::regression_loss_workspace(rows, columns));
            const losses<X, T> found(room.on({.seed = seed++}), x, t);
            CHECK(same_bits(found.squared, expected.squared));
            CHECK(same_bits(found.absolute, expected.absolute));
            matrix<DX> squared(rows, columns, out), absolute(rows, columns, in);
            mp::ops::mean_squared_error_backward(watched(simulated{.seed = seed++}), x.view, t.view,
                                                 squared.view, factors);
            mp::ops::mean_absolute_error_backward(watched(simulated{.seed = seed++}), x.view, t.view,
                                                  absolute.view, factors);
            CHECK(same_bits(squared, squared0));
            CHECK(same_bits(absolute, absolute0));
            CHECK(squared.is_contained());
            CHECK(absolute.is_contained());
        }
    }
}

TEST_CASE("losses of numbers and their gradients have the CPU's bits, in every layout, format and schedule") {
    for (const std::ptrdiff_t columns : {1, 31, 33, 130}) {
        check_layouts<float, float>(1, columns);
        check_layouts<half, half>(33, columns);
        check_layouts<float, bfloat16, half>(300, columns);
    }
    check_layouts<bfloat16, float, float>(1000, 1);
    check_layouts<mp::float8_e4m3fn, float, half>(5, 7);
}

TEST_CASE("more parts than a block has threads are added in their order") {
    constexpr std::ptrdiff_t size = 64 * 300 + 5;
    matrix<float> x(1, size), t(1, size);
    x.randomize(1);
    t.randomize(2);
    double sum = 0, sum_of_magnitudes = 0;
    for (std::ptrdiff_t c = 0; c < size; ++c) {
        sum += std::pow(static_cast<double>(x.view(0, c)) - static_cast<double>(t.view(0, c)), 2);
    }
    for (std::ptrdiff_t c = 0; c < size; ++c) {
        sum_of_magnitudes += std::abs(static_cast<double>(x.view(0, c)) - static_cast<double>(t.view(0, c)));
    }
    workspace room(mp::ops::regression_loss_workspace(1, size));
    float loss = 0;
    mp::ops::mean_squared_error(room.on(), x.view, t.view, &loss);
    CHECK(std::abs(static_cast<double>(loss) * size / sum - 1) < 0x1p-24);
    CHECK(loss == mp::ops::mean_squared_error(mp::cpu{}, x.view, t.view));
    mp::ops::mean_absolute_error(room.on(), x.view, t.view, &loss);
    CHECK(std::abs(static_cast<double>(loss) * size / sum_of_magnitudes - 1) < 0x1p-24);
}

TEST_CASE("NaN and infinity show in the loss, and in their gradient alone") {
    matrix<float> x(3, 40), t(3, 40), dx(3, 40);
    x.randomize(1);
    t.randomize(2);
    x.view(1, 3) = std::numeric_limits<float>::infinity();
    workspace room(mp::ops::regression_loss_workspace(3, 40));
    float loss = 0;
    mp::ops::mean_absolute_error(room.on(), x.view, t.view, &loss);
    CHECK(std::isinf(loss));
    x.view(1, 3) = std::numeric_limits<float>::quiet_NaN();
    mp::ops::mean_absolute_error(room.on(), x.view, t.view, &loss);
    CHECK(gpu_test::is_nan(loss));
    mp::ops::mean_absolute_error_backward(simulated{}, x.view, t.view, x.view);
    CHECK(gpu_test::is_nan(x.view(1, 3)));
    CHECK(std::abs(x.view(1, 4)) == 1.0F / 120.0F);
}

TEST_CASE("wrong arguments are refused before anything is written") {
    matrix<float> x(2, 3), t(2, 3), dx(2, 3);
    float loss = 7.0F;
    workspace room(mp::ops::regression_loss_workspace(2, 3));
    CHECK_THROWS_WITH_AS(
        mp::ops::mean_squared_error(simulated{}, x.view, t.view, &loss),
        "mp::ops::mean_squared_error: exec.workspace is 'null'; it must be a workspace in the "
        "memory of the executor, of at least 8 bytes",
        mp::argument_error);
    float* nothing = nullptr;
    CHECK_THROWS_AS(mp::ops::mean_squared_error(room.on(), x.view, t.view, nothing), mp::argument_error);
    CHECK_THROWS_AS(mp::ops::mean_squared_error(mp::cpu{}, x.view, t.view, nothing), mp::argument_error);
    CHECK_THROWS_AS(mp::ops::mean_squared_error(room.on(), x.view, t.view, &loss, {.weight = -1.0F}),
                    mp::argument_error);
    CHECK_THROWS_AS(mp::ops::mean_absolute_error(room.on(), x.view, t.view, &x.view(1, 1)),
                    mp::argument_error);
    CHECK_THROWS_AS(mp::ops::mean_absolute_error(room.on(), x.view, mp::row_major(&loss, 1, 1), &loss),
                    mp::argument_error);
    CHECK_THROWS_AS(
        mp::ops::mean_squared_error_backward(simulated{}, x.view, t.view, dx.view.block(0, 0, 2, 2)),
        mp::argument_error);
    CHECK(loss == 7.0F);
}

}  // namespace
