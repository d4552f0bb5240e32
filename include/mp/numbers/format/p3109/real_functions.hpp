// SPDX-License-Identifier: MIT
/// \file
/// Functions of closed extended reals: sections 4.10 and 4.11 of IEEE P3109. Signs, roots, products with sums, minima
/// and maxima are exact, or have 63 bits and more and are sticky; elementary functions are by the evaluations of
/// math/ and their exact cases.
#pragma once

#include <mp/numbers/format/math/hyperbolic.hpp>
#include <mp/numbers/format/math/inverse_trigonometric.hpp>
#include <mp/numbers/format/math/power.hpp>
#include <mp/numbers/format/math/trigonometric.hpp>
#include <mp/numbers/format/p3109/extended_real.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

constexpr extended_real real_identity(const extended_real& x) {
    return x;
}
constexpr extended_real real_magnitude(const extended_real& x) {
    return x.with_sign(false);
}
constexpr extended_real real_copy_sign(const extended_real& x, const extended_real& y) {
    return y.is_nan() ? y : x.with_sign(y.is_negative());
}
constexpr extended_real real_difference(const extended_real& x, const extended_real& y) {
    return real_sum(x, real_negative(y));
}
constexpr extended_real real_product_sum(const extended_real& x, const extended_real& y,
                                         const extended_real& z) {
    return real_sum(real_product(x, y), z);
}
constexpr extended_real real_reciprocal(const extended_real& x) {
    return real_quotient(real_integer(1), x);
}

constexpr extended_real real_root(const extended_real& x) {
    if (x.is_nan() || x.is_negative()) return real_nan();
    if (x.kind != category::finite) return x;
    return as_real(sqrt_exact<uint128>(to_64_bits(x.value)));
}

/// floor(2^n / x) has 127 or 128 bits with the n chosen here, and the whole part of its root is that of the
/// root of 2^n / x.
constexpr extended_real real_reciprocal_root(const extended_real& x) {
    if (x.is_nan() || x.is_zero() || x.is_negative()) return real_nan();
    if (x.is_infinite()) return {};
    const exact_value argument = without_trailing_zeros(to_64_bits(x.value));
    const uint128 divisor = argument.significand;
    uint128 quotient = divisor == 1 ? 1 : 0;
    uint128 rest = divisor == 1 ? 0 : 1;
    int n = 0;
    for (; (quotient >> 126) == 0 || (n + argument.exponent) % 2 != 0; ++n) {
        rest <<= 1;
        quotient <<= 1;
        if (rest >= divisor) {
            rest -= divisor;
            quotient |= 1;
        }
    }
    const std::uint64_t root = square_root(quotient);
    const bool exact = rest == 0 && static_cast<uint128>(root) * root == quotient;
    return as_real(exact_value{false, -(n + argument.exponent) / 2, root, !exact});
}

constexpr extended_real real_hypotenuse(const extended_real& x, const extended_real& y) {
    if (x.is_nan() || y.is_nan()) return real_nan();
    if (x.is_infinite() || y.is_infinite()) return real_infinity();
    if (x.is_zero()) return real_magnitude(y);
    if (y.is_zero()) return real_magnitude(x);
    return as_real(hypot_of(to_64_bits(x.value), to_64_bits(y.value)));
}

/// What a minimum or maximum does with NaN, and with infinities beside finite numbers.
enum class extremum_rule : unsigned char { propagate, number, finite };

/// The minima and maxima of 4.11: by magnitude, and where those are equal by value, if ByMagnitude.
template <bool Smaller, bool ByMagnitude, extremum_rule Rule>
constexpr extended_real real_extremum(const extended_real& x, const extended_real& y) {
    if (x.is_nan() || y.is_nan()) {
        if (Rule == extremum_rule::propagate) return real_nan();
        return x.is_nan() ? y : x;
    }
    if (Rule == extremum_rule::finite && x.is_finite() != y.is_finite()) return x.is_finite() ? x : y;
    int order = ByMagnitude ? compare_magnitudes(x, y) : 0;
    if (order == 0) order = compare_reals(x, y);
    return (order < 0) == Smaller ? x : y;
}

