// SPDX-License-Identifier: MIT
#pragma once

#include <climits>
#include <cmath>
#include <cstdint>

#include "numbers/format/mpfr/cases.hpp"

/// Compares functions that take an integer beside a number, and functions of three numbers, with MPFR.
namespace integer_powers {

/// Small ones of both signs, those around the sizes at which results leave the formats or approach one, the
/// ends.
inline constexpr long long exponents[] = {
    0,    1,     2,      3,       4,       5,       6,         7,         8,         9,           10,   11,
    12,   16,    25,     31,      32,      33,      100,       -1,        -2,        -3,          -4,   -5,
    -7,   -8,    -11,    -16,     -31,     -32,     -33,       -100,      1000,      -1000,       4095, 4096,
    8192, 65535, -65536, 1 << 20, INT_MAX, INT_MIN, LLONG_MAX, LLONG_MIN, 1LL << 53, -(1LL << 40)};

template <class Value>
void compare_all(oracle::disagreements& wrong, Value x, long long n) {
    if (math_cases::is_signaling(x)) return;
    const oracle::mpfr_number exact_x(static_cast<double>(x));
    oracle::mpfr_number exact;
    const auto visit = [&](const char* name, auto reference, auto function) {
        exact.compute(
            [&](mpfr_ptr r, mpfr_srcptr p, mpfr_rnd_t round) { return reference(r, p, long{n}, round); },
            exact_x);
        // 1 whatever x is: not the result of a NaN operand. The infinity of a zero is a division by it.
        math_cases::compare<Value>(wrong, name, exact, [&](auto&& c) { return function(x, c); }, x);
    };
    visit("pown", mpfr_pow_si, [&](auto y, auto&& c) { return mp::pown(y, n, c); });
    visit("rootn", mpfr_rootn_si, [&](auto y, auto&& c) { return mp::rootn(y, n, c); });
    visit("compoundn", mpfr_compound_si, [&](auto y, auto&& c) { return mp::compoundn(y, n, c); });
}

/// Numbers of similar and of very different size.
template <class Value>
void compare_three(oracle::disagreements& wrong, oracle::random_bits& random) {
    const oracle::format& f = oracle::format_of<Value>;
    const std::uint64_t i = weighted_code(random, f);
    const Value x = oracle::value_of<Value>(i);
    const Value y = oracle::value_of<Value>(weighted_partner(random, f, i));
    const Value z = oracle::value_of<Value>(weighted_partner(random, f, i));
    const auto is_number = [](Value v) { return mp::isfinite(v); };
    if (!is_number(x) || !is_number(y) || !is_number(z)) return;
    // Wide enough for any sum of three products to be exact.
    mpfr_t a, b, c, sum;
    for (mpfr_ptr v : {a, b, c, sum}) mpfr_init2(v, 1200);
    mpfr_set_d(a, static_cast<double>(x), MPFR_RNDN);
    mpfr_set_d(b, static_cast<double>(y), MPFR_RNDN);
    mpfr_set_d(c, static_cast<double>(z), MPFR_RNDN);
    const oracle::mpfr_number none;
    oracle::mpfr_number exact;
    const auto visit = [&](const char* name, auto reference, auto function) {
        exact.compute([&](mpfr_ptr r, mpfr_srcptr, mpfr_rnd_t round) { return reference(r, round); }, none);
        math_cases::compare<Value>(wrong, name, exact, function, x, y, z);
    };
    mpfr_sqr(sum, a, MPFR_RNDN);
    mpfr_fma(sum, b, b, sum, MPFR_RNDN);
    mpfr_fma(sum, c, c, sum, MPFR_RNDN);
    visit(
        "hypot", [&](mpfr_ptr r, mpfr_rnd_t round) { return mpfr_sqrt(r, sum, round); },
        [&](auto&& p) { return mp::hypot(x, y, z, p); });
    mpfr_sub(sum, b, a, MPFR_RNDN);
    mpfr_fma(sum, sum, c, a, MPFR_RNDN);
    if (mpfr_zero_p(sum) == 0) {
        visit(
            "lerp", [&](mpfr_ptr r, mpfr_rnd_t round) { return mpfr_set(r, sum, round); },
            [&](auto&& p) { return mp::lerp(x, y, z, p); });
    }
    mpfr_add(sum, a, b, MPFR_RNDN);
    mpfr_div_2ui(sum, sum, 1, MPFR_RNDN);
    if (mpfr_zero_p(sum) == 0) {
        visit(
            "midpoint", [&](mpfr_ptr r, mpfr_rnd_t round) { return mpfr_set(r, sum, round); },
            [&](auto&& p) { return mp::midpoint(x, y, p); });
    }
    for (mpfr_ptr v : {a, b, c, sum}) mpfr_clear(v);
}

}  // namespace integer_powers
