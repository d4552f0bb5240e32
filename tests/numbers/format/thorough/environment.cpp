// SPDX-License-Identifier: MIT
// Flags, flushing and tininess: all pairs of small formats, weighted pairs of the others.
#include <doctest/doctest.h>
#include <cstdint>

#include "oracle/flags.hpp"
#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

using oracle::format;

/// Compares result and flags of one operation in all modes, with saturation or without, tininess either way,
/// with gradual underflow and with flushed results.
void compare_codes(oracle::disagreements& wrong, const char* name, const format& f,
                   const oracle::exact_result& exact, std::initializer_list<std::uint64_t> operands,
                   oracle::function_reference<std::uint64_t(mp::environment&)> compute) {
    for (const oracle::mode m : oracle::modes) {
        for (const oracle::saturate s : {oracle::saturate::none, oracle::saturate::finite}) {
            for (const bool before : {false, true}) {
                for (const bool flush : {false, true}) {
                    if (flush && !f.has_zero) continue;
                    mp::environment env{.project = oracle::library_projection(m, s)};
                    env.tiny = before ? mp::tininess::before_rounding : mp::tininess::after_rounding;
                    env.subnormals =
                        flush ? mp::subnormal_handling::flush_results : mp::subnormal_handling::gradual;
                    const std::uint64_t code = compute(env);
                    bool flushed = false;
                    const unsigned flags = oracle::flags_of(
                        f, f, operands, exact, m, s,
                        before ? oracle::tiny::before_rounding : oracle::tiny::after_rounding, flush,
                        flushed);
                    oracle::outcome expected = finish(f, exact, m, s);
                    if (flushed) expected = {false, signed_code(f, exact.negative, 0)};
                    const std::uint64_t a = *operands.begin();
                    const std::uint64_t b = *(operands.end() - 1);
                    if (!matches(f, expected, code)) {
                        wrong.add(name, a, b, oracle::name_of(m), "gives", code, "instead of", expected.code);
                    }
                    if (env.raised.to_unsigned() != flags) {
                        wrong.add(name, a, b, oracle::name_of(m), before ? "before" : "after",
                                  flush ? "flush" : "gradual", "raises", env.raised.to_unsigned(),
                                  "instead of", flags);
                    }
                }
            }
        }
    }
}

template <class Value, class Compute>
void compare(oracle::disagreements& wrong, const char* name, const oracle::exact_result& exact,
             std::initializer_list<std::uint64_t> operands, Compute compute) {
    compare_codes(wrong, name, oracle::format_of<Value>, exact, operands,
                  [&](mp::environment& env) { return oracle::code_of<Value>(compute(env)); });
}

template <class Value>
void compare_all_operations(oracle::disagreements& wrong, std::uint64_t i, std::uint64_t j, std::uint64_t k) {
    const format& f = oracle::format_of<Value>;
    const Value a = oracle::value_of<Value>(i);
    const Value b = oracle::value_of<Value>(j);
    const Value c = oracle::value_of<Value>(k);
    using env = mp::environment;
    compare<Value>(wrong, "+", oracle::add(f, i, j), {i, j}, [&](env& e) { return mp::add(a, b, e); });
    compare<Value>(wrong, "-", oracle::subtract(f, i, j), {i, j},
                   [&](env& e) { return mp::subtract(a, b, e); });
    compare<Value>(wrong, "*", oracle::multiply(f, i, j), {i, j},
                   [&](env& e) { return mp::multiply(a, b, e); });
    compare<Value>(wrong, "/", oracle::divide(f, i, j), {i, j}, [&](env& e) { return mp::divide(a, b, e); });
    compare<Value>(wrong, "sqrt", oracle::sqrt(f, i), {i}, [&](env& e) { return mp::sqrt(a, e); });
    compare<Value>(wrong, "fma", oracle::fma(f, i, j, k), {i, j, k},
                   [&](env& e) { return mp::fma(a, b, c, e); });
}

}  // namespace

