// SPDX-License-Identifier: MIT
// Format specifications: what is accepted, what it does, and, where {fmt} or std::format is installed, that
// numbers are formatted as those libraries format a float of the same value.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/float4.hpp>
#include <mp/float8.hpp>
#include <mp/frontends/interop/std_format.hpp>
#include <mp/half.hpp>
#include <mp/numbers/format/formatting.hpp>

#include <cstdint>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

#if __has_include(<fmt/format.h>)
#define FMT_HEADER_ONLY
#include <fmt/xchar.h>
#include <mp/frontends/interop/fmt.hpp>
#define MP_TEST_FMT 1
#endif

namespace {

template <bool AllowsNames>
struct counted_arguments {
    static constexpr bool allows_names = AllowsNames;
    int count = 0;
    int checked = -1;
    constexpr int next() { return count++; }
    constexpr void check(int index) { checked = index; }
    [[noreturn]] static void fail(const char* message) { throw std::invalid_argument(message); }
};
using arguments = counted_arguments<true>;

template <class Value>
std::string formatted(std::string_view specification, Value x, bool prefix = true) {
    mp::detail::format_spec<char> spec;
    arguments none;
    const char* first = specification.data();
    mp::detail::spec_parser<char, arguments> parser(first, first + specification.size(), none);
    const char* end = parser.parse(spec);
    CHECK(end == first + specification.size());
    std::string text;
    mp::detail::format_number<char>(std::back_inserter(text), x, spec, {prefix, false});
    return text;
}

std::string complaint(std::string_view specification) {
    try {
        (void)formatted(specification, mp::half(1.0f));
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "";
}

constexpr mp::half tenth = mp::half(0.1f);

}  // namespace

TEST_CASE("a specification chooses notation, precision, sign, place and filling") {
    CHECK(formatted("", tenth) == "0.1");
    CHECK(formatted("8", tenth) == "     0.1");
    CHECK(formatted("<8", tenth) == "0.1     ");
    CHECK(formatted("*^8", tenth) == "**0.1***");
    CHECK(formatted("+", tenth) == "+0.1");
    CHECK(formatted(" ", tenth) == " 0.1");
    CHECK(formatted("-", tenth) == "0.1");
    CHECK(formatted("+08.3f", -tenth) == "-000.100");
    CHECK(formatted("08", std::numeric_limits<mp::half>::infinity()) == "     inf");
    CHECK(formatted("<08", tenth) == "0.1     ");
    CHECK(formatted(".12f", tenth) == "0.099975585938");
    CHECK(formatted(".3e", tenth) == "9.998e-02");
    CHECK(formatted(".3E", tenth) == "9.998E-02");
    CHECK(formatted(".3", tenth) == "0.1");
    CHECK(formatted("#.3", tenth) == "0.100");
    CHECK(formatted("g", tenth) == "0.0999756");
    CHECK(formatted("f", tenth) == "0.099976");
    CHECK(formatted("e", tenth) == "9.997559e-02");
    CHECK(formatted("a", tenth) == "0x1.998p-4");
    CHECK(formatted("A", tenth) == "0X1.998P-4");
    CHECK(formatted("a", tenth, false) == "1.998p-4");
    CHECK(formatted("012a", tenth) == "0x001.998p-4");
    CHECK(formatted(".1a", tenth) == "0x1.ap-4");
    CHECK(formatted("#.0f", mp::half(3.0f)) == "3.");
    CHECK(formatted("F", std::numeric_limits<mp::half>::quiet_NaN()) == "NAN");
    CHECK(formatted("+", std::numeric_limits<mp::half>::quiet_NaN()) == "+nan");
    CHECK(formatted("\xe2\x82\xac>5", mp::half(1.0f)) ==
          "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
          "1");
    CHECK(formatted(".50f", mp::float8_e5m2::from_bits(1)) ==
          "0.00001525878906250000000000000000000000000000000000");
}

TEST_CASE("sizes that are arguments are told to the library, which counts them") {
    const auto parsed = [](std::string_view specification) {
        mp::detail::format_spec<char> spec;
        arguments seen;
        const char* first = specification.data();
        mp::detail::spec_parser<char, arguments>(first, first + specification.size(), seen).parse(spec);
        return seen;
    };
    CHECK(parsed("{7}").checked == 7);
    CHECK(parsed(".{4}f").checked == 4);
    CHECK(parsed("{}.{}f").count == 2);
    CHECK(parsed("{}.{}f").checked == -1);
    // Names, as {fmt} has them, may be short; std::format has none.
    CHECK(parsed("{w}.{precision}f").count == 0);
    mp::detail::format_spec<char> spec;
    counted_arguments<false> nameless;
    const std::string_view name = "{width}";
    mp::detail::spec_parser<char, counted_arguments<false>> parser(name.data(), name.data() + name.size(),
                                                                   nameless);
    CHECK_THROWS_AS(parser.parse(spec), std::invalid_argument);
}

TEST_CASE("what is no specification is refused in words") {
    CHECK(complaint("L") == mp::detail::locale_refused);
    CHECK(complaint(".3Lf") == mp::detail::locale_refused);
    for (const char* wrong : {"d", "x", "s", "c", "b", "ff", "?"}) {
        CAPTURE(wrong);
        CHECK_FALSE(complaint(wrong).empty());
    }
    CHECK(complaint("d") == mp::detail::type_refused);
    CHECK(complaint(".") == mp::detail::spec_refused);
    CHECK(complaint(".f") == mp::detail::spec_refused);
    CHECK(complaint("{<5") == mp::detail::spec_refused);
    CHECK(complaint("{") == mp::detail::spec_refused);
    CHECK(complaint("{0") == mp::detail::spec_refused);
    CHECK(complaint("99999999999") == mp::detail::size_refused);
    CHECK(complaint(".2147483648f") == mp::detail::size_refused);
}

#if defined(MP_TEST_FMT)

TEST_CASE_TEMPLATE("numbers are formatted as {fmt} formats a float of the same value", Value, mp::half,
                   mp::bfloat16, mp::float8_e4m3fn, mp::float4_e2m1fn) {
    oracle::disagreements wrong;
    oracle::random_bits random(321);
    const auto pick = [&](std::string_view letters) {
        const char letter = letters[random.below(static_cast<std::uint32_t>(letters.size()))];
        return letter == '.' ? std::string() : std::string(1, letter);
    };
    for (int i = 0; i < 20000; ++i) {
        const Value x = oracle::value_of<Value>(random.next() & Value::layout::code_mask);
        std::string specification = "{:";
        const std::string align = pick("..<>^");
        if (!align.empty()) specification += pick(".*_-") + align;
        specification += pick("..+- ");
        const std::string type = pick(".aAeEfFgG");
        const bool hexadecimal = type == "a" || type == "A";
        const bool general = type.empty() || type == "g" || type == "G";
        // {fmt} 9 writes a zero after the point of "%#.2g" that C does not, and puts the zeros of "%08a"
        // before the letter x.
        if (!general) specification += pick("..#");
        if (align.empty() && !hexadecimal) specification += pick("..0");
        if (random.below(2) == 0) specification += std::to_string(1 + random.below(30));
        specification.append(".").append(std::to_string(random.below(25))).append(type).append("}");
        const std::string text = fmt::format(fmt::runtime(specification), x);
        const std::string expected = fmt::format(fmt::runtime(specification), static_cast<float>(x));
        if (text != expected) wrong.add(specification, text, "instead of", expected);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("{fmt} takes widths and precisions from arguments, and refuses what is wrong") {
    CHECK(fmt::format("{} {}", tenth, mp::bfloat16(1.5f)) == "0.1 1.5");
    CHECK(fmt::format("{:{}.{}f}|", tenth, 10, 4) == "    0.1000|");
    CHECK(fmt::format("{1:{0}.{2}f}|", 10, tenth, 4) == "    0.1000|");
    CHECK(fmt::format("{:{width}.{digits}e}|", tenth, fmt::arg("width", 12), fmt::arg("digits", 2)) ==
          "    1.00e-01|");
    CHECK(fmt::format(L"{:*>{}}", tenth, 6) == L"***0.1");
    CHECK_THROWS_AS((void)fmt::format(fmt::runtime("{:L}"), tenth), fmt::format_error);
    CHECK_THROWS_AS((void)fmt::format(fmt::runtime("{:x}"), tenth), fmt::format_error);
    CHECK_THROWS_AS((void)fmt::format(fmt::runtime("{:{}}"), tenth, -1), fmt::format_error);
    CHECK_THROWS_AS((void)fmt::format(fmt::runtime("{:{}}"), tenth, "wide"), fmt::format_error);
    CHECK_THROWS_AS((void)fmt::format(fmt::runtime("{:{}}"), tenth), fmt::format_error);
    CHECK_THROWS_AS((void)fmt::format(fmt::runtime("{:{"), tenth), fmt::format_error);
}

#endif

#if MP_HAS_STD_FORMAT

TEST_CASE("numbers are formatted as std::format formats a float of the same value") {
    oracle::disagreements wrong;
    oracle::random_bits random(322);
    const auto pick = [&](std::string_view letters) {
        const char letter = letters[random.below(static_cast<std::uint32_t>(letters.size()))];
        return letter == '.' ? std::string() : std::string(1, letter);
    };
    for (int i = 0; i < 20000; ++i) {
        const mp::bfloat16 x = oracle::value_of<mp::bfloat16>(random.next() & 0xffff);
        std::string specification = "{:";
        const std::string align = pick("..<>^");
        if (!align.empty()) specification += pick(".*_0") + align;
        specification += pick("..+- ");
        // Subnormal floats have a leading zero in hexadecimal notation there.
        const std::string type = pick(mp::is_subnormal(x) ? ".eEfFgG" : ".aAeEfFgG");
        // libc++ 16 has another number of digits in "%#.15g" than C.
        if (!type.empty() && type != "g" && type != "G") specification += pick("..#");
        specification += pick("..0");
        if (random.below(2) == 0) specification += std::to_string(1 + random.below(30));
        specification.append(".").append(std::to_string(random.below(25))).append(type).append("}");
        const float as_float = x;
        const std::string text = std::vformat(specification, std::make_format_args(x));
        const std::string expected = std::vformat(specification, std::make_format_args(as_float));
        if (text != expected) wrong.add(specification, text, "instead of", expected);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
    CHECK(std::format("{} {:{}.{}f}|", tenth, tenth, 10, 4) == "0.1     0.1000|");
    CHECK(std::format(L"{:*>6}", tenth) == L"***0.1");
    const auto refused = [](std::string_view text) {
        CHECK_THROWS_AS((void)std::vformat(text, std::make_format_args(tenth)), std::format_error);
    };
    refused("{:L}");
    refused("{:d}");
    refused("{:{name}}");
    refused("{:{}}");
}

#endif
