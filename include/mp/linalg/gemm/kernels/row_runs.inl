// SPDX-License-Identifier: MIT
// Rows of B over vec<T>: see dot_tiles.hpp, which includes this for every instruction set.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// Elements of A, of Rows rows and Steps steps of k, each in all lanes of a register, and what is done with
/// them; written out by the folds, which keep them there at every level of optimisation.
template <class Value, int Rows, int Steps>
struct row_runs {
    using rows = std::make_integer_sequence<int, Rows>;
    using elements = std::make_integer_sequence<int, Rows * Steps>;
    using steps = std::make_integer_sequence<int, Steps>;
    vec<float> a[std::size_t{Rows * Steps}];
    const Value* b[std::size_t{Steps}];
    float* sums;
    std::ptrdiff_t sum_row;
    std::ptrdiff_t next_rows;  ///< bytes from what is read to what is below it in the next rows that are read

    /// Whether B is fetched ahead. The processor's own prefetching begins anew with every row: of a single row of A
    /// it keeps up with floats and AVX-512.
    static constexpr bool fetches = Rows != 1 || sizeof(Value) < 4 || MP_TARGET_NUMBER == MP_TARGET_AVX2;
    /// Bytes in a row between what is read and what is fetched, of a single row of A. With more, it is the next
    /// rows that are fetched.
    static constexpr std::ptrdiff_t ahead = sizeof(Value) < 4 ? 2048 : 1024;

    template <int... Element, int... Step>
    MP_ALWAYS_INLINE row_runs(const row_runs_task& p, std::ptrdiff_t row, std::ptrdiff_t k,
                              std::integer_sequence<int, Element...> /*elements*/,
                              std::integer_sequence<int, Step...> /*steps*/)
        : a{broadcast(p.a[(row + Element / Steps) * p.a_row + k + Element % Steps])...},
          b{reinterpret_cast<const Value*>(p.b + (k + Step) * p.b_row)...},
          sums(p.sums + row * p.sum_row),
          sum_row(p.sum_row),
          next_rows(Steps * p.b_row) {}

    /// Copies `count` elements of each row of B from `column` on, with zeros behind them, and goes on there.
    MP_ALWAYS_INLINE void move_to(Value (&to)[std::size_t{Steps}][lanes], std::ptrdiff_t column,
                                  std::ptrdiff_t count) {
        for (std::size_t s = 0; s < std::size_t{Steps}; ++s) {
            std::memset(static_cast<void*>(to[s]), 0, sizeof to[s]);
            std::memcpy(static_cast<void*>(to[s]), b[s] + column,
                        static_cast<std::size_t>(count) * sizeof(Value));
            b[s] = to[s];
        }
        sums += column;
    }

    /// Adds to the sums of a vector of columns from `column` on, and fetches what is `distance` bytes away.
    template <int... Row, int... Step>
    MP_ALWAYS_INLINE void add(std::ptrdiff_t column, bool resume, std::ptrdiff_t distance,
                              std::integer_sequence<int, Row...> /*rows*/,
                              std::integer_sequence<int, Step...> /*steps*/) const {
        vec<float> sum[std::size_t{Rows}];
        if (resume) ((sum[Row] = load(static_cast<const float*>(sums) + Row * sum_row + column)), ...);
        if (!resume) ((sum[Row] = vec<float>{}), ...);
        (add_step(Step, column, distance, sum, rows{}), ...);
        (store(sums + Row * sum_row + column, sum[Row]), ...);
    }

private:
    template <int... Row>
    MP_ALWAYS_INLINE void add_step(int step, std::ptrdiff_t column, std::ptrdiff_t distance,
                                   vec<float> (&sum)[std::size_t{Rows}],
                                   std::integer_sequence<int, Row...> /*rows*/) const {
        if constexpr (fetches) {
            const auto next = reinterpret_cast<std::uintptr_t>(b[step] + column) +
                              static_cast<std::uintptr_t>(distance);  // may be past the end of B
            __builtin_prefetch(reinterpret_cast<const void*>(next));
        }
        const vec<float> of_b = load_operands(b[step] + column);
        ((sum[Row] = fused_multiply_add(a[Row * Steps + step], of_b, sum[Row])), ...);
    }
};

template <class Value, int Rows, int Steps>
MP_ALWAYS_INLINE void add_row_runs(const row_runs_task& p, std::ptrdiff_t row, std::ptrdiff_t k) {
    using runs_type = row_runs<Value, Rows, Steps>;
    runs_type runs(p, row, k, typename runs_type::elements{}, typename runs_type::steps{});
    const bool resume = p.resume || k > 0;
    const std::ptrdiff_t rest = p.columns % lane_count;
    std::ptrdiff_t end = p.columns - rest;
    // Near the end of the rows, what is ahead is the beginning of the next ones.
    constexpr auto size = static_cast<std::ptrdiff_t>(sizeof(Value));
    const std::ptrdiff_t turn = p.columns - runs_type::ahead / size;
    const std::ptrdiff_t beyond = runs.next_rows + (Rows == 1 ? runs_type::ahead - p.columns * size : 0);
    Value last[std::size_t{Steps}][lanes];
    // Whole vectors first, and then the last few columns with zeros beyond.
    for (bool is_last = false;; is_last = true) {
        for (std::ptrdiff_t column = 0; column < end; column += lane_count) {
            const std::ptrdiff_t distance = Rows == 1 && column < turn ? runs_type::ahead : beyond;
            runs.add(column, resume, distance, typename runs_type::rows{}, typename runs_type::steps{});
        }
        if (is_last || rest == 0) break;
        runs.move_to(last, end, rest);
        end = lane_count;
    }
}

/// Columns by blocks, so that their sums stay in the nearest cache while rows of B pass by.
template <class Value, int Rows, int Steps>
void multiply_row_runs(const row_runs_task& whole) {
    constexpr std::ptrdiff_t floats_in_cache = 8192;
    const std::ptrdiff_t block = floats_in_cache / whole.rows / lane_count * lane_count;
    for (std::ptrdiff_t first = 0; first < whole.columns; first += block) {
        row_runs_task p = whole;
        p.columns = (std::min)(block, whole.columns - first);
        p.b += first * static_cast<std::ptrdiff_t>(sizeof(Value));
        p.sums += first;
        std::ptrdiff_t k = 0;
        for (; k + Steps <= p.k; k += Steps) {
            for (std::ptrdiff_t row = 0; row < p.rows; row += Rows) {
                add_row_runs<Value, Rows, Steps>(p, row, k);
            }
        }
        for (; k < p.k; ++k) {
            for (std::ptrdiff_t row = 0; row < p.rows; row += Rows) add_row_runs<Value, Rows, 1>(p, row, k);
        }
    }
}

/// As many elements of A as registers hold beside the sums.
template <class Value>
inline constexpr row_runs_kernels row_runs_kernels_of = {
    {1, &multiply_row_runs<Value, 1, 8>},
    {4, &multiply_row_runs<Value, 4, MP_TARGET_NUMBER >= MP_TARGET_AVX512 ? 4 : 2>}};

}}}  // namespace mp::detail::MP_TARGET
