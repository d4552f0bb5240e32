// SPDX-License-Identifier: MIT
// The magnitudes of an array over vec<T>: see quantised_operand.hpp, which includes this for every target.

namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET {

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

/// to[i] = from[i] scale, rounded to a format with all kinds of zeros and subnormals that the scaled numbers fit
/// into, and scaled back.
inline void quantise_array(std::size_t count, float* to, const float* from, const quantisation& q) {
    const auto quantise = [&](vec<float> x) MP_INLINED_LAMBDA {
        const vec<float> scaled = mul(x, q.scale);
        // Numbers near 1.5 2^(e + 23 - fraction_bits) are as far apart as those of the format from 2^e on.
        const vec<std::int32_t> exponent =
            (max)(as_int32(as_uint32(scaled) & 0x7f80'0000U), as_int32(broadcast(q.least_normal)));
        const vec<float> coarse = as_float(as_uint32(exponent) + q.to_coarse);
        const vec<float> rounded = sub(add(scaled, coarse), coarse);
        const vec<std::uint32_t> sign = as_uint32(scaled) & 0x8000'0000U;
        return mul(as_float((as_uint32(rounded) & 0x7fff'ffffU) | sign), q.inverse);
    };
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) store(to + i, quantise(load(from + i)));
    if (i < count) store_partial(to + i, quantise(load_partial(from + i, count - i)), count - i);
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET
