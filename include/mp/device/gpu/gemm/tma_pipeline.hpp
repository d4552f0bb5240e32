// SPDX-License-Identifier: MIT
/// \file
/// The ring of stages in shared memory through which operands pass from TMA to wgmma, the tiles of operands in them, and
/// its barrier objects; the thread that fills it by TMA; the order of two warpgroups that multiply tiles of C by turns.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/gemm/cluster_work.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/simt/fragments.hpp>
#include <mp/device/simt/matrix_descriptor.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/device/simt/tensor_map.hpp>

#include <cstddef>
#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Bytes of k of a stage: a row of 128 bytes, swizzled.
inline constexpr int warpgroup_k_bytes = 128;

/// How an operand with m (n of B) = `Extent` lies in a stage, and how TMA brings it there. With KMajor a
/// swizzled row is 128 bytes of k, one for each m. Else, which is for 16 bits only, it is 64 elements along
/// m, one for each k, in panels of all k.
template <class Input, int Extent, bool KMajor>
struct tile_stage {
    static constexpr int size = static_cast<int>(sizeof(Input));
    static constexpr int k = warpgroup_k_bytes / size;
    static constexpr int bytes = Extent * warpgroup_k_bytes;
    static constexpr int row_elements = warpgroup_k_bytes / size;
    static constexpr int panel_bytes = k * warpgroup_k_bytes;

    static_assert(KMajor || size == 2);

    /// The tiles in which `rows` rows at a time are copied, of the matrices of a batch; of one matrix if it
    /// is the same each time.
    [[nodiscard]] static simt::tensor_tiles tiles(const operand_vectors<Input>& operand, int rows,
                                                  std::ptrdiff_t batch) {
        const bool one = operand.batch_stride == 0;
        return {operand.data,          size,
                operand.length,        operand.vectors,
                operand.stride * size, row_elements,
                KMajor ? rows : k,     warpgroup_k_bytes,
                one ? 1 : batch,       one ? 16 : operand.batch_stride * size};
    }

    /// Copies rows `first` to first + rows - 1 of the stage, from row `outer` of matrix `matrix` of the
    /// operand on, by a map of such tiles. By one thread.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void copy(Thread thread, std::uint32_t stage, int first, int rows,
                                                     const simt::tensor_map& map, int outer, int p,
                                                     int matrix,
                                                     simt::shared_pointer<simt::memory_barrier> full,
                                                     std::uint16_t blocks, simt::cache_hint hint) {
        if constexpr (KMajor) {
            const simt::shared_pointer<Input> to{stage +
                                                 static_cast<std::uint32_t>(first * warpgroup_k_bytes)};
            copy_box(thread, to, map, p, outer, matrix, full, blocks, hint);
        } else {
            for (int i = 0; i < rows / row_elements; ++i) {
                const simt::shared_pointer<Input> to{
                    stage + static_cast<std::uint32_t>((first / row_elements + i) * panel_bytes)};
                copy_box(thread, to, map, outer + i * row_elements, p, matrix, full, blocks, hint);
            }
        }
    }

    /// Zeros from `first` to `end` of k, less than 16 of them, in every panel but those of the other of `Groups`
    /// warpgroups. Rows of a panel are one for each of k, and swizzling stays within them.
    MP_ANY_EXECUTION_SPACE
    template <int Groups, class Thread>
        requires(!KMajor)
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void clear(Thread thread, std::uint32_t stage, int first, int end,
                                                      int group, int index) {
        using chunk = simt::registers<4>;
        const int at = first * warpgroup_k_bytes + index * static_cast<int>(sizeof(chunk));
        if (at >= end * warpgroup_k_bytes) return;
        MP_UNROLL
        for (int panel = 0; panel < Extent / row_elements; panel += Groups) {
            const auto offset = static_cast<std::uint32_t>((panel + group) * panel_bytes + at);
            thread.store(simt::shared_pointer<chunk>{stage + offset}, chunk{});
        }
    }

    /// The descriptor of the operand of wgmma: from row `first` on, and 32 bytes of k from step `step` on.
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static simt::matrix_descriptor describe(Thread thread,
                                                                            std::uint32_t stage, int first,
                                                                            int step) {
        constexpr int block = 8 * warpgroup_k_bytes;  // of eight rows
        if constexpr (KMajor) {
            const auto offset = static_cast<std::uint32_t>(first * warpgroup_k_bytes);
            return thread.describe(stage + offset, 16, block, 128).advanced(step * simt::mma_k_bytes);
        } else {
            const auto offset = static_cast<std::uint32_t>(first / row_elements * panel_bytes);
            return thread.describe(stage + offset, panel_bytes, block, 128)
                .advanced(step * simt::mma_k<Input> * warpgroup_k_bytes);
        }
    }

