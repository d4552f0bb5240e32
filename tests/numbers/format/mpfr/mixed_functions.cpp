// SPDX-License-Identifier: MIT
// Functions of a number and a built-in type are those of the exact values of both, rounded once to nearest
// even, judged by MPFR in both orders: numbers that the format has, neighbours of midpoints, and values far
// out of its range.
#include <doctest/doctest.h>
#include <cmath>
#include <cstdint>
#include <limits>

#include "numbers/format/mpfr/cases.hpp"

namespace {

using oracle::mpfr_number;

template <class T>
double as_double(T x) {
    return static_cast<double>(x);
}

/// Compares a result with what MPFR makes of the operands, which are all doubles.
template <class Value, class Reference, class... X>
void check(oracle::disagreements& wrong, const char* name, Value result, Reference reference, X... x) {
    mpfr_number exact;
    exact.compute(reference, mpfr_number(as_double(x))...);
    const auto expected = mp::round_to<Value>(exact.to_odd());
    const bool both_nan = mp::isnan(result) && mp::isnan(expected);
    if (!both_nan && result.bits() != expected.bits())
        wrong.add(name, as_double(x)..., "gives", as_double(result), "instead of", as_double(expected));
}

/// The smaller or larger one, zeros of different sign included.
template <bool Larger, bool ByMagnitude, bool IgnoresNan>
int choose(mpfr_ptr result, mpfr_srcptr x, mpfr_srcptr y, mpfr_rnd_t round) {
    if (mpfr_nan_p(x) != 0 || mpfr_nan_p(y) != 0)
        return mpfr_set(result, (mpfr_nan_p(x) != 0) == IgnoresNan ? y : x, round);
    int order = ByMagnitude ? mpfr_cmpabs(x, y) : mpfr_cmp(x, y);
    if (order == 0) order = mpfr_cmp(x, y);
    if (order == 0) order = (mpfr_signbit(y) != 0 ? 1 : 0) - (mpfr_signbit(x) != 0 ? 1 : 0);
    return mpfr_set(result, (order > 0) == Larger ? x : y, round);
}
int remainder_of(mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr y, mpfr_rnd_t round) {
    return mpfr_remainder(r, x, y, round);
}
int half_turns(mpfr_ptr r, mpfr_srcptr y, mpfr_srcptr x, mpfr_rnd_t round) {
    return mpfr_atan2u(r, y, x, 2, round);
}

/// Functions that take every built-in type, double among them.
template <class Value, class A, class B>
void compare_exact(oracle::disagreements& wrong, A a, B b) {
    check<Value>(wrong, "fmax", fmax(a, b), choose<true, false, true>, a, b);
    check<Value>(wrong, "fmin", fmin(a, b), choose<false, false, true>, a, b);
    check<Value>(wrong, "fmaximum", fmaximum(a, b), choose<true, false, false>, a, b);
    check<Value>(wrong, "fminimum", fminimum(a, b), choose<false, false, false>, a, b);
    check<Value>(wrong, "fmaximum_num", fmaximum_num(a, b), choose<true, false, true>, a, b);
    check<Value>(wrong, "fminimum_num", fminimum_num(a, b), choose<false, false, true>, a, b);
    check<Value>(wrong, "fmaximum_mag", fmaximum_mag(a, b), choose<true, true, false>, a, b);
    check<Value>(wrong, "fminimum_mag", fminimum_mag(a, b), choose<false, true, false>, a, b);
    check<Value>(wrong, "fmaximum_mag_num", fmaximum_mag_num(a, b), choose<true, true, true>, a, b);
    check<Value>(wrong, "fminimum_mag_num", fminimum_mag_num(a, b), choose<false, true, true>, a, b);
    check<Value>(wrong, "fdim", fdim(a, b), mpfr_dim, a, b);
    check<Value>(wrong, "fmod", fmod(a, b), mpfr_fmod, a, b);
    check<Value>(wrong, "remainder", remainder(a, b), remainder_of, a, b);
    check<Value>(wrong, "hypot", hypot(a, b), mpfr_hypot, a, b);
    // MPFR's NaN has no sign.
    if (!std::isnan(as_double(b))) check<Value>(wrong, "copysign", copysign(a, b), mpfr_copysign, a, b);
    const Value next = nextafter(a, b);
    if (as_double(a) == as_double(b)) {
        if (next.bits() != Value(as_double(b)).bits())
            wrong.add("nextafter equal", as_double(a), as_double(b));
    } else if (as_double(a) < as_double(b)) {  // a format without infinity ends at its largest number
        const bool right = (next > a || mp::nextup(next) == next) &&
                           (!(mp::nextdown(next) > a) || mp::nextdown(next) == next);
        if (!right) wrong.add("nextafter up", as_double(a), as_double(b), as_double(next));
    } else if (as_double(a) > as_double(b)) {
        const bool right =
            (next < a || mp::nextdown(next) == next) && (!(mp::nextup(next) < a) || mp::nextup(next) == next);
        if (!right) wrong.add("nextafter down", as_double(a), as_double(b), as_double(next));
    } else if (!mp::isnan(next)) {
        wrong.add("nextafter NaN");
    }
    int quotient = 0;
    check<Value>(wrong, "remquo", remquo(a, b, &quotient), remainder_of, a, b);
    const auto fused = [](mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr y, mpfr_rnd_t round) {
        return mpfr_fma(r, x, y, y, round);
    };
    check<Value>(wrong, "fma", fma(a, b, b), fused, a, b);
}

/// Functions that take types of up to 32 bits.
template <class Value, class A, class B>
void compare_evaluated(oracle::disagreements& wrong, A a, B b) {
    check<Value>(wrong, "pow", pow(a, b), mpfr_pow, a, b);
    check<Value>(wrong, "atan2", atan2(a, b), mpfr_atan2, a, b);
    check<Value>(wrong, "atan2pi", atan2pi(a, b), half_turns, a, b);
    if (!std::isnan(as_double(a)) && !std::isnan(as_double(b)))
        check<Value>(wrong, "powr", powr(a, b), mpfr_powr, a, b);
}

/// A double that is a number of the format, or next to one or to a midpoint, or anything.
template <class Value>
double hard_double(oracle::random_bits& random) {
    const oracle::format& f = oracle::format_of<Value>;
    const Value x = oracle::value_of<Value>(weighted_code(random, f));
    const double exact = as_double(x);
    switch (random.below(6)) {
        case 0:
            return exact;
        case 1:
            return std::nextafter(exact, 1e300);
        case 2:
            return (exact + as_double(mp::nextup(x))) / 2;
        case 3:
            return std::nextafter((exact + as_double(mp::nextup(x))) / 2, -1e300);
        case 4:
            return std::ldexp(static_cast<double>(random.next() >> 11),
                              static_cast<int>(random.below(200)) - 150);
        default:
            return static_cast<double>(static_cast<std::int32_t>(random.next())) / 64;
    }
}

}  // namespace

