// SPDX-License-Identifier: MIT
// Compiled twice: as the rest of the tests, and with -ffast-math, which assumes that there are no NaNs and
// infinities, rearranges float arithmetic, and makes the processor flush subnormal floats to zero. Nothing of
// that may change a bit.
#include <doctest/doctest.h>
#include <cstdint>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

template <class Value>
bool nearest(const oracle::exact_result& exact, Value result) {
    const oracle::format& f = oracle::format_of<Value>;
    return matches(f, finish(f, exact, oracle::mode::nearest_even, oracle::saturate::none),
                   oracle::code_of(result));
}

}  // namespace

TEST_CASE_TEMPLATE("arithmetic and comparisons are exact whatever the compiler assumes about floats", Value,
                   mp::half, mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    oracle::random_bits random(81);
    for (int n = 0; n < 200000; ++n) {
        const std::uint64_t i = weighted_code(random, f);
        const std::uint64_t j = weighted_partner(random, f, i);
        const std::uint64_t k = weighted_partner(random, f, j);
        const Value a = oracle::value_of<Value>(i);
        const Value b = oracle::value_of<Value>(j);
        const Value c = oracle::value_of<Value>(k);
        if (!nearest(oracle::add(f, i, j), a + b)) wrong.add(i, "+", j);
        if (!nearest(oracle::subtract(f, i, j), a - b)) wrong.add(i, "-", j);
        if (!nearest(oracle::multiply(f, i, j), a * b)) wrong.add(i, "*", j);
        if (!nearest(oracle::divide(f, i, j), a / b)) wrong.add(i, "/", j);
        if (!nearest(oracle::fma(f, i, j, k), mp::fma(a, b, c))) wrong.add("fma", i, j, k);
        if (!nearest(oracle::sqrt(f, i), mp::sqrt(a))) wrong.add("sqrt", i);
        if ((a == a) == is_nan(f, i) || (a < a) || (a != a) != is_nan(f, i)) wrong.add("comparison of", i);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("conversions from float and double are exact whatever the compiler assumes about floats",
                   Value, mp::half, mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    oracle::random_bits random(82);
    for (int n = 0; n < 200000; ++n) {
        const std::uint64_t single = weighted_code(random, oracle::binary32);
        const std::uint64_t wide = weighted_code(random, oracle::binary64);
        const float x = oracle::value_of<float>(single);
        const double y = oracle::value_of<double>(wide);
        const Value from_single(x);
        const Value from_wide(y);
        if (!nearest(convert(oracle::binary32, single, f), from_single)) wrong.add("from float", single);
        if (!nearest(convert(oracle::binary64, wide, f), from_wide)) wrong.add("from double", wide);
        if (is_nan(oracle::binary32, single) &&
            mp::signbit(from_single) != is_negative(oracle::binary32, single)) {
            wrong.add("sign of NaN", single);
        }
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("conversions to float and double are exact whatever the compiler assumes about floats",
                   Value, mp::half, mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    for (std::uint64_t code = 0; code < 2 * sign_bit(f); ++code) {
        const Value x = oracle::value_of<Value>(code);
        if (!nearest(convert(f, code, oracle::binary32), static_cast<float>(x))) wrong.add("to float", code);
        if (!nearest(convert(f, code, oracle::binary64), static_cast<double>(x)))
            wrong.add("to double", code);
        if (!nearest(convert(f, code, oracle::binary32), mp::round_to<float>(x))) wrong.add("to float", code);
        // And back: what is subnormal in float is not lost on the way.
        if (!is_nan(f, code) && Value(static_cast<float>(x)).bits() != code)
            wrong.add("to float and back", code);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("classification looks at bits, of floats and doubles as well") {
    oracle::disagreements wrong;
    oracle::random_bits random(83);
    const auto classify = [&](const oracle::format& f, std::uint64_t code, auto x) {
        if (mp::isnan(x) != is_nan(f, code)) wrong.add("isnan", code);
        if (mp::isinf(x) != is_infinite(f, code)) wrong.add("isinf", code);
        if (mp::isfinite(x) != is_finite(f, code)) wrong.add("isfinite", code);
        if (mp::signbit(x) != is_negative(f, code)) wrong.add("signbit", code);
        if (mp::isnormal(x) != (is_finite(f, code) && !is_zero(f, code) && !is_subnormal(f, code))) {
            wrong.add("isnormal", code);
        }
    };
    for (int n = 0; n < 100000; ++n) {
        const std::uint64_t single = weighted_code(random, oracle::binary32);
        const std::uint64_t wide = weighted_code(random, oracle::binary64);
        const std::uint64_t narrow = weighted_code(random, oracle::binary16);
        classify(oracle::binary32, single, oracle::value_of<float>(single));
        classify(oracle::binary64, wide, oracle::value_of<double>(wide));
        classify(oracle::binary16, narrow, oracle::value_of<mp::half>(narrow));
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
