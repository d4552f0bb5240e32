// SPDX-License-Identifier: MIT
// Reading: decimals are rounded once from their digits, however many there are, which public test data does
// not show: the strings here lie on every midpoint of a format and a hair beside it.
#include <doctest/doctest.h>
#include <charconv>
#include <cstdint>
#include <sstream>
#include <string>
#include <utility>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

using oracle::natural;

/// digits * 10^exponent
struct decimal {
    natural digits;
    int exponent;
};

/// Every dyadic number is a decimal: m / 2^k = m * 5^k / 10^k.
decimal to_decimal(const oracle::dyadic& x) {
    if (x.exponent >= 0) return {x.significand << x.exponent, 0};
    return {x.significand * natural::power(5, -x.exponent), x.exponent};
}

/// One of several spellings of a decimal.
std::string spelled(const decimal& d, std::uint32_t style) {
    std::string digits = d.digits.decimal();
    const auto count = static_cast<int>(digits.size());
    switch (style % 4) {
        case 0:
            return digits + "e" + std::to_string(d.exponent);
        case 1:
            return digits.substr(0, 1) + "." + digits.substr(1) + "E" +
                   std::to_string(d.exponent + count - 1);
        case 2:
            return std::string("000.") + digits + "000e+00" + std::to_string(d.exponent + count);
        default:
            break;
    }
    // Fixed notation, or an exponent that moves the point out of the digits.
    if (d.exponent > 0 || -d.exponent > 200)
        return std::string("0") + digits + ".e" + std::to_string(d.exponent);
    const int whole_digits = count + d.exponent;
    if (whole_digits > 0) {
        const auto point = static_cast<std::size_t>(whole_digits);
        return digits.substr(0, point) + "." + digits.substr(point);
    }
    return std::string(".").append(static_cast<std::size_t>(-whole_digits), '0').append(digits);
}

/// "000.123e+00-5" is no number: style 2 needs a sign of its own.
std::string repaired(std::string text) {
    const std::size_t place = text.find("e+00-");
    if (place != std::string::npos) text.replace(place, 5, "e-00");
    return text;
}

template <class Value>
void compare_text(oracle::disagreements& wrong, const std::string& text, const oracle::exact_result& exact,
                  std::chars_format format = std::chars_format::general, bool every_mode = false) {
    const oracle::format& f = oracle::format_of<Value>;
    for (const oracle::mode m : oracle::modes) {
        if (!every_mode && m != oracle::mode::nearest_even) continue;
        for (const oracle::saturate s : oracle::saturations) {
            if (!every_mode && s != oracle::saturate::none) continue;
            const oracle::outcome expected = finish(f, exact, m, s);
            const bool too_large = expected.nan || is_infinite(f, expected.code);
            const bool too_small =
                exact.what != oracle::exact_result::kind::zero && !expected.nan && is_zero(f, expected.code);
            const auto before = oracle::value_of<Value>(5);
            Value x = before;
            const auto result = mp::from_chars(text.data(), text.data() + text.size(), x, format,
                                               oracle::library_projection(m, s));
            const bool right = result.ptr == text.data() + text.size() &&
                               (too_large || too_small
                                    ? result.ec == std::errc::result_out_of_range && x.bits() == before.bits()
                                    : result.ec == std::errc{} && x.bits() == expected.code);
            if (!right)
                wrong.add(text, name_of(m), name_of(s), "gives", +x.bits(), "instead of", expected.code);
        }
    }
}

}  // namespace

