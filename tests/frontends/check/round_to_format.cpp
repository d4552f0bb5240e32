// SPDX-License-Identifier: MIT
#include <mp/frontends/check/exact_value.hpp>

#include <boost/multiprecision/cpp_dec_float.hpp>

#include <doctest/doctest.h>
#include <limits>
#include <string>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

namespace bmp = boost::multiprecision;

/// 2^exponent; not a shifted 1, about which g++ 12 warns from inside Boost.
bmp::cpp_int power_of_two(int exponent) {
    return pow(bmp::cpp_int(2), static_cast<unsigned>(exponent));
}
using wide_real =
    bmp::number<bmp::cpp_bin_float<700, bmp::digit_base_2, void, std::int32_t, -100000, 100000>>;

bmp::cpp_int to_boost(const oracle::natural& n) {
    return bmp::cpp_int(n.decimal());
}

bmp::cpp_rational to_rational(const oracle::dyadic& x) {
    const bmp::cpp_int scale = power_of_two(std::abs(x.exponent));
    const bmp::cpp_int significand = to_boost(x.significand);
    return x.exponent < 0 ? bmp::cpp_rational(significand, scale) : bmp::cpp_rational(significand * scale);
}

/// Rounds one number in every projection and compares with the oracle.
template <class To, class Number>
void compare(oracle::disagreements& wrong, const oracle::exact_result& exact, const Number& x) {
    const oracle::format& f = oracle::format_of<To>;
    for (const oracle::mode m : oracle::modes) {
        for (const oracle::saturate s : oracle::saturations) {
            const auto code = oracle::code_of(mp::round_to_format<To>(x, oracle::library_projection(m, s)));
            const oracle::outcome expected = finish(f, exact, m, s);
            if (!matches(f, expected, code)) wrong.add(x, name_of(m), name_of(s), code, expected.code);
        }
    }
}

template <class To>
void compare_dyadic(oracle::disagreements& wrong, bool negative, const oracle::dyadic& magnitude) {
    const oracle::exact_result exact = exact_from_dyadic(oracle::format_of<To>, negative, magnitude);
    bmp::cpp_rational rational = to_rational(magnitude);
    wide_real real = ldexp(wide_real(to_boost(magnitude.significand)), magnitude.exponent);
    if (negative) {
        rational = -rational;
        real = -real;
    }
    compare<To>(wrong, exact, rational);
    compare<To>(wrong, exact, real);
    if (magnitude.exponent >= 0) compare<To>(wrong, exact, bmp::cpp_int(numerator(rational)));
}

}  // namespace

