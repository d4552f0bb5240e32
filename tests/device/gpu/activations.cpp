// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/error.hpp>
#include <mp/float8.hpp>
#include <mp/nn/ops/activations.hpp>
#include <mp/nn/ops/gpu_casts.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "matrices.hpp"

namespace {

using gpu_test::layout;
using gpu_test::matrix;
using gpu_test::same_bits;
using gpu_test::simulated;
using gpu_test::watched;
using mp::bfloat16;
using mp::half;
using mp::ops::gelu_formula;

/// All numbers of a 16-bit format.
template <class Value>
void every_number(matrix<Value>& x) {
    x.fill([&](auto r, auto c) { return Value::from_bits(static_cast<std::uint16_t>(r * 256 + c)); });
}

/// Calls f(number, of the GPU, of the CPU) for the results of all numbers of a 16-bit format.
template <class X, class Y, class Run, class Function>
void for_all(Run run, Function f) {
    matrix<X> x(256, 256);
    matrix<Y> y(256, 256), expected(256, 256);
    every_number(x);
    run(simulated{}, x.view, y.view);
    run(mp::cpu{}, x.view, expected.view);
    for (std::ptrdiff_t r = 0; r < 256; ++r) {
        for (std::ptrdiff_t c = 0; c < 256; ++c) f(x.view(r, c), y.view(r, c), expected.view(r, c));
    }
}

/// Numbers have the same bits; NaNs may differ in that they are quiet.
template <class Value>
bool same_but_quiet(Value a, Value b) {
    const auto x = static_cast<float>(a), y = static_cast<float>(b);
    if (!gpu_test::is_nan(y)) return same_bits(a, b);
    return gpu_test::is_nan(x) && std::signbit(x) == std::signbit(y);
}

template <class X, class Y>
void check_relu() {
    const auto relu = [](auto exec, auto x, auto y) { mp::ops::relu(exec, x, y); };
    int different = 0;
    const auto compare = [&](X, Y y, Y expected) { different += same_but_quiet(y, expected) ? 0 : 1; };
    for_all<X, Y>(relu, compare);
    matrix<X> results(256, 256), dy(256, 256);
    results.fill([&](auto, auto c) {
        return c % 4 == 0 ? -1.0F : c % 4 == 1 ? -0.0F : c % 4 == 2 ? 0.0F : 1.0F;
    });
    every_number(dy);
    for_all<X, Y>([&](auto exec, auto x, auto dx) { mp::ops::relu_backward(exec, results.view, x, dx); },
                  compare);
    for_all<X, Y>([&](auto exec, auto x, auto dx) { mp::ops::relu_backward(exec, x, dy.view, dx); }, compare);
    CHECK(different == 0);
}

TEST_CASE("relu and its gradient have the CPU's bits for all numbers of 16 bits, and NaN stays NaN") {
    check_relu<half, half>();
    check_relu<bfloat16, half>();
    check_relu<half, float>();
    check_relu<half, mp::float8_e4m3fn>();
}

/// How many results for the numbers of a 16-bit format differ from the CPU's, as numbers of 16 bits and as
/// floats.
template <class X, class Run>
int different_from_cpu(Run run) {
    int different = 0;
    for_all<X, X>(run, [&](X, X y, X expected) { different += same_but_quiet(y, expected) ? 0 : 1; });
    for_all<X, float>(run,
                      [&](X, float y, float expected) { different += same_but_quiet(y, expected) ? 0 : 1; });
    return different;
}

TEST_CASE("smooth activations have the CPU's bits for all numbers of 16 bits") {
    const auto gelu = [](auto exec, auto x, auto y) { mp::ops::gelu(exec, x, y); };
    const auto tanh = [](auto exec, auto x, auto y) { mp::ops::gelu(exec, x, y, gelu_formula::tanh); };
    const auto silu = [](auto exec, auto x, auto y) { mp::ops::silu(exec, x, y); };
    CHECK(different_from_cpu<half>(gelu) == 0);
    CHECK(different_from_cpu<bfloat16>(gelu) == 0);
    CHECK(different_from_cpu<half>(tanh) == 0);
    CHECK(different_from_cpu<bfloat16>(tanh) == 0);
    CHECK(different_from_cpu<half>(silu) == 0);
    CHECK(different_from_cpu<bfloat16>(silu) == 0);
    const auto sigmoid = [](auto exec, auto x, auto y) { mp::ops::sigmoid(exec, x, y); };
    CHECK(different_from_cpu<half>(sigmoid) == 0);
    CHECK(different_from_cpu<bfloat16>(sigmoid) == 0);
}

TEST_CASE("gradients of smooth activations have the CPU's bits for all numbers of 16 bits") {
    const auto check = [](auto backward) {
        const auto with_gradient = [&](auto exec, auto x, auto dx) {
            matrix<float> dy(256, 256);
            dy.fill([](auto r, auto c) { return static_cast<float>((r + 3 * c) % 7) - 3.0F; });
            backward(exec, x, dy.view, dx);
        };
        CHECK(different_from_cpu<half>(with_gradient) == 0);
        CHECK(different_from_cpu<bfloat16>(with_gradient) == 0);
    };
    check([](auto exec, auto x, auto dy, auto dx) { mp::ops::gelu_backward(exec, x, dy, dx); });
    check([](auto exec, auto x, auto dy, auto dx) {
        mp::ops::gelu_backward(exec, x, dy, dx, gelu_formula::tanh);
    });
    check([](auto exec, auto x, auto dy, auto dx) { mp::ops::silu_backward(exec, x, dy, dx); });
    check([](auto exec, auto y, auto dy, auto dx) { mp::ops::sigmoid_backward(exec, y, dy, dx); });
}

TEST_CASE("bits depend on no schedule, layout or size, nothing else is written, and results may replace") {
    for (const std::ptrdiff_t rows : {1, 5}) {
        for (const std::ptrdiff_t columns : {1, 7, 8, 515}) {
            matrix<half> x0(rows, columns), dy0(rows, columns);
            matrix<float> y0(rows, columns), dx0(rows, columns);
            x0.randomize(1, 5.0F);
            dy0.randomize(2);
            mp::ops::silu(simulated{}, x0.view, y0.view);
            mp::ops::gelu_backward(simulated{}, x0.view, dy0.view, dx0.view);
            std::uint64_t seed = 1;
            for (const layout& in : gpu_test::layouts) {
                for (const layout& out : gpu_test::layouts) {
                    matrix<half> x(rows, columns, in), dy(rows, columns, out);
                    matrix<float> y(rows, columns, out), dx(rows, columns, out);
                    x.randomize(1, 5.0F);
                    dy.randomize(2);
                    mp::ops::silu(watched(simulated{.seed = seed++}), x.view, y.view);
                    mp::ops::gelu_backward(watched(simulated{.seed = seed++}), x.view, dy.view, dx.view);
                    CHECK(same_bits(y, y0));
                    CHECK(same_bits(dx, dx0));
                    CHECK(y.is_contained());
                    CHECK(dx.is_contained());
                }
            }
            matrix<half> fresh(rows, columns);
            mp::ops::gelu(simulated{}, x0.view, fresh.view);
            mp::ops::gelu(simulated{}, x0.view, x0.view);
            CHECK(same_bits(fresh, x0));
        }
    }
}

TEST_CASE("aligned matrices move in full sectors") {
    matrix<half> x(32, 256), y(32, 256);
    x.randomize(1);
    mp::simt::access_statistics statistics;
    mp::ops::gelu(simulated{.statistics = &statistics}, x.view, y.view);
    mp::ops::silu_backward(simulated{.statistics = &statistics}, x.view, x.view, y.view);
    CHECK(statistics.wasted_sectors() == 0);
}

TEST_CASE("wrong arguments are refused as on the CPU") {
    matrix<half> x(2, 3), y(2, 4);
    CHECK_THROWS_WITH_AS(mp::ops::relu(simulated{}, x.view, y.view),
                         "mp::ops::relu: y.columns is 4; it must equal x.columns, which is 3",
                         mp::argument_error);
    CHECK_THROWS_AS(mp::ops::gelu(simulated{}, x.view, x.view, static_cast<gelu_formula>(7)),
                    mp::argument_error);
    CHECK_THROWS_AS(mp::ops::silu_backward(simulated{}, x.view, x.view, y.view), mp::argument_error);
    const mp::matrix_view<half> empty{nullptr, 0, 3, 3};
    mp::ops::relu(simulated{}, empty, empty);
}

}  // namespace
