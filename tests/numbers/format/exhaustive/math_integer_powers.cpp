// SPDX-License-Identifier: MIT
// pown, rootn and compoundn of all numbers of half and bfloat16 with many integers are correctly rounded in
// every deterministic mode, judged by MPFR.
#include <doctest/doctest.h>
#include <cstdint>

#include "numbers/format/exhaustive/every_block.hpp"
#include "numbers/format/mpfr/integer_power_cases.hpp"

TEST_CASE_TEMPLATE("powers, roots and compounds of all numbers of 16 bits are correctly rounded", Value,
                   mp::half, mp::bfloat16) {
    const exhaustive::findings wrong = exhaustive::every_block(
        Value::format::name, 256, [](oracle::disagreements& disagreements, std::uint64_t block) {
            for (std::uint64_t code = block; code <= Value::layout::code_mask; code += 256) {
                const Value x = oracle::value_of<Value>(code);
                for (const long long n : integer_powers::exponents)
                    integer_powers::compare_all<Value>(disagreements, x, n);
                for (long long n = -300; n <= 300; n += 7)
                    integer_powers::compare_all<Value>(disagreements, x, n);
            }
        });
    INFO(wrong.first);
    CHECK(wrong.count == 0);
}