TEST_CASE_TEMPLATE("every midpoint of a format, and the numbers a hair beside it, round as the oracle rounds",
                   To, mp::half, mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2, float) {
    const oracle::format& f = oracle::format_of<To>;
    oracle::disagreements wrong;
    const std::uint64_t last = max_finite_code(f) + 1;
    const std::uint64_t step = 1 + last / 500;
    const auto around = [&](std::uint64_t code) {
        const oracle::dyadic value = oracle::value_of_magnitude(f, code);
        const oracle::dyadic middle = oracle::middle_above(f, code);
        const oracle::natural one = 1;
        for (const bool negative : {false, true}) {
            if (code != 0) compare_dyadic<To>(wrong, negative, value);
            compare_dyadic<To>(wrong, negative, middle);
            for (const oracle::dyadic& centre : {value, middle}) {
                if (centre.significand.is_zero()) continue;
                const oracle::natural fine = centre.significand << 90;
                compare_dyadic<To>(wrong, negative, {fine + one, centre.exponent - 90});
                compare_dyadic<To>(wrong, negative, {fine - one, centre.exponent - 90});
            }
        }
    };
    for (std::uint64_t code = 0; code <= last; code += step) around(code);
    for (std::uint64_t code = last - 3; code <= last; ++code) around(code);
    for (std::uint64_t code = 0; code < 4; ++code) around(code);
    for (std::uint64_t code = (std::uint64_t{1} << f.fraction_bits) - 2, i = 0; i < 4; ++i) around(code + i);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("numbers of many bits and of any size round as the oracle rounds", To, mp::half,
                   mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2, float, double) {
    oracle::disagreements wrong;
    oracle::random_bits random(1);
    for (int i = 0; i < 300; ++i) {
        oracle::natural significand = random.next();
        for (std::uint32_t words = random.below(6); words != 0; --words) {
            significand = (significand << 64) +
                          (random.below(3) == 0 ? oracle::natural{} : oracle::natural(random.next()));
        }
        const int range = i % 2 == 0 ? 1500 : 200;
        const int exponent = static_cast<int>(random.below(static_cast<std::uint32_t>(range))) - range / 2;
        compare_dyadic<To>(wrong, random.below(2) == 0, {significand, exponent});
    }
    compare_dyadic<To>(wrong, false, {1, -90000});
    compare_dyadic<To>(wrong, true, {1, 90000});
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("quotients of two numbers of the format round as the oracle rounds", To, mp::half,
                   mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2) {
    const oracle::format& f = oracle::format_of<To>;
    oracle::disagreements wrong;
    oracle::random_bits random(2);
    for (int i = 0; i < 2000; ++i) {
        const std::uint64_t a = weighted_code(random, f);
        const std::uint64_t b = weighted_partner(random, f, a);
        if (!is_finite(f, a) || !is_finite(f, b) || is_zero(f, a) || is_zero(f, b)) continue;
        bmp::cpp_rational quotient = to_rational(value_of_magnitude(f, magnitude_code(f, a))) /
                                     to_rational(value_of_magnitude(f, magnitude_code(f, b)));
        if (is_negative(f, a) != is_negative(f, b)) quotient = -quotient;
        compare<To>(wrong, divide(f, a, b), quotient);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("decimal numbers are rounded from their decimal value", To, mp::half, mp::bfloat16,
                   mp::float8_e4m3fn, mp::float8_e5m2) {
    const oracle::format& f = oracle::format_of<To>;
    oracle::disagreements wrong;
    oracle::random_bits random(3);
    for (int i = 0; i < 500; ++i) {
        const std::uint64_t digits = random.next() >> random.below(60);
        const int exponent = static_cast<int>(random.below(60)) - 45;
        const std::string text = std::to_string(digits) + "e" + std::to_string(exponent);
        compare<To>(wrong, exact_from_decimal(f, false, digits, exponent), bmp::cpp_dec_float_50(text));
    }
    // The middle of 1 and the next half, and a hair more: through float or double both round the same way.
    const bmp::cpp_dec_float_100 middle("1.00048828125");
    const bmp::cpp_dec_float_100 above("1.00048828125000000000000000000000000000000000000000000000001");
    CHECK(mp::round_to_format<mp::half>(middle).bits() == 0x3c00);
    CHECK(mp::round_to_format<mp::half>(above).bits() == 0x3c01);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("zeros keep their sign; infinities and NaN follow the saturation") {
    using limits = std::numeric_limits<mp::reference_real>;
    const mp::reference_real zero = 0;
    CHECK(mp::round_to_format<mp::half>(zero).bits() == 0x0000);
    CHECK(mp::round_to_format<mp::half>(mp::reference_real(-zero)).bits() == 0x8000);
    CHECK(mp::round_to_format<mp::half>(bmp::cpp_rational(0)).bits() == 0x0000);
    CHECK(mp::round_to_format<mp::half>(bmp::cpp_int(0)).bits() == 0x0000);

    const mp::reference_real infinity = limits::infinity();
    CHECK(mp::round_to_format<mp::half>(infinity).bits() == 0x7c00);
    CHECK(mp::round_to_format<mp::half>(mp::reference_real(-infinity)).bits() == 0xfc00);
    CHECK(mp::round_to_format<mp::half>(infinity, {.saturate = mp::saturation::finite}).bits() == 0x7bff);
    CHECK(mp::round_to_format<mp::half>(infinity, {.saturate = mp::saturation::propagate}).bits() == 0x7c00);
    CHECK(mp::isnan(mp::round_to_format<mp::float8_e4m3fn>(infinity)));
    CHECK(
        mp::isnan(mp::round_to_format<mp::float8_e4m3fn>(infinity, {.saturate = mp::saturation::propagate})));
    CHECK(mp::round_to_format<mp::float8_e4m3fn>(infinity, {.saturate = mp::saturation::finite}).bits() ==
          0x7e);
    CHECK(mp::isnan(mp::round_to_format<mp::half>(limits::quiet_NaN())));
    CHECK(mp::isnan(mp::round_to_format<float>(limits::quiet_NaN(), {.saturate = mp::saturation::finite})));
}

TEST_CASE("expressions, long doubles and numbers of the library can be rounded as well") {
    const bmp::cpp_int a = 3;
    const bmp::cpp_int b = 5;
    CHECK(mp::round_to_format<mp::half>(a * b + 2) == mp::half(17));
    CHECK(mp::round_to_format<mp::half>(bmp::cpp_rational(a, b), {.round = mp::rounding::upward}).bits() ==
          0x38cd);

    CHECK(mp::round_to_format<mp::half>(1.0L + 0x1p-11L + 0x1p-60L).bits() == 0x3c01);
    CHECK(mp::round_to_format<mp::half>(-0.0L).bits() == 0x8000);
    CHECK(mp::round_to_format<mp::half>(-std::numeric_limits<long double>::infinity()).bits() == 0xfc00);
    CHECK(mp::isnan(mp::round_to_format<mp::half>(std::numeric_limits<long double>::quiet_NaN())));
    if constexpr (std::numeric_limits<long double>::max_exponent > 1024) {
        const mp::projection toward_zero{.round = mp::rounding::toward_zero};
        CHECK(mp::round_to_format<double>(std::numeric_limits<long double>::max(), toward_zero) ==
              std::numeric_limits<double>::max());
    }
    CHECK(mp::round_to_format<mp::bfloat16>(mp::half(1.5f)).bits() == 0x3fc0);
    CHECK(mp::round_to_format<mp::half>(1 + 0x1p-11 + 0x1p-30).bits() == 0x3c01);
    CHECK(mp::round_to_format<float>(bmp::cpp_rational(1, 3)) == 1.0f / 3);
    CHECK(mp::round_to_format<double>(bmp::cpp_rational(1, 3)) == 1.0 / 3);
}
