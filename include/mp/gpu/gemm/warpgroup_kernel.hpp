// SPDX-License-Identifier: MIT
/// \file
/// The matrix product by wgmma and TMA (sm_90a): one warpgroup copies, two multiply, and each block of
/// threads stays for several tiles of C.
#pragma once

#include <mp/config.hpp>
#include <mp/format/device.hpp>
#include <mp/gpu/chunks.hpp>
#include <mp/gpu/gemm/output.hpp>
#include <mp/gpu/gemm/problem.hpp>
#include <mp/simt/fragments.hpp>
#include <mp/simt/launch_shape.hpp>
#include <mp/simt/matrix_descriptor.hpp>
#include <mp/simt/shared_pointer.hpp>
#include <mp/simt/tensor_map.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace mp::detail {

/// Bytes of depth of a stage: a line of 128 bytes, swizzled.
inline constexpr int warpgroup_depth_bytes = 128;

/// How a factor of `Extent` rows (columns of B) lies in a stage, and how TMA brings it there. With
/// DepthContiguous, a line is one row and 128 bytes of depth. Else, which is for 16 bits only, a line is 64
/// rows of one depth, and the lines of the next 64 rows follow behind those of all depths.
template <class Input, int Extent, bool DepthContiguous>
struct tile_stage {
    static constexpr int size = static_cast<int>(sizeof(Input));
    static constexpr int depth = warpgroup_depth_bytes / size;
    static constexpr int bytes = Extent * warpgroup_depth_bytes;
    static constexpr int line_elements = warpgroup_depth_bytes / size;
    static constexpr int panel_bytes = depth * warpgroup_depth_bytes;

    static_assert(DepthContiguous || size == 2);

    /// The tiles in which `Rows` rows at a time are copied.
    template <int Rows>
    [[nodiscard]] static simt::tensor_tiles tiles(const factor_lines<Input>& factor) {
        return {factor.data,
                size,
                factor.length,
                factor.lines,
                factor.stride * size,
                line_elements,
                DepthContiguous ? Rows : depth,
                warpgroup_depth_bytes};
    }

    /// Copies rows `first` to first + Rows - 1 of the stage, from row `outer` of the factor on. By one
    /// thread.
    MP_ANY_EXECUTION_SPACE
    template <int Rows, class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void copy(Thread thread, std::uint32_t stage, int first,
                                                     const simt::tensor_map& map, int outer, int k,
                                                     simt::shared_pointer<simt::memory_barrier> full,
                                                     std::uint16_t blocks) {
        if constexpr (DepthContiguous) {
            const simt::shared_pointer<Input> to{stage +
                                                 static_cast<std::uint32_t>(first * warpgroup_depth_bytes)};
            copy_box(thread, to, map, k, outer, full, blocks);
        } else {
            for (int i = 0; i < Rows / line_elements; ++i) {
                const simt::shared_pointer<Input> to{
                    stage + static_cast<std::uint32_t>((first / line_elements + i) * panel_bytes)};
                copy_box(thread, to, map, outer + i * line_elements, k, full, blocks);
            }
        }
    }

    /// What wgmma multiplies: from row `first` on, and 32 bytes of depth from step `step` on.
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static simt::matrix_descriptor describe(Thread thread,
                                                                            std::uint32_t stage, int first,
                                                                            int step) {
        constexpr int block = 8 * warpgroup_depth_bytes;  // of eight lines
        if constexpr (DepthContiguous) {
            const auto offset = static_cast<std::uint32_t>(first * warpgroup_depth_bytes);
            return thread.describe(stage + offset, 16, block, 128).advanced(step * simt::mma_depth_bytes);
        } else {
            const auto offset = static_cast<std::uint32_t>(first / line_elements * panel_bytes);
            return thread.describe(stage + offset, panel_bytes, block, 128)
                .advanced(step * simt::mma_depth<Input> * warpgroup_depth_bytes);
        }
    }

private:
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void copy_box(Thread thread, simt::shared_pointer<Input> to,
                                                         const simt::tensor_map& map, int position, int line,
                                                         simt::shared_pointer<simt::memory_barrier> full,
                                                         std::uint16_t blocks) {
        if (blocks == 0) {
            thread.copy_tile(to, map, position, line, full);
        } else {
            thread.copy_tile_multicast(to, map, position, line, full, blocks);
        }
    }
};

