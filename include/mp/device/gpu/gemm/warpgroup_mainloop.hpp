// SPDX-License-Identifier: MIT
/// \file
/// A warpgroup that multiplies: the loop over k of a tile of C, from stages of operands to sums in registers, which
/// scales of blocks of k multiply.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/gemm/cluster_work.hpp>
#include <mp/device/gpu/gemm/multistage_kernel.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/gemm/tma_pipeline.hpp>
#include <mp/device/simt/fragments.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <cstddef>
#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The scales of a warp's 16 rows and of `Columns` columns, for one block of k after the other: a ring of three of them in
/// `bytes` of shared memory from `begin` on, to which the warp copies two ahead.
template <int Columns, class Scales>
struct warp_scales {
    static constexpr int stages = 3;
    static constexpr int of_stage = (epilogue_tile_rows + Columns) * Scales::scales_per_vector;
    static constexpr int bytes = stages * of_stage * static_cast<int>(sizeof(float));

    simt::shared_pointer<float> begin;
    int writes = 0;
    int reads = 0;

    /// Begins to copy the scales of a block of k, from a row and a column on, if there is one, as one group of copies.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void copy_next(Thread thread, const Scales& scales, bool exists,
                                                   std::ptrdiff_t row, std::ptrdiff_t column, int block) {
        if (exists) {
            scales.template copy<epilogue_tile_rows, Columns, simt::warp_size>(
                thread, begin + writes * of_stage, thread.lane(), row, column, block);
        }
        thread.commit_copies();
        writes = writes + 1 == stages ? 0 : writes + 1;
    }

    /// total = fma(sum, factor, total) for the sums of the block whose scales are next.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void add_next(Thread thread, const Scales& scales,
                                                  const float (&sum)[std::size_t{Columns / 2}],
                                                  float (&total)[std::size_t{Columns / 2}]) {
        using pair = chunk<float, 2>;
        const auto from = begin + reads * of_stage;
        reads = reads + 1 == stages ? 0 : reads + 1;
        const simt::fragment_coordinate at = simt::mma_c_coordinate(thread.lane(), 0);
        float row_scale[2] = {thread.load(from + at.row), thread.load(from + (at.row + 8))};
        const auto columns_from = from + (epilogue_tile_rows + at.position);
        if (scales.same_for_columns(Columns)) {
            const float column_scale = thread.load(columns_from);
            for (float& scale : row_scale) scale = float_multiply(scale, column_scale);
            MP_UNROLL
            for (int i = 0; i < Columns / 2; ++i) {
                total[i] = float_multiply_add(sum[i], row_scale[i % 4 / 2], total[i]);
            }
            return;
        }
        MP_UNROLL
        for (int i = 0; i < Columns / 2; i += 4) {
            const pair column_scale = thread.load((columns_from + i * 2).template as<pair>());
            for (int n = 0; n < 4; ++n) {
                const float factor = float_multiply(row_scale[n / 2], column_scale.values[n % 2]);
                total[i + n] = float_multiply_add(sum[i + n], factor, total[i + n]);
            }
        }
    }
};

/// The loop over k. The warps of a group wait for `full`, begin their products, and say `empty` for the stage before,
/// whose products are then done, so that two stages of products are always under way.
///
/// Sums of float8 have 13 fraction bits; those of each stage, 128 products, are added to floats. With `Scales` they are
/// multiplied by the scales of the stage: each warp copies those of its rows and of all columns to its ring in shared
/// memory, from ScalesBegin on, two stages ahead, so that they arrive behind products.
///
/// With `Groups` of k, what a last step brings of the k of the next group is not multiplied.
template <class Pipeline, int MultiplyingGroups, class Scales, std::uint32_t ScalesBegin, class Groups>
struct warpgroup_mainloop {
    using operands = typename Pipeline::operands;
    using a_type = typename operands::a_type;
    using b_type = typename operands::b_type;
    using a_stage = typename operands::a_stage;
    using b_stage = typename operands::b_stage;
    using pipeline_state = typename Pipeline::state;
    static constexpr int columns = operands::columns;
    static constexpr bool promotes = is_float8<a_type>;
    static constexpr bool has_scales = Scales::scales_per_vector != 0;
    using scale_ring = warp_scales<columns, Scales>;
    using sums = simt::mma_sum<a_type>[std::size_t{columns / 2}];

    static_assert(!promotes || columns <= 128, "mp: two sets of 256 columns do not fit into registers");
    static_assert(promotes || !has_scales);
    static_assert(!Groups::has_tails || !(promotes || operands::a_k_major || operands::b_k_major));

    /// The sums of the 64 rows of a tile from `first_row` on, by warpgroup `group` of those that multiply. Without a step
    /// nothing is written to them. Calls all_begun() when all products of the tile have been begun.
    MP_ANY_EXECUTION_SPACE
    template <class Thread, class Work, class Function>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void multiply_tile(Thread thread, int group, int first_row,
                                                              const Work& work, const Scales& scales,
                                                              pipeline_state& state, sums& sum,
                                                              Function all_begun) {
        [[maybe_unused]] float promoted[std::size_t{promotes ? columns / 2 : 1}];
        const int count = work.end - work.begin;
        if constexpr (promotes) clear(promoted);
        // The first product overwrites what is in the registers, and without one nobody looks at them. Writing
        // them before would cost more than time: the compiler then finds instructions between products that
        // touch their sums, and lets none run beside another.
#if !MP_DEVICE_CODE
        clear(sum);
#endif
        const int warp = group * 4 + thread.index() % simt::warpgroup_size / simt::warp_size;
        [[maybe_unused]] scale_ring ring{
            {ScalesBegin + static_cast<std::uint32_t>(warp * scale_ring::bytes)}};
        if constexpr (has_scales) {
            for (int i = 0; i < scale_ring::stages - 1; ++i) copy_scales(thread, warp, work, i, scales, ring);
        }
        int before = 0;
        for (int step = 0; step < count; ++step) {
            Pipeline::wait_full(thread, state);
            thread.fence_products();
            MP_UNROLL
            for (int i = 0; i < warpgroup_k_bytes / simt::mma_k_bytes; ++i) {
                multiply(thread, first_row, state, i, (!promotes && step != 0) || i != 0, sum);
            }
            thread.commit_products();
            if constexpr (has_scales) {
                // All lanes have read the scales whose place the next ones take.
                thread.sync_warp();
                copy_scales(thread, warp, work, step + scale_ring::stages - 1, scales, ring);
                thread.template wait_copies<scale_ring::stages - 1>();
                thread.sync_warp();
                thread.template wait_products<0>();
                Pipeline::release(thread, state.stage);
                ring.add_next(thread, scales, sum, promoted);
            } else if constexpr (promotes) {
                thread.template wait_products<0>();
                Pipeline::release(thread, state.stage);
                for (int i = 0; i < columns / 2; ++i) promoted[i] = float_add(promoted[i], sum[i]);
            } else {
                thread.template wait_products<1>();
                if (step != 0) Pipeline::release(thread, before);
                before = state.stage;
            }
            state.advance();
        }
        [[maybe_unused]] bool has_tail = false;
        if constexpr (Groups::has_tails) {
            has_tail = work.tail != 0;
            if (has_tail) {
                multiply_tail(thread, group, first_row, work.tail, state, count != 0, sum);
                thread.template wait_products<1>();
                if (count != 0) Pipeline::release(thread, before);
                before = state.stage;
                state.advance();
            }
        }
        all_begun();
        // On every way to the sums, or the compiler cannot leave them where they are.
        thread.template wait_products<0>();
        if constexpr (has_scales) {
            // The next tile begins its ring anew.
            thread.template wait_copies<0>();
            thread.sync_warp();
        }
        if constexpr (promotes) {
            for (int i = 0; i < columns / 2; ++i) sum[i] = promoted[i];
        } else if (has_tail) {
            Pipeline::template release<true>(thread, before);
        } else if (count > 0) {
            Pipeline::release(thread, before);
        }
    }

private:
    /// Begins the product of 32 bytes of k, number `i` of those of a stage.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void multiply(Thread thread, int first_row,
                                                         const pipeline_state& state, int i, bool add,
                                                         sums& sum) {
        thread.template multiply_async<a_type, b_type, columns, !operands::a_k_major, !operands::b_k_major>(
            sum, a_stage::describe(thread, Pipeline::a_at(state.stage), first_row, i),
            b_stage::describe(thread, Pipeline::b_at(state.stage), 0, i), add);
    }

    /// Begins the products of a step of which the first `length` of k are the group's. The next group's in the last of
    /// them become zero, in both operands, since zero times infinity is not.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void multiply_tail(Thread thread, int group, int first_row,
                                                              int length, const pipeline_state& state,
                                                              bool add, sums& sum) {
        const int products = tile_count(length, simt::mma_k<a_type>);
        Pipeline::wait_full(thread, state);
        if (length % simt::mma_k<a_type> != 0) {
            const int index = thread.index() % simt::warpgroup_size;
            const int end = products * simt::mma_k<a_type>;
            a_stage::template clear<MultiplyingGroups>(thread, Pipeline::a_at(state.stage), length, end,
                                                       group, index);
            b_stage::template clear<MultiplyingGroups>(thread, Pipeline::b_at(state.stage), length, end,
                                                       group, index);
            thread.fence_asynchronous();
            thread.sync_barrier(1, MultiplyingGroups * simt::warpgroup_size);
        }
        MP_UNROLL_BY(1)
        for (int i = 0; i < products; ++i) {
            thread.fence_products();
            multiply(thread, first_row, state, i, add || i != 0, sum);
            thread.commit_products();
        }
    }

    /// Begins to copy the scales of a step of the tile, if there is one.
    MP_ANY_EXECUTION_SPACE
    template <class Thread, class Work>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void copy_scales(Thread thread, int warp, const Work& work,
                                                            int step, const Scales& scales,
                                                            scale_ring& ring) {
        const bool exists = work.begin + step < work.end;
        const int block = first_k<Groups>(work) / operands::k + work.begin + step;
        const std::ptrdiff_t row = work.row + warp * epilogue_tile_rows;
        if constexpr (is_grouped<Groups>) {
            ring.copy_next(thread, scales.of_matrix(work.product), exists, row, work.column, block);
        } else {
            ring.copy_next(thread, scales, exists, row, work.column, block);
        }
    }

    template <class Sum, std::size_t Count>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void clear(Sum (&sum)[Count]) {
        MP_UNROLL
        for (std::size_t i = 0; i < Count; ++i) sum[i] = 0;
    }
};

}}  // namespace mp::detail
