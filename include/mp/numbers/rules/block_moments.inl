// SPDX-License-Identifier: MIT
// Codes of 8 bits for the ratios of moments to the largest one of their block, over vec<T>; see
// <mp/nn/optim/block_moments.hpp>. Conditions are masks of all bits or none.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// The codes of x / scale, rounded to nearest even, in the low bits of words: |x| is at most scale, which is
/// finite and not zero. What has no sign keeps from zero: its smallest code is that of all that is not zero.
template <class Codes>
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<std::uint32_t> encode_moments(vec<float> x, vec<float> scale) {
    constexpr int shift = 23 - Codes::fraction_bits;
    constexpr std::uint32_t smallest_normal = static_cast<std::uint32_t>(127 + Codes::min_exponent) << 23;
    // Adding it leaves multiples of the smallest code in the low bits.
    constexpr float unit = power_of_two<float>(Codes::min_exponent + shift);
    const vec<std::uint32_t> bits = as_uint32(x);
    const vec<std::uint32_t> magnitude = bits & 0x7FFF'FFFFU;
    const vec<float> ratio = div(as_float(magnitude), scale);
    const vec<std::uint32_t> code = as_uint32(ratio);
    const vec<std::uint32_t> nearest = (code + ((1U << (shift - 1)) - 1U) + ((code >> shift) & 1U)) >> shift;
    const vec<std::uint32_t> normal = nearest - ((smallest_normal >> shift) - (1U << Codes::fraction_bits));
    const vec<std::uint32_t> subnormal =
        as_uint32(add(ratio, broadcast(unit))) - bit_cast<std::uint32_t>(unit);
    const vec<std::uint32_t> is_small = 0U - ((code - smallest_normal) >> 31);
    const vec<std::uint32_t> result = (subnormal & is_small) | (normal & ~is_small);
    if constexpr (Codes::has_sign) {
        return result | ((bits >> 31) << 7);
    } else {
        const vec<std::uint32_t> is_positive = (0U - magnitude) >> 31;
        return result | (is_positive & ((result - 1U) >> 31));
    }
}

/// The values of codes, times scale, rounded once.
template <class Codes>
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> decode_moments(vec<std::uint32_t> code, vec<float> scale) {
    constexpr int shift = 23 - Codes::fraction_bits;
    constexpr std::uint32_t hidden_bit = 1U << Codes::fraction_bits;
    constexpr std::uint32_t smallest_normal = static_cast<std::uint32_t>(127 + Codes::min_exponent) << 23;
    constexpr float unit = power_of_two<float>(Codes::min_exponent + shift);
    vec<std::uint32_t> magnitude = code;
    if constexpr (Codes::has_sign) magnitude = code & 0x7FU;
    const vec<std::uint32_t> normal = (magnitude << shift) + (smallest_normal - (hidden_bit << shift));
    const vec<std::uint32_t> subnormal =
        as_uint32(sub(as_float(magnitude + bit_cast<std::uint32_t>(unit)), broadcast(unit)));
    const vec<std::uint32_t> is_small = 0U - ((magnitude - hidden_bit) >> 31);
    vec<std::uint32_t> value = (subnormal & is_small) | (normal & ~is_small);
    if constexpr (Codes::has_sign) value = value | ((code >> 7) << 31);
    return mul(as_float(value), scale);
}

}}}  // namespace mp::detail::MP_TARGET
