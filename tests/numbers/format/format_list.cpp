// SPDX-License-Identifier: MIT
// The list of all formats, and what is said about each of them elsewhere: names, literals, the table of
// docs/numbers.md. Compared with the oracle's descriptions, which were written by hand.
// Before the other: both once had an element_format, and in this order it did not compile.
#include <mp/block_scaled.hpp>

#include <doctest/doctest.h>
#include <mp/nn/autocast/element_format.hpp>
#include <mp/numbers/format/text.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "oracle/library.hpp"

namespace {

/// Calls f with a value of every number type of the list, without float and double.
template <class Function>
void for_each_number(Function f) {
    [&]<class... Values>(const std::tuple<Values...>*) {
        (f(Values{}), ...);
    }(static_cast<const oracle::named_formats*>(nullptr));
}

std::vector<std::string> split(const std::string& text, const std::string& separator) {
    std::vector<std::string> parts;
    std::size_t from = 0;
    for (std::size_t at = 0; (at = text.find(separator, from)) != std::string::npos;
         from = at + separator.size())
        parts.push_back(text.substr(from, at - from));
    parts.push_back(text.substr(from));
    return parts;
}

/// "448", "3.39e38" or "2^-9".
double number_in(const std::string& text) {
    if (text.starts_with("2^")) return std::ldexp(1.0, std::stoi(text.substr(2)));
    return std::stod(text);
}

/// What docs/numbers.md says of a format.
struct documented_row {
    std::string bits, largest, smallest;
};

/// The table, where a row can have several formats: their bits and largest numbers between commas, the
/// smallest between semicolons.
std::map<std::string, documented_row> documented_table() {
    std::ifstream file(MP_SOURCE_DIR "/docs/numbers.md");
    std::map<std::string, documented_row> table;
    bool inside = false;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("| format | bits | largest |")) {
            inside = true;
        } else if (inside && !line.starts_with("|")) {
            break;
        } else if (inside && line.starts_with("| `")) {
            const auto cells = split(line, " | ");
            REQUIRE(cells.size() == 5);
            const auto names = split(cells[0].substr(2), ", "), bits = split(cells[1], ", ");
            const auto largest = split(cells[2], ", ");
            const auto smallest = split(cells[3], names.size() == 1 ? "|" : "; ");
            CAPTURE(line);
            REQUIRE(bits.size() == names.size());
            REQUIRE(largest.size() == names.size());
            // "1, 2^-3; 2^-2, 2^-4"
            REQUIRE(smallest.size() == names.size());
            for (std::size_t i = 0; i < names.size(); ++i) {
                table[names[i].substr(1, names[i].size() - 2)] = {bits[i], largest[i], smallest[i]};
            }
        }
    }
    return table;
}

/// The value of a code of a finite number that is not negative.
double value_of_code(const oracle::format& f, std::uint64_t code) {
    const std::uint64_t leading = std::uint64_t{1} << f.fraction_bits;
    const auto field = static_cast<int>(code >> f.fraction_bits);
    const bool subnormal = f.has_zero && field == 0;
    const std::uint64_t fraction = code & (leading - 1);
    return std::ldexp(static_cast<double>(subnormal ? fraction : leading | fraction),
                      (subnormal ? 1 : field) - f.bias - f.fraction_bits);
}

}  // namespace

TEST_CASE("every format is in the list once, and has a name of its own") {
    std::set<std::string_view> names;
    [&]<class... Formats>(mp::formats::list<Formats...>) {
        (names.insert(Formats::name), ...);
    }(mp::formats::all{});
    CHECK(names.size() == std::size_t{mp::formats::all::size});
    for (const char* name : {"half", "bfloat16", "tfloat32", "float", "double", "float8_e4m3fn"})
        CHECK(names.contains(name));
}

TEST_CASE("every format has an element_format, which is found by its name") {
    for_each_number([](auto x) {
        using number = decltype(x);
        const mp::element_format found = mp::element_format_of<number>;
        const std::string_view name = mp::name_of(found);
        CAPTURE(name);
        CHECK(name == (std::string_view(number::format::name) == "half" ? "float16" : number::format::name));
        CHECK(mp::find_element_format(name) == found);
        CHECK(mp::is_floating(found));
    });
    CHECK(mp::element_format_of<float> == mp::element_format::f32);
    CHECK(mp::element_format_of<double> == mp::element_format::f64);
    CHECK(mp::element_format_of<mp::half> == mp::element_format::f16);
    CHECK(mp::element_format_of<mp::float8_e3m4> == mp::element_format::e3m4);
    CHECK(mp::element_format_of<mp::float8_e8m0fnu> == mp::element_format::e8m0fnu);
    CHECK(mp::element_format_of<bool> == mp::element_format::boolean);
    CHECK_FALSE(mp::is_floating(mp::element_format::int8));
    CHECK(mp::name_of(mp::element_format::int8) == "int8");
    CHECK(mp::name_of(mp::element_format::uint64) == "uint64");
}

TEST_CASE("literals of every format are the oracle's nearest numbers") {
    for_each_number([](auto x) {
        using number = decltype(x);
        constexpr number literal = mp::detail::parse_literal<number, '0', '.', '3'>();
        const oracle::format& f = oracle::format_of<number>;
        std::uint64_t nearest = 0;
        const auto distance = [&](std::uint64_t code) { return std::fabs(value_of_code(f, code) - 0.3); };
        for (std::uint64_t code = 1; code <= max_finite_code(f); ++code) {
            if (distance(code) < distance(nearest)) nearest = code;
        }
        CHECK(literal.bits() == nearest);
    });
}

TEST_CASE("the documentation has every format with its bits, its largest and its smallest numbers") {
    auto table = documented_table();
    for_each_number([&](auto x) {
        using number = decltype(x);
        const oracle::format& f = oracle::format_of<number>;
        CAPTURE(std::string_view(number::format::name));
        REQUIRE(table.contains(number::format::name));
        const documented_row row = table[number::format::name];
        table.erase(number::format::name);
        const std::string bits = std::to_string(f.is_signed ? 1 : 0) + "-" + std::to_string(f.exponent_bits) +
                                 "-" + std::to_string(f.fraction_bits);
        CHECK(row.bits.substr(0, row.bits.find(' ')) == bits);
        CHECK(number_in(row.largest) == doctest::Approx(value_of_code(f, max_finite_code(f))).epsilon(0.003));
        const auto smallest = split(row.smallest, ", ");
        REQUIRE(smallest.size() == (f.has_zero ? 2U : 1U));
        CHECK(number_in(smallest[0]) == value_of_code(f, min_normal_code(f)));
        if (f.has_zero) CHECK(number_in(smallest[1]) == value_of_code(f, 1));
    });
    for (const auto& [name, row] : table) FAIL_CHECK("no such format: ", name);
}
