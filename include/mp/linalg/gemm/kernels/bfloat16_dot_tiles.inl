// SPDX-License-Identifier: MIT
// Tiles of bfloat16 by vdpbf16ps, which adds two products to a sum: first that of the odd k and then that of
// the even one, each time rounding to nearest even, with subnormal operands and results taken for zero (Intel
// 64 and IA-32 Architectures Software Developer's Manual, volume 2, VDPBF16PS).

#if MP_TARGET_NUMBER == MP_TARGET_AVX512_BF16
namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// The sums of a tile, as in register_tiles.inl, with another instruction.
template <int Rows, int Vectors>
struct dot_tile : avx512::register_tile<Rows, Vectors> {
    MP_ALWAYS_INLINE void add_dot(int index, vec<std::uint32_t> a, vec<std::uint32_t> b) {
        __asm__("vdpbf16ps %2, %1, %0" : "+v"(this->sums[index]) : "v"(a), "v"(b));
    }
    template <int... Row>
    MP_ALWAYS_INLINE void add_dots(const std::byte* a, vec<std::uint32_t> b0, vec<std::uint32_t> b1,
                                   std::integer_sequence<int, Row...> /*rows*/) {
        (add_row_of_dots(Row, a + Row * a_row_bytes, b0, b1), ...);
    }

private:
    MP_ALWAYS_INLINE void add_row_of_dots(int row, const std::byte* a, vec<std::uint32_t> b0,
                                          vec<std::uint32_t> b1) {
        std::uint32_t pair = 0;
        std::memcpy(&pair, a, sizeof pair);
        const vec<std::uint32_t> pairs = broadcast(pair);
        add_dot(Vectors * row, pairs, b0);
        if constexpr (Vectors == 2) add_dot(2 * row + 1, pairs, b1);
    }
};

template <int Rows, int Vectors = 2>
void multiply_dots(const tile_product& p) {
    using all = std::make_integer_sequence<int, Vectors * Rows>;
    dot_tile<Rows, Vectors> registers;
    if (p.resume) {
        registers.read(p.tile, p.tile_stride, all{});
    } else {
        registers.clear(all{});
    }
    const auto* a = static_cast<const std::byte*>(p.a);
    const auto* b = static_cast<const std::byte*>(p.b);
    for (std::ptrdiff_t step = 0; step < p.k; step += 2) {
        const auto* pairs = reinterpret_cast<const std::uint32_t*>(b);
        registers.add_dots(a, load(pairs), load(pairs + lanes), std::make_integer_sequence<int, Rows>{});
        a += 2 * sizeof(std::uint16_t);
        b += p.b_step;
    }
    registers.write(p.tile, p.tile_stride, all{});
}

/// With blocks of k that are somewhat longer than 512, a few more make no second block.
inline constexpr product_kernel bfloat16_dot_kernel = {.name = "cpu.bf16.avx512_bf16.12x32",
                                                       .rows = 12,
                                                       .width = 2 * static_cast<std::ptrdiff_t>(lanes),
                                                       .k_unit = 2,
                                                       .k_block = 576,
                                                       .block_rows = 144,
                                                       .a_element = panel_element::bfloat16_vnni2,
                                                       .b_element = panel_element::bfloat16_vnni2,
                                                       .normal_sums = true,
                                                       .choices = {{1, &multiply_dots<1>},
                                                                   {4, &multiply_dots<4>},
                                                                   {8, &multiply_dots<8>},
                                                                   {12, &multiply_dots<12>}},
                                                       .multiply_narrow = &multiply_dots<12, 1>};

}}}  // namespace mp::detail::MP_TARGET
#endif
