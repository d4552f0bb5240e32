// SPDX-License-Identifier: MIT
/// \file
/// Scales of blocks of k in matrix products on GPUs: how they get to shared memory, and what engines
/// do with them.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/gemm/mma_policy.hpp>
#include <mp/device/gpu/gemm/padded_policies.hpp>
#include <mp/device/simt/fragments.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/linalg/gemm/k_scales.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <cstddef>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The scales of both operands, as kernels read them. In shared memory every row of a tile, and every column
/// behind the rows, has its own float, however many of them share one.
struct block_scales {
    static constexpr int scales_per_vector = 1;
    static constexpr int k = static_cast<int>(k_per_scale);

    k_scale_view a;
    k_scale_view b;
    /// Floats from the scales of a matrix to those of the next one of a batch.
    std::ptrdiff_t a_batch_stride = 0;
    std::ptrdiff_t b_batch_stride = 0;

    /// Those of a product whose operands change places.
    [[nodiscard]] block_scales exchanged() const { return {b, a, b_batch_stride, a_batch_stride}; }

    /// Those of one of the products of a batch.
    [[nodiscard]] MP_HOST_DEVICE block_scales of_matrix(std::ptrdiff_t number) const {
        block_scales scales = *this;
        scales.a.data += number * a_batch_stride;
        scales.b.data += number * b_batch_stride;
        return scales;
    }

    /// Begins to copy the scales of Rows rows and Columns columns for a block of k; what lies outside
    /// of the product becomes zero. By `Threads` threads, whose numbers are `index`.
    MP_ANY_EXECUTION_SPACE
    template <int Rows, int Columns, int Threads, class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void copy(Thread thread, simt::shared_pointer<float> to, int index,
                                              std::ptrdiff_t row, std::ptrdiff_t column,
                                              std::ptrdiff_t block) const {
        // Loops, since this is far from where the time goes.
        MP_UNROLL_BY(1)
        for (int i = index; i < Rows; i += Threads) copy_one(thread, to + i, a, row + i, block);
        MP_UNROLL_BY(1)
        for (int i = index; i < Columns; i += Threads) {
            copy_one(thread, to + (Rows + i), b, column + i, block);
        }
    }

    /// Whether the columns of a tile share their scales; their number is a power of two.
    [[nodiscard]] MP_HOST_DEVICE bool same_for_columns(int columns) const { return columns >> b.shift <= 1; }

private:
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void copy_one(Thread thread, simt::shared_pointer<float> to,
                                                         const k_scale_view& scales, std::ptrdiff_t vector,
                                                         std::ptrdiff_t block) {
        const bool inside = vector < scales.vectors;
        thread.template copy_async<4>(to, inside ? scales.at(vector, block) : scales.data, inside ? 4 : 0);
    }
};

/// The sums of an policy: those of a block of k, and the scaled ones of the blocks before it.
template <int RowFragments, int ColumnFragments, int Count>
struct scaled_sums {
    float of[std::size_t{RowFragments}][std::size_t{ColumnFragments}][std::size_t{Count}];
    float total[std::size_t{RowFragments}][std::size_t{ColumnFragments}][std::size_t{Count}];

    /// All blocks of k are in the totals, which take the place of the sums.
    MP_HOST_DEVICE MP_ALWAYS_INLINE void finish() {
        MP_UNROLL
        for (int i = 0; i < RowFragments; ++i) {
            MP_UNROLL
            for (int j = 0; j < ColumnFragments; ++j) {
                MP_UNROLL
                for (int n = 0; n < Count; ++n) of[i][j][n] = total[i][j][n];
            }
        }
    }
};

/// mma_policy for scaled products. Those of all architectures start from zero with each block.
template <class Tile, class A, class B, bool AKMajor, bool BKMajor>
struct scaled_mma_policy : mma_policy<Tile, A, B, AKMajor, BKMajor> {
    using base = mma_policy<Tile, A, B, AKMajor, BKMajor>;
    template <class>
    using sums = scaled_sums<base::row_fragments, base::column_fragments, 4>;

