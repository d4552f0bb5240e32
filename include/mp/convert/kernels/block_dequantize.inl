// SPDX-License-Identifier: MIT
// The products of mp::dequantize on vectors, rounded to nearest even.
//
// With a power of two as the scale, a product of at most 8 bits is a multiple of 2^(-127 - 20): exact in
// float, or so large that it is infinite in float and thereby in what float is rounded to. With another scale
// and a tensor scale, a product has up to 3 + 10 + 24 bits. To float it is rounded once. On its way to
// anything narrower it is rounded to odd, after which rounding to nearest is rounding once (Boldo and
// Melquiond 2008).

namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET {

/// The values of elements, exactly.
template <class Element>
MP_ALWAYS_INLINE vec<float> element_values(vec<std::uint32_t> codes) {
    if constexpr (std::is_same_v<Element, mx_int8>) {
        const vec<std::int32_t> count = reinterpret_cast<vec<std::int32_t>>(codes << 24) >> 24;
        return __builtin_convertvector(count, vec<float>) * 0x1p-6f;
    } else {
        return widen_codes<typename Element::format>(codes);
    }
}

/// a b to 24 bits, with the last one set if that loses anything. The product and what is lost are normal
/// floats, or zero.
MP_ALWAYS_INLINE vec<float> multiply_to_odd(vec<float> a, vec<float> b) {
    const vec<float> product = opt_barrier(a * b);
    const vec<std::uint32_t> bits = as_uint32(product);
    const vec<std::uint32_t> error = as_uint32(fused_multiply_add(a, b, as_float(bits ^ 0x8000'0000U)));
    // Toward zero if the product was rounded away from it, else away: from an even code to an odd one.
    const vec<std::uint32_t> odd = ((bits ^ error) & 0x8000'0000U) != 0U ? bits - 1U : bits + 1U;
    const auto is_changed = ((error & 0x7fff'ffffU) != 0U) & ((bits & 1U) == 0U);
    return as_float(is_changed ? odd : bits);
}

/// The values of `lanes` elements times the factors of their block, as floats that are rounded to Value once.
template <class BlockScaled, class Value>
MP_ALWAYS_INLINE vec<float> scaled_values(vec<std::uint32_t> codes, vec<float> factor,
                                          vec<float> tensor_scale) {
    const vec<float> x = element_values<typename BlockScaled::element_type>(codes);
    if constexpr (!BlockScaled::has_tensor_scale) {
        return opt_barrier(x * factor);
    } else if constexpr (std::is_same_v<Value, float>) {
        return opt_barrier(opt_barrier(x * factor) * tensor_scale);
    } else {
        return multiply_to_odd(opt_barrier(x * factor), tensor_scale);
    }
}

/// The values of `count` elements from the beginning of a block on. dequantizes_with(tensor_scale).
template <class BlockScaled, class Value>
void dequantize_blocks(const std::byte* elements, const typename BlockScaled::scale_type* scales,
                       std::size_t count, Value* to, float tensor_scale) {
    using scale = typename BlockScaled::scale_type;
    constexpr std::size_t block = BlockScaled::block_size;
    constexpr int width = BlockScaled::element_width;
    static_assert(codes_at_a_time % block == 0);
    const default_floating_point_modes modes;
    const vec<float> tensor = as_float(broadcast(bit_cast<std::uint32_t>(tensor_scale)));
    std::uint8_t codes[codes_at_a_time + vector_bytes];
    while (count != 0) {
        const std::size_t part = count < codes_at_a_time ? count : codes_at_a_time;
        unpack_code_vectors<width>(elements, codes, part);
        for (std::size_t first = 0; first < part; first += block, ++scales) {
            const std::size_t size = part - first < block ? part - first : block;
            const std::uint32_t code = codes_of(scales)[0];
            vec<float> factor;
            if constexpr (is_power_of_two_scale<scale>) {
                factor = broadcast(power_of_two_scale(code));
            } else {
                factor = widen_codes<typename scale::format>(broadcast(code));
            }
            // All values are NaN, the same one.
            const bool is_nan = isnan(*scales);
            for (std::size_t i = 0; i < size; i += lanes) {
                vec<float> x =
                    scaled_values<BlockScaled, Value>(widen(load(codes + first + i)), factor, tensor);
                if (is_nan) x = as_float(broadcast(0x7fc0'0000U));
                if (i + lanes <= size) {
                    store_numbers(to + first + i, x);
                } else {
                    store_first_numbers(to + first + i, x, size - i);
                }
            }
        }
        elements += part * width / 8;
        to += part;
        count -= part;
    }
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET
