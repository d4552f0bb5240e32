// SPDX-License-Identifier: MIT
/// \file
/// The matrix product by wgmma and TMA (sm_90a): one warpgroup copies, two multiply, and each block of
/// threads stays for several tiles of C.
#pragma once

#include <mp/config.hpp>
#include <mp/format/float_arithmetic.hpp>
#include <mp/gpu/chunks.hpp>
#include <mp/gpu/gemm/multistage_kernel.hpp>
#include <mp/gpu/gemm/output.hpp>
#include <mp/gpu/gemm/problem.hpp>
#include <mp/gpu/gemm/tile_stage.hpp>
#include <mp/simt/fragments.hpp>
#include <mp/simt/launch_shape.hpp>
#include <mp/simt/shared_pointer.hpp>
#include <mp/simt/tensor_map.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// c = epilogue(alpha * a b + beta * c). Tiles of 128 x Columns; blocks of a cluster have tiles that lie
/// below each other, and each brings a part of B to all of them.
///
/// Shared memory is a ring of stages with two barrier objects each. `full` ends a phase when the bytes of a
/// stage have arrived, `empty` when every warp that multiplies, in all blocks of the cluster, is done with
/// it. The copying thread waits for `empty` before it copies; the warps wait for `full`, begin their
/// products, and say `empty` for the stage before, whose products are then done, so that two stages of
/// products are always under way.
///
/// Sums of 8 bits have 13 fraction bits; those of each stage, 128 products, are added to floats. With
/// `Scales` they are multiplied by the scales of the stage: each warp that multiplies copies those of its
/// rows and of all columns to its ring in shared memory, two stages ahead, so that they arrive
/// behind products.
template <class A, class B, bool AKMajor, bool BKMajor, int Columns, int ClusterBlocks, class Output,
          class Epilogue, class Scales = no_scales>
struct warp_specialized_gemm_kernel {
    static constexpr int rows = 128;
    static constexpr int columns = Columns;
    static constexpr bool promotes = sizeof(A) == 1;
    static constexpr int multiplying_groups = 2;
    static constexpr int threads = (1 + multiplying_groups) * simt::warpgroup_size;
    static constexpr int cluster_blocks = ClusterBlocks;
    static constexpr int stages = 4;

    using a_stage = tile_stage<A, rows, AKMajor>;
    using b_stage = tile_stage<B, Columns, BKMajor>;

    static constexpr int b_part = Columns / ClusterBlocks;
    static constexpr int stage_bytes = a_stage::bytes + b_stage::bytes;
    static constexpr std::uint32_t barriers_begin = stages * stage_bytes;
    /// Columns that a warp passes to C at a time, and floats from one row of them to the next: see
    /// multistage_gemm_kernel.
    static constexpr int epilogue_tile_columns = 32;
    static constexpr int epilogue_tile_pitch = epilogue_tile_columns + 8;
    static constexpr int epilogue_tile_rows = 16;
    static constexpr std::uint32_t epilogue_tiles_begin = barriers_begin + 128;
    static constexpr int epilogue_tile_bytes =
        epilogue_tile_rows * epilogue_tile_pitch * static_cast<int>(sizeof(float));
    static constexpr std::uint32_t scales_begin =
        epilogue_tiles_begin + static_cast<std::uint32_t>(multiplying_groups * 4 * epilogue_tile_bytes);
    static constexpr bool has_scales = Scales::scales_per_vector != 0;
    /// Scales of 16 rows and of the columns, for one block of k; a ring of three for each warp.
    static constexpr int scales_of_stage = (epilogue_tile_rows + Columns) * Scales::scales_per_vector;
    static constexpr int scale_stages = 3;
    static constexpr std::size_t shared_bytes =
        scales_begin +
        static_cast<std::size_t>(multiplying_groups * 4 * scale_stages * scales_of_stage) * sizeof(float);

    static_assert(sizeof(A) == sizeof(B) && shared_bytes <= (std::size_t{227} << 10));
    static_assert(!promotes || Columns <= 128, "mp: two sets of 256 columns do not fit into registers");
    static_assert(promotes || !has_scales);

