// SPDX-License-Identifier: MIT
// The caller's rounding direction, and whether the processor flushes subnormal numbers, change no bit of any
// operation on single numbers. Compiled twice: as the rest of the tests, and with -ffast-math.
#include <mp/math.hpp>

#include <doctest/doctest.h>
#include <cstdint>
#include <optional>

#include "numbers/format/flushing_scope.hpp"
#include "numbers/format/rounding_scope.hpp"
#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

/// Calls body() in all directions, with and without flushing.
template <class Body>
void in_every_environment(Body body) {
    for (const int direction : every_direction) {
        const rounding_scope rounding(direction);
        CAPTURE(direction);
        body();
#if TEST_CAN_FLUSH
        const flushing_scope flushing;
        body();
#endif
    }
}

template <class Value>
bool nearest(const oracle::exact_result& exact, Value result) {
    const oracle::format& f = oracle::format_of<Value>;
    return matches(f, finish(f, exact, oracle::mode::nearest_even, oracle::saturate::none),
                   oracle::code_of(result));
}

}  // namespace

TEST_CASE("the directions of these tests are in force") {
    volatile float one = 1;
    volatile float tiny = 0x1p-60f;
    const rounding_scope rounding(FE_UPWARD);
    const float sum = one + tiny;
    CHECK(sum > one);
}

TEST_CASE_TEMPLATE("arithmetic rounds to nearest whatever direction the caller has set", Value, mp::half,
                   mp::bfloat16, mp::tfloat32, mp::float8_e4m3fn, mp::float8_e5m2, mp::float8_e4m3fnuz) {
    const oracle::format& f = oracle::format_of<Value>;
    in_every_environment([&] {
        oracle::disagreements wrong;
        oracle::random_bits random(83);
        for (int n = 0; n < 20000; ++n) {
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
        }
        INFO(wrong.first());
        CHECK(wrong.count == 0);
    });
}

TEST_CASE_TEMPLATE("roots round to nearest for every operand, whatever direction the caller has set", Value,
                   mp::half, mp::bfloat16, mp::tfloat32) {
    const oracle::format& f = oracle::format_of<Value>;
    for (const int direction : {FE_UPWARD, FE_DOWNWARD}) {
        const rounding_scope rounding(direction);
        oracle::disagreements wrong;
        // Squares of midpoints and their neighbours are among the significands of two successive binades.
        const std::uint64_t first = ((std::uint64_t{1} << (f.exponent_bits - 1)) - 4) << f.fraction_bits;
        for (std::uint64_t code = first; code < first + (std::uint64_t{8} << f.fraction_bits); ++code) {
            if (!nearest(oracle::sqrt(f, code), mp::sqrt(oracle::value_of<Value>(code))))
                wrong.add("sqrt", code);
        }
        INFO(wrong.first());
        CHECK(wrong.count == 0);
    }
}

TEST_CASE_TEMPLATE("conversions round to nearest whatever direction the caller has set", Value, mp::half,
                   mp::bfloat16, mp::tfloat32, mp::float8_e4m3fn, mp::float8_e5m2, mp::float8_e4m3fnuz) {
    const oracle::format& f = oracle::format_of<Value>;
    in_every_environment([&] {
        oracle::disagreements wrong;
        oracle::random_bits random(84);
        for (int n = 0; n < 20000; ++n) {
            const std::uint64_t single = weighted_code(random, oracle::binary32);
            const std::uint64_t wide = weighted_code(random, oracle::binary64);
            const std::uint64_t code = weighted_code(random, f);
            const Value x = oracle::value_of<Value>(code);
            if (!nearest(convert(oracle::binary32, single, f), Value(oracle::value_of<float>(single))))
                wrong.add("from float", single);
            if (!nearest(convert(oracle::binary64, wide, f), Value(oracle::value_of<double>(wide))))
                wrong.add("from double", wide);
            if (!nearest(convert(f, code, oracle::binary32), static_cast<float>(x)))
                wrong.add("to float", code);
            if (!nearest(convert(f, code, oracle::binary64), static_cast<double>(x)))
                wrong.add("to double", code);
        }
        INFO(wrong.first());
        CHECK(wrong.count == 0);
    });
}

TEST_CASE("zeros have the signs of rounding to nearest whatever direction the caller has set") {
    in_every_environment([] {
        const mp::half zero{0.0F};
        const mp::half one{1.0F};
        CHECK((one - one).bits() == 0);
        CHECK((zero + -zero).bits() == 0);
        CHECK((-zero + -zero).bits() == 0x8000);
        CHECK((-zero - zero).bits() == 0x8000);
        CHECK(mp::fma(one, -one, one).bits() == 0);
        CHECK(mp::fma(-one, zero, -zero).bits() == 0x8000);
        CHECK(mp::sqrt(zero).bits() == 0);
        CHECK((one / zero).bits() == 0x7c00);
        CHECK(!mp::signbit(mp::half(static_cast<float>(zero))));
        // Not zero before it was rounded: it keeps its sign.
        const mp::half least = mp::half::from_bits(1);
        CHECK(mp::fma(-least, least, zero).bits() == 0x8000);
    });
}

TEST_CASE_TEMPLATE("mathematical functions round to nearest whatever direction the caller has set", Value,
                   mp::half, mp::bfloat16) {
    // The integer path, which flags take, is compared with MPFR elsewhere and does no float arithmetic.
    in_every_environment([] {
        oracle::disagreements wrong;
        const auto compare = [&](const char* name, auto function) {
            for (std::uint32_t code = 5; code < 65536; code += 41) {
                const Value x = Value::from_bits(static_cast<std::uint16_t>(code));
                mp::environment env;
                const Value expected = function(x, env);
                const Value result = function(x, mp::projection{});
                if (result.bits() != expected.bits() && !(mp::isnan(result) && mp::isnan(expected)))
                    wrong.add(name, code);
            }
        };
        compare("exp", [](Value x, auto&& context) { return mp::exp(x, context); });
        compare("expm1", [](Value x, auto&& context) { return mp::expm1(x, context); });
        compare("log", [](Value x, auto&& context) { return mp::log(x, context); });
        compare("log1p", [](Value x, auto&& context) { return mp::log1p(x, context); });
        compare("sin", [](Value x, auto&& context) { return mp::sin(x, context); });
        compare("tan", [](Value x, auto&& context) { return mp::tan(x, context); });
        compare("sinh", [](Value x, auto&& context) { return mp::sinh(x, context); });
        compare("tanh", [](Value x, auto&& context) { return mp::tanh(x, context); });
        compare("atanh", [](Value x, auto&& context) { return mp::atanh(x, context); });
        compare("acosh", [](Value x, auto&& context) { return mp::acosh(x, context); });
        compare("rsqrt", [](Value x, auto&& context) { return mp::rsqrt(x, context); });
        compare("cbrt", [](Value x, auto&& context) { return mp::cbrt(x, context); });
        INFO(wrong.first());
        CHECK(wrong.count == 0);
    });
}
