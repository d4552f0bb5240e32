// SPDX-License-Identifier: MIT
// C23's functions on the numbers themselves: integers of a width, payloads, classification, neighbours,
// differences, types that functions and std::common_type give; and that no call reaches the functions of
// double.
#include <mp/bfloat16.hpp>
#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/math.hpp>

#include <doctest/doctest.h>
#include <math.h>
#include <climits>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <ostream>
#include <type_traits>

using namespace mp::literals;

namespace {

template <class Value>
Value infinity() {
    return std::numeric_limits<Value>::infinity();
}

double rounded_in_double(double x, mp::rounding direction) {
    if (direction == mp::rounding::upward) return std::ceil(x);
    if (direction == mp::rounding::downward) return std::floor(x);
    if (direction == mp::rounding::toward_zero) return std::trunc(x);
    return direction == mp::rounding::nearest_away ? std::round(x) : std::nearbyint(x);
}

}  // namespace

// Unqualified, with C's functions in sight.
template <class T, class X>
constexpr bool stay_in_format() {
    T h{};
    X x{};
    int bits = 0;
    return std::is_same_v<decltype(nextafter(h, x)), T> && std::is_same_v<decltype(pow(h, x)), T> &&
           std::is_same_v<decltype(fmax(x, h)), T> && std::is_same_v<decltype(fmin(h, x)), T> &&
           std::is_same_v<decltype(hypot(x, h)), T> && std::is_same_v<decltype(fdim(h, x)), T> &&
           std::is_same_v<decltype(fmaximum(h, x)), T> && std::is_same_v<decltype(fmod(x, h)), T> &&
           std::is_same_v<decltype(copysign(h, x)), T> && std::is_same_v<decltype(atan2(x, h)), T> &&
           std::is_same_v<decltype(remquo(h, x, &bits)), T> && std::is_same_v<decltype(fma(h, x, h)), T> &&
           std::is_same_v<decltype(nexttoward(h, x)), T> && std::is_same_v<decltype(nexttoward(x, h)), T>;
}
static_assert(stay_in_format<mp::half, float>());
static_assert(stay_in_format<mp::bfloat16, int>());
static_assert(stay_in_format<mp::float8_e4m3fn, unsigned char>());
static_assert(stay_in_format<mp::half, bool>());

template <class... X>
concept has_power = requires(X... x) { pow(x...); };
template <class... X>
concept has_maximum = requires(X... x) { fmax(x...); };
template <class X>
concept has_bessel = requires(X x) { j0(x); };
static_assert(!has_power<mp::half, double> && !has_power<double, mp::half> && has_maximum<mp::half, double>);
static_assert(!has_power<mp::half, mp::bfloat16> && !has_maximum<mp::half, mp::bfloat16>);
static_assert(!has_bessel<mp::half> && has_bessel<double>);

template <class A, class B>
concept has_common_branch = requires(bool condition, A a, B b) { condition ? a : b; };
static_assert(!has_common_branch<mp::half, bool> && !has_common_branch<bool, mp::bfloat16>);
static_assert(!std::is_convertible_v<mp::half, bool> && std::is_constructible_v<bool, mp::half>);

static_assert(std::is_same_v<std::common_type_t<mp::half, int>, mp::half>);
static_assert(std::is_same_v<std::common_type_t<long, mp::half>, mp::half>);
static_assert(std::is_same_v<std::common_type_t<mp::half, bool>, mp::half>);
static_assert(std::is_same_v<std::common_type_t<mp::half, float>, float>);
static_assert(std::is_same_v<std::common_type_t<double, mp::half>, double>);

static_assert(pown(3_h, 4) == 81_h && rootn(32_h, 5) == 2_h && compoundn(1_h, -2) == 0.25_h);
static_assert(fdim(3_h, 1_h) == 2_h && hypot(2_h, 3_h, 6_h) == 7_h && lerp(1_h, 3_h, 0.25_h) == 1.5_h);
static_assert(pow(1.5_h, 2) == 2.25_h && fmax(1_h, 2049) == 2048_h && asinpi(1_h) == 0.5_h);

namespace user {

/// A power of its own, which its calls find beside the library's.
template <class T, std::integral Exponent>
constexpr T pow(T x, Exponent n) {
    return n == 0 ? T(1) : x * user::pow(x, n - 1);
}
template <class T>
constexpr T cube_plus(T x, int n) {
    return pow(x, 3) + T(n);
}
static_assert(cube_plus(mp::half(2), 1) == mp::half(9));

}  // namespace user

