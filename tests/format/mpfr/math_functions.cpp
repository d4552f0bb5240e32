// SPDX-License-Identifier: MIT
// Mathematical functions of narrow formats are correctly rounded in every deterministic mode, and raise the
// right flags, judged by MPFR.
#include <doctest/doctest.h>
#include <cstdint>

#include "format/mpfr/cases.hpp"

TEST_CASE_TEMPLATE("functions of every number of up to 8 bits are correctly rounded", Value,
                   mp::float8_e4m3fn, mp::float8_e5m2, mp::float8_e4m3, mp::float8_e3m4, mp::float8_e4m3fnuz,
                   mp::float8_e5m2fnuz, mp::float8_e4m3b11fnuz, mp::float8_e8m0fnu, mp::float6_e2m3fn,
                   mp::float6_e3m2fn, mp::float4_e2m1fn, mp::basic_float<mp::formats::p3109<8, 3>>,
                   mp::basic_float<mp::formats::p3109<8, 5, mp::signedness::is_unsigned>>) {
    oracle::disagreements wrong;
    math_cases::compare_all_unary<Value>(wrong, 0, 1);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("functions of two numbers of up to 8 bits are correctly rounded for all pairs", Value,
                   mp::float8_e4m3fn, mp::float8_e5m2, mp::float8_e8m0fnu) {
    oracle::disagreements wrong;
    for (std::uint64_t i = 0; i < 256; ++i) {
        for (std::uint64_t j = 0; j < 256; ++j) math_cases::compare_pair<Value>(wrong, i, j);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
