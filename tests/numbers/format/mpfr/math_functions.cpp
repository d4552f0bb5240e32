// SPDX-License-Identifier: MIT
// Mathematical functions of narrow formats are correctly rounded in every deterministic mode, and raise the
// right flags, judged by MPFR.
#include <doctest/doctest.h>
#include <cstdint>
#include <tuple>

#include "numbers/format/mpfr/cases.hpp"

TEST_CASE_TEMPLATE_DEFINE("functions of every number of up to 8 bits are correctly rounded", Value,
                          every_small_number) {
    oracle::disagreements wrong;
    math_cases::compare_all_unary<Value>(wrong, 0, 1);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
TEST_CASE_TEMPLATE_APPLY(
    every_small_number,
    oracle::joined<oracle::small_named_formats,
                   std::tuple<mp::p3109<8, 3>, mp::p3109<8, 5, mp::signedness::is_unsigned>>>);

TEST_CASE_TEMPLATE("functions of two numbers of up to 8 bits are correctly rounded for all pairs", Value,
                   mp::float8_e4m3fn, mp::float8_e5m2, mp::float8_e8m0fnu) {
    oracle::disagreements wrong;
    for (std::uint64_t i = 0; i < 256; ++i) {
        for (std::uint64_t j = 0; j < 256; ++j) math_cases::compare_pair<Value>(wrong, i, j);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
