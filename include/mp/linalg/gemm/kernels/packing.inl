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

/// Elements of lines that become columns: words of 32 bits, of two elements if they have 16; codes of 16 bits; floats.
enum class line_form : unsigned char { words, codes, floats };

/// The lower and the upper halves of words.
template <int... Index>
MP_ALWAYS_INLINE void split_words(vec<float> words, vec<std::uint16_t>& lower, vec<std::uint16_t>& upper,
                                  std::integer_sequence<int, Index...> /*lanes*/) {
    constexpr int count = static_cast<int>(lanes);
    const auto x = reinterpret_cast<uint16_lanes>(words);
    const uint16_lanes parted = __builtin_shufflevector(x, x, 2 * Index..., (2 * Index + 1)...);
    lower = __builtin_shufflevector(parted, parted, Index...);
    upper = __builtin_shufflevector(parted, parted, (Index + count)...);
}

/// Stores two lines of elements, the lower and upper halves of words, or the first `left` of them.
template <panel_element Element, line_form Form>
MP_ALWAYS_INLINE void store_halves(vec<float> words, std::byte* to, std::ptrdiff_t stride,
                                   std::ptrdiff_t left) {
    if constexpr (Form == line_form::floats && Element == panel_element::bfloat16_vnni2) {
        if (left > 0) store(reinterpret_cast<float*>(to), as_float(as_uint32(words) << 16));
        if (left > 1) store(reinterpret_cast<float*>(to + stride), as_float(as_uint32(words) & 0xffff'0000U));
    } else {
        vec<std::uint16_t> lower, upper;
        split_words(words, lower, upper, std::make_integer_sequence<int, static_cast<int>(lanes)>{});
        const auto store_codes = [&](std::byte* line, vec<std::uint16_t> codes) MP_INLINED_LAMBDA {
            if constexpr (Form == line_form::floats) {
                store(reinterpret_cast<float*>(line), widen_binary16(codes));
            } else {
                store(reinterpret_cast<std::uint16_t*>(line), codes);
            }
        };
        if (left > 0) store_codes(to, lower);
        if (left > 1) store_codes(to + stride, upper);
    }
}

/// Copies `length` elements of a line, and some more: the first `count` of the operands there, and zeros.
template <class Value>
MP_ALWAYS_INLINE void read_line(const Value* from, std::ptrdiff_t count, std::byte* to,
                                std::ptrdiff_t length) {
    constexpr panel_element element = panel_element_of<Value>();
    for (std::ptrdiff_t i = 0; i < length; i += lane_count) {
        auto* const codes = reinterpret_cast<std::uint16_t*>(to) + i;
        if constexpr (element == panel_element::float32) {
            store(reinterpret_cast<float*>(to) + i, load_operands(from + i, count - i));
        } else if constexpr (element == panel_element::bfloat16_vnni2 && !holds_bfloat16<Value>) {
            store(codes, bfloat16_codes(load_operands(from + i, count - i)));
        } else {
            const std::ptrdiff_t n = (std::max)(count - i, std::ptrdiff_t{0});
            store(codes, n < lane_count ? load_partial(codes_of(from + i), static_cast<std::size_t>(n))
                                        : load(codes_of(from + i)));
        }
    }
}

/// Transposes `lanes` lines of operands, `stride` of them apart: element i of each goes to line i of `count`, which lie
/// `to_stride` bytes apart. Lines from `high` on, and elements from `wide` on, are zeros.
template <class Value, line_form Form>
MP_NEVER_INLINE void transpose_lines(const Value* from, std::ptrdiff_t stride, std::ptrdiff_t high,
                                     std::ptrdiff_t wide, std::ptrdiff_t count, std::byte* to,
                                     std::ptrdiff_t to_stride) {
    constexpr panel_element element = panel_element_of<Value>();
    constexpr std::ptrdiff_t size = element == panel_element::float32 ? 4 : 2;  // as the kernels read them
    constexpr std::ptrdiff_t in_line = Form == line_form::words ? 4 / size : 1;
    constexpr bool in_place =
        std::is_same_v<Value, float> || element == panel_element::binary16 || holds_bfloat16<Value>;
    alignas(64) std::byte copies[lanes][64];
    while (count > 0) {
        const std::byte* lines = reinterpret_cast<const std::byte*>(from);
        std::ptrdiff_t line_bytes = stride * size;
        std::ptrdiff_t length = (std::min)(count, wide) & -(16 / size);
        if (!in_place || high < lane_count || length <= 0) {
            lines = copies[0];
            line_bytes = sizeof copies[0];
            length = (std::min)(count, line_bytes / size);
            for (std::ptrdiff_t l = 0; l < lane_count; ++l) {
                read_line(from + l * stride, l < high ? wide : 0, copies[l], length);
            }
        }
        if constexpr (element == panel_element::float32 || Form == line_form::words) {
            transpose_words(lines, line_bytes, (length + in_line - 1) / in_line, to, to_stride);
        } else {
            for (std::ptrdiff_t i = 0; i < length; i += 8, lines += 16) {
                std::ptrdiff_t next = i;
                const auto store = [&](vec<float> words) MP_INLINED_LAMBDA {
                    store_halves<element, Form>(words, to + next * to_stride, to_stride, length - next);
                    next += 2;
                };
                transpose_quarters(lines, line_bytes, store, std::integer_sequence<int, 0>{});
            }
        }
        from += length;
        wide -= length;
        count -= length;
        to += length / in_line * to_stride;
    }
}

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
    // In the order of memory: some of the rows that lie beside each other, along them.
    constexpr line_form form = Element == panel_element::float32 ? line_form::floats : line_form::codes;
    constexpr std::ptrdiff_t row_bytes = Layout == a_layout::rows ? a_row_bytes : 64;
    constexpr std::ptrdiff_t side_by_side = 32;
    for (std::ptrdiff_t p = 0; p < block.padded_k; p += lane_count) {
        for (std::ptrdiff_t i = 0; i < block.vectors; i += side_by_side) {
            const std::ptrdiff_t left = block.vectors - i;
            transpose_lines<Value, form>(from + i + p * source.k_stride, source.k_stride, block.k - p, left,
                                         (std::min)(left, side_by_side), address_of(i, p), row_bytes);
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
            const bool whole = together == 2 ? has_odd : has_even;
            for (; whole && panel < last_whole; panel += panel_width, step += panel_bytes) {
                // The processor does not fetch ahead across the rows of a large matrix.
                if constexpr (same_bytes || holds_bfloat16<Value>) {
                    __builtin_prefetch(even + together * stride + panel);
                }
                if constexpr (same_bytes) {
                    std::memcpy(step, even + panel, step_bytes);
                } else if constexpr (holds_bfloat16<Value>) {
                    __builtin_prefetch(odd + together * stride + panel);
                    store_pairs(codes_of(even + panel), codes_of(odd + panel), step);
                } else {
                    const Value* const second = together == 2 ? odd : even;
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
MP_NEVER_INLINE void pack_panel_columns(const product_operand_source& source, const operand_block& block,
                                        std::byte* to, std::ptrdiff_t panel_bytes) {
    constexpr line_form form = Element == panel_element::float32    ? line_form::floats
                               : Element == panel_element::binary16 ? line_form::codes
                                                                    : line_form::words;
    constexpr std::ptrdiff_t together = k_interleave(Element);
    constexpr std::ptrdiff_t column_bytes = interleaved_bytes(Element);
    constexpr std::ptrdiff_t step_bytes = panel_width * column_bytes;
    const Value* const from = source.at<Value>(block);
    for (std::ptrdiff_t j = 0; j < block.padded_vectors; j += lane_count) {
        std::byte* const column = to + j / panel_width * panel_bytes + j % panel_width * column_bytes;
        if (j < block.vectors) {
            transpose_lines<Value, form>(from + j * source.vector_stride, source.vector_stride,
                                         block.vectors - j, block.k, block.padded_k, column, step_bytes);
            continue;
        }
        for (std::ptrdiff_t p = 0; p < block.padded_k; p += together) {
            store_in_panel<Element>(column + p / together * step_bytes, vec<float>{}, vec<float>{});
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
