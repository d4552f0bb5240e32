// SPDX-License-Identifier: MIT
// widen and narrow_to_word of <mp/numbers/format/binary_conversion.hpp>, where their proofs are, on vectors: the same
// steps with ?: for select. They need the default modes (default_floating_point_modes) for numbers that are
// subnormal in the narrow format.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// The values of codes, exactly; NaNs become quiet and keep sign and payload.
template <class Format>
MP_ALWAYS_INLINE vec<float> widen_codes(vec<std::uint32_t> code) {
    using narrow = layout_of<Format>;
    constexpr int shift = 23 - narrow::fraction_bits;
    constexpr std::uint32_t quiet = 0x0040'0000;
    if constexpr (is_binary16<Format>) {
        return widen_binary16(narrow_to_uint16(code));
    } else if constexpr (Format::exponent_bits == 8) {
        return quieted(as_float(code << shift));
    } else {
        constexpr std::uint32_t bias_difference = static_cast<std::uint32_t>(127 - Format::bias) << 23;
        const vec<std::uint32_t> magnitude = code & std::uint32_t{narrow::magnitude_mask};
        vec<std::uint32_t> result = (magnitude << shift) + bias_difference;
        if constexpr (Format::nans == nan_encoding::ieee) {
            constexpr std::uint32_t first = narrow::infinity_code;
            constexpr std::uint32_t missing = 0x7f80'0000U - ((first << shift) + bias_difference);
            result = magnitude >= first ? result + missing : result;
            result = magnitude > first ? result | quiet : result;
        } else {
            if constexpr (narrow::has_infinity)
                result = magnitude == std::uint32_t{narrow::infinity_code}
                             ? vec<std::uint32_t>{} + 0x7f80'0000U
                             : result;
            if constexpr (Format::nans == nan_encoding::all_ones)
                result = magnitude == std::uint32_t{narrow::nan_code} ? vec<std::uint32_t>{} + 0x7fc0'0000U
                                                                      : result;
        }
        constexpr float unit = power_of_two<float>(narrow::quantum_exponent + 23);
        constexpr auto unit_bits = bit_cast<std::uint32_t>(unit);
        const vec<std::uint32_t> subnormal = as_uint32(as_float(magnitude | unit_bits) - unit);
        result = magnitude < std::uint32_t{narrow::hidden_bit} ? subnormal : result;
        const vec<std::uint32_t> sign = (code & std::uint32_t{narrow::sign_mask}) << (32 - narrow::width);
        if constexpr (Format::nans == nan_encoding::negative_zero) {
            return as_float(code == std::uint32_t{narrow::nan_code} ? vec<std::uint32_t>{} + 0x7fc0'0000U
                                                                    : result | sign);
        } else {
            return as_float(result | sign);
        }
    }
}

/// Floats rounded to nearest even once, overflow as saturation::none, or to the largest number if Saturates,
/// for finite ones; the codes are in the low bits.
template <class Format, bool Saturates = false>
MP_ALWAYS_INLINE vec<std::uint32_t> narrow_codes(vec<float> x) {
    using narrow = layout_of<Format>;
    constexpr int shift = 23 - narrow::fraction_bits;
    constexpr std::uint32_t half_minus_one = (std::uint32_t{1} << (shift - 1)) - 1;
    const vec<std::uint32_t> bits = as_uint32(x);
    const vec<std::uint32_t> magnitude = bits & 0x7fff'ffffU;
    const auto is_nan = magnitude > 0x7f80'0000U;
    static_assert(!Saturates || (Format::exponent_bits < 8 && !is_binary16<Format>));
    if constexpr (is_binary16<Format>) {
        return widen(narrow_binary16(x));
    } else if constexpr (Format::exponent_bits == 8) {
        const vec<std::uint32_t> kept = bits >> shift;
        const vec<std::uint32_t> rounded_code = (bits + half_minus_one + (kept & 1U)) >> shift;
        return is_nan ? kept | std::uint32_t{narrow::quiet_bit} : rounded_code;
    } else {
        // Both kinds of result at once: with 2^e the power of two in the number, but not less than that of
        // the smallest normal number, adding 2^(e + shift) leaves the float 2^(e - fraction bits) for its
        // last place. The sum's own addition rounds, and its low bits are the significand k of the result;
        // the code is k + (e - min_exponent << fraction bits), see round_and_pack.
        constexpr bool can_overflow = !Saturates && narrow::can_overflow;
        constexpr std::uint32_t beyond = std::uint32_t{narrow::max_finite_code} + (can_overflow ? 1 : 0);
        constexpr std::uint32_t overflow = !can_overflow          ? beyond
                                           : narrow::has_infinity ? std::uint32_t{narrow::infinity_code}
                                                                  : std::uint32_t{narrow::nan_code};
        constexpr std::uint32_t bias_difference = static_cast<std::uint32_t>(127 - Format::bias) << 23;
        constexpr std::uint32_t largest = (beyond << shift) + bias_difference;
        constexpr std::uint32_t smallest_normal = static_cast<std::uint32_t>(127 + narrow::min_exponent)
                                                  << 23;
        constexpr std::uint32_t up = std::uint32_t{shift} << 23;
        const vec<std::uint32_t> limited = magnitude < largest ? magnitude : vec<std::uint32_t>{} + largest;
        const vec<std::uint32_t> exponent = limited & 0x7f80'0000U;
        const vec<std::uint32_t> binade =
            exponent > smallest_normal ? exponent : vec<std::uint32_t>{} + smallest_normal;
        const vec<std::uint32_t> sum = as_uint32(opt_barrier(as_float(limited) + as_float(binade + up)));
        vec<std::uint32_t> code = (sum - (binade + (up + (smallest_normal >> shift)))) + (binade >> shift);
        if constexpr (overflow != beyond) code = code == beyond ? vec<std::uint32_t>{} + overflow : code;

        if constexpr (!Saturates) {
            vec<std::uint32_t> nan =
                vec<std::uint32_t>{} +
                (narrow::has_nan ? std::uint32_t{narrow::nan_code} : std::uint32_t{narrow::max_finite_code});
            if constexpr (Format::nans == nan_encoding::ieee)
                nan |= (magnitude >> shift) & std::uint32_t{narrow::fraction_mask};
            code = is_nan ? nan : code;
        }

        const vec<std::uint32_t> sign = (bits ^ magnitude) >> (31 - narrow::magnitude_bits);
        if constexpr (Format::nans == nan_encoding::negative_zero) {
            constexpr std::uint32_t infinite_or_finite =
                narrow::max_finite_code + (narrow::has_infinity ? 1 : 0);
            return code - 1U < infinite_or_finite ? code | sign : code;
        } else if constexpr (!narrow::has_nan && !Saturates) {
            return is_nan ? code : code | sign;
        } else {
            return code | sign;
        }
    }
}