/// c = epilogue(alpha * a b + beta * c). Tiles of 128 x Columns; blocks of a cluster have tiles that lie
/// below each other, and each brings a part of B to all of them.
///
/// Shared memory is a ring of stages with two barrier objects each. `full` ends a phase when the bytes of a
/// stage have arrived, `empty` when every warp that multiplies, in all blocks of the cluster, is done with
/// it. The copying thread waits for `empty` before it copies; the warps wait for `full`, begin their
/// products, and say `empty` for the stage before, whose products are then done, so that two stages of
/// products are always under way.
///
/// Sums of 8 bits have 13 fraction bits; those of each stage, 128 products, are added to floats.
template <class A, class B, bool ADepthContiguous, bool BDepthContiguous, int Columns, int ClusterBlocks,
          class Output, class Epilogue>
struct warpgroup_gemm_kernel {
    static constexpr int rows = 128;
    static constexpr int columns = Columns;
    static constexpr bool promotes = sizeof(A) == 1;
    static constexpr int multiplying_groups = 2;
    static constexpr int threads = (1 + multiplying_groups) * simt::warpgroup_size;
    static constexpr int cluster_blocks = ClusterBlocks;
    static constexpr int stages = 4;

    using a_stage = tile_stage<A, rows, ADepthContiguous>;
    using b_stage = tile_stage<B, Columns, BDepthContiguous>;

    static constexpr int b_part = Columns / ClusterBlocks;
    static constexpr int stage_bytes = a_stage::bytes + b_stage::bytes;
    static constexpr std::uint32_t barriers_begin = stages * stage_bytes;
    /// Columns that a warp passes to C at a time, and floats from one row of them to the next: see
    /// ring_gemm_kernel.
    static constexpr int strip_columns = 32;
    static constexpr int strip_pitch = strip_columns + 8;
    static constexpr int strip_rows = 16;
    static constexpr std::uint32_t strips_begin = barriers_begin + 128;
    static constexpr int strip_bytes = strip_rows * strip_pitch * static_cast<int>(sizeof(float));
    static constexpr std::size_t shared_bytes =
        strips_begin + static_cast<std::size_t>(multiplying_groups * 4 * strip_bytes);

    static_assert(sizeof(A) == sizeof(B) && shared_bytes <= (std::size_t{227} << 10));
    static_assert(!promotes || Columns <= 128, "mp: two sets of 256 columns do not fit into registers");

