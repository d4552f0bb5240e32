// SPDX-License-Identifier: MIT
// Tiles whose sums are held in vector registers: one fused multiply-add after the other, in ascending k, so
// that the bits are those of mp::accumulation::ordered whatever the shape of the tile.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// Vectors of a tile's row.
#if MP_TARGET_NUMBER == MP_TARGET_NEON
inline constexpr int tile_vectors = 4;
#else
inline constexpr int tile_vectors = 2;
#endif
template <int Vectors>
using vectors_of_row = std::make_integer_sequence<int, Vectors>;

/// Loads one step of B as floats; Together steps stand beside each other.
struct float_steps {
    static constexpr int together = 1;
    static MP_ALWAYS_INLINE vec<float> load_step(const std::byte* b, int vector, int /*step*/) {
        return load(reinterpret_cast<const float*>(b) + static_cast<std::size_t>(vector) * lanes);
    }
};
struct binary16_steps {
    static constexpr int together = 1;
    static MP_ALWAYS_INLINE vec<float> load_step(const std::byte* b, int vector, int /*step*/) {
        return widen_binary16(
            load(reinterpret_cast<const std::uint16_t*>(b) + static_cast<std::size_t>(vector) * lanes));
    }
};
struct bfloat16_vnni2_steps {
    static constexpr int together = 2;
    static MP_ALWAYS_INLINE vec<float> load_step(const std::byte* b, int vector, int step) {
        const vec<std::uint32_t> pair =
            load(reinterpret_cast<const std::uint32_t*>(b) + static_cast<std::size_t>(vector) * lanes);
        return as_float(step == 0 ? pair << 16 : pair & 0xffff'0000U);
    }
};

/// Where one step is in the rows of A, any number of bytes apart: pointers to every third row, from which the
/// next two are one and two strides away, as addresses have it. Twelve pointers would not fit the registers.
struct step_of_a {
    const std::byte* row_0;
    const std::byte* row_3;
    const std::byte* row_6;
    const std::byte* row_9;
    std::ptrdiff_t stride;

    MP_ALWAYS_INLINE step_of_a(const void* first, std::ptrdiff_t row_bytes)
        : row_0(static_cast<const std::byte*>(first)),
          row_3(row_0 + 3 * row_bytes),
          row_6(row_0 + 6 * row_bytes),
          row_9(row_0 + 9 * row_bytes),
          stride(row_bytes) {}

    template <int Row>
    [[nodiscard]] MP_ALWAYS_INLINE float at() const {
        const std::byte* const third = Row < 3 ? row_0 : Row < 6 ? row_3 : Row < 9 ? row_6 : row_9;
        return *reinterpret_cast<const float*>(third + Row % 3 * stride);
    }
    MP_ALWAYS_INLINE void advance() {
        row_0 += sizeof(float);
        row_3 += sizeof(float);
        row_6 += sizeof(float);
        row_9 += sizeof(float);
        // Keeps them in separate registers; g++ would add to all four in a vector.
        __asm__("" : "+r"(row_0), "+r"(row_3), "+r"(row_6), "+r"(row_9));
    }
};

/// The sums of Rows x Vectors vectors, and what is done to all of them, written out by the folds: this
/// is what keeps them in registers at every level of optimisation.
template <int Rows, int Vectors = tile_vectors>
struct register_tile {
    vec<float> sums[std::size_t{Rows * Vectors}];

