// SPDX-License-Identifier: MIT
// What mathematical functions return for zeros, infinities, NaNs and at their poles, and the flags that they
// raise, after IEEE 754-2019, 9.2.1, and annex F of C. The tables are written down from there.
#include <mp/bfloat16.hpp>
#include <mp/float4.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/math.hpp>

#include <doctest/doctest.h>
#include <initializer_list>
#include <limits>

namespace {

using mp::half;
using limits = std::numeric_limits<half>;

constexpr half inf = limits::infinity();
constexpr half nan = limits::quiet_NaN();
constexpr half signaling = limits::signaling_NaN();
constexpr half zero{0.0f};
constexpr half one{1.0f};
constexpr half two{2.0f};

constexpr mp::status_flags none{};
constexpr mp::status_flags inexact = mp::status_flag::inexact;
constexpr mp::status_flags invalid = mp::status_flag::invalid;
constexpr mp::status_flags pole = mp::status_flag::divide_by_zero;

struct unary_case {
    const char* name;
    half (*function)(half, mp::environment&);
    half x;
    half expected;
    mp::status_flags raised;
};

struct binary_case {
    const char* name;
    half (*function)(half, half, mp::environment&);
    half x;
    half y;
    half expected;
    mp::status_flags raised;
};

bool same(half a, half b) {
    return a.bits() == b.bits() || (mp::isnan(a) && mp::isnan(b));
}

half cbrt(half x, mp::environment& e) {
    return mp::cbrt(x, e);
}
half rsqrt(half x, mp::environment& e) {
    return mp::rsqrt(x, e);
}
half exp(half x, mp::environment& e) {
    return mp::exp(x, e);
}
half exp2(half x, mp::environment& e) {
    return mp::exp2(x, e);
}
half exp10(half x, mp::environment& e) {
    return mp::exp10(x, e);
}
half expm1(half x, mp::environment& e) {
    return mp::expm1(x, e);
}
half log(half x, mp::environment& e) {
    return mp::log(x, e);
}
half log2(half x, mp::environment& e) {
    return mp::log2(x, e);
}
half log10(half x, mp::environment& e) {
    return mp::log10(x, e);
}
half log1p(half x, mp::environment& e) {
    return mp::log1p(x, e);
}
half sin(half x, mp::environment& e) {
    return mp::sin(x, e);
}
half cos(half x, mp::environment& e) {
    return mp::cos(x, e);
}
half tan(half x, mp::environment& e) {
    return mp::tan(x, e);
}
half asin(half x, mp::environment& e) {
    return mp::asin(x, e);
}
half acos(half x, mp::environment& e) {
    return mp::acos(x, e);
}
half atan(half x, mp::environment& e) {
    return mp::atan(x, e);
}
half sinpi(half x, mp::environment& e) {
    return mp::sinpi(x, e);
}
half cospi(half x, mp::environment& e) {
    return mp::cospi(x, e);
}
half tanpi(half x, mp::environment& e) {
    return mp::tanpi(x, e);
}
half sinh(half x, mp::environment& e) {
    return mp::sinh(x, e);
}
half cosh(half x, mp::environment& e) {
    return mp::cosh(x, e);
}
half tanh(half x, mp::environment& e) {
    return mp::tanh(x, e);
}
half asinh(half x, mp::environment& e) {
    return mp::asinh(x, e);
}
half acosh(half x, mp::environment& e) {
    return mp::acosh(x, e);
}
half atanh(half x, mp::environment& e) {
    return mp::atanh(x, e);
}
half erf(half x, mp::environment& e) {
    return mp::erf(x, e);
}
half erfc(half x, mp::environment& e) {
    return mp::erfc(x, e);
}
half tgamma(half x, mp::environment& e) {
    return mp::tgamma(x, e);
}
half lgamma(half x, mp::environment& e) {
    return mp::lgamma(x, e);
}
half pow(half x, half y, mp::environment& e) {
    return mp::pow(x, y, e);
}
half atan2(half y, half x, mp::environment& e) {
    return mp::atan2(y, x, e);
}
half hypot(half x, half y, mp::environment& e) {
    return mp::hypot(x, y, e);
}

#define MP_CASE(f) #f, f

constexpr unary_case unary_cases[] = {
    {MP_CASE(cbrt), -zero, -zero, none},
    {MP_CASE(cbrt), -inf, -inf, none},
    {MP_CASE(cbrt), half{-27.0f}, half{-3.0f}, none},
    {MP_CASE(rsqrt), zero, inf, pole},
    {MP_CASE(rsqrt), -zero, -inf, pole},
    {MP_CASE(rsqrt), inf, zero, none},
    {MP_CASE(rsqrt), -one, nan, invalid},
    {MP_CASE(rsqrt), -inf, nan, invalid},
    {MP_CASE(rsqrt), half{0.25f}, two, none},
    {MP_CASE(exp), -zero, one, none},
    {MP_CASE(exp), -inf, zero, none},
    {MP_CASE(exp), inf, inf, none},
    {MP_CASE(exp), half{12.0f}, inf, inexact | mp::status_flag::overflow},
    {MP_CASE(exp), half{-20.0f}, zero, inexact | mp::status_flag::underflow},
    {MP_CASE(exp2), half{-24.0f}, half::from_bits(1), none},
    {MP_CASE(exp2), half{15.0f}, half{32768.0f}, none},
    {MP_CASE(exp2), half{16.0f}, inf, inexact | mp::status_flag::overflow},
    {MP_CASE(exp10), half{4.0f}, half{10000.0f}, none},
    {MP_CASE(exp10), half{-inf}, zero, none},
    {MP_CASE(expm1), -zero, -zero, none},
    {MP_CASE(expm1), -inf, -one, none},
    {MP_CASE(expm1), inf, inf, none},
    {MP_CASE(log), one, zero, none},
    {MP_CASE(log), zero, -inf, pole},
    {MP_CASE(log), -zero, -inf, pole},
    {MP_CASE(log), -one, nan, invalid},
    {MP_CASE(log), -inf, nan, invalid},
    {MP_CASE(log), inf, inf, none},
    {MP_CASE(log2), half::from_bits(1), half{-24.0f}, none},
    {MP_CASE(log2), -zero, -inf, pole},
    {MP_CASE(log10), half{1000.0f}, half{3.0f}, none},
    {MP_CASE(log10), zero, -inf, pole},
    {MP_CASE(log1p), -one, -inf, pole},
    {MP_CASE(log1p), -zero, -zero, none},
    {MP_CASE(log1p), -two, nan, invalid},
    {MP_CASE(log1p), inf, inf, none},
    {MP_CASE(sin), -zero, -zero, none},
    {MP_CASE(sin), inf, nan, invalid},
    {MP_CASE(sin), half::from_bits(1), half::from_bits(1), inexact | mp::status_flag::underflow},
    {MP_CASE(cos), -zero, one, none},
    {MP_CASE(cos), -inf, nan, invalid},
    {MP_CASE(tan), -zero, -zero, none},
    {MP_CASE(tan), inf, nan, invalid},
    {MP_CASE(asin), -zero, -zero, none},
    {MP_CASE(asin), half{1.5f}, nan, invalid},
    {MP_CASE(asin), -inf, nan, invalid},
    {MP_CASE(asin), -one, half{-1.57080f}, inexact},
    {MP_CASE(acos), one, zero, none},
    {MP_CASE(acos), -one, half{3.14159f}, inexact},
    {MP_CASE(acos), half{-1.5f}, nan, invalid},
    {MP_CASE(atan), -zero, -zero, none},
    {MP_CASE(atan), -inf, half{-1.57080f}, inexact},
    {MP_CASE(sinpi), two, zero, none},
    {MP_CASE(sinpi), half{-3.0f}, -zero, none},
    {MP_CASE(sinpi), half{1.5f}, -one, none},
    {MP_CASE(sinpi), half{-0.5f}, -one, none},
    {MP_CASE(sinpi), inf, nan, invalid},
    {MP_CASE(cospi), half{0.5f}, zero, none},
    {MP_CASE(cospi), half{-1.5f}, zero, none},
    {MP_CASE(cospi), half{3.0f}, -one, none},
    {MP_CASE(cospi), -inf, nan, invalid},
    {MP_CASE(tanpi), one, -zero, none},
    {MP_CASE(tanpi), -one, zero, none},
    {MP_CASE(tanpi), two, zero, none},
    {MP_CASE(tanpi), -two, -zero, none},
    {MP_CASE(tanpi), half{0.5f}, inf, pole},
    {MP_CASE(tanpi), half{-0.5f}, -inf, pole},
    {MP_CASE(tanpi), half{1.5f}, -inf, pole},
    {MP_CASE(tanpi), half{0.75f}, -one, none},
    {MP_CASE(tanpi), half{-0.75f}, one, none},
    {MP_CASE(sinh), -zero, -zero, none},
    {MP_CASE(sinh), -inf, -inf, none},
    {MP_CASE(cosh), -zero, one, none},
    {MP_CASE(cosh), -inf, inf, none},
    {MP_CASE(tanh), -zero, -zero, none},
    {MP_CASE(tanh), -inf, -one, none},
    {MP_CASE(tanh), half{100.0f}, one, inexact},
    {MP_CASE(asinh), -zero, -zero, none},
    {MP_CASE(asinh), -inf, -inf, none},
    {MP_CASE(acosh), one, zero, none},
    {MP_CASE(acosh), half{0.5f}, nan, invalid},
    {MP_CASE(acosh), zero, nan, invalid},
    {MP_CASE(acosh), -inf, nan, invalid},
    {MP_CASE(acosh), inf, inf, none},
    {MP_CASE(atanh), -zero, -zero, none},
    {MP_CASE(atanh), one, inf, pole},
    {MP_CASE(atanh), -one, -inf, pole},
    {MP_CASE(atanh), two, nan, invalid},
    {MP_CASE(atanh), inf, nan, invalid},
    {MP_CASE(erf), -zero, -zero, none},
    {MP_CASE(erf), -inf, -one, none},
    {MP_CASE(erfc), -zero, one, none},
    {MP_CASE(erfc), inf, zero, none},
    {MP_CASE(erfc), -inf, two, none},
    {MP_CASE(tgamma), zero, inf, pole},
    {MP_CASE(tgamma), -zero, -inf, pole},
    {MP_CASE(tgamma), -one, nan, invalid},
    {MP_CASE(tgamma), -inf, nan, invalid},
    {MP_CASE(tgamma), inf, inf, none},
    {MP_CASE(tgamma), half{6.0f}, half{120.0f}, none},
    {MP_CASE(lgamma), one, zero, none},
    {MP_CASE(lgamma), two, zero, none},
    {MP_CASE(lgamma), -zero, inf, pole},
    {MP_CASE(lgamma), -two, inf, pole},
    {MP_CASE(lgamma), -inf, inf, none},
};

constexpr binary_case binary_cases[] = {
    {MP_CASE(pow), nan, -zero, one, none},
    {MP_CASE(pow), one, nan, one, none},
    {MP_CASE(pow), signaling, zero, nan, invalid},
    {MP_CASE(pow), one, signaling, nan, invalid},
    {MP_CASE(pow), nan, one, nan, none},
    {MP_CASE(pow), -one, nan, nan, none},
    {MP_CASE(pow), zero, half{-3.0f}, inf, pole},
    {MP_CASE(pow), -zero, half{-3.0f}, -inf, pole},
    {MP_CASE(pow), -zero, half{-2.0f}, inf, pole},
    {MP_CASE(pow), -zero, half{-0.5f}, inf, pole},
    {MP_CASE(pow), -zero, -inf, inf, none},
    {MP_CASE(pow), -zero, inf, zero, none},
    {MP_CASE(pow), -zero, half{3.0f}, -zero, none},
    {MP_CASE(pow), -zero, two, zero, none},
    {MP_CASE(pow), -one, inf, one, none},
    {MP_CASE(pow), -one, -inf, one, none},
    {MP_CASE(pow), -one, half{2047.0f}, -one, none},
    {MP_CASE(pow), -one, half{2048.0f}, one, none},
    {MP_CASE(pow), half{-2.0f}, half{0.5f}, nan, invalid},
    {MP_CASE(pow), -one, half{0.5f}, nan, invalid},
    {MP_CASE(pow), half{0.5f}, -inf, inf, none},
    {MP_CASE(pow), half{-0.5f}, inf, zero, none},
    {MP_CASE(pow), half{-2.0f}, -inf, zero, none},
    {MP_CASE(pow), half{-2.0f}, inf, inf, none},
    {MP_CASE(pow), -inf, half{-3.0f}, -zero, none},
    {MP_CASE(pow), -inf, half{-2.0f}, zero, none},
    {MP_CASE(pow), -inf, half{3.0f}, -inf, none},
    {MP_CASE(pow), -inf, half{0.5f}, inf, none},
    {MP_CASE(pow), inf, -one, zero, none},
    {MP_CASE(pow), inf, one, inf, none},
    {MP_CASE(pow), half{-3.0f}, half{3.0f}, half{-27.0f}, none},
    {MP_CASE(pow), half{2.25f}, half{1.5f}, half{3.375f}, none},
    {MP_CASE(pow), half{16.0f}, half{-0.75f}, half{0.125f}, none},
    {MP_CASE(pow), half{0.5f}, half{24.0f}, half::from_bits(1), none},
    {MP_CASE(pow), two, half{16.0f}, inf, inexact | mp::status_flag::overflow},
    {MP_CASE(pow), two, half{-60000.0f}, zero, inexact | mp::status_flag::underflow},
    {MP_CASE(atan2), zero, zero, zero, none},
    {MP_CASE(atan2), -zero, zero, -zero, none},
    {MP_CASE(atan2), zero, -zero, half{3.14159f}, inexact},
    {MP_CASE(atan2), -zero, -one, half{-3.14159f}, inexact},
    {MP_CASE(atan2), -zero, one, -zero, none},
    {MP_CASE(atan2), -one, zero, half{-1.57080f}, inexact},
    {MP_CASE(atan2), one, inf, zero, none},
    {MP_CASE(atan2), -one, -inf, half{-3.14159f}, inexact},
    {MP_CASE(atan2), inf, one, half{1.57080f}, inexact},
    {MP_CASE(atan2), -inf, inf, half{-0.785398f}, inexact},
    {MP_CASE(atan2), inf, -inf, half{2.35619f}, inexact},
    {MP_CASE(atan2), nan, one, nan, none},
    {MP_CASE(hypot), -inf, nan, inf, none},
    {MP_CASE(hypot), nan, inf, inf, none},
    {MP_CASE(hypot), inf, signaling, nan, invalid},
    {MP_CASE(hypot), nan, one, nan, none},
    {MP_CASE(hypot), -zero, -zero, zero, none},
    {MP_CASE(hypot), -zero, -two, two, none},
    {MP_CASE(hypot), half{-3.0f}, half{4.0f}, half{5.0f}, none},
    {MP_CASE(hypot), limits::max(), limits::max(), inf, inexact | mp::status_flag::overflow},
};

#undef MP_CASE

}  // namespace