    simt::tensor_map a_map;
    simt::tensor_map b_map;
    product_output<Output, Epilogue> c;
    std::ptrdiff_t k;
    std::ptrdiff_t batch;
    std::ptrdiff_t splits;
    float* sums;  ///< of slices of k: see split_sum_kernel
    /// Matrices of the operands from one product of a batch to the next: one, or none.
    int a_matrices;
    int b_matrices;
    Scales scales;

    /// Work items of clusters: tiles of a cluster, of all slices of all products.
    [[nodiscard]] MP_HOST_DEVICE std::ptrdiff_t work_count() const {
        return cluster_rows() * cluster_columns() * splits * batch;
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        if constexpr (Thread::has_warpgroups) run(thread);
    }

private:
    using barrier = simt::shared_pointer<simt::memory_barrier>;

    MP_HOST_DEVICE static constexpr barrier full(int stage) {
        return {barriers_begin + static_cast<std::uint32_t>(stage) * 16};
    }
    MP_HOST_DEVICE static constexpr barrier empty(int stage) {
        return {barriers_begin + static_cast<std::uint32_t>(stage) * 16 + 8};
    }
    MP_HOST_DEVICE static constexpr std::uint32_t a_at(int stage) {
        return static_cast<std::uint32_t>(stage * stage_bytes);
    }
    MP_HOST_DEVICE static constexpr std::uint32_t b_at(int stage) { return a_at(stage) + a_stage::bytes; }

    /// Stage and parity of a step, and of the one before.
    struct pipeline_state {
        int stage = 0;
        bool parity = false;