TEST_CASE_TEMPLATE("every midpoint, and every number a hair beside it, is rounded once", Value, mp::half,
                   mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    const std::uint64_t step = f == oracle::bfloat16 ? 7 : 1;
    for (std::uint64_t code = 0; code <= max_finite_code(f); code += step) {
        const decimal middle = to_decimal(middle_above(f, code));
        oracle::exact_result exact{oracle::exact_result::kind::between, false, false, code,
                                   oracle::place::at_middle};
        const auto style = static_cast<std::uint32_t>(code);
        const bool every_mode = code % 64 == 0 || code + 64 > max_finite_code(f);
        compare_text<Value>(wrong, repaired(spelled(middle, style)), exact, std::chars_format::general,
                            every_mode);
        // A few digits further, and beyond any buffer.
        for (const int further : {1, 30, 300}) {
            if (further == 300 && code % 16 != 0) continue;
            const natural fine = middle.digits * natural::power(10, further);
            const natural one = 1;
            exact.where = oracle::place::above_middle;
            compare_text<Value>(wrong, repaired(spelled({fine + one, middle.exponent - further}, style)),
                                exact, std::chars_format::general, every_mode);
            exact.where = oracle::place::below_middle;
            compare_text<Value>(wrong, repaired(spelled({fine - one, middle.exponent - further}, style)),
                                exact, std::chars_format::general, every_mode);
        }
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("decimals of any size are rounded once, in every projection", Value, mp::half,
                   mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    oracle::random_bits random(71);
    for (int i = 0; i < 6000; ++i) {
        const natural digits = random.next() >> random.below(64);
        const int exponent = static_cast<int>(random.below(140)) - 90;
        const bool negative = random.below(2) == 0;
        const std::string sign(negative ? 1 : 0, '-');
        compare_text<Value>(wrong, sign + repaired(spelled({digits, exponent}, random.below(4))),
                            exact_from_decimal(f, negative, digits, exponent), std::chars_format::general,
                            true);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("hexadecimal numbers are rounded once, in every projection", Value, mp::half, mp::bfloat16,
                   mp::float8_e4m3fn, mp::float8_e5m2) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    oracle::random_bits random(72);
    for (int i = 0; i < 20000; ++i) {
        const bool negative = random.below(2) == 0;
        std::string text(negative ? 1 : 0, '-');
        natural significand;
        int exponent = 0;
        const std::uint32_t count = 1 + random.below(i % 10 == 0 ? 60 : 6);
        const std::uint32_t point = random.below(count + 1);
        for (std::uint32_t k = 0; k < count; ++k) {
            // Long runs of zeros reach midpoints.
            const std::uint32_t digit = random.below(3) == 0 || k < 4 ? random.below(16) : 0;
            if (k == point) text += ".";
            if (k >= point) exponent -= 4;
            text += (random.below(2) == 0 ? "0123456789abcdef" : "0123456789ABCDEF")[digit];
            significand = (significand << 4) + natural(digit);
        }
        const int power = static_cast<int>(random.below(60)) - 40;
        if (random.below(4) != 0) {
            text += random.below(2) == 0 ? 'p' : 'P';
            text += std::to_string(power);
            exponent += power;
        }
        compare_text<Value>(wrong, text, exact_from_dyadic(f, negative, {significand, exponent}),
                            std::chars_format::hex, true);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("zeros behind many hexadecimal digits are nothing, whatever follows the number") {
    // 1 + 2^-11 is in the middle between two numbers.
    const std::string zeros(40, '0');
    for (const std::string& end : {std::string("p0"), std::string("p0f"), std::string("p+0 7")}) {
        mp::half x;
        std::string text = "1.002" + zeros + end;
        mp::from_chars(text.data(), text.data() + text.size(), x, std::chars_format::hex);
        CHECK(x.bits() == 0x3c00);
        text = "1.002" + zeros + "1" + end;
        mp::from_chars(text.data(), text.data() + text.size(), x, std::chars_format::hex);
        CHECK(x.bits() == 0x3c01);
    }
    // Behind the end of the text is a digit, which nobody reads.
    mp::half x;
    const std::string text = "1.002" + zeros + "7";
    mp::from_chars(text.data(), text.data() + text.size() - 1, x, std::chars_format::hex);
    CHECK(x.bits() == 0x3c00);
}

TEST_CASE("exponents of any length do no harm") {
    oracle::disagreements wrong;
    const std::string many_zeros(1000, '0');
    const oracle::format& f = oracle::binary16;
    const auto exact_one = exact_from_dyadic(f, false, {1, 0});
    const auto tiny = exact_from_dyadic(f, false, {1, -100000});
    const auto huge = exact_from_dyadic(f, false, {1, 100000});
    compare_text<mp::half>(wrong, std::string("1") + many_zeros + "e-1000", exact_one);
    compare_text<mp::half>(wrong, std::string("0.") + many_zeros + "1e1001", exact_one);
    compare_text<mp::half>(wrong, "1e-99999999999999999999", tiny);
    compare_text<mp::half>(wrong, "1e99999999999999999999", huge);
    compare_text<mp::half>(wrong, "1e+000000000000000000000000000", exact_one);
    compare_text<mp::half>(wrong, "0e99999999999999999999", oracle::exact_zero(false, false));
    compare_text<mp::half>(wrong, "-0.000", oracle::exact_zero(true, false));
    compare_text<mp::half>(wrong, std::string("1") + many_zeros, huge);
    compare_text<mp::half>(wrong, "1p-99999999999999999999", tiny, std::chars_format::hex);
    compare_text<mp::half>(wrong, "1p2147483648", huge, std::chars_format::hex);
    compare_text<mp::half>(wrong, std::string("1") + many_zeros + "p-4000", exact_one,
                           std::chars_format::hex);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

// libc++ has no std::from_chars for floats (until 20).
#if defined(__cpp_lib_to_chars)
TEST_CASE("where a number ends and what is none is decided as std::from_chars decides it for float") {
    oracle::disagreements wrong;
    const std::string letters = "01.-+eEinfaN(x) p";
    const auto compare_with_float = [&](const std::string& text, std::chars_format format) {
        float expected = 0;
        mp::bfloat16 x{0.0f};
        const auto by_float = std::from_chars(text.data(), text.data() + text.size(), expected, format);
        const auto result = mp::from_chars(text.data(), text.data() + text.size(), x, format);
        if (result.ptr != by_float.ptr || result.ec != by_float.ec) {
            wrong.add(std::string("'") + text + "'", static_cast<int>(format), "ends at",
                      result.ptr - text.data(), "instead of", by_float.ptr - text.data());
        } else if (result.ec == std::errc{} && mp::bfloat16(expected).bits() != x.bits() && !mp::isnan(x)) {
            wrong.add(std::string("'") + text + "'", static_cast<int>(format), "gives", x.bits());
        }
    };
    constexpr std::chars_format formats[] = {std::chars_format::general, std::chars_format::fixed,
                                             std::chars_format::scientific, std::chars_format::hex};
    for (const std::chars_format format : formats) {
        // All texts of up to four letters, and random longer ones.
        for (std::size_t length = 0; length <= 4; ++length) {
            std::size_t texts = 1;
            for (std::size_t i = 0; i < length; ++i) texts *= letters.size();
            for (std::size_t n = 0; n < texts; ++n) {
                std::string text;
                for (std::size_t i = 0, rest = n; i < length; ++i, rest /= letters.size()) {
                    text += letters[rest % letters.size()];
                }
                compare_with_float(text, format);
            }
        }
        oracle::random_bits random(73);
        const char* pieces[] = {"inf", "infinity", "INFINITY", "nan", "nan(abc_1)", "nan(", "1", "0", ".",
                                "e",   "e-1",      "p1",       "p",   "-",          "+",    " ", "x", "e1"};
        for (int n = 0; n < 50000; ++n) {
            std::string text;
            for (std::uint32_t count = 1 + random.below(5); count != 0; --count)
                text += pieces[random.below(18)];
            compare_with_float(text, format);
        }
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
#endif

TEST_CASE("streams read numbers, skip white space, and set failbit for what is none") {
    mp::half x(7.0f);
    mp::half y(7.0f);
    std::istringstream two("  1.00048828125000001\t-2e-3 rest");
    CHECK(static_cast<bool>(two >> x >> y));
    CHECK(x.bits() == 0x3c01);
    CHECK(y == mp::half(-2e-3));
    std::string rest;
    CHECK(static_cast<bool>(two >> rest));
    CHECK(rest == "rest");

    std::istringstream plus("+1.5");
    CHECK(static_cast<bool>(plus >> x));
    CHECK(x == mp::half(1.5f));
    std::istringstream comma("0.25,0.5");
    CHECK(static_cast<bool>(comma >> x));
    CHECK(x == mp::half(0.25f));
    CHECK(comma.get() == ',');
    CHECK(static_cast<bool>(comma >> x));
    CHECK(x == mp::half(0.5f));
    CHECK(comma.eof());
    std::istringstream infinity("-inf nan");
    CHECK(static_cast<bool>(infinity >> x >> y));
    CHECK(x.bits() == 0xfc00);
    CHECK(mp::isnan(y));

    // What a float has after a failure: nothing where there was no text, zero for text that is no number, the limit.
    const std::pair<const char*, float> failures[] = {{"", 7.0f},         {"   ", 7.0f}, {"abc", 0.0f},
                                                      {"-", 0.0f},        {"1e", 0.0f},  {"--1", 0.0f},
                                                      {"65520", 65504.0f}};
    for (const auto& [bad, value] : failures) {
        CAPTURE(bad);
        std::istringstream stream(bad);
        mp::half z(7.0f);
        CHECK(!static_cast<bool>(stream >> z));
        CHECK(stream.fail());
        CHECK(z == mp::half(value));
    }
    std::istringstream small("1e-30");
    CHECK(static_cast<bool>(small >> x));
    CHECK(x.bits() == 0);
    std::wistringstream wide(L"0.5");
    CHECK(static_cast<bool>(wide >> x));
    CHECK(x == mp::half(0.5f));
}

#if defined(__cpp_lib_to_chars)
TEST_CASE("the strings of these tests are hard: reading through float or double fails a third of them") {
    const oracle::format& f = oracle::binary16;
    long through_float = 0;
    long through_double = 0;
    long wrong = 0;
    long count = 0;
    for (std::uint64_t code = 0; code < max_finite_code(f); ++code) {
        const decimal middle = to_decimal(middle_above(f, code));
        for (const int hair : {-1, 0, 1}) {
            // The middle itself, or one in a place far behind its last digit.
            decimal d = middle;
            if (hair != 0) {
                d.digits = d.digits * natural::power(10, 60);
                d.digits = hair > 0 ? d.digits + natural(1) : d.digits - natural(1);
                d.exponent -= 60;
            }
            const std::string text = spelled(d, 0);
            const std::uint64_t right = code + (hair > 0 || (hair == 0 && code % 2 == 1) ? 1 : 0);
            float single = 0;
            double wide = 0;
            mp::half number{};
            std::from_chars(text.data(), text.data() + text.size(), single);
            std::from_chars(text.data(), text.data() + text.size(), wide);
            mp::from_chars(text.data(), text.data() + text.size(), number);
            ++count;
            through_float += mp::half(single).bits() != right ? 1 : 0;
            through_double += mp::half(wide).bits() != right ? 1 : 0;
            wrong += number.bits() != right ? 1 : 0;
        }
    }
    CHECK(count == 3 * 31743);
    CHECK(through_float == count / 3);
    CHECK(through_double == count / 3);
    CHECK(wrong == 0);
}
#endif