    template <int... Index>
    MP_ALWAYS_INLINE void clear(std::integer_sequence<int, Index...> /*all*/) {
        ((sums[Index] = vec<float>{}), ...);
    }
    template <int... Index>
    MP_ALWAYS_INLINE void read(const float* tile, std::ptrdiff_t stride,
                               std::integer_sequence<int, Index...> /*all*/) {
        ((sums[Index] =
              load(tile + Index / Vectors * stride + static_cast<std::size_t>(Index % Vectors) * lanes)),
         ...);
    }
    template <int... Index>
    MP_ALWAYS_INLINE void write(float* tile, std::ptrdiff_t stride,
                                std::integer_sequence<int, Index...> /*all*/) const {
        (store(tile + Index / Vectors * stride + static_cast<std::size_t>(Index % Vectors) * lanes,
               sums[Index]),
         ...);
    }
    template <int... Vector>
    MP_ALWAYS_INLINE void add_row(int row, float a, const vec<float> (&b)[std::size_t{Vectors}],
                                  std::integer_sequence<int, Vector...> /*vectors*/) {
        const auto element = broadcast_element(a);
        ((sums[row * Vectors + Vector] =
              fused_multiply_add(element, b[Vector], sums[row * Vectors + Vector])),
         ...);
    }
    template <int... Row>
    MP_ALWAYS_INLINE void add(const step_of_a& a, const vec<float> (&b)[std::size_t{Vectors}],
                              std::integer_sequence<int, Row...> /*rows*/) {
        (add_row(Row, a.at<Row>(), b, vectors_of_row<Vectors>{}), ...);
    }
};

/// The vectors of one step of B.
template <int Vectors>
struct vectors_of_b {
    vec<float> vectors[std::size_t{Vectors}];
};
template <class Steps, int... Vector>
MP_ALWAYS_INLINE vectors_of_b<static_cast<int>(sizeof...(Vector))> load_steps(
    const std::byte* b, int step, std::integer_sequence<int, Vector...> /*vectors*/) {
    return {{Steps::load_step(b, Vector, step)...}};
}

template <class Steps, int Rows, int Vectors = tile_vectors>
void multiply_rows(const tile_product& p) {
    using all = std::make_integer_sequence<int, Rows * Vectors>;
    using rows = std::make_integer_sequence<int, Rows>;
    register_tile<Rows, Vectors> registers;
    if (p.resume) {
        registers.read(p.tile, p.tile_stride, all{});
    } else {
        registers.clear(all{});
    }
    step_of_a a(p.a, p.a_row);
    const auto* b = static_cast<const std::byte*>(p.b);
    const std::ptrdiff_t k = p.k;
    const std::ptrdiff_t b_step = p.b_step;
    for (std::ptrdiff_t step = 0; step < k; step += Steps::together) {
        registers.add(a, load_steps<Steps>(b, 0, vectors_of_row<Vectors>{}).vectors, rows{});
        a.advance();
        if constexpr (Steps::together == 2) {
            registers.add(a, load_steps<Steps>(b, 1, vectors_of_row<Vectors>{}).vectors, rows{});
            a.advance();
        }
        b += b_step;
    }
    registers.write(p.tile, p.tile_stride, all{});
}

#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
#define MP_TILE_NAMES(element) "cpu." element ".avx512.12x32"
inline constexpr int tile_rows = 12;
#elif MP_TARGET_NUMBER == MP_TARGET_NEON
#define MP_TILE_NAMES(element) "cpu." element ".neon.6x16"
inline constexpr int tile_rows = 6;
#else
#define MP_TILE_NAMES(element) "cpu." element ".avx2.6x16"
inline constexpr int tile_rows = 6;
#endif

template <class Steps>
constexpr product_kernel make_register_kernel(std::string_view name, panel_element element) {
    return {.name = name,
            .rows = tile_rows,
            .width = static_cast<std::ptrdiff_t>(tile_vectors * lanes),
            .k_unit = Steps::together,
            .k_block = 512,
            .block_rows = 72,
            .b_element = element,
            .any_strides = true,
            .choices = {{1, &multiply_rows<Steps, 1>},
                        {tile_rows / 3, &multiply_rows<Steps, tile_rows / 3>},
                        {tile_rows * 2 / 3, &multiply_rows<Steps, tile_rows * 2 / 3>},
                        {tile_rows, &multiply_rows<Steps, tile_rows>}},
            .multiply_narrow = &multiply_rows<Steps, tile_rows, tile_vectors / 2>};
}

inline constexpr product_kernel float_kernel =
    make_register_kernel<float_steps>(MP_TILE_NAMES("f32"), panel_element::float32);
inline constexpr product_kernel binary16_kernel =
    make_register_kernel<binary16_steps>(MP_TILE_NAMES("f16"), panel_element::binary16);
inline constexpr product_kernel bfloat16_kernel =
    make_register_kernel<bfloat16_vnni2_steps>(MP_TILE_NAMES("bf16"), panel_element::bfloat16_vnni2);
#undef MP_TILE_NAMES

}}}  // namespace mp::detail::MP_TARGET
