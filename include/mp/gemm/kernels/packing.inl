// SPDX-License-Identifier: MIT
// Packing by vectors: blocks of A and panels of B from any number format and layout. See <mp/gemm/packing.hpp>
// for what they look like.

namespace mp::detail::MP_TARGET {

inline constexpr auto lane_count = static_cast<std::ptrdiff_t>(lanes);

/// `lanes` factors as floats.
template <class Value>
MP_ALWAYS_INLINE floats load_factors(const Value* from) {
    if constexpr (std::is_same_v<Value, std::int8_t>) {
        typedef std::int8_t signed_bytes __attribute__((vector_size(lanes)));  // NOLINT(modernize-use-using)
        signed_bytes x;
        std::memcpy(&x, from, sizeof x);
        return __builtin_convertvector(x, floats);
    } else if constexpr (has_number_vectors<Value>) {
        return load_numbers(from);
    } else {
        float values[lanes];
        for (std::size_t i = 0; i < lanes; ++i) values[i] = static_cast<float>(from[i]);
        return load(values);
    }
}

/// The first `count` of them, at most `lanes`, and zeros.
template <class Value>
MP_ALWAYS_INLINE floats load_factors(const Value* from, std::ptrdiff_t count) {
    if (count >= lane_count) return load_factors(from);
    if (count <= 0) return floats{};
    float values[lanes] = {};
    for (std::ptrdiff_t i = 0; i < count; ++i) values[i] = static_cast<float>(from[i]);
    return load(values);
}

/// Floats that bfloat16 holds, as its codes.
MP_ALWAYS_INLINE halfwords bfloat16_codes(floats x) {
    return narrow_to_halfwords(as_words(x) >> 16);
}

/// Two steps of such floats side by side, the first in the lower half.
MP_ALWAYS_INLINE words bfloat16_pairs(floats first, floats second) {
    return as_words(first) >> 16 | (as_words(second) & 0xffff'0000U);
}

/// The lanes of two vectors in turn: of their lower and of their upper halves.
MP_ALWAYS_INLINE floats interleave_lower(floats a, floats b) {
#if MP_TARGET_LEVEL >= MP_LEVEL_AVX512
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#else
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#endif
}
MP_ALWAYS_INLINE floats interleave_upper(floats a, floats b) {
#if MP_TARGET_LEVEL >= MP_LEVEL_AVX512
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#else
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#endif
}

/// A square of lanes x lanes, and its transposition: interleaving row i with row i + lanes / 2 rotates the bits of
/// the place (row, lane) by one, so that after log2(lanes) rounds rows and lanes have changed places.
struct float_square {
    floats row[lanes];

    template <int... Index>
    MP_ALWAYS_INLINE void interleave(std::integer_sequence<int, Index...> /*half*/) {
        constexpr int half = static_cast<int>(lanes) / 2;
        const floats mixed[lanes] = {
            (Index % 2 == 0 ? interleave_lower(row[Index / 2], row[Index / 2 + half])
                            : interleave_upper(row[Index / 2], row[Index / 2 + half]))...};
        ((row[Index] = mixed[Index]), ...);
    }
    MP_ALWAYS_INLINE void transpose() {
        using all = std::make_integer_sequence<int, static_cast<int>(lanes)>;
        interleave(all{});
        interleave(all{});
        interleave(all{});
        if constexpr (lanes == 16) interleave(all{});
    }

    /// row[i] = the first `wide` factors at from + i * stride, for i < high; zeros elsewhere.
    template <class Value, int... Index>
    MP_ALWAYS_INLINE void read_all(const Value* from, std::ptrdiff_t stride,
                                   std::integer_sequence<int, Index...> /*all*/) {
        ((row[Index] = load_factors(from + Index * stride)), ...);
    }
    template <class Value>
    MP_ALWAYS_INLINE void read(const Value* from, std::ptrdiff_t stride, std::ptrdiff_t high,
                               std::ptrdiff_t wide) {
        if (high >= lane_count && wide >= lane_count) {
            read_all(from, stride, std::make_integer_sequence<int, static_cast<int>(lanes)>{});
            return;
        }
        for (std::ptrdiff_t i = 0; i < lane_count; ++i) {
            row[i] = i < high ? load_factors(from + i * stride, wide) : floats{};
        }
    }
};

/// `lanes` elements of a row of A from floats.
template <panel_element Element>
MP_ALWAYS_INLINE void store_in_row(std::byte* row, std::ptrdiff_t k, floats x) {
    if constexpr (Element == panel_element::float32) {
        store(reinterpret_cast<float*>(row) + k, x);
    } else {
        store(reinterpret_cast<std::uint16_t*>(row) + k, bfloat16_codes(x));
    }
}

template <class Value, panel_element Element>
void pack_rows(const product_factor_source& source, const factor_block& block, std::byte* to) {
    const Value* const from = source.at<Value>(block);
    for (std::ptrdiff_t i = block.lines; i < block.padded_lines; ++i) {
        std::memset(to + i * a_row_bytes, 0, a_row_bytes);
    }
    if (source.depth_stride == 1) {
        for (std::ptrdiff_t i = 0; i < block.lines; ++i) {
            const Value* const line = from + i * source.line_stride;
            std::byte* const row = to + i * a_row_bytes;
            std::ptrdiff_t k = 0;
            for (; k + lane_count <= block.depth; k += lane_count) store_in_row<Element>(row, k, load_factors(line + k));
            for (; k < block.padded_depth; k += lane_count) {
                store_in_row<Element>(row, k, load_factors(line + k, block.depth - k));
            }
        }
        return;
    }
    for (std::ptrdiff_t i = 0; i < block.lines; i += lane_count) {
        const std::ptrdiff_t lines = std::min(lane_count, block.lines - i);
        for (std::ptrdiff_t k = 0; k < block.padded_depth; k += lane_count) {
            float_square square;
            square.read(from + i + k * source.depth_stride, source.depth_stride, block.depth - k, lines);
            square.transpose();
            for (std::ptrdiff_t j = 0; j < lines; ++j) {
                store_in_row<Element>(to + (i + j) * a_row_bytes, k, square.row[j]);
            }
        }
    }
}

/// `lanes` columns of one step of a panel, or of two that stand together.
template <panel_element Element>
MP_ALWAYS_INLINE void store_in_panel(std::byte* to, floats first, floats second) {
    if constexpr (Element == panel_element::float32) {
        store(reinterpret_cast<float*>(to), first);
    } else if constexpr (Element == panel_element::binary16) {
        store(reinterpret_cast<std::uint16_t*>(to), narrow_binary16(first));
    } else {
        store(reinterpret_cast<std::uint32_t*>(to), bfloat16_pairs(first, second));
    }
}

template <class Value>
void pack_panels(const product_factor_source& source, const factor_block& block, std::byte* to,
                 std::ptrdiff_t panel_bytes) {
    constexpr panel_element element = panel_element_of<Value>();
    constexpr std::ptrdiff_t together = steps_together(element);
    constexpr std::ptrdiff_t column_bytes = bytes_together(element);
    constexpr std::ptrdiff_t step_bytes = panel_width * column_bytes;
    const Value* const from = source.at<Value>(block);
    if (source.line_stride == 1) {
        // As many panels side by side as make a run that reads memory at full speed, and no more, so that what is
        // written stays in the nearest cache.
        constexpr std::ptrdiff_t run = 8 * panel_width;
        for (std::ptrdiff_t first = 0; first < block.lines; first += run) {
            const std::ptrdiff_t last = std::min(first + run, block.padded_lines);
            for (std::ptrdiff_t k = 0; k < block.padded_depth; k += together) {
                const Value* const even = from + k * source.depth_stride;
                const bool has_even = k < block.depth;
                const bool has_odd = together == 2 && k + 1 < block.depth;
                for (std::ptrdiff_t j = first; j < last; j += lane_count) {
                    const std::ptrdiff_t left = block.lines - j;
                    const floats x = has_even ? load_factors(even + j, left) : floats{};
                    const floats y = has_odd ? load_factors(even + source.depth_stride + j, left) : floats{};
                    store_in_panel<element>(to + j / panel_width * panel_bytes + k / together * step_bytes +
                                                j % panel_width * column_bytes,
                                            x, y);
                }
            }
        }
        return;
    }
    for (std::ptrdiff_t j = 0; j < block.padded_lines; j += lane_count) {
        std::byte* const column = to + j / panel_width * panel_bytes + j % panel_width * column_bytes;
        for (std::ptrdiff_t k = 0; k < block.padded_depth; k += lane_count) {
            float_square square;
            square.read(from + j * source.line_stride + k, source.line_stride, block.lines - j, block.depth - k);
            square.transpose();
            const std::ptrdiff_t steps = std::min(lane_count, block.padded_depth - k);
            for (std::ptrdiff_t i = 0; i < steps; i += together) {
                store_in_panel<element>(column + (k + i) / together * step_bytes, square.row[i],
                                        square.row[i + together - 1]);
            }
        }
    }
}

}  // namespace mp::detail::MP_TARGET
