// SPDX-License-Identifier: MIT
/// \file
/// The two products of attention by a warp: of rows with rows, and of weights in registers with rows. By
/// mma.sync where the tensor cores of the device take the format of the tiles, else by fused multiply-adds;
/// lanes hold the same elements either way, those of mma_c_coordinate.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/bfloat16.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/attention/heads.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/simt/fragments.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/half.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// What a lane has of a warp's 16 x Columns sums: element n of fragment j is row mma_c_coordinate(lane,
/// n).row and column 8 j + mma_c_coordinate(lane, n).position.
template <int Columns>
struct attention_sums {
    static constexpr int fragments = Columns / simt::mma_columns;

    float of[std::size_t{fragments}][4];
};

/// The row of a lane's elements 0 and 1 (half 0), or 2 and 3 (half 1), among the 16, and the column of its
/// first element.
[[nodiscard]] MP_HOST_DEVICE constexpr int attention_row(int lane, int half) {
    return simt::mma_c_coordinate(lane, 2 * half).row;
}
[[nodiscard]] MP_HOST_DEVICE constexpr int attention_column(int lane, int fragment) {
    return fragment * simt::mma_columns + simt::mma_c_coordinate(lane, 0).position;
}

/// Whether mma.sync of an architecture multiplies a format.
template <class Input, class Thread>
inline constexpr bool has_matrix_units = (std::is_same_v<Input, half> && Thread::capability >= 75) ||
                                         (std::is_same_v<Input, bfloat16> && Thread::capability >= 80);

/// Two neighbouring numbers of a fragment.
template <class Input>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE std::uint32_t fragment_pair(float first, float second) {
    return bit_cast<std::uint32_t>(chunk<Input, 2>{{static_cast<Input>(first), static_cast<Input>(second)}});
}

/// Products of a warp with tiles of `Width` columns.
template <class Input, int Width>
struct attention_products {
    using stage = attention_stage<Input, Width>;
    using pointer = typename stage::pointer;
    using row_sums = attention_sums<attention_tile>;
    using column_sums = attention_sums<Width>;

