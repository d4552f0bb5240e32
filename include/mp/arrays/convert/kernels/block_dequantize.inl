// SPDX-License-Identifier: MIT
// The products of mp::dequantize on vectors, rounded to nearest even.
//
// With a power of two as the scale, a product of at most 8 bits is a multiple of 2^(-127 - 20): exact in
// float, or so large that it is infinite in float and thereby in what float is rounded to. With another scale
// and a tensor scale, a product has up to 3 + 10 + 24 bits. To float it is rounded once. On its way to
// anything narrower it is rounded to odd, after which rounding to nearest is rounding once (Boldo and
// Melquiond 2008).

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

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

/// Of 2 * lanes codes in memory, where that takes less than twice as long.
template <class Element>
inline constexpr bool has_element_pairs = false;
template <class Format>
inline constexpr bool has_element_pairs<basic_float<Format>> = is_scaled_binary16<Format>;

/// Elements times the factors of their block, as floats that are rounded to Value once.
template <class BlockScaled, class Value>
MP_ALWAYS_INLINE vec<float> scaled_values(vec<float> x, vec<float> factor, vec<float> tensor_scale) {
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
    using element = typename BlockScaled::element_type;
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
            const auto scaled = [&](vec<float> x) MP_INLINED_LAMBDA {
                x = scaled_values<BlockScaled, Value>(x, factor, tensor);
                if (is_nan) x = as_float(broadcast(0x7fc0'0000U));
                return x;
            };
            std::size_t i = first;
            if constexpr (has_element_pairs<element> && block >= 2 * lanes) {
                for (; i + 2 * lanes <= first + size; i += 2 * lanes) {
                    vec<float> low, high;
                    load_scaled_binary16<typename element::format>(codes + i, low, high);
                    store_numbers(to + i, scaled(low));
                    store_numbers(to + i + lanes, scaled(high));
                }
            }
            for (; i < first + size; i += lanes) {
                const vec<float> x = scaled(element_values<element>(widen(load(codes + i))));
                if (i + lanes <= first + size) {
                    store_numbers(to + i, x);
                } else {
                    store_first_numbers(to + i, x, first + size - i);
                }
            }
        }
        elements += part * width / 8;
        to += part;
        count -= part;
    }
}

