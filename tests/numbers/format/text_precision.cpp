// SPDX-License-Identifier: MIT
// Printing with a notation and with a precision, compared with what the C library prints for the double of
// the same value (glibc prints doubles exactly), and what <charconv> prints for float and double.
#include <doctest/doctest.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>

#include "oracle/library.hpp"
#include "oracle/random.hpp"
#include "text_oracle.hpp"

namespace {

constexpr std::chars_format notations[] = {std::chars_format::fixed, std::chars_format::scientific,
                                           std::chars_format::general, std::chars_format::hex};

template <class Value>
std::string printed(Value x, std::chars_format format, int precision) {
    static char text[4000];
    const auto result = mp::to_chars(text, text + sizeof text, x, format, precision);
    return {text, result.ptr};
}

/// What printf prints; hexadecimal numbers without their 0x.
std::string by_printf(double x, std::chars_format format, int precision) {
    static char text[4000];
    const char* pattern = format == std::chars_format::fixed        ? "%.*f"
                          : format == std::chars_format::scientific ? "%.*e"
                          : format == std::chars_format::general    ? "%.*g"
                                                                    : "%.*a";
    const int length = std::snprintf(text, sizeof text, pattern, precision, x);
    std::string result(text, static_cast<std::size_t>(length));
    if (const std::size_t place = result.find("0x"); place != std::string::npos) result.erase(place, 2);
    return result;
}

template <class Value>
void compare_with_printf(oracle::disagreements& wrong, Value x, int precision) {
    for (const std::chars_format format : notations) {
        // A subnormal double has a leading zero in hexadecimal notation; numbers here never have.
        if (format == std::chars_format::hex && mp::is_subnormal(static_cast<double>(x))) continue;
        const std::string text = printed(x, format, precision);
        const std::string expected = by_printf(static_cast<double>(x), format, precision);
        if (text != expected) wrong.add(Value::format::name, +x.bits(), text, "instead of", expected);
    }
}

/// Compares with std::to_chars in every notation, and with no notation.
template <class Native>
void compare_with_charconv(oracle::disagreements& wrong, Native x, int precision) {
    char text[2000];
    char expected[2000];
    const auto compare = [&](std::to_chars_result by_us, std::to_chars_result by_library) {
        const std::string a(text, by_us.ptr);
        const std::string b(expected, by_library.ptr);
        if (a != b) wrong.add(static_cast<double>(x), precision, a, "instead of", b);
    };
    for (const std::chars_format format : notations) {
        // libstdc++ prints subnormal numbers with a leading zero, printf and the numbers here do not.
        const bool subnormal =
            x != 0 && x < std::numeric_limits<Native>::min() && x > -std::numeric_limits<Native>::min();
        if (format == std::chars_format::hex && subnormal) continue;
#if defined(_LIBCPP_VERSION)
        // Where all hexadecimal digits are wanted, libc++ puts zeros behind them.
        const bool with_zeros = format == std::chars_format::hex && precision < 0;
#else
        const bool with_zeros = false;
#endif
        if (!with_zeros) {
            compare(mp::to_chars(text, text + sizeof text, x, format, precision),
                    std::to_chars(expected, expected + sizeof expected, x, format, precision));
        }
        compare(mp::to_chars(text, text + sizeof text, x, format),
                std::to_chars(expected, expected + sizeof expected, x, format));
    }
    compare(mp::to_chars(text, text + sizeof text, x),
            std::to_chars(expected, expected + sizeof expected, x));
}

}  // namespace

using text_oracle::far_above;
using text_oracle::precise;
using text_oracle::widest;
using p3109_8p1se = mp::p3109<8, 1>;

