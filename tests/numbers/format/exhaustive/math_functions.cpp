// SPDX-License-Identifier: MIT
// Mathematical functions are correctly rounded in every deterministic mode, judged by MPFR: all arguments of
// formats of 16 bits with precisions from 6 to 16, all pairs of formats of 8 bits, a million hard pairs
// each of half and bfloat16.
#include <doctest/doctest.h>
#include <cstdint>

#include "numbers/format/exhaustive/every_block.hpp"
#include "numbers/format/mpfr/cases.hpp"
#include "oracle/random.hpp"

TEST_CASE_TEMPLATE("functions of all numbers of 16 bits are correctly rounded", Value, mp::half, mp::bfloat16,
                   mp::basic_float<mp::formats::p3109<16, 6>>, mp::basic_float<mp::formats::p3109<16, 13>>,
                   mp::basic_float<mp::formats::p3109<16, 16, mp::signedness::is_unsigned>>) {
    const exhaustive::findings wrong = exhaustive::every_block(
        Value::format::name, 256, [](oracle::disagreements& disagreements, std::uint64_t block) {
            math_cases::compare_all_unary<Value>(disagreements, block, 256);
        });
    INFO(wrong.first);
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

TEST_CASE_TEMPLATE("functions of a million pairs are correctly rounded", Value, mp::half, mp::bfloat16) {
    const exhaustive::findings wrong = exhaustive::every_block(
        Value::format::name, 1000, [](oracle::disagreements& disagreements, std::uint64_t block) {
            oracle::random_bits random(302 + block);
            math_cases::compare_pairs<Value>(disagreements, random, 1000);
        });
    INFO(wrong.first);
    CHECK(wrong.count == 0);
}
