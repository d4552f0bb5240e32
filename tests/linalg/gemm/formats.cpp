// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <vector>

#include "linalg/gemm/reference.hpp"

namespace {

using reference::format_of;
using reference::generator;
using reference::matrix;

constexpr auto by_row = mp::storage_order::row_major;
constexpr auto by_column = mp::storage_order::column_major;

using inputs = std::tuple<float, mp::half, mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2>;
using outputs = std::tuple<float, mp::half, mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2, double>;

using any_matrix = reference::any_matrix;
using made_matrix = std::unique_ptr<any_matrix>;

template <class Value>
made_matrix make_matrix(std::ptrdiff_t rows, std::ptrdiff_t columns, mp::storage_order order,
                        std::ptrdiff_t padding) {
    return std::make_unique<matrix<Value>>(rows, columns, order, padding);
}

/// One mix of element types, so that the tests below are compiled once and not 150 times.
struct mix {
    decltype(&make_matrix<float>) make_a;
    decltype(&make_matrix<float>) make_b;
    decltype(&make_matrix<float>) make_c;
    reference::format c_format;
    void (*multiply)(mp::cpu exec, float alpha, any_matrix& a, any_matrix& b, float beta, any_matrix& c);
    bool uses_dot_products;  ///< where the processor has them, and they are fastest
};

/// Types whose numbers are all normal numbers of bfloat16.
template <class Value>
constexpr bool in_bfloat16 = !std::is_same_v<Value, float> && !std::is_same_v<Value, mp::half>;

template <class A, class B, class C>
mix make_mix() {
    return {&make_matrix<A>,
            &make_matrix<B>,
            &make_matrix<C>,
            format_of<C>,
            [](mp::cpu exec, float alpha, any_matrix& a, any_matrix& b, float beta, any_matrix& c) {
                mp::gemm(exec, alpha, dynamic_cast<matrix<A>&>(a).view(), dynamic_cast<matrix<B>&>(b).view(),
                         beta, dynamic_cast<matrix<C>&>(c).view());
            },
            in_bfloat16<A> && in_bfloat16<B>};
}

std::vector<mix> all_mixes() {
    std::vector<mix> result;
    const auto for_each_type = []<class... Types>(std::tuple<Types...>* /*list*/, auto f) {
        (f(static_cast<Types*>(nullptr)), ...);
    };
    for_each_type(static_cast<inputs*>(nullptr), [&]<class A>(A*) {
        for_each_type(static_cast<inputs*>(nullptr), [&]<class B>(B*) {
            for_each_type(static_cast<outputs*>(nullptr),
                          [&]<class C>(C*) { result.push_back(make_mix<A, B, C>()); });
        });
    });
    return result;
}

mp::storage_order order_of_bit(int bits, int bit) {
    return (bits >> bit & 1) == 0 ? by_row : by_column;
}

TEST_CASE("every mix of types in every order gives the documented value rounded once") {
    generator random(1);
    const std::vector<mix> mixes = all_mixes();
    REQUIRE(mixes.size() == 150);
    const std::vector<mp::cpu> executors = reference::executors();
    for (const mix& types : mixes) {
        // In turn, since all of them with all types would take minutes.
        for (std::size_t turn = 0; turn < 2 * executors.size(); ++turn) {
            const int bits = static_cast<int>(random() % 8);
            mp::cpu exec = executors[turn % executors.size()];
            if (types.uses_dot_products) exec.products = mp::accumulation::ordered;
            const bool fused = reference::fuses(exec);
            const std::ptrdiff_t rows = reference::random_size(random, 1, 35);
            const std::ptrdiff_t columns = reference::random_size(random, 1, 50);
            const std::ptrdiff_t k = reference::random_size(random, 1, 80);
            const float alpha = bits % 3 == 0 ? 1.0F : 0.3F;
            const float beta = bits % 4 < 2 ? 0.0F : -1.25F;
            const made_matrix a = types.make_a(rows, k, order_of_bit(bits, 0), 1);
            const made_matrix b = types.make_b(k, columns, order_of_bit(bits, 1), 2);
            const made_matrix c = types.make_c(rows, columns, order_of_bit(bits, 2), 3);
            a->fill_random(random);
            b->fill_random(random);
            c->fill_random(random);
            const std::vector<float> expected = reference::documented_product(
                a->values(), b->values(), c->values(), rows, columns, alpha, beta, fused);
            types.multiply(exec, alpha, *a, *b, beta, *c);
            const std::vector<double> actual = c->values();
            std::size_t different = 0;
            for (std::size_t i = 0; i < actual.size(); ++i) {
                const double value = reference::rounded(types.c_format, static_cast<double>(expected[i]));
                different += reference::same_value(value, actual[i]) ? 0U : 1U;
            }
            CHECK(different == 0);
            CHECK(c->surroundings_untouched());
        }
    }
}

TEST_CASE("products of integers are exact until the one rounding to the type of C") {
    generator random(2);
    const std::vector<mp::cpu> executors = reference::executors();
    std::size_t turn = 0;
    for (const mix& types : all_mixes()) {
        const mp::cpu exec = executors[turn++ % executors.size()];
        const made_matrix a = types.make_a(37, 61, by_row, 0);
        const made_matrix b = types.make_b(61, 43, by_row, 0);
        const made_matrix c = types.make_c(37, 43, by_row, 0);
        a->fill_integers(random, 4);
        b->fill_integers(random, 7);
        c->fill_integers(random, 8);
        const std::vector<double> before = c->values();
        types.multiply(exec, 2.0F, *a, *b, -3.0F, *c);
        std::size_t different = 0;
        for (std::ptrdiff_t r = 0; r < 37; ++r) {
            for (std::ptrdiff_t j = 0; j < 43; ++j) {
                double exact = 0;
                for (std::ptrdiff_t p = 0; p < 61; ++p) exact += a->get(r, p) * b->get(p, j);
                exact = 2 * exact - 3 * before[static_cast<std::size_t>(r * 43 + j)];
                const double value = reference::rounded(types.c_format, exact);
                const bool equal = value == c->get(r, j) || (std::isnan(value) && std::isnan(c->get(r, j)));
                different += equal ? 0U : 1U;
            }
        }
        CHECK(different == 0);
    }
}

template <class Value>
void check_every_code(mp::cpu exec) {
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
    mp::gemm(exec, 1.0F, mp::row_major(codes.data(), rows, 1), mp::row_major(&one, 1, 1), 0.0F,
             mp::row_major(by_lines.data(), rows, 1));
    mp::gemm(exec, 1.0F, mp::row_major(&one, 1, 1), mp::row_major(codes.data(), 1, rows), 0.0F,
             mp::column_major(by_runs.data(), 1, rows));
    mp::gemm(exec, 1.0F, mp::row_major(&one, 1, 1), mp::row_major(codes.data(), 1, rows), 0.0F,
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
    for (mp::cpu exec : reference::executors()) {
        check_every_code<mp::half>(exec);
        check_every_code<mp::float8_e4m3fn>(exec);
        check_every_code<mp::float8_e5m2>(exec);
        exec.products = mp::accumulation::ordered;  // dot products take subnormal bfloat16 for zero
        check_every_code<mp::bfloat16>(exec);
    }
}

TEST_CASE("overflow of C follows its format: infinity, or NaN where there is none") {
    const float operand = 300;
    const auto product = [&]<class C>(C c) {
        mp::gemm(mp::cpu{}, 1.0F, mp::row_major(&operand, 1, 1), mp::row_major(&operand, 1, 1), 0.0F,
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
