// SPDX-License-Identifier: MIT
// The 8-bit formats are small enough to try everything.
#include <doctest/doctest.h>
#include <cstdint>

#include "oracle/library.hpp"

namespace {

/// One operation on one pair: in every projection, and as the operator.
template <class Value, class Named, class Operator>
void compare(oracle::disagreements& wrong, const char* name, const oracle::exact_result& exact, Value a,
             Value b, Named named, Operator by_operator) {
    const auto in_projection = [&](mp::projection p) { return named(a, b, p); };
    oracle::compare_in_every_projection<Value>(wrong, exact, in_projection, name, +a.bits(), +b.bits());
    const oracle::format& f = oracle::format_of<Value>;
    const oracle::outcome expected = finish(f, exact, oracle::mode::nearest_even, oracle::saturate::none);
    const Value result = by_operator(a, b);
    if (!matches(f, expected, result.bits()))
        wrong.add("operator", name, +a.bits(), +b.bits(), +result.bits());
}

}  // namespace

TEST_CASE_TEMPLATE("+ - * / of all pairs of an 8-bit format are the oracle's, in every projection", Value,
                   mp::float8_e4m3fn, mp::float8_e5m2) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    for (std::uint32_t i = 0; i < 256; ++i) {
        for (std::uint32_t j = 0; j < 256; ++j) {
            const Value a = oracle::value_of<Value>(i);
            const Value b = oracle::value_of<Value>(j);
            compare(
                wrong, "+", oracle::add(f, i, j), a, b, [](auto... x) { return mp::add(x...); },
                [](Value x, Value y) { return x + y; });
            compare(
                wrong, "-", oracle::subtract(f, i, j), a, b, [](auto... x) { return mp::subtract(x...); },
                [](Value x, Value y) { return x - y; });
            compare(
                wrong, "*", oracle::multiply(f, i, j), a, b, [](auto... x) { return mp::multiply(x...); },
                [](Value x, Value y) { return x * y; });
            compare(
                wrong, "/", oracle::divide(f, i, j), a, b, [](auto... x) { return mp::divide(x...); },
                [](Value x, Value y) { return x / y; });
        }
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("the square roots of an 8-bit format are the oracle's, in every projection", Value,
                   mp::float8_e4m3fn, mp::float8_e5m2) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    for (std::uint32_t i = 0; i < 256; ++i) {
        const Value a = oracle::value_of<Value>(i);
        const oracle::exact_result exact = oracle::sqrt(f, i);
        oracle::compare_in_every_projection<Value>(
            wrong, exact, [&](mp::projection p) { return mp::sqrt(a, p); }, "sqrt", i);
        const oracle::outcome expected = finish(f, exact, oracle::mode::nearest_even, oracle::saturate::none);
        if (!matches(f, expected, mp::sqrt(a).bits())) wrong.add("sqrt", i, "without projection");
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("a ninth of all fused triples of an 8-bit format are the oracle's, in every projection",
                   Value, mp::float8_e4m3fn, mp::float8_e5m2) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    // 9 and 256 have no common factor, so every operand value and every pair of them takes part.
    for (std::uint32_t triple = 4; triple < 1U << 24; triple += 9) {
        const std::uint32_t i = triple >> 16;
        const std::uint32_t j = triple >> 8 & 255;
        const std::uint32_t k = triple & 255;
        const Value a = oracle::value_of<Value>(i);
        const Value b = oracle::value_of<Value>(j);
        const Value c = oracle::value_of<Value>(k);
        const oracle::exact_result exact = oracle::fma(f, i, j, k);
        if (triple % 4 == 0) {
            oracle::compare_in_every_projection<Value>(
                wrong, exact, [&](mp::projection p) { return mp::fma(a, b, c, p); }, "fma", i, j, k);
        }
        const oracle::outcome expected = finish(f, exact, oracle::mode::nearest_even, oracle::saturate::none);
        if (!matches(f, expected, mp::fma(a, b, c).bits())) wrong.add("fma", i, j, k, "without projection");
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
