// SPDX-License-Identifier: MIT
// Comparisons, classification, neighbours and hashes, against the values that the oracle gives to the codes.
#include <doctest/doctest.h>
#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <unordered_set>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

/// The order of two codes by their exact values.
std::partial_ordering exact_order(const oracle::format& f, std::uint64_t a, std::uint64_t b) {
    if (is_nan(f, a) || is_nan(f, b)) return std::partial_ordering::unordered;
    if (is_zero(f, a) && is_zero(f, b)) return std::partial_ordering::equivalent;
    if (is_negative(f, a) != is_negative(f, b)) {
        return is_negative(f, a) ? std::partial_ordering::less : std::partial_ordering::greater;
    }
    // value_of_magnitude gives infinity the value of the first number out of range, which is in the right
    // place.
    const auto order =
        compare(value_of_magnitude(f, magnitude_code(f, a)), value_of_magnitude(f, magnitude_code(f, b)));
    if (order == 0) return std::partial_ordering::equivalent;
    return (order < 0) != is_negative(f, a) ? std::partial_ordering::less : std::partial_ordering::greater;
}

template <class Value>
void compare_pair(oracle::disagreements& wrong, std::uint64_t i, std::uint64_t j) {
    const Value a = oracle::value_of<Value>(i);
    const Value b = oracle::value_of<Value>(j);
    const std::partial_ordering order = exact_order(oracle::format_of<Value>, i, j);
    const bool right = (a == b) == (order == 0) && (a != b) == (order != 0) && (a < b) == (order < 0) &&
                       (a > b) == (order > 0) && (a <= b) == (order <= 0) && (a >= b) == (order >= 0) &&
                       (a <=> b) == order &&
                       mp::isunordered(a, b) == (order == std::partial_ordering::unordered);
    if (!right) wrong.add(i, j);
    if (a == b && std::hash<Value>{}(a) != std::hash<Value>{}(b)) wrong.add("hash", i, j);
}

template <class Value>
void classify(oracle::disagreements& wrong, std::uint64_t code) {
    const oracle::format& f = oracle::format_of<Value>;
    const Value x = oracle::value_of<Value>(code);
    const bool finite = is_finite(f, code);
    const bool right = mp::isnan(x) == is_nan(f, code) && mp::isinf(x) == is_infinite(f, code) &&
                       mp::isfinite(x) == finite && mp::signbit(x) == is_negative(f, code) &&
                       mp::isnormal(x) == (finite && !is_zero(f, code) && !is_subnormal(f, code));
    if (!right) wrong.add("classification of", code);
}

}  // namespace

