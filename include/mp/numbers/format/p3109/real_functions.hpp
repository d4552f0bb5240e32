// SPDX-License-Identifier: MIT
/// \file
/// Elementary functions of closed extended reals: sections 4.10.9 to 4.10.16 of IEEE P3109, by the
/// evaluations of math/ and their exact cases.
#pragma once

#include <mp/numbers/format/math/angles_in_half_turns.hpp>
#include <mp/numbers/format/math/hyperbolic.hpp>
#include <mp/numbers/format/math/trigonometric.hpp>
#include <mp/numbers/format/p3109/real_operations.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// What was evaluated and is not exact; or zero.
constexpr extended_real real_inexact(const approximation& x) {
    return x.significand == 0 ? extended_real{} : as_real(inexact(x));
}
constexpr approximation approximate(const extended_real& x) {
    return approximate(to_64_bits(x.value));
}
constexpr approximation with_sign(approximation x, bool negative) {
    x.negative = negative;
    return x;
}

/// f(x) for finite x other than zero, and what it is otherwise.
template <class Evaluate>
constexpr extended_real real_function(const extended_real& x, const extended_real& at_zero,
                                      const extended_real& at_minus_infinity,
                                      const extended_real& at_infinity, Evaluate evaluate) {
    switch (x.kind) {
        case category::zero:
            return at_zero;
        case category::infinite:
            return x.value.negative ? at_minus_infinity : at_infinity;
        case category::nan:
            return x;
        case category::finite:
            break;
    }
    return evaluate(x);
}

// --- exponentials and logarithms

constexpr extended_real real_exp(const extended_real& x) {
    return real_function(x, real_integer(1), {}, real_infinity(),
                         [](const auto& y) { return as_real(evaluate_exp{}(to_64_bits(y.value))); });
}
constexpr extended_real real_exp2(const extended_real& x) {
    return real_function(x, real_integer(1), {}, real_infinity(),
                         [](const auto& y) { return as_real(evaluate_exp2{}(to_64_bits(y.value))); });
}
constexpr extended_real real_exp_minus_one(const extended_real& x) {
    return real_function(x, {}, real_integer(-1), real_infinity(),
                         [](const auto& y) { return real_inexact(expm1_of(approximate(y))); });
}

template <class Evaluate>
constexpr extended_real real_logarithm(const extended_real& x, Evaluate evaluate) {
    return real_function(x, real_infinity(true), real_nan(), real_infinity(), [&](const auto& y) {
        return y.is_negative() ? real_nan() : as_real(evaluate(to_64_bits(y.value)));
    });
}
constexpr extended_real real_log(const extended_real& x) {
    return real_logarithm(x, evaluate_log{});
}
constexpr extended_real real_log2(const extended_real& x) {
    return real_logarithm(x, evaluate_log2{});
}
constexpr extended_real real_log_one_plus(const extended_real& x) {
    return real_function(x, {}, real_nan(), real_infinity(), [](const auto& y) {
        const int beside_one = compare_reals(y, real_integer(-1));
        if (beside_one <= 0) return beside_one < 0 ? real_nan() : real_infinity(true);
        return real_inexact(log1p_of(approximate(y)));
    });
}

/// log(1 + e^x), which for x > 0 is x + log(1 + e^-x). It is irrational everywhere: a logarithm r of 1 + e^x
/// that is algebraic would make e^0 + e^x - e^r = 0 (Lindemann and Weierstrass).
constexpr extended_real real_softplus(const extended_real& x) {
    return real_function(x, real_inexact(approximate_ln2()), {}, real_infinity(), [](const auto& y) {
        const approximation argument = approximate(y);
        const approximation rest = log1p_of(exp_of(with_sign(argument, true)));
        return real_inexact(argument.negative ? rest : argument + rest);
    });
}

// --- sine and others of radians, and of half turns

/// As trigonometric_bits().
template <trigonometric Function>
constexpr extended_real real_trigonometric(const extended_real& x) {
    const extended_real at_zero = Function == trigonometric::cosine ? real_integer(1) : extended_real{};
    return real_function(x, at_zero, real_nan(), real_nan(), [](const extended_real& y) {
        const exact_value argument = to_64_bits(y.value);
        const approximation a = approximate(argument);
        const reduced_angle angle = a.top() < -1     ? reduced_angle{0, a}
                                    : a.top() < 2260 ? reduce_radians<false>(argument)
                                                     : reduce_radians<true>(argument);
        if (Function == trigonometric::sine) return real_inexact(sin_of(angle));
        if (Function == trigonometric::cosine) return real_inexact(sin_of(angle, 1));
        if (angle.quarters == 0 && angle.rest.top() < -16) return real_inexact(small_tan(angle.rest));
        return real_inexact(tan_of(angle));
    });
}

