// SPDX-License-Identifier: MIT
// Runs are copied by whole vectors, from left to right: what is written too much is written over by the next
// run, the next row, or zeros, and behind the last row there is padding.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// Calls f(place, count, offset) for the runs of elements [first, first + count) of the second index: where they
/// go, how many there are, and where they lie.
template <class Function>
MP_ALWAYS_INLINE void for_each_run(const indexed_operand& operand, std::ptrdiff_t first, std::ptrdiff_t count,
                                   Function f) {
    std::ptrdiff_t at = first % operand.run;
    std::ptrdiff_t number = first / operand.run;
    std::ptrdiff_t image = 0;
    if (number >= operand.lines) {
        image = number / operand.lines * operand.image_stride;
        number %= operand.lines;
    }
    for (std::ptrdiff_t place = 0; place < count;) {
        const std::ptrdiff_t length = (std::min)(operand.run - at, count - place);
        f(place, length, image + number * operand.run_stride + at);
        place += length;
        at = 0;
        if (++number == operand.lines) {
            number = 0;
            image += operand.image_stride;
        }
    }
}

template <class Element>
MP_ALWAYS_INLINE void copy_run(const Element* from, Element* to, std::ptrdiff_t count) {
    for (std::ptrdiff_t i = 0; i < count; i += lane_count) store(to + i, load(from + i));
}

/// A panel's width of one step of k, or of two that stand together.
template <panel_element Element>
struct indexed_step {
    using element = std::conditional_t<Element == panel_element::float32, float, std::uint16_t>;
    using stored =
        std::conditional_t<Element == panel_element::binary16, std::uint16_t,
                           std::conditional_t<Element == panel_element::float32, float, std::uint32_t>>;

    static MP_ALWAYS_INLINE void copy(const element* first, const element* second, stored* to,
                                      std::ptrdiff_t count) {
        if constexpr (Element != panel_element::bfloat16_vnni2) {
            copy_run(first, to, count);
        } else {
            for (std::ptrdiff_t i = 0; i < count; i += lane_count) {
                store(to + i, second != nullptr ? pairs_of(load(first + i), load(second + i))
                                                : widen(load(first + i)));
            }
        }
    }
};

template <panel_element Element>
void pack_indexed_panels(const product_operand_source& source, const operand_block& block, std::byte* to,
                         std::ptrdiff_t panel_bytes) {
    using step_type = indexed_step<Element>;
    using element = typename step_type::element;
    using stored = typename step_type::stored;
    struct run {
        std::ptrdiff_t place, count, offset;
    };
    const auto& operand = *static_cast<const indexed_operand*>(source.data);
    const auto* const elements = static_cast<const element*>(operand.elements);
    const std::ptrdiff_t* const offsets = operand.offsets + block.first_k;
    constexpr std::ptrdiff_t together = k_interleave(Element);
    for (std::ptrdiff_t column = 0; column < block.padded_vectors; column += panel_width) {
        const std::ptrdiff_t columns = std::clamp(block.vectors - column, std::ptrdiff_t{0}, panel_width);
        auto* row = reinterpret_cast<stored*>(to + column / panel_width * panel_bytes);
        run runs[panel_width];
        int count = 0;
        for_each_run(operand, block.first_vector + column, columns,
                     [&](std::ptrdiff_t place, std::ptrdiff_t length, std::ptrdiff_t offset) {
                         runs[count++] = {place, length, offset};
                     });
        std::ptrdiff_t k = 0;
        for (; k < block.k; k += together, row += panel_width) {
            const element* const first = elements + offsets[k];
            const element* const second =
                together == 2 && k + 1 < block.k ? elements + offsets[k + 1] : nullptr;
            for (int i = 0; i < count; ++i) {
                step_type::copy(first + runs[i].offset, second == nullptr ? nullptr : second + runs[i].offset,
                                row + runs[i].place, runs[i].count);
            }
            for (std::ptrdiff_t i = columns; i < panel_width; ++i) row[i] = 0;
        }
        const std::ptrdiff_t rest = (block.padded_k - k + together - 1) / together;
        if (rest > 0) std::memset(row, 0, static_cast<std::size_t>(rest * panel_width) * sizeof(stored));
    }
}

/// A row of A, with zeros up to padded_k.
template <class Element>
MP_ALWAYS_INLINE void copy_indexed_row(const indexed_operand& operand, const operand_block& block,
                                       std::ptrdiff_t row, Element* to) {
    const Element* const from =
        static_cast<const Element*>(operand.elements) + operand.offsets[block.first_vector + row];
    // Whole runs of whole vectors.
    const std::ptrdiff_t run = operand.run;
    if (run % lane_count == 0 && block.first_k % run == 0 && block.k % run == 0) {
        const Element* line = from + block.first_k / run * operand.run_stride;
        for (std::ptrdiff_t place = 0; place < block.k; line += operand.run_stride) {
            const Element* at = line;
            for (const std::ptrdiff_t end = place + run; place < end; place += lane_count, at += lane_count) {
                store(to + place, load(at));
            }
        }
        std::fill(to + block.k, to + block.padded_k, Element{});
        return;
    }
    for_each_run(operand, block.first_k, block.k,
                 [&](std::ptrdiff_t place, std::ptrdiff_t length, std::ptrdiff_t offset)
                     MP_INLINED_LAMBDA { copy_run(from + offset, to + place, length); });
    std::fill(to + block.k, to + block.padded_k, Element{});
}

template <class Element>
void pack_indexed_rows(const product_operand_source& source, const operand_block& block, std::byte* to) {
    const auto& operand = *static_cast<const indexed_operand*>(source.data);
    for (std::ptrdiff_t row = 0; row < block.padded_vectors; ++row) {
        auto* const target = reinterpret_cast<Element*>(to + row * a_row_bytes);
        if (row < block.vectors) {
            copy_indexed_row(operand, block, row, target);
        } else {
            std::fill(target, target + block.padded_k, Element{});
        }
    }
}

/// Rows of bfloat16 in a_layout::tiles.
inline void pack_indexed_tiles(const product_operand_source& source, const operand_block& block,
                               std::byte* to) {
    constexpr std::ptrdiff_t most = 4096;
    constexpr std::ptrdiff_t step = 32;
    const auto& operand = *static_cast<const indexed_operand*>(source.data);
    std::uint16_t line[most + 2 * lane_count];
    for (std::ptrdiff_t row = 0; row < block.padded_vectors; ++row) {
        if (row < block.vectors) {
            copy_indexed_row(operand, block, row, line);
        } else {
            std::fill(line, line + block.padded_k, std::uint16_t{0});
        }
        for (std::ptrdiff_t k = 0; k < block.padded_k; k += step) {
            std::memcpy(address_in_block<a_layout::tiles>(to, row, k, block.padded_k, 2), line + k, 64);
        }
    }
}

}}}  // namespace mp::detail::MP_TARGET
