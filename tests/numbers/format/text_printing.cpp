// SPDX-License-Identifier: MIT
// Printing: every number reads back the same, and the text is the shortest that does. What is expected is
// found by trying decimals of one digit, two digits and so on against the oracle; the same search is checked
// against std::to_chars for float.
#include <doctest/doctest.h>
#include <mp/numbers/format/formatting.hpp>
#include <mp/p3109.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

using oracle::natural;

template <class Value>
std::string printed(Value x) {
    char text[64];
    std::to_chars_result result{};
    if constexpr (mp::reduced<Value>) {
        result = mp::to_chars(text, text + sizeof text, x);
    } else {
        result = std::to_chars(text, text + sizeof text, x);
    }
    REQUIRE(result.ec == std::errc{});
    return {text, result.ptr};
}

/// A positive decimal digits * 10^exponent, of `count` digits.
struct decimal {
    std::uint64_t digits;
    int exponent;
};

/// A fraction: numerator / denominator.
struct fraction {
    natural numerator;
    natural denominator;
};

fraction to_fraction(const oracle::dyadic& x) {
    if (x.exponent >= 0) return {x.significand << x.exponent, 1};
    return {x.significand, natural(1) << -x.exponent};
}

fraction times_power_of_ten(fraction x, int exponent) {
    const natural power = natural::power(10, exponent < 0 ? -exponent : exponent);
    if (exponent >= 0) {
        x.numerator = x.numerator * power;
    } else {
        x.denominator = x.denominator * power;
    }
    return x;
}

std::uint64_t floor_of(const fraction& x) {
    std::uint64_t low = 0;
    std::uint64_t high = std::uint64_t{1} << 63;
    while (high - low > 1) {
        const std::uint64_t middle = low + (high - low) / 2;
        (natural(middle) * x.denominator <= x.numerator ? low : high) = middle;
    }
    return low;
}

/// The shortest decimals that read back as a code, and nearest to it among those; two if they are equally
/// near.
std::vector<decimal> shortest(const oracle::format& f, std::uint64_t code) {
    const fraction value = to_fraction(value_of_magnitude(f, code));
    int magnitude = -60;  // floor(log10(value))
    while (floor_of(times_power_of_ten(value, -magnitude)) >= 10) ++magnitude;
    for (int count = 1;; ++count) {
        const int exponent = magnitude - (count - 1);
        const fraction scaled = times_power_of_ten(value, -exponent);
        const std::uint64_t below = floor_of(scaled);
        std::vector<decimal> found;
        for (const std::uint64_t digits : {below, below + 1}) {
            const auto exact = exact_from_decimal(f, false, digits, exponent);
            if (finish(f, exact, oracle::mode::nearest_even, oracle::saturate::none).code == code) {
                found.push_back({digits, exponent});
            }
        }
        if (found.size() == 2) {
            // Twice the value against the sum of its neighbours tells which of them is nearer.
            const natural twice = scaled.numerator + scaled.numerator;
            const natural sum = natural(2 * below + 1) * scaled.denominator;
            if (twice < sum) found.pop_back();
            if (twice > sum) found.erase(found.begin());
        }
        if (!found.empty()) return found;
    }
}

/// The text that std::to_chars prescribes for a decimal: fixed or scientific, whichever is shorter.
std::string text_of(const oracle::format& f, std::uint64_t code, const decimal& d) {
    std::string digits = std::to_string(d.digits);
    int exponent = d.exponent;
    while (digits.size() > 1 && digits.back() == '0') {
        digits.pop_back();
        ++exponent;
    }
    const int count = static_cast<int>(digits.size());
    const int power = exponent + count - 1;
    std::string scientific = digits.substr(0, 1);
    if (count > 1) scientific.append(".").append(digits, 1);
    scientific += power < 0 ? "e-" : "e+";
    const std::string power_digits = std::to_string(power < 0 ? -power : power);
    if (power_digits.size() < 2) scientific += "0";
    scientific += power_digits;
    std::string fixed;
    if (power < 0) {
        fixed = std::string("0.").append(static_cast<std::size_t>(-power - 1), '0').append(digits);
    } else if (exponent >= 0) {
        // A whole number is written exactly: all its digits are nearest, and no longer, or shorter by a place
        // that the shortest digits were rounded up into. Long ones are not wanted anyway.
        fixed = digits + std::string(static_cast<std::size_t>(exponent), '0');
        const fraction value = to_fraction(value_of_magnitude(f, code));
        if (fixed.size() < 19) fixed = std::to_string(floor_of(value));
    } else {
        const std::size_t point = static_cast<std::size_t>(power) + 1;
        fixed = digits.substr(0, point) + "." + digits.substr(point);
    }
    return fixed.size() <= scientific.size() ? fixed : scientific;
}

