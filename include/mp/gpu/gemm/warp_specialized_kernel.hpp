// SPDX-License-Identifier: MIT
/// \file
/// The matrix product by wgmma and TMA (sm_90a): one warpgroup copies, two multiply, and each block of
/// threads stays for several tiles of C.
#pragma once

#include <mp/config.hpp>
#include <mp/format/float_arithmetic.hpp>
#include <mp/gemm/epilogue.hpp>
#include <mp/gpu/chunks.hpp>
#include <mp/gpu/gemm/cluster_work.hpp>
#include <mp/gpu/gemm/group_work.hpp>
#include <mp/gpu/gemm/multistage_kernel.hpp>
#include <mp/gpu/gemm/output.hpp>
#include <mp/gpu/gemm/problem.hpp>
#include <mp/gpu/gemm/tile_stage.hpp>
#include <mp/gpu/gemm/warp_output.hpp>
#include <mp/gpu/gemm/warp_scales.hpp>
#include <mp/gpu/properties.hpp>
#include <mp/simt/fragments.hpp>
#include <mp/simt/launch_shape.hpp>
#include <mp/simt/shared_pointer.hpp>
#include <mp/simt/tensor_map.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

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
///
/// Where `maps_c` says so, warps end their sums in registers and TMA writes them: see warp_output.
///
/// With `Swapped`, for few rows of C, the operands have changed places, and what is computed is the transpose of C: see
/// transposed_output. Reading the large operand is what takes the time; so tiles have 64 of its rows, for one warpgroup, and two
/// blocks of a multiprocessor share its memory, with as many stages as there is room for.
///
/// With `Groups` the tiles are those of groups: see group_work. Rows of the next group that a tile brings along are
/// not stored, and what a last step brings of the k of the next group is not multiplied.
template <class A, class B, bool AKMajor, bool BKMajor, int Columns, int ClusterBlocks, class Output,
          class Epilogue, class Scales = no_scales, bool Swapped = false, class Groups = no_groups>
struct warp_specialized_gemm_kernel {
    static constexpr int multiplying_groups = Swapped ? 1 : 2;
    static constexpr int rows = 64 * multiplying_groups;
    static constexpr int columns = Columns;
    static constexpr bool swapped = Swapped;
    static constexpr bool promotes = sizeof(A) == 1;
    static constexpr int threads = (1 + multiplying_groups) * simt::warpgroup_size;
    static constexpr int cluster_blocks = ClusterBlocks;
    static constexpr int resident_blocks = Swapped ? 2 : 1;

    using a_stage = tile_stage<A, rows, AKMajor>;
    using b_stage = tile_stage<B, Columns, BKMajor>;

    static constexpr int b_part = Columns / ClusterBlocks;
    static constexpr int stage_bytes = a_stage::bytes + b_stage::bytes;
    using output = std::conditional_t<Swapped, transposed_output<Columns>, warp_output<Columns>>;
    /// Whether C, not only sums of slices, may be written by TMA.
    static constexpr bool ends_in_registers = !Swapped && std::is_same_v<Epilogue, identity_epilogue>;
    static constexpr bool has_scales = Scales::scales_per_vector != 0;
    static constexpr bool is_grouped = !std::is_same_v<Groups, no_groups>;
    using scale_ring = warp_scales<Columns, Scales>;

    /// Bytes of shared memory: what there is for a block, of which the system takes 1 KiB; what all warps have for their
    /// output and scales; and barrier objects of up to 16 stages.
    static constexpr int most_bytes = (shared_bytes_of(90) / resident_blocks) - 1024;
    static constexpr int outputs_bytes = multiplying_groups * 4 * output::bytes;
    static constexpr int scales_bytes = multiplying_groups * 4 * scale_ring::bytes;
    static constexpr int barriers_bytes = 256;
    static constexpr int stages =
        Swapped ? (most_bytes - outputs_bytes - scales_bytes - barriers_bytes) / stage_bytes : 4;
    static constexpr std::uint32_t outputs_begin = stages * stage_bytes;
    static constexpr std::uint32_t barriers_begin = outputs_begin + outputs_bytes;
    static constexpr std::uint32_t scales_begin = barriers_begin + barriers_bytes;
    static constexpr std::size_t shared_bytes = scales_begin + scales_bytes;

