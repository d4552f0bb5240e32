// SPDX-License-Identifier: MIT
// Packing by vectors: blocks of A and panels of B from any number format and layout. See
// <mp/linalg/gemm/packing.hpp> for what they look like.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

inline constexpr auto lane_count = static_cast<std::ptrdiff_t>(lanes);

/// `lanes` operands as floats.
template <class Value>
MP_ALWAYS_INLINE vec<float> load_operands(const Value* from) {
    if constexpr (std::is_same_v<Value, std::int8_t>) {
        // Sign-extends: (x ^ 0x80) - 0x80.
        const vec<std::uint32_t> code = widen(load(reinterpret_cast<const std::uint8_t*>(from)));
        return __builtin_convertvector(reinterpret_cast<vec<std::int32_t>>((code ^ 0x80U) - 0x80U),
                                       vec<float>);
    } else if constexpr (holds_bfloat16<Value>) {
        // A NaN may stay as it is: products make it quiet.
        return as_float(widen_to_upper(load(codes_of(from))));
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
MP_ALWAYS_INLINE vec<float> load_operands(const Value* from, std::ptrdiff_t count) {
    if (count >= lane_count) return load_operands(from);
    if (count <= 0) return vec<float>{};
    const auto n = static_cast<std::size_t>(count);
    // By mask where there is one, since a vector that went through memory would wait for its bytes to get there.
    if constexpr (holds_bfloat16<Value>) {
        return as_float(widen_to_upper(load_partial(codes_of(from), n)));
    } else if constexpr (has_number_vectors<Value>) {
        return load_first_numbers(from, n);
    } else {
        Value values[lanes] = {};
        std::memcpy(static_cast<void*>(values), from, n * sizeof(Value));
        return load_operands(values);
    }
}

/// Floats that bfloat16 holds, as its codes.
MP_ALWAYS_INLINE vec<std::uint16_t> bfloat16_codes(vec<float> x) {
    return narrow_to_uint16(as_uint32(x) >> 16);
}

/// Two steps of such floats side by side, the first in the lower half.
MP_ALWAYS_INLINE vec<std::uint32_t> bfloat16_vnni2s(vec<float> first, vec<float> second) {
    return as_uint32(first) >> 16 | (as_uint32(second) & 0xffff'0000U);
}

/// Two steps of bfloat16 side by side, the first in the lower half.
MP_ALWAYS_INLINE vec<std::uint32_t> pairs_of(vec<std::uint16_t> first, vec<std::uint16_t> second) {
    return widen(first) | widen(second) << 16;
}

/// A square that is read from operands.
struct float_square : vec_square {
    template <class Value, int... Index>
    MP_ALWAYS_INLINE void read_all(const Value* from, std::ptrdiff_t stride,
                                   std::integer_sequence<int, Index...> /*all*/) {
        ((row[Index] = load_operands(from + Index * stride)), ...);
    }
    /// As read_all(), with zeros from row `high` on. The barriers keep g++ from jump threading: knowing which rows are
    /// zero, it would clone the transposition for every height, a quarter of the code of a product.
    template <class Value, int... Index>
    MP_ALWAYS_INLINE void read_first(const Value* from, std::ptrdiff_t stride, std::ptrdiff_t high,
                                     std::integer_sequence<int, Index...> /*all*/) {
        ((row[Index] = Index < high ? load_operands(from + Index * stride) : vec<float>{}), ...);
        ((row[Index] = opt_barrier(row[Index])), ...);
    }
    template <int... Index>
    MP_ALWAYS_INLINE void read_floats(const float* from, std::integer_sequence<int, Index...> /*all*/) {
        ((row[Index] = load(from + Index * lane_count)), ...);
    }
    /// As read_all(), for pairs of bfloat16, as floats' worth of bits.
    MP_ALWAYS_INLINE void read_pairs(const std::uint16_t* from, std::ptrdiff_t stride) {
        for (std::ptrdiff_t i = 0; i < lane_count; ++i) {
            std::memcpy(&row[i], from + i * stride, sizeof(vec<float>));
        }
    }
    /// row[i] = step 2 i and step 2 i + 1 of bfloat16 side by side, steps `stride` apart.
    MP_ALWAYS_INLINE void pair(const std::uint16_t* from, std::ptrdiff_t stride) {
        for (std::ptrdiff_t i = 0; i < lane_count; ++i) {
            const std::uint16_t* const even = from + 2 * i * stride;
            row[i] = as_float(pairs_of(load(even), load(even + stride)));
        }
    }
    /// row[i] = the first `wide` operands at from + i * stride, for i < high; zeros elsewhere.
    template <class Value>
    MP_ALWAYS_INLINE void read(const Value* from, std::ptrdiff_t stride, std::ptrdiff_t high,
                               std::ptrdiff_t wide) {
        constexpr auto every = std::make_integer_sequence<int, static_cast<int>(lanes)>{};
        if (high >= lane_count && wide >= lane_count) return read_all(from, stride, every);
        if (wide >= lane_count) return read_first(from, stride, high, every);
        // Through memory, in a loop.
        alignas(64) float rows[lanes * lanes] = {};
        const std::ptrdiff_t height = (std::min)(high, lane_count);
#pragma GCC unroll 1
        for (std::ptrdiff_t i = 0; i < height; ++i) {
            store(rows + i * lane_count, load_operands(from + i * stride, wide));
        }
        read_floats(rows, every);
    }
};

/// Address of element k of a row of A.
template <a_layout Layout>
MP_ALWAYS_INLINE std::byte* address_in_block(std::byte* block, std::ptrdiff_t row, std::ptrdiff_t p,
                                             std::ptrdiff_t padded_k, std::ptrdiff_t element_size) {
    if constexpr (Layout == a_layout::rows) {
        return block + row * a_row_bytes + p * element_size;
    } else {
        const std::ptrdiff_t bytes_along = p * element_size;
        return block + row / 32 * (32 * padded_k * element_size) + bytes_along / 64 * 2048 + row % 32 * 64 +
               bytes_along % 64;
    }
}

/// `lanes` elements of a row of A from floats.
template <panel_element Element>
MP_ALWAYS_INLINE void store_in_row(std::byte* to, vec<float> x) {
    if constexpr (Element == panel_element::float32) {
        store(reinterpret_cast<float*>(to), x);
    } else {
        store(reinterpret_cast<std::uint16_t*>(to), bfloat16_codes(x));
    }
}

template <class Value, panel_element Element, a_layout Layout>
void pack_rows(const product_operand_source& source, const operand_block& block, std::byte* to) {
    constexpr std::ptrdiff_t element_size = Element == panel_element::float32 ? 4 : 2;
    const Value* const from = source.at<Value>(block);
    const auto address_of = [=](std::ptrdiff_t row, std::ptrdiff_t p) {
        return address_in_block<Layout>(to, row, p, block.padded_k, element_size);
    };
    for (std::ptrdiff_t i = block.vectors; i < block.padded_vectors; ++i) {
        for (std::ptrdiff_t p = 0; p < block.padded_k; p += lane_count) {
            store_in_row<Element>(address_of(i, p), vec<float>{});
        }
    }
    if (source.k_stride == 1) {
        for (std::ptrdiff_t i = 0; i < block.vectors; ++i) {
            const Value* const vector = from + i * source.vector_stride;
            std::ptrdiff_t p = 0;
            if constexpr (holds_bfloat16<Value> && Element == panel_element::bfloat16_vnni2) {
                for (; p + 32 <= block.k; p += 32) std::memcpy(address_of(i, p), vector + p, 64);
            }
            for (; p + lane_count <= block.k; p += lane_count) {
                store_in_row<Element>(address_of(i, p), load_operands(vector + p));
            }
            for (; p < block.padded_k; p += lane_count) {
                store_in_row<Element>(address_of(i, p), load_operands(vector + p, block.k - p));
            }
        }
        return;
    }
    // Squares side by side, in the order of memory.
    const std::ptrdiff_t stride = source.k_stride;
    const std::ptrdiff_t vectors = block.vectors;
    std::ptrdiff_t p = 0;
    if constexpr (holds_bfloat16<Value> && Element == panel_element::bfloat16_vnni2) {
        // Two steps of k beside each other are a float's worth of bits.
        for (; vectors % lane_count == 0 && p + 2 * lane_count <= block.k; p += 2 * lane_count) {
            for (std::ptrdiff_t i = 0; i < vectors; i += lane_count) {
                float_square square;
                square.pair(codes_of(from + i + p * stride), stride);
                square.transpose();
                for (std::ptrdiff_t j = 0; j < lane_count; ++j) {
                    store(reinterpret_cast<float*>(address_of(i + j, p)), square.row[j]);
                }
            }
        }
    }
    for (; p < block.padded_k; p += lane_count) {
        for (std::ptrdiff_t i = 0; i < vectors; i += lane_count) {
            float_square square;
            square.read(from + i + p * stride, stride, block.k - p, vectors - i);
            square.transpose();
            const std::ptrdiff_t height = (std::min)(lane_count, vectors - i);
            for (std::ptrdiff_t j = 0; j < height; ++j) {
                store_in_row<Element>(address_of(i + j, p), square.row[j]);
            }
        }
    }
}

/// `lanes` columns of one step of a panel, or of two that stand together.
template <panel_element Element>
MP_ALWAYS_INLINE void store_in_panel(std::byte* to, vec<float> first, vec<float> second) {
    if constexpr (Element == panel_element::float32) {
        store(reinterpret_cast<float*>(to), first);
    } else if constexpr (Element == panel_element::binary16) {
        store(reinterpret_cast<std::uint16_t*>(to), narrow_binary16(first));
    } else {
        store(reinterpret_cast<std::uint32_t*>(to), bfloat16_vnni2s(first, second));
    }
}

/// A whole panel's width of two rows of B as pairs.
MP_ALWAYS_INLINE void store_pairs(const std::uint16_t* even, const std::uint16_t* odd, std::byte* to) {
    static_assert(panel_width % lane_count == 0);
    for (std::ptrdiff_t j = 0; j < panel_width; j += lane_count) {
        store(reinterpret_cast<std::uint32_t*>(to) + j, pairs_of(load(even + j), load(odd + j)));
    }
}

/// Rows of B, neighbours along the columns: every step of a panel is a run of memory.
template <class Value, panel_element Element>
void pack_panel_runs(const product_operand_source& source, const operand_block& block, std::byte* to,
                     std::ptrdiff_t panel_bytes) {
    constexpr std::ptrdiff_t together = k_interleave(Element);
    constexpr std::ptrdiff_t column_bytes = interleaved_bytes(Element);
    constexpr std::ptrdiff_t step_bytes = panel_width * column_bytes;
    // What needs no conversion is copied.
    constexpr bool same_bytes = std::is_same_v<Value, float> || Element == panel_element::binary16;
    // In local variables: the bytes that are written could be those of the arguments, as far as the
    // compiler knows.
    const Value* const from = source.at<Value>(block);
    const std::ptrdiff_t stride = source.k_stride;
    const std::ptrdiff_t vectors = block.vectors;
    const std::ptrdiff_t k = block.k;
    // As many panels side by side as make a run that reads memory at full speed, and no more, so that what is
    // written stays in the nearest cache.
    constexpr std::ptrdiff_t run = 32 * panel_width;
    for (std::ptrdiff_t first = 0; first < vectors; first += run) {
        const std::ptrdiff_t last = (std::min)(first + run, block.padded_vectors);
        const std::ptrdiff_t last_whole = (std::min)(last, vectors / panel_width * panel_width);
        for (std::ptrdiff_t p = 0; p < block.padded_k; p += together) {
            const Value* const even = from + p * stride;
            const Value* const odd = even + stride;
            const bool has_even = p < k;
            const bool has_odd = together == 2 && p + 1 < k;
            std::byte* step = to + first / panel_width * panel_bytes + p / together * step_bytes;
            std::ptrdiff_t panel = first;
            if constexpr (same_bytes || holds_bfloat16<Value>) {
                const bool whole = together == 2 ? has_odd : has_even;
                for (; whole && panel < last_whole; panel += panel_width, step += panel_bytes) {
                    // The processor does not fetch ahead across the rows of a large matrix.
                    __builtin_prefetch(even + together * stride + panel);
                    if constexpr (same_bytes) {
                        std::memcpy(step, even + panel, step_bytes);
                    } else {
                        __builtin_prefetch(odd + together * stride + panel);
                        store_pairs(codes_of(even + panel), codes_of(odd + panel), step);
                    }
                }
            }
            if constexpr (!same_bytes && !holds_bfloat16<Value>) {
                const Value* const second = together == 2 ? odd : even;
                const bool whole = together == 2 ? has_odd : has_even;
                for (; whole && panel < last_whole; panel += panel_width, step += panel_bytes) {
                    for (std::ptrdiff_t j = 0; j < panel_width; j += lane_count) {
                        store_in_panel<Element>(step + j * column_bytes, load_operands(even + panel + j),
                                                load_operands(second + panel + j));
                    }
                }
            }
            for (; panel < last; panel += panel_width, step += panel_bytes) {
                for (std::ptrdiff_t j = 0; j < panel_width; j += lane_count) {
                    const std::ptrdiff_t left = vectors - panel - j;
                    const vec<float> x = has_even ? load_operands(even + panel + j, left) : vec<float>{};
                    const vec<float> y = has_odd ? load_operands(odd + panel + j, left) : vec<float>{};
                    store_in_panel<Element>(step + j * column_bytes, x, y);
                }
            }
        }
    }
}

/// Columns of B, neighbours along k: they are transposed into the panels.
template <class Value, panel_element Element>
void pack_panel_columns(const product_operand_source& source, const operand_block& block, std::byte* to,
                        std::ptrdiff_t panel_bytes) {
    constexpr std::ptrdiff_t together = k_interleave(Element);
    constexpr std::ptrdiff_t column_bytes = interleaved_bytes(Element);
    constexpr std::ptrdiff_t step_bytes = panel_width * column_bytes;
    const Value* const from = source.at<Value>(block);
    for (std::ptrdiff_t j = 0; j < block.padded_vectors; j += lane_count) {
        std::byte* const column = to + j / panel_width * panel_bytes + j % panel_width * column_bytes;
        const Value* const vector = from + j * source.vector_stride;
        std::ptrdiff_t p = 0;
        if (j >= block.vectors) {
            for (; p < block.padded_k; p += together) {
                store_in_panel<Element>(column + p / together * step_bytes, vec<float>{}, vec<float>{});
            }
            continue;
        }
        if constexpr (holds_bfloat16<Value> && together == 2) {
            // Pairs are neighbours already, so that a float's worth of bits is transposed at a time.
            const bool whole = block.vectors - j >= lane_count;
            for (; whole && p + 2 * lane_count <= block.k; p += 2 * lane_count) {
                float_square square;
                square.read_pairs(codes_of(vector + p), source.vector_stride);
                square.transpose();
                for (std::ptrdiff_t i = 0; i < lane_count; ++i) {
                    store(reinterpret_cast<float*>(column + (p / 2 + i) * step_bytes), square.row[i]);
                }
            }
        }
        for (; p < block.padded_k; p += lane_count) {
            float_square square;
            square.read(vector + p, source.vector_stride, block.vectors - j, block.k - p);
            square.transpose();
            const std::ptrdiff_t steps = (std::min)(lane_count, block.padded_k - p);
            for (std::ptrdiff_t i = 0; i < steps; i += together) {
                store_in_panel<Element>(column + (p + i) / together * step_bytes, square.row[i],
                                        square.row[i + together - 1]);
            }
        }
    }
}

template <class Value, panel_element Element>
void pack_panels(const product_operand_source& source, const operand_block& block, std::byte* to,
                 std::ptrdiff_t panel_bytes) {
    if (source.vector_stride == 1) {
        pack_panel_runs<Value, Element>(source, block, to, panel_bytes);
    } else {
        pack_panel_columns<Value, Element>(source, block, to, panel_bytes);
    }
}

/// Panels of floats from packed panels of another element. See widen_panels_portably.
template <panel_element Element>
void widen_panels(const product_operand_source& source, const operand_block& block, std::byte* to,
                  std::ptrdiff_t panel_bytes) {
    constexpr std::ptrdiff_t together = k_interleave(Element);
    constexpr std::ptrdiff_t step_bytes = panel_width * interleaved_bytes(Element);
    const auto* const panels = static_cast<const std::byte*>(source.data);
    for (std::ptrdiff_t panel = 0; panel < block.padded_vectors / panel_width; ++panel) {
        const std::byte* from = panels + (block.first_vector / panel_width + panel) * source.vector_stride +
                                block.first_k / together * step_bytes;
        auto* target = reinterpret_cast<float*>(to + panel * panel_bytes);
        for (std::ptrdiff_t p = 0; p < block.padded_k; p += together, from += step_bytes) {
            for (std::ptrdiff_t j = 0; j < panel_width; j += lane_count) {
                if constexpr (Element == panel_element::binary16) {
                    store(target + j, widen_binary16(load(reinterpret_cast<const std::uint16_t*>(from) + j)));
                } else {
                    const vec<std::uint32_t> pair = load(reinterpret_cast<const std::uint32_t*>(from) + j);
                    store(target + j, as_float(pair << 16));
                    store(target + panel_width + j, as_float(pair & 0xffff'0000U));
                }
            }
            target += together * panel_width;
        }
    }
}

}}}  // namespace mp::detail::MP_TARGET
