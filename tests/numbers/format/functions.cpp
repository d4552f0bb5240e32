// SPDX-License-Identifier: MIT
// Remainders, whole numbers, minima and maxima, neighbours, exponents: every code of small formats and of
// half, compared with the definitions in double (which holds these numbers exactly) or in Boost's integers.
#include <boost/multiprecision/cpp_int.hpp>

#include <doctest/doctest.h>
#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>
#include <cstdint>
#include <vector>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

using boost::multiprecision::cpp_int;
using oracle::format;

/// The value of a code, for formats whose numbers are doubles.
double value_in_double(const format& f, std::uint64_t code) {
    const oracle::dyadic x = value_of_magnitude(f, magnitude_code(f, code));
    const double magnitude = std::ldexp(static_cast<double>(x.significand.low_bits()), x.exponent);
    return is_negative(f, code) ? -magnitude : magnitude;
}

/// A double rounded to a format in a mode, a zero keeping its sign.
oracle::outcome rounded(const format& f, double x, oracle::mode m) {
    return finish(f, convert(oracle::binary64, std::bit_cast<std::uint64_t>(x), f), m,
                  oracle::saturate::none);
}

double whole_number(double x, oracle::mode m) {
    const double below = std::floor(x);
    const double above = std::ceil(x);
    const double fraction = x - below;
    double result = below;
    const bool below_is_odd = std::fmod(below, 2) != 0;
    switch (m) {
        case oracle::mode::nearest_even:
            result = fraction > .5 || (fraction == .5 && below_is_odd) ? above : below;
            break;
        case oracle::mode::nearest_away:
            result = fraction > .5 || (fraction == .5 && x > 0) ? above : below;
            break;
        case oracle::mode::toward_zero:
            result = x < 0 ? above : below;
            break;
        case oracle::mode::upward:
            result = above;
            break;
        case oracle::mode::downward:
            result = below;
            break;
        case oracle::mode::to_odd:
            result = below == above || below_is_odd ? below : above;
            break;
    }
    return std::copysign(result, x);
}

/// Codes in the order of their values, NaNs left out.
template <class Value>
std::vector<Value> numbers_in_order() {
    const format& f = oracle::format_of<Value>;
    std::vector<Value> result;
    if (f.is_signed) {
        for (std::uint64_t m = magnitude_count(f); m-- > 0;) {
            const std::uint64_t code = m | sign_bit(f);
            if (!is_nan(f, code)) result.push_back(oracle::value_of<Value>(code));
        }
    }
    for (std::uint64_t m = 0; m < magnitude_count(f); ++m) {
        if (!is_nan(f, m)) result.push_back(oracle::value_of<Value>(m));
    }
    return result;
}

template <class Value>
void compare_remainders(oracle::disagreements& wrong, std::uint64_t i, std::uint64_t j) {
    const format& f = oracle::format_of<Value>;
    const Value a = oracle::value_of<Value>(i);
    const Value b = oracle::value_of<Value>(j);
    mp::environment env;
    const Value ieee = mp::remainder(a, b, env);
    const Value truncated = mp::fmod(a, b);
    if (mp::remainder(a, b).bits() != ieee.bits()) wrong.add("remainder with and without flags", i, j);
    if (is_nan(f, i) || is_nan(f, j) || is_infinite(f, i) || is_zero(f, j)) {
        const bool signaling = is_signaling(f, i) || is_signaling(f, j);
        const bool nan_operand = is_nan(f, i) || is_nan(f, j);
        const unsigned flags = signaling || !nan_operand ? 16 : 0;
        const bool right =
            f.nans == oracle::nan_codes::none || (is_nan(f, ieee.bits()) && is_nan(f, truncated.bits()));
        if (!right || env.raised.to_unsigned() != flags) wrong.add("invalid remainder", i, j, +ieee.bits());
        return;
    }
    if (is_infinite(f, j) || is_zero(f, i)) {
        if (ieee.bits() != i || truncated.bits() != i) wrong.add("trivial remainder", i, j, +ieee.bits());
        return;
    }
    const oracle::dyadic x = value_of_magnitude(f, magnitude_code(f, i));
    const oracle::dyadic y = value_of_magnitude(f, magnitude_code(f, j));
    const int exponent = std::min(x.exponent, y.exponent);
    const cpp_int large = cpp_int(x.significand.low_bits()) << (x.exponent - exponent);
    const cpp_int small = cpp_int(y.significand.low_bits()) << (y.exponent - exponent);
    const cpp_int quotient = large / small;
    const cpp_int rest = large % small;
    const bool up = 2 * rest > small || (2 * rest == small && (quotient & 1) != 0);
    const auto expect = [&](const cpp_int& magnitude, bool negative) {
        const oracle::natural significand(static_cast<std::uint64_t>(magnitude));
        return finish(f, exact_from_dyadic(f, negative, {significand, exponent}), oracle::mode::nearest_even,
                      oracle::saturate::none);
    };
    const bool negative = is_negative(f, i);
    const oracle::outcome expected = up ? expect(small - rest, !negative) : expect(rest, negative);
    if (!matches(f, expected, ieee.bits())) wrong.add("remainder", i, j, +ieee.bits(), expected.code);
    if (!matches(f, expect(rest, negative), truncated.bits())) wrong.add("fmod", i, j, +truncated.bits());
}

}  // namespace

