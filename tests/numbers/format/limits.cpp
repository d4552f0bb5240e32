// SPDX-License-Identifier: MIT
// numeric_limits, each member computed from its definition in the C++ standard by looking at all codes.
#include <doctest/doctest.h>
#include <cstdint>
#include <limits>

#include "oracle/library.hpp"

namespace {

oracle::dyadic value_of_code(const oracle::format& f, std::uint64_t code) {
    return value_of_magnitude(f, code);
}

/// Whether 10^exponent is not above / not below a magnitude.
bool power_at_most(int exponent, const oracle::dyadic& x) {
    const oracle::natural power = oracle::natural::power(10, exponent < 0 ? -exponent : exponent);
    return exponent >= 0 ? oracle::compare({power, 0}, x) <= 0
                         : oracle::compare({1, 0}, {x.significand * power, x.exponent}) <= 0;
}

bool power_at_least(int exponent, const oracle::dyadic& x) {
    const oracle::natural power = oracle::natural::power(10, exponent < 0 ? -exponent : exponent);
    return exponent >= 0 ? oracle::compare({power, 0}, x) >= 0
                         : oracle::compare({1, 0}, {x.significand * power, x.exponent}) >= 0;
}

/// The difference of neighbouring codes, as a power of two.
oracle::dyadic gap_above(const oracle::format& f, std::uint64_t code) {
    return {1, value_of_magnitude(f, code).exponent};
}

template <class Value>
std::uint64_t code_of_power_of_two(int exponent) {
    const oracle::format& f = oracle::format_of<Value>;
    return finish(f, exact_from_dyadic(f, false, {1, exponent}), oracle::mode::nearest_even,
                  oracle::saturate::none)
        .code;
}

}  // namespace

TEST_CASE_TEMPLATE_DEFINE("numeric_limits say what their definitions say", Value, definitions) {
    using limits = std::numeric_limits<Value>;
    const oracle::format& f = oracle::format_of<Value>;
    const std::uint64_t max_code = max_finite_code(f);

    static_assert(limits::is_specialized && !limits::is_integer && !limits::is_exact);
    static_assert(limits::is_bounded && !limits::is_modulo && !limits::traps && limits::radix == 2);
    CHECK(limits::is_signed == f.is_signed);
    CHECK((limits::has_denorm == std::denorm_present) == f.has_zero);
    static_assert(limits::round_style == std::round_to_nearest);

    // The largest and smallest values, found among all codes.
    std::uint64_t largest = 0;
    std::uint64_t smallest_normal = max_code;
    for (std::uint64_t code = max_code; code != (f.has_zero ? 0 : ~std::uint64_t{0}); --code) {
        if (compare(value_of_code(f, code), value_of_code(f, largest)) > 0) largest = code;
        if (!is_subnormal(f, code)) smallest_normal = code;
    }
    CHECK(limits::max().bits() == largest);
    CHECK(limits::lowest().bits() == (f.is_signed ? largest | sign_bit(f) : 0));
    CHECK(limits::min().bits() == smallest_normal);
    CHECK(limits::denorm_min().bits() == (f.has_zero ? 1 : smallest_normal));

    // digits: p such that all integers below 2^p are numbers, and 2^p + 1 is not.
    const auto is_number = [&](std::uint64_t n) {
        return exact_from_dyadic(f, false, {n, 0}).where == oracle::place::at_lower;
    };
    int digits = 1;
    while (is_number((std::uint64_t{1} << digits) + 1)) ++digits;
    // Formats whose largest numbers are closer together than 1 have no such 2^p.
    if (gap_above(f, max_code).exponent < 0) digits = f.fraction_bits + 1;
    CHECK(limits::digits == digits);

    // epsilon: the gap above 1. round_error: half an ulp, for rounding to nearest.
    const std::uint64_t one = code_of_power_of_two<Value>(0);
    CHECK(limits::epsilon().bits() == code_of_power_of_two<Value>(gap_above(f, one).exponent));
    CHECK(limits::round_error().bits() == code_of_power_of_two<Value>(-1));

    // min_exponent, max_exponent: radix^(e - 1) is the smallest normal / the largest finite power.
    CHECK(oracle::compare({1, limits::min_exponent - 1}, value_of_code(f, smallest_normal)) == 0);
    CHECK(oracle::compare({1, limits::max_exponent - 1}, value_of_code(f, max_code)) <= 0);
    CHECK(oracle::compare({1, limits::max_exponent}, value_of_code(f, max_code)) > 0);

    // min_exponent10, max_exponent10: the powers of ten in the range of normal numbers.
    CHECK(power_at_least(limits::min_exponent10, value_of_code(f, smallest_normal)));
    CHECK(!power_at_least(limits::min_exponent10 - 1, value_of_code(f, smallest_normal)));
    CHECK(power_at_most(limits::max_exponent10, value_of_code(f, max_code)));
    CHECK(!power_at_most(limits::max_exponent10 + 1, value_of_code(f, max_code)));

    // max_digits10: the fewest digits with which no two numbers look the same, ceil(1 + digits * log10(2)):
    // the smallest n with 10^(n - 1) > 2^digits. digits10: decimals that survive, 10^n <= 2^(digits - 1).
    int max_digits10 = 1;
    while (!power_at_least(max_digits10 - 1, {1, digits})) ++max_digits10;
    CHECK(limits::max_digits10 == max_digits10);
    int digits10 = 0;
    while (power_at_most(digits10 + 1, {1, digits - 1})) ++digits10;
    CHECK(limits::digits10 == digits10);

    // Specials.
    CHECK(limits::has_infinity == f.has_infinity);
    if (f.has_infinity) CHECK(is_infinite(f, limits::infinity().bits()));
    if (!f.has_infinity) CHECK(limits::infinity().bits() == 0);
    CHECK(limits::has_quiet_NaN == (f.nans != oracle::nan_codes::none));
    if (limits::has_quiet_NaN) CHECK(is_nan(f, limits::quiet_NaN().bits()));
    if (!limits::has_quiet_NaN) CHECK(limits::quiet_NaN().bits() == 0);
    const bool has_signaling = f.nans == oracle::nan_codes::ieee;
    CHECK(limits::has_signaling_NaN == has_signaling);
    if (has_signaling) {
        const std::uint64_t quiet = std::uint64_t{1} << (f.fraction_bits - 1);
        CHECK(is_nan(f, limits::signaling_NaN().bits()));
        CHECK((limits::signaling_NaN().bits() & quiet) == 0);
        CHECK((limits::quiet_NaN().bits() & quiet) != 0);
    }
    CHECK(limits::is_iec559 == (f.has_infinity && f.nans == oracle::nan_codes::ieee));

    static_assert(std::numeric_limits<const Value>::is_specialized);
    static_assert(std::numeric_limits<const Value>::digits == limits::digits);
    static_assert(std::numeric_limits<volatile Value>::is_specialized);
    static_assert(std::numeric_limits<const volatile Value>::max_exponent == limits::max_exponent);
}

