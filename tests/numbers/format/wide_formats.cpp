// SPDX-License-Identifier: MIT
// The P3109 formats with more range than double: every signed one that IEEE P3109 has below 17 bits, and some
// without signs. Arithmetic, conversions, text and limits against the oracle.
#include <mp/math.hpp>

#include <doctest/doctest.h>
#include <algorithm>
#include <climits>
#include <cstdint>
#include <limits>
#include <string>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

template <int K, int P>
using unsigned_p3109 = mp::p3109<K, P, mp::signedness::is_unsigned>;

template <class Value>
void compare_at(oracle::disagreements& wrong, oracle::random_bits& random) {
    const oracle::format& f = oracle::format_of<Value>;
    const std::uint64_t i = weighted_code(random, f);
    const std::uint64_t j = weighted_partner(random, f, i);
    const std::uint64_t k = weighted_partner(random, f, j);
    const Value a = oracle::value_of<Value>(i);
    const Value b = oracle::value_of<Value>(j);
    const Value c = oracle::value_of<Value>(k);
    const mp::rounding modes[] = {mp::rounding::nearest_even, mp::rounding::upward};
    const oracle::mode oracle_modes[] = {oracle::mode::nearest_even, oracle::mode::upward};
    for (int n = 0; n < 2; ++n) {
        const mp::projection p{.round = modes[n]};
        const auto check = [&](const char* what, const oracle::exact_result& exact, Value result) {
            const auto expected = finish(f, exact, oracle_modes[n], oracle::saturate::none);
            if (!matches(f, expected, result.bits()))
                wrong.add(what, i, j, k, n, "gives", +result.bits(), "instead of", expected.code);
        };
        check("+", oracle::add(f, i, j), mp::add(a, b, p));
        check("-", oracle::subtract(f, i, j), mp::subtract(a, b, p));
        check("*", oracle::multiply(f, i, j), mp::multiply(a, b, p));
        check("/", oracle::divide(f, i, j), mp::divide(a, b, p));
        check("fma", oracle::fma(f, i, j, k), mp::fma(a, b, c, p));
        check("sqrt", oracle::sqrt(f, i), mp::sqrt(a, p));

        const std::uint64_t wide = weighted_code(random, oracle::binary64);
        check("from double", convert(oracle::binary64, wide, f),
              mp::round_to<Value>(oracle::value_of<double>(wide), p));
        const std::uint64_t narrow = weighted_code(random, oracle::binary32);
        check("from float", convert(oracle::binary32, narrow, f),
              mp::round_to<Value>(oracle::value_of<float>(narrow), p));

        const auto check_native = [&](const char* what, const oracle::format& to, std::uint64_t result) {
            const auto expected = finish(to, convert(f, i, to), oracle_modes[n], oracle::saturate::none);
            if (!matches(to, expected, result)) wrong.add(what, i, n, "gives", result);
        };
        check_native("to double", oracle::binary64, oracle::code_of(mp::round_to<double>(a, p)));
        check_native("to float", oracle::binary32, oracle::code_of(mp::round_to<float>(a, p)));
        check_native("to half", oracle::binary16, mp::round_to<mp::half>(a, p).bits());
    }
    if (!mp::isnan(a)) {
        const auto expected = finish(oracle::binary64, convert(f, i, oracle::binary64),
                                     oracle::mode::nearest_even, oracle::saturate::none);
        if (oracle::code_of(static_cast<double>(a)) != expected.code) wrong.add("cast to double", i);
    }
}

template <class Value>
void read_back(oracle::disagreements& wrong, oracle::random_bits& random) {
    const std::uint64_t code = weighted_code(random, oracle::format_of<Value>);
    const Value x = oracle::value_of<Value>(code);
    char text[64];
    const auto end = mp::to_chars(text, text + sizeof text, x);
    Value back{};
    const auto read = mp::from_chars(text, end.ptr, back);
    const bool same = mp::isnan(x) ? mp::isnan(back) : back.bits() == x.bits();
    if (end.ec != std::errc{} || read.ec != std::errc{} || read.ptr != end.ptr || !same)
        wrong.add("text", code, std::string(text, end.ptr));
}

}  // namespace

TEST_CASE_TEMPLATE("formats with more range than double are the oracle's", Value, mp::p3109<13, 1>,
                   mp::p3109<14, 1>, mp::p3109<14, 2>, mp::p3109<15, 1>, mp::p3109<15, 2>, mp::p3109<15, 3>,
                   mp::p3109<16, 1>, mp::p3109<16, 2>, mp::p3109<16, 3>, mp::p3109<16, 4>,
                   unsigned_p3109<12, 1>, unsigned_p3109<16, 1>, unsigned_p3109<16, 5>) {
    oracle::disagreements wrong;
    oracle::random_bits random(31);
    for (int n = 0; n < 200; ++n) compare_at<Value>(wrong, random);
    for (int n = 0; n < 80; ++n) read_back<Value>(wrong, random);
    INFO(wrong.first());
    CHECK(wrong.count == 0);

    // 10^n <= max < 10^(n + 1), and 10^m is the smallest power of ten that is a normal number.
    const oracle::format& f = oracle::format_of<Value>;
    using limits = std::numeric_limits<Value>;
    const oracle::dyadic largest = value_of_magnitude(f, max_finite_code(f));
    const auto power = [](int n) { return oracle::dyadic{oracle::natural::power(10, n), 0}; };
    CHECK(limits::max().bits() == max_finite_code(f));
    CHECK(compare(power(limits::max_exponent10), largest) <= 0);
    CHECK(compare(power(limits::max_exponent10 + 1), largest) > 0);
    const oracle::dyadic smallest = value_of_magnitude(f, min_normal_code(f));
    const oracle::dyadic one{oracle::natural(1), 0};
    CHECK(compare(product(power(-limits::min_exponent10), smallest), one) <= 0);
    CHECK(compare(product(power(1 - limits::min_exponent10), smallest), one) > 0);
}

