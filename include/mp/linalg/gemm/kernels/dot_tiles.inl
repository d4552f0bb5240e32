// SPDX-License-Identifier: MIT
// Dot products over vec<T>: see dot_tiles.hpp, which includes this for every instruction set.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

// As many products as registers hold the sums of, with a vector of each column.
inline constexpr int dot_tile_side = MP_TARGET_NUMBER >= MP_TARGET_AVX512 ? 4 : 2;

/// How A and B are read, and multiplied.
template <class Value>
struct dot_steps {
    using a_value = float;
    using b_value = Value;
    static constexpr std::ptrdiff_t together = 1;  ///< elements in a lane
    static MP_ALWAYS_INLINE vec<float> load_a(const a_value* a) { return load(a); }
    static MP_ALWAYS_INLINE vec<float> load_b(const Value* b) { return load_operands(b); }
    static MP_ALWAYS_INLINE vec<float> add(vec<float> a, vec<float> b, vec<float> sum) {
        return fused_multiply_add(a, b, sum);
    }
};

#if MP_TARGET_NUMBER == MP_TARGET_AVX512
using bfloat16_value = basic_float<formats::bfloat16>;

/// With an A that is left narrow, so that more of it stays in the nearest cache.
struct narrow_dot_steps : dot_steps<bfloat16_value> {
    using a_value = bfloat16_value;
    static MP_ALWAYS_INLINE vec<float> load_a(const a_value* a) { return load_operands(a); }
};

/// By pairs, for processors with AVX512_BF16: see bfloat16_dot_tiles.inl for what vdpbf16ps adds.
struct dot_steps_of_pairs {
    using a_value = bfloat16_value;
    using b_value = bfloat16_value;
    static constexpr std::ptrdiff_t together = 2;
    static MP_ALWAYS_INLINE vec<float> load_a(const a_value* a) {
        return as_float(load(reinterpret_cast<const std::uint32_t*>(a)));
    }
    static MP_ALWAYS_INLINE vec<float> load_b(const b_value* b) { return load_a(b); }
    static MP_ALWAYS_INLINE vec<float> add(vec<float> a, vec<float> b, vec<float> sum) {
        __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
        return sum;
    }
};
#endif

/// The sums of Rows x Columns products, Vectors vectors of each, and what is done to all of them, written out
/// by the folds, which keep them in registers at every level of optimisation.
template <class Steps, int Rows, int Columns, int Vectors>
struct dot_registers {
    static constexpr int size = Rows * Columns * Vectors;
    using all = std::make_integer_sequence<int, size>;
    using columns = std::make_integer_sequence<int, Columns>;
    using vectors = std::make_integer_sequence<int, Vectors>;
    vec<float> sums[std::size_t{size}];

    template <int... Index>
    MP_ALWAYS_INLINE void read(const float* from, std::ptrdiff_t row,
                               std::integer_sequence<int, Index...> /*all*/) {
        ((sums[Index] = load(from + place(row, Index))), ...);
    }
    template <int... Index>
    MP_ALWAYS_INLINE void clear(std::integer_sequence<int, Index...> /*all*/) {
        ((sums[Index] = vec<float>{}), ...);
    }
    template <int... Index>
    MP_ALWAYS_INLINE void write(float* to, std::ptrdiff_t row,
                                std::integer_sequence<int, Index...> /*all*/) const {
        (store(to + place(row, Index), sums[Index]), ...);
    }
    /// Adds the products of a vector of k of each row and column.
    template <int... Row>
    MP_ALWAYS_INLINE void add_rows(int vector, const typename Steps::a_value* a, std::ptrdiff_t a_row,
                                   const vec<float> (&b)[std::size_t{Columns}],
                                   std::integer_sequence<int, Row...> /*rows*/) {
        (add_row(Row, vector, Steps::load_a(a + Row * a_row), b, columns{}), ...);
    }

private:
    static MP_ALWAYS_INLINE std::ptrdiff_t place(std::ptrdiff_t row, int index) {
        return index / (Columns * Vectors) * row + index % (Columns * Vectors) * lane_count;
    }
    template <int... Column>
    MP_ALWAYS_INLINE void add_row(int row, int vector, vec<float> a,
                                  const vec<float> (&b)[std::size_t{Columns}],
                                  std::integer_sequence<int, Column...> /*columns*/) {
        ((sums[(row * Columns + Column) * Vectors + vector] =
              Steps::add(a, b[Column], sums[(row * Columns + Column) * Vectors + vector])),
         ...);
    }
};