TEST_CASE_TEMPLATE_APPLY(definitions, oracle::all_formats);

TEST_CASE("numeric_limits have the published values") {
    using half = std::numeric_limits<mp::half>;
    CHECK(static_cast<double>(half::max()) == 65504);
    CHECK(static_cast<double>(half::min()) == 0x1p-14);
    CHECK(static_cast<double>(half::denorm_min()) == 0x1p-24);
    CHECK(static_cast<double>(half::epsilon()) == 0x1p-10);
    CHECK(half::digits10 == 3);
    CHECK(half::max_digits10 == 5);
    CHECK(half::min_exponent == -13);
    CHECK(half::max_exponent == 16);
    CHECK(half::min_exponent10 == -4);
    CHECK(half::max_exponent10 == 4);
    using bfloat16 = std::numeric_limits<mp::bfloat16>;
    CHECK(static_cast<double>(bfloat16::max()) == 0x1.fep127);
    CHECK(static_cast<double>(bfloat16::denorm_min()) == 0x1p-133);
    CHECK(bfloat16::digits10 == 2);
    CHECK(bfloat16::max_digits10 == 4);
    CHECK(bfloat16::min_exponent == -125);
    CHECK(bfloat16::max_exponent == 128);
    CHECK(bfloat16::min_exponent10 == -37);
    CHECK(bfloat16::max_exponent10 == 38);
    using e4m3 = std::numeric_limits<mp::float8_e4m3fn>;
    CHECK(static_cast<double>(e4m3::max()) == 448);
    CHECK(static_cast<double>(e4m3::denorm_min()) == 0x1p-9);
    CHECK(e4m3::max_digits10 == 3);
    CHECK(e4m3::min_exponent == -5);
    CHECK(e4m3::max_exponent == 9);
    CHECK(e4m3::min_exponent10 == -1);
    CHECK(e4m3::max_exponent10 == 2);
    using e5m2 = std::numeric_limits<mp::float8_e5m2>;
    CHECK(static_cast<double>(e5m2::max()) == 57344);
    CHECK(static_cast<double>(e5m2::denorm_min()) == 0x1p-16);
    CHECK(e5m2::digits10 == 0);
    CHECK(e5m2::max_digits10 == 2);
    CHECK(e5m2::min_exponent == -13);
    CHECK(e5m2::max_exponent == 16);
    // No zero and no subnormal numbers: the smallest number is normal.
    using e8m0 = std::numeric_limits<mp::float8_e8m0fnu>;
    CHECK(static_cast<double>(e8m0::min()) == 0x1p-127);
    CHECK(e8m0::lowest() == e8m0::min());
    CHECK(e8m0::denorm_min() == e8m0::min());
    CHECK(e8m0::has_denorm == std::denorm_absent);
    CHECK(e8m0::min_exponent == -126);
}

namespace {

/// IEEE codes with one bit of fraction: the only NaN of a sign is quiet.
struct one_bit {
    static constexpr const char* name = "one bit of fraction";
    static constexpr int exponent_bits = 4;
    static constexpr int fraction_bits = 1;
    static constexpr int bias = 7;
    static constexpr bool is_signed = true;
    static constexpr bool has_infinity = true;
    static constexpr mp::nan_encoding nans = mp::nan_encoding::ieee;
};

}  // namespace

TEST_CASE("a format has no signalling NaN where one bit of fraction says that NaNs are quiet") {
    using limits = std::numeric_limits<mp::basic_float<one_bit>>;
    CHECK(limits::has_quiet_NaN);
    CHECK_FALSE(limits::has_signaling_NaN);
    CHECK(mp::isnan(limits::quiet_NaN()));
}