TEST_CASE_TEMPLATE_DEFINE("flags and flushing of a small format are as IEEE 754 defines them", Value, small) {
    const format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    for (std::uint64_t i = 0; i < code_count(f); ++i) {
        for (std::uint64_t j = 0; j < code_count(f); ++j) {
            // The third operand runs through all codes as well, though not in all combinations.
            if (code_count(f) == 256 && (i * 7 + j) % 5 != 0) continue;
            compare_all_operations<Value>(wrong, i, j, (i * 31 + j * 17) % code_count(f));
        }
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
TEST_CASE_TEMPLATE_APPLY(small, oracle::small_formats);

TEST_CASE_TEMPLATE("flags and flushing of a larger format are as IEEE 754 defines them", Value, mp::half,
                   mp::bfloat16, mp::tfloat32) {
    const format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    oracle::random_bits random(301);
    for (int n = 0; n < 20000; ++n) {
        const std::uint64_t i = weighted_code(random, f);
        compare_all_operations<Value>(wrong, i, weighted_partner(random, f, i),
                                      weighted_partner(random, f, i));
    }
    // Products around the smallest normal number, where tininess before and after rounding differ.
    for (int n = 0; n < 20000; ++n) {
        const std::uint64_t i =
            (std::uint64_t{1 + random.below(static_cast<std::uint32_t>(f.bias))} << f.fraction_bits) |
            (random.next() & (min_normal_code(f) - 1));
        const std::uint64_t quotient = divide(f, min_normal_code(f), i).lower;
        compare_all_operations<Value>(wrong, i, quotient + random.below(3) - (quotient > 0 ? 1 : 0),
                                      weighted_code(random, f));
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("denormals-are-zero takes subnormal operands for zeros", Value, mp::half, mp::bfloat16,
                   mp::float8_e4m3fn, mp::float8_e5m2fnuz, mp::float6_e2m3fn) {
    const format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    oracle::random_bits random(302);
    const auto flushed = [&](std::uint64_t code) {
        return is_subnormal(f, code) ? signed_code(f, is_negative(f, code), 0) : code;
    };
    for (int n = 0; n < 50000; ++n) {
        const std::uint64_t i = weighted_code(random, f);
        const std::uint64_t j = weighted_partner(random, f, i);
        const std::uint64_t k = weighted_partner(random, f, i);
        const Value a = oracle::value_of<Value>(i);
        const Value b = oracle::value_of<Value>(j);
        const Value c = oracle::value_of<Value>(k);
        const auto compare_with_zeros = [&](const char* name, auto compute) {
            mp::environment all{.subnormals = mp::subnormal_handling::flush_all};
            mp::environment results{.subnormals = mp::subnormal_handling::flush_results};
            const Value x = compute(a, b, c, all);
            const Value y = compute(oracle::value_of<Value>(flushed(i)), oracle::value_of<Value>(flushed(j)),
                                    oracle::value_of<Value>(flushed(k)), results);
            if (x.bits() != y.bits() || all.raised != results.raised)
                wrong.add(name, i, j, k, x.bits(), y.bits());
        };
        compare_with_zeros("+", [](Value p, Value q, Value, mp::environment& e) { return mp::add(p, q, e); });
        compare_with_zeros("*",
                           [](Value p, Value q, Value, mp::environment& e) { return mp::multiply(p, q, e); });
        compare_with_zeros("/",
                           [](Value p, Value q, Value, mp::environment& e) { return mp::divide(p, q, e); });
        compare_with_zeros("fma",
                           [](Value p, Value q, Value r, mp::environment& e) { return mp::fma(p, q, r, e); });
        compare_with_zeros("sqrt", [](Value p, Value, Value, mp::environment& e) { return mp::sqrt(p, e); });
        compare_with_zeros("to half", [](Value p, Value, Value, mp::environment& e) {
            return mp::round_to<Value>(mp::round_to<mp::half>(p, e), e);
        });
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("conversions raise the flags that IEEE 754 defines") {
    oracle::disagreements wrong;
    oracle::random_bits random(303);
    const auto compare_conversion = [&]<class To>(To, std::uint64_t code) {
        const format& f = oracle::format_of<To>;
        const oracle::exact_result exact = convert(oracle::binary32, code, f);
        for (const oracle::mode m : oracle::modes) {
            mp::environment env{.project = oracle::library_projection(m, oracle::saturate::none)};
            const To x = mp::round_to<To>(oracle::value_of<float>(code), env);
            bool flushed = false;
            unsigned flags = oracle::flags_of(f, oracle::binary32, {code}, exact, m, oracle::saturate::none,
                                              oracle::tiny::after_rounding, false, flushed);
            if (f.nans == oracle::nan_codes::none && is_nan(oracle::binary32, code)) flags |= oracle::invalid;
            if (env.raised.to_unsigned() != flags) {
                wrong.add(To::format::name, code, oracle::name_of(m), x.bits(), env.raised.to_unsigned(),
                          flags);
            }
        }
    };
    for (int n = 0; n < 40000; ++n) {
        const std::uint64_t code = weighted_code(random, oracle::binary32);
        // Near one, where small formats have their numbers.
        const std::uint64_t near = (code & 0x807fffff) | std::uint64_t{127 - 20 + random.below(40)} << 23;
        for (const std::uint64_t c : {code, near}) {
            compare_conversion(mp::half{}, c);
            compare_conversion(mp::bfloat16{}, c);
            compare_conversion(mp::float8_e4m3fn{}, c);
            compare_conversion(mp::float8_e5m2fnuz{}, c);
            compare_conversion(mp::float8_e8m0fnu{}, c);
            compare_conversion(mp::float4_e2m1fn{}, c);
            compare_conversion(mp::p3109<8, 4>{}, c);
        }
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("flags stay set, can be combined, and work in constant expressions") {
    using namespace mp::literals;
    mp::environment env;
    CHECK(mp::divide(1_h, 3_h, env) == 1_h / 3_h);
    CHECK(env.raised == mp::status_flags(mp::status_flag::inexact));
    CHECK(mp::is_zero(mp::add(1_h, -1_h, env)));
    CHECK(env.raised.test(mp::status_flag::inexact));
    CHECK(mp::isinf(mp::divide(1_h, 0_h, env)));
    CHECK(env.raised == (mp::status_flag::inexact | mp::status_flag::divide_by_zero));
    env.raised = {};
    CHECK_FALSE(env.raised.any());

    constexpr mp::status_flags of_overflow = [] {
        mp::environment e{.project = {.saturate = mp::saturation::finite}};
        static_cast<void>(mp::multiply(65504_h, 2_h, e));
        return e.raised;
    }();
    static_assert(of_overflow == (mp::status_flag::overflow | mp::status_flag::inexact));
}

TEST_CASE("an infinite product with zero and a quiet NaN added is that NaN, and not invalid") {
    mp::environment env;
    const auto infinity = mp::half::from_bits(0x7c00);
    const auto quiet = mp::half::from_bits(0xfe01);
    CHECK(mp::fma(infinity, mp::half(0.0f), quiet, env).bits() == 0xfe01);
    CHECK_FALSE(env.raised.any());
    CHECK(mp::isnan(mp::fma(infinity, mp::half(0.0f), mp::half(1.0f), env)));
    CHECK(env.raised.test(mp::status_flag::invalid));
}
