// SPDX-License-Identifier: MIT
// Functions of a number and an integer, hypot of three, remquo and lerp are correctly rounded in every
// deterministic mode, and raise the right flags, judged by MPFR. exhaustive/math_integer_powers.cpp runs
// through all numbers.
#include <doctest/doctest.h>
#include <cstdint>

#include "numbers/format/mpfr/integer_power_cases.hpp"

TEST_CASE_TEMPLATE("powers, roots and compounds by integers are correctly rounded", Value, mp::half,
                   mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2fnuz) {
    oracle::disagreements wrong;
    const std::uint64_t stride = Value::layout::width > 8 ? 211 : 1;
    for (const long long n : integer_powers::exponents) {
        for (std::uint64_t code = 0; code <= Value::layout::code_mask; code += stride)
            integer_powers::compare_all<Value>(wrong, oracle::value_of<Value>(code), n);
    }
    oracle::random_bits random(77);
    for (int i = 0; i < 2000; ++i) {
        const Value x = oracle::value_of<Value>(random.below(std::uint64_t{Value::layout::code_mask} + 1));
        const auto shift = static_cast<unsigned>(random.below(64));
        integer_powers::compare_all<Value>(wrong, x, static_cast<long long>(random.next()) >> shift);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("hypot of three, lerp and midpoint are rounded once", Value, mp::half, mp::bfloat16,
                   mp::float8_e4m3fn, mp::float8_e5m2fnuz) {
    oracle::disagreements wrong;
    oracle::random_bits random(78);
    for (int i = 0; i < 4000; ++i) integer_powers::compare_three<Value>(wrong, random);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("remquo is the remainder and the last bits of the quotient", Value, mp::half, mp::bfloat16,
                   mp::float8_e4m3fn) {
    oracle::disagreements wrong;
    oracle::random_bits random(79);
    const oracle::format& f = oracle::format_of<Value>;
    for (int i = 0; i < 20000; ++i) {
        const std::uint64_t a = weighted_code(random, f);
        const Value x = oracle::value_of<Value>(a);
        const Value y = oracle::value_of<Value>(weighted_partner(random, f, a));
        if (!mp::isfinite(x) || !mp::isfinite(y) || mp::is_zero(y)) continue;
        int quotient = 0;
        const Value rest = remquo(x, y, &quotient);
        const oracle::mpfr_number exact_x(static_cast<double>(x));
        const oracle::mpfr_number exact_y(static_cast<double>(y));
        oracle::mpfr_number exact;
        long bits = 0;
        exact.compute([&](mpfr_ptr r, mpfr_srcptr p, mpfr_srcptr q,
                          mpfr_rnd_t round) { return mpfr_remquo(r, &bits, p, q, round); },
                      exact_x, exact_y);
        if (rest.bits() != mp::remainder(x, y).bits()) wrong.add("remquo", x.bits(), y.bits());
        // MPFR has bits of a long; 31 of them are compared.
        const auto expected = static_cast<int>((bits < 0 ? -bits : bits) & 0x7fffffff);
        if (quotient != (bits < 0 ? -expected : expected))
            wrong.add("quotient", x.bits(), y.bits(), quotient, bits);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