inline constexpr auto real_minimum = real_extremum<true, false, extremum_rule::propagate>;
inline constexpr auto real_maximum = real_extremum<false, false, extremum_rule::propagate>;
inline constexpr auto real_minimum_number = real_extremum<true, false, extremum_rule::number>;
inline constexpr auto real_maximum_number = real_extremum<false, false, extremum_rule::number>;
inline constexpr auto real_minimum_magnitude = real_extremum<true, true, extremum_rule::propagate>;
inline constexpr auto real_maximum_magnitude = real_extremum<false, true, extremum_rule::propagate>;
inline constexpr auto real_minimum_magnitude_number = real_extremum<true, true, extremum_rule::number>;
inline constexpr auto real_maximum_magnitude_number = real_extremum<false, true, extremum_rule::number>;
inline constexpr auto real_minimum_finite = real_extremum<true, false, extremum_rule::finite>;
inline constexpr auto real_maximum_finite = real_extremum<false, false, extremum_rule::finite>;

/// x limited to [lo, hi]; NaN if that is empty, or the interval of an infinity that bounds the wrong side.
constexpr extended_real real_clamp(const extended_real& x, const extended_real& lo, const extended_real& hi) {
    if (x.is_nan() || lo.is_nan() || hi.is_nan() || compare_reals(lo, hi) > 0) return real_nan();
    if (compare_reals(x, lo) <= 0) return lo;
    return compare_reals(x, hi) >= 0 ? hi : x;
}

constexpr approximation approximate(const extended_real& x) {
    return approximate(to_64_bits(x.value));
}

/// A special result of a function of x.
constexpr extended_real real_special(special result, bool negative) {
    switch (result) {
        case special::zero:
        case special::signed_zero:
            return {};
        case special::one:
        case special::signed_one:
            return real_integer(negative && result == special::signed_one ? -1 : 1);
        case special::minus_one:
            return real_integer(-1);
        case special::two:
            return real_integer(2);
        case special::signed_half:
            return real_integer(negative ? -1 : 1, -1);
        case special::signed_half_pi:
            return as_real(inexact(with_sign(approximate_half_pi(), negative)));
        case special::infinity:
        case special::pole:
            return real_infinity();
        case special::minus_pole:
            return real_infinity(true);
        case special::signed_infinity:
        case special::signed_pole:
            return real_infinity(negative);
        case special::number:
        case special::two_sided_pole:
        case special::invalid:
            break;
    }
    return real_nan();
}

constexpr extended_real as_real(const function_value& x) {
    return x.kind == special::number ? as_real(x.value) : real_special(x.kind, x.value.negative);
}

/// The value of a math_function.
template <class Function>
constexpr extended_real real_function(const extended_real& x) {
    if (x.is_nan()) return x;
    const bool negative = x.is_negative();
    if (x.is_infinite()) {
        return real_special(negative ? Function::at_minus_infinity : Function::at_infinity, negative);
    }
    if (x.is_zero() && Function::at_zero != special::number) return real_special(Function::at_zero, false);
    return as_real(function_value(Function{}(to_64_bits(x.value))));
}

