// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/activations.hpp>
#include <mp/nn/ops/linear.hpp>

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
using mp::ops::activation;
using ops_test::cast;
using ops_test::matrix;
using ops_test::message_of;
using ops_test::random_vector;
using ops_test::same_bits;
namespace ac = mp::autocast;

static_assert(std::same_as<ac::compute_type_t<ac::fp16, mp::ops::linear_op, float, float, float>, half>);
static_assert(std::same_as<ac::compute_type_t<ac::bf16, mp::ops::linear_backward_op, float>, bfloat16>);
static_assert(
    std::same_as<ac::compute_type_t<ac::fp16, mp::ops::matmul_op, mp::matrix_view<const float>>, half>);

/// The largest error of rounding x to Value once, and of a float sum of `terms` products of factors below 1.
template <class Value>
double tolerance(double x, double terms) {
    return std::abs(x) * std::ldexp(1.0, -mp::layout_of<mp::detail::format_of_t<Value>>::precision) +
           terms * terms * 0x1p-24 + 0x1p-25;
}

double activated(double x, activation act) {
    switch (act) {
        case activation::relu:
            return x < 0 ? 0.0 : x;
        case activation::gelu:
            return x / 2 * std::erfc(-x / std::sqrt(2.0));
        case activation::gelu_tanh:
            return x / 2 * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
        case activation::silu:
            return x / (1 + std::exp(-x));
        default:
            return x;
    }
}

/// y = act(x w^T + b) against double, in every storage order, with padding.
template <class X, class W, class B, class Y>
void check_forward(storage_order order, activation act, bool with_bias) {
    const std::ptrdiff_t batch = 5, in = 19, out = 7;
    matrix<X> x(batch, in, 3, order);
    matrix<W> w(out, in, 0, storage_order::row_major);
    matrix<Y> y(batch, out, 2, order);
    x.randomize(1);
    w.randomize(2);
    const auto b = random_vector<B>(static_cast<std::size_t>(out), 3);
    if (with_bias) {
        mp::ops::linear(mp::cpu{}, x.view, w.view, b, y.view, act);
    } else {
        mp::ops::linear(mp::cpu{}, x.view, w.view, mp::ops::absent, y.view, act);
    }
    for (std::ptrdiff_t r = 0; r < batch; ++r) {
        for (std::ptrdiff_t c = 0; c < out; ++c) {
            double sum = with_bias ? static_cast<double>(b[static_cast<std::size_t>(c)]) : 0.0;
            for (std::ptrdiff_t k = 0; k < in; ++k) {
                sum += static_cast<double>(x.view(r, k)) * static_cast<double>(w.view(c, k));
            }
            sum = activated(sum, act);
            CHECK(std::abs(static_cast<double>(y.view(r, c)) - sum) <= tolerance<Y>(sum, 20));
        }
    }
    CHECK(y.padding_is_untouched());
}

TEST_CASE("linear is x w^T + b, with every activation and none, in every mix of formats and orders") {
    for (const storage_order order : {storage_order::row_major, storage_order::column_major}) {
        for (const activation act : {activation::none, activation::relu, activation::gelu,
                                     activation::gelu_tanh, activation::silu}) {
            for (const bool with_bias : {true, false}) {
                check_forward<float, float, float, float>(order, act, with_bias);
                check_forward<half, half, half, half>(order, act, with_bias);
                check_forward<bfloat16, bfloat16, bfloat16, bfloat16>(order, act, with_bias);
                check_forward<half, float, bfloat16, float>(order, act, with_bias);
                check_forward<mp::float8_e4m3fn, mp::float8_e5m2, float, half>(order, act, with_bias);
            }
        }
    }
}

