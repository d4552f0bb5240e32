// SPDX-License-Identifier: MIT
// Whole arrays on a processor that flushes subnormal floats to zero: the same bits as ever.
#include <mp/convert.hpp>

#include <doctest/doctest.h>
#include <cstdint>
#include <vector>

#include "numbers/format/flushing_scope.hpp"
#include "oracle/library.hpp"
#include "oracle/random.hpp"

#if TEST_CAN_FLUSH

namespace {

/// Codes of which half are subnormal or near it.
template <class Value>
std::vector<Value> small_values(std::size_t count) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::random_bits random(121);
    std::vector<Value> values;
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t code = weighted_code(random, f);
        if (i % 2 == 0) code &= sign_bit(f) | ((std::uint64_t{4} << f.fraction_bits) - 1);
        values.push_back(oracle::value_of<Value>(code));
    }
    return values;
}

template <class To, class From>
void compare(oracle::disagreements& wrong) {
    const oracle::format& from = oracle::format_of<From>;
    const oracle::format& to = oracle::format_of<To>;
    const std::vector<From> values = small_values<From>(30011);
    std::vector<To> results(values.size());
    mp::range_report report;
    {
        const flushing_scope flushing;
        mp::convert(mp::cpu{}, values, results);
        if constexpr (mp::reduced<To>) report = mp::report_range<To>(mp::cpu{}, values);
    }
    std::uint64_t zeros = 0;
    std::uint64_t flushed = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint64_t code = oracle::code_of(values[i]);
        const oracle::outcome expected =
            finish(to, convert(from, code, to), oracle::mode::nearest_even, oracle::saturate::none);
        if (!matches(to, expected, oracle::code_of(results[i]))) {
            wrong.add(code, "becomes", oracle::code_of(results[i]), "instead of", expected.code);
        }
        if (is_zero(from, code)) ++zeros;
        if (!expected.nan && is_zero(to, expected.code) && !is_zero(from, code)) ++flushed;
    }
    if (mp::reduced<To> && (report.zeros != zeros || report.flushed != flushed)) wrong.add("report");
}

}  // namespace

TEST_CASE_TEMPLATE("arrays keep their subnormal numbers on a flushing processor", From, mp::half,
                   mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2, float, double) {
    oracle::disagreements wrong;
    compare<mp::half, From>(wrong);
    compare<mp::bfloat16, From>(wrong);
    compare<mp::float8_e4m3fn, From>(wrong);
    compare<mp::float8_e5m2, From>(wrong);
    compare<float, From>(wrong);
    compare<double, From>(wrong);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

#endif