TEST_CASE("special values of functions of one number") {
    for (const unary_case& c : unary_cases) {
        INFO(c.name, " of ", static_cast<float>(c.x));
        mp::environment env;
        CHECK(same(c.function(c.x, env), c.expected));
        CHECK(env.raised == c.raised);
    }
}

TEST_CASE("special values of functions of two numbers") {
    for (const binary_case& c : binary_cases) {
        INFO(c.name, " of ", static_cast<float>(c.x), " and ", static_cast<float>(c.y));
        mp::environment env;
        CHECK(same(c.function(c.x, c.y, env), c.expected));
        CHECK(env.raised == c.raised);
    }
}

TEST_CASE("a NaN goes through every function with sign and payload, and a signalling one raises invalid") {
    const half payload = half::from_bits(0xfe2a);
    for (const unary_case& c : unary_cases) {
        INFO(c.name);
        mp::environment env;
        CHECK(c.function(payload, env).bits() == payload.bits());
        CHECK(env.raised == none);
        CHECK(mp::isnan(c.function(signaling, env)));
        CHECK(env.raised == invalid);
    }
}

TEST_CASE("formats without infinity, NaN or signs have in their place what conversions put there") {
    using e4m3 = mp::float8_e4m3fn;
    using e2m1 = mp::float4_e2m1fn;
    using e8m0 = mp::float8_e8m0fnu;
    CHECK(mp::isnan(mp::log(e4m3{0.0f})));
    CHECK(static_cast<float>(mp::log(e4m3{0.0f}, {.saturate = mp::saturation::finite})) == -448);
    CHECK(mp::isnan(mp::exp(e4m3{448.0f})));
    CHECK(static_cast<float>(mp::exp(e4m3{448.0f}, {.saturate = mp::saturation::finite})) == 448);
    CHECK(static_cast<float>(mp::log(e2m1{-1.0f})) == 6);
    CHECK(static_cast<float>(mp::log(e2m1{0.0f})) == -6);
    CHECK(static_cast<float>(mp::exp(e2m1{6.0f})) == 6);
    CHECK(mp::isnan(mp::log(e8m0{0.5f})));
    CHECK(mp::isnan(mp::log(e8m0{1.0f})));
    CHECK(static_cast<float>(mp::log2(e8m0{16.0f})) == 4);
    CHECK(static_cast<float>(mp::rsqrt(e8m0{16.0f})) == 0.25f);
    CHECK(mp::sin(mp::float8_e4m3fnuz{0.0f}).bits() == 0);
    CHECK(mp::isnan(mp::sin(mp::float8_e4m3fnuz::from_bits(0x80))));
}

