// SPDX-License-Identifier: MIT
#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/float8.hpp>
#include <mp/packed2.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

using mp::bfloat162;
using mp::half;
using mp::half2;
using mp::packed2;

static_assert(std::is_trivially_copyable_v<half2> && std::is_trivially_default_constructible_v<half2>);
static_assert(sizeof(half2) == 4 && alignof(half2) == 4);
static_assert(sizeof(bfloat162) == 4 && alignof(bfloat162) == 4);
static_assert(sizeof(packed2<mp::float8_e4m3fn>) == 2 && alignof(packed2<mp::float8_e4m3fn>) == 2);

// Nothing converts silently, and a double would be rounded twice on its way through float.
static_assert(!std::is_convertible_v<half, half2> && !std::is_convertible_v<half2, bfloat162>);
static_assert(!std::is_constructible_v<half2, double, double> && !std::is_constructible_v<half2, int, int>);

// All of it works in constant expressions.
constexpr half2 one_and_half(1.5F, 2.5F);
constexpr half2 three(half(3));
static_assert(fma(one_and_half, three, three) == half2(7.5F, 10.5F));
static_assert(mp::fma(one_and_half, three, three).second() == half(10.5F));
static_assert((one_and_half * three).floats() == mp::float_pair{4.5F, 7.5F});
static_assert(half2(packed2<mp::float8_e5m2>(one_and_half)) == one_and_half);
static_assert(mp::select(mp::less_mask(one_and_half, half2(half(2))), one_and_half, three)[1] == half(3));

template <class Number>
packed2<Number> random_pair(oracle::random_bits& random) {
    const oracle::format& f = oracle::format_of<Number>;
    return {oracle::value_of<Number>(weighted_code(random, f)),
            oracle::value_of<Number>(weighted_code(random, f))};
}

/// Both numbers of a result against those of the scalar operation.
template <class Number>
void check_pair(oracle::disagreements& wrong, const char* operation, packed2<Number> got, Number first,
                Number second) {
    if (got.first().bits() != first.bits() || got.second().bits() != second.bits() ||
        got[0].bits() != first.bits() || got[1].bits() != second.bits()) {
        wrong.add(operation, "gives", std::uint32_t{got.bits()}, "not", std::uint32_t{first.bits()}, "and",
                  std::uint32_t{second.bits()});
    }
}

/// The same for arithmetic, of which compilers may swap the operands: of two NaNs either may come out.
template <class Number>
void check_arithmetic(oracle::disagreements& wrong, const char* operation, packed2<Number> got, Number first,
                      Number second) {
    const auto canonical = [](Number x) {
        return mp::isnan(x) ? std::numeric_limits<Number>::quiet_NaN() : x;
    };
    check_pair(wrong, operation, packed2<Number>(canonical(got.first()), canonical(got.second())),
               canonical(first), canonical(second));
}

