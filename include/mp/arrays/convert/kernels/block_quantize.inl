// SPDX-License-Identifier: MIT
// block_quantizer of <mp/arrays/convert/quantize.hpp> on vectors, for rounding::nearest_even with
// saturation::finite.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// Finite floats rounded to nearest even, what is too large becoming the largest element. The codes are in
/// the low bits.
template <class Element>
MP_ALWAYS_INLINE vec<std::uint32_t> element_codes(vec<float> x) {
    using format = coding_format<Element>;
    if constexpr (std::is_same_v<Element, mx_int8>) {
        constexpr auto largest = static_cast<float>(to_double<format>(layout_of<format>::max_finite_code));
        constexpr auto limit = bit_cast<std::uint32_t>(largest);
        const vec<std::uint32_t> magnitude = as_uint32(x) & 0x7fff'ffffU;
        const vec<std::uint32_t> limited = magnitude < limit ? magnitude : vec<std::uint32_t>{} + limit;
        // The addition rounds to a multiple of 2^-6; what it leaves in the low bits is in two's complement.
        constexpr float unit = 0x1.8p17f;
        return as_uint32(as_float(limited | (as_uint32(x) & 0x8000'0000U)) + unit) & 0xffU;
    } else {
        return narrow_codes<format, true>(x);
    }
}

/// The codes of a block whose scale is a power of two.
///
/// value / scale is exact, or far below half the quantum of the elements.
template <class Element, int Block, class Value>
MP_ALWAYS_INLINE void encode_scaled(const Value* from, std::uint32_t scale_code, std::uint8_t* codes) {
    const vec<float> factor = broadcast(power_of_two_scale(254 - scale_code));
    for (std::size_t i = 0; i < Block; i += lanes) {
        store(codes + i,
              narrow_to_bytes(element_codes<Element>(opt_barrier(load_numbers(from + i) * factor))));
    }
}

/// The codes of a block with another scale: how many midpoints between elements, times scale and tensor
/// scale, each magnitude lies beyond. On a midpoint it goes to the even code.
///
/// The products are exact in double, with at most 4 + 10 + 24 bits.
template <class Element, int Block, class Value>
MP_ALWAYS_INLINE void encode_quotients(const Value* from, double divisor, std::uint8_t* codes) {
    using format = coding_format<Element>;
    constexpr element_midpoints<format> midpoints;
    // The code below midpoint k is k: from an odd one, the midpoint goes up.
    constexpr std::uint64_t odd_codes[8] = {0, 1, 0, 1, 0, 1, 0, 1};
    uint64_lanes odd;
    std::memcpy(&odd, odd_codes, sizeof odd);
    constexpr std::size_t most = lanes < 8 ? 8 : lanes;
    std::uint32_t thresholds[most];
    for (std::size_t first = 0; first < most; first += lanes) {
        uint64_lanes cut[2];
        for (std::size_t i = 0; i < 2; ++i) {
            doubles middle;
            std::memcpy(&middle, midpoints.values + (first + i * lanes / 2) % 8, sizeof middle);
            cut[i] = rounding_threshold(reinterpret_cast<uint64_lanes>(middle * divisor), odd);
        }
        store(thresholds + first, low_halves(cut[0], cut[1]));
    }
    for (std::size_t i = 0; i < Block; i += lanes) {
        const vec<std::uint32_t> bits = as_uint32(load_numbers(from + i));
        const auto magnitude = reinterpret_cast<vec<std::int32_t>>(bits & 0x7fff'ffffU);
        vec<std::int32_t> code = {};
        for (int k = 0; k < midpoints.count; ++k) {
            code -= magnitude > static_cast<std::int32_t>(thresholds[k]);
        }
        const vec<std::uint32_t> sign = (bits & 0x8000'0000U) >> (31 - layout_of<format>::magnitude_bits);
        if constexpr (format::nans == nan_encoding::negative_zero) {
            store(codes + i, narrow_to_bytes(code == 0 ? vec<std::uint32_t>{} : as_uint32(code) | sign));
        } else {
            store(codes + i, narrow_to_bytes(as_uint32(code) | sign));
        }
    }
}

/// The codes of a block whose scale is zero: zeros with the signs of the values.
template <class Element, int Block, class Value>
MP_ALWAYS_INLINE void encode_zeros(const Value* from, std::uint8_t* codes) {
    using format = coding_format<Element>;
    for (std::size_t i = 0; i < Block; i += lanes) {
        const vec<std::uint32_t> sign = as_uint32(load_numbers(from + i)) & 0x8000'0000U;
        const vec<std::uint32_t> code = sign >> (31 - layout_of<format>::magnitude_bits);
        store(codes + i,
              narrow_to_bytes(format::nans == nan_encoding::negative_zero ? vec<std::uint32_t>{} : code));
    }
}

/// Quantises whole blocks that lie one after the other, up to the first one with a value or a scale that is not
/// finite, and returns their number. quantizes_with(tensor_scale).
template <class BlockScaled, class Value>
std::size_t quantize_blocks(const Value* from, std::size_t blocks, typename BlockScaled::scale_type* scales,
                            std::byte* elements, block_scaling scaling, float tensor_scale) {
    using element = typename BlockScaled::element_type;
    using scale = typename BlockScaled::scale_type;
    constexpr int block = BlockScaled::block_size;
    constexpr int width = BlockScaled::element_width;
    const default_floating_point_modes modes;
    std::uint8_t codes[lanes * block];
    std::uint32_t magnitudes[lanes];
    std::uint8_t scale_codes[lanes] = {};
    for (std::size_t done = 0; done < blocks;) {
        const std::size_t group = blocks - done < lanes ? blocks - done : lanes;
        const vec<std::uint32_t> largest = block_magnitudes<block>(from, group);
        store(magnitudes, largest);
        std::size_t finite = 0;
        while (finite < group && magnitudes[finite] < 0x7f80'0000U) ++finite;
        if (scaling.given) {
            std::memcpy(scale_codes, codes_of(scales + done), group);
            for (std::size_t b = 0; b < finite; ++b) {
                if (scale_codes[b] == layout_of<typename scale::format>::nan_code) finite = b;
            }
        }
        if constexpr (is_power_of_two_scale<scale>) {
            if (!scaling.given) {
                store(scale_codes,
                      narrow_to_bytes(scale_exponent_codes<coding_format<element>>(largest, scaling.rule)));
            }
            for (std::size_t b = 0; b < finite; ++b) {
                encode_scaled<element, block>(from + b * block, scale_codes[b], codes + b * block);
            }
        } else {
            using scale_format = typename scale::format;
            vec<std::uint32_t> code;
            if (scaling.given) {
                code = widen(load(scale_codes));
            } else {
                code = scale_quotient_codes<coding_format<element>, scale_format>(largest, tensor_scale,
                                                                                  scaling);
                store(scale_codes, narrow_to_bytes(code));
            }
            float values[lanes];
            store(values, widen_codes<scale_format>(code));
            for (std::size_t b = 0; b < finite; ++b) {
                const double divisor = static_cast<double>(values[b]) * static_cast<double>(tensor_scale);
                if (scaling.smallest == 0 && !(divisor > 0)) {
                    encode_zeros<element, block>(from + b * block, codes + b * block);
                    continue;
                }
                encode_quotients<element, block>(from + b * block, divisor, codes + b * block);
            }
        }
        std::memcpy(codes_of(scales + done), scale_codes, finite);
        pack_code_vectors<width>(codes, elements, finite * block);
        done += finite;
        if (finite < group) return done;
        from += group * block;
        elements += group * block * width / 8;
    }
    return blocks;
}

/// The magnitude codes of finite floats, 0 for others.
MP_ALWAYS_INLINE vec<std::int32_t> finite_magnitudes(vec<float> x) {
    const auto magnitude = reinterpret_cast<vec<std::int32_t>>(as_uint32(x) & 0x7fff'ffffU);
    return magnitude < 0x7f80'0000 ? magnitude : vec<std::int32_t>{};
}

/// The largest magnitude code of a finite float among `count` numbers.
template <class Value>
std::uint32_t largest_finite_of(const Value* from, std::size_t count) {
    const default_floating_point_modes modes;
    vec<std::int32_t> largest = {};
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes)
        largest = larger(largest, finite_magnitudes(load_numbers(from + i)));
    if (i != count) largest = larger(largest, finite_magnitudes(load_first_numbers(from + i, count - i)));
    std::int32_t result = 0;
    for (std::size_t k = 0; k < lanes; ++k) result = largest[k] > result ? largest[k] : result;
    return static_cast<std::uint32_t>(result);
}

}}}  // namespace mp::detail::MP_TARGET
