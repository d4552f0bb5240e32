// SPDX-License-Identifier: MIT
// The two halves of the oracle against each other: the search over the code space names one result, and the
// interval tables must admit that result and no other.
#include <doctest/doctest.h>
#include <cstdint>

#include "oracle/exact.hpp"
#include "oracle/interval.hpp"
#include "oracle/random.hpp"

namespace {

enum class operation { sum, difference, product, quotient };
constexpr operation operations[] = {operation::sum, operation::difference, operation::product,
                                    operation::quotient};

oracle::exact_result exact(const oracle::format& f, operation op, std::uint32_t a, std::uint32_t b) {
    switch (op) {
        case operation::sum:
            return oracle::add(f, a, b);
        case operation::difference:
            return oracle::subtract(f, a, b);
        case operation::product:
            return oracle::multiply(f, a, b);
        case operation::quotient:
            return oracle::divide(f, a, b);
    }
    return oracle::exact_nan();
}

template <int Words>
bool admits(const oracle::interval_oracle<Words>& judge, operation op, std::uint32_t a, std::uint32_t b,
            std::uint32_t result) {
    switch (op) {
        case operation::sum:
            return judge.admits_sum(a, b, result);
        case operation::difference:
            return judge.admits_difference(a, b, result);
        case operation::product:
            return judge.admits_product(a, b, result);
        case operation::quotient:
            return judge.admits_quotient(a, b, result);
    }
    return false;
}

/// Every result code for every pair of an 8-bit format.
void compare_all(const oracle::format& f, oracle::mode rounding, oracle::saturate saturation) {
    const oracle::interval_oracle<1> judge(f, rounding, saturation);
    long wrong = 0;
    for (std::uint32_t a = 0; a < 256; ++a) {
        for (std::uint32_t b = 0; b < 256; ++b) {
            for (const operation op : operations) {
                const oracle::outcome expected = finish(f, exact(f, op, a, b), rounding, saturation);
                const std::uint32_t near = static_cast<std::uint32_t>(expected.code);
                // All 256 results for some pairs; the right one, its neighbours and its negative for all.
                if ((a * 256 + b) % 61 == 0) {
                    for (std::uint32_t result = 0; result < 256; ++result) {
                        if (admits(judge, op, a, b, result) != matches(f, expected, result)) ++wrong;
                    }
                } else {
                    for (const std::uint32_t result :
                         {near, (near + 1) % 256, (near + 255) % 256, near ^ 128U}) {
                        if (admits(judge, op, a, b, result) != matches(f, expected, result)) ++wrong;
                    }
                }
            }
        }
    }
    CAPTURE(static_cast<int>(rounding));
    CAPTURE(static_cast<int>(saturation));
    CHECK(wrong == 0);
}

template <int Words>
void compare_sample(const oracle::format& f, oracle::mode rounding, oracle::saturate saturation, int count) {
    const oracle::interval_oracle<Words> judge(f, rounding, saturation);
    oracle::random_bits random(3);
    long wrong = 0;
    for (int i = 0; i < count; ++i) {
        const std::uint32_t a = static_cast<std::uint32_t>(weighted_code(random, f));
        const std::uint32_t b = static_cast<std::uint32_t>(weighted_partner(random, f, a));
        for (const operation op : operations) {
            const oracle::outcome expected = finish(f, exact(f, op, a, b), rounding, saturation);
            const std::uint32_t near = static_cast<std::uint32_t>(expected.code);
            for (const std::uint32_t result :
                 {near, (near + 1) & 0xffffU, (near - 1) & 0xffffU, near ^ 0x8000U, 0x7fffU, 0xffffU}) {
                if (admits(judge, op, a, b, result) != matches(f, expected, result)) ++wrong;
            }
        }
    }
    CAPTURE(static_cast<int>(rounding));
    CAPTURE(static_cast<int>(saturation));
    CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("search and intervals name the same results for the 8-bit formats, in every mode and saturation") {
    for (const oracle::mode rounding : oracle::modes) {
        for (const oracle::saturate saturation : oracle::saturations) {
            compare_all(oracle::float8_e4m3fn, rounding, saturation);
            compare_all(oracle::float8_e5m2, rounding, saturation);
        }
    }
}

TEST_CASE("search and intervals name the same results for half and bfloat16, in every mode and saturation") {
    for (const oracle::mode rounding : oracle::modes) {
        for (const oracle::saturate saturation : oracle::saturations) {
            compare_sample<1>(oracle::binary16, rounding, saturation, 10000);
            compare_sample<5>(oracle::bfloat16, rounding, saturation, 10000);
        }
    }
}

TEST_CASE("search and intervals name the same conversions of floats, in every mode and saturation") {
    const auto compare_conversions = [](const auto& judge, const oracle::format& f, oracle::mode rounding,
                                        oracle::saturate saturation) {
        oracle::random_bits random(4);
        const std::uint32_t all = static_cast<std::uint32_t>(2 * sign_bit(f) - 1);
        long wrong = 0;
        for (int i = 0; i < 20000; ++i) {
            std::uint32_t single = static_cast<std::uint32_t>(weighted_code(random, oracle::binary32));
            // Half of them beside a number or midpoint of the format.
            if (i % 2 == 0) {
                const std::uint64_t code = weighted_code(random, f);
                single =
                    static_cast<std::uint32_t>(finish(oracle::binary32, convert(f, code, oracle::binary32),
                                                      oracle::mode::nearest_even, oracle::saturate::none)
                                                   .code);
                single ^= random.below(2) << (22 - f.fraction_bits);
                single += random.below(3) - 1;
            }
            const oracle::exact_result exact = convert(oracle::binary32, single, f);
            const oracle::outcome expected = finish(f, exact, rounding, saturation);
            const std::uint32_t nan = static_cast<std::uint32_t>(converted_nan(oracle::binary32, single, f));
            const std::uint32_t near = static_cast<std::uint32_t>(expected.code);
            const bool from_nan = is_nan(oracle::binary32, single);
            for (const std::uint32_t result :
                 {near, (near + 1) & all, (near - 1) & all, near ^ (all / 2 + 1), nan}) {
                const bool right = from_nan ? result == nan : matches(f, expected, result);
                if (judge.admits_conversion(single, result) != right) ++wrong;
            }
        }
        CHECK(wrong == 0);
    };
    for (const oracle::mode rounding : oracle::modes) {
        for (const oracle::saturate saturation : oracle::saturations) {
            CAPTURE(static_cast<int>(rounding));
            CAPTURE(static_cast<int>(saturation));
            compare_conversions(oracle::interval_oracle<1>(oracle::binary16, rounding, saturation),
                                oracle::binary16, rounding, saturation);
            compare_conversions(oracle::interval_oracle<5>(oracle::bfloat16, rounding, saturation),
                                oracle::bfloat16, rounding, saturation);
            compare_conversions(oracle::interval_oracle<1>(oracle::float8_e4m3fn, rounding, saturation),
                                oracle::float8_e4m3fn, rounding, saturation);
        }
    }
}

TEST_CASE("hand-worked roundings of half come out as worked") {
    using oracle::mode;
    using oracle::saturate;
    const oracle::format& f = oracle::binary16;
    struct line {
        std::uint64_t significand;
        int exponent;
        std::uint64_t nearest_even, nearest_away, toward_zero, upward, downward, to_odd;
    };
    // 1 + 2^-11 is the middle of 0x3c00 and 0x3c01; 65520 is the middle of 65504 and the first number out of
    // range.
    const line lines[] = {
        {(1 << 11) + 1, -11, 0x3c00, 0x3c01, 0x3c00, 0x3c01, 0x3c00, 0x3c01},
        {(1 << 11) + 3, -11, 0x3c02, 0x3c02, 0x3c01, 0x3c02, 0x3c01, 0x3c01},
        {(1 << 30) + (1 << 19) + 1, -30, 0x3c01, 0x3c01, 0x3c00, 0x3c01, 0x3c00, 0x3c01},
        {65519, 0, 0x7bff, 0x7bff, 0x7bff, 0x7c00, 0x7bff, 0x7bff},
        {65520, 0, 0x7c00, 0x7c00, 0x7bff, 0x7c00, 0x7bff, 0x7bff},
        {1, 40, 0x7c00, 0x7c00, 0x7bff, 0x7c00, 0x7bff, 0x7bff},
        {1, -25, 0x0000, 0x0001, 0x0000, 0x0001, 0x0000, 0x0001},
        {3, -26, 0x0001, 0x0001, 0x0000, 0x0001, 0x0000, 0x0001},
        {1, -300, 0x0000, 0x0000, 0x0000, 0x0001, 0x0000, 0x0001},
        {1023, -24, 0x03ff, 0x03ff, 0x03ff, 0x03ff, 0x03ff, 0x03ff},
    };
    for (const line& l : lines) {
        const std::uint64_t expected[] = {l.nearest_even, l.nearest_away, l.toward_zero,
                                          l.upward,       l.downward,     l.to_odd};
        const std::uint64_t expected_negative[] = {l.nearest_even, l.nearest_away, l.toward_zero,
                                                   l.downward,     l.upward,       l.to_odd};
        for (int i = 0; i < 6; ++i) {
            const oracle::dyadic magnitude{l.significand, l.exponent};
            CAPTURE(l.significand);
            CAPTURE(l.exponent);
            CAPTURE(i);
            CHECK(finish(f, exact_from_dyadic(f, false, magnitude), oracle::modes[i], saturate::none).code ==
                  expected[i]);
            CHECK(finish(f, exact_from_dyadic(f, true, magnitude), oracle::modes[i], saturate::none).code ==
                  (expected_negative[i] | 0x8000U));
        }
    }
}

TEST_CASE("the limits of e4m3fn come out as its definition says") {
    using oracle::saturate;
    const oracle::format& f = oracle::float8_e4m3fn;
    const auto nearest = [&](std::uint64_t significand, int exponent, saturate s) {
        return finish(f, exact_from_dyadic(f, false, {significand, exponent}), oracle::mode::nearest_even, s);
    };
    CHECK(nearest(448, 0, saturate::none).code == 0x7e);
    CHECK(nearest(464, 0, saturate::none).code == 0x7e);
    CHECK(nearest(929, -1, saturate::none).nan);
    CHECK(nearest(929, -1, saturate::finite).code == 0x7e);
    CHECK(nearest(1, 100, saturate::propagate).code == 0x7e);
    CHECK(finish(f, oracle::exact_infinity(true), oracle::mode::nearest_even, saturate::finite).code == 0xfe);
    CHECK(finish(f, oracle::exact_infinity(true), oracle::mode::nearest_even, saturate::propagate).nan);
    CHECK(finish(f, exact_from_dyadic(f, false, {449, 0}), oracle::mode::to_odd, saturate::none).code ==
          0x7e);
    CHECK(finish(f, exact_from_dyadic(f, false, {449, 0}), oracle::mode::upward, saturate::none).nan);
}

TEST_CASE("decimals are compared without rounding the power of ten") {
    const oracle::format& f = oracle::binary16;
    const auto nearest = [&](const char* digits, int exponent) {
        return finish(f, exact_from_decimal(f, false, oracle::natural::from_decimal(digits), exponent),
                      oracle::mode::nearest_even, oracle::saturate::none)
            .code;
    };
    CHECK(nearest("100048828125", -11) == 0x3c00);
    CHECK(nearest("100048828125000000000000000000000000000000000001", -47) == 0x3c01);
    CHECK(nearest("298023223876953125", -25) == 0x0000);
    CHECK(nearest("298023223876953125000000000000000001", -43) == 0x0001);
    CHECK(nearest("6552", 1) == 0x7c00);
    CHECK(oracle::natural::power(10, 30).decimal() == "1000000000000000000000000000000");
}