private:
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void copy_box(Thread thread, simt::shared_pointer<Input> to,
                                                         const simt::tensor_map& map, int position, int row,
                                                         int matrix,
                                                         simt::shared_pointer<simt::memory_barrier> full,
                                                         std::uint16_t blocks, simt::cache_hint hint) {
        if (blocks == 0) {
            thread.copy_tile(to, map, position, row, matrix, full, hint);
        } else {
            thread.copy_tile_multicast(to, map, position, row, matrix, full, blocks, hint);
        }
    }
};

/// The operands of a step: Rows of A and Columns of B, with 128 bytes of k. Each block of a cluster brings its part of B to
/// all of them.
template <class A, class B, bool AKMajor, bool BKMajor, int Rows, int Columns, int ClusterBlocks>
struct staged_operands {
    using a_type = A;
    using b_type = B;
    using a_stage = tile_stage<A, Rows, AKMajor>;
    using b_stage = tile_stage<B, Columns, BKMajor>;
    static constexpr bool a_k_major = AKMajor;
    static constexpr bool b_k_major = BKMajor;
    static constexpr int rows = Rows;
    static constexpr int columns = Columns;
    static constexpr int cluster_blocks = ClusterBlocks;
    static constexpr int b_part = Columns / ClusterBlocks;
    static constexpr int k = a_stage::k;
    static constexpr int bytes = a_stage::bytes + b_stage::bytes;
    /// Those of a step with fewer rows of A.
    [[nodiscard]] MP_HOST_DEVICE static constexpr int bytes_of(int a_rows) {
        return a_rows * warpgroup_k_bytes + b_stage::bytes;
    }

    static_assert(sizeof(A) == sizeof(B) && bytes % 1024 == 0);
};

/// Stage and parity of a step.
template <int Stages>
struct pipeline_state {
    int stage = 0;
    unsigned parity = 0;

    MP_HOST_DEVICE void advance() {
        const bool last = stage == Stages - 1;
        stage = last ? 0 : stage + 1;
        parity ^= last ? 1U : 0U;
    }
    /// Passes over the steps of a tile that is another warpgroup's.
    MP_HOST_DEVICE void skip(int steps) {
        const unsigned past = static_cast<unsigned>(stage) + static_cast<unsigned>(steps);
        stage = static_cast<int>(past % Stages);
        parity ^= past / Stages % 2;
    }
};

/// `Stages` stages from the beginning of shared memory on, and two barrier objects of each from `BarriersBegin` on. `full`
/// ends a phase when the bytes of a stage have arrived, `empty` when every warp that multiplies, in all blocks of the
/// cluster, is done with it.
template <class Operands, int Stages, std::uint32_t BarriersBegin>
struct tma_pipeline {
    using operands = Operands;
    using state = pipeline_state<Stages>;
    using barrier = simt::shared_pointer<simt::memory_barrier>;
    static constexpr int cluster_blocks = Operands::cluster_blocks;
    static constexpr int barriers_bytes = Stages * 16;

    MP_HOST_DEVICE static constexpr barrier full(int stage) {
        return {BarriersBegin + static_cast<std::uint32_t>(stage) * 16};
    }
    MP_HOST_DEVICE static constexpr barrier empty(int stage) {
        return {BarriersBegin + static_cast<std::uint32_t>(stage) * 16 + 8};
    }
    MP_HOST_DEVICE static constexpr std::uint32_t a_at(int stage) {
        return static_cast<std::uint32_t>(stage * Operands::bytes);
    }
    MP_HOST_DEVICE static constexpr std::uint32_t b_at(int stage) {
        return a_at(stage) + Operands::a_stage::bytes;
    }

    /// Makes the barrier objects, for `warps` warps of each block that read a stage. By one thread, which lets others see
    /// them by fence_barrier_init().
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void init(Thread thread, int warps) {
        for (int i = 0; i < Stages; ++i) {
            thread.init_barrier(full(i), 1);
            thread.init_barrier(empty(i), warps * cluster_blocks);
        }
    }

