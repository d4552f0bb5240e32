// SPDX-License-Identifier: MIT
/// \file
/// Smooth activation functions of one number and their slopes, for the epilogues of products and for the
/// ops. On the host they are evaluated in double by the kernels of the mathematical functions, with relative
/// errors below 2^-39 (slopes: absolute errors), and rounded once to float: the C library, whose last bits
/// differ between systems, is not called, and -ffast-math does no harm.
#pragma once

#include <mp/format/binary_conversion.hpp>
#include <mp/format/classification.hpp>
#include <mp/format/math/fast_double.hpp>
#include <mp/format/math/fast_functions.hpp>

#include <cstdint>

namespace mp::detail {

/// x, or the nearer end of [-limit, limit].
MP_ALWAYS_INLINE double within(double x, double limit) {
    x = x < limit ? x : limit;
    return x > -limit ? x : -limit;
}

/// e^x for x of any size; beyond 2^-300 and 2^300 these. Relative error 2^-43.
MP_ALWAYS_INLINE double exponential(double x) {
    return fast_power_of(x * thirty_two_log2_e).value();
}

/// 1 / (1 + e^-x) and its distance from one, both to 2^-42 of themselves.
struct logistic_parts {
    double value;
    double complement;
};
MP_ALWAYS_INLINE logistic_parts logistic(double x) {
    const double power = exponential(-absolute(x));
    const double larger = 1 / (1 + power);
    const double smaller = power * larger;
    return {select_double(x < 0, smaller, larger), select_double(x < 0, larger, smaller)};
}

/// x / (1 + e^-x). Beyond the limits value and slope are -0 and 0, or x and 1, to more than float tells.
struct silu_function {
    static constexpr double limit = 120;
    MP_ALWAYS_INLINE static double value(double x) { return (x > -limit ? x : -limit) * logistic(x).value; }
    MP_ALWAYS_INLINE static double slope(double x) {
        x = within(x, limit);
        const logistic_parts s = logistic(x);
        return s.value + x * s.value * s.complement;
    }
};

/// The integral of the normal density beyond |x|, over the density's power e^(-x^2 / 2), which is also given.
/// The quotient is a polynomial in (|x| - 4) / (|x| + 4) through the Chebyshev nodes of 0 <= |x| <= 16, with
/// an error of 2^-41.6 of it.
struct normal_tail {
    double power;
    double quotient;
};
MP_ALWAYS_INLINE normal_tail normal_tail_of(double x) {
    const double magnitude = absolute(x);
    const double u = (magnitude - 4) / (magnitude + 4);
    const double u2 = u * u;
    const double u4 = u2 * u2;
    const double low = (0x1.82b4bb8c951a8p-4 + u * -0x1.5cf97b0aebc5dp-3) +
                       u2 * (0x1.fd751a1f8bf11p-4 + u * -0x1.25b6aa9476623p-4);
    const double second = (0x1.f9b05f281b81ap-6 + u * -0x1.1644dd6832ff3p-7) +
                          u2 * (0x1.0a1ba5e6e148bp-11 + u * 0x1.4eecd369d3187p-11);
    const double third = (-0x1.888819c40a93fp-13 + u * -0x1.7e544960093dcp-15) +
                         u2 * (0x1.dfd62afa45833p-16 + u * 0x1.39f66463fc72fp-18);
    const double high = (-0x1.1893219963653p-18 + u * -0x1.cd78c784956f6p-21) +
                        u2 * (0x1.0a7a297a40bbep-21 + u * 0x1.692688fd2984bp-23);
    return {exponential(-0.5 * (x * x)), (low + u4 * second) + u4 * u4 * (third + u4 * high)};
}

/// x times the normal distribution function. Beyond the limits see silu_function.
struct gelu_function {
    static constexpr double limit = 16;
    MP_ALWAYS_INLINE static double value(double x) {
        const normal_tail tail = normal_tail_of(within(x, limit));
        const double beyond = tail.power * tail.quotient;
        return (x > -limit ? x : -limit) * select_double(x < 0, beyond, 1 - beyond);
    }
    MP_ALWAYS_INLINE static double slope(double x) {
        constexpr double one_over_root_two_pi = 0x1.9884533d43651p-2;
        x = within(x, limit);
        const normal_tail tail = normal_tail_of(x);
        const double beyond = tail.power * tail.quotient;
        return select_double(x < 0, beyond, 1 - beyond) + x * tail.power * one_over_root_two_pi;
    }
};

/// x / 2 (1 + tanh(z)) = x / (1 + e^-2z) with z = sqrt(2/pi) (x + 0.044715 x^3), the approximation of
/// Hendrycks and Gimpel, "Gaussian error linear units" (2016).
struct gelu_tanh_function {
    static constexpr double limit = 16;
    static constexpr double two_root_two_over_pi = 0x1.9884533d43651p+0;
    static constexpr double cubic = 0.044715;
    MP_ALWAYS_INLINE static double value(double x) {
        const double bounded = within(x, limit);
        const double z2 = two_root_two_over_pi * (bounded + cubic * bounded * bounded * bounded);
        return (x > -limit ? x : -limit) * logistic(z2).value;
    }
    MP_ALWAYS_INLINE static double slope(double x) {
        x = within(x, limit);
        const logistic_parts s = logistic(two_root_two_over_pi * (x + cubic * x * x * x));
        const double z2_slope = two_root_two_over_pi * (1 + 3 * cubic * x * x);
        return s.value + x * z2_slope * s.value * s.complement;
    }
};

struct tanh_function {
    MP_ALWAYS_INLINE static double value(double x) { return fast_tanh::evaluate(x); }
};

/// The float `result`, or x, made quiet, where x is NaN: told by bits.
MP_ALWAYS_INLINE float unless_nan(float x, float result) {
    const auto bits = bit_cast<std::uint32_t>(x);
    const bool is_nan = less(std::uint32_t{0x7F80'0000}, bits & 0x7FFF'FFFFU);
    return bit_cast<float>(select(is_nan, bits | 0x0040'0000U, bit_cast<std::uint32_t>(result)));
}

/// Function::value(x), rounded once.
template <class Function>
MP_ALWAYS_INLINE float activated(float x) {
    return unless_nan(x, static_cast<float>(Function::value(static_cast<double>(x))));
}

/// Function::slope(x) dy, rounded once; NaN where one of them is NaN, or zero times infinity.
template <class Function>
MP_ALWAYS_INLINE float times_slope(float x, float dy) {
    return unless_nan(x,
                      static_cast<float>(Function::slope(static_cast<double>(x)) * static_cast<double>(dy)));
}

}  // namespace mp::detail
