// SPDX-License-Identifier: MIT
/// \file
/// sinh, cosh, tanh and their inverses, from exponentials and logarithms; near zero by series of their own.
#pragma once

#include <mp/numbers/format/math/exponential.hpp>
#include <mp/numbers/format/math/inverse_trigonometric.hpp>
#include <mp/numbers/format/math/logarithm.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// sinh(x) for x that is not zero.
MP_HOST_DEVICE constexpr approximation sinh_of(const approximation& x) {
    if (x.top() < -1) return small_sinh(x, x * x);
    const approximation power = exp_of(x.magnitude());
    approximation result = (power - approximate_one() / power).scaled(-1);
    result.negative = x.negative;
    return result;
}

MP_HOST_DEVICE constexpr approximation cosh_of(const approximation& x) {
    if (x.top() < -1) return approximate_one() + small_cosh_minus_one(x * x);
    const approximation power = exp_of(x.magnitude());
    return (power + approximate_one() / power).scaled(-1);
}

/// tanh(x) = 1 - 2 / (e^(2x) + 1) = (e^(2x) - 1) / (e^(2x) + 1); for small x it is x - x^3/3.
MP_HOST_DEVICE constexpr approximation tanh_of(const approximation& x) {
    constexpr approximation two = approximate_one().scaled(1);
    const approximation magnitude = x.magnitude();
    approximation result;
    if (x.top() < -16) {
        constexpr approximation third{false, -65, 0xaaaaaaaaaaaaaaaa};
        result = magnitude - magnitude * magnitude * magnitude * third;
    } else if (x.top() < 0) {
        const approximation power_minus_one = expm1_of(magnitude.scaled(1));
        result = power_minus_one / (power_minus_one + two);
    } else {
        result = approximate_one() - two / (exp_of(magnitude.scaled(1)) + approximate_one());
    }
    result.negative = x.negative;
    return result;
}

/// asinh(x) is atanh(x / sqrt(x^2 + 1)) for small x, log(x + sqrt(x^2 + 1)) for large x. x^2 + 1 is
/// truncated.
MP_HOST_DEVICE constexpr approximation asinh_of(const approximation& x) {
    if (x.top() < -16) return add_cube_sixth(x, true);
    const approximation root = square_root(x * x + approximate_one());
    if (x.top() < -3) return small_atanh(x / root);
    approximation result = log_of(x.magnitude() + root);
    result.negative = x.negative;
    return result;
}

/// acosh(x) for x > 1 is atanh(sqrt(x^2 - 1) / x) near 1, else log(x + sqrt(x^2 - 1)).
MP_HOST_DEVICE constexpr approximation acosh_of(const approximation& x) {
    const approximation above_one = x - approximate_one();
    const approximation root = square_root(above_one * (x + approximate_one()));
    if (above_one.top() < -7) return small_atanh(root / x);
    return log_of(x + root);
}

/// atanh(x) for 0 < |x| < 1 is log((1 + x) / (1 - x)) / 2 except for small x.
MP_HOST_DEVICE constexpr approximation atanh_of(const approximation& x) {
    if (x.top() < -3) return small_atanh(x);
    const approximation magnitude = x.magnitude();
    approximation result =
        log_of((approximate_one() + magnitude) / (approximate_one() - magnitude)).scaled(-1);
    result.negative = x.negative;
    return result;
}

// Exponentials and logarithms of algebraic numbers are transcendental except for the zeros, and so are these.

using evaluate_sinh =
    math_function<sinh_of, special::signed_zero, special::signed_infinity, special::signed_infinity>;
using evaluate_cosh = math_function<cosh_of, special::one, special::infinity, special::infinity>;
using evaluate_tanh = math_function<tanh_of, special::signed_zero, special::signed_one, special::signed_one>;
using evaluate_asinh =
    math_function<asinh_of, special::signed_zero, special::signed_infinity, special::signed_infinity>;

MP_HOST_DEVICE constexpr function_value acosh_of_value(const exact_value& argument) {
    const approximation x = approximate(argument);
    if (x.negative || x.top() < 0) return special::invalid;
    if (is_one(x)) return special::zero;
    return acosh_of(x);
}
using evaluate_acosh = math_function<acosh_of_value, special::invalid, special::invalid, special::infinity>;

MP_HOST_DEVICE constexpr function_value atanh_of_value(const exact_value& argument) {
    const approximation x = approximate(argument);
    if (is_one(x)) return {special::signed_pole, x.negative};
    if (x.top() >= 0) return special::invalid;
    return atanh_of(x);
}
using evaluate_atanh =
    math_function<atanh_of_value, special::signed_zero, special::invalid, special::invalid>;

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The hyperbolic sine. Correctly rounded in every mode for formats of up to 16 bits (all arguments of half,
/// bfloat16 and the 8-bit formats checked); for wider ones the error before rounding is below 2^-55 of the
/// result.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> sinh(basic_float<Format> x,
                                                                Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_sinh, detail::fast_sinh>(x, context);
}

/// The hyperbolic cosine. Correctly rounded in every mode for formats of up to 16 bits (all arguments
/// checked, as for sinh).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> cosh(basic_float<Format> x,
                                                                Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_cosh, detail::fast_cosh>(x, context);
}

/// The hyperbolic tangent. Correctly rounded in every mode for formats of up to 16 bits (all arguments
/// checked, as for sinh).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> tanh(basic_float<Format> x,
                                                                Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_tanh, detail::fast_tanh>(x, context);
}

/// The inverse hyperbolic sine. Correctly rounded in every mode for formats of up to 16 bits (all arguments
/// checked, as for sinh).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> asinh(basic_float<Format> x,
                                                                 Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_asinh, detail::fast_asinh>(x, context);
}

/// The inverse hyperbolic cosine; NaN below 1. Correctly rounded in every mode for formats of up to 16 bits
/// (all arguments checked, as for sinh).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> acosh(basic_float<Format> x,
                                                                 Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_acosh, detail::fast_acosh>(x, context);
}

/// The inverse hyperbolic tangent; infinite at 1 and -1, NaN beyond. Correctly rounded in every mode for
/// formats of up to 16 bits (all arguments checked, as for sinh).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> atanh(basic_float<Format> x,
                                                                 Context&& context = projection{}) noexcept {
    return detail::function_of<detail::evaluate_atanh, detail::fast_atanh>(x, context);
}

}}  // namespace mp