/// Some columns of B.
template <class Value, int Columns>
struct columns_of_b {
    const Value* column[std::size_t{Columns}];

    /// Those from `first` on; beyond the last one, it again.
    template <int... Column>
    MP_ALWAYS_INLINE columns_of_b(const dot_group_task& p, std::ptrdiff_t first,
                                  std::integer_sequence<int, Column...> /*columns*/)
        : column{reinterpret_cast<const Value*>(p.b +
                                                (std::min)(first + Column, p.columns - 1) * p.b_column)...} {}

    /// Copies `count` elements of each from k on, with zeros behind them, and goes on there.
    template <std::size_t Length>
    MP_ALWAYS_INLINE void move_to(Value (&to)[std::size_t{Columns}][Length], std::ptrdiff_t k,
                                  std::ptrdiff_t count) {
        for (std::size_t c = 0; c < std::size_t{Columns}; ++c) {
            std::memset(static_cast<void*>(to[c]), 0, sizeof to[c]);
            std::memcpy(static_cast<void*>(to[c]), column[c] + k,
                        static_cast<std::size_t>(count) * sizeof(Value));
            column[c] = to[c];
        }
    }

    /// Asks for the cache lines that lie `ahead` bytes beyond the next Sums elements of each column.
    template <std::ptrdiff_t Sums, int... Column>
    MP_ALWAYS_INLINE void fetch(std::ptrdiff_t k, std::ptrdiff_t ahead,
                                std::integer_sequence<int, Column...> /*columns*/) const {
        constexpr std::ptrdiff_t line = 64;
        for (std::ptrdiff_t byte = 0; byte < Sums * static_cast<std::ptrdiff_t>(sizeof(Value));
             byte += line) {
            // As numbers, since it may lie beyond the matrix.
            (__builtin_prefetch(
                 reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(column[Column] + k) +
                                               static_cast<std::uintptr_t>(ahead + byte)),
                 0, 3),
             ...);
        }
    }
};

/// Accumulates the products of consecutive k: of a row of A from `a` on, of the columns from k on.
template <class Steps, int Rows, class Tile, int Columns, int... Column, int... Vector>
MP_ALWAYS_INLINE void add_steps(Tile& tile, const typename Steps::a_value* a, std::ptrdiff_t a_row,
                                const columns_of_b<typename Steps::b_value, Columns>& b, std::ptrdiff_t k,
                                std::integer_sequence<int, Column...> /*columns*/,
                                std::integer_sequence<int, Vector...> /*vectors*/) {
    const auto add_vector = [&](int vector) MP_INLINED_LAMBDA {
        const std::ptrdiff_t step = vector * lane_count * Steps::together;
        vec<float> of_columns[std::size_t{Columns}];
        ((of_columns[Column] = Steps::load_b(b.column[Column] + k + step)), ...);
        tile.add_rows(vector, a + step, a_row, of_columns, std::make_integer_sequence<int, Rows>{});
    };
    (add_vector(Vector), ...);
}

