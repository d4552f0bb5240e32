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

template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> sinh_bits(storage_of<Format> a, Context&& context) {
    a = operand<Format>(a, context);
    switch (categorize<Format>(a)) {
        case category::zero:
            return a;
        case category::infinite:
            return pack_infinity<Format>(is_negative<Format>(a), context);
        case category::nan:
            return convert_nan<Format, Format>(a, context);
        case category::finite:
            break;
    }
    return round_inexact<Format>(sinh_of(approximate(unpack<Format>(a))), context);
}

template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> cosh_bits(storage_of<Format> a, Context&& context) {
    a = operand<Format>(a, context);
    switch (categorize<Format>(a)) {
        case category::zero:
            return round_exact<Format>(false, 1, 0, context);
        case category::infinite:
            return pack_infinity<Format>(false, context);
        case category::nan:
            return convert_nan<Format, Format>(a, context);
        case category::finite:
            break;
    }
    return round_inexact<Format>(cosh_of(approximate(unpack<Format>(a))), context);
}

template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> tanh_bits(storage_of<Format> a, Context&& context) {
    a = operand<Format>(a, context);
    switch (categorize<Format>(a)) {
        case category::zero:
            return a;
        case category::infinite:
            return round_exact<Format>(is_negative<Format>(a), 1, 0, context);
        case category::nan:
            return convert_nan<Format, Format>(a, context);
        case category::finite:
            break;
    }
    return round_inexact<Format>(tanh_of(approximate(unpack<Format>(a))), context);
}

template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> asinh_bits(storage_of<Format> a, Context&& context) {
    a = operand<Format>(a, context);
    switch (categorize<Format>(a)) {
        case category::zero:
            return a;
        case category::infinite:
            return pack_infinity<Format>(is_negative<Format>(a), context);
        case category::nan:
            return convert_nan<Format, Format>(a, context);
        case category::finite:
            break;
    }
    return round_inexact<Format>(asinh_of(approximate(unpack<Format>(a))), context);
}

template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> acosh_bits(storage_of<Format> a, Context&& context) {
    a = operand<Format>(a, context);
    const category kind = categorize<Format>(a);
    if (kind == category::nan) return convert_nan<Format, Format>(a, context);
    if (kind == category::zero || is_negative<Format>(a)) return invalid_operation<Format>(context);
    if (kind == category::infinite) return pack_infinity<Format>(false, context);
    const approximation x = approximate(unpack<Format>(a));
    if (x.top() < 0) return invalid_operation<Format>(context);
    if (x.top() == 0 && x.significand == approximate_one().significand)
        return pack_zero<Format>(false, context);
    return round_inexact<Format>(acosh_of(x), context);
}

template <class Format, context Context = const projection&>
MP_HOST_DEVICE constexpr storage_of<Format> atanh_bits(storage_of<Format> a, Context&& context) {
    a = operand<Format>(a, context);
    const category kind = categorize<Format>(a);
    if (kind == category::nan) return convert_nan<Format, Format>(a, context);
    if (kind == category::zero) return a;
    if (kind == category::infinite) return invalid_operation<Format>(context);
    const approximation x = approximate(unpack<Format>(a));
    if (x.top() >= 0) {
        return x.top() == 0 && x.significand == approximate_one().significand
                   ? pole<Format>(x.negative, context)
                   : invalid_operation<Format>(context);
    }
    return round_inexact<Format>(atanh_of(x), context);
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The hyperbolic sine. Correctly rounded in every mode for formats of up to 16 bits (all arguments of half,
/// bfloat16 and the 8-bit formats checked); for wider ones the error before rounding is below 2^-55 of the
/// result.
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> sinh(basic_float<Format> x,
                                                                Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(detail::nearest_through_double<Format, detail::fast_sinh>(
        context, [](auto a, auto&& c) { return detail::sinh_bits<Format>(a, c); }, x.bits()));
}

/// The hyperbolic cosine. Correctly rounded in every mode for formats of up to 16 bits (all arguments
/// checked, as for sinh).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> cosh(basic_float<Format> x,
                                                                Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(detail::nearest_through_double<Format, detail::fast_cosh>(
        context, [](auto a, auto&& c) { return detail::cosh_bits<Format>(a, c); }, x.bits()));
}

/// The hyperbolic tangent. Correctly rounded in every mode for formats of up to 16 bits (all arguments
/// checked, as for sinh).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> tanh(basic_float<Format> x,
                                                                Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(detail::nearest_through_double<Format, detail::fast_tanh>(
        context, [](auto a, auto&& c) { return detail::tanh_bits<Format>(a, c); }, x.bits()));
}

/// The inverse hyperbolic sine. Correctly rounded in every mode for formats of up to 16 bits (all arguments
/// checked, as for sinh).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> asinh(basic_float<Format> x,
                                                                 Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(detail::nearest_through_double<Format, detail::fast_asinh>(
        context, [](auto a, auto&& c) { return detail::asinh_bits<Format>(a, c); }, x.bits()));
}

/// The inverse hyperbolic cosine; NaN below 1. Correctly rounded in every mode for formats of up to 16 bits
/// (all arguments checked, as for sinh).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> acosh(basic_float<Format> x,
                                                                 Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(detail::nearest_through_double<Format, detail::fast_acosh>(
        context, [](auto a, auto&& c) { return detail::acosh_bits<Format>(a, c); }, x.bits()));
}

/// The inverse hyperbolic tangent; infinite at 1 and -1, NaN beyond. Correctly rounded in every mode for
/// formats of up to 16 bits (all arguments checked, as for sinh).
template <class Format, detail::context Context = const projection&>
[[nodiscard]] MP_HOST_DEVICE constexpr basic_float<Format> atanh(basic_float<Format> x,
                                                                 Context&& context = projection{}) noexcept {
    return basic_float<Format>::from_bits(detail::nearest_through_double<Format, detail::fast_atanh>(
        context, [](auto a, auto&& c) { return detail::atanh_bits<Format>(a, c); }, x.bits()));
}

}}  // namespace mp
