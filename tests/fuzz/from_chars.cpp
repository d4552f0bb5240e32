// SPDX-License-Identifier: MIT
// Fuzzes from_chars of every format: it ends where std::from_chars ends, gives what the oracle of the tests
// makes of the digits, and reads what to_chars writes. The first byte says notation, rounding and saturation,
// the second the format, the rest is the text.
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "oracle/library.hpp"
#include "require.hpp"

namespace {

using oracle::natural;

using fuzzing::require;

/// 10^exponent, for as many exponents as texts of a thousand characters need.
const natural& power_of_ten(int exponent) {
    static std::vector<natural> powers{1};
    while (powers.size() <= static_cast<std::size_t>(exponent)) {
        powers.push_back(powers.back() * natural(10));
    }
    return powers[static_cast<std::size_t>(exponent)];
}

int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

/// What a text that is a number stands for, in a format.
oracle::exact_result exact_of(const oracle::format& f, std::string_view text, bool hexadecimal) {
    const bool negative = text.front() == '-';
    if (negative) text.remove_prefix(1);
    if (text.front() == 'i' || text.front() == 'I') return oracle::exact_infinity(negative);
    if (text.front() == 'n' || text.front() == 'N') return oracle::exact_nan();
    natural digits;
    long exponent = 0;  // of ten or two
    bool point = false;
    std::size_t i = 0;
    for (; i < text.size(); ++i) {
        if (text[i] == '.') {
            point = true;
            continue;
        }
        const int digit = digit_of(text[i]);
        if (digit >= (hexadecimal ? 16 : 10)) break;
        digits =
            (hexadecimal ? digits << 4 : digits * natural(10)) + natural(static_cast<std::uint64_t>(digit));
        if (point) exponent -= hexadecimal ? 4 : 1;
    }
    if (digits.is_zero()) return oracle::exact_zero(negative, false);
    if (i < text.size()) {
        const bool down = text[++i] == '-';
        if (down || text[i] == '+') ++i;
        long power = 0;
        for (; i < text.size(); ++i) {
            if (power < 1000000) power = power * 10 + digit_of(text[i]);
        }
        exponent += down ? -power : power;
    }
    const int bits = digits.bit_length();
    if (hexadecimal) {
        // Far outside of every format anything else of the kind does as well.
        if (bits + exponent > 500) return oracle::exact_from_dyadic(f, negative, {1, 500});
        if (bits + exponent < -500) return oracle::exact_from_dyadic(f, negative, {1, -500});
        return oracle::exact_from_dyadic(f, negative, {digits, static_cast<int>(exponent)});
    }
    const long magnitude = static_cast<long>(bits * 0.30103) + exponent;
    if (magnitude > 100) return oracle::exact_from_dyadic(f, negative, {1, 500});
    if (magnitude < -100) return oracle::exact_from_dyadic(f, negative, {1, -500});
    const natural& power = power_of_ten(static_cast<int>(exponent < 0 ? -exponent : exponent));
    if (exponent >= 0) return oracle::exact_from_dyadic(f, negative, {digits * power, 0});
    return locate(f, negative, [&](const oracle::dyadic& y) {
        return oracle::compare({digits, 0}, {y.significand * power, y.exponent});
    });
}

/// Where std::from_chars ends. libstdc++ 12 reads the exponent of 1p+-3 as -3, where only one sign may stand:
/// it is shown no text beyond the first.
std::from_chars_result read_by_standard_library(std::string_view text, std::chars_format format) {
    if (format == std::chars_format::hex) {
        const std::size_t first = text.find_first_of("pP");
        if (first != text.npos && text.substr(first + 1, 2) == "+-") text = text.substr(0, first);
    }
    double value = 0.0;
    return std::from_chars(text.data(), text.data() + text.size(), value, format);
}

template <class Value>
void check(std::string_view text, std::chars_format format, oracle::mode rounding,
           oracle::saturate saturation) {
    const oracle::format& f = oracle::format_of<Value>;
    const char* const first = text.data();
    const char* const last = first + text.size();
    const mp::projection projection = oracle::library_projection(rounding, saturation);
    const auto before = oracle::value_of<Value>(1);
    Value x = before;
    const std::from_chars_result result = mp::from_chars(first, last, x, format, projection);
    const mp::read_result<Value> read = mp::read_number<Value>(first, last, format, projection);
    require(read.ptr == result.ptr && read.ec == result.ec);
    require(x.bits() == (result.ec == std::errc{} ? read.value : before).bits());

    const std::from_chars_result expected = read_by_standard_library(text, format);
    require(result.ptr == expected.ptr);
    require((result.ec == std::errc::invalid_argument) == (expected.ec == std::errc::invalid_argument));
    if (result.ec == std::errc::invalid_argument) return require(result.ptr == first);

    const std::string_view number(first, static_cast<std::size_t>(result.ptr - first));
    const auto exact = exact_of(f, number, format == std::chars_format::hex);
    const oracle::outcome outcome = finish(f, exact, rounding, saturation);
    require(matches(f, outcome, read.value.bits()));
    if (f.is_signed && f.has_zero && f.has_infinity && exact.what == oracle::exact_result::kind::between) {
        const bool lost = is_infinite(f, outcome.code) || is_zero(f, outcome.code);
        require((result.ec == std::errc::result_out_of_range) == lost);
    }
    if (result.ec != std::errc{}) return;
    char buffer[64];
    const std::to_chars_result printed = mp::to_chars(buffer, buffer + sizeof buffer, x);
    require(printed.ec == std::errc{});
    Value again = before;
    require(mp::from_chars(buffer, printed.ptr, again).ptr == printed.ptr);
    require(again.bits() == x.bits() || is_nan(f, x.bits()));
}

/// Every format with a name, and P3109 formats with and without signs and infinities.
using formats =
    oracle::joined<oracle::named_formats,
                   std::tuple<mp::p3109<8, 1>, mp::p3109<8, 3, mp::signedness::is_signed, mp::domain::finite>,
                              mp::p3109<8, 5, mp::signedness::is_unsigned>,
                              mp::p3109<7, 7, mp::signedness::is_unsigned, mp::domain::finite>>>;

template <std::size_t... Index>
void check_one(std::size_t chosen, std::index_sequence<Index...>, std::string_view text,
               std::chars_format format, oracle::mode rounding, oracle::saturate saturation) {
    static_cast<void>(
        ((chosen == Index &&
          (check<std::tuple_element_t<Index, formats>>(text, format, rounding, saturation), true)) ||
         ...));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    constexpr std::chars_format notations[] = {std::chars_format::general, std::chars_format::hex,
                                               std::chars_format::fixed, std::chars_format::scientific};
    const unsigned choice = data[0];
    const std::chars_format format = notations[choice % 4];
    const oracle::mode rounding = oracle::modes[choice / 4 % 6];
    const oracle::saturate saturation = oracle::saturations[choice / 24 % 3];
    const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
    constexpr std::size_t count = std::tuple_size_v<formats>;
    check_one(data[1] % count, std::make_index_sequence<count>{}, text, format, rounding, saturation);
    return 0;
}
