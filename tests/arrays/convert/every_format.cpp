// SPDX-License-Identifier: MIT
// Arrays of every named format are converted to the same bits as single numbers: all codes, and all floats
// and doubles near which the rounding of a single number changes.
#include <mp/convert.hpp>
#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/p3109.hpp>
#include <mp/tfloat32.hpp>

#include <doctest/doctest.h>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

template <class T>
std::vector<T> all_codes() {
    std::vector<T> values;
    // Of tfloat32 every 7th: 2^19 codes in all formats and projections would take long.
    const std::uint64_t count = std::uint64_t{mp::layout_of<typename T::format>::code_mask} + 1;
    for (std::uint64_t code = 0; code < count; code += count > 65536 ? 7 : 1) {
        values.push_back(T::from_bits(static_cast<typename T::storage>(code)));
    }
    return values;
}

/// The numbers of a format, the midpoints between neighbours, and the two native numbers next to each.
template <class T, class Native>
std::vector<Native> numbers_and_midpoints() {
    std::vector<Native> values;
    const auto add = [&](Native x) {
        constexpr Native infinity = std::numeric_limits<Native>::infinity();
        for (const Native y : {x, std::nextafter(x, infinity), std::nextafter(x, -infinity)}) {
            values.push_back(y);
            values.push_back(-y);
        }
    };
    Native last = 0;
    for (const T x : all_codes<T>()) {
        const auto value = static_cast<Native>(x);
        add(value);
        if (mp::isfinite(x)) add(last / 2 + value / 2);
        last = value;
    }
    oracle::random_bits random(5);
    for (int i = 0; i < 20000; ++i) {
        constexpr const oracle::format& f = sizeof(Native) == 4 ? oracle::binary32 : oracle::binary64;
        values.push_back(oracle::value_of<Native>(weighted_code(random, f)));
    }
    return values;
}

template <class To, class From>
void compare(oracle::disagreements& wrong, const std::vector<From>& from) {
    std::vector<To> to(from.size());
    for (const mp::projection p :
         {mp::projection{}, mp::projection{mp::rounding::toward_zero, mp::saturation::finite}}) {
        mp::convert(mp::cpu{}, from, to, p);
        for (std::size_t i = 0; i < from.size(); ++i) {
            const std::uint64_t expected = oracle::code_of(mp::round_to<To>(from[i], p));
            if (oracle::code_of(to[i]) != expected) {
                wrong.add(oracle::code_of(from[i]), "becomes", oracle::code_of(to[i]), "and not", expected);
            }
        }
    }
}

}  // namespace

TEST_CASE_TEMPLATE_DEFINE("arrays of every format become what single numbers become", T, every_format) {
    oracle::disagreements wrong;
    const std::vector<T> codes = all_codes<T>();
    compare<float>(wrong, codes);
    compare<double>(wrong, codes);
    compare<mp::half>(wrong, codes);
    compare<mp::bfloat16>(wrong, codes);
    compare<mp::tfloat32>(wrong, codes);
    compare<mp::float8_e4m3fn>(wrong, codes);
    compare<mp::float8_e8m0fnu>(wrong, codes);
    compare<T>(wrong, numbers_and_midpoints<T, float>());
    compare<T>(wrong, numbers_and_midpoints<T, double>());
    compare<T>(wrong, all_codes<mp::half>());
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
TEST_CASE_TEMPLATE_APPLY(every_format,
                         oracle::joined<oracle::named_formats, std::tuple<mp::p3109<8, 1>, mp::p3109<5, 3>>>);

TEST_CASE("an array of tfloat32 has the bytes of the floats of the same values") {
    const std::vector<float> floats = {1.0f, -2.5f, 0x1.8p-135f, 1.0f + 0x1p-11f, 1.0f + 0x3p-11f, INFINITY};
    std::vector<mp::tfloat32> numbers(floats.size());
    mp::convert(mp::cpu{}, floats, numbers);
    const float expected[] = {1.0f, -2.5f, 0x1.8p-135f, 1.0f, 1.0f + 0x1p-9f, INFINITY};
    for (std::size_t i = 0; i < floats.size(); ++i) CHECK(std::bit_cast<float>(numbers[i]) == expected[i]);
}
