// SPDX-License-Identifier: MIT
// Descriptions of numbers of all kinds, in formats with and without signs, zero, infinities and NaN.
#include <mp/numbers/format/describe.hpp>

#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/float4.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/p3109.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "oracle/library.hpp"

using namespace mp::literals;

TEST_CASE("a number is described by its fields, its values and its neighbours") {
    const mp::number_description x = mp::describe(-0.1_h);
    CHECK(x.format == "half");
    CHECK(x.kind == "normal");
    CHECK(x.bits == "0xae66");
    CHECK(x.sign_field == "1");
    CHECK(x.exponent_field == "01011");
    CHECK(x.fraction_field == "1001100110");
    CHECK(x.negative);
    CHECK(x.exponent == -4);
    CHECK(x.significand == "1.1001100110");
    CHECK(x.exact == "-0.0999755859375");
    CHECK(x.shortest == "-0.1");
    CHECK(x.hexadecimal == "-0x1.998p-4");
    CHECK(x.ulp == "2^-14 = 6.10352e-05");
    CHECK(x.below.text == "-0.10004");
    CHECK(x.below.distance == "2^-14 = 6.10352e-05");
    CHECK(x.above.text == "-0.0999");
    CHECK(to_string(x) ==
          "format      half\n"
          "bits        0xae66\n"
          "fields      sign 1  exponent 01011  fraction 1001100110\n"
          "class       normal\n"
          "value       -0.0999755859375\n"
          "shortest    -0.1\n"
          "hexadecimal -0x1.998p-4\n"
          "binary      -1.1001100110 * 2^-4\n"
          "below       -0.10004   (2^-14 = 6.10352e-05 away)\n"
          "above       -0.0999   (2^-14 = 6.10352e-05 away)\n"
          "ulp         2^-14 = 6.10352e-05\n");
}

TEST_CASE("the ends of formats, specials, and formats that lack something") {
    const auto half = [](std::uint16_t bits) { return mp::describe(mp::half::from_bits(bits)); };
    CHECK(half(0x0000).kind == "zero");
    CHECK(half(0x8000).exact == "-0");
    CHECK(half(0x0000).below.text == "-6e-08");
    CHECK(half(0x8000).above.text == "6e-08");
    CHECK(half(0x0001).kind == "subnormal");
    CHECK(half(0x0001).significand == "0.0000000001");
    CHECK(half(0x0001).exponent == -14);
    CHECK(half(0x0001).exact == "5.9604644775390625e-08");
    CHECK(half(0x0001).below.text == "0");
    CHECK(half(0x0400).below.distance == half(0x0400).above.distance);
    CHECK(half(0x3c00).below.distance == "2^-11 = 0.000488281");
    CHECK(half(0x3c00).above.distance == "2^-10 = 0.000976562");
    CHECK(half(0x7bff).above.text == "inf");
    CHECK(half(0xfbff).below.text == "-inf");
    CHECK(half(0x7c00).kind == "infinity");
    CHECK(half(0x7e00).kind == "quiet NaN");
    CHECK(half(0xfc01).kind == "signalling NaN");
    CHECK(half(0xfc01).exact == "-nan");
    CHECK(half(0x7e00).significand.empty());
    CHECK(to_string(half(0x7e00)).find("ulp") == std::string::npos);

    CHECK(mp::describe(mp::float8_e4m3fn::from_bits(0x7e)).above.exists == false);
    CHECK(mp::describe(mp::float8_e4m3fn::from_bits(0x7f)).kind == "NaN");
    CHECK(mp::describe(mp::float8_e4m3fnuz::from_bits(0x80)).kind == "NaN");
    CHECK(mp::describe(mp::float8_e4m3fnuz::from_bits(0x80)).exact == "nan");
    const auto scale = mp::describe(mp::float8_e8m0fnu::from_bits(0));
    CHECK(scale.sign_field.empty());
    CHECK(scale.fraction_field.empty());
    CHECK(scale.exponent_field == "00000000");
    CHECK(scale.kind == "normal");
    CHECK(scale.significand == "1");
    CHECK(scale.exponent == -127);
    CHECK(scale.below.exists == false);
    CHECK(scale.above.distance == "2^-127 = 5.87747e-39");
    const auto none_below =
        mp::describe(mp::p3109<8, 4, mp::signedness::is_unsigned, mp::domain::finite>::from_bits(0));
    CHECK(none_below.kind == "zero");
    CHECK(none_below.below.exists == false);
    CHECK(none_below.above.exists);
    CHECK(mp::describe(mp::float4_e2m1fn::from_bits(15)).exact == "-6");
    CHECK(mp::describe(mp::float4_e2m1fn::from_bits(15)).below.exists == false);
    CHECK(mp::describe(0.1).exact == "0.1000000000000000055511151231257827021181583404541015625");
    CHECK(mp::describe(0.1f).shortest == "0.1");
    CHECK(mp::describe(0.1f).format == "float");
}

TEST_CASE_TEMPLATE("descriptions of all numbers agree with the oracle", Value, mp::half, mp::bfloat16,
                   mp::float8_e4m3fn, mp::float8_e5m2) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    for (std::uint64_t code = 0; code < 2 * sign_bit(f); code += code < 1000 ? 1 : 13) {
        const Value x = oracle::value_of<Value>(code);
        const mp::number_description d = mp::describe(x);
        if (std::stoull(d.sign_field + d.exponent_field + d.fraction_field, nullptr, 2) != code ||
            std::stoull(d.bits, nullptr, 16) != code) {
            wrong.add("fields", code);
        }
        if (!is_finite(f, code)) continue;
        const double value = static_cast<double>(x);
        if (std::strtod(d.exact.c_str(), nullptr) != value) wrong.add("exact", code, d.exact);
        if (std::strtod(d.hexadecimal.c_str(), nullptr) != value) wrong.add("hex", code, d.hexadecimal);
        if (d.above.exists && d.above.text != "inf") {
            const Value next(std::strtod(d.above.text.c_str(), nullptr));
            const double distance = static_cast<double>(next) - value;
            if (!(distance > 0) || mp::describe(distance).exact.empty()) wrong.add("above", code);
            if (std::strtod(d.above.distance.substr(d.above.distance.find('=') + 1).c_str(), nullptr) <
                    distance * 0.99999 ||
                std::strtod(d.above.distance.substr(d.above.distance.find('=') + 1).c_str(), nullptr) >
                    distance * 1.00001) {
                wrong.add("distance", code, d.above.distance);
            }
            // The number next below the one next above is the number, or the zero of the other sign.
            const mp::number_description back = mp::describe(next);
            if (Value(std::strtod(back.below.text.c_str(), nullptr)) != x) wrong.add("back", code);
        }
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
