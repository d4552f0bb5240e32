// SPDX-License-Identifier: MIT
// The report reads the library's own matrix views, and mp::gemm keeps the promise that the report checks.
#include <mp/frontends/check/gemm_error_report.hpp>
#include <mp/gemm.hpp>

#include <doctest/doctest.h>
#include <vector>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

template <class Value>
std::vector<Value> random_values(oracle::random_bits& random, std::ptrdiff_t count) {
    std::vector<Value> values;
    for (std::ptrdiff_t i = 0; i < count; ++i) {
        values.push_back(Value(static_cast<float>(static_cast<int>(random.below(4001)) - 2000) / 1000));
    }
    return values;
}

}  // namespace

TEST_CASE_TEMPLATE("products of the library are within their bound in every layout", Value, mp::half,
                   mp::bfloat16, mp::float8_e4m3fn, float) {
    oracle::random_bits random(111);
    const std::ptrdiff_t m = 17;
    const std::ptrdiff_t n = 33;
    const std::ptrdiff_t p = 129;
    const auto a_values = random_values<Value>(random, m * p);
    const auto b_values = random_values<Value>(random, p * n);
    const auto before = random_values<Value>(random, m * n);
    for (const bool a_by_rows : {true, false}) {
        for (const bool b_by_rows : {true, false}) {
            const auto a =
                a_by_rows ? mp::row_major(a_values.data(), m, p) : mp::column_major(a_values.data(), m, p);
            const auto b =
                b_by_rows ? mp::row_major(b_values.data(), p, n) : mp::column_major(b_values.data(), p, n);
            std::vector<float> product(static_cast<std::size_t>(m * n));
            const auto c = mp::row_major(product.data(), m, n);
            mp::gemm(mp::cpu{}, 0.5f, a, b, 0.0f, c);
            const auto plain = mp::gemm_error_report(a, b, c, {.alpha = 0.5});
            CHECK_MESSAGE(plain.within_bound(), to_string(plain));

            std::vector<Value> result = before;
            const auto d = mp::column_major(result.data(), m, n);
            mp::gemm(mp::cpu{}, -1.0f, a, b, 2.0f, d);
            const auto accumulated = mp::gemm_error_report(a, b, d, {.alpha = -1, .beta = 2},
                                                           mp::column_major(before.data(), m, n));
            CHECK_MESSAGE(accumulated.within_bound(), to_string(accumulated));
            CHECK(accumulated.k == p);
        }
    }
}