template <class Number>
void check_operations() {
    using pair = packed2<Number>;
    constexpr int width = static_cast<int>(8 * sizeof(Number));
    oracle::random_bits random(5);
    oracle::disagreements wrong;
    for (int i = 0; i < 100000; ++i) {
        const pair a = random_pair<Number>(random);
        const pair b = i % 8 == 0 ? a.swapped() : i % 8 == 1 ? -a : random_pair<Number>(random);
        const pair c = random_pair<Number>(random);
        const Number a0 = a.first();
        const Number a1 = a.second();
        const Number b0 = b.first();
        const Number b1 = b.second();
        check_arithmetic(wrong, "a + b", a + b, a0 + b0, a1 + b1);
        check_arithmetic(wrong, "a - b", a - b, a0 - b0, a1 - b1);
        check_arithmetic(wrong, "a * b", a * b, a0 * b0, a1 * b1);
        check_arithmetic(wrong, "a / b", a / b, a0 / b0, a1 / b1);
        check_arithmetic(wrong, "fma", mp::fma(a, b, c), mp::fma(a0, b0, c.first()),
                         mp::fma(a1, b1, c.second()));
        check_arithmetic(wrong, "sqrt", mp::sqrt(a), mp::sqrt(a0), mp::sqrt(a1));
        check_pair(wrong, "-a", -a, -a0, -a1);
        check_pair(wrong, "+a", +a, a0, a1);
        check_pair(wrong, "fabs", mp::fabs(a), mp::fabs(a0), mp::fabs(a1));
        check_pair(wrong, "swapped", a.swapped(), a1, a0);
        check_pair(wrong, "minimum", mp::minimum(a, b), mp::minimum(a0, b0), mp::minimum(a1, b1));
        check_pair(wrong, "maximum", mp::maximum(a, b), mp::maximum(a0, b0), mp::maximum(a1, b1));
        check_pair(wrong, "minimum_number", mp::minimum_number(a, b), mp::minimum_number(a0, b0),
                   mp::minimum_number(a1, b1));
        check_pair(wrong, "maximum_number", mp::maximum_number(a, b), mp::maximum_number(a0, b0),
                   mp::maximum_number(a1, b1));
        check_pair(wrong, "fmin", mp::fmin(a, b), mp::fmin(a0, b0), mp::fmin(a1, b1));
        check_pair(wrong, "fmax", mp::fmax(a, b), mp::fmax(a0, b0), mp::fmax(a1, b1));

        const auto mask = [](bool first, bool second) {
            const std::uint32_t ones = (1U << width) - 1;
            return (first ? ones : 0U) + (second ? ones << width : 0U);
        };
        if (mp::equal_mask(a, b) != mask(a0 == b0, a1 == b1)) wrong.add("equal_mask", a.bits(), b.bits());
        if (mp::less_mask(a, b) != mask(a0 < b0, a1 < b1)) wrong.add("less_mask", a.bits(), b.bits());
        if (mp::less_equal_mask(a, b) != mask(a0 <= b0, a1 <= b1))
            wrong.add("less_equal_mask", a.bits(), b.bits());
        if ((a == b) != (a0 == b0 && a1 == b1)) wrong.add("a == b", a.bits(), b.bits());
        check_pair(wrong, "select", mp::select(mp::less_mask(a, b), a, c), a0 < b0 ? a0 : c.first(),
                   a1 < b1 ? a1 : c.second());
        pair d = a;
        d += b;
        d -= c;
        d *= b;
        d /= a;
        check_arithmetic(wrong, "d", d, (a0 + b0 - c.first()) * b0 / a0, (a1 + b1 - c.second()) * b1 / a1);
    }
    CAPTURE(Number::format::name);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("operations on pairs are those on each of their numbers") {
    check_operations<half>();
    check_operations<mp::bfloat16>();
    check_operations<mp::float8_e4m3fn>();
    check_operations<mp::float8_e4m3fnuz>();
    check_operations<mp::float4_e2m1fn>();
}

template <class To, class From>
void check_conversion() {
    oracle::random_bits random(6);
    oracle::disagreements wrong;
    for (int i = 0; i < 50000; ++i) {
        const packed2<From> from = random_pair<From>(random);
        check_pair(wrong, "conversion", packed2<To>(from), To(from.first()), To(from.second()));
        const mp::float_pair floats = from.floats();
        if (oracle::code_of(floats.first) != oracle::code_of(static_cast<float>(from.first())) ||
            oracle::code_of(floats.second) != oracle::code_of(static_cast<float>(from.second()))) {
            wrong.add("floats of", from.bits());
        }
        const auto x = oracle::value_of<float>(weighted_code(random, oracle::binary32));
        const auto y = oracle::value_of<float>(weighted_code(random, oracle::binary32));
        check_pair(wrong, "from floats", packed2<To>(x, y), To(x), To(y));
        check_pair(wrong, "from a pair of floats", packed2<To>(mp::float_pair{x, y}), To(x), To(y));
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("conversions of pairs are those of each of their numbers, NaN included") {
    check_conversion<half, mp::float8_e4m3fn>();
    check_conversion<half, mp::float8_e5m2>();
    check_conversion<mp::float8_e4m3fn, half>();
    check_conversion<mp::float8_e5m2, mp::bfloat16>();
    check_conversion<mp::bfloat16, half>();
    check_conversion<mp::float6_e2m3fn, half>();
    check_conversion<mp::float4_e2m1fn, mp::bfloat16>();
    check_conversion<mp::float8_e4m3fnuz, mp::float4_e2m1fn>();
}

TEST_CASE("a pair has the memory of two neighbouring numbers") {
    const half numbers[2] = {half(1.5F), half(-2.0F)};
    half2 pair;
    std::memcpy(&pair, numbers, sizeof pair);
    CHECK(pair.first() == numbers[0]);
    CHECK(pair.second() == numbers[1]);
    CHECK(pair.bits() == 0xc0003e00U);
    CHECK(half2::from_bits(0xc0003e00U) == pair);
    CHECK(half2{}.bits() == 0);
}

TEST_CASE("bits above the codes of a pair of small formats are ignored") {
    using pair = packed2<mp::float4_e2m1fn>;
    CHECK(pair::from_bits(0xf7a2U).bits() == 0x0702U);
    CHECK(pair::from_bits(0xf7a2U).second() == mp::float4_e2m1fn(6.0F));
    CHECK((-pair(1.0F, 2.0F)).bits() == 0x0c0aU);
    CHECK(mp::select(0x00ff, pair(1.0F, 2.0F), pair(3.0F, 4.0F)) == pair(1.0F, 4.0F));
}

}  // namespace
