// SPDX-License-Identifier: MIT
#include <mp/frontends/check/gemm_error_report.hpp>

#include <doctest/doctest.h>
#include <limits>
#include <string>
#include <vector>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

namespace bmp = boost::multiprecision;

/// 2^exponent; not a shifted 1, about which g++ 12 warns from inside Boost.
bmp::cpp_int power_of_two(int exponent) {
    return pow(bmp::cpp_int(2), static_cast<unsigned>(exponent));
}

template <class Value>
struct matrix {
    std::ptrdiff_t rows = 0;
    std::ptrdiff_t columns = 0;
    std::vector<Value> elements = std::vector<Value>(static_cast<std::size_t>(rows * columns));

    Value& operator()(std::ptrdiff_t r, std::ptrdiff_t c) {
        return elements[static_cast<std::size_t>(r * columns + c)];
    }
    const Value& operator()(std::ptrdiff_t r, std::ptrdiff_t c) const {
        return elements[static_cast<std::size_t>(r * columns + c)];
    }
};

template <class Value>
matrix<Value> random_matrix(oracle::random_bits& random, std::ptrdiff_t rows, std::ptrdiff_t columns) {
    matrix<Value> m{rows, columns};
    for (Value& x : m.elements)
        x = Value(static_cast<float>(static_cast<int>(random.below(4001)) - 2000) / 1000);
    return m;
}

/// A product summed in `Accumulator`, term after term.
template <class Accumulator, class C, class A, class B>
matrix<C> multiply(const matrix<A>& a, const matrix<B>& b) {
    matrix<C> c{a.rows, b.columns};
    for (std::ptrdiff_t i = 0; i < a.rows; ++i) {
        for (std::ptrdiff_t j = 0; j < b.columns; ++j) {
            Accumulator sum{};
            for (std::ptrdiff_t p = 0; p < a.columns; ++p) {
                sum = Accumulator(sum + Accumulator(a(i, p)) * Accumulator(b(p, j)));
            }
            c(i, j) = C(sum);
        }
    }
    return c;
}

}  // namespace

TEST_CASE("an exact dot product is exact where floating point loses everything") {
    const std::vector<float> a = {0x1p100f, 1.0f, -0x1p100f, 0x1p-149f};
    const std::vector<float> b = {0x1p27f, 3.0f, 0x1p27f, 0x1p-149f};
    const bmp::cpp_rational tiny(1, power_of_two(298));
    CHECK(mp::exact_dot(a, b) == 3 + tiny);

    const std::vector<mp::bfloat16> x = {mp::bfloat16(-3.0f), mp::bfloat16(0.5f)};
    const std::vector<mp::half> y = {mp::half(7.0f), mp::half(0.25f)};
    const std::vector<float> least = {0x1p-149f};
    CHECK(mp::exact_dot(least, least) == tiny);
    CHECK(mp::exact_dot(x, y) == bmp::cpp_rational(-167, 8));
    CHECK(mp::exact_dot(std::vector<double>{}, std::vector<double>{}) == 0);
    const std::vector<double> big(3, std::numeric_limits<double>::max());
    const bmp::cpp_rational max = mp::to_exact<bmp::cpp_rational>(big[0]);
    CHECK(mp::exact_dot(big, big) == 3 * max * max);
    const std::vector<double> small(3, -0x1p-1074);
    CHECK(mp::exact_dot(big, small) == -3 * numerator(max) * bmp::cpp_rational(1, power_of_two(1074)));

    CHECK_THROWS_AS(static_cast<void>(mp::exact_dot(a, std::vector<float>{1.0f})), mp::argument_error);
    const std::vector<float> infinite(4, std::numeric_limits<float>::infinity());
    CHECK_THROWS_WITH_AS(static_cast<void>(mp::exact_dot(a, infinite)),
                         "mp::exact_dot: the sum is 'NaN'; it must be finite", mp::argument_error);
}

TEST_CASE_TEMPLATE("an exact dot product equals the sum of Boost rationals", Value, mp::half, mp::bfloat16,
                   mp::float8_e4m3fn, mp::float8_e5m2, float, double) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::random_bits random(5);
    for (int repeat = 0; repeat < 20; ++repeat) {
        std::vector<Value> a;
        std::vector<Value> b;
        bmp::cpp_rational expected = 0;
        while (a.size() < 30) {
            const std::uint64_t x = weighted_code(random, f);
            const std::uint64_t y = weighted_partner(random, f, x);
            if (!is_finite(f, x) || !is_finite(f, y)) continue;
            a.push_back(oracle::value_of<Value>(x));
            b.push_back(oracle::value_of<Value>(y));
            expected += mp::to_exact<bmp::cpp_rational>(a.back()) * mp::to_exact<bmp::cpp_rational>(b.back());
        }
        REQUIRE(mp::exact_dot(a, b) == expected);
    }
}

TEST_CASE_TEMPLATE("a product summed in float is within its bound, whatever the formats", Value, mp::half,
                   mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2, float) {
    oracle::random_bits random(6);
    const auto a = random_matrix<Value>(random, 13, 97);
    const auto b = random_matrix<Value>(random, 97, 11);
    const auto to_float = mp::gemm_error_report(a, b, multiply<float, float>(a, b));
    CHECK(to_float.within_bound());
    CHECK(to_float.max_bound_ratio <= 1);
    CHECK(to_float.k == 97);
    CHECK(to_float.elements.count == 143);
    const auto to_value = mp::gemm_error_report(a, b, multiply<float, Value>(a, b));
    CHECK(to_value.within_bound());
    CHECK(to_value.elements.max_ulp < (sizeof(Value) == 4 ? 1e4 : 0.6));
}