/// y of linear() with the activation, and z of linear() without.
template <class Policy, class X, class W, class B, class Z, class Y>
void check_with_preactivation(storage_order order, activation act, int threads) {
    const std::ptrdiff_t batch = 37, in = 19, out = 45;
    const mp::cpu exec{threads};
    matrix<X> x(batch, in, 3, order);
    matrix<W> w(out, in);
    x.randomize(11);
    w.randomize(12);
    const auto b = random_vector<B>(static_cast<std::size_t>(out), 13);
    matrix<Z> z(batch, out, 1, order), expected_z(batch, out, 1, order);
    matrix<Y> y(batch, out, 2), expected_y(batch, out, 2);
    const auto compare = [&](const auto& bias) {
        mp::ops::linear_with_preactivation<Policy>(exec, x.view, w.view, bias, z.view, y.view, act);
        mp::ops::linear<Policy>(exec, x.view, w.view, bias, expected_z.view);
        mp::ops::linear<Policy>(exec, x.view, w.view, bias, expected_y.view, act);
        CHECK(same_bits(z, expected_z));
        CHECK(same_bits(y, expected_y));
    };
    compare(b);
    compare(mp::ops::absent);
    CHECK(z.padding_is_untouched());
    CHECK(y.padding_is_untouched());
}

TEST_CASE("linear with an activation keeps what came before it") {
    for (const storage_order order : {storage_order::row_major, storage_order::column_major}) {
        for (const activation act : {activation::gelu, activation::gelu_tanh, activation::silu}) {
            check_with_preactivation<ac::off, float, float, float, float, float>(order, act, 1);
            check_with_preactivation<ac::off, bfloat16, bfloat16, bfloat16, bfloat16, bfloat16>(order, act,
                                                                                                2);
            check_with_preactivation<ac::off, half, float, bfloat16, float, half>(order, act, 3);
            check_with_preactivation<ac::off, double, double, double, double, double>(order, act, 2);
            check_with_preactivation<ac::fp16, float, float, float, float, float>(order, act, 1);
        }
    }
    matrix<float> x(2, 3), w(4, 3), z(2, 4), y(2, 4), small(2, 3);
    const auto run = [&](auto before, auto result, activation act) {
        mp::ops::linear_with_preactivation<ac::off>(mp::cpu{}, x.view, w.view, mp::ops::absent, before,
                                                    result, act);
    };
    CHECK_THROWS_WITH_AS(
        run(small.view, y.view, activation::gelu),
        "mp::ops::linear_with_preactivation: z.columns is 3; it must equal w.rows, which is 4",
        mp::argument_error);
    CHECK_THROWS_AS(run(z.view, small.view, activation::gelu), mp::argument_error);
    CHECK_THROWS_AS(run(z.view, z.view, activation::gelu), mp::argument_error);
    CHECK_THROWS_AS(run(z.view, y.view, activation::relu), mp::argument_error);
    CHECK_THROWS_AS(run(z.view, y.view, activation::none), mp::argument_error);
    CHECK_NOTHROW(run(z.view, y.view, activation::silu));
}

/// dz of one op, against the gradient of the argument in float, and then that of the activation.
template <class Policy, class X, class W, class Z, class DZ>
void check_backward_with_preactivation(storage_order order, activation act, int threads) {
    const std::ptrdiff_t batch = 37, in = 19, out = 45;
    const mp::cpu exec{threads};
    matrix<X> x(batch, in, 3, order), dy(batch, out);
    matrix<W> w(out, in);
    matrix<Z> z(batch, in, 1, order);
    x.randomize(11);
    w.randomize(12);
    dy.randomize(13);
    z.randomize(14);
    std::vector<W> db(static_cast<std::size_t>(out)), expected_db = db;
    matrix<W> dw(out, in), expected_dw(out, in);
    matrix<DZ> dz(batch, in, 2, order), expected_dz(batch, in, 2, order);
    matrix<mp::detail::arithmetic_type<X, W, Z, DZ>> dx(batch, in);
    mp::ops::linear_backward_with_preactivation<Policy>(exec, x.view, w.view, dy.view, z.view, dz.view,
                                                        dw.view, db, act);
    mp::ops::linear_backward<Policy>(exec, x.view, w.view, dy.view, dx.view, expected_dw.view, expected_db);
    switch (act) {
        case activation::relu:
            mp::ops::relu_backward<Policy>(exec, z.view, dx.view, expected_dz.view);
            break;
        case activation::silu:
            mp::ops::silu_backward<Policy>(exec, z.view, dx.view, expected_dz.view);
            break;
        default:
            mp::ops::gelu_backward<Policy>(
                exec, z.view, dx.view, expected_dz.view,
                act == activation::gelu ? mp::ops::gelu_formula::exact : mp::ops::gelu_formula::tanh);
    }
    CHECK(same_bits(dz, expected_dz));
    CHECK(same_bits(dw, expected_dw));
    CHECK(db == expected_db);
    CHECK(dz.padding_is_untouched());
}

