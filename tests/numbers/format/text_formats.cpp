// SPDX-License-Identifier: MIT
// Text of every format, those without zero, sign, infinity or NaN included, and of the widest formats that
// can be described: reading rounds once, printing is the shortest that reads back.
#include "text_oracle.hpp"

#include <doctest/doctest.h>

#include <charconv>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

using text_oracle::place;

template <class Value>
std::string printed(Value x) {
    char text[64];
    const std::to_chars_result result = mp::to_chars(text, text + sizeof text, x);
    return result.ec == std::errc{} ? std::string(text, result.ptr) : "does not fit";
}

/// Reads a text whose magnitude lies at a known place, in every mode, and compares.
template <class Value>
void compare_reading(oracle::disagreements& wrong, const std::string& magnitude, std::uint64_t lower,
                     place where, bool negative) {
    using format = typename Value::format;
    const std::string text = (negative ? "-" : "") + magnitude;
    const std::uint64_t sign =
        negative ? std::uint64_t{1} << (format::exponent_bits + format::fraction_bits) : 0;
    for (const mp::rounding mode : text_oracle::modes) {
        for (const mp::saturation saturate : {mp::saturation::none, mp::saturation::finite}) {
            std::uint64_t code = text_oracle::rounded(lower, where, negative, mode);
            const std::uint64_t largest = text_oracle::max_code<format>();
            bool in_range = text_oracle::has_zero_code<format>() ? code != 0 : true;
            if (code > largest) {
                code = largest;
                // In P3109's formats with signs the code of infinity is odd.
                const bool odd_is_infinite =
                    oracle::format_of<Value>.is_p3109 && oracle::format_of<Value>.has_infinity;
                in_range =
                    saturate == mp::saturation::finite || (mode == mp::rounding::to_odd && !odd_is_infinite);
            }
            const Value before = Value::from_bits(3);
            Value x = before;
            const auto result = mp::from_chars(text.data(), text.data() + text.size(), x,
                                               std::chars_format::general, {mode, saturate});
            const std::uint64_t expected = in_range ? sign | code : before.bits();
            if (result.ptr != text.data() + text.size() || x.bits() != expected ||
                result.ec != (in_range ? std::errc{} : std::errc::result_out_of_range)) {
                wrong.add(format::name, text, static_cast<int>(mode), static_cast<int>(saturate), "gives",
                          +x.bits(), "instead of", expected, static_cast<int>(result.ec));
            }
        }
    }
}

/// The number itself, the middle above it, and what is a hair beside that.
template <class Value>
void compare_around(oracle::disagreements& wrong, std::uint64_t code, int further) {
    using format = typename Value::format;
    using text_oracle::decimal;
    const decimal exact = to_decimal(text_oracle::magnitude<format>(code));
    const decimal middle = to_decimal(text_oracle::middle<format>(code));
    const text_oracle::integer fine = middle.digits * text_oracle::power(10, further);
    for (const bool negative : {false, true}) {
        if (negative && !format::is_signed) continue;
        if (exact.digits != 0) {
            compare_reading<Value>(wrong, text_oracle::spelled(exact), code, place::at_lower, negative);
        }
        compare_reading<Value>(wrong, text_oracle::spelled(middle), code, place::at_middle, negative);
        compare_reading<Value>(wrong, text_oracle::spelled(decimal{fine + 1, middle.exponent - further}),
                               code, place::above_middle, negative);
        compare_reading<Value>(wrong, text_oracle::spelled(decimal{fine - 1, middle.exponent - further}),
                               code, place::below_middle, negative);
    }
}