/// Formats of at most 8 bits that narrow_finite_codes() knows.
template <class Format>
inline constexpr bool has_finite_codes =
    layout_of<Format>::width <= 8 && Format::exponent_bits < 8 && layout_of<Format>::sign_mask != 0;

/// Magnitudes of floats up to this round to finite numbers.
template <class Format>
inline constexpr std::uint32_t largest_finite_magnitude =
    (std::uint32_t{layout_of<Format>::max_finite_code} << (23 - layout_of<Format>::fraction_bits)) +
    (static_cast<std::uint32_t>(127 - Format::bias) << 23);

/// As narrow_codes(), of floats with magnitudes up to largest_finite_magnitude.
template <class Format>
MP_ALWAYS_INLINE vec<std::uint32_t> narrow_finite_codes(vec<std::uint32_t> bits,
                                                        vec<std::uint32_t> magnitude) {
    using narrow = layout_of<Format>;
    constexpr int shift = 23 - narrow::fraction_bits;
    constexpr std::uint32_t smallest_normal = static_cast<std::uint32_t>(127 + narrow::min_exponent) << 23;
    constexpr std::uint32_t up = std::uint32_t{shift} << 23;
    const vec<std::uint32_t> exponent = magnitude & 0x7f80'0000U;
    const vec<std::uint32_t> binade =
        exponent > smallest_normal ? exponent : vec<std::uint32_t>{} + smallest_normal;
    const vec<std::uint32_t> sum = as_uint32(opt_barrier(as_float(magnitude) + as_float(binade + up)));
    const vec<std::uint32_t> code = (sum - binade) + ((binade >> shift) - (up + (smallest_normal >> shift)));
    const vec<std::uint32_t> sign = (bits >> (32 - narrow::width)) & std::uint32_t{narrow::sign_mask};
    if constexpr (Format::nans == nan_encoding::negative_zero) return code != 0U ? code | sign : code;
    return code | sign;
}

/// Whether codes of 8 bits are the upper byte of those of binary16, which its instruction widens.
template <class Format>
inline constexpr bool is_upper_byte_of_binary16 =
    layout_of<Format>::width == 8 && Format::exponent_bits == 5 && Format::fraction_bits == 2 &&
    Format::bias == 15 && Format::nans == nan_encoding::ieee;

/// Formats of at most 8 bits that are binary16 scaled by a power of two: with at most 4 exponent bits, every finite
/// number, subnormal ones included, has the fraction and the exponent field of a finite binary16 number.
template <class Format>
inline constexpr bool is_scaled_binary16 =
    layout_of<Format>::width <= 8 && Format::exponent_bits <= 4 && layout_of<Format>::sign_mask != 0 &&
    layout_of<Format>::has_infinity == (Format::nans == nan_encoding::ieee);

template <class Value>
inline constexpr bool has_scaled_binary16 = false;
template <class Format>
inline constexpr bool has_scaled_binary16<basic_float<Format>> = is_scaled_binary16<Format>;

