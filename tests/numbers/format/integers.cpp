// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

__extension__ using int128 = __int128;
__extension__ using uint128 = unsigned __int128;

template <class Integer>
constexpr bool is_signed = Integer(-1) < Integer(0);

template <class Integer>
constexpr Integer largest() {
    return is_signed<Integer>
               ? static_cast<Integer>((((Integer{1} << (sizeof(Integer) * 8 - 2)) - 1) * 2) + 1)
               : static_cast<Integer>(~Integer{0});
}

template <class Integer>
constexpr Integer lowest() {
    return is_signed<Integer> ? static_cast<Integer>(-largest<Integer>() - 1) : Integer{0};
}

template <class Integer>
uint128 magnitude_of(Integer x) {
    return x < Integer{0} ? uint128{0} - static_cast<uint128>(x) : static_cast<uint128>(x);
}

oracle::natural to_natural(uint128 x) {
    return (oracle::natural(static_cast<std::uint64_t>(x >> 64)) << 64) +
           oracle::natural(static_cast<std::uint64_t>(x));
}

template <class To, class Integer>
void compare(oracle::disagreements& wrong, Integer x) {
    const bool negative = x < Integer{0};
    const uint128 magnitude = magnitude_of(x);
    const oracle::format& f = oracle::format_of<To>;
    const oracle::exact_result exact = exact_from_dyadic(f, negative, {to_natural(magnitude), 0});
    oracle::compare_in_every_projection<To>(
        wrong, exact, [&](mp::projection p) { return mp::round_to<To>(x, p); }, "from integer", negative,
        static_cast<std::uint64_t>(magnitude));
    if constexpr (mp::reduced<To>) {
        const oracle::outcome expected = finish(f, exact, oracle::mode::nearest_even, oracle::saturate::none);
        if (!matches(f, expected, To(x).bits()))
            wrong.add("cast from integer", static_cast<std::uint64_t>(magnitude));
    }
}

/// Integers at the ends of the type, at every power of two and at every place between two numbers of the
/// format.
template <class To, class Integer>
void compare_edges(oracle::disagreements& wrong) {
    for (int i = 0; i < 3; ++i) {
        compare<To>(wrong, static_cast<Integer>(lowest<Integer>() + static_cast<Integer>(i)));
        compare<To>(wrong, static_cast<Integer>(largest<Integer>() - static_cast<Integer>(i)));
    }
    const auto around = [&](uint128 x) {
        for (int offset = -1; offset <= 1; ++offset) {
            const uint128 y = x + static_cast<uint128>(static_cast<int128>(offset));
            if (y > static_cast<uint128>(largest<Integer>())) continue;
            compare<To>(wrong, static_cast<Integer>(y));
            if (is_signed<Integer>)
                compare<To>(wrong, static_cast<Integer>(Integer{0} - static_cast<Integer>(y)));
        }
    };
    for (std::size_t bit = 0; bit < sizeof(Integer) * 8; ++bit) around(uint128{1} << bit);
    const oracle::format& f = oracle::format_of<To>;
    const std::uint64_t last = max_finite_code(f) + 1;
    for (std::uint64_t code = 0; code <= last; code += 1 + last / 1500) {
        const oracle::dyadic middle = middle_above(f, code);
        const int top = middle.significand.bit_length() + middle.exponent;
        if (top < 0 || top >= static_cast<int>(sizeof(Integer) * 8)) continue;
        const uint128 significand = middle.significand.low_bits();
        around(middle.exponent >= 0 ? significand << middle.exponent : significand >> -middle.exponent);
    }
    oracle::random_bits random(41);
    for (int i = 0; i < 200; ++i) {
        const uint128 bits = (static_cast<uint128>(random.next()) << 64 | random.next()) >> random.below(127);
        compare<To>(wrong, static_cast<Integer>(bits));
    }
}