    /// Waits until a stage may be written. The phase before the first one counts as ended.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void wait_empty(Thread thread, const state& at) {
        thread.wait_barrier(empty(at.stage), at.parity == 0);
    }
    /// Waits until its operands have arrived.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void wait_full(Thread thread, const state& at) {
        thread.wait_barrier(full(at.stage), at.parity != 0);
    }

    /// Says that a warp is done with a stage; where threads wrote to it, too, the other block is to know.
    MP_ANY_EXECUTION_SPACE
    template <bool Written = false, class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void release(Thread thread, int stage) {
        if (thread.lane() >= cluster_blocks) return;
        if constexpr (cluster_blocks == 1) {
            thread.arrive(empty(stage));
        } else if constexpr (Written) {
            thread.arrive_remote_ordinary(empty(stage), thread.lane());
        } else {
            thread.arrive_remote(empty(stage), thread.lane());
        }
    }
};

/// Copies the operands of tiles of C, of which steps follow each other through the stages of Pipeline.
template <class Pipeline, class Groups>
struct tile_producer {
    using operands = typename Pipeline::operands;

    const simt::tensor_map& a_map;
    const simt::tensor_map& b_map;
    /// Matrices of the operands from one product of a batch to the next: one, or none.
    int a_matrices;
    int b_matrices;
    int a_rows;  ///< of a tile
    simt::cache_hint a_hint;
    simt::cache_hint b_hint;

    /// Copies all steps of a tile, each as soon as its stage is empty. The warps that multiply wait for the bytes.
    MP_ANY_EXECUTION_SPACE
    template <class Thread, class Work>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void copy_tile(Thread thread, const Work& work,
                                                   typename Pipeline::state& state) const {
        constexpr int blocks = operands::cluster_blocks;
        constexpr auto all = static_cast<std::uint16_t>(blocks == 1 ? 0 : (1 << blocks) - 1);
        const int own_part = blocks == 1 ? 0 : thread.block_in_cluster() * operands::b_part;
        const auto row = static_cast<int>(work.row);
        const auto column = static_cast<int>(work.column) + own_part;
        for (int step = work.begin; step < end_of_steps<Groups>(work); ++step) {
            const int p = first_k<Groups>(work) + step * operands::k;
            Pipeline::wait_empty(thread, state);
            thread.arrive_expect(Pipeline::full(state.stage), operands::bytes_of(a_rows));
            operands::a_stage::copy(thread, Pipeline::a_at(state.stage), 0, a_rows, a_map, row, p,
                                    work.product * a_matrices, Pipeline::full(state.stage), 0, a_hint);
            operands::b_stage::copy(thread, Pipeline::b_at(state.stage), own_part, operands::b_part, b_map,
                                    column, p, work.product * b_matrices, Pipeline::full(state.stage), all,
                                    b_hint);
            state.advance();
        }
    }
};

/// Two barrier objects from `Begin` on, of which each ends a phase when the other group has begun all products of a tile.
///
/// Turns are required for correctness as well. A barrier object exposes the parity of a phase only, so that a waiting thread
/// has to be at most one phase ahead of it. A group that has passed over a tile of the other's may wait for a stage only when the other one has
/// seen all stages before it arrive.
template <std::uint32_t Begin>
class warpgroup_turns {
public:
    static constexpr int bytes = 16;

    /// Makes the barrier objects. By one thread.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void init(Thread thread) {
        for (int group = 0; group < 2; ++group) thread.init_barrier(turn_of(group), 4);
    }

    /// The first turn is group 0's: the phase before the first one counts as ended.
    MP_HOST_DEVICE MP_ALWAYS_INLINE explicit warpgroup_turns(int group)
        : group_(group), parity_(group == 0) {}

    /// Waits for the group's next turn.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void wait(Thread thread) {
        thread.wait_barrier(turn_of(group_), parity_);
        parity_ = !parity_;
    }
    /// Says that it is the other group's turn. By all warps of the group.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void pass(Thread thread) const {
        if (thread.lane() == 0) thread.arrive(turn_of(1 - group_));
    }

private:
    MP_HOST_DEVICE static constexpr simt::shared_pointer<simt::memory_barrier> turn_of(int group) {
        return {Begin + static_cast<std::uint32_t>(group) * 8};
    }

    int group_;
    bool parity_;
};

}}  // namespace mp::detail