TEST_CASE_TEMPLATE("exponents of formats with more range than double are exact", Value, mp::p3109<14, 1>,
                   mp::p3109<15, 2>, mp::p3109<16, 1>, mp::p3109<16, 3>, unsigned_p3109<16, 1>,
                   unsigned_p3109<16, 5>) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    for (std::uint64_t code = 1; code < code_count(f); code += 61) {
        const Value x = oracle::value_of<Value>(code);
        if (!is_finite(f, code) || is_zero(f, code)) continue;
        const oracle::dyadic value = value_of_magnitude(f, magnitude_code(f, code));
        const int log2 = value.significand.bit_length() - 1 + value.exponent;
        int exponent = 0;
        const Value fraction = mp::frexp(x, &exponent);
        if (exponent != log2 + 1 || mp::ilogb(fraction) != -1) wrong.add("frexp", code, exponent);
        if (mp::scalbn(fraction, exponent).bits() != code) wrong.add("scalbn of frexp", code);
        if (mp::ilogb(x) != log2) wrong.add("ilogb", code);
        for (const int n :
             {-66000, -40000, -20001, -11000, -log2, 11000, 20001, 40000, 66000, INT_MIN, INT_MAX}) {
            const int limited = std::clamp(n, -99999, 99999);
            const auto exact =
                exact_from_dyadic(f, is_negative(f, code), {value.significand, value.exponent + limited});
            const auto expected = finish(f, exact, oracle::mode::nearest_even, oracle::saturate::none);
            if (!matches(f, expected, mp::scalbn(x, n).bits())) wrong.add("scalbn", code, n);
            if (mp::ldexp(x, n).bits() != mp::scalbn(x, n).bits()) wrong.add("ldexp", code, n);
        }
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

namespace {
/// Subnormal numbers down to 2^-32781, beyond the powers of two whose exponent is below 2^15.
struct widest_range {
    static constexpr const char* name = "widest_range";
    static constexpr int exponent_bits = 16;
    static constexpr int fraction_bits = 15;
    static constexpr int bias = 32767;
    static constexpr bool is_signed = true;
    static constexpr mp::nan_encoding nans = mp::nan_encoding::ieee;
    static constexpr bool has_infinity = true;
};
}  // namespace

TEST_CASE("powers of two reach the smallest numbers of the widest format") {
    using value = mp::basic_float<widest_range>;
    for (const int n : {-32767, -32768, -32770, -32781}) {
        CAPTURE(n);
        CHECK(mp::exp2(value(n)).bits() == mp::scalbn(value(1), n).bits());
        CHECK(mp::ilogb(mp::exp2(value(n))) == n);
    }
    CHECK(mp::is_zero(mp::exp2(value(-32783))));
}

TEST_CASE("the number of digits of a power of two") {
    // Some, and those with a power of ten closest by.
    const int exponents[] = {1, 3, 10, 93, 196, 485, 2136, 4757, 7368, 13301, 15437, 28738, 32768};
    for (const int n : exponents) {
        CAPTURE(n);
        const oracle::natural power = oracle::natural(1) << n;
        const int digits = mp::detail::floor_log10_of_power_of_two(n);
        CHECK(oracle::natural::power(10, digits) <= power);
        CHECK(oracle::natural::power(10, digits + 1) > power);
        CHECK(mp::detail::ceil_log10_of_power_of_two(n) == digits + 1);
        CHECK(mp::detail::floor_log10_of_power_of_two(-n) == -digits - 1);
    }
}

TEST_CASE("decimal texts beside the middles of a wide format are rounded once") {
    using value = mp::p3109<16, 1>;
    const oracle::format& f = oracle::format_of<value>;
    oracle::disagreements wrong;
    oracle::random_bits random(32);
    for (int n = 0; n < 40; ++n) {
        const int exponent = static_cast<int>(random.below(9900)) - 4950;
        const std::uint64_t digits = random.next() % 1000000 + 1;
        const std::string text = std::to_string(digits) + "e" + std::to_string(exponent);
        value x{};
        mp::from_chars(text.data(), text.data() + text.size(), x);
        const auto exact = exact_from_decimal(f, false, oracle::natural(digits), exponent);
        const auto expected = finish(f, exact, oracle::mode::nearest_even, oracle::saturate::none);
        const bool out_of_range = expected.code == 0 || expected.code == infinity_code(f);
        if (!out_of_range && !matches(f, expected, x.bits())) wrong.add(text, "gives", +x.bits());
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("the smallest long double is a number of a format with more range") {
    using limits = std::numeric_limits<long double>;
    using widest = unsigned_p3109<16, 1>;
    constexpr int exponent = limits::min_exponent - limits::digits;
    static_assert(exponent >= -16494);
    CHECK(mp::ilogb(mp::round_to<widest>(limits::denorm_min())) == exponent);
    CHECK(mp::ilogb(mp::round_to<widest>(limits::min())) == limits::min_exponent - 1);
    CHECK(mp::ilogb(mp::round_to<widest>(limits::min() / 2)) == limits::min_exponent - 2);
}