TEST_CASE("the gradient of a linear layer goes through the activation before it in one pass") {
    for (const storage_order order : {storage_order::row_major, storage_order::column_major}) {
        for (const activation act :
             {activation::relu, activation::gelu, activation::gelu_tanh, activation::silu}) {
            check_backward_with_preactivation<ac::off, float, float, float, float>(order, act, 1);
            check_backward_with_preactivation<ac::off, bfloat16, bfloat16, half, bfloat16>(order, act, 2);
            check_backward_with_preactivation<ac::off, double, double, double, double>(order, act, 2);
        }
    }
    matrix<float> x(2, 3), w(4, 3), dy(2, 4), z(2, 3), dz(2, 3), dw(4, 3);
    const auto run = [&](auto before, auto result, activation act) {
        mp::ops::linear_backward_with_preactivation<ac::off>(mp::cpu{}, x.view, w.view, dy.view, before,
                                                             result, dw.view, mp::ops::absent, act);
    };
    CHECK_THROWS_WITH_AS(
        run(dy.view, dz.view, activation::gelu),
        "mp::ops::linear_backward_with_preactivation: z.columns is 4; it must equal x.columns, which is 3",
        mp::argument_error);
    CHECK_THROWS_AS(run(z.view, dy.view, activation::gelu), mp::argument_error);
    CHECK_THROWS_AS(run(z.view, z.view, activation::gelu), mp::argument_error);
    CHECK_THROWS_AS(run(z.view, dz.view, activation::none), mp::argument_error);
    CHECK_NOTHROW(run(x.view, dz.view, activation::relu));
    // Under a low precision all are rounded to it, and so is the result.
    x.randomize(1);
    w.randomize(2);
    dy.randomize(3);
    z.fill([](auto, auto) { return 10.0F; });  // where the slope of relu is 1
    mp::ops::linear_backward_with_preactivation<ac::bf16>(mp::cpu{}, x.view, w.view, dy.view, z.view, dz.view,
                                                          mp::ops::absent, mp::ops::absent, activation::relu);
    matrix<float> dx(2, 3);
    mp::ops::linear_backward<ac::bf16>(mp::cpu{}, x.view, w.view, dy.view, dx.view, mp::ops::absent,
                                       mp::ops::absent);
    CHECK(same_bits(dz, dx));
}

TEST_CASE("matmul multiplies, and its transposes give the gradients") {
    matrix<half> a(4, 6);
    matrix<half> b(6, 3);
    matrix<float> c(4, 3);
    a.fill([](auto r, auto k) { return half(r + 2 * k); });
    b.fill([](auto k, auto n) { return half(k - 3 * n); });
    mp::ops::matmul(mp::cpu{}, a.view, b.view, c.view);
    matrix<float> from_transposes(3, 4);
    mp::ops::matmul(mp::cpu{}, mp::transposed(b.view), mp::transposed(a.view), from_transposes.view);
    for (std::ptrdiff_t r = 0; r < 4; ++r) {
        for (std::ptrdiff_t n = 0; n < 3; ++n) {
            float sum = 0;
            for (std::ptrdiff_t k = 0; k < 6; ++k) sum += static_cast<float>((r + 2 * k) * (k - 3 * n));
            CHECK(c.view(r, n) == sum);
            CHECK(from_transposes.view(n, r) == sum);
        }
    }
}