    static_assert(sizeof(A) == sizeof(B) && shared_bytes <= most_bytes && stages * 16 <= barriers_bytes);
    static_assert(!promotes || Columns <= 128, "mp: two sets of 256 columns do not fit into registers");
    static_assert(promotes || !has_scales);
    static_assert(!Groups::along_k || !(promotes || AKMajor || BKMajor));
    static_assert(!Swapped || !is_grouped);
    static_assert(stage_bytes % 1024 == 0 && (Swapped || output::bytes % 1024 == 0));

    simt::tensor_map a_map;
    simt::tensor_map b_map;
    simt::tensor_map c_map;  ///< of C, or of the slices' sums
    product_output<Output, Epilogue> c;
    std::ptrdiff_t k;
    std::ptrdiff_t batch;
    std::ptrdiff_t splits;
    float* sums;  ///< of slices of k: see split_sum_kernel
    /// Matrices of the operands from one product of a batch to the next: one, or none.
    int a_matrices;
    int b_matrices;
    bool maps_c;
    Scales scales;
    Groups groups = {};

    /// Tiles of clusters that lie below each other, and beside each other, in C or in its transpose.
    [[nodiscard]] MP_HOST_DEVICE std::ptrdiff_t tiles_down() const {
        return tile_count(Swapped ? c.columns : c.rows, rows * ClusterBlocks);
    }
    [[nodiscard]] MP_HOST_DEVICE std::ptrdiff_t tiles_across() const {
        return tile_count(Swapped ? c.rows : c.columns, Columns);
    }
    /// Work items of clusters: tiles of a cluster, of all slices of all products; of groups as many as there may be.
    [[nodiscard]] MP_HOST_DEVICE std::ptrdiff_t work_count() const {
        if constexpr (is_grouped) {
            return groups.blocks(shape());
        } else {
            return tiles_down() * tiles_across() * splits * batch;
        }
    }
    /// There is less of them than this.
    static constexpr std::ptrdiff_t most_work = std::ptrdiff_t{1} << 31;

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
        unsigned parity = 0;

