// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <tuple>
#include <utility>

#include "gemm/reference.hpp"

namespace {

using reference::format_of;
using reference::generator;
using reference::matrix;

constexpr auto by_row = mp::storage_order::row_major;
constexpr auto by_column = mp::storage_order::column_major;

using inputs = std::tuple<float, mp::half, mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2>;
using outputs = std::tuple<float, mp::half, mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2, double>;

template <class Types, class Function>
void for_each_type(Function f) {
    [&]<std::size_t... Index>(std::index_sequence<Index...>) {
        (f.template operator()<std::tuple_element_t<Index, Types>>(), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<Types>>{});
}

/// Calls f<A, B, C>() for every mix of element types.
template <class Function>
void for_each_mix(Function f) {
    for_each_type<inputs>([&]<class A>() {
        for_each_type<inputs>(
            [&]<class B>() { for_each_type<outputs>([&]<class C>() { f.template operator()<A, B, C>(); }); });
    });
}

mp::storage_order order_of_bit(int bits, int bit) {
    return (bits >> bit & 1) == 0 ? by_row : by_column;
}

TEST_CASE("every mix of types in every order gives the documented value rounded once") {
    const bool fused = reference::fuses<mp::detail::native_kernel>();
    generator random(1);
    for_each_mix([&]<class A, class B, class C>() {
        for (int bits = 0; bits < 8; ++bits) {
            const std::ptrdiff_t rows = reference::random_size(random, 1, 35);
            const std::ptrdiff_t columns = reference::random_size(random, 1, 50);
            const std::ptrdiff_t depth = reference::random_size(random, 1, 80);
            const float alpha = bits % 3 == 0 ? 1.0F : 0.3F;
            const float beta = bits % 4 < 2 ? 0.0F : -1.25F;
            matrix<A> a(rows, depth, order_of_bit(bits, 0), 1);
            matrix<B> b(depth, columns, order_of_bit(bits, 1), 2);
            matrix<C> c(rows, columns, order_of_bit(bits, 2), 3);
            a.fill_random(random);
            b.fill_random(random);
            c.fill_random(random);
            const std::vector<float> expected = reference::documented_product(
                a.values(), b.values(), c.values(), rows, columns, alpha, beta, fused);
            mp::gemm(mp::cpu{}, alpha, a.view(), b.view(), beta, c.view());
            const std::vector<double> actual = c.values();
            std::size_t different = 0;
            for (std::size_t i = 0; i < actual.size(); ++i) {
                const double value = reference::rounded(format_of<C>, static_cast<double>(expected[i]));
                different += reference::same_value(value, actual[i]) ? 0U : 1U;
            }
            CHECK(different == 0);
            CHECK(c.surroundings_untouched());
        }
    });
}

TEST_CASE("products of integers are exact until the one rounding to the type of C") {
    generator random(2);
    for_each_mix([&]<class A, class B, class C>() {
        matrix<A> a(37, 61, by_row, 0);
        matrix<B> b(61, 43, by_row, 0);
        matrix<C> c(37, 43, by_row, 0);
        a.fill_integers(random, 4);
        b.fill_integers(random, 7);
        c.fill_integers(random, 8);
        const std::vector<double> before = c.values();
        mp::gemm(mp::cpu{}, 2.0F, a.view(), b.view(), -3.0F, c.view());
        std::size_t different = 0;
        for (std::ptrdiff_t r = 0; r < 37; ++r) {
            for (std::ptrdiff_t j = 0; j < 43; ++j) {
                double exact = 0;
                for (std::ptrdiff_t k = 0; k < 61; ++k) exact += a.get(r, k) * b.get(k, j);
                exact = 2 * exact - 3 * before[static_cast<std::size_t>(r * 43 + j)];
                const double value = reference::rounded(format_of<C>, exact == 0 ? 0.0 : exact);
                different += value == c.get(r, j) || (std::isnan(value) && std::isnan(c.get(r, j))) ? 0U : 1U;
            }
        }
        CHECK(different == 0);
    });
}

template <class Value>
void check_every_code() {
    // A column of all codes times one: what comes out is the value that the format says.
    constexpr std::size_t count = std::size_t{1} << (8 * sizeof(Value));
    std::vector<Value> codes;
    for (std::size_t i = 0; i < count; ++i)
        codes.push_back(Value::from_bits(static_cast<typename Value::storage>(i)));
    const Value one = reference::number<Value>(1);
    const auto rows = static_cast<std::ptrdiff_t>(count);
    std::vector<float> by_lines(count);
    std::vector<float> by_runs(count);
    std::vector<Value> same(count);
    mp::gemm(mp::cpu{}, 1.0F, mp::row_major(codes.data(), rows, 1), mp::row_major(&one, 1, 1), 0.0F,
             mp::row_major(by_lines.data(), rows, 1));
    mp::gemm(mp::cpu{}, 1.0F, mp::row_major(&one, 1, 1), mp::row_major(codes.data(), 1, rows), 0.0F,
             mp::column_major(by_runs.data(), 1, rows));
    mp::gemm(mp::cpu{}, 1.0F, mp::row_major(&one, 1, 1), mp::row_major(codes.data(), 1, rows), 0.0F,
             mp::row_major(same.data(), 1, rows));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const double value = reference::value_of(codes[i]);
        const auto equal = [&](double x) { return x == value || (std::isnan(x) && std::isnan(value)); };
        wrong += equal(static_cast<double>(by_lines[i])) ? 0U : 1U;
        wrong += equal(static_cast<double>(by_runs[i])) ? 0U : 1U;
        wrong += equal(reference::value_of(same[i])) ? 0U : 1U;
    }
    CHECK(wrong == 0);
}

TEST_CASE(
    "every code of every input format is packed with its exact value, subnormals and specials included") {
    check_every_code<mp::half>();
    check_every_code<mp::bfloat16>();
    check_every_code<mp::float8_e4m3fn>();
    check_every_code<mp::float8_e5m2>();
}

TEST_CASE("overflow of C follows its format: infinity, or NaN where there is none") {
    const float factor = 300;
    const auto product = [&]<class C>(C c) {
        mp::gemm(mp::cpu{}, 1.0F, mp::row_major(&factor, 1, 1), mp::row_major(&factor, 1, 1), 0.0F,
                 mp::row_major(&c, 1, 1));
        return reference::value_of(c);
    };
    CHECK(product(mp::half{}) == std::numeric_limits<double>::infinity());
    CHECK(product(mp::float8_e5m2{}) == std::numeric_limits<double>::infinity());
    CHECK(std::isnan(product(mp::float8_e4m3fn{})));
    CHECK(product(mp::bfloat16{}) == 90112);
    CHECK(product(1.0F) == 90000);
    CHECK(product(1.0) == 90000);
}

}  // namespace
