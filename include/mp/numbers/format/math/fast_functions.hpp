// SPDX-License-Identifier: MIT
/// \file
/// Exponentials, logarithms, hyperbolic functions, powers and roots from the kernels of fast_kernels.hpp. An
/// argument x of up to 11 bits is exact, and each comment says what the steps after the kernel add to its
/// error; a product with a constant is 2^-51.
#pragma once

#include <mp/numbers/format/math/fast_kernels.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// 2^(z/32) with z = x times Derived::factor. Derived::has_midpoints tells whether a result may be one.
template <class Derived>
struct fast_exponential {
    template <class Format>
    MP_ALWAYS_INLINE static fast_result<Format> code(storage_of<Format> a) {
        using layout = layout_of<Format>;
        constexpr double largest = normal_power_limit<Format> / Derived::factor;
        // Not so in formats without numbers on both sides of one.
        if constexpr (largest >= power_of_two<double>(layout::min_exponent)) {
            constexpr auto limit = code_below<Format>(largest);
            constexpr auto least = tiny_is_zero<Format> ? storage_of<Format>{0} : layout::hidden_bit;
            const auto magnitude = static_cast<storage_of<Format>>(a & layout::magnitude_mask);
            if (static_cast<storage_of<Format>>(magnitude - least) <= limit - least) [[likely]] {
                const double z = double_of_normal<Format>(a) * Derived::factor;
                return round_in_range<Format, accuracy<Format>>(short_power(z).value());
            }
        }
        return {0, false};
    }
    template <class Format>
    MP_ALWAYS_INLINE static fast_result<Format> rest(storage_of<Format> a) {
        using layout = layout_of<Format>;
        const auto magnitude = static_cast<storage_of<Format>>(a & layout::magnitude_mask);
        // Infinity is read as the next power of two.
        const bool is_known =
            tiny_is_zero<Format> ? magnitude <= layout::infinity_code : is_normal_code<Format>(a);
        if (!is_known) return {0, false};
        return round_any_power<Format, accuracy<Format>>(double_of_normal<Format>(a) * Derived::factor);
    }

private:
    /// In IEEE's formats of enough range, zero and subnormal numbers are read as some number so small that the result
    /// is one.
    template <class Format>
    static constexpr bool tiny_is_zero = layout_of<Format>::is_ieee && layout_of<Format>::max_exponent > 8 &&
                                         layout_of<Format>::min_exponent <=
                                             -(layout_of<Format>::precision + 3);
    template <class Format>
    static constexpr int accuracy = Derived::has_midpoints ? fast_accuracy : checked_accuracy<Format>;
};
/// Error of z at most 2^-51 of |z| < 2^13.3, times ln2/32: 2^-43.2. The same for expm1.
struct fast_exp : fast_exponential<fast_exp> {
    static constexpr double factor = thirty_two_log2_e;
    static constexpr bool has_midpoints = false;
};
struct fast_exp2 : fast_exponential<fast_exp2> {
    static constexpr double factor = 32;
    static constexpr bool has_midpoints = true;  // such as 2^-25 of binary16
};
struct fast_exp10 : fast_exponential<fast_exp10> {
    static constexpr double factor = 0x1.a934f0979a371p+6;
    static constexpr bool has_midpoints = false;
};
/// For small z the relative error of z is that of the result, for large z it is as for exp.
MP_ALWAYS_INLINE double fast_expm1_of(double x) {
    return fast_power_of(x * thirty_two_log2_e).value_minus_one();
}
struct fast_expm1 : fast_function<fast_expm1> {
    MP_ALWAYS_INLINE static double evaluate(double x) { return fast_expm1_of(x); }
};

struct fast_natural_log : fast_positive_function<fast_natural_log> {
    static constexpr bool has_midpoints = false;
    MP_ALWAYS_INLINE static double evaluate(double x) { return fast_log(x); }
};
struct fast_binary_log : fast_positive_function<fast_binary_log> {
    static constexpr bool has_midpoints = false;
    MP_ALWAYS_INLINE static double evaluate(double x) { return fast_log2(x); }
};
struct fast_decimal_log : fast_positive_function<fast_decimal_log> {
    static constexpr bool has_midpoints = false;
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
        const double power = short_power(limited_power(x * thirty_two_log2_e)).value();
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
// below 2^-49, to which that of the logarithm comes.

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
    static constexpr bool has_midpoints = false;
    MP_ALWAYS_INLINE static double evaluate(double x) { return 1 / double_sqrt(x); }
};
/// 2^(log2(x) / 3). log2(x) has an error of 2^-40.6 or less; times 32/3 and ln2/32 that is 2^-42.7 of the result.
struct fast_cbrt : fast_function<fast_cbrt> {
    MP_ALWAYS_INLINE static double evaluate(double x) {
        return with_sign_of(short_power(fast_log2(absolute(x)) * (32.0 / 3)).value(), x);
    }
};

