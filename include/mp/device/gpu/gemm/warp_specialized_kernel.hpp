// SPDX-License-Identifier: MIT
/// \file
/// The matrix product by wgmma and TMA (sm_90a): one warpgroup copies, two multiply, and each block of
/// threads stays for several tiles of C.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/gemm/cluster_work.hpp>
#include <mp/device/gpu/gemm/groups.hpp>
#include <mp/device/gpu/gemm/integer_output.hpp>
#include <mp/device/gpu/gemm/multistage_kernel.hpp>
#include <mp/device/gpu/gemm/output.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/gemm/tma_pipeline.hpp>
#include <mp/device/gpu/gemm/warp_output.hpp>
#include <mp/device/gpu/gemm/warpgroup_mainloop.hpp>
#include <mp/device/gpu/properties.hpp>
#include <mp/device/simt/fragments.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/tensor_map.hpp>
#include <mp/linalg/gemm/epilogue.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// c = epilogue(alpha * a b + beta * c). Tiles of 128 x Columns; blocks of a cluster have tiles that lie
/// below each other, and each brings a part of B to all of them.
///
/// One thread copies operands (tile_producer), the warps of two groups multiply them (warpgroup_mainloop) and bring the sums
/// to C (warp_output); between them is a ring of stages (tma_pipeline). Where `maps_c` says so, sums end in registers
/// and TMA writes them.
///
/// By one of two schedules. Cooperative: each group multiplies 64 of a tile's 128 rows, so that a column of B that
/// was brought serves both. But both groups end their sums at the same time, and tensor cores wait meanwhile. Ping-pong: the
/// groups take turns (warpgroup_turns), with tiles of 64 rows, so that one of them ends its sums while the other one multiplies;
/// each passes over the stages of the other's tiles. Both schedules compute the same.
///
/// With `Swapped`, for few rows of C, the operands have changed places, and what is computed is the transpose of C: see
/// transposed_output. Reading the large operand is what takes the time; so tiles have 64 of its rows, for one warpgroup, and two
/// blocks of a multiprocessor share its memory, with as many stages as there is room for.
///
/// With `Groups` the tiles are those of groups: see group_work. Rows of the next group that a tile brings along are
/// not stored; where operands are swapped, these are wgmma's columns.
template <class A, class B, bool AKMajor, bool BKMajor, int Columns, int ClusterBlocks, class Output,
          class Epilogue, class Scales = no_scales, bool Swapped = false, class Groups = no_groups>
struct warp_specialized_gemm_kernel {
    static constexpr int multiplying_groups = Swapped ? 1 : 2;
    static constexpr int rows = 64 * multiplying_groups;
    static constexpr int columns = Columns;
    static constexpr bool swapped = Swapped;
    static constexpr int threads = (1 + multiplying_groups) * simt::warpgroup_size;
    static constexpr int cluster_blocks = ClusterBlocks;
    static constexpr bool waits_for_dependencies = true;
    static constexpr int resident_blocks = Swapped ? 2 : 1;

    using operands = staged_operands<A, B, AKMajor, BKMajor, rows, Columns, ClusterBlocks>;
    using output = std::conditional_t<Swapped, transposed_output<Columns>, warp_output<Columns>>;
    /// Whether there is a choice of schedules. Promoting sums keeps a group from its products, behind which the other one
    /// multiplies only where they have tiles at the same time.
    static constexpr bool has_ping_pong = !Swapped && !is_float8<A> && !is_grouped<Groups>;
    /// Whether C, not only sums of slices, may be written by TMA.
    static constexpr bool ends_in_registers =
        !Swapped && (std::is_same_v<Epilogue, identity_epilogue> || std::is_same_v<Epilogue, integer_scale>);

    /// Bytes of shared memory: what there is for a block, of which the system takes 1 KiB; what all warps have for their
    /// output and scales; and barrier objects of up to 16 stages.
    static constexpr int most_bytes = (shared_bytes_of(90) / resident_blocks) - 1024;
    static constexpr int outputs_bytes = multiplying_groups * 4 * output::bytes;
    static constexpr int scales_bytes = multiplying_groups * 4 * warp_scales<Columns, Scales>::bytes;
    static constexpr int barriers_bytes = 256;
    static constexpr int stages =
        Swapped ? (most_bytes - outputs_bytes - scales_bytes - barriers_bytes) / operands::bytes : 4;
    static constexpr std::uint32_t outputs_begin = stages * operands::bytes;
    static constexpr std::uint32_t barriers_begin = outputs_begin + outputs_bytes;
    static constexpr std::uint32_t scales_begin = barriers_begin + barriers_bytes;
    static constexpr std::size_t shared_bytes = scales_begin + scales_bytes;

