// SPDX-License-Identifier: MIT
// widen and narrow_to_word of <mp/format/binary_conversion.hpp>, where their proofs are, on vectors: the same
// steps with ?: for select. They need the default modes (default_floating_point_modes) for numbers that are
// subnormal in the narrow format.

namespace mp::detail::MP_TARGET {

/// The values of codes, exactly; NaNs become quiet and keep sign and payload.
template <class Format>
MP_ALWAYS_INLINE floats widen_codes(words code) {
    using narrow = layout_of<Format>;
    constexpr int shift = 23 - narrow::fraction_bits;
    constexpr std::uint32_t quiet = 0x0040'0000;
    if constexpr (is_binary16<Format>) {
        return widen_binary16(narrow_to_halfwords(code));
    } else if constexpr (Format::exponent_bits == 8) {
        const words bits = code << shift;
        return as_floats((bits & 0x7fff'ffffU) > 0x7f80'0000U ? bits | quiet : bits);
    } else {
        constexpr std::uint32_t bias_difference = static_cast<std::uint32_t>(127 - Format::bias) << 23;
        const words magnitude = code & std::uint32_t{narrow::magnitude_mask};
        words result = (magnitude << shift) + bias_difference;
        if constexpr (Format::nans == nan_encoding::ieee) {
            constexpr std::uint32_t first = narrow::infinity_code;
            constexpr std::uint32_t missing = 0x7f80'0000U - ((first << shift) + bias_difference);
            result = magnitude >= first ? result + missing : result;
            result = magnitude > first ? result | quiet : result;
        } else {
            if constexpr (narrow::has_infinity)
                result = magnitude == std::uint32_t{narrow::infinity_code} ? words{} + 0x7f80'0000U : result;
            if constexpr (Format::nans == nan_encoding::all_ones)
                result = magnitude == std::uint32_t{narrow::nan_code} ? words{} + 0x7fc0'0000U : result;
        }
        constexpr float unit = power_of_two<float>(narrow::quantum_exponent + 23);
        constexpr auto unit_bits = bit_cast<std::uint32_t>(unit);
        const words subnormal = as_words(as_floats(magnitude | unit_bits) - unit);
        result = magnitude < std::uint32_t{narrow::hidden_bit} ? subnormal : result;
        const words sign = (code & std::uint32_t{narrow::sign_mask}) << (32 - narrow::width);
        if constexpr (Format::nans == nan_encoding::negative_zero) {
            return as_floats(code == std::uint32_t{narrow::nan_code} ? words{} + 0x7fc0'0000U
                                                                     : result | sign);
        } else {
            return as_floats(result | sign);
        }
    }
}

/// Floats rounded to nearest even once, overflow as saturation::none; the codes are in the low bits.
template <class Format>
MP_ALWAYS_INLINE words narrow_codes(floats x) {
    using narrow = layout_of<Format>;
    constexpr int shift = 23 - narrow::fraction_bits;
    constexpr std::uint32_t half_minus_one = (std::uint32_t{1} << (shift - 1)) - 1;
    const words bits = as_words(x);
    const words magnitude = bits & 0x7fff'ffffU;
    const auto is_nan = magnitude > 0x7f80'0000U;
    if constexpr (is_binary16<Format>) {
        return widen(narrow_binary16(x));
    } else if constexpr (Format::exponent_bits == 8) {
        const words kept = bits >> shift;
        const words rounded_code = (bits + half_minus_one + (kept & 1U)) >> shift;
        return is_nan ? kept | std::uint32_t{narrow::quiet_bit} : rounded_code;
    } else {
        constexpr std::uint32_t bias_difference = static_cast<std::uint32_t>(127 - Format::bias) << 23;
        constexpr bool can_overflow = narrow::has_infinity || narrow::has_nan;
        constexpr std::uint32_t beyond = std::uint32_t{narrow::max_finite_code} + (can_overflow ? 1 : 0);
        constexpr std::uint32_t overflow = narrow::has_infinity ? std::uint32_t{narrow::infinity_code}
                                           : narrow::has_nan    ? std::uint32_t{narrow::nan_code}
                                                                : beyond;
        constexpr std::uint32_t largest = (beyond << shift) + bias_difference;
        const words limited = magnitude < largest ? magnitude : words{} + largest;
        words code = (limited - bias_difference + half_minus_one + ((magnitude >> shift) & 1U)) >> shift;
        if constexpr (overflow != beyond) code = code == beyond ? words{} + overflow : code;

        constexpr float unit = power_of_two<float>(narrow::quantum_exponent + 23);
        constexpr std::uint32_t smallest_normal = static_cast<std::uint32_t>(127 + narrow::min_exponent)
                                                  << 23;
        const words subnormal = as_words(as_floats(magnitude) + unit) - bit_cast<std::uint32_t>(unit);
        code = magnitude < smallest_normal ? subnormal : code;

        words nan = words{} + (narrow::has_nan ? std::uint32_t{narrow::nan_code}
                                               : std::uint32_t{narrow::max_finite_code});
        if constexpr (Format::nans == nan_encoding::ieee)
            nan |= (magnitude >> shift) & std::uint32_t{narrow::fraction_mask};
        code = is_nan ? nan : code;

        const words sign = (bits ^ magnitude) >> (31 - narrow::magnitude_bits);
        if constexpr (Format::nans == nan_encoding::negative_zero) {
            constexpr std::uint32_t infinite_or_finite =
                narrow::max_finite_code + (narrow::has_infinity ? 1 : 0);
            return code - 1U < infinite_or_finite ? code | sign : code;
        } else if constexpr (!narrow::has_nan) {
            return is_nan ? code : code | sign;
        } else {
            return code | sign;
        }
    }
}

/// `lanes` numbers from memory as floats. NaNs of floats stay as they are, those of other formats become
/// quiet.
template <class Value>
MP_ALWAYS_INLINE floats load_numbers(const Value* from) {
    if constexpr (std::is_same_v<Value, float>) {
        return load(from);
    } else {
        using format = typename Value::format;
        if constexpr (sizeof(Value) == 1) {
            return widen_codes<format>(load_widened(codes_of(from)));
        } else if constexpr (is_binary16<format>) {
            return widen_binary16(load(codes_of(from)));
        } else if constexpr (sizeof(Value) == 4) {
            return widen_codes<format>(load(codes_of(from)) >> layout_of<format>::container_shift);
        } else {
            return widen_codes<format>(widen(load(codes_of(from))));
        }
    }
}

/// `lanes` floats rounded to nearest even, into memory.
template <class Value>
MP_ALWAYS_INLINE void store_numbers(Value* to, floats x) {
    if constexpr (std::is_same_v<Value, float>) {
        store(to, x);
    } else {
        using format = typename Value::format;
        if constexpr (is_binary16<format>) {
            store(codes_of(to), narrow_binary16(x));
        } else if constexpr (sizeof(Value) == 4) {
            store(codes_of(to), narrow_codes<format>(x) << layout_of<format>::container_shift);
        } else if constexpr (sizeof(Value) == 2) {
            store(codes_of(to), narrow_to_halfwords(narrow_codes<format>(x)));
        } else {
            store_lowest_bytes(codes_of(to), narrow_codes<format>(x));
        }
    }
}

/// The first `count` < lanes numbers, and zeros behind them; memory beyond them is not touched.
template <class Value>
MP_ALWAYS_INLINE floats load_first_numbers(const Value* from, std::size_t count) {
    alignas(64) unsigned char copy[lanes * sizeof(Value)] = {};
    std::memcpy(copy, from, count * sizeof(Value));
    return load_numbers(reinterpret_cast<const Value*>(copy));
}

/// The first `count` < lanes floats rounded into memory; memory beyond them is not touched.
template <class Value>
MP_ALWAYS_INLINE void store_first_numbers(Value* to, floats x, std::size_t count) {
    alignas(64) unsigned char copy[lanes * sizeof(Value)];
    store_numbers(reinterpret_cast<Value*>(copy), x);
    std::memcpy(to, copy, count * sizeof(Value));
}

}  // namespace mp::detail::MP_TARGET
