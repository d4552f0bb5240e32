// SPDX-License-Identifier: MIT
/// \file
/// Exponentials, logarithms, hyperbolic functions, powers and roots from the kernels of fast_double.hpp. An
/// argument x of up to 11 bits is exact, and each comment says what the steps after the kernel add to its
/// error; a product with a constant is 2^-51.
#pragma once

#include <mp/format/math/fast_double.hpp>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// Error of z at most 2^-51 of |z| < 2^13.3, times ln2/32: 2^-43.2. The same for the functions with expm1 and
/// for exp10.
struct fast_exp : fast_function<fast_exp> {
    MP_ALWAYS_INLINE static double evaluate(double x) { return fast_power_of(x * thirty_two_log2_e).value(); }
};
struct fast_exp2 : fast_function<fast_exp2> {
    MP_ALWAYS_INLINE static double evaluate(double x) { return fast_power_of(x * 32).value(); }
};
struct fast_exp10 : fast_function<fast_exp10> {
    MP_ALWAYS_INLINE static double evaluate(double x) {
        return fast_power_of(x * 0x1.a934f0979a371p+6).value();
    }
};
/// For small z the relative error of z is that of the result, for large z it is as for exp.
MP_ALWAYS_INLINE double fast_expm1_of(double x) {
    return fast_power_of(x * thirty_two_log2_e).value_minus_one();
}
struct fast_expm1 : fast_function<fast_expm1> {
    MP_ALWAYS_INLINE static double evaluate(double x) { return fast_expm1_of(x); }
};

struct fast_natural_log : fast_positive_function<fast_natural_log> {
    MP_ALWAYS_INLINE static double evaluate(double x) { return fast_log(x); }
};
struct fast_binary_log : fast_positive_function<fast_binary_log> {
    MP_ALWAYS_INLINE static double evaluate(double x) { return fast_log2(x); }
};
struct fast_decimal_log : fast_positive_function<fast_decimal_log> {
    MP_ALWAYS_INLINE static double evaluate(double x) { return fast_log(x) * fast_log10_e; }
};
struct fast_log_1p : fast_function<fast_log_1p> {
    MP_ALWAYS_INLINE static double evaluate(double x) { return x > -1 ? fast_log1p(x) : 0; }
};

// With E = e^|x| - 1, all terms are positive and add up without cancellation; no more than four operations
// and the error of E twice, 2^-42.

/// (e^x - e^-x) / 2 = (E + E / (E + 1)) / 2
struct fast_sinh : fast_function<fast_sinh> {
    MP_ALWAYS_INLINE static double evaluate(double x) {
        const double above_one = fast_expm1_of(absolute(x));
        return with_sign_of(0.5 * (above_one + above_one / (above_one + 1)), x);
    }
};
struct fast_cosh : fast_function<fast_cosh> {
    MP_ALWAYS_INLINE static double evaluate(double x) {
        const double power = fast_power_of(x * thirty_two_log2_e).value();
        return 0.5 * (power + 1 / power);
    }
};
/// (e^2x - 1) / (e^2x + 1)
struct fast_tanh : fast_function<fast_tanh> {
    MP_ALWAYS_INLINE static double evaluate(double x) {
        const double above_one = fast_expm1_of(2 * absolute(x));
        return with_sign_of(above_one / (above_one + 2), x);
    }
};

// Inverse hyperbolic functions are log(1 + u) for a u that is a sum of positive terms, of a relative error
// below 2^-49; that of the logarithm is no larger.

struct fast_asinh : fast_function<fast_asinh> {
    MP_ALWAYS_INLINE static double evaluate(double x) {
        const double magnitude = absolute(x);
        const double square = x * x;
        const double root = double_sqrt(square + 1);
        return with_sign_of(fast_log1p(magnitude + square / (root + 1)), x);
    }
};
struct fast_acosh : fast_function<fast_acosh> {
    MP_ALWAYS_INLINE static double evaluate(double x) {
        if (!(x > 1)) return 0;
        const double above_one = x - 1;
        return fast_log1p(above_one + double_sqrt(above_one * (x + 1)));
    }
};
struct fast_atanh : fast_function<fast_atanh> {
    MP_ALWAYS_INLINE static double evaluate(double x) {
        const double magnitude = absolute(x);
        if (!(magnitude < 1)) return 0;
        return with_sign_of(0.5 * fast_log1p(2 * magnitude / (1 - magnitude)), x);
    }
};

struct fast_rsqrt : fast_positive_function<fast_rsqrt> {
    MP_ALWAYS_INLINE static double evaluate(double x) { return 1 / double_sqrt(x); }
};
/// 2^(log2(x) / 3). log2(x) has an error of 2^-45 or less where it is 2^8, and 2^-42 of it where it is small;
/// times 32/3 and ln2/32 that is 2^-44 of the result.
struct fast_cbrt : fast_function<fast_cbrt> {
    MP_ALWAYS_INLINE static double evaluate(double x) {
        return with_sign_of(fast_power_of(fast_log2(absolute(x)) * (32.0 / 3)).value(), x);
    }
};

/// 2^(y log2(x)) for x > 0. |y log2(x)| < 2^8.3 where the result is a number, and has a relative error below
/// 2^-42, times ln2: 2^-34.2 of the result. What is beyond the limit is far beyond every format.
struct fast_pow {
    template <class Format>
    MP_ALWAYS_INLINE static fast_result<Format> code(storage_of<Format> a, storage_of<Format> b) {
        if (!is_normal_code<Format>(a) || !is_normal_code<Format>(b) || is_negative<Format>(a)) {
            return {0, false};
        }
        const double logarithm = fast_log2(double_of_normal<Format>(a));
        const double z = double_of_normal<Format>(b) * 32 * logarithm;
        return round_unless_near_midpoint<Format, 33>(fast_power_of(z).value());
    }
};

/// Three operations and a root, and squares that are exact.
struct fast_hypot {
    template <class Format>
    MP_ALWAYS_INLINE static fast_result<Format> code(storage_of<Format> a, storage_of<Format> b) {
        if (!is_normal_code<Format>(a) || !is_normal_code<Format>(b)) return {0, false};
        const double x = double_of_normal<Format>(a);
        const double y = double_of_normal<Format>(b);
        return round_unless_near_midpoint<Format>(double_sqrt(x * x + y * y));
    }
};

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