TEST_CASE_TEMPLATE_DEFINE("all pairs of a small format compare as their values do", Value, small_pairs) {
    oracle::disagreements wrong;
    const std::uint64_t count = code_count(oracle::format_of<Value>);
    for (std::uint64_t i = 0; i < count; ++i) {
        for (std::uint64_t j = 0; j < count; ++j) compare_pair<Value>(wrong, i, j);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
TEST_CASE_TEMPLATE_APPLY(small_pairs, oracle::small_formats);

TEST_CASE_TEMPLATE("pairs of a 16-bit format compare as their values do", Value, mp::half, mp::bfloat16) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    oracle::random_bits random(51);
    for (int n = 0; n < 300000; ++n) {
        const std::uint64_t i = weighted_code(random, f);
        const std::uint64_t j =
            n % 4 == 0 ? i ^ random.below(2) ^ (random.below(2) << 15) : weighted_partner(random, f, i);
        compare_pair<Value>(wrong, i, j);
    }
    for (std::uint64_t code = 0; code + 1 < 1U << 16; ++code) {
        compare_pair<Value>(wrong, code, code);
        compare_pair<Value>(wrong, code, code + 1);
        compare_pair<Value>(wrong, code + 1, code);
        compare_pair<Value>(wrong, code, code ^ 0x8000U);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE_DEFINE("all codes are classified by the definition of the format", Value, classified) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    for (std::uint64_t code = 0; code < code_count(f); ++code) {
        classify<Value>(wrong, code);
        const Value x = oracle::value_of<Value>(code);
        // The NaN that has the code of minus zero has no sign to change.
        if (f.nans == oracle::nan_codes::negative_zero && is_nan(f, code)) {
            if (mp::fabs(x).bits() != code || mp::copysign(x, Value(-1.0f)).bits() != code)
                wrong.add("NaN", code);
            continue;
        }
        const bool zero_without_sign = f.nans == oracle::nan_codes::negative_zero && code == 0;
        if (mp::fabs(x).bits() != magnitude_code(f, code)) wrong.add("fabs", code);
        // Without signs -1 is NaN, which P3109 hands on.
        const bool has_no_sign = f.is_p3109 && !f.is_signed;
        if (mp::copysign(x, Value(-1.0f)).bits() != (has_no_sign         ? some_nan_code(f)
                                                     : zero_without_sign ? 0
                                                                         : code | sign_bit(f)))
            wrong.add("copysign", code);
        if (mp::copysign(x, Value(0.0f)).bits() != magnitude_code(f, code)) wrong.add("copysign", code);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
TEST_CASE_TEMPLATE_APPLY(classified, oracle::all_formats);

TEST_CASE("floats and doubles are classified as well") {
    oracle::disagreements wrong;
    oracle::random_bits random(52);
    for (int n = 0; n < 100000; ++n) {
        classify<float>(wrong, weighted_code(random, oracle::binary32));
        classify<double>(wrong, weighted_code(random, oracle::binary64));
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("nextafter goes to the neighbouring code", Value, mp::half, mp::bfloat16,
                   mp::float8_e4m3fn, mp::float8_e5m2) {
    const oracle::format& f = oracle::format_of<Value>;
    using limits = std::numeric_limits<Value>;
    const Value top = limits::has_infinity ? limits::infinity() : limits::max();
    oracle::disagreements wrong;
    for (std::uint64_t code = 0; code < 2 * sign_bit(f); ++code) {
        const Value x = oracle::value_of<Value>(code);
        const Value up = mp::nextafter(x, top);
        const Value down = mp::nextafter(x, -top);
        if (mp::isnan(x)) {
            if (!mp::isnan(up) || !mp::isnan(mp::nextafter(top, x))) wrong.add("NaN", code);
            continue;
        }
        if (x == top ? up.bits() != top.bits() : !(up > x)) wrong.add("up from", code);
        if (x == -top ? down.bits() != (-top).bits() : !(down < x)) wrong.add("down from", code);
        // No number lies between.
        if (x != top && !is_zero(f, code) && mp::nextafter(up, x) != x) wrong.add("up and back from", code);
        if (is_zero(f, code) && (up.bits() != 1 || down.bits() != (sign_bit(f) | 1)))
            wrong.add("from zero", code);
        // Equal arguments give the second one, of zeros too.
        if (mp::nextafter(x, x).bits() != x.bits()) wrong.add("itself", code);
    }
    CHECK(mp::nextafter(Value(0.0f), Value(-0.0f)).bits() == sign_bit(f));
    CHECK(mp::nextafter(limits::denorm_min(), Value(-1.0f)).bits() == 0);
    CHECK(mp::nextafter(-limits::denorm_min(), Value(1.0f)).bits() == sign_bit(f));
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("hashes are equal for equal numbers and mostly different for others", Value, mp::half,
                   mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2) {
    const oracle::format& f = oracle::format_of<Value>;
    CHECK(std::hash<Value>{}(Value(0.0f)) == std::hash<Value>{}(Value(-0.0f)));
    std::unordered_set<std::size_t> hashes;
    for (std::uint64_t code = 0; code < 2 * sign_bit(f); ++code)
        hashes.insert(std::hash<Value>{}(oracle::value_of<Value>(code)));
    CHECK(hashes.size() >= 2 * sign_bit(f) - 1 - (2 * sign_bit(f)) / 100);
    std::unordered_set<Value> values = {Value(1.0f), Value(0.0f), Value(-0.0f), Value(1.0f)};
    CHECK(values.size() == 2);
}

TEST_CASE("comparisons with flags take subnormal operands for zeros where the environment does") {
    const auto tiny = std::numeric_limits<mp::half>::denorm_min();
    const mp::half zero(0.0f);
    mp::environment gradual;
    mp::environment flushed{.subnormals = mp::subnormal_handling::flush_all};
    CHECK((mp::compare_quiet(tiny, zero, gradual) == std::partial_ordering::greater));
    CHECK((mp::compare_quiet(tiny, zero, flushed) == std::partial_ordering::equivalent));
    CHECK((mp::compare_quiet(zero, tiny, flushed) == std::partial_ordering::equivalent));
    CHECK((mp::compare_signaling(-tiny, tiny, gradual) == std::partial_ordering::less));
    CHECK((mp::compare_signaling(-tiny, tiny, flushed) == std::partial_ordering::equivalent));
}