/// |x|^y by 2^(y log2 |x|), with the sign of an odd power. |y log2 x| < 2^8.3 where the result is a number, and has a
/// relative error below 2^-34.5, times ln2: 2^-26.7 of the result.
struct fast_pow {
    static constexpr int accuracy = 26;

    template <class Format>
    MP_ALWAYS_INLINE static fast_result<Format> code(storage_of<Format> a, storage_of<Format> b) {
        using layout = layout_of<Format>;
        const auto from_smallest = static_cast<storage_of<Format>>(a - layout::hidden_bit);
        const bool is_positive_normal = from_smallest <= layout::max_finite_code - layout::hidden_bit;
        if (!is_positive_normal || !is_normal_code<Format>(b)) [[unlikely]]
            return {0, false};
        const double z = scaled_logarithm(double_of_normal<Format>(a), double_of_normal<Format>(b));
        if (absolute(z) > normal_power_limit<Format>) [[unlikely]]
            return round_any_power<Format, accuracy>(z);
        return round_in_range<Format, accuracy>(short_power(z).value());
    }
    template <class Format>
    MP_ALWAYS_INLINE static fast_result<Format> rest(storage_of<Format> a, storage_of<Format> b) {
        using layout = layout_of<Format>;
        const auto x = static_cast<storage_of<Format>>(a & layout::magnitude_mask);
        const auto y = static_cast<storage_of<Format>>(b & layout::magnitude_mask);
        if (!is_number_but_zero<Format>(x) || !is_number_but_zero<Format>(y)) return {0, false};
        bool negative = false;
        if (is_negative<Format>(a)) {
            if (Format::bias < 1) return {0, false};
            if (has_fraction<Format>(y)) return {pack_nan<Format>(), true};
            negative = is_odd<Format>(y);
        }
        const double exponent = double_of_magnitude<Format>(y);
        const double z =
            scaled_logarithm(double_of_magnitude<Format>(x), is_negative<Format>(b) ? -exponent : exponent);
        const fast_result<Format> power = round_any_power<Format, accuracy>(z);
        return {negative ? join<Format>(true, power.code) : power.code, power.is_known};
    }

private:
    /// 32 y log2(x)
    MP_ALWAYS_INLINE static double scaled_logarithm(double x, double y) {
        const fast_logarithm parts = fast_log_of(x);
        const double scaled = y * 32;
        return scaled * (parts.exponent + parts.most * fast_log2_e) +
               ((scaled * fast_log2_e) * parts.square) * parts.quotient;
    }
    template <class Format>
    MP_ALWAYS_INLINE static bool is_number_but_zero(storage_of<Format> magnitude) {
        return static_cast<storage_of<Format>>(magnitude - 1) < layout_of<Format>::max_finite_code;
    }
    // Whole numbers are normal where the exponent has a bias.
    template <class Format>
    MP_ALWAYS_INLINE static bool has_fraction(storage_of<Format> magnitude) {
        using layout = layout_of<Format>;
        const int exponent = static_cast<int>(magnitude >> layout::fraction_bits) - Format::bias;
        if (exponent < 0) return true;
        return exponent < layout::fraction_bits && (magnitude & (layout::fraction_mask >> exponent)) != 0;
    }
    template <class Format>
    MP_ALWAYS_INLINE static bool is_odd(storage_of<Format> whole_number) {
        using layout = layout_of<Format>;
        const int exponent = static_cast<int>(whole_number >> layout::fraction_bits) - Format::bias;
        const auto significand = (whole_number & layout::fraction_mask) | layout::hidden_bit;
        return exponent <= layout::fraction_bits &&
               ((significand >> (layout::fraction_bits - exponent)) & 1) != 0;
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

}}  // namespace mp::detail