        MP_HOST_DEVICE void advance() {
            if (++stage == stages) {
                stage = 0;
                parity = !parity;
            }
        }
    };

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void run(Thread thread) const {
        if (thread.index() == 0) {
            for (int i = 0; i < stages; ++i) {
                thread.init_barrier(full(i), 1);
                thread.init_barrier(empty(i), multiplying_groups * 4 * ClusterBlocks);
            }
            thread.fence_barrier_init();
        }
        synchronize(thread);
        const int group = thread.index() / simt::warpgroup_size;
        if (group == 0) {
            thread.template setmaxnreg_decrease<40>();
            if (thread.index() == 0) copy_stages(thread);
        } else {
            thread.template setmaxnreg_increase<232>();
            multiply_tiles(thread, group - 1);
        }
        // A block must not leave while others still arrive at its barriers. The copying lane reconverges
        // with its warp first.
        thread.sync_warp();
        synchronize(thread);
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void synchronize(Thread thread) {
        if constexpr (ClusterBlocks == 1) {
            thread.sync_block();
        } else {
            thread.sync_cluster();
        }
    }

    /// Tiles of a cluster: ClusterBlocks of them below each other.
    MP_HOST_DEVICE std::ptrdiff_t cluster_rows() const { return tile_count(c.rows, rows * ClusterBlocks); }
    MP_HOST_DEVICE std::ptrdiff_t cluster_columns() const { return tile_count(c.columns, Columns); }
    /// A tile of one of the products, and a slice of k.
    struct tile_work {
        std::ptrdiff_t row;
        std::ptrdiff_t column;
        std::ptrdiff_t slice;  ///< of all slices of all products
        std::ptrdiff_t product;
        std::ptrdiff_t begin;  ///< of the steps
        std::ptrdiff_t end;
    };

    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE tile_work work_of(Thread thread, std::ptrdiff_t number) const {
        const std::ptrdiff_t tiles = cluster_rows() * cluster_columns();
        const tile_coordinate at = coordinate_of_tile(number % tiles, cluster_rows(), cluster_columns());
        const int own = ClusterBlocks == 1 ? 0 : thread.block_in_cluster();
        tile_work work{(at.row * ClusterBlocks + own) * rows, at.column * Columns, number / tiles, 0, 0, 0};
        work.product = work.slice / splits;
        if (c.has_product) {
            const std::ptrdiff_t steps = tile_count(k, a_stage::k);
            const std::ptrdiff_t length = steps_of_slice(steps, splits, 1);
            work.begin = work.slice % splits * length;
            work.end = work.begin + length < steps ? work.begin + length : steps;
        }
        return work;
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void copy_stages(Thread thread) const {
        pipeline_state state;
        const int own_part = ClusterBlocks == 1 ? 0 : thread.block_in_cluster() * b_part;
        for (std::ptrdiff_t number = thread.block() / ClusterBlocks; number < work_count();
             number += thread.blocks() / ClusterBlocks) {
            const tile_work work = work_of(thread, number);
            const auto row = static_cast<int>(work.row);
            const auto column = static_cast<int>(work.column);
            const auto product = static_cast<int>(work.product);
            for (std::ptrdiff_t step = work.begin; step < work.end; ++step) {
                const auto p = static_cast<int>(step * a_stage::k);
                // The phase before the first one counts as ended.
                thread.wait_barrier(empty(state.stage), !state.parity);
                thread.arrive_expect(full(state.stage), stage_bytes);
                a_stage::template copy<rows>(thread, a_at(state.stage), 0, a_map, row, p,
                                             product * a_matrices, full(state.stage), 0);
                b_stage::template copy<b_part>(
                    thread, b_at(state.stage), own_part, b_map, column + own_part, p, product * b_matrices,
                    full(state.stage),
                    static_cast<std::uint16_t>(ClusterBlocks == 1 ? 0 : (1 << ClusterBlocks) - 1));
                state.advance();
            }
        }
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void release(Thread thread, int stage) {
        if (thread.lane() >= ClusterBlocks) return;
        if constexpr (ClusterBlocks == 1) {
            thread.arrive(empty(stage));
        } else {
            thread.arrive_remote(empty(stage), thread.lane());
        }
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void multiply_tiles(Thread thread, int group) const {
        pipeline_state state;
        for (std::ptrdiff_t number = thread.block() / ClusterBlocks; number < work_count();
             number += thread.blocks() / ClusterBlocks) {
            const tile_work work = work_of(thread, number);
            float sum[std::size_t{Columns / 2}];
            multiply_tile(thread, group, work, state, sum);
            const std::ptrdiff_t row = work.row + group * 64;
            if (splits == 1) {
                product_output<Output, Epilogue> to = c;
                to.data += work.product * c.batch_stride;
                write_sums(thread, group, sum, row, work.column, to);
            } else {
                write_sums(thread, group, sum, row, work.column,
                           sums_of_slice(sums, c.rows, c.columns, work.slice));
            }
        }
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void multiply_tile(Thread thread, int group, const tile_work& work,
                                                       pipeline_state& state,
                                                       float (&sum)[std::size_t{Columns / 2}]) const {
        [[maybe_unused]] float promoted[std::size_t{promotes ? Columns / 2 : 1}];
        const std::ptrdiff_t count = work.end - work.begin;
        if constexpr (promotes) clear(promoted);
        // The first product overwrites what is in the registers. Writing them before would cost more than
        // time: the compiler then finds instructions between products that touch their sums, and lets
        // none run beside another.
#if MP_DEVICE_CODE
        if (count <= 0) clear(sum);
#else
        clear(sum);
#endif
        [[maybe_unused]] scale_ring ring{};
        if constexpr (has_scales) {
            for (int i = 0; i < scale_stages - 1; ++i) copy_scales(thread, group, work, i, ring);
        }
        int before = 0;
        for (std::ptrdiff_t step = 0; step < count; ++step) {
            thread.wait_barrier(full(state.stage), state.parity);
            thread.fence_products();
            MP_UNROLL
            for (int i = 0; i < warpgroup_k_bytes / simt::mma_k_bytes; ++i) {
                thread.template multiply_async<A, B, Columns, !AKMajor, !BKMajor>(
                    sum, a_stage::describe(thread, a_at(state.stage), group * 64, i),
                    b_stage::describe(thread, b_at(state.stage), 0, i), (!promotes && step != 0) || i != 0);
            }
            thread.commit_products();
            if constexpr (has_scales) {
                // All lanes have read the scales whose place the next ones take.
                thread.sync_warp();
                copy_scales(thread, group, work, step + scale_stages - 1, ring);
                thread.template wait_copies<scale_stages - 1>();
                thread.sync_warp();
                thread.template wait_products<0>();
                add_scaled(thread, scales_at(thread, group, ring.reads), sum, promoted);
                ring.reads = ring.reads + 1 == scale_stages ? 0 : ring.reads + 1;
                release(thread, state.stage);
            } else if constexpr (promotes) {
                thread.template wait_products<0>();
                for (int i = 0; i < Columns / 2; ++i) promoted[i] = float_add(promoted[i], sum[i]);
                release(thread, state.stage);
            } else {
                thread.template wait_products<1>();
                if (step != 0) release(thread, before);
                before = state.stage;
            }
            state.advance();
        }
        // On every way to the sums, or the compiler cannot leave them where they are.
        thread.template wait_products<0>();
        if constexpr (has_scales) {
            // The next tile begins its ring anew.
            thread.template wait_copies<0>();
            thread.sync_warp();
        }
        if constexpr (promotes) {
            for (int i = 0; i < Columns / 2; ++i) sum[i] = promoted[i];
        } else if (count > 0) {
            release(thread, before);
        }
    }

    /// The stages of a warp's ring of scales that are written and read next.
    struct scale_ring {
        int writes = 0;
        int reads = 0;
    };

    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static simt::shared_pointer<float> scales_at(Thread thread, int group,
                                                                                 int stage) {
        const int warp = group * 4 + thread.index() % simt::warpgroup_size / simt::warp_size;
        return simt::shared_pointer<float>{scales_begin} + (warp * scale_stages + stage) * scales_of_stage;
    }

    /// Begins to copy the scales of a step of the tile, if there is one, as one group of copies.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void copy_scales(Thread thread, int group, const tile_work& work,
                                                     std::ptrdiff_t step, scale_ring& ring) const {
        if (work.begin + step < work.end) {
            const int warp = thread.index() % simt::warpgroup_size / simt::warp_size;
            scales.template copy<epilogue_tile_rows, Columns, simt::warp_size>(
                thread, scales_at(thread, group, ring.writes), thread.lane(),
                work.row + group * 64 + warp * epilogue_tile_rows, work.column, work.begin + step);
        }
        thread.commit_copies();
        ring.writes = ring.writes + 1 == scale_stages ? 0 : ring.writes + 1;
    }

    /// total = fma(sum, factor, total) for the sums of a block of k.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void add_scaled(Thread thread, simt::shared_pointer<float> from,
                                                    const float (&sum)[std::size_t{Columns / 2}],
                                                    float (&total)[std::size_t{Columns / 2}]) const {
        using pair = chunk<float, 2>;
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

    template <std::size_t Count>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void clear(float (&sum)[Count]) {
        MP_UNROLL
        for (std::size_t i = 0; i < Count; ++i) sum[i] = 0.0F;
    }

    /// Passes a warp's 16 rows through its epilogue_tile, 32 columns at a time, to C.
    MP_ANY_EXECUTION_SPACE
    template <class Thread, class Target, class End>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void write_sums(Thread thread, int group,
                                                           const float (&sum)[std::size_t{Columns / 2}],
                                                           std::ptrdiff_t row, std::ptrdiff_t column,
                                                           const product_output<Target, End>& to_c) {
        using pair = chunk<float, 2>;
        constexpr int count = output_chunk<Target>;
        constexpr int chunks_across = epilogue_tile_columns / count;
        const int warp = thread.index() % simt::warpgroup_size / simt::warp_size;
        const simt::shared_pointer<float> epilogue_tile{
            epilogue_tiles_begin + static_cast<std::uint32_t>((group * 4 + warp) * epilogue_tile_bytes)};
        MP_UNROLL
        for (int part = 0; part < Columns / epilogue_tile_columns; ++part) {
            MP_UNROLL
            for (int n = 0; n < epilogue_tile_columns / 2; n += 2) {
                const simt::fragment_coordinate at = simt::mma_c_coordinate(thread.lane(), n % 4);
                const auto to = epilogue_tile + (at.row * epilogue_tile_pitch + n / 4 * 8 + at.position);
                const int i = part * epilogue_tile_columns / 2 + n;
                thread.store(to.template as<pair>(), pair{{sum[i], sum[i + 1]}});
            }
            thread.sync_warp();
            for (int n = 0; n < epilogue_tile_rows * chunks_across / simt::warp_size; ++n) {
                const int number = n * simt::warp_size + thread.lane();
                const int tile_row = number / chunks_across;
                const int position = number % chunks_across * count;
                const auto from = epilogue_tile + (tile_row * epilogue_tile_pitch + position);
                float product[std::size_t{count}];
                load_chunk_of_sums(thread, from, product);
                finish_chunk(thread, to_c, product, row + warp * epilogue_tile_rows + tile_row,
                             column + part * epilogue_tile_columns + position);
            }
            thread.sync_warp();
        }
    }
};

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