inline constexpr auto real_exp = real_function<evaluate_exp>;
inline constexpr auto real_exp2 = real_function<evaluate_exp2>;
inline constexpr auto real_exp_minus_one = real_function<evaluate_expm1>;
inline constexpr auto real_log = real_function<evaluate_log>;
inline constexpr auto real_log2 = real_function<evaluate_log2>;
inline constexpr auto real_log_one_plus = real_function<evaluate_log1p>;
inline constexpr auto real_sine = real_function<evaluate_trigonometric<trigonometric::sine>>;
inline constexpr auto real_cosine = real_function<evaluate_trigonometric<trigonometric::cosine>>;
inline constexpr auto real_tangent = real_function<evaluate_trigonometric<trigonometric::tangent>>;
inline constexpr auto real_sine_pi = real_function<evaluate_half_turns<trigonometric::sine>>;
inline constexpr auto real_cosine_pi = real_function<evaluate_half_turns<trigonometric::cosine>>;
inline constexpr auto real_tangent_pi = real_function<evaluate_half_turns<trigonometric::tangent>>;
inline constexpr auto real_arc_sine = real_function<evaluate_asin>;
inline constexpr auto real_arc_sine_pi = real_function<evaluate_asinpi>;
inline constexpr auto real_arc_cosine_pi = real_function<evaluate_acospi>;
inline constexpr auto real_sinh = real_function<evaluate_sinh>;
inline constexpr auto real_cosh = real_function<evaluate_cosh>;
inline constexpr auto real_tanh = real_function<evaluate_tanh>;
inline constexpr auto real_arc_sinh = real_function<evaluate_asinh>;
inline constexpr auto real_arc_cosh = real_function<evaluate_acosh>;
inline constexpr auto real_arc_tanh = real_function<evaluate_atanh>;

/// log(1 + e^x), which for x > 0 is x + log(1 + e^-x). It is irrational everywhere: a logarithm r of 1 + e^x
/// that is algebraic would make e^0 + e^x - e^r = 0 (Lindemann and Weierstrass).
MP_HOST_DEVICE constexpr approximation softplus_of(const approximation& x) {
    if (x.significand == 0) return approximate_ln2();
    const approximation rest = log1p_of(exp_of(with_sign(x, true)));
    return x.negative ? rest : x + rest;
}
inline constexpr auto real_softplus =
    real_function<math_function<softplus_of, special::number, special::zero, special::infinity>>;

/// acos_of(), of negative x as a quarter turn and the angle whose sine is -x.
MP_HOST_DEVICE constexpr function_value arc_cosine_of(const approximation& x) {
    if (!x.negative || x.top() >= 0) return acos_of(x);
    return approximate_half_pi() + approximate(asin_of(x.magnitude()).value);
}
inline constexpr auto real_arc_cosine =
    real_function<math_function<arc_cosine_of, special::number, special::invalid, special::invalid>>;

/// Whole eighths of a turn, exact as half turns.
constexpr extended_real real_eighths(int eighths, bool negative, bool half_turns) {
    if (eighths == 0) return {};
    if (half_turns) return real_integer(negative ? -eighths : eighths, -2);
    return as_real(inexact(with_sign(approximate_pi() * approximate(eighths).scaled(-2), negative)));
}

/// The angle of the point (x, y) in the plane; NaN for zero and for two infinities. On the left of everything
/// it is pi, below the axis too.
template <bool HalfTurns>
constexpr extended_real real_arc_tangent2(const extended_real& y, const extended_real& x) {
    if (y.is_nan() || x.is_nan() || (y.kind == x.kind && y.kind != category::finite)) return real_nan();
    const bool negative = y.is_negative();
    const bool left = x.is_negative();
    if (y.is_zero() || x.is_infinite()) return real_eighths(left ? 4 : 0, false, HalfTurns);
    if (x.is_zero() || y.is_infinite()) return real_eighths(2, negative, HalfTurns);
    if (compare_magnitudes(y, x) == 0) return real_eighths(left ? 3 : 1, negative, HalfTurns);
    const approximation b = approximate(y).magnitude();
    const approximation a = approximate(x).magnitude();
    approximation angle = HalfTurns ? first_quadrant_half_turns(b, a) : first_quadrant_angle(b, a);
    if (left) angle = (HalfTurns ? approximate_one() : approximate_pi()) - angle;
    return as_real(inexact(with_sign(angle, negative)));
}
template <bool HalfTurns>
constexpr extended_real real_arc_tangent(const extended_real& x) {
    if (x.is_nan() || x.is_zero()) return x;
    return real_arc_tangent2<HalfTurns>(x, real_integer(1));
}

}}  // namespace mp::detail
