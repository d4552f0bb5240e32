// SPDX-License-Identifier: MIT
// Reading from streams: which characters belong to a number is what operator>> of float says, whose values,
// states and remaining texts are compared with; numbers of any length are read as a whole.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>

#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <istream>
#include <limits>
#include <locale>
#include <sstream>
#include <stdexcept>
#include <streambuf>
#include <string>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

/// What reading one number from a text gives.
template <class Value>
struct extracted {
    Value value{7.0F};
    std::ios::iostate state = std::ios::goodbit;
    std::string rest;
};

template <class Value>
extracted<Value> extract(const std::string& text) {
    extracted<Value> result;
    std::istringstream stream(text);
    stream >> result.value;
    result.state = stream.rdstate();
    stream.clear();
    for (int c = stream.get(); c != std::char_traits<char>::eof(); c = stream.get()) {
        result.rest += static_cast<char>(c);
    }
    return result;
}

/// Gives characters that it makes up, `length` times the same and then a tail; throws behind that if asked
/// to.
class made_up : public std::streambuf {
public:
    made_up(std::string head, char repeated, std::int64_t length, std::string tail, bool throws = false)
        : head_(std::move(head)),
          tail_(std::move(tail)),
          repeated_(repeated),
          left_(length),
          throws_(throws) {
        setg(head_.data(), head_.data(), head_.data() + head_.size());
    }

private:
    int_type underflow() override {
        if (left_ > 0) {
            const std::size_t count = left_ < 4096 ? static_cast<std::size_t>(left_) : 4096;
            block_.assign(count, repeated_);
            left_ -= static_cast<std::int64_t>(count);
        } else if (!tail_.empty()) {
            block_.swap(tail_);
            tail_.clear();
        } else {
            if (throws_) throw std::runtime_error("the line is cut");
            return traits_type::eof();
        }
        setg(block_.data(), block_.data(), block_.data() + block_.size());
        return traits_type::to_int_type(block_[0]);
    }

    std::string head_;
    std::string tail_;
    std::string block_;
    char repeated_;
    std::int64_t left_;
    bool throws_;
};

}  // namespace