    simt::tensor_map a_map;
    simt::tensor_map b_map;
    product_output<Output, Epilogue> c;
    std::ptrdiff_t depth;

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
    struct ring_place {
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
            thread.template release_registers<40>();
            if (thread.index() == 0) copy_stages(thread);
        } else {
            thread.template claim_registers<232>();
            multiply_tiles(thread, group - 1);
        }
        // A block must not leave while others still arrive at its barriers.
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
    MP_HOST_DEVICE std::ptrdiff_t steps() const {
        return c.has_product ? tile_count(depth, a_stage::depth) : 0;
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void copy_stages(Thread thread) const {
        ring_place place;
        const int own = ClusterBlocks == 1 ? 0 : thread.block_in_cluster();
        const std::ptrdiff_t tiles = cluster_rows() * cluster_columns();
        for (std::ptrdiff_t tile = thread.block() / ClusterBlocks; tile < tiles;
             tile += thread.blocks() / ClusterBlocks) {
            const tile_place at = place_of_tile(tile, cluster_rows(), cluster_columns());
            const auto row = static_cast<int>((at.row * ClusterBlocks + own) * rows);
            const auto column = static_cast<int>(at.column * Columns);
            for (std::ptrdiff_t step = 0; step < steps(); ++step) {
                const auto k = static_cast<int>(step * a_stage::depth);
                // The phase before the first one counts as ended.
                thread.wait_barrier(empty(place.stage), !place.parity);
                thread.arrive_expect(full(place.stage), stage_bytes);
                a_stage::template copy<rows>(thread, a_at(place.stage), 0, a_map, row, k, full(place.stage),
                                             0);
                b_stage::template copy<b_part>(
                    thread, b_at(place.stage), own * b_part, b_map, column + own * b_part, k,
                    full(place.stage),
                    static_cast<std::uint16_t>(ClusterBlocks == 1 ? 0 : (1 << ClusterBlocks) - 1));
                place.advance();
            }
        }
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void release(Thread thread, int stage) {
        if (thread.lane() != 0) return;
        if constexpr (ClusterBlocks == 1) {
            thread.arrive(empty(stage));
        } else {
            for (int block = 0; block < ClusterBlocks; ++block) thread.arrive_remote(empty(stage), block);
        }
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void multiply_tiles(Thread thread, int group) const {
        ring_place place;
        const int own = ClusterBlocks == 1 ? 0 : thread.block_in_cluster();
        const std::ptrdiff_t tiles = cluster_rows() * cluster_columns();
        for (std::ptrdiff_t tile = thread.block() / ClusterBlocks; tile < tiles;
             tile += thread.blocks() / ClusterBlocks) {
            const tile_place at = place_of_tile(tile, cluster_rows(), cluster_columns());
            float sum[Columns / 2];
            multiply_tile(thread, group, place, sum);
            write_sums(thread, group, sum, (at.row * ClusterBlocks + own) * rows + group * 64,
                       at.column * Columns);
        }
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void multiply_tile(Thread thread, int group, ring_place& place,
                                                       float (&sum)[Columns / 2]) const {
        [[maybe_unused]] float promoted[promotes ? Columns / 2 : 1];
        const std::ptrdiff_t count = steps();
        if constexpr (promotes) clear(promoted);
            // The first product overwrites what is in the registers. Writing them before would cost more than
            // time: the compiler then finds instructions between products that touch their sums, and lets
            // none run beside another.
#if MP_DEVICE_CODE
        if (count == 0) clear(sum);
#else
        clear(sum);
#endif
        int before = 0;
        for (std::ptrdiff_t step = 0; step < count; ++step) {
            thread.wait_barrier(full(place.stage), place.parity);
            thread.fence_products();
#if MP_DEVICE_CODE
#pragma unroll
#endif
            for (int i = 0; i < warpgroup_depth_bytes / simt::mma_depth_bytes; ++i) {
                thread.template multiply_async<A, B, Columns, !ADepthContiguous, !BDepthContiguous>(
                    sum, a_stage::describe(thread, a_at(place.stage), group * 64, i),
                    b_stage::describe(thread, b_at(place.stage), 0, i), (!promotes && step != 0) || i != 0);
            }
            thread.commit_products();
            if constexpr (promotes) {
                thread.template wait_products<0>();
                for (int i = 0; i < Columns / 2; ++i) promoted[i] = float_add(promoted[i], sum[i]);
                release(thread, place.stage);
            } else {
                thread.template wait_products<1>();
                if (step != 0) release(thread, before);
                before = place.stage;
            }
            place.advance();
        }
        // On every way to the sums, or the compiler cannot leave them where they are.
        thread.template wait_products<0>();
        if constexpr (promotes) {
            for (int i = 0; i < Columns / 2; ++i) sum[i] = promoted[i];
        } else if (count != 0) {
            release(thread, before);
        }
    }

    template <int Count>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void clear(float (&sum)[Count]) {
#if MP_DEVICE_CODE
#pragma unroll
#endif
        for (int i = 0; i < Count; ++i) sum[i] = 0.0F;
    }

    /// Passes a warp's 16 rows through its strip, 32 columns at a time, to C.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void write_sums(Thread thread, int group, const float (&sum)[Columns / 2],
                                                    std::ptrdiff_t row, std::ptrdiff_t column) const {
        using pair = chunk<float, 2>;
        using quarter = chunk<float, 4>;
        constexpr int count = output_chunk<Output>;
        constexpr int chunks_across = strip_columns / count;
        const int warp = thread.index() % simt::warpgroup_size / simt::warp_size;
        const simt::shared_pointer<float> strip{strips_begin +
                                                static_cast<std::uint32_t>((group * 4 + warp) * strip_bytes)};
#if MP_DEVICE_CODE
#pragma unroll
#endif
        for (int part = 0; part < Columns / strip_columns; ++part) {
#if MP_DEVICE_CODE
#pragma unroll
#endif
            for (int n = 0; n < strip_columns / 2; n += 2) {
                const simt::fragment_place place = simt::mma_c_place(thread.lane(), n % 4);
                const auto to = strip + (place.line * strip_pitch + n / 4 * 8 + place.position);
                const int i = part * strip_columns / 2 + n;
                thread.store(to.template as<pair>(), pair{{sum[i], sum[i + 1]}});
            }
            thread.sync_warp();
            for (int n = 0; n < strip_rows * chunks_across / simt::warp_size; ++n) {
                const int number = n * simt::warp_size + thread.lane();
                const int line = number / chunks_across;
                const int position = number % chunks_across * count;
                const auto from = strip + (line * strip_pitch + position);
                float product[count];
                for (int i = 0; i < count; i += 4) {
                    const quarter values = thread.load((from + i).template as<quarter>());
                    for (int j = 0; j < 4; ++j) product[i + j] = values.values[j];
                }
                finish_chunk(thread, c, product, row + warp * strip_rows + line,
                             column + part * strip_columns + position);
            }
            thread.sync_warp();
        }
    }
};

}  // namespace mp::detail