    /// sum += the products of the 16 rows of `a` from `row` on with all rows of `b`, over the first `head_dim`
    /// columns.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void add_row_products(Thread thread, pointer a, int row, pointer b,
                                                                 int head_dim, row_sums& sum) {
        const int lane = thread.lane();
        if constexpr (has_matrix_units<Input, Thread>) {
            constexpr int k = simt::mma_k<Input>;
            MP_UNROLL_BY(1)
            for (int p = 0; p < head_dim; p += k) {
                const simt::registers<4> left = thread.template load_matrix<4>(
                    stage::element(a, row + lane % 16, p + lane / 16 * stage::chunk_elements));
                MP_UNROLL
                for (int j = 0; j < row_sums::fragments; j += 2) {
                    const simt::registers<4> right = thread.template load_matrix<4>(
                        stage::element(b, j * simt::mma_columns + lane / 16 * 8 + lane % 8,
                                       p + lane / 8 % 2 * stage::chunk_elements));
                    add_pair(thread, left, right, sum.of[j], sum.of[j + 1]);
                }
            }
        } else {
            using elements = chunk<Input, 4>;
            MP_UNROLL_BY(1)
            for (int p = 0; p < head_dim; p += 4) {
                elements left[2];
                for (int half = 0; half < 2; ++half) {
                    left[half] = thread.load(
                        stage::element(a, row + attention_row(lane, half), p).template as<elements>());
                }
                MP_UNROLL
                for (int j = 0; j < row_sums::fragments; ++j) {
                    MP_UNROLL
                    for (int n = 0; n < 2; ++n) {
                        const elements right = thread.load(
                            stage::element(b, attention_column(lane, j) + n, p).template as<elements>());
                        MP_UNROLL
                        for (int i = 0; i < 4; ++i) {
                            const auto factor = static_cast<float>(right.values[i]);
                            sum.of[j][n] = float_multiply_add(static_cast<float>(left[0].values[i]), factor,
                                                              sum.of[j][n]);
                            sum.of[j][n + 2] = float_multiply_add(static_cast<float>(left[1].values[i]),
                                                                  factor, sum.of[j][n + 2]);
                        }
                    }
                }
            }
        }
    }

    /// sum += the products of 16 rows of weights with the rows of `b`, as many as weights have columns, of
    /// which the first `count` are not zero; of `b` the first `columns` columns. The tensor cores take
    /// weights rounded to the format of the tiles.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void add_weighted_rows(Thread thread, const row_sums& weights,
                                                                  pointer b, int count, int columns,
                                                                  column_sums& sum) {
        const int lane = thread.lane();
        if constexpr (has_matrix_units<Input, Thread>) {
            constexpr int k = simt::mma_k<Input>;
            MP_UNROLL
            for (int step = 0; step < attention_tile / k; ++step) {
                if (step * k >= count) continue;
                const auto& first = weights.of[2 * step];
                const auto& second = weights.of[2 * step + 1];
                const simt::registers<4> left = {
                    {fragment_pair<Input>(first[0], first[1]), fragment_pair<Input>(first[2], first[3]),
                     fragment_pair<Input>(second[0], second[1]), fragment_pair<Input>(second[2], second[3])}};
                MP_UNROLL
                for (int j = 0; j < column_sums::fragments; j += 2) {
                    if (j * simt::mma_columns >= columns) continue;
                    const simt::registers<4> right = thread.template load_matrix_transposed<4>(stage::element(
                        b, step * k + lane / 8 % 2 * 8 + lane % 8, j * simt::mma_columns + lane / 16 * 8));
                    add_pair(thread, left, right, sum.of[j], sum.of[j + 1]);
                }
            }
        } else {
            using elements = chunk<Input, 2>;
            MP_UNROLL
            for (int step = 0; step < row_sums::fragments; ++step) {
                if (step * simt::mma_columns >= count) continue;
                MP_UNROLL
                for (int p = 0; p < simt::mma_columns; ++p) {
                    const int owner = lane / 4 * 4 + p / 2;
                    const float upper = thread.shuffle(weights.of[step][p % 2], owner);
                    const float lower = thread.shuffle(weights.of[step][p % 2 + 2], owner);
                    MP_UNROLL
                    for (int j = 0; j < column_sums::fragments; ++j) {
                        if (j * simt::mma_columns >= columns) continue;
                        const elements right = thread.load(
                            stage::element(b, step * simt::mma_columns + p, attention_column(lane, j))
                                .template as<elements>());
                        MP_UNROLL
                        for (int n = 0; n < 2; ++n) {
                            const auto factor = static_cast<float>(right.values[n]);
                            sum.of[j][n] = float_multiply_add(upper, factor, sum.of[j][n]);
                            sum.of[j][n + 2] = float_multiply_add(lower, factor, sum.of[j][n + 2]);
                        }
                    }
                }
            }
        }
    }

private:
    /// Two fragments of B as load_matrix brings them.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void add_pair(Thread thread, const simt::registers<4>& a,
                                                         const simt::registers<4>& b, float (&first)[4],
                                                         float (&second)[4]) {
        thread.template multiply_add<Input, Input>(first, a, simt::registers<2>{{b[0], b[1]}});
        thread.template multiply_add<Input, Input>(second, a, simt::registers<2>{{b[2], b[3]}});
    }
};

/// Adds the products of rows of one head with rows of another over all of head_dim, a slice of `Width`
/// columns at a time in shared memory. All threads of the block call it.
template <class Input, int Width, class A, class B>
struct attention_row_products {
    using products = attention_products<Input, Width>;
    using stage = typename products::stage;

    head_matrix<const A> a;  ///< one head
    head_matrix<const B> b;  ///< one head
    typename products::pointer a_stage;
    typename products::pointer b_stage;

    /// Of the tile of a that starts at `a_row`, of which a warp takes 16 rows, with that of `b`.
    /// Where `keeps` and one slice is all, the tile of a is already there. All copies that were begun before
    /// have landed when it returns.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void add(Thread thread, std::ptrdiff_t a_row, std::ptrdiff_t b_row,
                                             bool keeps, typename products::row_sums& sum) const {
        std::ptrdiff_t column = 0;
        do {
            thread.sync_block();  // the stages have been read
            if (!keeps || a.columns > Width) stage::copy(thread, a_stage, a, a_row, column);
            stage::copy(thread, b_stage, b, b_row, column);
            thread.commit_copies();
            thread.template wait_copies<0>();
            thread.sync_block();
            products::add_row_products(thread, a_stage, thread.warp() * 16, b_stage,
                                       left_of(a.columns - column, Width), sum);
            column += Width;
        } while (column < a.columns);
    }
};

}}  // namespace mp::detail
