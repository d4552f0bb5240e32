// SPDX-License-Identifier: MIT
#include <mp/frontends/check/error_report.hpp>

#include <doctest/doctest.h>
#include <limits>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

namespace bmp = boost::multiprecision;

/// 2^exponent; not a shifted 1, about which g++ 12 warns from inside Boost.
bmp::cpp_int power_of_two(int exponent) {
    return pow(bmp::cpp_int(2), static_cast<unsigned>(exponent));
}

template <class Value>
constexpr Value from_bits(std::uint32_t bits) {
    return Value::from_bits(static_cast<typename Value::storage>(bits));
}

}  // namespace

TEST_CASE("the ulp is the gap in the binade of the reference") {
    const auto one = mp::half(1.0f);
    const auto next = from_bits<mp::half>(0x3c01);
    CHECK(mp::ulp_distance(one, bmp::cpp_rational(1)) == 0);
    CHECK(mp::ulp_distance(next, bmp::cpp_rational(1)) == 1);
    CHECK(mp::ulp_distance(one, bmp::cpp_rational(2049, 2048)) == 0.5);
    // Just below one the gap is half as wide.
    CHECK(mp::ulp_distance(one, bmp::cpp_rational(4095, 4096)) == 0.5);
    CHECK(mp::ulp_distance(one, bmp::cpp_int(0)) == 0x1p24);
    CHECK(mp::ulp_distance(from_bits<mp::half>(0x3bff), bmp::cpp_int(1)) == 0.5);
    CHECK(mp::ulp_distance(mp::half(-1.0f), bmp::cpp_int(1)) == 2048);
    CHECK(mp::ulp_distance(mp::bfloat16(3.0f), mp::reference_real(3) + ldexp(mp::reference_real(1), -40)) ==
          0x1p-34);
    CHECK(mp::ulp_distance(1.0f, 1 + 0x1p-30) == 0x1p-7);
    CHECK(mp::ulp_distance(1.0, bmp::cpp_rational(1) + bmp::cpp_rational(1, power_of_two(60))) == 0x1p-8);
}

TEST_CASE("among subnormal numbers and at zero the ulp is the smallest subnormal") {
    const auto smallest = from_bits<mp::half>(1);
    CHECK(mp::ulp_distance(smallest, bmp::cpp_int(0)) == 1);
    CHECK(mp::ulp_distance(mp::half(0.0f), mp::to_exact<bmp::cpp_rational>(smallest) / 3) == 1.0 / 3);
    CHECK(mp::ulp_distance(from_bits<mp::half>(0x0400),
                           mp::to_exact<bmp::cpp_rational>(from_bits<mp::half>(0x03fe))) == 2);
    CHECK(mp::ulp_distance(from_bits<mp::half>(0x8001), mp::to_exact<bmp::cpp_rational>(smallest)) == 2);
    // A reference far below the format.
    CHECK(mp::ulp_distance(smallest, ldexp(mp::reference_real(1), -90000)) == 1);
}

TEST_CASE("out of range the distance is zero for the rounded reference and infinite otherwise") {
    const double infinite = std::numeric_limits<double>::infinity();
    using limits = std::numeric_limits<mp::half>;
    CHECK(mp::ulp_distance(limits::infinity(), bmp::cpp_int(65520)) == 0);
    CHECK(mp::ulp_distance(limits::infinity(), bmp::cpp_int(65519)) == infinite);
    CHECK(mp::ulp_distance(-limits::infinity(), bmp::cpp_int(70000)) == infinite);
    CHECK(mp::ulp_distance(limits::max(), bmp::cpp_int(65536)) == 1);
    CHECK(mp::ulp_distance(limits::max(), std::numeric_limits<double>::infinity()) == infinite);
    CHECK(mp::ulp_distance(limits::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()) == 0);
    CHECK(mp::ulp_distance(limits::quiet_NaN(), bmp::cpp_int(1)) == infinite);
    CHECK(mp::ulp_distance(limits::max(), std::numeric_limits<double>::quiet_NaN()) == infinite);
    CHECK(mp::ulp_distance(std::numeric_limits<mp::float8_e4m3fn>::quiet_NaN(), bmp::cpp_int(1000)) == 0);
    CHECK(mp::ulp_distance(limits::max(), ldexp(mp::reference_real(1), 90000)) == infinite);
}

TEST_CASE_TEMPLATE("a correctly rounded result is half an ulp away at most, a directed one less than one",
                   Value, mp::half, mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2, float) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::random_bits random(4);
    for (int i = 0; i < 3000; ++i) {
        const std::uint64_t a = weighted_code(random, f);
        const std::uint64_t b = weighted_partner(random, f, a);
        if (!is_finite(f, a) || !is_finite(f, b) || is_zero(f, b)) continue;
        const bmp::cpp_rational quotient = mp::to_exact<bmp::cpp_rational>(oracle::value_of<Value>(a)) /
                                           mp::to_exact<bmp::cpp_rational>(oracle::value_of<Value>(b));
        const auto nearest = mp::round_to_format<Value>(quotient);
        if (mp::isfinite(nearest)) REQUIRE(mp::ulp_distance(nearest, quotient) <= 0.5);
        const auto down = mp::round_to_format<Value>(quotient, {.round = mp::rounding::downward});
        const auto up = mp::round_to_format<Value>(quotient, {.round = mp::rounding::upward});
        if (mp::isfinite(down) && mp::isfinite(up)) {
            const double both = mp::ulp_distance(down, quotient) + mp::ulp_distance(up, quotient);
            const bool exact = mp::to_exact<bmp::cpp_rational>(down) == quotient;
            REQUIRE(both == doctest::Approx(exact ? 0.0 : 1.0).epsilon(1e-12));
        }
    }
}

TEST_CASE("steps between numbers count codes across zero and up to infinity") {
    static_assert(mp::ulps_between(mp::half(1.0f), mp::half(1.0f)) == 0);
    static_assert(mp::ulps_between(mp::half(0.0f), mp::half(-0.0f)) == 0);
    static_assert(mp::ulps_between(mp::half(1.0f), mp::half(2.0f)) == 1024);
    static_assert(mp::ulps_between(mp::half(2.0f), mp::half(1.0f)) == 1024);
    static_assert(mp::ulps_between(from_bits<mp::half>(0x0001), from_bits<mp::half>(0x8001)) == 2);
    using limits = std::numeric_limits<mp::half>;
    CHECK(mp::ulps_between(limits::max(), limits::infinity()) == 1);
    CHECK(mp::ulps_between(limits::lowest(), limits::max()) == 2 * 0x7bff);
    CHECK(mp::ulps_between(limits::quiet_NaN(), -limits::quiet_NaN()) == 0);
    CHECK(mp::ulps_between(limits::quiet_NaN(), limits::max()) == std::numeric_limits<std::uint64_t>::max());
    CHECK(mp::ulps_between(1.0f, 1.0f + std::numeric_limits<float>::epsilon()) == 1);
    CHECK(mp::ulps_between(-std::numeric_limits<double>::max(), std::numeric_limits<double>::max()) ==
          2 * 0x7fefffffffffffffU);
}
