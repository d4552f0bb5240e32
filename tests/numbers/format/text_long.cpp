// SPDX-License-Identifier: MIT
// Texts with more digits than an int counts, without their memory: the functions behind from_chars are told
// of digits that they need not read. exhaustive/long_texts.cpp reads whole texts of that kind.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <type_traits>

namespace {

constexpr std::int64_t many[] = {1000, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000001, 3000000000000};

/// The code of +digits * base^exponent with as many digits as are said, of which those behind the text's are
/// not looked at, because one that is not zero comes before.
template <class Value>
std::uint64_t read_digits(const std::string& digits, std::int64_t count, std::int64_t exponent,
                          bool hexadecimal = false) {
    mp::detail::parsed_number x;
    x.kind = mp::detail::category::finite;
    x.hexadecimal = hexadecimal;
    x.text.first = digits.data();
    x.text.count = count;
    x.text.any = true;
    x.exponent = exponent;
    for (int i = 0; i < 19; ++i) {
        x.text.leading =
            x.text.leading * 10 + static_cast<std::uint64_t>(digits[static_cast<std::size_t>(i)] - '0');
    }
    return mp::detail::pack_parsed<typename Value::format>(x, mp::projection{}).bits;
}

}  // namespace

TEST_CASE("digits are counted beyond the range of int") {
    // 1 + 2^-11, which is a tie between 1 and the next half, and a digit in a far place.
    const std::string digits = "100048828125" + std::string(300, '0') + "1" + std::string(700, '0');
    for (const std::int64_t count : many) {
        CAPTURE(count);
        CHECK(read_digits<mp::half>(digits, count, -(count - 1)) == 0x3c01);
        CHECK(read_digits<mp::half>(digits, count, -(count - 1) + 4) == mp::half(10004.88F).bits());
        CHECK(read_digits<mp::bfloat16>(digits, count, -(count - 1)) == 0x3f80);
        CHECK(read_digits<mp::half>(digits, count, 0) == 0x7c00);
        CHECK(read_digits<mp::half>(digits, count, -2 * count) == 0);
    }
    // 1 + 2^-11 in hexadecimal is 1.002.
    const std::string hexadecimal = "1002" + std::string(300, '0') + "1" + std::string(700, '0');
    for (const std::int64_t count : many) {
        CAPTURE(count);
        CHECK(read_digits<mp::half>(hexadecimal, count, -4 * (count - 1), true) == 0x3c01);
        CHECK(read_digits<mp::half>(hexadecimal, count, 0, true) == 0x7c00);
        CHECK(read_digits<mp::half>(hexadecimal, count, -8 * count, true) == 0);
    }
}

TEST_CASE("positions in texts have the range of pointer differences") {
    const mp::detail::parsed_number x;
    CHECK(std::is_same_v<decltype(x.length), std::ptrdiff_t>);
    CHECK(sizeof(x.text.count) == 8);
    CHECK(sizeof(x.text.exponent) == 8);
    CHECK(sizeof(x.exponent) == 8);
}

TEST_CASE("exponents of any number of digits are read to their end") {
    for (const std::size_t length : {1U, 9U, 10U, 17U, 18U, 19U, 20U, 40U, 5000U}) {
        CAPTURE(length);
        for (const std::string sign : {"", "+", "-"}) {
            CAPTURE(sign);
            const std::string text = "1e" + sign + std::string(length, '9') + "!";
            const char* const end = text.data() + text.size();
            mp::half x(7.0F);
            const auto result = mp::from_chars(text.data(), end, x);
            CHECK(result.ptr == end - 1);
            CHECK(result.ec == std::errc::result_out_of_range);
            CHECK(x == mp::half(7.0F));
            const std::string zero = "0e" + sign + std::string(length, '9');
            CHECK(mp::from_chars(zero.data(), zero.data() + zero.size(), x).ec == std::errc{});
            CHECK(x.bits() == 0);
            const std::string one = "1e" + sign + std::string(length, '0');
            CHECK(mp::from_chars(one.data(), one.data() + one.size(), x).ec == std::errc{});
            CHECK(x == mp::half(1.0F));
            const std::string binary = "1p" + sign + std::string(length, '9');
            const char* const binary_end = binary.data() + binary.size();
            CHECK(mp::from_chars(binary.data(), binary_end, x, std::chars_format::hex).ptr == binary_end);
        }
    }
}