TEST_CASE("a product summed in half is found out, and so is a single wrong element") {
    oracle::random_bits random(7);
    const auto a = random_matrix<mp::half>(random, 16, 200);
    const auto b = random_matrix<mp::half>(random, 200, 16);
    CHECK(!mp::gemm_error_report(a, b, multiply<mp::half, mp::half>(a, b)).within_bound());

    auto c = multiply<float, mp::half>(a, b);
    c(3, 5) = mp::half::from_bits(static_cast<std::uint16_t>(c(3, 5).bits() + 2));
    const auto report = mp::gemm_error_report(a, b, c);
    CHECK(report.beyond_bound == 1);
    CHECK(report.worst_row == 3);
    CHECK(report.worst_column == 5);
    CHECK(report.elements.worst_index == 3 * 16 + 5);
    const std::string text = to_string(report);
    CHECK(text.find("16 x 16 product, 200 terms a sum; 256 values of half") == 0);
    CHECK(text.find("at (3, 5); 1 beyond") != std::string::npos);
}

TEST_CASE("alpha, beta and the initial matrix take part") {
    oracle::random_bits random(8);
    const auto a = random_matrix<mp::half>(random, 5, 6);
    const auto b = random_matrix<mp::half>(random, 6, 7);
    const auto before = random_matrix<float>(random, 5, 7);
    auto c = multiply<float, float>(a, b);
    for (std::ptrdiff_t r = 0; r < 5; ++r) {
        for (std::ptrdiff_t p = 0; p < 7; ++p) c(r, p) = 0.75f * c(r, p) + -1.5f * before(r, p);
    }
    const mp::gemm_check scaled{.alpha = 0.75, .beta = -1.5};
    CHECK(mp::gemm_error_report(a, b, c, scaled, before).within_bound());
    CHECK(!mp::gemm_error_report(a, b, c).within_bound());
    CHECK(!mp::gemm_error_report(a, b, c, {.alpha = 0.75}).within_bound());

    // With alpha = 0 the factors may hold anything, with beta = 0 the initial matrix.
    auto infinite = a;
    for (mp::half& x : infinite.elements) x = std::numeric_limits<mp::half>::infinity();
    CHECK(mp::gemm_error_report(infinite, b, matrix<float>{5, 7}, {.alpha = 0}).within_bound());
    CHECK(!mp::gemm_error_report(infinite, b, matrix<float>{5, 7}).within_bound());
    auto nan = before;
    for (float& x : nan.elements) x = std::numeric_limits<float>::quiet_NaN();
    CHECK(mp::gemm_error_report(a, b, multiply<float, float>(a, b), {}, nan).within_bound());
    CHECK(!mp::gemm_error_report(a, b, c, scaled, nan).within_bound());
}

TEST_CASE("strided descriptions read transposed and padded matrices") {
    const std::vector<mp::half> storage = {mp::half(1.0f), mp::half(2.0f), mp::half(99.0f),
                                           mp::half(3.0f), mp::half(4.0f), mp::half(99.0f)};
    const mp::strided_matrix<mp::half> rows{storage.data(), 2, 2, 3, 1};
    const mp::strided_matrix<mp::half> transposed{storage.data(), 2, 2, 1, 3};
    const std::vector<float> product = {5.0f, 11.0f, 11.0f, 25.0f};
    const mp::strided_matrix<float> c{product.data(), 2, 2, 2, 1};
    const auto report = mp::gemm_error_report(rows, transposed, c);
    CHECK(report.elements.exact == 4);
    CHECK(report.max_bound_ratio == 0);
}

TEST_CASE("infinities and NaN in a product are judged") {
    const float infinity = std::numeric_limits<float>::infinity();
    matrix<float> a{1, 2, {infinity, 1.0f}};
    matrix<float> b{2, 1, {1.0f, 1.0f}};
    CHECK(mp::gemm_error_report(a, b, matrix<float>{1, 1, {infinity}}).within_bound());
    CHECK(!mp::gemm_error_report(a, b, matrix<float>{1, 1, {1.0f}}).within_bound());
    // Finite, but too large for half: infinity is the right answer, NaN and a small number are not.
    a = {1, 2, {300.0f, 1.0f}};
    b = {2, 1, {300.0f, 1.0f}};
    CHECK(mp::gemm_error_report(a, b, matrix<mp::half>{1, 1, {mp::half(infinity)}}).within_bound());
    CHECK(!mp::gemm_error_report(a, b, matrix<mp::half>{1, 1, {mp::half(1.0f)}}).within_bound());
    CHECK(!mp::gemm_error_report(a, b, matrix<mp::half>{1, 1, {mp::half(-infinity)}}).within_bound());
    CHECK(!mp::gemm_error_report(a, b, matrix<mp::half>{1, 1, {std::numeric_limits<mp::half>::quiet_NaN()}})
               .within_bound());
}

TEST_CASE("shapes that do not fit are named") {
    const matrix<mp::half> a{2, 3};
    const matrix<mp::half> b{4, 5};
    const matrix<float> c{2, 5};
    CHECK_THROWS_WITH_AS(static_cast<void>(mp::gemm_error_report(a, b, c)),
                         "mp::gemm_error_report: b.rows is 4; it must equal a.columns, which is 3",
                         mp::argument_error);
    CHECK_THROWS_WITH_AS(static_cast<void>(mp::gemm_error_report(a, matrix<mp::half>{3, 4}, c)),
                         "mp::gemm_error_report: computed.columns is 5; it must equal b.columns, which is 4",
                         mp::argument_error);
    CHECK_THROWS_AS(static_cast<void>(mp::gemm_error_report(a, matrix<mp::half>{3, 5}, c, {.beta = 1})),
                    mp::argument_error);
}
