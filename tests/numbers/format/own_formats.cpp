// SPDX-License-Identifier: MIT
// A descriptor of a user's own gives a number type with all the promises of the named ones: narrow and wide
// exponents, with much precision and with little, with and without infinities.
// alone: it specialises templates of the oracle
#include <doctest/doctest.h>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

constexpr int usual_bias(int exponent_bits) {
    return (1 << (exponent_bits - 1)) - 1;
}

template <int ExponentBits, int FractionBits, bool HasInfinity, int Bias>
struct descriptor {
    static constexpr const char* name = "own";
    static constexpr int exponent_bits = ExponentBits;
    static constexpr int fraction_bits = FractionBits;
    static constexpr int bias = Bias;
    static constexpr bool is_signed = true;
    static constexpr bool has_infinity = HasInfinity;
    static constexpr mp::nan_encoding nans =
        HasInfinity ? mp::nan_encoding::ieee : mp::nan_encoding::all_ones;
};

template <int ExponentBits, int FractionBits, bool HasInfinity = true, int Bias = usual_bias(ExponentBits)>
using own = mp::basic_float<descriptor<ExponentBits, FractionBits, HasInfinity, Bias>>;

}  // namespace

template <int ExponentBits, int FractionBits, bool HasInfinity, int Bias>
inline constexpr oracle::format oracle::format_of<own<ExponentBits, FractionBits, HasInfinity, Bias>> = {
    ExponentBits, FractionBits, Bias, HasInfinity,
    HasInfinity ? oracle::nan_codes::ieee : oracle::nan_codes::all_ones};

namespace {

using tfloat32 = own<8, 10>;
using near_single = own<7, 20>;
using long_fraction = own<4, 15>;
using e3m4 = own<3, 4>;
using e6m9fn = own<6, 9, false>;
// 32 bits: the exponents of double, more precision than float, nearly nothing but fraction.
using e11m20 = own<11, 20>;
using e5m26 = own<5, 26>;
using e2m29 = own<2, 29>;
// As many exponents as float has, but others, or with others of its codes for NaN.
using e8m7_shifted = own<8, 7, true, 100>;
using e8m7fn = own<8, 7, false>;

}  // namespace

TEST_CASE_TEMPLATE("arithmetic of own formats is the oracle's, in every projection", Value, tfloat32,
                   near_single, long_fraction, e3m4, e6m9fn, e11m20, e5m26, e2m29, e8m7_shifted, e8m7fn) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    oracle::random_bits random(101);
    for (int n = 0; n < 12000; ++n) {
        const std::uint64_t i = weighted_code(random, f);
        const std::uint64_t j = weighted_partner(random, f, i);
        const std::uint64_t k = weighted_partner(random, f, i);
        const Value a = oracle::value_of<Value>(i);
        const Value b = oracle::value_of<Value>(j);
        const Value c = oracle::value_of<Value>(k);
        oracle::compare_in_every_projection<Value>(
            wrong, oracle::add(f, i, j), [&](mp::projection p) { return mp::add(a, b, p); }, i, "+", j);
        oracle::compare_in_every_projection<Value>(
            wrong, oracle::subtract(f, i, j), [&](mp::projection p) { return mp::subtract(a, b, p); }, i, "-",
            j);
        oracle::compare_in_every_projection<Value>(
            wrong, oracle::multiply(f, i, j), [&](mp::projection p) { return mp::multiply(a, b, p); }, i, "*",
            j);
        oracle::compare_in_every_projection<Value>(
            wrong, oracle::divide(f, i, j), [&](mp::projection p) { return mp::divide(a, b, p); }, i, "/", j);
        oracle::compare_in_every_projection<Value>(
            wrong, oracle::fma(f, i, j, k), [&](mp::projection p) { return mp::fma(a, b, c, p); }, "fma", i,
            j, k);
        oracle::compare_in_every_projection<Value>(
            wrong, oracle::sqrt(f, i), [&](mp::projection p) { return mp::sqrt(a, p); }, "sqrt", i);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("conversions of own formats are the oracle's, in every projection", Value, tfloat32,
                   near_single, long_fraction, e3m4, e6m9fn, e11m20, e5m26, e2m29, e8m7_shifted, e8m7fn) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    oracle::random_bits random(102);
    for (int n = 0; n < 20000; ++n) {
        const std::uint64_t code = weighted_code(random, f);
        const Value x = oracle::value_of<Value>(code);
        const std::uint64_t narrow = weighted_code(random, oracle::binary32);
        const std::uint64_t wide = weighted_code(random, oracle::binary64);
        const std::uint64_t near = (std::uint64_t{1023} - 20 + random.below(40)) << 52 | random.next() >> 12;
        oracle::compare_in_every_projection<Value>(
            wrong, convert(oracle::binary32, narrow, f),
            [&](mp::projection p) { return mp::round_to<Value>(oracle::value_of<float>(narrow), p); },
            "float", narrow);
        oracle::compare_in_every_projection<Value>(
            wrong, convert(oracle::binary64, wide, f),
            [&](mp::projection p) { return mp::round_to<Value>(oracle::value_of<double>(wide), p); },
            "double", wide);
        oracle::compare_in_every_projection<Value>(
            wrong, convert(oracle::binary64, near, f),
            [&](mp::projection p) { return mp::round_to<Value>(oracle::value_of<double>(near), p); },
            "double", near);
        oracle::compare_in_every_projection<mp::half>(
            wrong, convert(f, code, oracle::binary16),
            [&](mp::projection p) { return mp::round_to<mp::half>(x, p); }, "to half", code);
        if (!mp::isnan(x) && Value(static_cast<double>(x)).bits() != code) wrong.add("through double", code);
        constexpr bool fits_float = mp::detail::exactly_representable_in<typename Value::format, float>;
        if (fits_float && !mp::isnan(x) && Value(static_cast<float>(x)).bits() != code) {
            wrong.add("through float", code);
        }
        static_assert(std::is_convertible_v<Value, float> == fits_float);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("text of own formats reads back", Value, tfloat32, near_single, long_fraction, e3m4,
                   e6m9fn, e11m20, e5m26, e2m29, e8m7_shifted, e8m7fn) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    oracle::random_bits random(103);
    for (int n = 0; n < 20000; ++n) {
        const std::uint64_t code = weighted_code(random, f);
        const Value x = oracle::value_of<Value>(code);
        char text[32];
        const auto end = mp::to_chars(text, text + sizeof text, x);
        Value back{};
        const auto read = mp::from_chars(text, end.ptr, back);
        if (read.ec != std::errc{} || read.ptr != end.ptr) wrong.add(code, std::string(text, end.ptr));
        if (mp::isnan(x) ? !mp::isnan(back) : back.bits() != code)
            wrong.add(code, std::string(text, end.ptr));
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
    CHECK(std::numeric_limits<Value>::max().bits() == max_finite_code(f));
    CHECK(std::numeric_limits<Value>::digits == f.fraction_bits + 1);
}

TEST_CASE("subnormal long doubles keep their value where a format has their exponents") {
    using wide = own<16, 7>;
    using limits = std::numeric_limits<long double>;
    constexpr int least = limits::min_exponent - limits::digits;
    static_assert(least > -32768);
    constexpr long double smallest = limits::denorm_min();
    CHECK(ilogb(wide(smallest)) == least);
    CHECK(ilogb(wide(-3 * smallest)) == least + 1);
    CHECK(static_cast<long double>(wide(5 * smallest)) == 5 * smallest);
    CHECK(ilogb(wide((limits::min)())) == limits::min_exponent - 1);
}