/// As half_turns_bits().
template <trigonometric Function>
constexpr extended_real real_of_half_turns(const extended_real& x) {
    const extended_real at_zero = Function == trigonometric::cosine ? real_integer(1) : extended_real{};
    return real_function(x, at_zero, real_nan(), real_nan(), [](const extended_real& y) {
        const exact_value argument = to_64_bits(y.value);
        const int eighths = whole_eighths(argument);
        if (Function == trigonometric::tangent && eighths >= 0) {
            if (eighths % 4 == 2) return real_nan();
            return eighths % 4 == 0 ? extended_real{} : real_integer(eighths % 4 == 3 ? -1 : 1);
        }
        if (eighths >= 0 && eighths % 2 == 0) {
            const int quarters = (eighths / 2 + (Function == trigonometric::cosine ? 1 : 0)) % 4;
            return quarters % 2 == 0 ? extended_real{} : real_integer(quarters == 3 ? -1 : 1);
        }
        const reduced_angle angle = reduce_half_turns(argument);
        if (Function == trigonometric::sine) return real_inexact(sin_of(angle));
        if (Function == trigonometric::cosine) return real_inexact(sin_of(angle, 1));
        return real_inexact(tan_of(angle));
    });
}

// --- angles, in radians and in half turns

/// Whole eighths of a turn, exact as half turns.
constexpr extended_real real_eighths(int eighths, bool negative, bool half_turns) {
    if (eighths == 0) return {};
    if (half_turns) return real_integer(negative ? -eighths : eighths, -2);
    return real_inexact(with_sign(approximate_pi() * approximate(eighths).scaled(-2), negative));
}

/// The angle of the point (x, y) for positive x and y that differ.
template <bool HalfTurns>
constexpr approximation real_quadrant_angle(const approximation& y, const approximation& x) {
    return HalfTurns ? first_quadrant_half_turns(y, x) : first_quadrant_angle(y, x);
}

template <bool HalfTurns>
constexpr extended_real real_arc_sine(const extended_real& x) {
    return real_function(x, {}, real_nan(), real_nan(), [](const extended_real& y) {
        const int beside_one = compare_magnitudes(y, real_integer(1));
        if (beside_one > 0) return real_nan();
        if (beside_one == 0) return real_eighths(2, y.is_negative(), HalfTurns);
        const approximation a = approximate(y).magnitude();
        const approximation angle = !HalfTurns && a.top() < -16
                                        ? add_cube_sixth(a, false)
                                        : real_quadrant_angle<HalfTurns>(a, other_leg(a));
        return real_inexact(with_sign(angle, y.is_negative()));
    });
}

template <bool HalfTurns>
constexpr extended_real real_arc_cosine(const extended_real& x) {
    return real_function(
        x, real_eighths(2, false, HalfTurns), real_nan(), real_nan(), [](const extended_real& y) {
            const int beside_one = compare_magnitudes(y, real_integer(1));
            if (beside_one > 0) return real_nan();
            if (beside_one == 0) return real_eighths(y.is_negative() ? 4 : 0, false, HalfTurns);
            const approximation a = approximate(y).magnitude();
            // For small x it is a quarter turn less x, or more.
            const approximation quarter = HalfTurns ? approximate_one().scaled(-1) : approximate_half_pi();
            const bool is_small = !HalfTurns && a.top() < -16;
            const approximation complement =
                is_small ? add_cube_sixth(a, false) : real_quadrant_angle<HalfTurns>(a, other_leg(a));
            if (y.is_negative()) return real_inexact(quarter + complement);
            return real_inexact(is_small ? quarter - complement
                                         : real_quadrant_angle<HalfTurns>(other_leg(a), a));
        });
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
    approximation angle =
        real_quadrant_angle<HalfTurns>(approximate(y).magnitude(), approximate(x).magnitude());
    if (left) angle = (HalfTurns ? approximate_one() : approximate_pi()) - angle;
    return real_inexact(with_sign(angle, negative));
}
template <bool HalfTurns>
constexpr extended_real real_arc_tangent(const extended_real& x) {
    if (x.is_nan() || x.is_zero()) return x;
    return real_arc_tangent2<HalfTurns>(x, real_integer(1));
}

// --- hyperbolic functions

constexpr extended_real real_sinh(const extended_real& x) {
    return real_function(x, {}, real_infinity(true), real_infinity(),
                         [](const auto& y) { return real_inexact(sinh_of(approximate(y))); });
}
constexpr extended_real real_cosh(const extended_real& x) {
    return real_function(x, real_integer(1), real_infinity(), real_infinity(),
                         [](const auto& y) { return real_inexact(cosh_of(approximate(y))); });
}
constexpr extended_real real_tanh(const extended_real& x) {
    return real_function(x, {}, real_integer(-1), real_integer(1),
                         [](const auto& y) { return real_inexact(tanh_of(approximate(y))); });
}
constexpr extended_real real_arc_sinh(const extended_real& x) {
    return real_function(x, {}, real_infinity(true), real_infinity(),
                         [](const auto& y) { return real_inexact(asinh_of(approximate(y))); });
}
constexpr extended_real real_arc_cosh(const extended_real& x) {
    return real_function(x, real_nan(), real_nan(), real_infinity(), [](const extended_real& y) {
        const int beside_one = compare_reals(y, real_integer(1));
        if (beside_one <= 0) return beside_one < 0 ? real_nan() : extended_real{};
        return real_inexact(acosh_of(approximate(y)));
    });
}
constexpr extended_real real_arc_tanh(const extended_real& x) {
    return real_function(x, {}, real_nan(), real_nan(), [](const extended_real& y) {
        const int beside_one = compare_magnitudes(y, real_integer(1));
        if (beside_one >= 0) return beside_one > 0 ? real_nan() : real_infinity(y.is_negative());
        return real_inexact(atanh_of(approximate(y)));
    });
}

}}  // namespace mp::detail