TEST_CASE_TEMPLATE("functions beside float, double and integers are those of the exact values", Value,
                   mp::half, mp::bfloat16, mp::float8_e4m3fn) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    oracle::random_bits random(901);
    for (int i = 0; i < 3000; ++i) {
        const Value h = oracle::value_of<Value>(weighted_code(random, f));
        if (math_cases::is_signaling(h)) continue;
        const double d = hard_double<Value>(random);
        compare_exact<Value>(wrong, h, d);
        compare_exact<Value>(wrong, d, h);
        const auto s = static_cast<float>(d);
        compare_exact<Value>(wrong, h, s);
        compare_exact<Value>(wrong, s, h);
        compare_evaluated<Value>(wrong, h, s);
        compare_evaluated<Value>(wrong, s, h);
        const auto n = static_cast<int>(static_cast<std::int32_t>(random.next()) >> random.below(32));
        compare_exact<Value>(wrong, h, n);
        compare_exact<Value>(wrong, n, h);
        compare_evaluated<Value>(wrong, h, n);
        compare_evaluated<Value>(wrong, n, h);
    }
    for (const double d :
         {0.0, -0.0, 1.0, -1.0, 1e-300, 1e300, 1.0000001, std::numeric_limits<double>::infinity(),
          -std::numeric_limits<double>::infinity(), std::nan("")}) {
        for (std::uint64_t code = 0; code <= Value::layout::code_mask;
             code += Value::layout::width > 8 ? 93 : 1) {
            const Value h = oracle::value_of<Value>(code);
            if (math_cases::is_signaling(h)) continue;
            compare_exact<Value>(wrong, h, d);
            compare_exact<Value>(wrong, d, h);
            compare_evaluated<Value>(wrong, h, static_cast<float>(d));
            compare_evaluated<Value>(wrong, static_cast<float>(d), h);
        }
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("integers of 64 bits are taken exactly") {
    using mp::half;
    CHECK(fmod(half(7), (1LL << 62) + 1).bits() == half(7).bits());
    CHECK(fmod((1LL << 62) + 1, half(4)).bits() == half(1).bits());
    CHECK(remainder(~std::uint64_t{0}, half(4)).bits() == half(-1).bits());
    CHECK(fmax(half(2048), std::uint64_t{2049}).bits() == half(2048).bits());
    CHECK(mp::isinf(fmax(half(2048), ~std::uint64_t{0})));
    CHECK(pow(half(1.5F), 100000000000LL).bits() == std::numeric_limits<half>::infinity().bits());
    CHECK(pow(half(-1), (1LL << 62) + 1).bits() == half(-1).bits());
    CHECK(pow(half(2), std::int64_t{-24}).bits() == 1);
    CHECK(hypot(half(3), 4, half(12)).bits() == half(13).bits());
    CHECK(hypot(half(3), 0x1.00001p2F, 12).bits() == half(13).bits());
}
