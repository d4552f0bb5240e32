// SPDX-License-Identifier: MIT
// Smooth activation functions and their slopes over vec<float>: see activations.hpp, which includes this for
// every kind of vector.
//
// For negative arguments e^-|x| and what it is multiplied with may be too small for a float. They are kept
// times 2^60, and the last operation brings in 2^-60: so a subnormal result is rounded once.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// The smaller one of |x| and the limit, which is positive; the limit for NaN.
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> magnitude_up_to(vec<float> x, float limit) {
    return as_float((min)(as_uint32(x) & 0x7FFF'FFFFU, broadcast(bit_cast<std::uint32_t>(limit))));
}
/// x with a sign that was taken from another number.
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> with_sign(vec<float> x, vec<std::uint32_t> sign) {
    return as_float(as_uint32(x) | sign);
}
/// `result`, or x, made quiet, where x is NaN: told by bits.
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> unless_nan(vec<float> x, vec<float> result) {
    const auto is_nan = as_int32(as_float(as_uint32(x) & 0x7FFF'FFFFU)) > 0x7F80'0000;
    return select(is_nan, as_float(as_uint32(x) | 0x0040'0000U), result);
}

template <class Function>
struct activation;

/// x / (1 + e^-z), where e is e^-|z| and z has the sign of x, which is not below a limit.
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> times_logistic(vec<float> x, decaying_exponential e) {
    const vec<float> numerator = mul(x, select_by_sign(x, e.scaled, broadcast(1.0F)));
    return mul(div(numerator, e.one_and_value()), select_by_sign(x, broadcast(0x1p-60F), broadcast(1.0F)));
}
/// s + x z' s (1 - s) with s = 1 / (1 + e^-z): the slope of that.
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> times_logistic_slope(vec<float> x, vec<float> z_slope,
                                                                decaying_exponential e) {
    const vec<float> larger = div(1.0F, e.one_and_value());
    const vec<float> smaller = mul(e.value(), larger);
    return fma(mul(x, z_slope), mul(larger, smaller), select_by_sign(x, smaller, larger));
}

template <>
struct activation<silu_function> {
    static constexpr float limit = 120.0F;
    MP_HOST_DEVICE MP_ALWAYS_INLINE static vec<float> value(vec<float> x) {
        const vec<float> bounded = max_or_nan(-limit, x);
        return times_logistic(bounded, exponential_of_minus(magnitude_up_to(x, limit)));
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE static vec<float> slope(vec<float> x) {
        const vec<float> magnitude = magnitude_up_to(x, limit);
        return times_logistic_slope(with_sign(magnitude, sign_of(x)), broadcast(1.0F),
                                    exponential_of_minus(magnitude));
    }
};

template <>
struct activation<sigmoid_function> {
    static constexpr float limit = 120.0F;
    MP_HOST_DEVICE MP_ALWAYS_INLINE static vec<float> value(vec<float> x) {
        const decaying_exponential e = exponential_of_minus(magnitude_up_to(x, limit));
        const vec<float> quotient = div(select_by_sign(x, e.scaled, broadcast(1.0F)), e.one_and_value());
        return unless_nan(x, mul(quotient, select_by_sign(x, broadcast(0x1p-60F), broadcast(1.0F))));
    }
};

template <>
struct activation<gelu_tanh_function> {
    /// Below it the result is zero.
    static constexpr float limit = 11.0F;
    static constexpr float linear = 0x1.988454p+0F;  // 2 sqrt(2/pi)
    static constexpr float linear_rest = -0x1.857936p-25F;
    static constexpr float cubic = 0x1.2444f2p-4F;  // that times 0.044715
    static constexpr float cubic_rest = 0x1.49b16ap-29F;

    /// e^-2z, where 2z = x (linear + cubic x^2) has the digits that its exponential shows.
    MP_HOST_DEVICE MP_ALWAYS_INLINE static decaying_exponential power(vec<float> x) {
        const vec<float> square = mul(x, x);
        const vec<float> square_low = fma(x, x, negated(square));
        const vec<float> third = mul(square, cubic);
        const vec<float> third_low = fma(square, cubic, negated(third));
        const vec<float> rest = fma(square, cubic_rest, fma(square_low, cubic, third_low));
        const two_sum factor(third, broadcast(linear));
        const vec<float> factor_low = add(rest, add(factor.error, linear_rest));
        const vec<float> whole = mul(x, factor.sum);
        const vec<float> whole_low = fma(x, factor_low, fma(x, factor.sum, negated(whole)));
        return exponential_of_minus(whole, whole_low);
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE static vec<float> value(vec<float> x) {
        return times_logistic(max_or_nan(-limit, x), power(magnitude_up_to(x, limit)));
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE static vec<float> slope(vec<float> x) {
        const vec<float> magnitude = magnitude_up_to(x, limit);
        const vec<float> z_slope = fma(mul(magnitude, magnitude), 3.0F * cubic, linear);
        return times_logistic_slope(with_sign(magnitude, sign_of(x)), z_slope, power(magnitude));
    }
};

template <>
struct activation<gelu_function> {
    /// Below it the result is zero.
    static constexpr float limit = 16.0F;

    /// e^(-x^2 / 2) times 2^60 for x from 0 to 16. The rounded square only chooses n, which has 8 bits, and
    /// the first part of 2 ln 2 has 15, so their product is exact.
    MP_HOST_DEVICE MP_ALWAYS_INLINE static vec<float> scaled_power(vec<float> x, vec<float> square) {
        const vec<float> shifted = fma(square, one_over_ln_2 / 2, to_integer - 60);
        const vec<float> n = sub(shifted, to_integer - 60);
        const vec<float> first = fma(x, x, mul(n, -0x1.62e4p+0F));
        const vec<float> rest = fma(n, -0x1.7f7d1cp-19F, first);
        // e^(-rest / 2), as in exponential_tail
        const vec<float> power = polynomial(rest, 1.0F, -0.5F, 0.125F, -0x1.5554dcp-6F, 0x1.55551ap-9F,
                                            -0x1.120b6ep-12F, 0x1.6d110ap-16F);
        return as_float(as_uint32(power) - (as_uint32(shifted) << 23));
    }
    /// The integral of the normal density beyond x over e^(-x^2 / 2) is numerator / denominator, good to
    /// 2^-24.9 for x from 0 to 14.6, beyond which it does not count. Both take the rounded square of x, whose
    /// error all but cancels in the quotient.
    MP_HOST_DEVICE MP_ALWAYS_INLINE static vec<float> numerator(vec<float> x, vec<float> square) {
        const vec<float> high = fma(square, 0x1.0e4628p-8F, fma(x, 0x1.4d4b4ap-5F, 0x1.7794e6p-3F));
        return fma(high, square, fma(x, 0x1.c106eep-2F, 0.5F));
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE static vec<float> denominator(vec<float> x, vec<float> square) {
        const vec<float> high =
            fma(fma(x, 0x1.52bc04p-7F, 0x1.a1bf92p-4F), square, fma(x, 0x1.e127bap-2F, 0x1.34013ap+0F));
        return fma(high, square, fma(x, 0x1.acc5a8p+0F, 1.0F));
    }
    /// max(x, -0) - |x| Q(|x|) with Q = 1 - Phi: no digits are lost for either sign, and zeros keep theirs.
    MP_HOST_DEVICE MP_ALWAYS_INLINE static vec<float> value(vec<float> x) {
        const vec<float> magnitude = magnitude_up_to(x, limit);
        const vec<float> square = mul(magnitude, magnitude);
        const vec<float> over = denominator(magnitude, square);
        const vec<float> beyond =
            div(mul(mul(magnitude, numerator(magnitude, square)), scaled_power(magnitude, square)), over);
        return fma(beyond, -0x1p-60F, max_or_nan(-0.0F, x));
    }
    /// Phi(x) + x phi(x)
    MP_HOST_DEVICE MP_ALWAYS_INLINE static vec<float> slope(vec<float> x) {
        constexpr float one_over_root_two_pi = 0x1.988454p-2F;
        const vec<float> magnitude = magnitude_up_to(x, limit);
        const vec<float> square = mul(magnitude, magnitude);
        const vec<float> over = denominator(magnitude, square);
        const vec<float> minus_numerator = negated(numerator(magnitude, square));
        const vec<float> difference =
            div(mul(fma(mul(magnitude, one_over_root_two_pi), over, minus_numerator),
                    scaled_power(magnitude, square)),
                over);
        return fma(as_float(as_uint32(difference) ^ sign_of(x)), 0x1p-60F,
                   select_by_sign(x, broadcast(0.0F), broadcast(1.0F)));
    }
};

template <>
struct activation<tanh_function> {
    /// Beyond it the result is one.
    static constexpr float limit = 10.0F;
    /// (e^2x - 1) / (e^2x + 1)
    MP_HOST_DEVICE MP_ALWAYS_INLINE static vec<float> value(vec<float> x) {
        const vec<float> magnitude = magnitude_up_to(x, limit);
        const reduced_argument reduced = reduce_argument(add(magnitude, magnitude));
        const vec<float> r = reduced.rest;
        const vec<float> power =
            as_float((as_uint32(reduced.shifted) << 23) + (std::uint32_t{127 - 60} << 23));
        const vec<float> above_one = fma(exponential_tail(r), mul(r, r), r);
        const vec<float> minus_one = fma(power, above_one, sub(power, 1.0F));
        return unless_nan(x, with_sign(div(minus_one, add(minus_one, 2.0F)), sign_of(x)));
    }
};

}}}  // namespace mp::detail::MP_TARGET