template <class Value>
void compare_printing(oracle::disagreements& wrong, std::uint64_t code) {
    using format = typename Value::format;
    const Value x = oracle::value_of<Value>(code);
    const text_oracle::decimal decimal = text_oracle::shortest<format>(code);
    const std::string expected = text_oracle::text_of<format>(code, decimal);
    if (printed(x) != expected) wrong.add(format::name, code, printed(x), "instead of", expected);
    char buffer[64];
    const auto end = mp::to_chars(buffer, buffer + sizeof buffer, x, std::chars_format::scientific);
    const std::string text(buffer, end.ptr);
    if (text != scientific_text(decimal)) {
        wrong.add(format::name, code, text, "instead of", scientific_text(decimal));
    }
}

template <class Value>
void compare_round_trip(oracle::disagreements& wrong, std::uint64_t code) {
    const Value x = oracle::value_of<Value>(code);
    for (const std::chars_format format : {std::chars_format::general, std::chars_format::scientific,
                                           std::chars_format::fixed, std::chars_format::hex}) {
        char text[1500];
        const auto end = mp::to_chars(text, text + sizeof text, x, format);
        Value back = Value::from_bits(1);
        const auto result = mp::from_chars(text, end.ptr, back, format);
        if (end.ec != std::errc{} || result.ec != std::errc{} || result.ptr != end.ptr) {
            wrong.add(Value::format::name, code, std::string(text, end.ptr));
        }
        // Payloads of NaNs are not written.
        if (mp::isnan(x) ? !mp::isnan(back) : back.bits() != x.bits()) {
            wrong.add(Value::format::name, code, std::string(text, end.ptr), +back.bits());
        }
    }
    if (printed(x).size() > 24) wrong.add(Value::format::name, code, "is long:", printed(x));
}

/// Texts of up to 19 digits as near as possible to a middle, with every power of ten from 0 to -27. Such
/// texts are read by integers of 128 bits.
template <class Value>
void compare_short_texts(oracle::disagreements& wrong, std::uint64_t code) {
    const text_oracle::fraction middle = to_fraction(text_oracle::middle<typename Value::format>(code));
    for (int places = 0; places <= 27; ++places) {
        const text_oracle::integer scaled = middle.numerator * text_oracle::power(10, places);
        const text_oracle::integer below = scaled / middle.denominator;
        if (below >= text_oracle::power(10, 19) - 1) return;
        if (below < text_oracle::power(10, 16)) continue;
        const bool exact = below * middle.denominator == scaled;
        compare_reading<Value>(wrong, text_oracle::spelled({below, -places}), code,
                               exact ? place::at_middle : place::below_middle, false);
        compare_reading<Value>(wrong, text_oracle::spelled({below + 1, -places}), code, place::above_middle,
                               false);
    }
}

template <class Value>
void go_through(oracle::disagreements& wrong, std::uint64_t step) {
    const std::uint64_t largest = text_oracle::max_code<typename Value::format>();
    for (std::uint64_t code = 0; code <= largest; code += code > 64 && code + 64 < largest ? step : 1) {
        compare_around<Value>(wrong, code, code % 16 == 0 ? 900 : 25);
        compare_short_texts<Value>(wrong, code);
    }
}

template <class... Formats>
constexpr bool share_texts_of_double(mp::formats::list<Formats...>) {
    return (std::same_as<mp::detail::text_class<Formats>, mp::formats::binary64> && ...);
}
static_assert(share_texts_of_double(mp::formats::all{}));
static_assert(std::same_as<mp::detail::text_class<mp::p3109<16, 1>::format>, mp::p3109<16, 1>::format>);

}  // namespace

using text_oracle::far_above;
using text_oracle::far_below;
using text_oracle::most_precise;
using text_oracle::precise;
using text_oracle::widest;
using p3109_8p1se = mp::p3109<8, 1>;
using p3109_8p4se = mp::p3109<8, 4>;
using p3109_4p2se = mp::p3109<4, 2>;
using text_oracle::p3109_6p3uf;
using text_oracle::p3109_8p1ue;
using text_oracle::p3109_8p3sf;

using own_small_formats =
    std::tuple<p3109_8p1se, p3109_8p4se, p3109_4p2se, p3109_8p1ue, p3109_6p3uf, p3109_8p3sf>;