template <class Steps, int Rows, int Columns, std::ptrdiff_t Sums>
void multiply_dots(const dot_group_task& p) {
    using value = typename Steps::b_value;
    using tile = dot_registers<Steps, Rows, Columns, static_cast<int>(Sums / lane_count)>;
    using columns = typename tile::columns;
    constexpr std::ptrdiff_t sums_of_a_row = dot_group * Sums;
    constexpr std::ptrdiff_t step = Sums * Steps::together;
    const std::ptrdiff_t rest = p.k % step;
    for (std::ptrdiff_t column = 0; column < p.columns; column += Columns) {
        for (std::ptrdiff_t row = 0; row < p.rows; row += Rows) {
            float* const sums = p.sums + row * sums_of_a_row + column * Sums;
            const auto* a = static_cast<const typename Steps::a_value*>(p.a) + row * p.a_row;
            tile registers;
            if (p.resume) {
                registers.read(sums, sums_of_a_row, typename tile::all{});
            } else {
                registers.clear(typename tile::all{});
            }
            columns_of_b<value, Columns> b(p, column, columns{});
            value last[std::size_t{Columns}][std::size_t{step}];
            std::ptrdiff_t end = p.k - rest;
            // Whole steps first, and then the last few of k with zeros beyond.
            for (bool is_last = false;; is_last = true) {
                for (std::ptrdiff_t k = 0; k < end; k += step, a += step) {
                    if (p.ahead != 0) b.template fetch<step>(k, p.ahead, columns{});
                    add_steps<Steps, Rows>(registers, a, p.a_row, b, k, columns{}, typename tile::vectors{});
                }
                if (is_last || rest == 0) break;
                b.move_to(last, end, rest);
                end = step;
            }
            registers.write(sums, sums_of_a_row, typename tile::all{});
        }
    }
}

/// As many products as a vector has lanes: the vectors of each are added up to one, and then lanes and
/// products change places.
template <std::ptrdiff_t Sums>
void add_up_dots(const float* sums, float* to) {
    constexpr std::make_integer_sequence<int, static_cast<int>(lanes / 4)> quarters{};
    alignas(64) float lines[lanes][lanes];
    for (std::ptrdiff_t first = 0; first < dot_group; first += lane_count) {
        for (std::ptrdiff_t i = 0; i < lane_count; ++i) {
            vec<float> of[static_cast<std::size_t>(Sums / lane_count)];
            for (std::ptrdiff_t v = 0; v < Sums; v += lane_count) {
                of[v / lane_count] = load(sums + (first + i) * Sums + v);
            }
            for (std::ptrdiff_t half = Sums / lane_count / 2; half > 0; half /= 2) {
                for (std::ptrdiff_t v = 0; v < half; ++v) of[v] = add(of[v], of[v + half]);
            }
            store(lines[i], of[0]);
        }
        vec<float> total[lanes];
        std::size_t next = 0;
        transpose_quarters(
            reinterpret_cast<const std::byte*>(lines), vector_bytes,
            [&](vec<float> lane) MP_INLINED_LAMBDA { total[next++] = lane; }, quarters);
        for (std::size_t half = lanes / 2; half > 0; half /= 2) {
            for (std::size_t i = 0; i < half; ++i) total[i] = add(total[i], total[i + half]);
        }
        store(to + first, total[0]);
    }
}

template <class Steps, int Rows, int Columns, std::ptrdiff_t Sums>
constexpr dot_kernel make_dot_kernel(std::ptrdiff_t k_block) {
    return {Rows,
            Columns,
            Sums,
            k_block,
            sizeof(typename Steps::a_value),
            &multiply_dots<Steps, Rows, Columns, Sums>,
            &add_up_dots<Sums>};
}

template <class Value>
inline constexpr dot_kernels dot_kernels_of = {
    make_dot_kernel<dot_steps<Value>, 1, 1, sums_of_row>(1 << 30),
    make_dot_kernel<dot_steps<Value>, 1, dot_tile_side, sums_of_row>(1 << 30),
    make_dot_kernel<dot_steps<Value>, dot_tile_side, dot_tile_side, sums_of_rows>(512)};

#if MP_TARGET_NUMBER == MP_TARGET_AVX512
/// For one row, as of_column of its type.
inline constexpr dot_kernel narrow_dot_kernel = make_dot_kernel<narrow_dot_steps, 1, 1, sums_of_row>(1 << 30);
inline constexpr dot_kernel dot_kernel_of_pairs =
    make_dot_kernel<dot_steps_of_pairs, dot_tile_side, dot_tile_side, sums_of_rows>(1024);
/// Has no tiles: says that the rows of A for these are packed as bfloat16.
inline constexpr product_kernel narrow_rows = {
    "",    1,    1, 2, 0, 0, panel_element::bfloat16_vnni2, panel_element::bfloat16_vnni2, a_layout::rows,
    false, true, {}};
#endif

}}}  // namespace mp::detail::MP_TARGET
