// SPDX-License-Identifier: MIT
// The shortest text of every 16-bit number against what printf writes: not longer than its %e or %f with the
// fewest digits that read back, nor farther from the number than those of the same length. Nothing here is
// the library's but the texts and the values of the codes.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "oracle/library.hpp"

namespace {

/// The decimals that are read as a number: those between the middles to its neighbours, which belong to it if
/// it is even. Middles of 16-bit numbers are doubles, and no decimal of ten digits or fewer lies so close to
/// one that strtod could take it for the middle without being it.
struct neighbourhood {
    double value;
    double below;
    double above;
    bool closed;

    [[nodiscard]] bool has(const std::string& text) const {
        const double x = std::strtod(text.c_str(), nullptr);
        return closed ? x >= below && x <= above : x > below && x < above;
    }
    [[nodiscard]] double distance(const std::string& text) const {
        return std::fabs(std::strtod(text.c_str(), nullptr) - value);
    }
};

double to_double(const oracle::dyadic& x) {
    return std::ldexp(static_cast<double>(x.significand.low_bits()), x.exponent);
}

std::string printed_by_printf(const char* format, int precision, double value) {
    char text[512];
    return {text, static_cast<std::size_t>(std::snprintf(text, sizeof text, format, precision, value))};
}

/// What printf writes with the fewest digits that read back.
std::string shortest_of(const char* format, const neighbourhood& numbers) {
    for (int precision = 0;; ++precision) {
        const std::string text = printed_by_printf(format, precision, numbers.value);
        if (numbers.has(text)) return text;
    }
}

template <class Value>
void compare_all(oracle::disagreements& wrong) {
    const oracle::format& f = oracle::format_of<Value>;
    for (std::uint64_t code = 1; code <= max_finite_code(f); ++code) {
        const neighbourhood numbers{to_double(value_of_magnitude(f, code)),
                                    to_double(middle_above(f, code - 1)), to_double(middle_above(f, code)),
                                    code % 2 == 0};
        char buffer[32];
        const std::string text(
            buffer, mp::to_chars(buffer, buffer + sizeof buffer, oracle::value_of<Value>(code)).ptr);
        if (!numbers.has(text)) wrong.add(code, "prints", text, "which is another number");
        const std::string scientific = shortest_of("%.*e", numbers);
        // A number with more than 40 places before or behind the point is never shorter in fixed notation.
        const bool near = numbers.value < 1e40 && numbers.value > 1e-40;
        const std::string fixed = near ? shortest_of("%.*f", numbers) : std::string(99, '0');
        // Exactly as printf would write it, in the shorter notation, fixed if they are equal; printf has no
        // better text of the same length.
        const bool is_fixed = text.find('e') == std::string::npos;
        const std::string& other = is_fixed ? fixed : scientific;
        if (text.size() > other.size() || text.size() > fixed.size() || text.size() > scientific.size() ||
            (!is_fixed && text.size() == fixed.size())) {
            wrong.add(code, "prints", text, "beside", fixed, "and", scientific);
        }
        if (text.size() == other.size() && numbers.distance(text) > numbers.distance(other)) {
            wrong.add(code, "prints", text, "and not the nearer", other);
        }
    }
}

}  // namespace

TEST_CASE_TEMPLATE("no notation of printf is shorter than the text of a number", Value, mp::half,
                   mp::bfloat16) {
    oracle::disagreements wrong;
    compare_all<Value>(wrong);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("whole numbers that are rounded up to a power of ten have one place less than it") {
    const auto printed = [](auto x) {
        char text[32];
        return std::string(text, mp::to_chars(text, text + sizeof text, x).ptr);
    };
    CHECK(printed(mp::bfloat16(99840.0F)) == "99840");
    CHECK(printed(mp::bfloat16(-99840.0F)) == "-99840");
    CHECK(printed(mp::bfloat16(100352.0F)) == "100352");
    CHECK(printed(mp::bfloat16(999424.0F)) == "1e+06");
    // Below one they have no place less: 13 * 2^-17 = 0.0000991...
    CHECK(printed(mp::p3109<12, 4>(0x1.ap-14F)) == "1e-04");
    CHECK(printed(mp::p3109<8, 1, mp::signedness::is_unsigned>(131072.0F)) == "1e+05");
    CHECK(printed(mp::p3109<8, 1, mp::signedness::is_unsigned>(65536.0F)) == "65536");
    CHECK(printed(100000.0F) == "1e+05");
}