TEST_CASE_TEMPLATE_DEFINE("every middle of small formats is read in every mode, and what is a hair beside it",
                          Value, middles) {
    oracle::disagreements wrong;
    go_through<Value>(wrong, 1);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
TEST_CASE_TEMPLATE_APPLY(
    middles, oracle::joined<std::tuple<mp::half>, oracle::small_named_formats, own_small_formats>);

TEST_CASE_TEMPLATE("middles of larger formats are read in every mode, and what is a hair beside them", Value,
                   mp::bfloat16, mp::tfloat32) {
    oracle::disagreements wrong;
    go_through<Value>(wrong, mp::layout_of<typename Value::format>::width == 16 ? 23 : 211);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("middles of the widest formats are read in every mode, and printed numbers are shortest",
                   Value, widest, precise, most_precise, far_below, far_above) {
    oracle::disagreements wrong;
    oracle::random_bits random(301);
    const std::uint64_t largest = text_oracle::max_code<typename Value::format>();
    for (int i = 0; i < 120; ++i) {
        const std::uint64_t code = i < 4    ? static_cast<std::uint64_t>(i)
                                   : i < 8  ? largest - static_cast<std::uint64_t>(i - 4)
                                   : i < 40 ? (random.next() % largest) >> random.below(30)
                                            : random.next() % (largest + 1);
        compare_around<Value>(wrong, code, i % 4 == 0 ? 1200 : 40);
        if (code != 0) compare_printing<Value>(wrong, code);
    }
    for (int i = 0; i < 3000; ++i) {
        compare_round_trip<Value>(wrong, random.next() & Value::layout::code_mask);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE_DEFINE(
    "every number of small formats prints as the shortest decimal, the nearest of those", Value, shortest) {
    using format = typename Value::format;
    oracle::disagreements wrong;
    const std::uint64_t step = Value::layout::width > 8 ? 5 : 1;
    for (std::uint64_t code = text_oracle::has_zero_code<format>() ? 1 : 0;
         code <= text_oracle::max_code<format>(); code += step) {
        compare_printing<Value>(wrong, code);
    }
    for (std::uint64_t code = 0; code <= Value::layout::code_mask; ++code) {
        compare_round_trip<Value>(wrong, code);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
TEST_CASE_TEMPLATE_APPLY(
    shortest, oracle::joined<std::tuple<mp::half>, oracle::small_named_formats, own_small_formats>);

TEST_CASE_TEMPLATE("numbers of larger formats print as the shortest decimal, and read back", Value,
                   mp::bfloat16, mp::tfloat32) {
    oracle::disagreements wrong;
    const std::uint64_t largest = text_oracle::max_code<typename Value::format>();
    const std::uint64_t step = Value::layout::width == 16 ? 7 : 61;
    for (std::uint64_t code = 1; code <= largest; code += step) compare_printing<Value>(wrong, code);
    // Powers of two have a nearer neighbour below than above.
    for (std::uint64_t code = Value::layout::hidden_bit; code <= largest; code += Value::layout::hidden_bit) {
        compare_printing<Value>(wrong, code);
    }
    for (std::uint64_t code = 0; code <= Value::layout::code_mask; code += step) {
        compare_round_trip<Value>(wrong, code);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

namespace {

struct read_result {
    std::errc ec;
    bool changed;
    std::uint64_t bits;
    bool operator==(const read_result&) const = default;
};
constexpr std::errc fine{};
constexpr std::errc out_of_range = std::errc::result_out_of_range;

template <class Value>
read_result read(const std::string& text, mp::saturation saturate = mp::saturation::none) {
    const Value before = Value::from_bits(3);
    Value x = before;
    const auto result = mp::from_chars(text.data(), text.data() + text.size(), x, std::chars_format::general,
                                       {.saturate = saturate});
    CHECK(result.ptr == text.data() + text.size());
    return {result.ec, x.bits() != before.bits(), x.bits()};
}

}  // namespace

TEST_CASE("what a format does not have is out of range, unless the projection saturates") {
    using mp::saturation;
    const auto refused = read_result{out_of_range, false, 3};
    // No NaN, no infinity.
    CHECK(read<mp::float4_e2m1fn>("nan") == refused);
    CHECK(read<mp::float4_e2m1fn>("nan", saturation::finite) == refused);
    CHECK(read<mp::float4_e2m1fn>("inf") == refused);
    CHECK(read<mp::float4_e2m1fn>("inf", saturation::propagate) == refused);
    CHECK(read<mp::float4_e2m1fn>("inf", saturation::finite) == read_result{fine, true, 7});
    CHECK(read<mp::float4_e2m1fn>("-inf", saturation::finite) == read_result{fine, true, 15});
    CHECK(read<mp::float4_e2m1fn>("7") == refused);
    CHECK(read<mp::float4_e2m1fn>("6.999") == read_result{fine, true, 7});
    CHECK(read<mp::float4_e2m1fn>("1e99", saturation::propagate) == read_result{fine, true, 7});
    CHECK(read<mp::float4_e2m1fn>("-0") == read_result{fine, true, 8});
    // A NaN, but no infinity.
    CHECK(read<mp::float8_e4m3fn>("inf") == refused);
    CHECK(read<mp::float8_e4m3fn>("-inf", saturation::finite) == read_result{fine, true, 0xfe});
    CHECK(read<mp::float8_e4m3fn>("464.0001") == refused);
    CHECK(read<mp::float8_e4m3fn>("464") == read_result{fine, true, 0x7e});
    CHECK(read<mp::float8_e4m3fn>("-nan") == read_result{fine, true, 0xff});
    // No minus zero: its code is NaN, which has no sign.
    CHECK(read<mp::float8_e4m3fnuz>("-0") == read_result{fine, true, 0});
    CHECK(read<mp::float8_e4m3fnuz>("-nan") == read_result{fine, true, 0x80});
    CHECK(printed(mp::float8_e4m3fnuz::from_bits(0x80)) == "nan");
    // No zero and no sign.
    CHECK(read<mp::float8_e8m0fnu>("0") == refused);
    CHECK(read<mp::float8_e8m0fnu>("0", saturation::finite) == read_result{fine, true, 0});
    CHECK(read<mp::float8_e8m0fnu>("-1") == refused);
    CHECK(read<mp::float8_e8m0fnu>("-1", saturation::finite) == read_result{fine, true, 0});
    CHECK(read<mp::float8_e8m0fnu>("1e-50") == read_result{fine, true, 0});
    CHECK(read<mp::float8_e8m0fnu>("3") == read_result{fine, true, 128});  // a tie: 2^1, whose code is even
    CHECK(read<mp::float8_e8m0fnu>("nan") == read_result{fine, true, 255});
    CHECK(printed(mp::float8_e8m0fnu::from_bits(0)) == "6e-39");
    // A zero, but no sign.
    CHECK(read<p3109_8p1ue>("-0") == read_result{fine, true, 0});
    CHECK(read<p3109_8p1ue>("-1") == refused);
    CHECK(read<p3109_8p1ue>("-1", saturation::finite) == read_result{fine, true, 0});
    CHECK(read<p3109_8p1ue>("-inf") == refused);
    CHECK(read<p3109_8p1ue>("inf") == read_result{fine, true, 254});
    CHECK(read<p3109_6p3uf>("inf") == refused);
    // Zero instead of something is out of range everywhere.
    CHECK(read<mp::half>("1e-9") == refused);
    CHECK(read<mp::half>("-1e-9", saturation::finite) == refused);
}

TEST_CASE("an environment gets the flags that the rounding of the same number raises") {
    oracle::disagreements wrong;
    oracle::random_bits random(302);
    const auto compare = [&]<class Value>(Value, double number) {
        char text[1200];
        const auto end = mp::to_chars(text, text + sizeof text, number, std::chars_format::scientific, 1100);
        for (const mp::rounding mode : text_oracle::modes) {
            mp::environment by_text{.project = {.round = mode}};
            mp::environment by_value = by_text;
            Value x{};
            mp::from_chars(text, end.ptr, x, by_text);
            (void)mp::round_to<Value>(number, by_value);
            if (by_text.raised != by_value.raised) {
                wrong.add(Value::format::name, number, static_cast<int>(mode), by_text.raised.to_unsigned(),
                          "instead of", by_value.raised.to_unsigned());
            }
        }
    };
    for (int i = 0; i < 300; ++i) {
        const int exponent = static_cast<int>(random.below(60)) - 35;
        const double significand = static_cast<double>(random.next() >> random.below(64));
        const double number = significand *
                              (exponent < 0 ? 1.0 / double(std::uint64_t{1} << -exponent)
                                            : double(std::uint64_t{1} << exponent)) /
                              1e6;
        compare(mp::half{}, number);
        compare(mp::float8_e4m3fn{}, number);
        compare(mp::float8_e8m0fnu{}, number);
        compare(mp::float4_e2m1fn{}, -number);
        compare(p3109_8p1ue{}, number);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);

    mp::environment env;
    mp::half x{};
    const std::string tiny = "1e-7";
    mp::from_chars(tiny.data(), tiny.data() + tiny.size(), x, env);
    CHECK(env.raised == (mp::status_flag::underflow | mp::status_flag::inexact));
    env = {};
    const std::string exact = "0.25";
    mp::from_chars(exact.data(), exact.data() + exact.size(), x, env);
    CHECK(!env.raised.any());
    const std::string huge = "1e7";
    mp::from_chars(huge.data(), huge.data() + huge.size(), x, std::chars_format::scientific, env);
    CHECK(env.raised == (mp::status_flag::overflow | mp::status_flag::inexact));
    CHECK(x == mp::half(0.25f));
}

TEST_CASE("stochastic rounding of a text is that of its value") {
    oracle::disagreements wrong;
    oracle::random_bits random(303);
    for (int i = 0; i < 2000; ++i) {
        const double number = static_cast<double>(random.next()) * 0x1p-60;
        char text[100];
        const auto end = mp::to_chars(text, text + sizeof text, number, std::chars_format::fixed, 80);
        for (const mp::rounding mode :
             {mp::rounding::stochastic_a, mp::rounding::stochastic_b, mp::rounding::stochastic_c}) {
            const mp::projection p{mode, mp::saturation::none, static_cast<unsigned char>(random.below(33)),
                                   static_cast<std::uint32_t>(random.next())};
            mp::half x{};
            widest y{};
            mp::from_chars(text, end.ptr, x, p);
            mp::from_chars(text, end.ptr, y, p);
            if (x.bits() != mp::round_to<mp::half>(number, p).bits()) wrong.add(number, +x.bits());
            if (y.bits() != mp::round_to<widest>(number, p).bits()) wrong.add(number, +y.bits());
        }
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("stochastic rounding of a text far below the format sees less than it can tell from zero") {
    // P3109's kind B takes the highest random bits up from half a step of theirs, 2^-33 of the last place.
    const std::string text = "1e-400";
    for (const mp::rounding mode :
         {mp::rounding::stochastic_a, mp::rounding::stochastic_b, mp::rounding::stochastic_c}) {
        mp::half x{1.0f};
        const mp::projection p{mode, mp::saturation::none, 32, 0xffffffff};
        const auto end = mp::from_chars(text.data(), text.data() + text.size(), x, p);
        CHECK(end.ec == std::errc::result_out_of_range);
        mp::environment env{.project = p};
        x = mp::half{1.0f};
        mp::from_chars(text.data(), text.data() + text.size(), x, std::chars_format::general, env);
        CHECK(env.raised == (mp::status_flag::underflow | mp::status_flag::inexact));
    }
}