    /// Two sets of the sums of large tiles and the way through half do not fit into registers.
    template <class Thread>
    static constexpr bool runs_on = base::template runs_on<Thread> &&
                                    (Tile::columns < 128 || !multiplies_float8_as_half(Thread::capability));

    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void clear(Thread, sums<Thread>& sum) {
        sum = {};
    }
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void finish(Thread, sums<Thread>& sum) {
        sum.finish();
    }

    /// Ends a block of k. `scales` are those of the tile, of which the warp's begin at `rows` and
    /// `columns`.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void end_scaled(Thread thread, simt::shared_pointer<float> scales,
                                                           int rows, int columns, bool same_for_columns,
                                                           sums<Thread>& sum) {
        const int lane = thread.lane();
        float row_scale[base::row_fragments][2];
        MP_UNROLL
        for (int i = 0; i < base::row_fragments; ++i) {
            const auto from = scales + (rows + i * simt::mma_rows);
            row_scale[i][0] = thread.load(from + base::row_of_sum(lane, 0));
            row_scale[i][1] = thread.load(from + base::row_of_sum(lane, 2));
        }
        const auto from = scales + columns;
        if (same_for_columns) {
            // One product of scales for a row instead of one for each element.
            const float column_scale = thread.load(from);
            MP_UNROLL
            for (int i = 0; i < base::row_fragments; ++i) {
                row_scale[i][0] = float_multiply(row_scale[i][0], column_scale);
                row_scale[i][1] = float_multiply(row_scale[i][1], column_scale);
            }
            add_blocks<true>(thread, from, row_scale, sum);
        } else {
            add_blocks<false>(thread, from, row_scale, sum);
        }
    }

private:
    MP_ANY_EXECUTION_SPACE
    template <bool RowScales, class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void add_blocks(
        Thread thread, [[maybe_unused]] simt::shared_pointer<float> column_scales,
        const float (&row_scale)[base::row_fragments][2], sums<Thread>& sum) {
        using pair = chunk<float, 2>;
        MP_UNROLL
        for (int j = 0; j < base::column_fragments; ++j) {
            [[maybe_unused]] pair column_scale{};
            if constexpr (!RowScales) {
                const auto from = column_scales + base::column_of_sum(thread.lane(), j, 0);
                if constexpr (base::b_stage::interleaves) {
                    column_scale = {{thread.load(from), thread.load(from + 2)}};
                } else {
                    column_scale = thread.load(from.template as<pair>());
                }
            }
            MP_UNROLL
            for (int i = 0; i < base::row_fragments; ++i) {
                MP_UNROLL
                for (int n = 0; n < 4; ++n) {
                    float factor = row_scale[i][n / 2];
                    if constexpr (!RowScales) factor = float_multiply(factor, column_scale.values[n % 2]);
                    float& total = sum.total[i][j][n];
                    total = float_multiply_add(sum.of[i][j][n], factor, total);
                    sum.of[i][j][n] = 0.0F;
                }
            }
        }
    }
};

/// simt_policy for scaled products.
template <class Tile, class A, class B, bool AKMajor, bool BKMajor>
struct scaled_simt_policy : simt_policy<Tile, A, B, AKMajor, BKMajor> {
    using base = simt_policy<Tile, A, B, AKMajor, BKMajor>;
    template <class>
    using sums = scaled_sums<base::row_fragments, base::column_fragments, 8>;

    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void clear(Thread, sums<Thread>& sum) {
        sum = {};
    }
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void finish(Thread, sums<Thread>& sum) {
        sum.finish();
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void end_scaled(Thread thread, simt::shared_pointer<float> scales,
                                                           int rows, int columns, bool /*same_for_columns*/,
                                                           sums<Thread>& sum) {
        for (int i = 0; i < base::row_fragments; ++i) {
            const float row_scale = thread.load(scales + (rows + i * 16 + thread.lane() / 2));
            for (int j = 0; j < base::column_fragments; ++j) {
                for (int n = 0; n < 8; ++n) {
                    const float column_scale =
                        thread.load(scales + (columns + j * 16 + thread.lane() % 2 * 8 + n));
                    float& total = sum.total[i][j][n];
                    total =
                        float_multiply_add(sum.of[i][j][n], float_multiply(row_scale, column_scale), total);
                    sum.of[i][j][n] = 0.0F;
                }
            }
        }
    }
};

}}  // namespace mp::detail