/// The integer that a number becomes: toward zero, saturating, NaN to zero.
template <class Integer>
Integer expected_integer(const oracle::format& f, std::uint64_t code) {
    if (is_nan(f, code)) return 0;
    const bool negative = is_negative(f, code);
    const Integer limit = negative ? lowest<Integer>() : largest<Integer>();
    if (is_infinite(f, code)) return limit;
    const oracle::dyadic x = value_of_magnitude(f, magnitude_code(f, code));
    if (compare(x, {to_natural(magnitude_of(limit)), 0}) >= 0) return limit;
    uint128 magnitude = x.significand.low_bits();
    if (x.exponent >= 0) {
        magnitude <<= x.exponent;
    } else {
        magnitude = x.exponent < -60 ? 0 : magnitude >> -x.exponent;
    }
    return static_cast<Integer>(negative ? 0 - magnitude : magnitude);
}

template <class From, class Integer>
void compare_to_integer(oracle::disagreements& wrong) {
    const oracle::format& f = oracle::format_of<From>;
    for (std::uint64_t code = 0; code < code_count(f); ++code) {
        const Integer expected = expected_integer<Integer>(f, code);
        const Integer result = static_cast<Integer>(oracle::value_of<From>(code));
        if (result != expected) {
            wrong.add("to", sizeof(Integer), "byte integer", code, "gives",
                      static_cast<std::uint64_t>(result), "instead of", static_cast<std::uint64_t>(expected));
        }
    }
}

}  // namespace

TEST_CASE_TEMPLATE_DEFINE("integers of every type are rounded once, in every projection", To, from_integers) {
    oracle::disagreements wrong;
    compare_edges<To, signed char>(wrong);
    compare_edges<To, unsigned char>(wrong);
    compare_edges<To, char>(wrong);
    compare_edges<To, char16_t>(wrong);
    compare_edges<To, short>(wrong);
    compare_edges<To, unsigned short>(wrong);
    compare_edges<To, int>(wrong);
    compare_edges<To, unsigned>(wrong);
    compare_edges<To, long>(wrong);
    compare_edges<To, unsigned long>(wrong);
    compare_edges<To, long long>(wrong);
    compare_edges<To, unsigned long long>(wrong);
    compare_edges<To, int128>(wrong);
    compare_edges<To, uint128>(wrong);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE_APPLY(from_integers, oracle::all_formats);
TEST_CASE_TEMPLATE_INVOKE(from_integers, float);

TEST_CASE("integers that float would round onto a midpoint first are rounded once") {
    CHECK(static_cast<double>(mp::bfloat16((1 << 30) + (1 << 22) + 1)) == 1082130432);
    CHECK(static_cast<double>(mp::bfloat16(-((1 << 30) + (1 << 22) + 1))) == -1082130432);
    CHECK(static_cast<double>(mp::bfloat16((1LL << 60) + (1LL << 52) + 1)) == 0x1.02p60);
}

TEST_CASE_TEMPLATE_DEFINE("all codes become the integers they should: toward zero, saturating, NaN to zero",
                          From, to_integers) {
    oracle::disagreements wrong;
    compare_to_integer<From, signed char>(wrong);
    compare_to_integer<From, unsigned char>(wrong);
    compare_to_integer<From, char>(wrong);
    compare_to_integer<From, short>(wrong);
    compare_to_integer<From, unsigned short>(wrong);
    compare_to_integer<From, int>(wrong);
    compare_to_integer<From, unsigned>(wrong);
    compare_to_integer<From, long long>(wrong);
    compare_to_integer<From, unsigned long long>(wrong);
    compare_to_integer<From, int128>(wrong);
    compare_to_integer<From, uint128>(wrong);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE_APPLY(to_integers, oracle::all_formats);

TEST_CASE_TEMPLATE("truth values convert both ways", Value, mp::half, mp::bfloat16, mp::float8_e4m3fn,
                   mp::float8_e5m2) {
    CHECK(Value(true) == Value(1.0f));
    CHECK(Value(false).bits() == 0);
    for (std::uint64_t code = 0; code < 2 * oracle::sign_bit(oracle::format_of<Value>); ++code) {
        const bool zero = oracle::is_zero(oracle::format_of<Value>, code);
        REQUIRE(static_cast<bool>(oracle::value_of<Value>(code)) == !zero);
    }
}
