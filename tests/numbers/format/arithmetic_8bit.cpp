// SPDX-License-Identifier: MIT
// The formats of 8 bits and fewer are small enough to try everything.
#include <doctest/doctest.h>
#include <cstdint>
#include <type_traits>

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

TEST_CASE_TEMPLATE_DEFINE("+ - * / of all pairs of a small format are the oracle's, in every projection",
                          Value, all_pairs) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    for (std::uint32_t i = 0; i < code_count(f); ++i) {
        for (std::uint32_t j = 0; j < code_count(f); ++j) {
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

TEST_CASE_TEMPLATE_APPLY(all_pairs, oracle::small_formats);

TEST_CASE_TEMPLATE_DEFINE("the square roots of a small format are the oracle's, in every projection", Value,
                          square_roots) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    for (std::uint32_t i = 0; i < code_count(f); ++i) {
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

TEST_CASE_TEMPLATE_APPLY(square_roots, oracle::small_formats);

TEST_CASE_TEMPLATE_DEFINE(
    "a slice of all fused triples of a small format is the oracle's, in every projection", Value,
    fused_triples) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    const auto codes = static_cast<std::uint32_t>(code_count(f));
    // An odd stride has no common factor with the number of codes, so every operand value and every pair of
    // them takes part.
    constexpr bool is_common =
        std::is_same_v<Value, mp::float8_e4m3fn> || std::is_same_v<Value, mp::float8_e5m2>;
    const std::uint32_t stride = is_common ? 9 : codes >= 128 ? 61 : 1;
    for (std::uint32_t triple = 4; triple < codes * codes * codes; triple += stride) {
        const std::uint32_t i = triple / codes / codes;
        const std::uint32_t j = triple / codes % codes;
        const std::uint32_t k = triple % codes;
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
TEST_CASE_TEMPLATE_APPLY(fused_triples, oracle::small_formats);
