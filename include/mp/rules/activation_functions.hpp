// SPDX-License-Identifier: MIT
/// \file
/// Smooth activation functions and their slopes, for the epilogues of products and for the ops, in double
/// with relative errors below 2^-39 (slopes: absolute errors), rounded once to float. The same bits
/// everywhere, one by one or in vectors: see rounded_doubles.
#pragma once

#include <mp/detail/bits.hpp>
#include <mp/rules/elementary.hpp>
#include <mp/rules/rounded_doubles.hpp>

#include <cstddef>
#include <cstdint>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// 1 / (1 + e^-x) and its distance from one, both to 2^-48 of themselves.
template <class T>
struct logistic_parts {
    T value;
    T complement;
};
template <class T>
MP_ALWAYS_INLINE logistic_parts<T> logistic(T x) {
    const T power = exponential(x.magnitude().negated());
    const T larger = T(1) / (T(1) + power);
    const T smaller = power * larger;
    return {T::select(x < T(0), smaller, larger), T::select(x < T(0), larger, smaller)};
}

/// x / (1 + e^-x). Beyond the limits value and slope are -0 and 0, or x and 1, to more than float tells.
struct silu_function {
    static constexpr double limit = 120;
    template <class T>
    MP_ALWAYS_INLINE static T value(T x) {
        return x.not_below(-limit) * logistic(x).value;
    }
    template <class T>
    MP_ALWAYS_INLINE static T slope(T x) {
        x = within(x, limit);
        const logistic_parts<T> s = logistic(x);
        return s.value + x * s.value * s.complement;
    }
};

/// The integral of the normal density beyond |x|, over the density's power e^(-x^2 / 2), which is also given.
/// The quotient is a polynomial in (|x| - 4) / (|x| + 4) through the Chebyshev nodes of 0 <= |x| <= 16, with
/// an error of 2^-41.6 of it.
template <class T>
struct normal_tail {
    T power;
    T quotient;
};
template <class T>
MP_ALWAYS_INLINE normal_tail<T> normal_tail_of(T x) {
    const T magnitude = x.magnitude();
    const T u = (magnitude - T(4)) / (magnitude + T(4));
    const T u2 = u * u;
    const T even = polynomial_of(u2, 0x1.82b4bb8c951a8p-4, 0x1.fd751a1f8bf11p-4, 0x1.f9b05f281b81ap-6,
                                 0x1.0a1ba5e6e148bp-11, -0x1.888819c40a93fp-13, 0x1.dfd62afa45833p-16,
                                 -0x1.1893219963653p-18, 0x1.0a7a297a40bbep-21);
    const T odd = polynomial_of(u2, -0x1.5cf97b0aebc5dp-3, -0x1.25b6aa9476623p-4, -0x1.1644dd6832ff3p-7,
                                0x1.4eecd369d3187p-11, -0x1.7e544960093dcp-15, 0x1.39f66463fc72fp-18,
                                -0x1.cd78c784956f6p-21, 0x1.692688fd2984bp-23);
    return {exponential(T(-0.5) * (x * x)), even + u * odd};
}

/// x times the normal distribution function. Beyond the limits see silu_function.
struct gelu_function {
    static constexpr double limit = 16;
    template <class T>
    MP_ALWAYS_INLINE static T value(T x) {
        const normal_tail<T> tail = normal_tail_of(within(x, limit));
        const T beyond = tail.power * tail.quotient;
        return x.not_below(-limit) * T::select(x < T(0), beyond, T(1) - beyond);
    }
    template <class T>
    MP_ALWAYS_INLINE static T slope(T x) {
        constexpr double one_over_root_two_pi = 0x1.9884533d43651p-2;
        x = within(x, limit);
        const normal_tail<T> tail = normal_tail_of(x);
        const T beyond = tail.power * tail.quotient;
        return T::select(x < T(0), beyond, T(1) - beyond) + x * tail.power * T(one_over_root_two_pi);
    }
};

/// x / 2 (1 + tanh(z)) = x / (1 + e^-2z) with z = sqrt(2/pi) (x + 0.044715 x^3), the approximation of
/// Hendrycks and Gimpel, "Gaussian error linear units" (2016).
struct gelu_tanh_function {
    static constexpr double limit = 16;
    static constexpr double two_root_two_over_pi = 0x1.9884533d43651p+0;
    static constexpr double cubic = 0.044715;
    template <class T>
    MP_ALWAYS_INLINE static T value(T x) {
        const T bounded = within(x, limit);
        const T z2 = T(two_root_two_over_pi) * (bounded + T(cubic) * bounded * bounded * bounded);
        return x.not_below(-limit) * logistic(z2).value;
    }
    template <class T>
    MP_ALWAYS_INLINE static T slope(T x) {
        x = within(x, limit);
        const logistic_parts<T> s = logistic(T(two_root_two_over_pi) * (x + T(cubic) * x * x * x));
        const T z2_slope = T(two_root_two_over_pi) * (T(1) + T(3 * cubic) * x * x);
        return s.value + x * z2_slope * s.value * s.complement;
    }
};

/// (e^2x - 1) / (e^2x + 1)
struct tanh_function {
    template <class T>
    MP_ALWAYS_INLINE static T value(T x) {
        const T above_one = exponential_minus_one(T(2) * x.magnitude());
        return (above_one / (above_one + T(2))).with_sign_of(x);
    }
};

/// The float `result`, or x, made quiet, where x is NaN: told by bits.
MP_ALWAYS_INLINE float unless_nan(float x, float result) {
    const auto bits = bit_cast<std::uint32_t>(x);
    const bool is_nan = (bits & 0x7FFF'FFFFU) > 0x7F80'0000U;
    return bit_cast<float>(is_nan ? bits | 0x0040'0000U : bit_cast<std::uint32_t>(result));
}

/// Function::value(x), rounded once.
template <class Function>
MP_ALWAYS_INLINE float activated(float x) {
    return unless_nan(
        x, static_cast<float>(Function::value(rounded_doubles<1>(static_cast<double>(x))).value()));
}

/// Function::slope(x) dy, rounded once; NaN where one of them is NaN, or zero times infinity.
template <class Function>
MP_ALWAYS_INLINE float times_slope(float x, float dy) {
    const rounded_doubles<1> result =
        Function::slope(rounded_doubles<1>(double{x})) * rounded_doubles<1>(double{dy});
    return unless_nan(x, static_cast<float>(result.value()));
}

/// to[i] = activated<Function>(x[i]), several at a time.
template <class Function>
void activate(const float* x, std::size_t count, float* to) {
    for_each_double(count, [&](auto kind, std::size_t i) {
        using number = decltype(kind);
        Function::value(number::load(x + i)).store(to + i);
    });
    for (std::size_t i = 0; i < count; ++i) to[i] = unless_nan(x[i], to[i]);
}

/// to[i] = times_slope<Function>(x[i], dy[i]), several at a time.
template <class Function>
void multiply_slopes(const float* x, const float* dy, std::size_t count, float* to) {
    for_each_double(count, [&](auto kind, std::size_t i) {
        using number = decltype(kind);
        (Function::slope(number::load(x + i)) * number::load(dy + i)).store(to + i);
    });
    for (std::size_t i = 0; i < count; ++i) to[i] = unless_nan(x[i], to[i]);
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