/// The layer on float arrays under a policy against casting everything by hand and calling it without
/// autocast.
template <class Low, class Run, class RunBackward>
void check_equal_to_hand_written(Run linear, RunBackward backward) {
    const std::ptrdiff_t batch = 9, in = 33, out = 6;
    matrix<float> x(batch, in, 5);
    matrix<float> w(out, in, 0, storage_order::column_major);
    matrix<float> y(batch, out, 1);
    matrix<float> dy(batch, out, 0, storage_order::column_major);
    matrix<float> dx(batch, in, 2, storage_order::column_major);
    matrix<float> dw(out, in, 4);
    x.randomize(4);
    w.randomize(5);
    dy.randomize(6);
    dy.view(0, 0) = 1e-7F;
    const auto b = random_vector<float>(static_cast<std::size_t>(out), 7);
    std::vector<float> db(b.size());
    linear(x.view, w.view, b, y.view);
    backward(x.view, w.view, dy.view, dx.view, dw.view, db);

    const auto low_x = cast<Low>(x);
    const auto low_w = cast<Low>(w);
    const auto low_b = cast<Low>(b);
    const auto low_dy = cast<Low>(dy);
    matrix<Low> low_y(batch, out);
    matrix<Low> low_dx(batch, in);
    matrix<Low> low_dw(out, in);
    std::vector<Low> low_db(b.size());
    mp::ops::linear<ac::off>(mp::cpu{}, low_x.view, low_w.view, low_b, low_y.view, activation::relu);
    mp::ops::linear_backward<ac::off>(mp::cpu{}, low_x.view, low_w.view, low_dy.view, low_dx.view,
                                      low_dw.view, low_db);
    CHECK(same_bits(y, low_y));
    CHECK(same_bits(dx, low_dx));
    CHECK(same_bits(dw, low_dw));
    CHECK(db == cast<float>(low_db));
    CHECK(y.padding_is_untouched());
    CHECK(dx.padding_is_untouched());
    CHECK(dw.padding_is_untouched());

    // The test would prove nothing if low precision made no difference.
    matrix<float> plain(batch, out);
    mp::ops::linear<ac::off>(mp::cpu{}, x.view, w.view, b, plain.view, activation::relu);
    CHECK_FALSE(same_bits(y, plain));
}

TEST_CASE("autocast of the linear layer equals casting by hand, bit for bit") {
    const mp::cpu exec{};
    const auto by_region_linear = [&](auto x, auto w, const auto& b, auto y) {
        mp::ops::linear(exec, x, w, b, y, activation::relu);
    };
    const auto by_region_backward = [&](auto x, auto w, auto dy, auto dx, auto dw, auto& db) {
        mp::ops::linear_backward(exec, x, w, dy, dx, dw, db);
    };
    SUBCASE("in an fp16 region") {
        const mp::autocast_region region(mp::precision::fp16);
        check_equal_to_hand_written<half>(by_region_linear, by_region_backward);
    }
    SUBCASE("in a bf16 region") {
        const mp::autocast_region region(mp::precision::bf16);
        check_equal_to_hand_written<bfloat16>(by_region_linear, by_region_backward);
    }
    SUBCASE("by a static policy, whatever the region") {
        const mp::autocast_region region(mp::precision::bf16);
        check_equal_to_hand_written<half>(
            [&](auto x, auto w, const auto& b, auto y) {
                mp::ops::linear<ac::fp16>(exec, x, w, b, y, activation::relu);
            },
            [&](auto x, auto w, auto dy, auto dx, auto dw, auto& db) {
                mp::ops::linear_backward<ac::fp16>(exec, x, w, dy, dx, dw, db);
            });
    }
}