        MP_HOST_DEVICE void advance() {
            const bool last = stage == stages - 1;
            stage = last ? 0 : stage + 1;
            parity ^= last ? 1U : 0U;
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
            if (c.has_product) {
                thread.prefetch_map(a_map);
                thread.prefetch_map(b_map);
            }
        }
        // Nothing passes through memory here but barrier objects.
        if constexpr (ClusterBlocks == 1) {
            thread.sync_block();
        } else {
            thread.sync_cluster_relaxed();
        }
        // All lanes of a warp have the same, and the compiler is to know it.
        const int group = thread.uniform(thread.index() / simt::warpgroup_size);
        if (group == 0) {
            if constexpr (!Swapped) thread.template setmaxnreg_decrease<40>();
            if (thread.index() == 0) copy_stages(thread);
        } else {
            if constexpr (!Swapped) thread.template setmaxnreg_increase<232>();
            multiply_tiles(thread, group - 1);
        }
        // A block must not leave while others still arrive at its barriers: not relaxed, so that they have. The
        // copying lane reconverges with its warp first.
        if constexpr (ClusterBlocks != 1) {
            thread.sync_warp();
            thread.sync_cluster();
        }
    }

    using work_list = cluster_work<rows, Columns, ClusterBlocks>;
    using work_item = std::conditional_t<is_grouped, group_tile_work, tile_work>;

    [[nodiscard]] MP_HOST_DEVICE tile_shape shape() const {
        return {rows * ClusterBlocks, c.rows, tiles_across(), c.has_product ? k : 0};
    }

    template <class Thread>
        requires is_grouped
    MP_HOST_DEVICE MP_ALWAYS_INLINE auto work_of(Thread thread) const {
        return group_work<Groups, rows, Columns, ClusterBlocks, a_stage::k, Thread>(thread, groups, shape());
    }
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE work_list work_of(Thread thread) const {
        const auto steps = static_cast<unsigned>(c.has_product ? tile_count(k, a_stage::k) : 0);
        return {static_cast<unsigned>(tiles_down()),
                static_cast<unsigned>(tiles_across()),
                static_cast<unsigned>(splits),
                static_cast<unsigned>(thread.block()) / ClusterBlocks,
                static_cast<unsigned>(thread.blocks()) / ClusterBlocks,
                static_cast<unsigned>(work_count()),
                ClusterBlocks == 1 ? 0U : static_cast<unsigned>(thread.block_in_cluster()),
                static_cast<int>(steps),
                static_cast<int>(tile_count(steps, static_cast<unsigned>(splits)))};
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void copy_stages(Thread thread) const {
        pipeline_state state;
        const int own_part = ClusterBlocks == 1 ? 0 : thread.block_in_cluster() * b_part;
        auto list = work_of(thread);
        for (; !list.is_done(); list.advance()) {
            const work_item work = list.current();
            const auto row = static_cast<int>(work.row);
            const auto column = static_cast<int>(work.column) + own_part;
            for (int step = work.begin; step < end_of_steps(work); ++step) {
                const int p = first_of(work) + step * a_stage::k;
                // The phase before the first one counts as ended.
                thread.wait_barrier(empty(state.stage), state.parity == 0);
                thread.arrive_expect(full(state.stage), stage_bytes);
                a_stage::template copy<rows>(thread, a_at(state.stage), 0, a_map, row, p,
                                             work.product * a_matrices, full(state.stage), 0);
                b_stage::template copy<b_part>(
                    thread, b_at(state.stage), own_part, b_map, column, p, work.product * b_matrices,
                    full(state.stage),
                    static_cast<std::uint16_t>(ClusterBlocks == 1 ? 0 : (1 << ClusterBlocks) - 1));
                state.advance();
            }
        }
    }

    /// Where the steps of a tile begin in k, and how many there are with the one that a group has in part.
    MP_HOST_DEVICE MP_ALWAYS_INLINE static int first_of([[maybe_unused]] const work_item& work) {
        if constexpr (Groups::along_k) {
            return work.first;
        } else {
            return 0;
        }
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE static int end_of_steps(const work_item& work) {
        if constexpr (Groups::along_k) {
            return work.end + (work.tail != 0 ? 1 : 0);
        } else {
            return work.end;
        }
    }

    /// Says that a warp is done with a stage; where threads wrote to it, too, the other block is to know.
    MP_ANY_EXECUTION_SPACE
    template <bool Written = false, class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void release(Thread thread, int stage) {
        if (thread.lane() >= ClusterBlocks) return;
        if constexpr (ClusterBlocks == 1) {
            thread.arrive(empty(stage));
        } else if constexpr (Written) {
            thread.arrive_remote_ordinary(empty(stage), thread.lane());
        } else {
            thread.arrive_remote(empty(stage), thread.lane());
        }
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void multiply_tiles(Thread thread, int group) const {
        pipeline_state state;
        const int warp = thread.uniform(thread.index() % simt::warpgroup_size / simt::warp_size);
        const std::uint32_t at =
            outputs_begin + static_cast<std::uint32_t>((group * 4 + warp) * output::bytes);
        auto list = work_of(thread);
        for (; !list.is_done(); list.advance()) {
            const work_item work = list.current();
            float sum[std::size_t{Columns / 2}];
            multiply_tile(thread, group, work, state, sum);
            const std::ptrdiff_t row = work.row + group * 64 + warp * epilogue_tile_rows;
            if constexpr (is_grouped) {
                write_group(thread, at, sum, work, row);
            } else if (splits == 1) {
                if constexpr (ends_in_registers) {
                    if (maps_c) {
                        output::template write_tiles<Output>(thread, at, c_map, c.alpha, sum, row,
                                                             work.column, work.product);
                        continue;
                    }
                }
                product_output<Output, Epilogue> to = c;
                to.data += work.product * c.batch_stride;
                output::write_sums(thread, at, sum, row, work.column, to);
            } else {
                const bool has_sums = work.begin < work.end;
                if constexpr (!Swapped) {
                    if (maps_c && has_sums) {
                        output::template write_tiles<float>(thread, at, c_map, 1.0F, sum, row, work.column,
                                                            work.slice);
                        continue;
                    }
                    output::wait_tiles(thread);
                }
                auto to = sums_of_slice(sums, c.rows, c.columns, work.slice);
                to.has_product = has_sums;
                output::write_sums(thread, at, sum, row, work.column, to);
            }
        }
        if (maps_c && thread.lane() == 0) thread.template wait_stores<0>();
    }

    /// Writes those of a warp's rows, from `row` on, that are the group's. TMA writes all 16, or ends with C.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void write_group(Thread thread, std::uint32_t at,
                                                     const float (&sum)[std::size_t{Columns / 2}],
                                                     const group_tile_work& work, std::ptrdiff_t row) const {
        if (row >= work.end_of_rows) return;
        const int matrix = Groups::shares_c ? 0 : work.product;
        product_output<Output, Epilogue> to = c;
        to.data += matrix * c.batch_stride;
        to.rows = work.end_of_rows;
        to.has_product = end_of_steps(work) != 0;
        if constexpr (ends_in_registers) {
            const bool whole = row + epilogue_tile_rows <= to.rows || to.rows == c.rows;
            if (maps_c && whole && to.has_product) {
                output::template write_tiles<Output>(thread, at, c_map, c.alpha, sum, row, work.column,
                                                     matrix);
                return;
            }
            output::wait_tiles(thread);
        }
        output::write_sums(thread, at, sum, row, work.column, to);
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void multiply_tile(Thread thread, int group, const work_item& work,
                                                       pipeline_state& state,
                                                       float (&sum)[std::size_t{Columns / 2}]) const {
        [[maybe_unused]] float promoted[std::size_t{promotes ? Columns / 2 : 1}];
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
            {scales_begin + static_cast<std::uint32_t>(warp * scale_ring::bytes)}};
        if constexpr (has_scales) {
            for (int i = 0; i < scale_ring::stages - 1; ++i) copy_scales(thread, warp, work, i, ring);
        }
        int before = 0;
        for (int step = 0; step < count; ++step) {
            thread.wait_barrier(full(state.stage), state.parity != 0);
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
                copy_scales(thread, warp, work, step + scale_ring::stages - 1, ring);
                thread.template wait_copies<scale_ring::stages - 1>();
                thread.sync_warp();
                thread.template wait_products<0>();
                release(thread, state.stage);
                ring.add_next(thread, scales, sum, promoted);
            } else if constexpr (promotes) {
                thread.template wait_products<0>();
                release(thread, state.stage);
                for (int i = 0; i < Columns / 2; ++i) promoted[i] = float_add(promoted[i], sum[i]);
            } else {
                thread.template wait_products<1>();
                if (step != 0) release(thread, before);
                before = state.stage;
            }
            state.advance();
        }
        [[maybe_unused]] bool has_tail = false;
        if constexpr (Groups::along_k) {
            has_tail = work.tail != 0;
            if (has_tail) {
                multiply_tail(thread, group, work.tail, state, count != 0, sum);
                thread.template wait_products<1>();
                if (count != 0) release(thread, before);
                before = state.stage;
                state.advance();
            }
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
        } else if (has_tail) {
            release<true>(thread, before);
        } else if (count > 0) {
            release(thread, before);
        }
    }

    /// Begins the products of a step of which the first `length` of k are the group's. The next group's in the last of
    /// them become zero, in both operands, since zero times infinity is not.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void multiply_tail(Thread thread, int group, int length,
                                                       const pipeline_state& state, bool add,
                                                       float (&sum)[std::size_t{Columns / 2}]) const {
        const int products = tile_count(length, simt::mma_k<A>);
        thread.wait_barrier(full(state.stage), state.parity != 0);
        if (length % simt::mma_k<A> != 0) {
            const int index = thread.index() % simt::warpgroup_size;
            const int end = products * simt::mma_k<A>;
            a_stage::template clear<multiplying_groups>(thread, a_at(state.stage), length, end, group, index);
            b_stage::template clear<multiplying_groups>(thread, b_at(state.stage), length, end, group, index);
            thread.fence_asynchronous();
            thread.sync_barrier(1, multiplying_groups * simt::warpgroup_size);
        }
        MP_UNROLL_BY(1)
        for (int i = 0; i < products; ++i) {
            thread.fence_products();
            thread.template multiply_async<A, B, Columns, !AKMajor, !BKMajor>(
                sum, a_stage::describe(thread, a_at(state.stage), group * 64, i),
                b_stage::describe(thread, b_at(state.stage), 0, i), add || i != 0);
            thread.commit_products();
        }
    }

    /// Begins to copy the scales of a step of the tile, if there is one.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void copy_scales(Thread thread, int warp, const tile_work& work, int step,
                                                     scale_ring& ring) const {
        const int block = work.begin + step;
        const std::ptrdiff_t row = work.row + warp * epilogue_tile_rows;
        if constexpr (is_grouped) {
            ring.copy_next(thread, scales.of_matrix(work.product), block < work.end, row, work.column, block);
        } else {
            ring.copy_next(thread, scales, block < work.end, row, work.column, block);
        }
    }

    template <std::size_t Count>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void clear(float (&sum)[Count]) {
        MP_UNROLL
        for (std::size_t i = 0; i < Count; ++i) sum[i] = 0.0F;
    }
};

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
