// SPDX-License-Identifier: MIT
// Epilogues with a second output: what they write is what separate passes over the product in float would.
#include <mp/nn/scaling/amax.hpp>
#include <mp/nn/scaling/amax_history.hpp>
#include <mp/nn/scaling/tensor_scaling.hpp>
#include <mp/tensor_core.hpp>

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "linalg/gemm/reference.hpp"

namespace {

using reference::generator;
using reference::matrix;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr mp::storage_order orders[2] = {mp::storage_order::row_major, mp::storage_order::column_major};

static_assert(mp::gemm_epilogue<mp::store_auxiliary_epilogue<mp::half>>);
static_assert(mp::gemm_epilogue<mp::amax_epilogue>);
static_assert(mp::gemm_epilogue<mp::quantize_epilogue<mp::float8_e5m2, float>>);

struct problem {
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t k;
    mp::storage_order a_order;
    mp::storage_order b_order;
    mp::storage_order c_order;
    mp::storage_order auxiliary_order;
    float alpha = 1;
    float beta = 0;
};

/// gelu of a product with bias, and what it was before: compared with the product with bias alone in float.
template <class A, class B, class C, class Auxiliary>
void check(generator& random, mp::cpu exec, const problem& p) {
    matrix<A> a(p.rows, p.k, p.a_order, 1);
    matrix<B> b(p.k, p.columns, p.b_order, 2);
    matrix<C> c(p.rows, p.columns, p.c_order, 3);
    matrix<float> before(p.rows, p.columns, orders[0], 0);
    matrix<Auxiliary> auxiliary(p.rows, p.columns, p.auxiliary_order, 5);
    a.fill_integers(random, 50);
    b.fill_integers(random, 50);
    c.fill_integers(random, 15);
    for (std::ptrdiff_t i = 0; i < p.rows; ++i) {
        for (std::ptrdiff_t j = 0; j < p.columns; ++j) before.set(i, j, c.get(i, j));
    }
    std::vector<float> bias(static_cast<std::size_t>(p.columns));
    for (float& x : bias) x = static_cast<float>(reference::random_size(random, -999, 999)) / 7.0F;
    float amax = 0;
    float active_amax = 0x1p-20F;
    mp::gemm(
        exec, p.alpha, a.view(), b.view(), p.beta, c.view(),
        mp::compose(mp::compose(mp::bias_per_column(bias),
                                mp::compose(mp::store_auxiliary(auxiliary.view()), mp::amax_into(&amax))),
                    mp::compose(mp::gelu_epilogue{}, mp::amax_into(&active_amax))));
    exec.threads = 1;
    mp::gemm(exec, p.alpha, a.view(), b.view(), p.beta, before.view(), mp::bias_per_column(bias));
    float expected_amax = 0;
    float expected_active = 0x1p-20F;
    bool same = true;
    for (std::ptrdiff_t i = 0; i < p.rows; ++i) {
        for (std::ptrdiff_t j = 0; j < p.columns; ++j) {
            const float value = before.view()(i, j);
            const float active = mp::gelu_epilogue{}(value, 0, 0);
            expected_amax = std::max(expected_amax, std::fabs(value));
            expected_active = std::max(expected_active, std::fabs(active));
            same = same && reference::same_value(auxiliary.get(i, j),
                                                 reference::value_of(static_cast<Auxiliary>(value)));
            same = same && reference::same_value(c.get(i, j), reference::value_of(static_cast<C>(active)));
        }
    }
    CAPTURE(p.rows);
    CAPTURE(p.columns);
    CAPTURE(p.k);
    CHECK(same);
    CHECK(amax == expected_amax);
    CHECK(active_amax == expected_active);
    CHECK(auxiliary.surroundings_untouched());
    CHECK(c.surroundings_untouched());
}

constexpr std::array<std::array<std::ptrdiff_t, 3>, 9> shapes = {{{1, 1, 1},
                                                                  {3, 300, 64},
                                                                  {1, 500, 40},
                                                                  {16, 40, 300},
                                                                  {300, 5, 64},
                                                                  {130, 140, 0},
                                                                  {70, 90, 600},
                                                                  {33, 257, 20},
                                                                  {129, 65, 33}}};

template <class A, class B, class C, class Auxiliary>
void check_everything(unsigned seed) {
    generator random(seed);
    unsigned number = 0;
    for (mp::cpu exec : reference::executors_of_kernels<A, B>()) {
        for (const auto& [rows, columns, k] : shapes) {
            for (const auto c_order : orders) {
                for (const auto auxiliary_order : orders) {
                    ++number;
                    exec.threads = number % 3 == 0 ? 3 : 1;
                    check<A, B, C, Auxiliary>(
                        random, exec,
                        {rows, columns, k, orders[number / 2 % 2], orders[number / 4 % 2], c_order,
                         auxiliary_order, number % 5 == 0 ? 0.5F : 1.0F, number % 4 == 1 ? 0.25F : 0.0F});
                }
            }
        }
    }
}

TEST_CASE("a second output has what a pass over the product would write, by every kernel") {
    check_everything<float, float, float, mp::bfloat16>(1);
    check_everything<mp::bfloat16, mp::bfloat16, mp::bfloat16, mp::bfloat16>(2);
    check_everything<mp::half, mp::half, mp::float8_e5m2, float>(3);
    check_everything<mp::float8_e4m3fn, mp::bfloat16, mp::half, double>(4);
}

TEST_CASE("runs across the lines of the second output may be any number") {
    constexpr std::ptrdiff_t runs = 600;
    std::vector<float> values(runs * 4);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    std::vector<float> auxiliary(runs * 3);
    CHECK(mp::store_auxiliary(mp::column_major(auxiliary.data(), runs, 3))
              .apply_runs({values.data(), 4, runs, 3, 0, 0, false}));
    for (std::size_t i = 0; i < auxiliary.size(); ++i) {
        REQUIRE(auxiliary[i] == static_cast<float>(i % runs * 4 + i / runs));
    }
}

TEST_CASE("the largest magnitude does not depend on threads, and what is not finite is on top") {
    generator random(5);
    constexpr std::ptrdiff_t size = 100;
    matrix<float> a(size, size, orders[0], 0);
    matrix<float> b(size, size, orders[1], 0);
    matrix<mp::half> c(size, size, orders[0], 0);
    a.fill_random(random);
    b.fill_random(random);
    const auto amax_of = [&](int threads, float first) {
        mp::gemm(mp::cpu{threads}, 1.0F, a.view(), b.view(), 0.0F, c.view(), mp::amax_into(&first));
        return std::bit_cast<std::uint32_t>(first);
    };
    const std::uint32_t expected = amax_of(1, 0);
    std::vector<float> product(size * size);
    mp::gemm(mp::cpu{}, 1.0F, a.view(), b.view(), 0.0F, mp::row_major(product, size, size));
    CHECK(expected == std::bit_cast<std::uint32_t>(mp::amax(mp::cpu{}, product)));
    for (const int threads : {2, 3, 8}) CHECK(amax_of(threads, 0) == expected);
    CHECK(amax_of(3, 0x1p100F) == std::bit_cast<std::uint32_t>(0x1p100F));
    a.set(40, 50, static_cast<double>(infinity));
    CHECK(amax_of(3, 0) == std::bit_cast<std::uint32_t>(infinity));
    a.set(70, 5, static_cast<double>(not_a_number));
    for (const int threads : {1, 3}) CHECK(mp::isnan(std::bit_cast<float>(amax_of(threads, 0))));
    CHECK(mp::isnan(std::bit_cast<float>(amax_of(1, not_a_number))));
}

/// Values whose products with the scale are at midpoints of the format, beyond its ends, and around them.
template <class Number>
void check_quantization(generator& random, float scale) {
    std::vector<float> values = {0.0F, -0.0F, infinity, -infinity, not_a_number, 1e-40F, -1e-40F, 3e38F};
    const auto around = [&](double product) {
        const auto middle = static_cast<float>(product / static_cast<double>(scale));
        if (!(std::fabs(middle) < 1e37F)) return;
        for (const std::int32_t step : {-2, -1, 0, 1, 2}) {
            const auto bits = std::bit_cast<std::int32_t>(middle) + step;
            values.push_back(std::bit_cast<float>(bits & 0x7fff'ffff));
            values.push_back(-values.back());
        }
    };
    for (unsigned code = 0; code < 127; ++code) {
        const auto low = static_cast<double>(Number::from_bits(static_cast<std::uint8_t>(code)));
        const auto high = static_cast<double>(Number::from_bits(static_cast<std::uint8_t>(code + 1)));
        if (!std::isfinite(low)) break;
        around(low);
        around(std::isfinite(high) ? (low + high) / 2 : low * 1.125);
    }
    for (int i = 0; i < 1000; ++i)
        values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    std::vector<Number> expected(values.size());
    mp::quantize_with_scale(mp::cpu{}, values, expected, scale);
    std::vector<float> ended = values;
    const auto epilogue = mp::quantize_to<Number>(scale);
    epilogue.apply(ended.data(), static_cast<std::ptrdiff_t>(ended.size()), 0, 0, false);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const Number one_by_one(mp::quantize_to<Number>(&scale)(values[i], 0, 0));
        const Number in_vectors(ended[i]);
        if (mp::isnan(expected[i])) {
            wrong += mp::isnan(one_by_one) && mp::isnan(in_vectors) ? 0U : 1U;
        } else {
            wrong +=
                one_by_one.bits() == expected[i].bits() && in_vectors.bits() == expected[i].bits() ? 0U : 1U;
        }
    }
    CAPTURE(scale);
    CHECK(wrong == 0);
}

TEST_CASE("quantize_to has the bits of quantize_with_scale: one rounding, and saturation") {
    generator random(6);
    std::vector<float> scales = {1.0F, 0x1p-126F, 0x1p127F, 1e-40F, 448.0F / 3.0F, 0.1F};
    for (int i = 0; i < 60; ++i) {
        scales.push_back(
            std::bit_cast<float>(static_cast<std::uint32_t>(random() % 0x2000'0000U + 0x3000'0000U)));
    }
    for (const float scale : scales) {
        check_quantization<mp::float8_e4m3fn>(random, scale);
        check_quantization<mp::float8_e5m2>(random, scale);
        check_quantization<mp::float8_e4m3fnuz>(random, scale);
    }
}

TEST_CASE("a layer's result becomes an operand of 8 bits in one pass") {
    generator random(7);
    matrix<mp::bfloat16> x(50, 70, orders[0], 0);
    matrix<mp::bfloat16> w(70, 90, orders[1], 0);
    x.fill_random(random);
    w.fill_random(random);
    std::vector<float> bias(90);
    for (float& value : bias) value = static_cast<float>(reference::random_size(random, -99, 99)) / 3.0F;
    mp::amax_history history(4);
    history.record(37.5F);
    history.update({});
    std::vector<float> result(50 * 90);
    std::vector<mp::float8_e4m3fn> expected(50 * 90);
    const auto layer = mp::compose(mp::bias_per_column(bias), mp::silu_epilogue{});
    mp::gemm(mp::cpu{}, 1.0F, x.view(), w.view(), 0.0F, mp::row_major(result, 50, 90), layer);
    mp::quantize_with_scale(mp::cpu{}, result, expected, history.scale());
    for (const int threads : {1, 3}) {
        history.newest() = 0;
        std::vector<mp::float8_e4m3fn> codes(50 * 90);
        mp::gemm(mp::cpu{threads}, 1.0F, x.view(), w.view(), 0.0F, mp::row_major(codes, 50, 90),
                 mp::compose(layer, mp::compose(mp::amax_into(&history.newest()),
                                                mp::quantize_to<mp::float8_e4m3fn>(history.scale()))));
        CHECK(history.newest() == mp::amax(mp::cpu{}, result));
        for (std::size_t i = 0; i < codes.size(); ++i) REQUIRE(codes[i].bits() == expected[i].bits());
    }
}

TEST_CASE("groups of rows, scaled blocks, integers and the model of tensor cores have second outputs, too") {
    generator random(8);
    matrix<mp::bfloat16> a(40, 64, orders[0], 0);
    matrix<mp::bfloat16> b(64, 3 * 24, orders[0], 0);
    matrix<float> c(40, 24, orders[0], 0);
    matrix<float> auxiliary(40, 24, orders[1], 0);
    a.fill_random(random);
    b.fill_random(random);
    const auto product = [&](const auto& epilogue) {
        const std::vector<std::int32_t> offsets = {0, 17, 17, 40};
        mp::gemm_grouped_m(mp::cpu{}, 1.0F, a.view(), mp::matrix_batch{b.view().block(0, 0, 64, 24), 24},
                           offsets, 0.0F, c.view(), epilogue);
    };
    product(mp::identity_epilogue{});
    const std::vector<double> expected = c.values();
    float amax = 0;
    product(mp::compose(mp::store_auxiliary(auxiliary.view()),
                        mp::compose(mp::relu_epilogue{}, mp::amax_into(&amax))));
    CHECK(auxiliary.values() == expected);
    CHECK(static_cast<double>(amax) == *std::max_element(expected.begin(), expected.end()));

    // Integers, scaled blocks and the model: the same ends of tiles.
    const std::vector<std::int8_t> left(6 * 20, std::int8_t{3});
    const std::vector<std::int8_t> right(20 * 5, std::int8_t{-2});
    std::vector<float> before(30);
    const auto ends = [&](const auto& multiply) {
        std::fill(before.begin(), before.end(), 1.0F);
        amax = 0;
        std::vector<float> out(30, 1.0F);
        multiply(mp::row_major(out.data(), 6, 5),
                 mp::compose(mp::compose(mp::store_auxiliary(mp::row_major(before.data(), 6, 5)),
                                         mp::amax_into(&amax)),
                             mp::relu_epilogue{}));
        CHECK(before == std::vector<float>(30, -120.0F));
        CHECK(out == std::vector<float>(30, 0.0F));
        CHECK(amax == 120.0F);
    };
    ends([&](auto out, const auto& epilogue) {
        mp::gemm(mp::cpu{}, 1.0F, mp::row_major(left.data(), 6, 20), mp::row_major(right.data(), 20, 5), 0.0F,
                 out, epilogue);
    });
    ends([&](auto out, const auto& epilogue) {
        mp::gemm(mp::emulated<mp::arch::sm_80>{.threads = 2}, 1.0F, mp::row_major(left.data(), 6, 20),
                 mp::row_major(right.data(), 20, 5), 0.0F, out, epilogue);
    });
    const std::vector<mp::float8_e4m3fn> eights(6 * 20, mp::float8_e4m3fn(3));
    const std::vector<mp::float8_e4m3fn> others(20 * 5, mp::float8_e4m3fn(-1));
    const std::vector<float> scales(6, 2.0F);
    ends([&](auto out, const auto& epilogue) {
        mp::gemm_scaled(mp::cpu{}, 1.0F, mp::row_major(eights.data(), 6, 20),
                        {mp::row_major(scales.data(), 6, 1)}, mp::row_major(others.data(), 20, 5),
                        {mp::row_major(scales.data(), 1, 5)}, 0.0F, out,
                        mp::compose([](float x, std::ptrdiff_t, std::ptrdiff_t) { return x / 2; }, epilogue));
    });
}

TEST_CASE("outputs that do not fit are refused before anything is written") {
    const std::array<float, 6> a{};
    const std::array<float, 8> b{};
    std::array<float, 40> c;
    c.fill(7);
    std::array<float, 12> auxiliary;
    auxiliary.fill(8);
    const auto run = [&](const auto& epilogue) {
        mp::gemm(mp::cpu{}, 1.0F, mp::row_major(a.data(), 3, 2), mp::row_major(b.data(), 2, 4), 0.0F,
                 mp::row_major(c.data(), 3, 4), mp::compose(mp::relu_epilogue{}, epilogue));
    };
    CHECK_THROWS_WITH_AS(run(mp::store_auxiliary(mp::row_major(auxiliary.data(), 4, 3))),
                         "mp::gemm: auxiliary.rows is 4; it must equal c.rows, which is 3",
                         mp::argument_error);
    CHECK_THROWS_WITH_AS(run(mp::store_auxiliary(mp::row_major(auxiliary.data(), 3, 3))),
                         "mp::gemm: auxiliary.columns is 3; it must equal c.columns, which is 4",
                         mp::argument_error);
    CHECK_THROWS_AS(run(mp::store_auxiliary(mp::row_major(auxiliary.data(), 3, 4, 2))), mp::argument_error);
    CHECK_THROWS_WITH_AS(
        run(mp::store_auxiliary(mp::row_major(c.data() + 11, 3, 4))),
        "mp::gemm: c overlaps auxiliary; they must not share elements, because c is written while "
        "auxiliary is in use",
        mp::argument_error);
    CHECK_THROWS_WITH_AS(run(mp::amax_into(nullptr)), "mp::gemm: amax is null; it must point to a float",
                         mp::argument_error);
    for (const float scale : {0.0F, -1.0F, infinity, not_a_number}) {
        CHECK_THROWS_AS(run(mp::quantize_to<mp::float8_e4m3fn>(scale)), mp::argument_error);
    }
    CHECK_THROWS_WITH_AS(run(mp::quantize_to<mp::float8_e4m3fn>(0.0F)),
                         "mp::gemm: scale is 0; it must be finite and greater than 0", mp::argument_error);
    const float* const none = nullptr;
    CHECK_THROWS_WITH_AS(run(mp::quantize_to<mp::float8_e4m3fn>(none)),
                         "mp::gemm: scale is null; it must point to a float", mp::argument_error);
    CHECK(std::all_of(c.begin(), c.end(), [](float x) { return x == 7; }));
    CHECK(std::all_of(auxiliary.begin(), auxiliary.end(), [](float x) { return x == 8; }));
    run(mp::store_auxiliary(mp::row_major(c.data() + 12, 3, 4)));
    CHECK(c[12] == 0);
}

}  // namespace
