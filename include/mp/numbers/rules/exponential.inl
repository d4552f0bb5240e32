// SPDX-License-Identifier: MIT
// The exponential function over vec<float>: see exponential.hpp, which includes this for every kind of
// vector.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> negated(vec<float> x) {
    return as_float(as_uint32(x) ^ 0x8000'0000U);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<std::uint32_t> sign_of(vec<float> x) {
    return as_uint32(x) & 0x8000'0000U;
}
/// c[0] + c[1] x + c[2] x^2 ... by Horner's rule.
template <class X>
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> polynomial(X /*x*/, float last) {
    return broadcast(last);
}
template <class X, class... Rest>
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> polynomial(X x, float first, Rest... rest) {
    return fma(polynomial(x, rest...), x, first);
}

/// a + b exactly: the rounded sum and its error (Knuth's two-sum, for operands in any order).
struct two_sum {
    vec<float> sum, error;

    MP_HOST_DEVICE MP_ALWAYS_INLINE two_sum(vec<float> a, vec<float> b) : sum(add(a, b)) {
        const vec<float> of_b = sub(sum, a);
        const vec<float> of_a = sub(sum, of_b);
        error = add(sub(a, of_a), sub(b, of_b));
    }
};

/// Adds x to the sum high + low, whose errors are collected in low. Where high is infinite or NaN, low has no meaning.
MP_HOST_DEVICE MP_ALWAYS_INLINE void add_to_pair(vec<float>& high, vec<float>& low, vec<float> x) {
    const two_sum exact(high, x);
    high = exact.sum;
    low = add(low, exact.error);
}
/// Rounds the sum to `high`; `low` becomes the error.
MP_HOST_DEVICE MP_ALWAYS_INLINE void normalize_pair(vec<float>& high, vec<float>& low) {
    const two_sum exact(high, low);
    const auto non_finite = (as_uint32(high) & 0x7F80'0000U) == 0x7F80'0000U;
    high = select(non_finite, high, exact.sum);
    low = select(non_finite, broadcast(0.0F), exact.error);
}

/// Adding 1.5 2^23 leaves no place for a fraction: the sum is rounded to an integer, which is its low bits.
/// So n is found with 60 beside it, for the exponent of 2^(n + 60).
inline constexpr float to_integer = 0x1.8p+23F;
inline constexpr float one_over_ln_2 = 0x1.715476p+0F;

/// x = n ln 2 + rest, for n from -186 to 66: |rest| <= ln 2 / 2 and a little.
struct reduced_argument {
    vec<float> shifted;  ///< whose low bits are n + 60
    vec<float> rest;
};
/// The first difference is exact: both terms are multiples of 2^-26, and the difference is less than 0.36, or
/// x itself.
MP_HOST_DEVICE MP_ALWAYS_INLINE reduced_argument reduce_argument(vec<float> x) {
    const vec<float> shifted = fma(x, one_over_ln_2, to_integer + 60);
    const vec<float> n = sub(shifted, to_integer + 60);
    const vec<float> first = fma(n, -0x1.62e430p-1F, x);
    return {shifted, fma(n, 0x1.05c610p-29F, first)};
}
/// Of x + more, where `more` is less than an ulp of x.
MP_HOST_DEVICE MP_ALWAYS_INLINE reduced_argument reduce_argument(vec<float> x, vec<float> more) {
    const reduced_argument reduced = reduce_argument(x);
    return {reduced.shifted, add(reduced.rest, more)};
}
/// (e^r - 1 - r) / r^2, good to 2^-26.4 of e^r.
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> exponential_tail(vec<float> r) {
    return polynomial(r, 0.5F, 0x1.5554dcp-3F, 0x1.55551ap-5F, 0x1.120b6ep-7F, 0x1.6d110ap-10F);
}
/// e^x times 2^60, to 0.9 ulp. e^rest lies between 0.7 and 1.42, so that its exponent is the place to add to.
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> scaled_exponential(reduced_argument x) {
    const vec<float> power = fma(fma(exponential_tail(x.rest), x.rest, 1.0F), x.rest, 1.0F);
    return as_float(as_uint32(power) + (as_uint32(x.shifted) << 23));
}

/// e^-t for t = high + low >= 0: its value, and the same times 2^60.
struct decaying_exponential {
    vec<float> scaled;

    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> value() const { return mul(scaled, 0x1p-60F); }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> one_and_value() const {
        return fma(scaled, 0x1p-60F, 1.0F);
    }
};
MP_HOST_DEVICE MP_ALWAYS_INLINE decaying_exponential exponential_of_minus(vec<float> t) {
    return {scaled_exponential(reduce_argument(negated(t)))};
}
MP_HOST_DEVICE MP_ALWAYS_INLINE decaying_exponential exponential_of_minus(vec<float> high, vec<float> low) {
    return {scaled_exponential(reduce_argument(negated(high), negated(low)))};
}

}}}  // namespace mp::detail::MP_TARGET