/// The binary16 codes whose values are those of such codes times 2^(bias - 15). Infinities and NaNs become those
/// of binary16.
template <class Format, class Words>
MP_ALWAYS_INLINE Words scaled_binary16_words(Words code) {
    using narrow = layout_of<Format>;
    constexpr int shift = 10 - narrow::fraction_bits;
    const Words magnitude = (code & std::uint16_t{narrow::magnitude_mask}) << shift;
    Words word = magnitude | (code & std::uint16_t{narrow::sign_mask}) << (16 - narrow::width);
    const auto replace = [&](auto is_special, std::uint16_t difference) {
        word ^= reinterpret_cast<Words>(is_special) & difference;
    };
    if constexpr (Format::nans == nan_encoding::ieee) {
        // The exponents of all ones, 15 in both; the conversion makes NaNs quiet.
        constexpr std::uint16_t first = narrow::infinity_code << shift;
        replace(magnitude >= first, 0x7c00 ^ first);
    } else if constexpr (Format::nans == nan_encoding::all_ones) {
        constexpr std::uint16_t nan = narrow::nan_code << shift;
        replace(magnitude == nan, 0x7e00 ^ nan);
    } else if constexpr (Format::nans == nan_encoding::negative_zero) {
        replace(word == std::uint16_t{0x8000}, 0x7e00 ^ 0x8000);
    }
    return word;
}

/// The values of codes, from their binary16 codes. The product with the power of two is exact, and neither factor
/// is a subnormal float.
template <class Format>
MP_ALWAYS_INLINE vec<float> widen_scaled_binary16(vec<std::uint16_t> word) {
    return widen_binary16(word) * power_of_two<float>(15 - Format::bias);
}

/// A vector of codes as they lie in memory, as floats.
template <class Format, class Codes>
MP_ALWAYS_INLINE vec<float> widen_container(Codes codes) {
    if constexpr (is_binary16<Format>) {
        return widen_binary16(codes);
    } else if constexpr (is_bfloat16<Format>) {
        return quieted(as_float(widen_to_upper(codes)));
    } else if constexpr (sizeof(storage_of<Format>) == 4) {
        return widen_codes<Format>(codes >> layout_of<Format>::container_shift);
    } else if constexpr (is_upper_byte_of_binary16<Format>) {
        return widen_binary16(widen_to_uint16(codes) << 8);
    } else if constexpr (is_scaled_binary16<Format>) {
        return widen_scaled_binary16<Format>(scaled_binary16_words<Format>(widen_to_uint16(codes)));
    } else {
        return widen_codes<Format>(widen(codes));
    }
}

/// Codes in the low bits of words as they lie in memory.
template <class Format>
MP_ALWAYS_INLINE auto container_of(vec<std::uint32_t> codes) {
    if constexpr (sizeof(storage_of<Format>) == 4) {
        return codes << layout_of<Format>::container_shift;
    } else if constexpr (sizeof(storage_of<Format>) == 2) {
        return narrow_to_uint16(codes);
    } else {
        return narrow_to_bytes(codes);
    }
}

/// Floats rounded to nearest even, as they lie in memory.
template <class Format>
MP_ALWAYS_INLINE auto narrow_to_container(vec<float> x) {
    if constexpr (is_binary16<Format>) {
        return narrow_binary16(x);
    } else {
        return container_of<Format>(narrow_codes<Format>(x));
    }
}

/// `lanes` numbers from memory as floats. NaNs of floats stay as they are, those of other formats become
/// quiet.
template <class Value>
MP_ALWAYS_INLINE vec<float> load_numbers(const Value* from) {
    if constexpr (std::is_same_v<Value, float>) {
        return load(from);
    } else if constexpr (is_half<Value>) {
        return load_binary16_as_float(codes_of(from));
    } else {
        return widen_container<typename Value::format>(load(codes_of(from)));
    }
}

/// `lanes` floats rounded to nearest even, into memory.
template <class Value>
MP_ALWAYS_INLINE void store_numbers(Value* to, vec<float> x) {
    if constexpr (std::is_same_v<Value, float>) {
        store(to, x);
    } else {
        store(codes_of(to), narrow_to_container<typename Value::format>(x));
    }
}

/// The first `count` < lanes numbers, and zeros behind them; memory beyond them is not touched.
template <class Value>
MP_ALWAYS_INLINE vec<float> load_first_numbers(const Value* from, std::size_t count) {
    if constexpr (std::is_same_v<Value, float>) {
        return load_partial(from, count);
    } else {
        return widen_container<typename Value::format>(load_partial(codes_of(from), count));
    }
}

/// The first `count` < lanes floats rounded into memory; memory beyond them is not touched.
template <class Value>
MP_ALWAYS_INLINE void store_first_numbers(Value* to, vec<float> x, std::size_t count) {
    if constexpr (std::is_same_v<Value, float>) {
        store_partial(to, x, count);
    } else {
        store_partial(codes_of(to), narrow_to_container<typename Value::format>(x), count);
    }
}

/// 2 * lanes codes of is_scaled_binary16 from memory, as floats.
template <class Format>
MP_ALWAYS_INLINE void load_scaled_binary16(const std::uint8_t* codes, vec<float>& low, vec<float>& high) {
    const uint16_lanes words = scaled_binary16_words<Format>(load_bytes_as_uint16(codes));
    vec<std::uint16_t> half[2];
    std::memcpy(half, &words, sizeof half);
    low = widen_scaled_binary16<Format>(half[0]);
    high = widen_scaled_binary16<Format>(half[1]);
}

}}}  // namespace mp::detail::MP_TARGET