TEST_CASE_TEMPLATE("small formats print with a precision as the double of the same value", Value,
                   mp::float8_e4m3fn, mp::float8_e5m2, mp::float8_e3m4, mp::float8_e8m0fnu, mp::float6_e2m3fn,
                   mp::float6_e3m2fn, mp::float4_e2m1fn, p3109_8p1se, text_oracle::p3109_8p1ue) {
    oracle::disagreements wrong;
    for (std::uint64_t code = 0; code <= Value::layout::code_mask; ++code) {
        const Value x = oracle::value_of<Value>(code);
        // Which sign a NaN keeps on its way to double is another matter.
        if (mp::isnan(x)) continue;
        for (int precision = 0; precision <= 30; ++precision) compare_with_printf(wrong, x, precision);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("larger formats print with a precision as the double of the same value", Value, mp::half,
                   mp::bfloat16, mp::tfloat32, widest, precise) {
    oracle::disagreements wrong;
    oracle::random_bits random(311);
    for (int i = 0; i < 3000; ++i) {
        const std::uint64_t bits = random.next() >> (i % 4 == 0 ? random.below(64) : 0);
        const Value x = oracle::value_of<Value>(bits & Value::layout::code_mask);
        if (mp::isnan(x)) continue;
        compare_with_printf(wrong, x, static_cast<int>(random.below(i % 16 == 0 ? 1100 : 24)));
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("ties go to the even digit, and carries run through nines") {
    const auto fixed = [](double x, int precision) {
        return printed(mp::half(x), std::chars_format::fixed, precision);
    };
    CHECK(fixed(0.5, 0) == "0");
    CHECK(fixed(1.5, 0) == "2");
    CHECK(fixed(2.5, 0) == "2");
    CHECK(fixed(0.125, 2) == "0.12");
    CHECK(fixed(0.375, 2) == "0.38");
    CHECK(fixed(-9.5, 0) == "-10");
    CHECK(fixed(999.5, 0) == "1000");
    CHECK(fixed(0.998, 2) == "1.00");
    CHECK(fixed(0.0625, 0) == "0");
    CHECK(fixed(0.0, 3) == "0.000");
    CHECK(printed(mp::half(1.5f), std::chars_format::hex, 0) == "2p+0");
    CHECK(printed(mp::half(0.0f), std::chars_format::hex, 2) == "0.00p+0");
    CHECK(printed(mp::half(0.1f), std::chars_format::general, -1) == "0.0999756");
    CHECK(printed(mp::half(0.1f), std::chars_format::hex, -1) == "1.998p-4");
    CHECK(printed(std::numeric_limits<mp::half>::denorm_min(), std::chars_format::hex, -1) == "1p-24");
    CHECK(printed(-std::numeric_limits<mp::half>::infinity(), std::chars_format::hex, 5) == "-inf");
    CHECK(printed(std::numeric_limits<mp::half>::quiet_NaN(), std::chars_format::fixed, 5) == "nan");
}

TEST_CASE("float and double print as <charconv> prints them, in every notation") {
    oracle::disagreements wrong;
    oracle::random_bits random(312);
    for (int i = 0; i < 20000; ++i) {
        const std::uint64_t bits = random.next();
        const int precision = static_cast<int>(random.below(40)) - 1;
        const std::uint64_t narrow = weighted_code(random, oracle::binary32);
        if (is_finite(oracle::binary32, narrow)) {
            compare_with_charconv(wrong, oracle::value_of<float>(narrow), precision);
        }
        // Numbers that people use, and all others.
        const std::uint64_t near = (std::uint64_t{1023} - 30 + bits % 60) << 52 | random.next() >> 12;
        compare_with_charconv(wrong, oracle::value_of<double>(near), precision);
        compare_with_charconv(wrong, static_cast<double>(bits >> random.below(64)), precision);
        if (is_finite(oracle::binary64, bits) && i % 16 == 0) {
            compare_with_charconv(wrong, oracle::value_of<double>(bits), precision);
        }
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

// libc++ has no std::from_chars for floats (until 20).
#if defined(__cpp_lib_to_chars)
TEST_CASE("float and double are read as <charconv> reads them") {
    oracle::disagreements wrong;
    oracle::random_bits random(313);
    const auto compare = [&]<class Native>(Native, const std::string& text) {
        Native x = 7;
        Native expected = 7;
        const auto result = mp::from_chars(text.data(), text.data() + text.size(), x);
        const auto by_library = std::from_chars(text.data(), text.data() + text.size(), expected);
        if (result.ptr != by_library.ptr || result.ec != by_library.ec ||
            oracle::code_of(x) != oracle::code_of(expected)) {
            wrong.add(text, oracle::code_of(x), "instead of", oracle::code_of(expected));
        }
    };
    for (int i = 0; i < 20000; ++i) {
        std::string text = std::to_string(random.next() >> random.below(64));
        for (std::uint32_t more = random.below(8) == 0 ? random.below(60) : 0; more > 0; --more) {
            text += static_cast<char>('0' + random.below(10));
        }
        text.append("e").append(std::to_string(static_cast<int>(random.below(640)) - 340));
        compare(0.0, text);
        compare(0.0f, text);
    }
    // The decimals of a random double and of its neighbours' middles, which are hard to round.
    for (int i = 0; i < 300; ++i) {
        const double x = oracle::value_of<double>(random.next() >> 1);
        if (!mp::isfinite(x)) continue;
        const auto code = oracle::code_of(x);
        const auto middle = text_oracle::middle<mp::formats::binary64>(code);
        const text_oracle::decimal exact = to_decimal(middle);
        compare(0.0, text_oracle::spelled(exact));
        compare(0.0, text_oracle::spelled({exact.digits * 1000 + 1, exact.exponent - 3}));
        compare(0.0, text_oracle::spelled({exact.digits * 1000 - 1, exact.exponent - 3}));
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
#endif

namespace {

/// Text in a constant expression.
template <class Value>
constexpr std::array<char, 32> constant_text(Value x, std::chars_format format, int precision) {
    std::array<char, 32> text{};
    mp::to_chars(text.data(), text.data() + text.size(), x, format, precision);
    return text;
}
constexpr bool equal(const std::array<char, 32>& text, const char* expected) {
    for (const char c : text) {
        if (c != *expected) return false;
        if (c == 0) return true;
        ++expected;
    }
    return false;
}
template <class Value>
constexpr Value read(const char* text, int length, mp::rounding round) {
    Value x{};
    mp::from_chars(text, text + length, x, std::chars_format::general, {.round = round});
    return x;
}

using namespace mp::literals;
static_assert(equal(constant_text(0.1_h, std::chars_format::fixed, 12), "0.099975585938"));
static_assert(equal(constant_text(0x1.8p-130_bf16, std::chars_format::scientific, 3), "1.102e-39"));
static_assert(equal(constant_text(448_e4m3, std::chars_format::hex, 1), "1.cp+8"));
static_assert(equal(constant_text(-0.5_e2m1, std::chars_format::general, 4), "-0.5"));
static_assert(read<mp::half>("0.1", 3, mp::rounding::upward).bits() == 0x2e67);
static_assert(read<mp::bfloat16>("1e-39", 5, mp::rounding::downward).bits() == 10);
static_assert(read<widest>("2.2250738585072014e-308", 23, mp::rounding::nearest_even) ==
              widest::from_bits(widest::layout::hidden_bit));

}  // namespace