/// The values of scales, with 2^-127 for the least power of two, and one NaN.
template <class Scale>
MP_ALWAYS_INLINE vec<float> scale_values(vec<std::uint32_t> codes) {
    vec<std::uint32_t> bits;
    if constexpr (is_power_of_two_scale<Scale>) {
        bits = codes == 0U ? vec<std::uint32_t>{} + 0x0040'0000U : codes << 23;
        bits = codes == 0xffU ? vec<std::uint32_t>{} + 0x7fc0'0000U : bits;
    } else {
        bits = as_uint32(widen_codes<typename Scale::format>(codes));
        bits = (bits & 0x7fff'ffffU) > 0x7f80'0000U ? vec<std::uint32_t>{} + 0x7fc0'0000U : bits;
    }
    return as_float(bits);
}

/// Writes to[v + i * stride], the values of `vectors` <= columns_abreast vectors that lie side by side, from the
/// beginning of a block on: codes are transposed, as bytes, and become numbers in the order in which these lie.
/// Elements and scales of a vector begin `element_stride` and `scale_stride` behind those of the one before. With
/// `streams`, whole lines of memory are written around the caches.
template <class BlockScaled, class Value>
void dequantize_columns(const std::byte* elements, std::size_t element_stride,
                        const typename BlockScaled::scale_type* scales, std::size_t scale_stride,
                        std::size_t vectors, std::size_t length, Value* to, std::ptrdiff_t stride,
                        float tensor_scale, bool streams) {
    using element = typename BlockScaled::element_type;
    using scale = typename BlockScaled::scale_type;
    constexpr std::size_t side = columns_length;
    constexpr std::size_t abreast = columns_abreast;
    constexpr std::size_t block = BlockScaled::block_size;
    constexpr int width = BlockScaled::element_width;
    static_assert(side % block == 0 && side % vector_bytes == 0);
    const default_floating_point_modes modes;
    const vec<float> tensor = as_float(broadcast(bit_cast<std::uint32_t>(tensor_scale)));
    alignas(64) std::uint8_t of_vectors[abreast][side + vector_bytes] = {};
    alignas(64) std::uint8_t of_positions[side][abreast];
    alignas(64) std::uint8_t scale_codes[side / block][abreast] = {};
    alignas(64) float factors[side / block][abreast];
    alignas(64) Value line[abreast];
    streams = streams && has_streaming_stores && vectors == abreast &&
              reinterpret_cast<std::uintptr_t>(to) % 64 == 0 &&
              stride * static_cast<std::ptrdiff_t>(sizeof(Value)) % 64 == 0;
    for (std::size_t first = 0; first < length; first += side) {
        const std::size_t part = length - first < side ? length - first : side;
        const std::size_t blocks = (part + block - 1) / block;
        for (std::size_t v = 0; v < vectors; ++v) {
            const std::byte* const from = elements + v * element_stride + first / 8 * width;
            // The usual number as a constant, of which copies are made without a call.
            if (part == side) {
                unpack_code_vectors<width>(from, of_vectors[v], side);
            } else {
                unpack_code_vectors<width>(from, of_vectors[v], part);
            }
            // Not into the first cache, in which vectors that are pages apart have the same place.
            const std::uintptr_t next = reinterpret_cast<std::uintptr_t>(from) + side / 8 * width;
            __builtin_prefetch(reinterpret_cast<const void*>(next), 0, 2);
            for (std::size_t b = 0; b < blocks; ++b) {
                scale_codes[b][v] = codes_of(scales + v * scale_stride + first / block)[b];
            }
        }
        for (std::size_t v = 0; v < vectors; v += 16) {
            for (std::size_t i = 0; i < part; i += vector_bytes) {
                byte_squares squares;
                squares.load_rows(of_vectors[v] + i, sizeof of_vectors[v]);
                squares.transpose();
                squares.store_rows(of_positions[i] + v, abreast);
            }
        }
        for (std::size_t b = 0; b < blocks; ++b) {
            vec<std::uint32_t> largest = {};
            for (std::size_t v = 0; v < abreast; v += lanes) {
                const vec<float> factor = scale_values<scale>(widen(load(scale_codes[b] + v)));
                store(factors[b] + v, factor);
                const vec<std::uint32_t> magnitude = as_uint32(factor) & 0x7fff'ffffU;
                largest = magnitude > largest ? magnitude : largest;
            }
            const bool any_nan = any(largest > 0x7f80'0000U);
            const std::size_t end = part - b * block < block ? part : (b + 1) * block;
            for (std::size_t i = b * block; i < end; ++i) {
                Value* const row = to + static_cast<std::ptrdiff_t>(first + i) * stride;
                const std::uint8_t* const row_codes = of_positions[i];
                Value* const target = streams ? line : row;
                const auto scaled = [&](vec<float> x, std::size_t v) MP_INLINED_LAMBDA {
                    const vec<float> factor = load(factors[b] + v);
                    const vec<float> y = scaled_values<BlockScaled, Value>(x, factor, tensor);
                    if (!any_nan) [[likely]]
                        return y;
                    const auto is_nan = (as_uint32(factor) & 0x7fff'ffffU) > 0x7f80'0000U;
                    return as_float(is_nan ? as_uint32(factor) : as_uint32(y));
                };
                std::size_t v = 0;
                if constexpr (has_element_pairs<element>) {
                    for (; v + 2 * lanes <= vectors; v += 2 * lanes) {
                        vec<float> low, high;
                        load_scaled_binary16<typename element::format>(row_codes + v, low, high);
                        store_numbers(target + v, scaled(low, v));
                        store_numbers(target + v + lanes, scaled(high, v + lanes));
                    }
                }
                for (; v < vectors; v += lanes) {
                    const vec<float> x = scaled(element_values<element>(widen(load(row_codes + v))), v);
                    if (v + lanes <= vectors) {
                        store_numbers(target + v, x);
                    } else {
                        store_first_numbers(target + v, x, vectors - v);
                    }
                }
#if MP_X86_TARGETS
                if (streams) stream_lines(row, line, sizeof line);
#endif
            }
        }
    }
    if (streams) finish_streaming();
}

}}}  // namespace mp::detail::MP_TARGET
