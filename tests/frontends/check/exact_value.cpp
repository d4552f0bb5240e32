// SPDX-License-Identifier: MIT
#include <mp/frontends/check/exact_value.hpp>

#include <doctest/doctest.h>
#include <algorithm>
#include <limits>

#include "oracle/library.hpp"

namespace {

namespace bmp = boost::multiprecision;

/// 2^exponent; not a shifted 1, about which g++ 12 warns from inside Boost.
bmp::cpp_int power_of_two(int exponent) {
    return pow(bmp::cpp_int(2), static_cast<unsigned>(exponent));
}

bmp::cpp_rational by_definition(const oracle::format& f, std::uint64_t code) {
    const oracle::dyadic value = value_of_magnitude(f, magnitude_code(f, code));
    const bmp::cpp_int scale = power_of_two(std::abs(value.exponent));
    const bmp::cpp_int significand = value.significand.low_bits();
    // Numerator and denominator at once: Boost 1.81 returns 1 for the rational 1 divided by an integer.
    const bmp::cpp_rational result = value.exponent < 0
                                         ? bmp::cpp_rational(significand, scale)
                                         : bmp::cpp_rational(bmp::cpp_int(significand * scale));
    return is_negative(f, code) ? bmp::cpp_rational(-result) : result;
}

}  // namespace

TEST_CASE_TEMPLATE("every number becomes a rational and a real of exactly its value", Value, mp::half,
                   mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2, float, double) {
    const oracle::format& f = oracle::format_of<Value>;
    const int bits = 1 + f.exponent_bits + f.fraction_bits;
    long wrong = 0;
    // All codes of 8 bits, every seventh of 16, and as many spread over all of the wider ones.
    for (std::uint64_t i = 0; i < std::uint64_t{1} << std::min(bits, 16); i += bits == 8 ? 1 : 7) {
        const std::uint64_t code = bits <= 16 ? i : (i << (bits - 16)) + i * 0x9e3779b9 % 997;
        if (!is_finite(f, code)) continue;
        const Value x = oracle::value_of<Value>(code);
        const bmp::cpp_rational expected = by_definition(f, code);
        const auto real = mp::to_exact<mp::reference_real>(x);
        if (mp::to_exact<bmp::cpp_rational>(x) != expected) ++wrong;
        if (bmp::cpp_rational(real) != expected) ++wrong;
        if ((signbit(real) != 0) != is_negative(f, code)) ++wrong;
    }
    CHECK(wrong == 0);
}

TEST_CASE("specials become the specials of a real and are refused by rationals and integers") {
    const auto infinity = std::numeric_limits<mp::half>::infinity();
    CHECK(isinf(mp::to_exact<mp::reference_real>(infinity)));
    CHECK(mp::to_exact<mp::reference_real>(-infinity) < 0);
    CHECK(isnan(mp::to_exact<mp::reference_real>(std::numeric_limits<mp::half>::quiet_NaN())));
    CHECK_THROWS_WITH_AS(static_cast<void>(mp::to_exact<bmp::cpp_rational>(infinity)),
                         "mp::to_exact: x is inf; it must be finite for a type without infinity and NaN",
                         mp::argument_error);
    CHECK_THROWS_AS(static_cast<void>(mp::to_exact<bmp::cpp_int>(std::numeric_limits<float>::quiet_NaN())),
                    mp::argument_error);
    CHECK(mp::to_exact<bmp::cpp_int>(mp::bfloat16(-1024.0f)) == -1024);
    CHECK(mp::to_exact<bmp::cpp_int>(0x1p100) == power_of_two(100));
    CHECK(mp::to_exact<bmp::cpp_int>(mp::half(-0.0f)) == 0);
    CHECK_THROWS_WITH_AS(static_cast<void>(mp::to_exact<bmp::cpp_int>(mp::half(2.5f))),
                         "mp::to_exact: x is 2.5; it must be an integer for an integer type",
                         mp::argument_error);
}
