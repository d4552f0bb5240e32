// SPDX-License-Identifier: MIT
#include <mp/frontends/check/error_report.hpp>

#include <doctest/doctest.h>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "oracle/library.hpp"

namespace bmp = boost::multiprecision;

TEST_CASE("an error report counts and measures what was put in") {
    const double infinity = std::numeric_limits<double>::infinity();
    const std::vector<mp::half> computed = {mp::half(1.0f), mp::half(2.0f),     mp::half::from_bits(0x3c02),
                                            mp::half(0.0f), mp::half(infinity), mp::half(-4.0f)};
    const std::vector<bmp::cpp_rational> references = {
        1,                              // exact
        bmp::cpp_rational(2001, 1000),  // correctly rounded, 0.001 off, 0.512 ulp of 2^-9
        1,                              // two ulps off
        bmp::cpp_rational(1, 1 << 26),  // rounds to zero, a quarter of the smallest subnormal off
        100000,                         // overflows, as it should
        -4,
    };
    const mp::error_summary s = mp::error_report(computed, references);
    CHECK(s.format == "half");
    CHECK(s.count == 6);
    CHECK(s.exact == 2);
    CHECK(s.not_finite_mismatches == 0);
    CHECK(s.max_ulp == 2);
    CHECK(s.worst_index == 2);
    CHECK(s.worst_computed == 1 + 0x1p-9);
    CHECK(s.worst_reference == 1);
    CHECK(s.max_relative == 1);
    CHECK(s.max_absolute == 0x1p-9);
    CHECK(s.mean_ulp == doctest::Approx((0.512 + 2 + 0.25) / 5));
    CHECK(s.mean_absolute == doctest::Approx((0.001 + 0x1p-9 + 0x1p-26) / 5));
    CHECK(s.mean_relative == doctest::Approx((0.001 / 2.001 + 0x1p-9 + 1) / 5));
    // 2.001 is nearer to the next half, 2 + 2^-9.
    CHECK(s.correctly_rounded == 4);
}

TEST_CASE("not-finite mismatches are counted and shown first") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double infinity = std::numeric_limits<double>::infinity();
    const std::array<mp::bfloat16, 6> computed = {mp::bfloat16(nan),      mp::bfloat16(nan),
                                                  mp::bfloat16(infinity), mp::bfloat16(infinity),
                                                  mp::bfloat16(3.f),      mp::bfloat16(7.0f)};
    const std::array<double, 6> references = {nan, 1.0, infinity, -infinity, infinity, 1.0};
    const mp::error_summary s = mp::error_report(computed, references);
    CHECK(s.exact == 2);
    CHECK(s.correctly_rounded == 2);
    CHECK(s.not_finite_mismatches == 3);
    CHECK(s.worst_index == 1);
    CHECK(s.worst_reference == 1.0);
    CHECK(s.max_ulp == 6 * 128);
}

TEST_CASE("references equal to zero leave the relative error alone") {
    const std::vector<float> computed = {0.0f, 0x1p-149f, -0.0f};
    const std::vector<mp::reference_real> references = {0, 0, 0};
    const mp::error_summary s = mp::error_report(computed, references);
    CHECK(s.exact == 2);
    CHECK(s.max_relative == 0);
    CHECK(s.max_ulp == 1);
    CHECK(s.max_absolute == 0x1p-149);
}

TEST_CASE("empty arrays are no error, arrays of different lengths are one") {
    const std::vector<mp::half> nothing;
    CHECK(mp::error_report(nothing, std::vector<double>{}).count == 0);
    const std::vector<mp::half> two(2);
    CHECK_THROWS_WITH_AS(
        static_cast<void>(mp::error_report(two, std::vector<double>{1.0})),
        "mp::error_report: references.size() is 1; it must equal computed.size(), which is 2",
        mp::argument_error);
}

TEST_CASE("the text of a report names the numbers") {
    const std::vector<mp::half> computed = {mp::half(1.0f), mp::half(3.0f)};
    const std::vector<double> references = {1.0, 3.015625};
    const std::string text = to_string(mp::error_report(computed, references));
    CHECK(text ==
          "2 values of half: 1 exact, 1 correctly rounded, 0 not-finite mismatches\n"
          "  error in ulps    max 8            mean 4\n"
          "  half of them within 0 ulps, 99% within 8, 99.9% within 8\n"
          "  relative error   max 0.00518135   mean 0.00259067\n"
          "  absolute error   max 0.015625     mean 0.0078125\n"
          "  worst at index 1: 3 instead of 3.01562\n");
}

TEST_CASE("a report has the distribution of errors, as text for other programs") {
    std::vector<mp::half> computed(100, mp::half(1.0F));
    std::vector<double> references(100, 1.0);
    for (std::size_t i = 0; i < 20; ++i) references[i] = 1 + 0x1p-10 * static_cast<double>(i + 1);
    references[50] = std::numeric_limits<double>::infinity();
    const mp::error_summary s = mp::error_report(computed, references);
    // A mismatch that is not finite has no distance; of the 99 others 79 are exact, and 20 are 1 to 20 ulps away.
    CHECK(s.ulps.count() == 99);
    CHECK(s.ulps.zeros() == 79);
    CHECK(s.ulps.largest() == 20);
    CHECK(s.ulps.quantile(79.0 / 99) == 0);
    CHECK(s.ulps.quantile(84.0 / 99) == 5.25);
    CHECK(s.relative.largest() == 20 * 0x1p-10 / (1 + 20 * 0x1p-10));
    const std::string csv = to_csv(s);
    CHECK(csv.starts_with(
        "measure,from,to,count\nulps,0,0,79\nulps,1,1.0625,1\nulps,2,2.125,1\nulps,3,3.125,1\n"));
    CHECK(csv.find("\nrelative,0,0,79\n") != std::string::npos);
    CHECK(csv.back() == '\n');
}