TEST_CASE_TEMPLATE_DEFINE("remainders of all pairs of a small format are exact", Value, all_remainders) {
    oracle::disagreements wrong;
    const std::uint64_t count = code_count(oracle::format_of<Value>);
    for (std::uint64_t i = 0; i < count; ++i) {
        for (std::uint64_t j = 0; j < count; ++j) compare_remainders<Value>(wrong, i, j);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
TEST_CASE_TEMPLATE_APPLY(all_remainders, oracle::small_formats);

TEST_CASE_TEMPLATE("remainders of larger formats are exact, from 1 to 280 binary digits of quotient", Value,
                   mp::half, mp::bfloat16, mp::tfloat32) {
    oracle::disagreements wrong;
    oracle::random_bits random(501);
    const format& f = oracle::format_of<Value>;
    for (int n = 0; n < 60000; ++n) {
        const std::uint64_t i = weighted_code(random, f);
        compare_remainders<Value>(wrong, i, weighted_partner(random, f, i));
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("rounding to whole numbers is right for every code in every mode", Value, mp::half,
                   mp::float8_e4m3fn, mp::float8_e5m2, mp::float8_e3m4, mp::float8_e4m3fnuz,
                   mp::float8_e4m3b11fnuz, mp::float6_e2m3fn, mp::float6_e3m2fn, mp::float4_e2m1fn,
                   mp::p3109<8, 4>, mp::p3109<8, 7>) {
    const format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    for (std::uint64_t code = 0; code < code_count(f); ++code) {
        const Value x = oracle::value_of<Value>(code);
        if (is_nan(f, code)) {
            if (!mp::isnan(mp::rint(x)) || mp::round_to_integer<int>(x) != 0) wrong.add("NaN", code);
            continue;
        }
        if (is_infinite(f, code)) {
            if (mp::trunc(x).bits() != code) wrong.add("infinity", code);
            if (mp::round_to_integer<int>(x) != (is_negative(f, code) ? INT_MIN : INT_MAX))
                wrong.add("int", code);
            continue;
        }
        const double value = value_in_double(f, code);
        for (const oracle::mode m : oracle::modes) {
            const double whole = whole_number(value, m);
            mp::environment env{.project = {oracle::library_rounding(m)}};
            const Value y = mp::round_to_integral(x, env);
            if (!matches(f, rounded(f, whole, m), y.bits())) wrong.add(code, oracle::name_of(m), +y.bits());
            const bool beyond = std::fabs(whole) > value_in_double(f, max_finite_code(f));
            const unsigned flags = (whole != value ? 1 : 0) | (beyond ? 5 : 0);
            if (env.raised.to_unsigned() != flags) wrong.add("flags", code, oracle::name_of(m), flags);

            const auto compare_integer = [&]<class Integer>(Integer) {
                const double low = static_cast<double>(std::numeric_limits<Integer>::min());
                const double high = static_cast<double>(std::numeric_limits<Integer>::max());
                const bool fits = whole >= low && whole <= high;
                env.raised = {};
                const Integer n = mp::round_to_integer<Integer>(x, env);
                const double clamped = std::clamp(whole, low, high);
                const unsigned expected = !fits ? 16 : whole != value ? 1 : 0;
                if (static_cast<double>(n) != clamped || env.raised.to_unsigned() != expected) {
                    wrong.add("integer", code, oracle::name_of(m), static_cast<long>(n),
                              env.raised.to_unsigned());
                }
            };
            compare_integer(std::int8_t{});
            compare_integer(std::uint8_t{});
            compare_integer(std::int32_t{});
            compare_integer(std::uint32_t{});
        }
        const auto named = [&](Value y, oracle::mode m) {
            if (!matches(f, rounded(f, whole_number(value, m), m), y.bits())) wrong.add("named", code);
        };
        named(mp::rint(x), oracle::mode::nearest_even);
        named(mp::nearbyint(x), oracle::mode::nearest_even);
        named(mp::roundeven(x), oracle::mode::nearest_even);
        named(mp::round(x), oracle::mode::nearest_away);
        named(mp::trunc(x), oracle::mode::toward_zero);
        named(mp::ceil(x), oracle::mode::upward);
        named(mp::floor(x), oracle::mode::downward);
        Value whole{};
        const Value fraction = mp::modf(x, &whole);
        if (whole.bits() != mp::trunc(x).bits() ||
            !matches(f,
                     rounded(f, std::copysign(value - std::trunc(value), value), oracle::mode::nearest_even),
                     fraction.bits())) {
            wrong.add("modf", code, +fraction.bits());
        }
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE_DEFINE("neighbours and total order follow the order of the values", Value, neighbours) {
    const format& f = oracle::format_of<Value>;
    const std::vector<Value> numbers = numbers_in_order<Value>();
    const bool two_zeros = f.is_signed && f.has_zero && f.nans != oracle::nan_codes::negative_zero;
    oracle::disagreements wrong;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const Value x = numbers[i];
        // -0 and +0 stand side by side; the neighbour of either is the one beyond the other.
        std::size_t above = i + 1;
        if (above < numbers.size() && two_zeros && mp::is_zero(numbers[above])) ++above;
        if (two_zeros && mp::is_zero(x)) above = i + (mp::signbit(x) ? 2 : 1);
        const Value up = above < numbers.size() ? numbers[above] : x;
        const bool negative_subnormal_edge = mp::signbit(x) && above < numbers.size() && mp::is_zero(up);
        // The number above the largest negative one is -0 (IEEE 754, nextUp).
        const Value expected_up = negative_subnormal_edge && two_zeros ? numbers[i + 1] : up;
        if (mp::nextup(x).bits() != expected_up.bits()) wrong.add("nextup", +x.bits(), +mp::nextup(x).bits());
        if (f.is_signed && mp::nextdown(-x).bits() != (-mp::nextup(x)).bits())
            wrong.add("nextdown", +x.bits());
        if (!f.is_signed && i > 0 && mp::nextdown(x).bits() != numbers[i - 1].bits())
            wrong.add("down", +x.bits());
        if (i > 0) {
            if (!mp::total_order(numbers[i - 1], x) || mp::total_order(x, numbers[i - 1]))
                wrong.add("order", +x.bits());
        }
        if (!mp::total_order(x, x)) wrong.add("order of one", +x.bits());
    }
    for (std::uint64_t code = 0; code < code_count(f); ++code) {
        if (!is_nan(f, code)) continue;
        const Value nan = oracle::value_of<Value>(code);
        const bool has_sign = is_negative(f, code) && f.nans != oracle::nan_codes::negative_zero;
        const bool first = f.is_p3109 || has_sign;
        for (const Value x : {numbers.front(), numbers.back()}) {
            if (mp::total_order(nan, x) != first || mp::total_order(x, nan) == first) wrong.add("NaN", code);
        }
        if (!mp::isnan(mp::nextup(nan)) || !mp::isnan(mp::nextdown(nan))) wrong.add("neighbour of NaN", code);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
TEST_CASE_TEMPLATE_APPLY(neighbours, oracle::small_formats);

TEST_CASE_TEMPLATE_DEFINE("minima and maxima of all pairs are those of IEEE 754-2019", Value, minima) {
    const format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    // The position of each code in the order of the values, with -0 before +0.
    std::vector<int> rank(code_count(f), -1);
    int next = 0;
    for (const Value x : numbers_in_order<Value>()) rank[x.bits()] = next++;
    for (std::uint64_t i = 0; i < code_count(f); ++i) {
        for (std::uint64_t j = 0; j < code_count(f); ++j) {
            const Value a = oracle::value_of<Value>(i);
            const Value b = oracle::value_of<Value>(j);
            if (is_nan(f, i) || is_nan(f, j)) {
                mp::environment env;
                const Value number = mp::minimum_number(a, b, env);
                const bool signaling = is_signaling(f, i) || is_signaling(f, j);
                bool right = mp::isnan(mp::minimum(a, b)) && mp::isnan(mp::maximum(a, b)) &&
                             mp::isnan(mp::minimum_magnitude(a, b)) &&
                             mp::isnan(mp::maximum_magnitude(a, b)) &&
                             env.raised.test(mp::status_flag::invalid) == signaling;
                if (is_nan(f, i) && is_nan(f, j)) {
                    right = right && mp::isnan(number) && mp::isnan(mp::fmax(a, b));
                } else {
                    const std::uint64_t other = is_nan(f, i) ? j : i;
                    right = right && number.bits() == other && mp::maximum_number(a, b).bits() == other &&
                            mp::fmin(a, b).bits() == other && mp::fmax(a, b).bits() == other &&
                            mp::minimum_magnitude_number(a, b).bits() == other &&
                            mp::maximum_magnitude_number(a, b).bits() == other;
                }
                if (!right) wrong.add("NaN", i, j);
                continue;
            }
            const std::uint64_t smaller = rank[i] < rank[j] ? i : j;
            const std::uint64_t larger = rank[i] < rank[j] ? j : i;
            const std::uint64_t mi = magnitude_code(f, i);
            const std::uint64_t mj = magnitude_code(f, j);
            const std::uint64_t nearer = mi == mj ? smaller : mi < mj ? i : j;
            const std::uint64_t farther = mi == mj ? larger : mi < mj ? j : i;
            const bool right = mp::minimum(a, b).bits() == smaller && mp::maximum(a, b).bits() == larger &&
                               mp::minimum_number(a, b).bits() == smaller &&
                               mp::maximum_number(a, b).bits() == larger &&
                               mp::minimum_magnitude(a, b).bits() == nearer &&
                               mp::maximum_magnitude(a, b).bits() == farther &&
                               mp::minimum_magnitude_number(a, b).bits() == nearer &&
                               mp::maximum_magnitude_number(a, b).bits() == farther;
            if (!right) wrong.add("min or max", i, j);
        }
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
TEST_CASE_TEMPLATE_APPLY(minima, oracle::small_formats);

TEST_CASE_TEMPLATE("scaling and exponents are exact, or rounded once", Value, mp::half, mp::bfloat16,
                   mp::tfloat32, mp::float8_e4m3fn, mp::float8_e5m2fnuz, mp::float6_e3m2fn, mp::p3109<8, 3>) {
    const format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    const std::uint64_t stride = code_count(f) > 70000 ? 7 : 1;
    for (std::uint64_t code = 0; code < code_count(f); code += stride) {
        const Value x = oracle::value_of<Value>(code);
        int exponent = 99;
        const Value fraction = mp::frexp(x, &exponent);
        if (!is_finite(f, code) || is_zero(f, code)) {
            if (mp::scalbn(x, 3).bits() != code && !is_nan(f, code)) wrong.add("scalbn of a special", code);
            if (exponent != 0) wrong.add("frexp of a special", code);
            mp::environment env;
            const Value log = mp::logb(x, env);
            if (is_zero(f, code)) {
                if (mp::ilogb(x) != INT_MIN || env.raised.to_unsigned() != 8) wrong.add("logb of zero", code);
                if (f.has_infinity && log.bits() != (-std::numeric_limits<Value>::infinity()).bits())
                    wrong.add("log", code);
            } else if (mp::ilogb(x) != INT_MAX) {
                wrong.add("ilogb", code);
            }
            continue;
        }
        const oracle::dyadic value = value_of_magnitude(f, magnitude_code(f, code));
        const int log2 = value.significand.bit_length() - 1 + value.exponent;
        if (mp::ilogb(x) != log2) wrong.add("ilogb", code, mp::ilogb(x));
        if (mp::logb(x).bits() != Value(log2).bits()) wrong.add("logb", code);
        if (exponent != log2 + 1 || mp::scalbn(fraction, exponent).bits() != code) wrong.add("frexp", code);
        for (const int n : {-300, -30, -7, -1, 0, 1, 5, 30, 300, INT_MIN, INT_MAX}) {
            const int limited = std::clamp(n, -5000, 5000);
            oracle::compare_in_every_projection<Value>(
                wrong,
                exact_from_dyadic(f, is_negative(f, code), {value.significand, value.exponent + limited}),
                [&](mp::projection p) { return mp::scalbn(x, n, p); }, "scalbn", code, n);
        }
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("quiet comparisons raise invalid for signalling NaNs only, signalling ones for all") {
    const auto quiet = mp::half::from_bits(0x7e00);
    const auto signaling = mp::half::from_bits(0x7d00);
    const mp::half one(1.0f);
    mp::environment env;
    CHECK((mp::compare_quiet(one, quiet, env) == std::partial_ordering::unordered));
    CHECK_FALSE(env.raised.any());
    CHECK((mp::compare_quiet(one, signaling, env) == std::partial_ordering::unordered));
    CHECK(env.raised.test(mp::status_flag::invalid));
    env.raised = {};
    CHECK((mp::compare_signaling(quiet, one, env) == std::partial_ordering::unordered));
    CHECK(env.raised.test(mp::status_flag::invalid));
    env.raised = {};
    CHECK((mp::compare_signaling(-one, one, env) == std::partial_ordering::less));
    CHECK_FALSE(env.raised.any());
}

TEST_CASE("the compiler's own types convert exactly") {
#if MP_HAS_COMPILER_BINARY16
    using binary16 = mp::detail::compiler_binary16;
    for (std::uint32_t code = 0; code < 0x10000; ++code) {
        const auto x = mp::half::from_bits(static_cast<std::uint16_t>(code));
        const bool signaling = mp::is_signaling(x);
        const auto y = static_cast<binary16>(x);
        REQUIRE(std::bit_cast<std::uint16_t>(y) == (signaling ? code | 0x200 : code));
        REQUIRE(mp::half(y).bits() == (signaling ? code | 0x200 : code));
    }
#endif
#if MP_HAS_COMPILER_BINARY128
    using binary128 = mp::detail::compiler_binary128;
    oracle::random_bits random(502);
    for (int n = 0; n < 20000; ++n) {
        const std::uint64_t code = weighted_code(random, oracle::binary64);
        const double x = oracle::value_of<double>(code);
        REQUIRE(mp::bfloat16(static_cast<binary128>(x)).bits() == mp::bfloat16(x).bits());
        if (!is_nan(oracle::binary64, code)) {
            REQUIRE(oracle::code_of(mp::round_to<double>(static_cast<binary128>(x))) == code);
        }
    }
    // A tail that double cannot see decides a tie.
    const binary128 tie = 1 + static_cast<binary128>(0x1p-11) + static_cast<binary128>(0x1p-100);
    CHECK(mp::half(tie).bits() == 0x3c01);
    CHECK(mp::half(tie - static_cast<binary128>(0x1p-99)).bits() == 0x3c00);
#endif
}
