// SPDX-License-Identifier: MIT
// Conversions from float, double, long double and between formats: exact values on and beside every place
// where the result changes, each rounded once.
#include <doctest/doctest.h>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "numbers/format/conversion_check.hpp"
#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

/// The code of a number that the format represents exactly.
std::uint64_t exact_code(const oracle::format& f, bool negative, const oracle::dyadic& magnitude) {
    return finish(f, exact_from_dyadic(f, negative, magnitude), oracle::mode::toward_zero,
                  oracle::saturate::none)
        .code;
}

/// Calls f with every number of the format, every midpoint, and the end of the range, of both signs; the
/// number of codes that the format has too many of for a quick test is thinned out by `step`.
template <class F>
void for_every_edge(const oracle::format& f, std::uint64_t step, F call) {
    const std::uint64_t last = max_finite_code(f) + 1;
    for (std::uint64_t code = 0; code <= last;
         code += code + step > last && code < last ? last - code : step) {
        for (const bool negative : {false, true}) {
            call(negative, value_of_magnitude(f, code));
            call(negative, middle_above(f, code));
        }
    }
}

}  // namespace

TEST_CASE_TEMPLATE_DEFINE("every float on, just above and just below a number or midpoint is rounded once",
                          To, float_edges) {
    oracle::disagreements wrong;
    const std::uint64_t step = code_count(oracle::format_of<To>) > 65536 ? 3 : 1;
    for_every_edge(oracle::format_of<To>, step, [&](bool negative, const oracle::dyadic& edge) {
        const std::uint64_t code = exact_code(oracle::binary32, negative, edge);
        if (magnitude_code(oracle::binary32, code) != 0)
            oracle::compare_conversion<To, float>(wrong, code - 1);
        oracle::compare_conversion<To, float>(wrong, code);
        oracle::compare_conversion<To, float>(wrong, code + 1);
    });
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
TEST_CASE_TEMPLATE_APPLY(float_edges, oracle::all_formats);

TEST_CASE_TEMPLATE_DEFINE(
    "random and special floats and doubles are rounded once, and NaNs keep sign and payload", To,
    random_floats) {
    oracle::disagreements wrong;
    oracle::random_bits random(31);
    constexpr bool is_common = std::is_same_v<To, mp::half> || std::is_same_v<To, mp::bfloat16> ||
                               std::is_same_v<To, mp::float8_e4m3fn> || std::is_same_v<To, mp::float8_e5m2>;
    const int count = is_common ? 200000 : code_count(oracle::format_of<To>) > 256 ? 60000 : 10000;
    for (int i = 0; i < count; ++i) {
        oracle::compare_conversion<To, float>(wrong, weighted_code(random, oracle::binary32));
        oracle::compare_conversion<To, double>(wrong, weighted_code(random, oracle::binary64));
        // A double in the range of the format.
        const std::uint64_t exponent = 1023 - 30 + random.below(60);
        oracle::compare_conversion<To, double>(wrong, (random.next() & 0x800fffffffffffffU) | exponent << 52);
    }
    for (const std::uint64_t quiet : {std::uint64_t{0}, std::uint64_t{1} << 22}) {
        for (std::uint64_t payload = 1; payload < 1U << 22; payload += 1 + payload / 3) {
            oracle::compare_conversion<To, float>(wrong, 0x7f800000U | quiet | payload);
            oracle::compare_conversion<To, float>(wrong, 0xff800000U | quiet | payload);
            oracle::compare_conversion<To, double>(wrong, 0x7ff0000000000000U | (quiet | payload) << 29);
            oracle::compare_conversion<To, double>(wrong, 0xfff0000000000000U | (quiet | payload) << 29 | 1);
        }
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
TEST_CASE_TEMPLATE_APPLY(random_floats, oracle::all_formats);

TEST_CASE_TEMPLATE_DEFINE("doubles that float would round onto a midpoint first are rounded once", To,
                          double_edges) {
    const oracle::format& f = oracle::format_of<To>;
    oracle::disagreements wrong;
    const std::uint64_t step = code_count(f) > 65536 ? 1 + max_finite_code(f) / 8000 : 1;
    for_every_edge(f, step, [&](bool negative, const oracle::dyadic& edge) {
        const std::uint64_t code = exact_code(oracle::binary64, negative, edge);
        oracle::compare_conversion<To, double>(wrong, code);
        oracle::compare_conversion<To, double>(wrong, code + 1);
        // 2^-30 and 2^-52 of the value, above and below.
        oracle::compare_conversion<To, double>(wrong, code + (std::uint64_t{1} << 22));
        if (magnitude_code(oracle::binary64, code) == 0) return;
        oracle::compare_conversion<To, double>(wrong, code - 1);
        oracle::compare_conversion<To, double>(wrong, code - (std::uint64_t{1} << 22));
    });
    INFO(wrong.first());
    CHECK(wrong.count == 0);
    CHECK(mp::half(1 + 0x1p-11 + 0x1p-30).bits() == 0x3c01);
    CHECK(mp::bfloat16(1 + 0x1p-8 + 0x1p-40).bits() == 0x3f81);
}
TEST_CASE_TEMPLATE_APPLY(double_edges, oracle::all_formats);

TEST_CASE_TEMPLATE("long doubles beside every midpoint are rounded once", To, mp::half, mp::bfloat16,
                   mp::float8_e4m3fn, mp::float8_e5m2, float, double) {
    const oracle::format& f = oracle::format_of<To>;
    constexpr int digits = std::numeric_limits<long double>::digits < 64 ? 53 : 64;
    oracle::disagreements wrong;
    const auto compare_long = [&](bool negative, std::uint64_t significand, int exponent) {
        const long double magnitude = std::ldexp(static_cast<long double>(significand), exponent);
        const long double x = negative ? -magnitude : magnitude;
        const oracle::exact_result exact = exact_from_dyadic(f, negative, {significand, exponent});
        oracle::compare_in_every_projection<To>(
            wrong, exact, [&](mp::projection p) { return mp::round_to<To>(x, p); }, "from long double",
            significand, exponent);
        const oracle::outcome expected = finish(f, exact, oracle::mode::nearest_even, oracle::saturate::none);
        if (!matches(f, expected, oracle::code_of(static_cast<To>(x))))
            wrong.add("cast", significand, exponent);
    };
    for_every_edge(f, 1 + max_finite_code(f) / 2000, [&](bool negative, const oracle::dyadic& edge) {
        const std::uint64_t significand = edge.significand.low_bits();
        if (significand == 0) return;
        const int shift = digits - edge.significand.bit_length();
        compare_long(negative, significand << shift, edge.exponent - shift);
        compare_long(negative, (significand << shift) + 1, edge.exponent - shift);
        compare_long(negative, ((significand << shift) - 1), edge.exponent - shift);
    });
    oracle::random_bits random(32);
    const int lowest = std::numeric_limits<long double>::min_exponent - digits;
    const auto range =
        static_cast<std::uint32_t>(std::numeric_limits<long double>::max_exponent - digits - lowest);
    for (int i = 0; i < 2000; ++i) {
        const int exponent = i % 2 == 0 ? lowest + static_cast<int>(random.below(range))
                                        : static_cast<int>(random.below(80)) - 120;
        compare_long(random.below(2) == 0, random.next() >> (64 - digits), exponent);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE_DEFINE("special long doubles become the specials of the format", To,
                          long_double_specials) {
    const oracle::format& f = oracle::format_of<To>;
    using wide = std::numeric_limits<long double>;
    oracle::disagreements wrong;
    for (const bool negative : {false, true}) {
        const long double sign = negative ? -1 : 1;
        const auto compare_special = [&](const oracle::exact_result& exact, long double x) {
            oracle::compare_in_every_projection<To>(
                wrong, exact, [&](mp::projection p) { return mp::round_to<To>(x, p); },
                static_cast<double>(x));
        };
        compare_special(oracle::exact_infinity(negative), sign * wide::infinity());
        compare_special(oracle::exact_zero(negative, false), sign * 0.0L);
        compare_special(exact_from_dyadic(f, negative, {1, 5000}), sign * wide::max());
        compare_special(exact_from_dyadic(f, negative, {1, -5000}), sign * wide::min());
        compare_special(exact_from_dyadic(f, negative, {1, -5000}), sign * wide::denorm_min());
        const long double nan = std::copysign(wide::quiet_NaN(), sign);
        compare_special(oracle::exact_nan(), nan);
        // The only NaN of formats without minus zero has the sign bit set.
        const bool sign_is_nan = f.nans == oracle::nan_codes::negative_zero;
        CHECK(mp::signbit(To(nan)) == (sign_is_nan || (negative && keeps_nan_sign(oracle::binary64, f))));
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
TEST_CASE_TEMPLATE_APPLY(long_double_specials, oracle::all_formats);

TEST_CASE("double to float and float to double follow the projection as well") {
    oracle::disagreements wrong;
    oracle::random_bits random(33);
    for (int i = 0; i < 100000; ++i) {
        oracle::compare_conversion<float, double>(wrong, weighted_code(random, oracle::binary64));
        const std::uint64_t exponent = 1023 - 155 + random.below(290);
        oracle::compare_conversion<float, double>(wrong,
                                                  (random.next() & 0x800fffffe0000001U) | exponent << 52);
        oracle::compare_conversion<double, float>(wrong, weighted_code(random, oracle::binary32));
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
