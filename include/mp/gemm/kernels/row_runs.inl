// SPDX-License-Identifier: MIT
// Rows of B over vec<T>: see row_runs.hpp, which includes this for every instruction set.

namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET {

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

    template <int... Element, int... Step>
    MP_ALWAYS_INLINE row_runs(const row_runs_task& p, std::ptrdiff_t row, std::ptrdiff_t k,
                              std::integer_sequence<int, Element...> /*elements*/,
                              std::integer_sequence<int, Step...> /*steps*/)
        : a{broadcast(p.a[(row + Element / Steps) * p.a_row + k + Element % Steps])...},
          b{reinterpret_cast<const Value*>(p.b + (k + Step) * p.b_row)...},
          sums(p.sums + row * p.sum_row),
          sum_row(p.sum_row) {}

    /// Adds to the sums of a vector of columns from `column` on; Load gives that of a row of B.
    template <class Load, int... Row, int... Step>
    MP_ALWAYS_INLINE void add(std::ptrdiff_t column, bool resume, Load load_b,
                              std::integer_sequence<int, Row...> /*rows*/,
                              std::integer_sequence<int, Step...> /*steps*/) const {
        vec<float> sum[std::size_t{Rows}];
        if (resume) ((sum[Row] = load(static_cast<const float*>(sums) + Row * sum_row + column)), ...);
        if (!resume) ((sum[Row] = vec<float>{}), ...);
        (add_step(Step, column, sum, load_b, rows{}), ...);
        (store(sums + Row * sum_row + column, sum[Row]), ...);
    }

private:
    template <class Load, int... Row>
    MP_ALWAYS_INLINE void add_step(int step, std::ptrdiff_t column, vec<float> (&sum)[Rows], Load load_b,
                                   std::integer_sequence<int, Row...> /*rows*/) const {
        vec<float> of_b{};
        load_b(of_b, b[step] + column);
        ((sum[Row] = fused_multiply_add(a[Row * Steps + step], of_b, sum[Row])), ...);
    }
};

template <class Value, int Rows, int Steps>
MP_ALWAYS_INLINE void add_row_runs(const row_runs_task& p, std::ptrdiff_t row, std::ptrdiff_t k) {
    using runs_type = row_runs<Value, Rows, Steps>;
    const runs_type runs(p, row, k, typename runs_type::elements{}, typename runs_type::steps{});
    const bool resume = p.resume || k > 0;
    const std::ptrdiff_t columns = p.columns;
    std::ptrdiff_t column = 0;
    for (; column + lane_count <= columns; column += lane_count) {
        runs.add(
            column, resume,
            [](vec<float>& to, const Value* from) MP_INLINED_LAMBDA { to = load_operands(from); },
            typename runs_type::rows{}, typename runs_type::steps{});
    }
    if (column == columns) return;
    runs.add(
        column, resume,
        [rest = columns - column](vec<float>& to, const Value* from)
            MP_INLINED_LAMBDA { to = load_operands(from, rest); },
        typename runs_type::rows{}, typename runs_type::steps{});
}

template <class Value, int Rows, int Steps>
void multiply_row_runs(const row_runs_task& p) {
    std::ptrdiff_t k = 0;
    for (; k + Steps <= p.k; k += Steps) {
        for (std::ptrdiff_t row = 0; row < p.rows; row += Rows) add_row_runs<Value, Rows, Steps>(p, row, k);
    }
    for (; k < p.k; ++k) {
        for (std::ptrdiff_t row = 0; row < p.rows; row += Rows) add_row_runs<Value, Rows, 1>(p, row, k);
    }
}

/// As many elements of A as registers hold beside the sums.
template <class Value>
inline constexpr row_runs_kernels row_runs_kernels_of = {
    {1, &multiply_row_runs<Value, 1, 8>},
    {4, &multiply_row_runs<Value, 4, MP_TARGET_NUMBER >= MP_TARGET_AVX512 ? 4 : 2>}};

}  // namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET
