// SPDX-License-Identifier: MIT
// Mathematical functions are correctly rounded in every deterministic mode, judged by MPFR: all arguments of
// formats of 16 bits with precisions from 6 to 16, all pairs of formats of 8 bits, millions of pairs of half
// and bfloat16.
#include <doctest/doctest.h>
#include <cstdint>

#include "format/exhaustive/progress.hpp"
#include "format/mpfr/cases.hpp"
#include "oracle/random.hpp"

TEST_CASE_TEMPLATE("functions of all numbers of 16 bits are correctly rounded", Value, mp::half, mp::bfloat16,
                   mp::basic_float<mp::formats::p3109<16, 6>>, mp::basic_float<mp::formats::p3109<16, 13>>,
                   mp::basic_float<mp::formats::p3109<16, 16, mp::signedness::is_unsigned>>) {
    oracle::disagreements wrong;
    exhaustive::progress progress(256);
    for (std::uint64_t first = 0; first < 256; ++first) {
        math_cases::compare_all_unary<Value>(wrong, first, 256);
        progress.show(first + 1, Value::format::name);
    }
    progress.finish();
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("functions of all pairs of numbers of 8 bits are correctly rounded", Value,
                   mp::float8_e4m3fnuz, mp::float8_e3m4, mp::float6_e3m2fn,
                   mp::basic_float<mp::formats::p3109<8, 3>>) {
    oracle::disagreements wrong;
    for (std::uint64_t i = 0; i <= Value::layout::code_mask; ++i) {
        for (std::uint64_t j = 0; j <= Value::layout::code_mask; ++j) {
            math_cases::compare_pair<Value>(wrong, i, j);
        }
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("functions of millions of pairs are correctly rounded", Value, mp::half, mp::bfloat16) {
    oracle::disagreements wrong;
    oracle::random_bits random(302);
    exhaustive::progress progress(500);
    for (std::uint64_t n = 0; n < 500; ++n) {
        math_cases::compare_pairs<Value>(wrong, random, 10000);
        progress.show(n + 1, Value::format::name);
    }
    progress.finish();
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
