// SPDX-License-Identifier: MIT
// Mathematical functions of formats of 16 bits are correctly rounded in every deterministic mode, and raise
// the right flags, judged by MPFR: all arguments of half and bfloat16, samples of tfloat32, samples of pairs.
// exhaustive/math_functions.cpp has more formats and many more pairs.
#include <doctest/doctest.h>
#include <cstdint>

#include "numbers/format/mpfr/cases.hpp"
#include "oracle/random.hpp"

TEST_CASE_TEMPLATE("functions of half, bfloat16 and tfloat32 are correctly rounded", Value, mp::half,
                   mp::bfloat16, mp::tfloat32) {
    oracle::disagreements wrong;
    math_cases::compare_all_unary<Value>(wrong, 0, Value::layout::width > 16 ? 101 : 1);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("functions of two numbers are correctly rounded", Value, mp::half, mp::bfloat16) {
    oracle::disagreements wrong;
    oracle::random_bits random(301);
    math_cases::compare_pairs<Value>(wrong, random, 100000);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
