// SPDX-License-Identifier: MIT
/// \file
/// The functions of <mp/numbers/rules/elementwise.hpp> for single doubles: what ops with double operands compute
/// with. Exponentials and their kin are those of mp/numbers/format/math, in 64-bit integers, with errors below one
/// ulp: the same bits under every flag, in every mode and on every processor.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/format/math/error_function.hpp>
#include <mp/numbers/format/math/exponential.hpp>
#include <mp/numbers/format/math/hyperbolic.hpp>
#include <mp/numbers/format/named_formats.hpp>
#include <mp/numbers/format/projection.hpp>
#include <mp/numbers/rules/elementwise.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <cstddef>
#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A math_function of a double, rounded once.
template <class Function>
double double_function(double x) {
    return bit_cast<double>(
        function_bits<formats::binary64>(bit_cast<std::uint64_t>(x), Function{}, projection{}));
}
inline double double_exp(double x) {
    return double_function<evaluate_exp>(x);
}
inline double double_tanh(double x) {
    return double_function<evaluate_tanh>(x);
}
inline double double_erfc(double x) {
    return double_function<evaluate_erfc>(x);
}

inline constexpr std::uint64_t double_sign_bit = std::uint64_t{1} << 63;
inline constexpr std::uint64_t double_infinity_bits = std::uint64_t{0x7FF} << 52;

inline double negated_double(double x) {
    return bit_cast<double>(bit_cast<std::uint64_t>(x) ^ double_sign_bit);
}
/// The larger one of x and a limit with a negative sign; NaN stays.
inline double max_or_nan(double limit, double x) {
    const auto first = bit_cast<std::uint64_t>(limit);
    const std::uint64_t minus_infinity = double_infinity_bits | double_sign_bit;
    return bit_cast<std::uint64_t>(x) - first <= minus_infinity - first ? limit : x;
}
/// x, or the nearer end of [-limit, limit]; NaN stays.
inline double limited_double(double x, double limit) {
    return max_or_nan(-limit, negated_double(max_or_nan(-limit, negated_double(x))));
}

/// 1 / (1 + e^-z) and 1 less that, both without cancellation.
struct logistic_pair {
    rounded_doubles<1> value = 0.0;
    rounded_doubles<1> rest = 0.0;

    explicit logistic_pair(rounded_doubles<1> z) {
        const bool below = (bit_cast<std::uint64_t>(z.value()) & double_sign_bit) != 0;
        const rounded_doubles<1> power = double_exp(below ? z.value() : negated_double(z.value()));
        const rounded_doubles<1> larger = rounded_doubles<1>(1.0) / (power + 1.0);
        value = below ? power * larger : larger;
        rest = below ? larger : power * larger;
    }
};

/// As activation of <mp/numbers/rules/activations.inl>, with its limits for doubles.
template <class Function>
struct double_activation;

/// x / (1 + e^-z(x)) and its slope, for functions that have z and its slope.
template <class Function>
struct double_times_logistic {
    using number = rounded_doubles<1>;
    static double value(double x) {
        const double bounded = max_or_nan(-Function::limit, x);
        return (number(bounded) * logistic_pair(Function::z(limited_double(x, Function::limit))).value)
            .value();
    }
    static double slope(double x) {
        const number bounded = limited_double(x, Function::limit);
        const logistic_pair logistic(Function::z(bounded));
        return (logistic.value + bounded * Function::z_slope(bounded) * logistic.value * logistic.rest)
            .value();
    }
};
template <>
struct double_activation<silu_function> : double_times_logistic<double_activation<silu_function>> {
    static constexpr double limit = 800.0;
    static number z(number x) { return x; }
    static number z_slope(number /*x*/) { return 1.0; }
};
template <>
struct double_activation<gelu_tanh_function> : double_times_logistic<double_activation<gelu_tanh_function>> {
    static constexpr double limit = 23.0;
    static constexpr double linear = 0x1.9884533d43651p+0;  // 2 sqrt(2/pi)
    static constexpr double cubic = 0x1.2444f2a4d8b4bp-4;   // that times 0.044715
    static number z(number x) { return x * (number(linear) + number(cubic) * (x * x)); }
    static number z_slope(number x) { return number(linear) + number(3.0) * cubic * (x * x); }
};

template <>
struct double_activation<gelu_function> {
    using number = rounded_doubles<1>;
    /// Below it the result is zero.
    static constexpr double limit = 40.0;
    /// The normal distribution function.
    static number distribution(number x) {
        constexpr double minus_root_half = -0x1.6a09e667f3bcdp-1;
        return number(0.5) * double_erfc((x * minus_root_half).value());
    }
    static double value(double x) {
        const number bounded = max_or_nan(-limit, x);
        return (bounded * distribution(bounded)).value();
    }
    static double slope(double x) {
        constexpr double one_over_root_two_pi = 0x1.9884533d43651p-2;
        const number bounded = limited_double(x, limit);
        const number density = number(one_over_root_two_pi) * double_exp((bounded * bounded * -0.5).value());
        return (distribution(bounded) + bounded * density).value();
    }
};
template <>
struct double_activation<tanh_function> {
    static double value(double x) { return double_tanh(x); }
};
template <>
struct double_activation<sigmoid_function> {
    static double value(double x) { return logistic_pair(limited_double(x, 800.0)).value.value(); }
};

/// As elementwise of <mp/numbers/rules/elementwise.inl>.
template <class Function>
struct double_elementwise {
    static double apply(double x) { return double_activation<Function>::value(x); }
};
template <>
struct double_elementwise<identity_function> {
    static double apply(double x) { return x; }
};
template <class Function>
struct double_elementwise<slope_of<Function>> {
    static double apply(double x, double dy) {
        return double_multiply(double_activation<Function>::slope(x), dy);
    }
};
template <>
struct double_elementwise<slope_of<tanh_function>> {
    static double apply(double y, double dy) {
        using number = rounded_doubles<1>;
        return ((number(1.0) - y) * (number(1.0) + y) * dy).value();
    }
};
template <>
struct double_elementwise<slope_of<sigmoid_function>> {
    static double apply(double y, double dy) {
        using number = rounded_doubles<1>;
        return (number(y) * (number(1.0) - y) * dy).value();
    }
};
template <>
struct double_elementwise<relu_function> {
    static double apply(double x) {
        const double limited = max_or_nan(-0.0, x);
        return bit_cast<std::uint64_t>(limited) << 1 == 0 ? 0.0 : limited;  // +0 for -0
    }
};
template <>
struct double_elementwise<slope_of<relu_function>> {
    static double apply(double x, double dy) {
        return bit_cast<std::uint64_t>(max_or_nan(-0.0, x)) << 1 == 0 ? 0.0 : dy;
    }
};
template <>
struct double_elementwise<sum_function> {
    static double apply(double a, double b) { return double_add(a, b); }
};
template <>
struct double_elementwise<product_function> {
    static double apply(double a, double b) { return double_multiply(a, b); }
};

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// to[i] = Function(from[i]...) for arrays, of which `to` may be one of `from`.
template <class Function, class... From>
void map_floats(instruction_set isa, std::size_t count, double* to, const From*... from);

#if MP_CORE_BODIES
template <class Function, class... From>
void map_floats(instruction_set /*isa*/, std::size_t count, double* to, const From*... from) {
    for (std::size_t i = 0; i < count; ++i) to[i] = double_elementwise<Function>::apply(from[i]...);
}
#endif

}}  // namespace mp::detail