template <class Value>
void compare_text(oracle::disagreements& wrong, std::uint64_t code) {
    const oracle::format& f = oracle::format_of<Value>;
    const std::string text = printed(oracle::value_of<Value>(code));
    bool right = false;
    std::string expected;
    for (const decimal& d : shortest(f, code)) {
        expected = text_of(f, code, d);
        right = right || text == expected;
    }
    if (!right) wrong.add(code, "prints", text, "instead of", expected);
}

}  // namespace

TEST_CASE("the search for the shortest decimal agrees with std::to_chars on floats") {
    oracle::disagreements wrong;
    oracle::random_bits random(61);
    for (int i = 0; i < 2000; ++i) {
        const std::uint64_t code = magnitude_code(oracle::binary32, weighted_code(random, oracle::binary32));
        if (code == 0 || !is_finite(oracle::binary32, code)) continue;
        compare_text<float>(wrong, code);
        compare_text<float>(wrong, 0x3f800000 + (code & 0x00ff8000));
        compare_text<float>(wrong, 0x47000000 + (code & 0x07ffff00));
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("numbers print as the shortest decimal that reads back, the nearest of those", Value,
                   mp::half, mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    const std::uint64_t step = max_finite_code(f) > 255 ? 11 : 1;
    for (std::uint64_t code = 1; code <= max_finite_code(f); code += step) compare_text<Value>(wrong, code);
    // Powers of two have a nearer neighbour below than above.
    for (std::uint64_t code = std::uint64_t{1} << f.fraction_bits; code <= max_finite_code(f);
         code += std::uint64_t{1} << f.fraction_bits) {
        compare_text<Value>(wrong, code - 1);
        compare_text<Value>(wrong, code);
        compare_text<Value>(wrong, code + 1);
    }
    compare_text<Value>(wrong, max_finite_code(f));
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("all codes read back as they were printed", Value, mp::half, mp::bfloat16,
                   mp::float8_e4m3fn, mp::float8_e5m2) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    for (std::uint64_t code = 0; code < 2 * sign_bit(f); ++code) {
        const Value x = oracle::value_of<Value>(code);
        const std::string text = printed(x);
        Value back = Value(7.0f);
        const auto result = mp::from_chars(text.data(), text.data() + text.size(), back);
        if (result.ec != std::errc{} || result.ptr != text.data() + text.size())
            wrong.add(code, "printed", text);
        if (is_nan(f, code) ? !mp::isnan(back) || mp::signbit(back) != mp::signbit(x) : back.bits() != code) {
            wrong.add(code, "printed", text, "reads as", back.bits());
        }
        // At most 24 characters, as documented.
        if (text.size() > 24) wrong.add(code, "is long:", text);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("numbers that people know print as they write them") {
    CHECK(printed(mp::half(0.1f)) == "0.1");
    CHECK(printed(mp::half(1.0f)) == "1");
    CHECK(printed(mp::half(-2.5f)) == "-2.5");
    CHECK(printed(mp::half(65504.0f)) == "65504");
    CHECK(printed(mp::half(0.0f)) == "0");
    CHECK(printed(mp::half(-0.0f)) == "-0");
    CHECK(printed(std::numeric_limits<mp::half>::denorm_min()) == "6e-08");
    CHECK(printed(std::numeric_limits<mp::half>::infinity()) == "inf");
    CHECK(printed(-std::numeric_limits<mp::half>::infinity()) == "-inf");
    CHECK(printed(std::numeric_limits<mp::half>::quiet_NaN()) == "nan");
    CHECK(printed(std::numeric_limits<mp::bfloat16>::max()) == "3.39e+38");
    CHECK(printed(mp::bfloat16(0.1f)) == "0.1");
    CHECK(printed(std::numeric_limits<mp::float8_e4m3fn>::max()) == "448");
}

TEST_CASE("a buffer that is too small is reported and not overrun") {
    for (const mp::half x : {mp::half(-65504.0f), mp::half(0.1f), std::numeric_limits<mp::half>::denorm_min(),
                             -std::numeric_limits<mp::half>::infinity()}) {
        const std::string text = printed(x);
        for (std::size_t room = 0; room <= text.size(); ++room) {
            std::string buffer(room + 1, '#');
            const auto result = mp::to_chars(buffer.data(), buffer.data() + room, x);
            CHECK(buffer[room] == '#');
            CHECK((result.ec == std::errc{}) == (room == text.size()));
            CHECK(result.ptr == buffer.data() + room);
            if (room < text.size()) CHECK(result.ec == std::errc::value_too_large);
        }
    }
}

TEST_CASE("a precision asks for the exact value in that many digits") {
    const auto with = [](mp::half x, std::chars_format format, int precision) {
        char text[64];
        return std::string(text, mp::to_chars(text, text + sizeof text, x, format, precision).ptr);
    };
    CHECK(with(mp::half(0.1f), std::chars_format::fixed, 12) == "0.099975585938");
    CHECK(with(mp::half(0.1f), std::chars_format::scientific, 3) == "9.998e-02");
    CHECK(with(mp::half(2.5f), std::chars_format::fixed, 0) == "2");
}

TEST_CASE("streams print the shortest text by default and obey the usual manipulators") {
    const auto print = [](auto&& configure, auto x) {
        std::ostringstream stream;
        configure(stream);
        stream << x;
        return stream.str();
    };
    const auto plain = [](std::ostream&) {};
    CHECK(print(plain, mp::half(0.1f)) == "0.1");
    CHECK(print(plain, mp::bfloat16(-1e20f)) == "-1e+20");
    CHECK(print(plain, mp::float8_e5m2(-1.5f)) == "-1.5");
    CHECK(print([](std::ostream& s) { s << std::setw(8); }, mp::half(0.1f)) == "     0.1");
    CHECK(print([](std::ostream& s) { s << std::setw(6) << std::left << std::setfill('*'); },
                mp::half(0.1f)) == "0.1***");
    CHECK(print([](std::ostream& s) { s << std::showpos; }, mp::half(1.5f)) == "+1.5");
    CHECK(print([](std::ostream& s) { s << std::fixed << std::setprecision(3); }, mp::half(0.1f)) == "0.100");
    CHECK(print([](std::ostream& s) { s << std::setprecision(10); }, mp::half(0.1f)) == "0.09997558594");
    CHECK(print([](std::ostream& s) { s << std::scientific; }, mp::half(1.0f)) == "1.000000e+00");
    CHECK(print([](std::ostream& s) { s << std::hexfloat; }, mp::half(-0.1f)) == "-0x1.998p-4");
    CHECK(print([](std::ostream& s) { s << std::hexfloat << std::uppercase; }, mp::half(0.1f)) ==
          "0X1.998P-4");
    CHECK(print([](std::ostream& s) { s << std::internal << std::setw(7) << std::setfill('0'); },
                mp::half(-1.5f)) == "-0001.5");
    for (const float x : {-1.5F, 1.5F, 0.0F, -std::numeric_limits<float>::infinity()}) {
        const auto padded = [](std::ostream& s) {
            s << std::internal << std::hexfloat << std::setw(16) << std::setfill('*');
        };
        std::ostringstream as_float;
        padded(as_float);
        as_float << x;
        CHECK(print(padded, mp::half(x)) == as_float.str());
        as_float.str("");
        padded(as_float);
        as_float << std::showpos << x;
        CHECK(print(
                  [&](std::ostream& s) {
                      padded(s);
                      s << std::showpos;
                  },
                  mp::half(x)) == as_float.str());
    }
    CHECK(print([](std::ostream& s) { s << std::showpoint; }, mp::half(1.5f)) == "1.50000");
    CHECK(print([](std::ostream& s) { s << std::scientific << std::uppercase << std::setprecision(2); },
                mp::half(0.1f)) == "1.00E-01");
    CHECK(print([](std::ostream& s) { s << std::setw(5); }, std::numeric_limits<mp::half>::infinity()) ==
          "  inf");
    std::ostringstream twice;
    twice << std::setw(5) << mp::half(1.0f) << mp::half(2.0f);
    CHECK(twice.str() == "    12");
    std::wostringstream wide;
    wide << mp::half(0.1f);
    CHECK(wide.str() == L"0.1");
}

TEST_CASE_TEMPLATE("streams and format specifications write texts longer than their buffers", Value, mp::half,
                   mp::p3109<16, 1>) {
    const Value x(-1.0F / 3.0F);
    for (const int precision : {600, 1000, 1022, 1023, 1024, 5000, 60000}) {
        CAPTURE(precision);
        std::string expected(static_cast<std::size_t>(precision) + 40, ' ');
        const auto [end, error] = mp::to_chars(expected.data(), expected.data() + expected.size(), x,
                                               std::chars_format::fixed, precision);
        REQUIRE(error == std::errc{});
        expected.resize(static_cast<std::size_t>(end - expected.data()));

        std::ostringstream stream;
        stream << std::fixed << std::setprecision(precision) << std::setw(precision + 10) << std::internal
               << std::setfill('*') << x;
        CHECK(stream.str() ==
              "-" + std::string(static_cast<std::size_t>(precision) + 10 - expected.size(), '*') +
                  expected.substr(1));

        mp::detail::format_spec<char> spec;
        spec.type = 'f';
        spec.precision = precision;
        std::string formatted;
        mp::detail::format_number<char>(std::back_inserter(formatted), x, spec, {true, false});
        CHECK(formatted == expected);
    }
}