TEST_CASE("an override keeps the layer in float inside a region") {
    matrix<float> x(2, 3), w(4, 3), y(2, 4), expected(2, 4);
    x.randomize(8);
    w.randomize(9);
    const mp::autocast_region region(mp::precision::fp16);
    using keep = ac::override_op<mp::ops::linear_op, mp::op_category::full_precision>;
    mp::ops::linear<ac::region_policy<keep>>(mp::cpu{}, x.view, w.view, mp::ops::absent, y.view);
    mp::ops::linear<ac::off>(mp::cpu{}, x.view, w.view, mp::ops::absent, expected.view);
    CHECK(same_bits(y, expected));
}

TEST_CASE("the gradients of the linear layer are those of central differences") {
    // L = sum of t * (x w^T + b); in double, with values that float holds.
    const std::ptrdiff_t batch = 4, in = 5, out = 3;
    matrix<double> x(batch, in), w(out, in), b(1, out), t(batch, out);
    for (auto* m : {&x, &w, &b, &t}) {
        m->randomize(static_cast<unsigned>(10 + m->view.columns));
        m->fill([&](auto r, auto c) { return static_cast<double>(static_cast<float>(m->view(r, c))); });
    }
    const auto loss = [&] {
        double sum = 0;
        for (std::ptrdiff_t r = 0; r < batch; ++r) {
            for (std::ptrdiff_t c = 0; c < out; ++c) {
                double y = b.view(0, c);
                for (std::ptrdiff_t k = 0; k < in; ++k) y += x.view(r, k) * w.view(c, k);
                sum += t.view(r, c) * y;
            }
        }
        return sum;
    };
    const auto fx = cast<float>(x), fw = cast<float>(w), ft = cast<float>(t);
    matrix<float> dx(batch, in), dw(out, in);
    std::vector<float> db(static_cast<std::size_t>(out));
    mp::ops::linear_backward(mp::cpu{}, fx.view, fw.view, ft.view, dx.view, dw.view, db);
    const auto close = [&](float gradient, double& variable) {
        // L is linear in each variable, so the differences have no error but rounding.
        return std::abs(static_cast<double>(gradient) - ops_test::derivative(variable, loss, 0x1p-10)) < 1e-6;
    };
    for (std::ptrdiff_t r = 0; r < batch; ++r) {
        for (std::ptrdiff_t c = 0; c < in; ++c) CHECK(close(dx.view(r, c), x.view(r, c)));
    }
    for (std::ptrdiff_t r = 0; r < out; ++r) {
        for (std::ptrdiff_t c = 0; c < in; ++c) CHECK(close(dw.view(r, c), w.view(r, c)));
        CHECK(close(db[static_cast<std::size_t>(r)], b.view(0, r)));
    }
}

TEST_CASE("gradients that nobody needs are not computed") {
    matrix<half> x(3, 2), w(4, 2), dy(3, 4), dw(4, 2), dx(3, 2), all_dx(3, 2), all_dw(4, 2);
    x.randomize(20);
    w.randomize(21);
    dy.randomize(22);
    std::vector<half> db(4), all_db(4);
    using mp::ops::absent;
    mp::ops::linear_backward(mp::cpu{}, x.view, w.view, dy.view, all_dx.view, all_dw.view, all_db);
    mp::ops::linear_backward(mp::cpu{}, x.view, w.view, dy.view, absent, dw.view, absent);
    mp::ops::linear_backward(mp::cpu{}, x.view, w.view, dy.view, dx.view, absent, std::span(db));
    CHECK(same_bits(dx, all_dx));
    CHECK(same_bits(dw, all_dw));
    CHECK(db == all_db);
    const mp::autocast_region region(mp::precision::bf16);
    mp::ops::linear_backward(mp::cpu{}, x.view, w.view, dy.view, absent, absent, absent);
}

