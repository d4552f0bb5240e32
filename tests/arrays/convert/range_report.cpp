// SPDX-License-Identifier: MIT
// The report of an array against counts taken one by one with the oracle.
#include <mp/arrays/convert/range_report.hpp>

#include <doctest/doctest.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

template <class Target, class Source>
mp::range_report counted(const std::vector<Source>& values) {
    const oracle::format& from = oracle::format_of<Source>;
    const oracle::format& to = oracle::format_of<Target>;
    mp::range_report report;
    std::uint64_t largest = 0;
    for (const Source x : values) {
        const std::uint64_t code = oracle::code_of(x);
        ++report.count;
        if (is_nan(from, code)) {
            ++report.nans;
        } else if (is_infinite(from, code)) {
            ++report.infinities;
        } else if (is_zero(from, code)) {
            ++report.zeros;
        } else {
            largest = std::max(largest, magnitude_code(from, code));
            const oracle::dyadic value = value_of_magnitude(from, magnitude_code(from, code));
            int exponent = value.significand.bit_length() - 1 + value.exponent;
            exponent =
                std::min(std::max(exponent, mp::range_report::min_exponent), mp::range_report::max_exponent);
            ++report.exponents[static_cast<std::size_t>(exponent - mp::range_report::min_exponent)];
            const oracle::outcome rounded =
                finish(to, convert(from, code, to), oracle::mode::nearest_even, oracle::saturate::none);
            if (rounded.nan || is_infinite(to, rounded.code)) {
                ++report.overflows;
            } else if (is_zero(to, rounded.code)) {
                ++report.flushed;
            } else if (is_subnormal(to, rounded.code)) {
                ++report.subnormals;
            }
        }
    }
    const oracle::dyadic value = value_of_magnitude(from, largest);
    report.largest_magnitude = std::ldexp(static_cast<double>(value.significand.low_bits()), value.exponent);
    return report;
}

template <class Source>
std::vector<Source> weighted_values(std::size_t count) {
    oracle::random_bits random(5);
    std::vector<Source> values;
    for (std::size_t i = 0; i < count; ++i) {
        values.push_back(oracle::value_of<Source>(weighted_code(random, oracle::format_of<Source>)));
    }
    return values;
}

template <class Source>
void compare_all_targets(const std::vector<Source>& values) {
    CHECK(mp::report_range<mp::half>(mp::cpu{}, values) == counted<mp::half>(values));
    CHECK(mp::report_range<mp::bfloat16>(mp::cpu{}, values) == counted<mp::bfloat16>(values));
    CHECK(mp::report_range<mp::float8_e4m3fn>(mp::cpu{}, values) == counted<mp::float8_e4m3fn>(values));
    CHECK(mp::report_range<mp::float8_e5m2>(mp::cpu{}, values) == counted<mp::float8_e5m2>(values));
    // Without a minus zero, whose code is NaN.
    CHECK(mp::report_range<mp::float8_e4m3fnuz>(mp::cpu{}, values) == counted<mp::float8_e4m3fnuz>(values));
}

}  // namespace

TEST_CASE_TEMPLATE("a report counts what the oracle counts", Source, mp::half, mp::bfloat16,
                   mp::float8_e4m3fn, mp::float8_e5m2, float, double) {
    compare_all_targets(weighted_values<Source>(50000));
    compare_all_targets(std::vector<Source>{});
    compare_all_targets(std::vector<Source>(3, Source(0.0f)));
}

TEST_CASE_TEMPLATE("a report of all codes counts what the oracle counts", Source, mp::half, mp::bfloat16,
                   mp::float8_e4m3fn, mp::float8_e5m2) {
    std::vector<Source> values;
    for (std::uint64_t code = 0; code < 2 * oracle::sign_bit(oracle::format_of<Source>); ++code) {
        values.push_back(oracle::value_of<Source>(code));
    }
    compare_all_targets(values);
}

TEST_CASE("the number of threads changes nothing") {
    const auto values = weighted_values<float>(300001);
    const mp::range_report alone = mp::report_range<mp::half>(mp::cpu{}, values);
    for (const int threads : {2, 3, 8, 100}) {
        CAPTURE(threads);
        CHECK(mp::report_range<mp::half>(mp::cpu{.threads = threads}, values) == alone);
    }
}

TEST_CASE("what gradients lose in half can be read off a report") {
    // Of these, 2^-26 and 2^-30 flush to zero, 2^-20 becomes subnormal, 1e6 overflows.
    const std::vector<float> gradients = {0x1p-26f, -0x1p-30f, 0x1p-20f, 1e6f, 0.5f, 0.75f, 0.0f, -0.0f};
    const mp::range_report report = mp::report_range<mp::half>(mp::cpu{}, gradients);
    CHECK(report.count == 8);
    CHECK(report.zeros == 2);
    CHECK(report.flushed == 2);
    CHECK(report.subnormals == 1);
    CHECK(report.overflows == 1);
    CHECK(report.flushed_fraction() == 2.0 / 6);
    CHECK(report.largest_magnitude == 1e6);
    CHECK(report.with_exponent(-1) == 2);
    CHECK(report.with_exponent(-26) == 1);
    CHECK(report.with_exponent(1000) == 0);
    CHECK(mp::report_range<mp::half>(mp::cpu{}, std::vector<float>{}).flushed_fraction() == 0);
    const std::vector<double> out_of_sight = {1e300, 1e-300};
    const mp::range_report far = mp::report_range<mp::bfloat16>(mp::cpu{}, out_of_sight);
    CHECK(far.with_exponent(mp::range_report::max_exponent) == 1);
    CHECK(far.with_exponent(mp::range_report::min_exponent) == 1);
}

TEST_CASE("arguments that make no sense are named") {
    CHECK_THROWS_WITH_AS(
        static_cast<void>(mp::report_range<mp::half>(mp::cpu{.threads = -1}, std::vector<float>(2))),
        "mp::report_range: exec.threads is -1; it must be at least 1", mp::argument_error);
    const std::span<const float> null(static_cast<float*>(nullptr), 2);
    CHECK_THROWS_WITH_AS(static_cast<void>(mp::report_range<mp::half>(mp::cpu{}, null)),
                         "mp::report_range: values.data() is 'null'; it must point to values.size() elements",
                         mp::argument_error);
}
