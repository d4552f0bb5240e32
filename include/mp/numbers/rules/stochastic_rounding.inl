// SPDX-License-Identifier: MIT
// Stochastic rounding with 32 random bits over vec<float>: see stochastic_rounding.hpp, which includes this for
// every kind of vector.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// The code of round_to<basic_float<Format>>(x, mp::stochastic(random)) in the low bits of every lane.
template <class Format>
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<std::uint32_t> stochastic_codes(vec<float> x, vec<std::uint32_t> random) {
    using narrow = layout_of<Format>;
    static_assert(has_stochastic_codes<Format>);
    constexpr int shift = 23 - narrow::fraction_bits;
    const vec<std::uint32_t> bits = as_uint32(x);
    const vec<std::uint32_t> magnitude = bits & 0x7fff'ffffU;
    const auto is_nan = magnitude > 0x7f80'0000U;
    const vec<std::uint32_t> nan = (bits >> shift) | std::uint32_t{narrow::quiet_bit};
    // `shift` bits are dropped, so the upper `shift` random bits are added: they carry with probability
    // dropped / 2^shift. Above the largest finite number is infinity.
    const vec<std::uint32_t> threshold = random >> (32 - shift);
    if constexpr (Format::exponent_bits == 8) {
        return is_nan ? nan : (bits + threshold) >> shift;
    } else {
        constexpr std::uint32_t bias_difference = static_cast<std::uint32_t>(127 - Format::bias) << 23;
        constexpr std::uint32_t largest = (std::uint32_t{narrow::infinity_code} << shift) + bias_difference;
        constexpr std::uint32_t smallest_normal = static_cast<std::uint32_t>(127 + narrow::min_exponent)
                                                  << 23;
        const vec<std::uint32_t> limited = magnitude < largest ? magnitude : vec<std::uint32_t>{} + largest;
        vec<std::uint32_t> code = (limited - bias_difference + threshold) >> shift;
        const auto is_small = magnitude < smallest_normal;
        if (any(is_small)) {
            // Subnormal results: in units of the last place, with 32 bits behind the point. All steps are exact
            // except for bits beyond those, which are cut off.
            constexpr float unit = power_of_two<float>(-narrow::quantum_exponent);
            const vec<float> value = mul(as_float(is_small ? magnitude : vec<std::uint32_t>{}), unit);
            const vec<std::int32_t> whole = truncate(value);
            const vec<float> fraction = mul(sub(value, to_floats(whole)), 0x1p16F);
            const vec<std::int32_t> upper = truncate(fraction);
            const vec<float> rest = mul(sub(fraction, to_floats(upper)), 0x1p16F);
            const vec<std::uint32_t> behind_point = (as_uint32(upper) << 16) | as_uint32(truncate(rest));
            const vec<std::uint32_t> sum = behind_point + random;
            const vec<std::uint32_t> next = as_uint32(whole) + 1U;
            code = is_small ? (sum < behind_point ? next : as_uint32(whole)) : code;
        }
        const vec<std::uint32_t> sign = (bits ^ magnitude) >> (31 - narrow::magnitude_bits);
        code = is_nan ? (nan & std::uint32_t{narrow::magnitude_mask}) | std::uint32_t{narrow::infinity_code}
                      : code;
        return code | sign;
    }
}

}}}  // namespace mp::detail::MP_TARGET
