// SPDX-License-Identifier: MIT
// The magnitudes of an array over vec<T>: see quantised_operand.hpp, which includes this for every target.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// The bits of the largest magnitude, of finite values alone or of all.
template <bool FiniteAlone>
MP_ALWAYS_INLINE std::uint32_t find_magnitude(const float* values, std::size_t count) {
    vec<std::int32_t> largest[row_vectors];
    for (vec<std::int32_t>& of_part : largest) of_part = as_int32(broadcast(0.0F));
    for_each_vector(count, [&](std::size_t v, std::size_t i, std::size_t n) MP_INLINED_LAMBDA {
        vec<float> magnitude = as_float(as_uint32(load_up_to(values + i, n)) & 0x7fffffffU);
        if constexpr (FiniteAlone) {
            magnitude = select(as_uint32(magnitude) < 0x7f800000U, magnitude, broadcast(0.0F));
        }
        largest[v] = (max)(as_int32(magnitude), largest[v]);
    });
    for (std::size_t v = 1; v < row_vectors; ++v) largest[0] = (max)(largest[0], largest[v]);
    return static_cast<std::uint32_t>(reduce_max(largest[0]));
}
inline largest_magnitudes find_magnitudes(const float* values, std::size_t count) {
    const std::uint32_t all = find_magnitude<false>(values, count);
    if (all < 0x7f800000U) return {all, all};
    return {find_magnitude<true>(values, count), all};
}

/// x, finite, rounded to nearest, ties to even, to the fraction bits that `to_coarse` stands for (see quantisation), and
/// below `least_normal` to multiples of the smallest subnormal. The sign of zero stays. Exact where x does not exceed
/// the format's largest number and x * 2^23 does not overflow.
MP_ALWAYS_INLINE vec<float> round_fraction(vec<float> x, float least_normal, std::uint32_t to_coarse) {
    // Numbers near 1.5 2^(e + 23 - fraction_bits) are as far apart as those of the format from 2^e on.
    const vec<std::int32_t> exponent =
        (max)(as_int32(as_uint32(x) & 0x7f80'0000U), as_int32(broadcast(least_normal)));
    const vec<float> coarse = as_float(as_uint32(exponent) + to_coarse);
    const vec<float> rounded = sub(add(x, coarse), coarse);
    return as_float((as_uint32(rounded) & 0x7fff'ffffU) | (as_uint32(x) & 0x8000'0000U));
}

/// to[i] = from[i] scale, rounded to the format and scaled back.
inline void quantise_array(std::size_t count, float* to, const float* from, const quantisation& q) {
    const auto quantise = [&](vec<float> x) MP_INLINED_LAMBDA {
        return mul(round_fraction(mul(x, q.scale), q.least_normal, q.to_coarse), q.inverse);
    };
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) store(to + i, quantise(load(from + i)));
    if (i < count) store_partial(to + i, quantise(load_partial(from + i, count - i)), count - i);
}

/// Stores the upper halves of the lanes of two vectors.
MP_ALWAYS_INLINE void store_upper_halves(std::uint16_t* to, vec<float> low, vec<float> high) {
#if MP_TARGET_NUMBER == MP_TARGET_NEON || MP_TARGET_NUMBER >= MP_TARGET_AVX512
    const uint16_lanes halves = upper_halves(as_uint32(low), as_uint32(high));
    std::memcpy(to, &halves, sizeof halves);
#elif MP_TARGET_NUMBER >= MP_TARGET_AVX2
    store(to, narrow_to_uint16(as_uint32(low) >> 16));
    store(to + lanes, narrow_to_uint16(as_uint32(high) >> 16));
#else
    float values[2 * lanes];
    store(values, low);
    store(values + lanes, high);
    for (std::size_t i = 0; i < 2 * lanes; ++i) {
        to[i] = static_cast<std::uint16_t>(bit_cast<std::uint32_t>(values[i]) >> 16);
    }
#endif
}

/// The same as codes of bfloat16, for a quantisation that is in_place(), of a format with at most 7 bits of fraction. A
/// power of two changes no bits of a fraction, so numbers are rounded unscaled, and the lower halves are zero.
inline void quantise_array_to_bfloat16(std::size_t count, std::uint16_t* to, const float* from,
                                       const quantisation& q) {
    const float least_normal = q.least_normal * q.inverse;
    const auto quantise = [&](vec<float> x)
                              MP_INLINED_LAMBDA { return round_fraction(x, least_normal, q.to_coarse); };
    std::size_t i = 0;
    for (; i + 2 * lanes <= count; i += 2 * lanes) {
        store_upper_halves(to + i, quantise(load(from + i)), quantise(load(from + i + lanes)));
    }
    if (i == count) return;
    float rest[2 * lanes] = {};
    std::uint16_t halves[2 * lanes];
    std::memcpy(rest, from + i, (count - i) * sizeof *rest);
    store_upper_halves(halves, quantise(load(rest)), quantise(load(rest + lanes)));
    std::memcpy(to + i, halves, (count - i) * sizeof *halves);
}

}}}  // namespace mp::detail::MP_TARGET