TEST_CASE("half gradients flush to zero, and a scale brings them back") {
    matrix<half> x(1, 1), dy(1, 1), dw(1, 1);
    matrix<half> w(1, 1);
    std::vector<half> db(1);
    x.view(0, 0) = half(0x1p-3F);
    w.view(0, 0) = half(1);
    for (const bool scaled : {false, true}) {
        dy.view(0, 0) = half(scaled ? 0x1p-13F : 0x1p-23F);
        mp::ops::linear_backward(mp::cpu{}, x.view, w.view, dy.view, mp::ops::absent, dw.view, db);
        CHECK(static_cast<float>(dw.view(0, 0)) == (scaled ? 0x1p-16F : 0.0F));
        CHECK(static_cast<float>(db[0]) == (scaled ? 0x1p-13F : 0x1p-23F));
    }
}

TEST_CASE("the bias gradient is a float sum, rounded once") {
    // In half the sum would stop at 2048; in float it is 4097, and rounds to 4096.
    matrix<half> x(4097, 1), w(1, 1), dy(4097, 1);
    x.fill([](auto, auto) { return half(0); });
    dy.fill([](auto, auto) { return half(1); });
    w.fill([](auto, auto) { return half(0); });
    std::array<half, 1> db{};
    mp::ops::linear_backward(mp::cpu{}, x.view, w.view, dy.view, mp::ops::absent, mp::ops::absent, db);
    CHECK(db[0] == half(4096));
}

TEST_CASE("the bias gradient has all columns, however many there are") {
    const std::ptrdiff_t batch = 3, out = 333;
    matrix<float> x(batch, 1), w(out, 1), dy(batch, out, 2);
    x.randomize(1);
    w.randomize(2);
    dy.fill([](auto r, auto c) { return static_cast<float>(1000 * r + c); });
    std::vector<float> db(static_cast<std::size_t>(out), -1.0F);
    mp::ops::linear_backward({.threads = 2}, x.view, w.view, dy.view, mp::ops::absent, mp::ops::absent, db);
    for (std::size_t c = 0; c < db.size(); ++c) CHECK(db[c] == 3000.0F + 3.0F * static_cast<float>(c));
}

TEST_CASE("relu in the epilogue keeps NaN, and overflow reaches the output as infinity") {
    matrix<half> x(1, 2), w(2, 2), y(1, 2);
    x.fill([](auto, auto) { return half(60000); });
    w.fill([](auto r, auto c) { return half(r == 0 ? 1 : (c == 0 ? 1 : -1)); });
    mp::ops::linear(mp::cpu{}, x.view, w.view, mp::ops::absent, y.view, activation::relu);
    CHECK(mp::isinf(y.view(0, 0)));
    CHECK(y.view(0, 1) == half(0));
    x.view(0, 0) = std::numeric_limits<half>::quiet_NaN();
    mp::ops::linear(mp::cpu{}, x.view, w.view, mp::ops::absent, y.view, activation::relu);
    CHECK(mp::isnan(y.view(0, 0)));
    CHECK(mp::isnan(y.view(0, 1)));
}

TEST_CASE("NaN passes every activation") {
    matrix<half> x(1, 1), w(1, 1);
    matrix<float> y(1, 1);
    x.view(0, 0) = std::numeric_limits<half>::quiet_NaN();
    w.view(0, 0) = half(1);
    for (const activation act :
         {activation::none, activation::relu, activation::gelu, activation::gelu_tanh, activation::silu}) {
        mp::ops::linear(mp::cpu{}, x.view, w.view, mp::ops::absent, y.view, act);
        CHECK(mp::isnan(y.view(0, 0)));
    }
}

