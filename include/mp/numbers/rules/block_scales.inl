// SPDX-License-Identifier: MIT
// Scales of blocks over vectors and single words: see block_scales.hpp, which includes this for every kind of
// vector.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// The code of E8M0 for a finite amax that is not zero, by a rule other than standard. Its significand has
/// Bits bits, the highest of them set, in which those of elements fit exactly; `code` is that of
/// floor(log2(amax)).
template <class Format, int Bits, class Words, class Ints>
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr Ints scale_exponent_code(scale_rule rule, const Words& significand,
                                                                   Ints code) {
    using layout = layout_of<Format>;
    using word = std::conditional_t<Bits <= 30, std::uint32_t, std::uint64_t>;
    constexpr exact_value max = largest_of<Format>;
    constexpr auto f = static_cast<word>((max.significand << leading_zeros(max.significand)) >> (64 - Bits));
    code -= layout::max_exponent;
    if (rule == scale_rule::ceil) {
        code = significand > f ? code + 1 : code;
    } else if (rule == scale_rule::torchao_ceil) {
        code = significand > (word{1} << (Bits - 1)) ? code + 1 : code;
    } else if (rule == scale_rule::torchao_rceil) {
        // A product half a unit of the last place above a power of two is rounded to it. Beside 2^-127 products are
        // subnormal floats, whose unit is twice as large relative to them.
        constexpr auto limit = static_cast<word>(reciprocal_limit<Format, Bits>(1));
        constexpr auto subnormal_limit = static_cast<word>(reciprocal_limit<Format, Bits>(2));
        const Words most = code == 0 ? Words{} + subnormal_limit : Words{} + limit;
        code = significand > most ? code + 1 : code;
    } else if (rule == scale_rule::even) {
        // Half a unit of the last place. A significand that it carries beyond all ones is rounded to the next
        // power of two; a tie there is between all ones, which is odd, and that power.
        constexpr word half = word{1} << (Bits - 1 - layout::precision);
        code = significand >= (word{1} << Bits) - half ? code + 1 : code;
    } else if (rule == scale_rule::nearest) {
        // amax / max = r 2^s with r = significand / f, between 1/2 and 2; brought into [1, 2) it is compared
        // with 3/2.
        const auto below_one = significand < f;
        code = below_one ? code - 1 : code;
        const Words twice = below_one ? significand << 2 : significand << 1;
        constexpr word middle = 3 * f;
        const auto is_odd = (code & 1) != 0;
        code = ((twice > middle) | ((twice == middle) & is_odd)) ? code + 1 : code;
    }
    code = code < 0 ? Ints{} : code;
    return code > 254 ? Ints{} + 254 : code;
}

/// As scale_exponent_code(), for magnitude codes of finite floats; zero has the smallest scale.
template <class Format>
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr vec<std::uint32_t> scale_exponent_codes(
    vec<std::uint32_t> magnitude, scale_rule rule) {
    constexpr std::uint32_t hidden_bit = 0x0080'0000U;
    const auto is_subnormal = magnitude < hidden_bit;
    // The bits of a subnormal number count 2^-149, and are an integer that is a normal float.
    const vec<std::uint32_t> normal = is_subnormal ? as_uint32(to_floats(as_int32(magnitude))) : magnitude;
    const vec<std::int32_t> field = as_int32(normal >> 23);
    return as_uint32(scale_exponent_code<Format, 24>(rule, (normal & (hidden_bit - 1U)) | hidden_bit,
                                                     is_subnormal ? field - 149 : field));
}

/// The bits of positive doubles cut to floats: those of normal floats only.
template <class Longwords>
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr Longwords cut_to_float(const Longwords& x) {
    return (x >> 29) - (std::uint64_t{1023 - 127} << 23);
}
/// Whether something was cut off.
template <class Longwords>
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr auto has_more_than_float(const Longwords& x) {
    return (x & ((std::uint64_t{1} << 29) - 1)) != 0;
}
/// The float above which magnitudes are rounded away from zero at the midpoint t between two elements, whose
/// bits as a double these are: x > t is x > cut(t). From an odd code (`odd` is 1, else 0) the midpoint itself
/// goes up: x >= t is x > cut(t), too, unless t is a float, when it is x > the float before.
template <class Longwords>
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr Longwords rounding_threshold(const Longwords& midpoint,
                                                                       const Longwords& odd) {
    return cut_to_float(midpoint) - (has_more_than_float(midpoint) ? Longwords{} : odd);
}

}}}  // namespace mp::detail::MP_TARGET