#if defined(__GLIBCXX__)
// Other libraries let float take other letters.
TEST_CASE("what belongs to a number, and what is left, is as with float") {
    oracle::disagreements wrong;
    const auto compare = [&](const std::string& text) {
        const extracted<float> expected = extract<float>(text);
        const extracted<mp::bfloat16> got = extract<mp::bfloat16>(text);
        const bool too_large = std::abs(expected.value) >= std::numeric_limits<float>::max();
        const auto largest = std::numeric_limits<mp::bfloat16>::max();
        const mp::bfloat16 value = !too_large           ? mp::bfloat16(expected.value)
                                   : expected.value > 0 ? largest
                                                        : -largest;
        if (got.state != expected.state || got.rest != expected.rest || got.value.bits() != value.bits()) {
            wrong.add("'" + text + "' leaves '" + got.rest + "' instead of '" + expected.rest + "', state",
                      static_cast<int>(got.state), "instead of", static_cast<int>(expected.state), "value",
                      got.value.bits(), "instead of", value.bits());
        }
    };
    // All texts of up to five of these letters; x stands for all that never belong to a number.
    const std::string letters = "01.-+eEx ";
    std::size_t texts = 1;
    for (std::size_t length = 0; length <= 5; ++length, texts *= letters.size()) {
        for (std::size_t n = 0; n < texts; ++n) {
            std::string text;
            for (std::size_t i = 0, rest = n; i < length; ++i, rest /= letters.size()) {
                text += letters[rest % letters.size()];
            }
            // Three digits of exponents are within the range of neither.
            if (text.find("e11") == std::string::npos && text.find("E11") == std::string::npos) compare(text);
        }
    }
    const char* pieces[] = {"0",   "00",  "1",  "25",  ".", " ",    "-",    "+", "e", "E",
                            "e-1", "E+1", "p1", "0x",  "f", "kg",   ",",    ";", "'", "\t",
                            "\n",  "_",   "a",  "1e1", "9", "\x80", "\xff", "("};
    oracle::random_bits random(91);
    for (int n = 0; n < 20000; ++n) {
        std::string text;
        for (std::uint32_t count = 1 + random.below(8); count != 0; --count) {
            const char* const piece = pieces[random.below(sizeof pieces / sizeof *pieces)];
            // Exponents of two digits at most.
            const bool behind_e = text.find_last_of("eE") != std::string::npos;
            if (behind_e && std::isdigit(static_cast<unsigned char>(*piece)) != 0) break;
            text += piece;
        }
        compare(text);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
#endif

TEST_CASE("numbers end where float's do") {
    struct {
        const char* text;
        float value;
        const char* rest;
    } const cases[] = {{"3.5kg", 3.5F, "kg"},   {"2.5f", 2.5F, "f"},     {"1.5.5", 1.5F, ".5"},
                       {"1.2.3", 1.2F, ".3"},   {"+.5,", 0.5F, ","},     {"-0.25e+1-1", -2.5F, "-1"},
                       {"1.e1e1", 10.0F, "e1"}, {"0x1p3", 0.0F, "x1p3"}, {"1-2", 1.0F, "-2"},
                       {"5 6", 5.0F, " 6"},     {" \t\n5%", 5.0F, "%"},  {"007'0", 7.0F, "'0"}};
    for (const auto& c : cases) {
        CAPTURE(c.text);
        const extracted<mp::half> got = extract<mp::half>(c.text);
        CHECK(got.state == std::ios::goodbit);
        CHECK(got.value == mp::half(c.value));
        CHECK(got.rest == c.rest);
    }
}

TEST_CASE("what is no number becomes zero, and what is out of range the nearest number, as with float") {
    struct {
        const char* text;
        const char* rest;
        std::uint16_t code;
        bool fails;
    } const cases[] = {{"abc", "abc", 0, true},      {"-", "", 0, true},
                       {"--1", "-1", 0, true},       {".", "", 0, true},
                       {".e1", "e1", 0, true},       {"1e", "", 0, true},
                       {"1ex", "x", 0, true},        {"1e+-2", "-2", 0, true},
                       {"in", "", 0, true},          {"-inF7", "7", 0xfc00, false},
                       {"infin", "", 0, true},       {"infix", "x", 0, true},
                       {"na", "", 0, true},          {"nA1", "1", 0, true},
                       {"65519", "", 0x7bff, false}, {"65520", "", 0x7bff, true},
                       {"70000", "", 0x7bff, true},  {"-65520;", ";", 0xfbff, true},
                       {"1e-30", "", 0, false},      {"-1e-9", "", 0x8000, false},
                       {"4e-8", "", 1, false},       {"1e99999999999999999999", "", 0x7bff, true}};
    for (const auto& c : cases) {
        CAPTURE(c.text);
        const extracted<mp::half> got = extract<mp::half>(c.text);
        CHECK(((got.state & std::ios::failbit) != 0) == c.fails);
        CHECK(got.value.bits() == c.code);
        CHECK(got.rest == c.rest);
    }
    // Formats that lack something: infinity, NaN, minus.
    CHECK(extract<mp::float4_e2m1fn>("nan").value.bits() == 0);
    CHECK(extract<mp::float4_e2m1fn>("-inf").value == -6.0F);
    CHECK(extract<mp::float4_e2m1fn>("-inf").state == (std::ios::failbit | std::ios::eofbit));
    using positive = mp::p3109<8, 3, mp::signedness::is_unsigned>;
    CHECK(extract<positive>("-1").value.bits() == 0);
    CHECK((extract<positive>("-1").state & std::ios::failbit) != 0);
}

TEST_CASE("infinities and NaNs are read in any case, as far as they are spelled") {
    struct {
        const char* text;
        std::uint16_t code;
        const char* rest;
    } const cases[] = {{"inf", 0x7c00, ""},        {"-Infinity", 0xfc00, ""}, {"+INF,", 0x7c00, ","},
                       {"infinityx", 0x7c00, "x"}, {"nan", 0x7e00, ""},       {"NaN(1)", 0x7e00, "(1)"},
                       {"nano", 0x7e00, "o"},      {"-info", 0xfc00, "o"}};
    for (const auto& c : cases) {
        CAPTURE(c.text);
        const extracted<mp::half> got = extract<mp::half>(c.text);
        CHECK((got.state & std::ios::failbit) == 0);
        CHECK((got.value.bits() & 0x7fff) == (c.code & 0x7fff));
        CHECK(got.rest == c.rest);
    }
}

TEST_CASE_TEMPLATE("numbers of any length are read once and exactly", Value, mp::half, mp::bfloat16,
                   mp::float8_e4m3fn, mp::tfloat32, mp::float8_e8m0fnu) {
    const auto read = [](std::string head, char repeated, std::int64_t length, std::string tail) {
        made_up buffer(std::move(head), repeated, length, std::move(tail));
        std::istream stream(&buffer);
        Value x{};
        stream >> x;
        CHECK(!stream.fail());
        std::string rest;
        stream >> rest;
        CHECK(rest == "rest");
        return static_cast<double>(x);
    };
    for (const std::int64_t length : {0, 1, 18, 19, 20, 4094, 4095, 4096, 100000}) {
        CAPTURE(length);
        const std::string places = std::to_string(length);
        CHECK(read("2.0", '0', length, "rest") == 2.0);
        CHECK(read("0", '0', length, "2 rest") == 2.0);
        CHECK(read("2", '0', length, "e-" + places + " rest") == 2.0);
        CHECK(read("2", '0', length, ".000e-" + places + "rest") == 2.0);
        CHECK(read("0.", '0', length, "2e" + std::to_string(length + 1) + "rest") == 2.0);
        CHECK(read("2e", '0', length + 1, "rest") == 2.0);
    }
}

TEST_CASE("the digit behind all others decides") {
    // The middle between 1 and the next number, 1 + 2^-11, is a tie to the even 1; anything beyond it is not.
    const std::string middle = "1.00048828125";
    for (const std::int64_t length : {1, 7, 8, 100, 4095, 10000}) {
        CAPTURE(length);
        for (const char* tail : {"", "1", "10000", "1e0"}) {
            made_up buffer(middle, '0', length, tail);
            std::istream stream(&buffer);
            mp::half x{};
            stream >> x;
            CHECK(stream.rdstate() == std::ios::eofbit);
            CHECK(x.bits() == (*tail == '\0' ? 0x3c00 : 0x3c01));
        }
    }
}

TEST_CASE("middles with more digits than an integer holds are ties") {
    // Odd multiples of 2^-25, with up to 21 digits, lie in the middle between subnormal numbers of half.
    for (std::uint32_t odd = 3; odd < 2048; odd += 2) {
        char text[64];
        const auto end = mp::to_chars(text, text + sizeof text, odd * 0x1p-25, std::chars_format::fixed, 25);
        const std::string middle(text, end.ptr);
        const std::uint32_t below = odd / 2;
        CHECK(extract<mp::half>(middle).value.bits() == below + below % 2);
        CHECK(extract<mp::half>(middle + "000001").value.bits() == below + 1);
    }
}

TEST_CASE("a stream reads what from_chars reads") {
    oracle::disagreements wrong;
    oracle::random_bits random(92);
    for (int n = 0; n < 3000; ++n) {
        std::string text(random.below(2), '-');
        const std::uint32_t count = 1 + random.below(n % 4 == 0 ? 400 : 30);
        const std::uint32_t point = random.below(count + 1);
        for (std::uint32_t i = 0; i < count; ++i) {
            if (i == point) text += '.';
            text += static_cast<char>('0' + (random.below(3) == 0 ? 0 : random.below(10)));
        }
        const int exponent = static_cast<int>(random.below(80)) - 40 - static_cast<int>(point);
        if (random.below(3) != 0) text += "e" + std::to_string(exponent);
        const auto compare = [&]<class Value>(Value expected) {
            const Value before = expected;
            const char* const end = text.data() + text.size();
            const auto result = mp::from_chars(text.data(), end, expected);
            std::istringstream stream(text);
            Value got = before;
            stream >> got;
            bool fails = result.ec != std::errc{};
            if (fails) {
                const double value = std::strtod(text.c_str(), nullptr);
                const bool negative = std::signbit(value);
                const bool too_large = std::abs(value) > 1;
                expected = too_large ? std::numeric_limits<Value>::max() : Value{};
                fails = too_large;
                if (negative && !Value::format::is_signed) {
                    expected = Value{};
                    fails = true;
                } else if (negative) {
                    expected = -expected;
                }
            }
            if (stream.fail() != fails || got.bits() != expected.bits()) {
                wrong.add(text, "gives", got.bits(), "instead of", expected.bits());
            }
        };
        compare(mp::half(7.0F));
        compare(mp::bfloat16(7.0F));
        compare(mp::float8_e5m2(7.0F));
        compare(mp::float4_e2m1fn(1.0F));
        compare(mp::p3109<8, 1, mp::signedness::is_unsigned>(1.0F));
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("streams are told about exceptions of their buffers as for all formatted input") {
    mp::half x(7.0F);
    made_up quiet("1.", '5', 10, "", true);
    std::istream stream(&quiet);
    CHECK_NOTHROW(stream >> x);
    CHECK(stream.rdstate() == std::ios::badbit);
    CHECK(x == mp::half(7.0F));

    made_up loud("1.", '5', 10, "", true);
    std::istream throwing(&loud);
    throwing.exceptions(std::ios::badbit);
    CHECK_THROWS_WITH_AS(throwing >> x, "the line is cut", std::runtime_error);
    CHECK(throwing.rdstate() == std::ios::badbit);

    std::istringstream failing("x");
    failing.exceptions(std::ios::failbit);
    CHECK_THROWS_AS(failing >> x, std::ios_base::failure);
    CHECK(x == mp::half(0.0F));
}

namespace {

struct comma_locale : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
};

}  // namespace

TEST_CASE("a locale changes neither what is read nor what is written") {
    std::istringstream in("1.5,2");
    in.imbue(std::locale(std::locale::classic(), new comma_locale));
    mp::half x{};
    in >> x;
    CHECK(x == mp::half(1.5F));
    CHECK(in.get() == ',');
    std::ostringstream out;
    out.imbue(in.getloc());
    out << mp::bfloat16(65536.0F);
    CHECK(out.str() == "65536");
}