    using pipeline = tma_pipeline<operands, stages, barriers_begin>;
    using turns = warpgroup_turns<barriers_begin + pipeline::barriers_bytes>;
    using mainloop = warpgroup_mainloop<pipeline, multiplying_groups, Scales, scales_begin, Groups>;

    static_assert(shared_bytes <= most_bytes);
    static_assert(pipeline::barriers_bytes + (has_ping_pong ? turns::bytes : 0) <= barriers_bytes);
    static_assert(!Swapped || !Groups::along_k);
    static_assert(Swapped || output::bytes % 1024 == 0);

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
    bool ping_pong;  ///< the schedule; false where there is no choice
    Scales scales;
    Groups groups = {};
    simt::cache_hint a_hint = simt::cache_hint::evict_normal;
    simt::cache_hint b_hint = simt::cache_hint::evict_normal;

    [[nodiscard]] MP_HOST_DEVICE bool alternates() const { return has_ping_pong && ping_pong; }
    /// Rows of a tile: of C, or of its transpose.
    [[nodiscard]] MP_HOST_DEVICE int tile_rows() const { return alternates() ? 64 : rows; }
    /// Tiles of clusters that lie below each other, and beside each other, in C or in its transpose.
    [[nodiscard]] MP_HOST_DEVICE std::ptrdiff_t tiles_down() const {
        const std::ptrdiff_t extent = Swapped ? c.columns : c.rows;
        // By constants, since other divisions take long.
        const std::ptrdiff_t of_64_rows = tile_count(extent, 64 * ClusterBlocks);
        return alternates() ? of_64_rows : tile_count(of_64_rows, multiplying_groups);
    }
    [[nodiscard]] MP_HOST_DEVICE std::ptrdiff_t tiles_across() const {
        return tile_count(Swapped ? c.rows : c.columns, Columns);
    }
    /// Work items of clusters: tiles of a cluster, of all slices of all products; of groups as many as there may be.
    [[nodiscard]] MP_HOST_DEVICE std::ptrdiff_t work_count() const {
        if constexpr (is_grouped<Groups>) {
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
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void run(Thread thread) const {
        if (thread.index() == 0) {
            pipeline::init(thread, alternates() ? 4 : multiplying_groups * 4);
            if (alternates()) turns::init(thread);
            thread.fence_barrier_init();
            if (c.has_product) {
                thread.prefetch_map(a_map);
                thread.prefetch_map(b_map);
            }
        }
        // What is above may overlap the kernel before this one.
        thread.wait_dependencies();
        thread.launch_dependents();
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
            if (thread.index() == 0) copy_tiles(thread);
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

    /// Of C, as groups divide it.
    [[nodiscard]] MP_HOST_DEVICE tile_shape shape() const {
        return {Swapped ? Columns : rows * ClusterBlocks, c.rows, Swapped ? tiles_down() : tiles_across(),
                c.has_product ? k : 0};
    }

    /// The tiles of this block, one after the other.
    template <class Thread>
        requires is_grouped<Groups>
    MP_HOST_DEVICE MP_ALWAYS_INLINE auto work_of(Thread thread) const {
        return group_work<Groups, rows, Columns, ClusterBlocks, operands::k, Swapped, Thread>(thread, groups,
                                                                                              shape());
    }
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE auto work_of(Thread thread) const {
        const auto steps = static_cast<unsigned>(c.has_product ? tile_count(k, operands::k) : 0);
        return cluster_work<Columns, ClusterBlocks>{
            tile_rows(),
            static_cast<unsigned>(tiles_down()),
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
    MP_HOST_DEVICE MP_ALWAYS_INLINE void copy_tiles(Thread thread) const {
        const tile_producer<pipeline, Groups> producer{a_map,       b_map,  a_matrices, b_matrices,
                                                       tile_rows(), a_hint, b_hint};
        typename pipeline::state state;
        auto list = work_of(thread);
        for (; !list.is_done(); list.advance()) producer.copy_tile(thread, list.current(), state);
    }

    using sums_of_warp = typename mainloop::sums;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void multiply_tiles(Thread thread, int group) const {
        typename pipeline::state state;
        const int warp = thread.uniform(thread.index() % simt::warpgroup_size / simt::warp_size);
        const std::uint32_t at =
            outputs_begin + static_cast<std::uint32_t>((group * 4 + warp) * output::bytes);
        const int first_row = alternates() ? 0 : group * 64;
        turns turn(group);
        bool is_own = !alternates() || group == 0;
        auto list = work_of(thread);
        for (; !list.is_done(); list.advance()) {
            const auto work = list.current();
            if (!is_own) {
                state.skip(work.end - work.begin);
                is_own = true;
                continue;
            }
            is_own = !alternates();
            sums_of_warp sum;
            if (alternates()) turn.wait(thread);
            mainloop::multiply_tile(thread, group, first_row, work, scales, state, sum, [&] {
                if (alternates()) turn.pass(thread);
            });
            const std::ptrdiff_t row = work.row + first_row + warp * epilogue_tile_rows;
            if constexpr (is_grouped<Groups>) {
                write_group(thread, at, sum, work, row);
            } else if (has_one_slice()) {
                write_product(thread, at, sum, work, row);
            } else {
                write_slice(thread, at, sum, work, row);
            }
        }
        if (maps_c && thread.lane() == 0) thread.template wait_stores<0>();
    }

    /// Slices of sums of integers are not offered.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE bool has_one_slice() const {
        return std::is_same_v<simt::mma_sum<A>, std::int32_t> || splits == 1;
    }

    /// Ends a warp's rows of C, from `row` on.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void write_product(Thread thread, std::uint32_t at,
                                                       const sums_of_warp& sum, const tile_work& work,
                                                       std::ptrdiff_t row) const {
        if constexpr (ends_in_registers) {
            if (maps_c) {
                output::template write_tiles<Output>(thread, at, c_map, tile_scale(c), sum, row, work.column,
                                                     work.product);
                return;
            }
        }
        product_output<Output, Epilogue> to = c;
        to.data += work.product * c.batch_stride;
        output::write_sums(thread, at, sum, row, work.column, to);
    }

    /// Writes the sums of a slice of k.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void write_slice(Thread thread, std::uint32_t at, const sums_of_warp& sum,
                                                     const tile_work& work, std::ptrdiff_t row) const {
        const bool has_sums = work.begin < work.end;
        if constexpr (!Swapped) {
            if (maps_c && has_sums) {
                output::template write_tiles<float>(thread, at, c_map, 1.0F, sum, row, work.column,
                                                    work.slice);
                return;
            }
            output::wait_tiles(thread);
        }
        auto to = sums_of_slice(sums, c.rows, c.columns, work.slice);
        to.has_product = has_sums;
        output::write_sums(thread, at, sum, row, work.column, to);
    }

    /// Writes those of a warp's rows, from `row` on, that are the group's. TMA writes all 16, or ends with C.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void write_group(Thread thread, std::uint32_t at, const sums_of_warp& sum,
                                                     const group_tile_work& work, std::ptrdiff_t row) const {
        if (!Swapped && row >= work.end_of_rows) return;
        const int matrix = Groups::shares_c ? 0 : work.product;
        product_output<Output, Epilogue> to = c;
        to.data += matrix * c.batch_stride;
        to.rows = work.end_of_rows;
        to.has_product = end_of_steps<Groups>(work) != 0;
        if constexpr (Groups::has_blocks) {
            if (work.splits_block) to = output_of_split_block(to);
        }
        if constexpr (ends_in_registers) {
            const bool whole = row + epilogue_tile_rows <= to.rows || to.rows == c.rows;
            if (maps_c && whole && to.has_product) {
                output::template write_tiles<Output>(thread, at, c_map, tile_scale(c), sum, row, work.column,
                                                     matrix);
                return;
            }
            output::wait_tiles(thread);
        }
        output::write_sums(thread, at, sum, row, work.column, to);
    }
};

}}  // namespace mp::detail