TEST_CASE("the results of the linear layer do not depend on the number of threads") {
    matrix<half> x(150, 64, 1), w(200, 64), dy(150, 200);
    x.randomize(30);
    w.randomize(31);
    dy.randomize(32);
    const auto b = random_vector<half>(200, 33);
    const auto run = [&](mp::cpu exec) {
        matrix<half> y(150, 200), dx(150, 64), dw(200, 64);
        std::vector<half> db(200);
        const mp::autocast_region region(mp::precision::bf16);
        mp::ops::linear(exec, x.view, w.view, b, y.view);
        mp::ops::linear_backward(exec, x.view, w.view, dy.view, dx.view, dw.view, db);
        std::vector<half> all;
        for (const auto* part : {&y.elements, &dx.elements, &dw.elements, &db}) {
            all.insert(all.end(), part->begin(), part->end());
        }
        return all;
    };
    CHECK(run({.threads = 1}) == run({.threads = 3}));
}

TEST_CASE("an empty batch gives empty results and zero gradients") {
    matrix<float> x(0, 3), w(2, 3), y(0, 2), dw(2, 3);
    w.randomize(1);
    std::vector<float> db = {1.0F, 2.0F};
    mp::ops::linear(mp::cpu{}, x.view, w.view, mp::ops::absent, y.view);
    mp::ops::linear_backward(mp::cpu{}, x.view, w.view, y.view, mp::ops::absent, dw.view, db);
    CHECK(dw.elements == std::vector<float>(6, 0.0F));
    CHECK(db == std::vector<float>{0.0F, 0.0F});
}

TEST_CASE("the linear layer names the argument that does not fit, in and outside of a region") {
    const mp::cpu exec{};
    matrix<float> x(2, 3), w(4, 3), y(2, 4);
    std::vector<float> b(4);
    const auto fails = [&](auto xv, auto wv, const auto& bv, auto yv, activation act = activation::none) {
        const auto call = [&] { mp::ops::linear(exec, xv, wv, bv, yv, act); };
        std::string outside = message_of(call);
        const mp::autocast_region region(mp::precision::fp16);
        CHECK(message_of(call) == outside);
        CHECK(y.elements == std::vector<float>(8, -88.0F));
        return outside;
    };
    matrix<float> other(4, 2), tall(3, 4);
    CHECK(fails(x.view, other.view, b, y.view) ==
          "mp::ops::linear: w.columns is 2; it must equal x.columns, which is 3");
    CHECK(fails(x.view, w.view, std::vector<float>(3), y.view) ==
          "mp::ops::linear: b.size() is 3; it must equal w.rows, which is 4");
    CHECK(fails(x.view, w.view, std::vector<float>(), y.view) ==
          "mp::ops::linear: b.size() is 0; it must equal w.rows, which is 4");
    CHECK(fails(x.view, w.view, b, tall.view) ==
          "mp::ops::linear: y.rows is 3; it must equal x.rows, which is 2");
    CHECK(fails(x.view, w.view, b, mp::row_major(y.view.data, 2, 3)) ==
          "mp::ops::linear: y.columns is 3; it must equal w.rows, which is 4");
    CHECK(fails(mp::row_major<float>(nullptr, 2, 3), w.view, b, y.view) ==
          "mp::ops::linear: x.data is null; it must point to a matrix of 2 x 3 elements");
    CHECK(fails(x.view, mp::row_major(w.view.data, 4, 3, 2), b, y.view) ==
          "mp::ops::linear: w.leading_dimension is 2; it must be at least w.columns, which is 3");
    CHECK(fails(mp::row_major(x.view.data, -2, 3), w.view, b, y.view) ==
          "mp::ops::linear: x.rows is -2; it must not be negative");
    CHECK(fails(x.view, w.view, std::span<const float>(y.view.data, 4), y.view) ==
          "mp::ops::linear: y overlaps b; they must not share elements, because y is written while b is in "
          "use");
    CHECK(fails(x.view, mp::row_major(y.view.data, 2, 3), std::vector<float>(2),
                mp::row_major(y.view.data, 2, 2)) ==
          "mp::ops::linear: y overlaps w; they must not share elements, because y is written while w is in "
          "use");
    CHECK(fails(x.view, w.view, b, y.view, static_cast<activation>(9)) ==
          "mp::ops::linear: act is 9; it must be an enumerator of mp::ops::activation");
    CHECK(message_of([&] { mp::ops::linear(mp::cpu{.threads = 0}, x.view, w.view, b, y.view); }) ==
          "mp::ops::linear: exec.threads is 0; it must be at least 1");
    CHECK(message_of([&] { mp::ops::matmul(exec, x.view, w.view, y.view); }) ==
          "mp::ops::matmul: b.rows is 4; it must equal a.columns, which is 3");
    CHECK(message_of([&] { mp::ops::matmul(exec, x.view, mp::transposed(w.view), tall.view); }) ==
          "mp::ops::matmul: c.rows is 3; it must equal a.rows, which is 2");
    CHECK(message_of([&] {
              mp::ops::matmul(exec, mp::row_major(y.view.data, 2, 2), mp::row_major(x.view.data, 2, 2),
                              mp::row_major(y.view.data + 2, 2, 2));
          }) ==
          "mp::ops::matmul: c overlaps a; they must not share elements, because c is written while a is in "
          "use");
}