TEST_CASE("an environment that flushes takes subnormal operands and results for zeros") {
    const half subnormal = half::from_bits(0x8123);
    mp::environment flush{.subnormals = mp::subnormal_handling::flush_all};
    CHECK(mp::sin(subnormal, flush).bits() == 0x8000);
    CHECK(mp::log(subnormal, flush).bits() == (-inf).bits());
    CHECK(flush.raised == pole);
    mp::environment flush_results{.subnormals = mp::subnormal_handling::flush_results};
    CHECK(mp::exp(half{-10.0f}, flush_results).bits() == 0);
    CHECK(flush_results.raised == (inexact | mp::status_flag::underflow));
}

TEST_CASE("every function takes subnormal operands for zeros where the environment does") {
    const auto check = [](auto of_subnormal, auto of_zero) {
        mp::environment flush{.subnormals = mp::subnormal_handling::flush_all};
        mp::environment gradual;
        CHECK(same(of_subnormal(flush), of_zero(gradual)));
        CHECK(flush.raised == gradual.raised);
    };
    for (const half tiny : {half::from_bits(0x0001), half::from_bits(0x8123), half::from_bits(0x03ff)}) {
        const half taken_for = mp::signbit(tiny) ? -zero : zero;
        for (const unary_case& c : unary_cases) {
            INFO(c.name);
            check([&](mp::environment& e) { return c.function(tiny, e); },
                  [&](mp::environment& e) { return c.function(taken_for, e); });
        }
        for (const binary_case& c : binary_cases) {
            INFO(c.name);
            check([&](mp::environment& e) { return c.function(tiny, -two, e); },
                  [&](mp::environment& e) { return c.function(taken_for, -two, e); });
            check([&](mp::environment& e) { return c.function(-two, tiny, e); },
                  [&](mp::environment& e) { return c.function(-two, taken_for, e); });
        }
    }
}

