// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <initializer_list>
#include <span>

#include "linalg/gemm/reference.hpp"

namespace {

using reference::generator;
using reference::matrix;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

static_assert(mp::gemm_epilogue<mp::identity_epilogue>);
static_assert(mp::gemm_epilogue<mp::relu_epilogue>);
static_assert(mp::gemm_epilogue<mp::gelu_epilogue>);
static_assert(mp::gemm_epilogue<mp::gelu_tanh_epilogue>);
static_assert(mp::gemm_epilogue<mp::silu_epilogue>);
static_assert(!mp::gemm_epilogue<int>);
static_assert(mp::identity_epilogue{}(2.5F, 1, 2) == 2.5F);
static_assert(mp::relu_epilogue{}(-2.5F, 1, 2) == 0.0F);

TEST_CASE("relu clears negative numbers and minus zero, and nothing else") {
    const mp::relu_epilogue relu;
    for (const float x : {0.0F, FLT_TRUE_MIN, FLT_MIN, 1.0F, FLT_MAX, infinity}) {
        CHECK(std::bit_cast<std::uint32_t>(relu(x, 0, 0)) == std::bit_cast<std::uint32_t>(x));
        CHECK(std::bit_cast<std::uint32_t>(relu(-x, 0, 0)) == 0);
    }
    for (const float x : {not_a_number, -not_a_number, std::bit_cast<float>(0xFF80'0001U)}) {
        CHECK(std::bit_cast<std::uint32_t>(relu(x, 0, 0)) == std::bit_cast<std::uint32_t>(x));
    }
}

TEST_CASE("gelu and silu end a product as their definitions say, and keep NaN") {
    const auto close = [](float actual, double expected) {  // 5 ulp are at most 5 2^-23
        return std::abs(static_cast<double>(actual) - expected) <=
               5 * 0x1p-23 * std::abs(expected) + 0x1p-149;
    };
    for (float x = -14; x < 20; x += 0.37F) {
        const auto wide = static_cast<double>(x);
        CHECK(close(mp::gelu_epilogue{}(x, 0, 0), wide / 2 * std::erfc(-wide / std::sqrt(2.0))));
        CHECK(close(mp::silu_epilogue{}(x, 0, 0), wide / (1 + std::exp(-wide))));
        // (1 + tanh(z)) / 2 without its cancellation
        const double z2 = 2 * 0.7978845608028654 * (wide + 0.044715 * wide * wide * wide);
        CHECK(close(mp::gelu_tanh_epilogue{}(x, 0, 0), wide / (1 + std::exp(-z2))));
    }
    const auto ends = [](const auto& epilogue) {
        CHECK(epilogue(infinity, 0, 0) == infinity);
        CHECK(std::bit_cast<std::uint32_t>(epilogue(-infinity, 0, 0)) == 0x8000'0000U);
        CHECK(mp::isnan(epilogue(not_a_number, 0, 0)));
        CHECK(mp::isnan(epilogue(-not_a_number, 0, 0)));
    };
    ends(mp::gelu_epilogue{});
    ends(mp::gelu_tanh_epilogue{});
    ends(mp::silu_epilogue{});
}

/// Runs a 3 x 4 product of zeros in both orders of C, so that C shows what the epilogue makes of zero.
template <class Epilogue>
std::array<std::vector<double>, 2> ended_zeros(const Epilogue& epilogue) {
    std::array<std::vector<double>, 2> result;
    for (const auto order : {mp::storage_order::row_major, mp::storage_order::column_major}) {
        matrix<float> a(3, 2, mp::storage_order::row_major, 0);
        matrix<float> b(2, 4, mp::storage_order::row_major, 0);
        matrix<float> c(3, 4, order, 1);
        mp::gemm(mp::cpu{}, 1.0F, a.view(), b.view(), 0.0F, c.view(), epilogue);
        result[order == mp::storage_order::row_major ? 0 : 1] = c.values();
    }
    return result;
}

TEST_CASE("a bias per column or per row reaches the right elements in both orders of C") {
    const std::vector<mp::half> columns{mp::half(1), mp::half(2), mp::half(3), mp::half(4)};
    const std::array<float, 3> rows{10, 20, 30};
    for (const auto& values : ended_zeros(mp::bias_per_column(columns))) {
        CHECK(values == std::vector<double>{1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4});
    }
    for (const auto& values : ended_zeros(mp::bias_per_row(std::span<const float>(rows)))) {
        CHECK(values == std::vector<double>{10, 10, 10, 10, 20, 20, 20, 20, 30, 30, 30, 30});
    }
    for (const auto& values :
         ended_zeros(mp::compose(mp::bias_per_column(columns), mp::bias_per_row(rows)))) {
        CHECK(values == std::vector<double>{11, 12, 13, 14, 21, 22, 23, 24, 31, 32, 33, 34});
    }
}

TEST_CASE("a chain applies its parts in order, in float") {
    const std::vector<float> bias{-1, 0, 1, 2};
    for (const auto& values : ended_zeros(mp::compose(mp::bias_per_column(bias), mp::relu_epilogue{}))) {
        CHECK(values == std::vector<double>{0, 0, 1, 2, 0, 0, 1, 2, 0, 0, 1, 2});
    }
    for (const auto& values : ended_zeros(mp::compose(mp::relu_epilogue{}, mp::bias_per_column(bias)))) {
        CHECK(values == std::vector<double>{-1, 0, 1, 2, -1, 0, 1, 2, -1, 0, 1, 2});
    }
    // 70000 is beyond half, but only the value after the chain is rounded to half.
    const mp::half a(1);
    mp::half c(0);
    const auto up = [](float x, std::ptrdiff_t, std::ptrdiff_t) { return x + 70000.0F; };
    const auto down = [](float x, std::ptrdiff_t, std::ptrdiff_t) { return x - 69999.0F; };
    mp::gemm(mp::cpu{}, 1.0F, mp::row_major(&a, 1, 1), mp::row_major(&a, 1, 1), 0.0F, mp::row_major(&c, 1, 1),
             mp::compose(up, down));
    CHECK(static_cast<float>(c) == 2.0F);
}

TEST_CASE(
    "the epilogue sees every element once, with its row, its column and the value after alpha and beta") {
    generator random(1);
    for (const auto order : {mp::storage_order::row_major, mp::storage_order::column_major}) {
        for (const int threads : {1, 3}) {
            for (const std::ptrdiff_t k : {0, 300}) {
                matrix<float> a(130, k, mp::storage_order::row_major, 0);
                matrix<float> b(k, 140, mp::storage_order::column_major, 0);
                matrix<float> c(130, 140, order, 2);
                a.fill_integers(random, 3);
                b.fill_integers(random, 3);
                c.fill_integers(random, 100);
                const std::vector<double> before = c.values();
                const std::vector<float> expected = reference::documented_product(
                    a.values(), b.values(), before, 130, 140, 2.0F, 0.5F, false);
                std::vector<std::atomic<int>> calls(std::size_t{130} * 140);
                std::atomic<int> wrong = 0;
                const auto epilogue = [&](float value, std::ptrdiff_t row, std::ptrdiff_t column) {
                    if (row < 0 || row >= 130 || column < 0 || column >= 140) {
                        ++wrong;
                        return 0.0F;
                    }
                    const auto place = static_cast<std::size_t>(row * 140 + column);
                    ++calls[place];
                    if (value != expected[place]) ++wrong;
                    return static_cast<float>(place);
                };
                mp::gemm(mp::cpu{threads}, 2.0F, a.view(), b.view(), 0.5F, c.view(), epilogue);
                CHECK(wrong == 0);
                CHECK(std::all_of(calls.begin(), calls.end(), [](const auto& count) { return count == 1; }));
                const std::vector<double> after = c.values();
                for (std::size_t i = 0; i < after.size(); ++i) REQUIRE(after[i] == static_cast<double>(i));
            }
        }
    }
}

TEST_CASE("an epilogue that does not fit the shape of C is refused before anything is written") {
    const std::vector<float> four(4);
    const std::vector<float> three(3);
    const std::vector<float> none;
    std::array<float, 6> a{};
    std::array<float, 8> b{};
    std::array<float, 12> c;
    c.fill(7);
    const auto run = [&](const auto& epilogue) {
        mp::gemm(mp::cpu{}, 1.0F, mp::row_major(a.data(), 3, 2), mp::row_major(b.data(), 2, 4), 0.0F,
                 mp::row_major(c.data(), 3, 4), epilogue);
    };
    CHECK_THROWS_WITH_AS(run(mp::bias_per_column(three)),
                         "mp::gemm: bias.size() is 3; it must equal c.columns, which is 4",
                         mp::argument_error);
    CHECK_THROWS_WITH_AS(run(mp::bias_per_row(four)),
                         "mp::gemm: bias.size() is 4; it must equal c.rows, which is 3", mp::argument_error);
    CHECK_THROWS_AS(run(mp::bias_per_row(none)), mp::argument_error);
    CHECK_THROWS_AS(run(mp::compose(mp::relu_epilogue{}, mp::bias_per_row(four))), mp::argument_error);
    CHECK_THROWS_AS(
        run(mp::compose(mp::compose(mp::bias_per_row(four), mp::relu_epilogue{}), mp::relu_epilogue{})),
        mp::argument_error);
    CHECK(std::all_of(c.begin(), c.end(), [](float x) { return x == 7; }));
    run(mp::compose(mp::bias_per_row(three), mp::bias_per_column(four)));
    CHECK(c[0] == 0);
}

TEST_CASE("scales multiply rows or columns after the product, and a residual is added to it") {
    const std::vector<std::int8_t> a = {1, 2, 3, -4, 5, -6};
    const std::vector<std::int8_t> b = {7, -8, 9, 10, -11, 12};
    const std::vector<float> column_scales = {0.5F, 0.25F};
    const std::vector<mp::half> row_scales = {mp::half(2), mp::half(-1)};
    std::vector<mp::bfloat16> residual = {mp::bfloat16(1), mp::bfloat16(2), mp::bfloat16(3), mp::bfloat16(4)};
    std::vector<float> c(4);
    const auto view = mp::row_major(c.data(), 2, 2);
    mp::gemm(mp::cpu{}, 1.0F, mp::row_major(a.data(), 2, 3), mp::row_major(b.data(), 3, 2), 0.0F, view,
             mp::compose(mp::scale_per_column(column_scales),
                         mp::compose(mp::scale_per_row(row_scales),
                                     mp::add_residual(mp::row_major(residual.data(), 2, 2)))));
    // [1 2 3; -4 5 -6] [7 -8; 9 10; -11 12] = [-8 48; 83 10].
    CHECK(c == std::vector<float>{-8 + 1, 24 + 2, -41.5F + 3, -2.5F + 4});
    const std::vector<float> wrong(3);
    CHECK_THROWS_WITH_AS(mp::gemm(mp::cpu{}, 1.0F, mp::row_major(a.data(), 2, 3),
                                  mp::row_major(b.data(), 3, 2), 0.0F, view, mp::scale_per_column(wrong)),
                         "mp::gemm: scale.size() is 3; it must equal c.columns, which is 2",
                         mp::argument_error);
    CHECK_THROWS_WITH_AS(
        mp::gemm(mp::cpu{}, 1.0F, mp::row_major(a.data(), 2, 3), mp::row_major(b.data(), 3, 2), 0.0F, view,
                 mp::add_residual(mp::row_major(residual.data(), 1, 2))),
        "mp::gemm: residual.rows is 1; it must equal c.rows, which is 2", mp::argument_error);
}

}  // namespace