TEST_CASE("the backward pass names the argument that does not fit") {
    const mp::cpu exec{};
    matrix<float> x(2, 3), w(4, 3), dy(2, 4), dx(2, 3), dw(4, 3);
    std::vector<float> db(4);
    const auto fails = [&](auto dyv, auto dxv, auto dwv, std::span<float> dbv) {
        return message_of([&] { mp::ops::linear_backward(exec, x.view, w.view, dyv, dxv, dwv, dbv); });
    };
    CHECK(fails(dw.view, dx.view, dw.view, db) ==
          "mp::ops::linear_backward: dy.rows is 4; it must equal x.rows, which is 2");
    CHECK(fails(dy.view, dw.view, dw.view, db) ==
          "mp::ops::linear_backward: dx.rows is 4; it must equal x.rows, which is 2");
    CHECK(fails(dy.view, dx.view, dy.view, db) ==
          "mp::ops::linear_backward: dw.rows is 2; it must equal w.rows, which is 4");
    CHECK(fails(dy.view, dx.view, dw.view, std::span(db).first(3)) ==
          "mp::ops::linear_backward: db.size() is 3; it must equal w.rows, which is 4");
    CHECK(
        fails(dy.view, mp::row_major(dw.view.data, 2, 3), dw.view, db) ==
        "mp::ops::linear_backward: dw overlaps dx; they must not share elements, because dw is written while "
        "dx is in use");
    CHECK(fails(dy.view, dx.view, dw.view, std::span(w.view.data, 4)) ==
          "mp::ops::linear_backward: db overlaps w; they must not share elements, because db is written "
          "while w "
          "is in use");
    CHECK(fails(dy.view, dx.view, dw.view, db) == "nothing was thrown");
}

TEST_CASE("blocks of one larger matrix may be read and written at once") {
    matrix<float> all(3, 8);
    all.randomize(40);
    matrix<float> w(4, 4), y(3, 4);
    w.randomize(41);
    mp::ops::linear(mp::cpu{}, all.view.block(0, 0, 3, 4), w.view, mp::ops::absent, y.view);
    mp::ops::linear(mp::cpu{}, all.view.block(0, 0, 3, 4), w.view, mp::ops::absent,
                    all.view.block(0, 4, 3, 4));
    for (std::ptrdiff_t r = 0; r < 3; ++r) {
        for (std::ptrdiff_t c = 0; c < 4; ++c) CHECK(all.view(r, c + 4) == y.view(r, c));
    }
}

}  // namespace