TEST_CASE("stochastic rounding sees the evaluated bits") {
    // e = 2.71828..., between 2.716796875 and 2.71875, at 0.760 of the way
    const half below = mp::exp(one, {.round = mp::rounding::downward});
    const half above = mp::exp(one, {.round = mp::rounding::upward});
    CHECK(above.bits() == below.bits() + 1);
    int up = 0;
    for (unsigned random = 0; random < 256; ++random) {
        if (mp::exp(one, mp::stochastic(random, 8)).bits() == above.bits()) ++up;
    }
    CHECK(up == 194);  // floor(256 * 0.76029...)
}

namespace {

static_assert(mp::exp(one).bits() == half{2.71828f}.bits());
static_assert(mp::log(mp::bfloat16{10.0f}).bits() == mp::bfloat16{2.302585f}.bits());
static_assert(mp::sin(mp::bfloat16{1e38f}).bits() == mp::bfloat16{-0.705921f}.bits());
static_assert(mp::pow(two, half{0.5f}).bits() == half{1.414214f}.bits());
static_assert(mp::tgamma(half{0.5f}).bits() == half{1.772454f}.bits());
static_assert(mp::erf(half{0.5f}).bits() == half{0.5204999f}.bits());
static_assert(mp::atan2(one, -one, {.round = mp::rounding::upward}).bits() == half{2.35742f}.bits());
static_assert(mp::hypot(half{3.0f}, half{4.0f}) == half{5.0f});

}  // namespace