TEST_CASE("integers of a width are those of the rounded value, or NaN") {
    int wrong = 0;
    for (std::uint32_t code = 0; code < 0x10000; code += 3) {
        const auto x = mp::half::from_bits(static_cast<std::uint16_t>(code));
        const auto value = static_cast<double>(x);
        for (const mp::rounding direction :
             {mp::rounding::upward, mp::rounding::downward, mp::rounding::toward_zero,
              mp::rounding::nearest_away, mp::rounding::nearest_even}) {
            for (const unsigned width : {0U, 1U, 2U, 5U, 8U, 16U, 17U, 64U, UINT_MAX}) {
                const double whole = rounded_in_double(value, direction);
                const double half_range = std::ldexp(1.0, static_cast<int>(width > 100 ? 100 : width) - 1);
                const bool is_signed_fit = width != 0 && whole >= -half_range && whole <= half_range - 1;
                const bool is_unsigned_fit = width != 0 && whole >= 0 && whole <= 2 * half_range - 1;
                mp::environment env;
                const mp::half s = fromfpx(x, direction, width, env);
                if (is_signed_fit ? static_cast<double>(s) != whole || signbit(s) != std::signbit(whole)
                                  : !isnan(s))
                    ++wrong;
                const bool flags_right =
                    isnan(x) || (is_signed_fit ? env.raised.test(mp::status_flag::inexact) == (whole != value)
                                               : env.raised.test(mp::status_flag::invalid));
                if (!flags_right || env.raised.test(mp::status_flag::overflow)) ++wrong;
                const mp::half u = ufromfp(x, direction, width);
                if (is_unsigned_fit ? static_cast<double>(u) != whole : !isnan(u)) ++wrong;
                mp::environment quiet;
                if (fromfp(x, direction, width, quiet).bits() != s.bits()) ++wrong;
                if (quiet.raised.test(mp::status_flag::inexact)) ++wrong;
                if (ufromfpx(x, direction, width).bits() != u.bits()) ++wrong;
            }
        }
        if (std::isfinite(value)) {
            if (lrint(x) != std::lrint(value) || llround(x) != std::llround(value)) ++wrong;
            if (lround(x) != std::lround(value) || llrint(x) != std::llrint(value)) ++wrong;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("payloads of NaN are set and read, and refused where they do not fit") {
    mp::half x;
    CHECK(setpayload(&x, 5_h) == 0);
    CHECK(x.bits() == 0x7e05);
    CHECK(getpayload(&x) == 5_h);
    CHECK(setpayloadsig(&x, 511_h) == 0);
    CHECK(x.bits() == 0x7dff);
    CHECK((mp::issignaling)(x));
    mp::half quiet;
    CHECK(canonicalize(&quiet, &x) == 0);
    CHECK(quiet.bits() == 0x7fff);
    for (const mp::half refused : {512_h, 0.5_h, -1_h, infinity<mp::half>()}) {
        CHECK(setpayload(&x, refused) == 1);
        CHECK(x.bits() == 0);
    }
    CHECK(setpayloadsig(&x, 0_h) == 1);
    CHECK(getpayload(&x) == -1_h);
    mp::float8_e4m3fn narrow;
    CHECK(setpayload(&narrow, mp::float8_e4m3fn(0)) == 0);
    CHECK(isnan(narrow));
    CHECK(getpayload(&narrow) == 0);
    CHECK(setpayload(&narrow, mp::float8_e4m3fn(1)) == 1);
}

TEST_CASE("numbers are classified in their own format") {
    const mp::half tiny = mp::half::from_bits(1);
    CHECK(fpclassify(tiny) == FP_SUBNORMAL);
    CHECK(fpclassify(1_h) == FP_NORMAL);
    CHECK(fpclassify(-0_h) == FP_ZERO);
    CHECK(fpclassify(infinity<mp::half>()) == FP_INFINITE);
    CHECK(fpclassify(mp::half::from_bits(0x7e00)) == FP_NAN);
    CHECK(issubnormal(tiny));
    CHECK((mp::issubnormal)(tiny));
    CHECK((mp::iszero)(0_h));
    CHECK((mp::iscanonical)(tiny));
    mp::environment env;
    CHECK_FALSE((mp::iseqsig)(mp::half::from_bits(0x7e00), 1_h, env));
    CHECK(env.raised.test(mp::status_flag::invalid));
    CHECK(isgreater(2_h, 1.5));
    CHECK_FALSE(isless(2_h, mp::half::from_bits(0x7e00)));
    CHECK(isunordered(2_h, std::nan("")));
    CHECK(islessgreater(2049, 2048_h));
    const mp::half one = 1_h, two = 2_h;
    CHECK(totalorder(&one, &two) == 1);
    CHECK(totalordermag(&two, &one) == 0);
}

TEST_CASE("neighbours, exponents and differences") {
    CHECK(nexttoward(1_h, 1.0L).bits() == 0x3c00);
    CHECK(nexttoward(1_h, 1.0L + 0x1p-60L).bits() == 0x3c01);
    CHECK(nexttoward(1_h, -1e4000L).bits() == 0x3bff);
    CHECK(nexttoward(0_h, -0.0L).bits() == 0x8000);
    CHECK(nextafter(1e-30F, 1_h).bits() == 1);
    CHECK(nextafter(-1e-30F, 1_h).bits() == 0x8000);
    CHECK(llogb(8_h) == 3);
    CHECK(llogb(0_h) == LONG_MIN);
    CHECK(scalbln(1_h, LONG_MIN).bits() == 0);
    CHECK(scalbln(1_h, 15L) == 32768);
    CHECK(fdim(infinity<mp::half>(), infinity<mp::half>()).bits() == 0);
    CHECK(isnan(fdim(1_h, mp::half::from_bits(0x7e00))));
    CHECK(midpoint(65504_h, 65504_h) == 65504_h);
    CHECK(midpoint(mp::half::from_bits(1), mp::half::from_bits(2)).bits() == 2);
    CHECK(isnan(midpoint(infinity<mp::half>(), -infinity<mp::half>())));
    CHECK(lerp(-65504_h, 65504_h, 0.5_h).bits() == 0);
    CHECK(lerp(1_h, 3_h, 1_h) == 3_h);
    mp::half sine, cosine;
    sincos(0.5_h, &sine, &cosine);
    CHECK(sine == sin(0.5_h));
    CHECK(cosine == cos(0.5_h));
}

TEST_CASE_TEMPLATE("a NaN beside a format without NaN is no number", Value, mp::float4_e2m1fn,
                   mp::float6_e2m3fn, mp::float6_e3m2fn) {
    for (const float nan :
         {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN()}) {
        const Value converted(nan);
        for (const float number : {-2.0F, -0.5F, 0.0F, 0.5F, 1.5F, 3.0F}) {
            CAPTURE(number);
            const Value x(number);
            CHECK(fmax(x, nan) == x);
            CHECK(fmax(nan, x) == x);
            CHECK(fmin(x, nan) == x);
            CHECK(fmin(nan, x) == x);
            CHECK(fmaximum_num(x, nan) == x);
            CHECK(fminimum_num(nan, x) == x);
            CHECK(fmaximum_mag_num(nan, x) == x);
            CHECK(fminimum_mag_num(x, nan) == x);
            CHECK(static_cast<float>(copysign(x, nan)) == std::copysign(number, nan));
            for (const Value result :
                 {fmaximum(x, nan),     fmaximum(nan, x),     fminimum(x, nan),   fminimum(nan, x),
                  fmaximum_mag(x, nan), fminimum_mag(nan, x), fdim(x, nan),       fdim(nan, x),
                  fmod(x, nan),         fmod(nan, x),         remainder(x, nan),  remainder(nan, x),
                  nextafter(x, nan),    nextafter(nan, x),    copysign(nan, x),   fma(x, nan, 1),
                  fma(nan, 0, x),       fma(x, x, nan),       pow(nan, Value(2)), pow(x, nan),
                  powr(x, nan),         powr(nan, x),         atan2(x, nan),      atan2(nan, x),
                  atan2pi(x, nan),      hypot(x, nan),        hypot(nan, x, 1)})
                CHECK(result == converted);
            int quotient = 7;
            CHECK(remquo(x, nan, &quotient) == converted);
            CHECK(quotient == 0);
        }
        CHECK(pow(Value(1), nan) == Value(1));
        CHECK(pow(nan, Value(0)) == Value(1));
        CHECK(pow(nan, Value(-0.0F)) == Value(1));
    }
}
