// SPDX-License-Identifier: MIT
// Rows of softmax over vec<T>: see softmax.hpp, which includes this for every instruction set.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// Bits as integers that are in the order of the floats; the NaNs lie beyond the infinities of their sign.
MP_ALWAYS_INLINE vec<std::int32_t> ordered_bits(vec<float> x) {
    return as_int32(x) ^ ((as_int32(x) >> 31) & 0x7FFF'FFFF);
}

inline row_maximum maximum_of_row(const float* x, std::size_t count) {
    constexpr std::int32_t plus_infinity = 0x7F80'0000;
    constexpr std::int32_t minus_infinity = -0x7F80'0001;
    constexpr float lowest = -std::numeric_limits<float>::infinity();
    vec<std::int32_t> largest[row_vectors];
    vec<std::int32_t> least[row_vectors];
    for (std::size_t v = 0; v < row_vectors; ++v) least[v] = largest[v] = ordered_bits(broadcast(lowest));
    for_each_vector(count, [&](std::size_t v, std::size_t i, std::size_t n) MP_INLINED_LAMBDA {
        const vec<std::int32_t> bits = ordered_bits(load_or_fill(x + i, n, lowest));
        largest[v] = (max)(bits, largest[v]);
        least[v] = (min)(bits, least[v]);
    });
    for (std::size_t v = 1; v < row_vectors; ++v) {
        largest[0] = (max)(largest[0], largest[v]);
        least[0] = (min)(least[0], least[v]);
    }
    const std::int32_t top = reduce_max(largest[0]);
    const std::int32_t bottom = ~reduce_max(~least[0]);
    return {bit_cast<float>(top ^ ((top >> 31) & 0x7FFF'FFFF)),
            top >= plus_infinity || bottom < minus_infinity};
}

/// Below it e^d rounds to 0 in float.
inline constexpr float least_distance = -104.0F;

/// e^d times 2^60 for d <= 45, as if d were not below least_distance.
MP_ALWAYS_INLINE vec<float> scaled_exponential_of_distance(vec<float> d) {
    return scaled_exponential(reduce_argument(max_or_nan(least_distance, d)));
}

/// Of the distance d = x - reference, with what it lost by rounding. What comes out for distances below the
/// least one, down to -infinity, has no part in the result: it is 0 before the scale is taken off, since a
/// product that underflows takes a hundred cycles.
MP_ALWAYS_INLINE vec<float> scaled_exponential_of_difference(vec<float> x, vec<float> reference) {
    const two_sum distance(x, negated(reference));
    const vec<float> power = scaled_exponential(reduce_argument(distance.sum, distance.error));
    return zero_unless_above(least_distance, distance.sum, power);
}

/// The sum of e^(x[i] - reference), which is also written to `to`, if Writes: there with the error of a float
/// exponential, and 0 for what is below the smallest float. Of a sum alone, the terms need not know what
/// their distances lost by rounding, since small terms have the large distances. Terms are added up times
/// 2^60.
template <bool Writes>
MP_ALWAYS_INLINE double sum_of_exponentials(const float* x, std::size_t count, float reference, float* to) {
    long_sum sum;
    const vec<float> all = broadcast(reference);
    for_each_vector(count, [&](std::size_t v, std::size_t i, std::size_t n) MP_INLINED_LAMBDA {
        const vec<float> value = load_up_to(x + i, n);
        vec<float> power = broadcast(0.0F);
        if constexpr (Writes) {
            power = scaled_exponential_of_difference(value, all);
            store_up_to(to + i, mul(power, 0x1p-60F), n);
        } else {
            power = scaled_exponential_of_distance(sub(value, all));
        }
        sum.add_terms(v, widen(keep_first(power, n)));
    });
    return mul(sum.value(), 0x1p-60);
}
inline double exponentials_of_row(const float* x, std::size_t count, float reference, float* to) {
    return to == nullptr ? sum_of_exponentials<false>(x, count, reference, to)
                         : sum_of_exponentials<true>(x, count, reference, to);
}

/// to[i] = x[i] - largest - log_sum, rounded once and a little; to may be x.
inline void log_softmax_row(const float* x, std::size_t count, float largest, double log_sum, float* to) {
    const vec<double> first = broadcast(static_cast<double>(largest));
    const vec<double> second = broadcast(log_sum);
    for_each_vector(count, [&](std::size_t, std::size_t i, std::size_t n) MP_INLINED_LAMBDA {
        store_up_to(to + i, narrow(sub(sub(widen(load_up_to(x + i, n)), first), second)), n);
    });
}

/// to[i] = x[i] factor - shift, both rounded; to may be x.
inline void scale_and_shift_row(const float* x, std::size_t count, float factor, float shift, float* to) {
    const vec<float> factors = broadcast(factor);
    const vec<float> shifts = broadcast(shift);
    for_each_vector(count, [&](std::size_t, std::size_t i, std::size_t n) MP_INLINED_LAMBDA {
        store_up_to(to + i, sub(mul(load_up_to(x + i, n), factors), shifts), n);
    });
}

/// to[i] = e^(x[i] - largest) factor - shift, for a factor from 2^-60 to 2^100; to may be x. The product is
/// rounded once, also where it underflows. Infinity beyond e^40, since no element is above the largest one.
inline void scaled_probabilities(const float* x, std::size_t count, float largest, float factor, float shift,
                                 float* to) {
    const vec<float> reference = broadcast(largest);
    const vec<float> factors = broadcast(mul(factor, 0x1p-60F));
    const vec<float> shifts = broadcast(shift);
    for_each_vector(count, [&](std::size_t, std::size_t i, std::size_t n) MP_INLINED_LAMBDA {
        const vec<float> value = load_up_to(x + i, n);
        const vec<float> power =
            select(sub(value, reference) > 40.0F, broadcast(std::numeric_limits<float>::infinity()),
                   scaled_exponential_of_difference(value, reference));
        store_up_to(to + i, sub(mul(power, factors), shifts), n);
    });
}

/// The sum of a[i] b[i].
inline double dot_of_rows(const float* a, const float* b, std::size_t count) {
    long_sum sum;
    for_each_vector(count, [&](std::size_t v, std::size_t i, std::size_t n) MP_INLINED_LAMBDA {
        sum.add_terms(v, mul(widen(load_up_to(a + i, n)), widen(load_up_to(b + i, n))));
    });
    return sum.value();
}

/// to[i] = y[i] (dy[i] - mean), the mean in two parts; to may be y or dy. Where y is 0 and SkipsZeros, 0 for
/// any dy and mean, NaN or not.
template <bool SkipsZeros>
MP_ALWAYS_INLINE void slopes_around_mean(const float* y, const float* dy, std::size_t count, double mean,
                                         float* to) {
    const auto high = static_cast<float>(mean);
    const vec<float> first = broadcast(high);
    const vec<float> second = broadcast(static_cast<float>(sub(mean, static_cast<double>(high))));
    for_each_vector(count, [&](std::size_t, std::size_t i, std::size_t n) MP_INLINED_LAMBDA {
        const vec<float> factor = load_up_to(y + i, n);
        const vec<float> slope = mul(factor, sub(sub(load_up_to(dy + i, n), first), second));
        store_up_to(to + i, SkipsZeros ? select(as_uint32(factor) == 0, broadcast(0.0F), slope) : slope, n);
    });
}
inline void softmax_slopes(const float* y, const float* dy, std::size_t count, double mean, float* to) {
    slopes_around_mean<false>(y, dy, count, mean, to);
}

/// The slopes of scores in place of those of their probabilities p: p (slope - the sum of p slope). What has
/// no probability takes no part, NaN or not: told by bits, so that a probability of NaN is not among it.
inline void score_slopes(const float* p, std::size_t count, float* slopes) {
    long_sum sum;
    for_each_vector(count, [&](std::size_t v, std::size_t i, std::size_t n) MP_INLINED_LAMBDA {
        const vec<float> factor = load_up_to(p + i, n);
        const vec<float> slope = load_up_to(static_cast<const float*>(slopes) + i, n);
        sum.add_terms(v, mul(widen(factor), widen(select(as_uint32(factor) == 0, broadcast(0.0F), slope))));
    });
    slopes_around_mean<true>(p, slopes, count, sum.value(), slopes);
}

/// to[i] = dy[i] - e^y[i] sum, NaN where y is; to may be y or dy.
inline void log_softmax_slopes(const float* y, const float* dy, std::size_t count, double sum, float* to) {
    const vec<float> minus_sum = broadcast(static_cast<float>(-sum));
    for_each_vector(count, [&](std::size_t, std::size_t i, std::size_t n) MP_INLINED_LAMBDA {
        const vec<float> log_p = load_up_to(y + i, n);
        // No logarithm of a probability is above 45, which is as far as the function goes.
        const vec<float> power = select(log_p > 45.0F, broadcast(std::numeric_limits<float>::infinity()),
                                        mul(scaled_exponential_of_distance(log_p), 0x1p-60F));
        store_up_to(to + i, unless_nan(log_p, fma(power, minus_sum, load_up_to(dy + i, n))), n);
    });
}

}}}  // namespace mp::detail::MP_TARGET
