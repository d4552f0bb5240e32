// SPDX-License-Identifier: MIT
/// \file
/// The matrix product of a block of threads: copies of several stages run ahead of the tensor cores.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/gemm/integer_output.hpp>
#include <mp/device/gpu/gemm/output.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/gemm/stage_copies.hpp>
#include <mp/device/gpu/properties.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/shared_pointer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The part of C that a block of threads computes, that of each warp, and how many stages of the operands are
/// in shared memory at a time.
template <int Rows, int Columns, int WarpRows, int WarpColumns, int Stages>
struct gemm_tile {
    static constexpr int rows = Rows;
    static constexpr int columns = Columns;
    static constexpr int warp_rows = WarpRows;
    static constexpr int warp_columns = WarpColumns;
    static constexpr int warps_across = Columns / WarpColumns;
    static constexpr int threads = Rows / WarpRows * warps_across * simt::warp_size;
    static constexpr int stages = Stages;

    static_assert(Rows % WarpRows == 0 && Columns % WarpColumns == 0 && WarpRows % 16 == 0 &&
                  WarpColumns % 16 == 0 && Stages >= 2);
};

/// Stages of a ring in code for an architecture: as many as are wanted, or as few as three so that the blocks which a
/// multiprocessor is to hold fit in its shared memory, of which the system takes 1 KiB a block.
[[nodiscard]] MP_HOST_DEVICE constexpr int stages_that_fit(int capability, int stage_bytes, int wanted,
                                                           int blocks) {
    for (int stages = wanted; stages >= 3; --stages) {
        if (blocks * (stages * stage_bytes + 1024) <= shared_bytes_of(capability)) return stages;
    }
    return wanted;
}

/// Rows of C that a warp passes through shared memory at a time.
inline constexpr int epilogue_tile_rows = 16;

/// A product without scales of k: see block_scales.
struct no_scales {
    static constexpr int scales_per_vector = 0;

    [[nodiscard]] no_scales exchanged() const { return {}; }
    [[nodiscard]] MP_HOST_DEVICE no_scales of_matrix(std::ptrdiff_t /*number*/) const { return {}; }
};

/// c = epilogue(alpha * a b + beta * c), or the sums of one slice of k.
///
/// Shared memory is a ring of stages of 64 bytes of k. Fragments are loaded to registers while those before them
/// are multiplied, so those of a stage's first product are loaded before the last one of the stage before: there
/// the thread waits for its copies into the stage that is next, and the block for all threads. Now that stage is
/// complete, and of the one before it everybody has all fragments, so the copies for the stage that comes last may be
/// put there. One barrier a step. In the end each warp passes its sums through shared memory in epilogue tiles of 16
/// rows, so that C is read and written in chunks.
///
/// Every element of a b starts at zero and takes blocks of ascending k, so it has the bits of
/// mp::emulated.
///
/// `Policy` is how tiles lie in shared memory and how warps multiply them:
///  - a_stage and b_stage: swizzled_stage or padded_stage;
///  - sums<Thread>: what a thread has of the sums of its warp;
///  - products: those of fragments in a stage, an even number; fragments<Thread>, what a product takes; and
///    make_reader(), what a thread computes once to load them; and whether registers do for two of them: loads_ahead;
///  - clear(), load() and multiply() of fragments, end_step() after each stage, finish() after all, and
///    store_epilogue_tile().
///
/// With `Scales`, a stage at which a block of k ends also brings the scales of the rows and columns
/// of the tile for that block: by the same copies that run ahead, so that no warp waits for them, and none
/// keeps them in registers meanwhile.
template <class Policy, class Output, class Epilogue, class Scales = no_scales>
struct multistage_gemm_kernel {
    using tile = typename Policy::tile;
    using a_value = typename Policy::a_value;
    using b_value = typename Policy::b_value;
    using a_stage = typename Policy::a_stage;
    using b_stage = typename Policy::b_stage;

    static constexpr int threads = tile::threads;
    static constexpr int resident_blocks = Policy::resident_blocks;
    static constexpr int stage_bytes = a_stage::bytes + b_stage::bytes;
    /// Floats from one row of a epilogue_tile to the next: with 8 more than the row has, the 4 rows that half a warp
    /// writes at a time, 8 words each, fill the banks once.
    static constexpr int epilogue_tile_pitch = tile::warp_columns + 8;
    static constexpr int epilogue_tile_bytes =
        epilogue_tile_rows * epilogue_tile_pitch * static_cast<int>(sizeof(float));
    static constexpr int epilogue_tiles_bytes = threads / simt::warp_size * epilogue_tile_bytes;
    static constexpr bool has_scales = Scales::scales_per_vector != 0;
    static constexpr int scales_bytes =
        (tile::rows + tile::columns) * Scales::scales_per_vector * static_cast<int>(sizeof(float));

    [[nodiscard]] MP_HOST_DEVICE static constexpr int stages_on(int capability) {
        return stages_that_fit(capability, stage_bytes, tile::stages, resident_blocks);
    }
    [[nodiscard]] static constexpr std::size_t shared_bytes(int capability) {
        // One more than stages: the scales of a step are read behind the barrier that frees its stage.
        const int ring = stages_on(capability) * (stage_bytes + scales_bytes) + scales_bytes;
        return static_cast<std::size_t>((std::max)(ring, epilogue_tiles_bytes));
    }

    product_problem<a_value, b_value, Output, Epilogue> problem;
    Scales scales;

    [[nodiscard]] std::ptrdiff_t blocks(std::ptrdiff_t batch) const {
        return tile_count(problem.c.rows, tile::rows) * tile_count(problem.c.columns, tile::columns) *
               problem.splits * batch;
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        // On other devices it is not launched, and cannot be compiled.
        if constexpr (runs_on<Thread>) run(thread);
    }

    template <class Thread>
    static constexpr bool runs_on = Policy::template runs_on<Thread>;

    /// One tile, from (row, column) on, of a product that is not divided, whose k goes from `first` to `k`.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void compute_tile(Thread thread, const operand_vectors<a_value>& a,
                                                             const operand_vectors<b_value>& b,
                                                             const Scales& scales,
                                                             const product_output<Output, Epilogue>& c,
                                                             std::ptrdiff_t first, std::ptrdiff_t k,
                                                             std::ptrdiff_t row, std::ptrdiff_t column) {
        typename Policy::template sums<Thread> sum;
        Policy::clear(thread, sum);
        if (c.has_product) {
            const auto steps = static_cast<int>(tile_count(k - first, a_stage::k));
            add_products(thread, a, b, scales, k, row, column, first, steps, sum);
        }
        const int warp = thread.warp();
        write_sums(thread, sum, row + warp / tile::warps_across * tile::warp_rows,
                   column + warp % tile::warps_across * tile::warp_columns, c);
    }

private:
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_KERNEL_INLINE void run(Thread thread) const {
        const std::ptrdiff_t tile_rows = tile_count(problem.c.rows, tile::rows);
        const std::ptrdiff_t tile_columns = tile_count(problem.c.columns, tile::columns);
        const std::ptrdiff_t tiles = tile_rows * tile_columns;
        const std::ptrdiff_t work = thread.block() / tiles;
        const std::ptrdiff_t split = work % problem.splits;
        const std::ptrdiff_t batch = work / problem.splits;
        const tile_coordinate tile_at = coordinate_of_tile(thread.block() % tiles, tile_rows, tile_columns);
        const std::ptrdiff_t row = tile_at.row * tile::rows;
        const std::ptrdiff_t column = tile_at.column * tile::columns;

        typename Policy::template sums<Thread> sum;
        Policy::clear(thread, sum);
        if (problem.c.has_product) {
            operand_vectors<a_value> a = problem.a;
            operand_vectors<b_value> b = problem.b;
            a.data += batch * a.batch_stride;
            b.data += batch * b.batch_stride;
            const std::ptrdiff_t steps = tile_count(problem.k, a_stage::k);
            const std::ptrdiff_t length = steps_of_slice(steps, problem.splits, steps_of_least_slice());
            const std::ptrdiff_t begin = split * length;
            const int count = left_of(steps - begin, static_cast<int>(length));
            if (count > 0) {
                add_products(thread, a, b, scales, problem.k, row, column, begin * a_stage::k, count, sum);
            }
        }
        const int warp = thread.warp();
        const std::ptrdiff_t warp_row = row + warp / tile::warps_across * tile::warp_rows;
        const std::ptrdiff_t warp_column = column + warp % tile::warps_across * tile::warp_columns;
        if (problem.splits == 1) {
            product_output<Output, Epilogue> c = problem.c;
            c.data += batch * c.batch_stride;
            write_sums(thread, sum, warp_row, warp_column, c);
        } else {
            write_sums(thread, sum, warp_row, warp_column,
                       sums_of_slice(problem.sums, problem.c.rows, problem.c.columns, work));
        }
    }

    /// Waits, with the whole block, until a stage has arrived; copies into the `Pending` stages behind it may be in flight.
    MP_ANY_EXECUTION_SPACE
    template <int Pending, class Thread>
    MP_HOST_DEVICE MP_KERNEL_INLINE static void await_stage(Thread thread) {
        thread.template wait_copies<Pending>();
        thread.sync_block();
    }

    /// Steps for which a scale holds.
    MP_HOST_DEVICE static constexpr int steps_of_scale() {
        if constexpr (has_scales) {
            return Scales::k / a_stage::k;
        } else {
            return 1;
        }
    }

    /// Slices of k are multiples of scales and of slice_k_bytes.
    MP_HOST_DEVICE static constexpr int steps_of_least_slice() {
        constexpr int least = slice_k_bytes / stage_k_bytes;
        static_assert(steps_of_scale() % least == 0 || least % steps_of_scale() == 0);
        return steps_of_scale() > least ? steps_of_scale() : least;
    }

    /// The copies of a thread for one step after the other: those of a tile from (row, column) on, and `first` of k.
    struct copies {
        const operand_vectors<a_value>& a;
        const operand_vectors<b_value>& b;
        const Scales& scales;
        std::ptrdiff_t row;
        std::ptrdiff_t column;
        std::ptrdiff_t first;
        int whole;  ///< steps whose copies are whole_copies: the first ones
        int steps;
        whole_copies<a_stage> whole_a;
        whole_copies<b_stage> whole_b;

        /// Begins to copy a step; steps are taken in their order.
        MP_ANY_EXECUTION_SPACE
        template <class Thread>
        MP_HOST_DEVICE MP_KERNEL_INLINE void begin(Thread thread, int step, std::uint32_t stage,
                                                   [[maybe_unused]] std::uint32_t scale_stage) {
            if (step < whole) {
                whole_a.copy_next(thread, {stage});
                whole_b.copy_next(thread, {stage + a_stage::bytes});
            } else if (step < steps) {
                const std::ptrdiff_t p = first + std::ptrdiff_t{step} * a_stage::k;
                copy_tile_of<a_stage>(thread, simt::shared_pointer<a_value>{stage}, a, row, p);
                copy_tile_of<b_stage>(thread, simt::shared_pointer<b_value>{stage + a_stage::bytes}, b,
                                      column, p);
            }
            if constexpr (has_scales) {
                if (step < steps && ends_scale(step, steps)) {
                    scales.template copy<tile::rows, tile::columns, threads>(
                        thread, {scale_stage}, thread.index(), row, column,
                        first / Scales::k + step / steps_of_scale());
                }
            }
            thread.commit_copies();
        }
    };

    /// Whether a block of k that shares a scale ends with a step. Slices of k begin with such a block.
    MP_HOST_DEVICE static constexpr bool ends_scale(int step, int steps) {
        return (step + 1) % steps_of_scale() == 0 || step + 1 == steps;
    }

    /// The place behind one of `Count` in a ring.
    template <int Bytes, int Count>
    [[nodiscard]] MP_HOST_DEVICE MP_KERNEL_INLINE static std::uint32_t next_in_ring(std::uint32_t place,
                                                                                    std::uint32_t begin) {
        return place == begin + (Count - 1) * Bytes ? begin : place + Bytes;
    }

    /// Adds the products of `steps` steps from `first` of k on.
    MP_ANY_EXECUTION_SPACE
    template <class Thread, class Sums>
    MP_HOST_DEVICE MP_KERNEL_INLINE static void add_products(Thread thread, const operand_vectors<a_value>& a,
                                                             const operand_vectors<b_value>& b,
                                                             const Scales& scales, std::ptrdiff_t k,
                                                             std::ptrdiff_t row, std::ptrdiff_t column,
                                                             std::ptrdiff_t first, int steps, Sums& sum) {
        const int warp = thread.warp();
        const int warp_row = warp / tile::warps_across * tile::warp_rows;
        const int warp_column = warp % tile::warps_across * tile::warp_columns;
        const bool all_whole = whole_copies<a_stage>::take(a, row) && whole_copies<b_stage>::take(b, column);
        copies copying{a,
                       b,
                       scales,
                       row,
                       column,
                       first,
                       all_whole ? left_of((k - first) / a_stage::k, steps) : 0,
                       steps,
                       {thread, a, row, first},
                       {thread, b, column, first}};
        constexpr int stages = stages_on(Thread::capability);
        [[maybe_unused]] constexpr int scales_begin = stages * stage_bytes;
        MP_UNROLL_BY(1)
        for (int i = 0; i < stages - 1; ++i) {
            copying.begin(thread, i, static_cast<std::uint32_t>(i * stage_bytes),
                          static_cast<std::uint32_t>(scales_begin + i * scales_bytes));
        }
        const auto reader = Policy::make_reader(thread, warp_row, warp_column);
        typename Policy::template fragments<Thread> one;
        [[maybe_unused]] typename Policy::template fragments<Thread> other;
        std::uint32_t reads = 0;
        std::uint32_t writes = (stages - 1) * stage_bytes;
        [[maybe_unused]] std::uint32_t scale_reads = scales_begin;
        [[maybe_unused]] std::uint32_t scale_writes = scales_begin + (stages - 1) * scales_bytes;
        const auto load = [&](int number, auto& to) {
            Policy::load(thread, simt::shared_pointer<a_value>{reads},
                         simt::shared_pointer<b_value>{reads + a_stage::bytes}, reader, number, to);
        };
        await_stage<stages - 2>(thread);
        int step = 0;
        const auto begin_copies = [&] { copying.begin(thread, step + (stages - 1), writes, scale_writes); };
        const auto go_to_next_stage = [&] {
            await_stage<stages - 2>(thread);
            writes = reads;
            // In the end the last stage is read once more, in vain.
            if (step + 1 < steps) reads = next_in_ring<stage_bytes, stages>(reads, 0);
        };
        constexpr bool ahead = Policy::template loads_ahead<Thread>;
        if constexpr (ahead) load(0, one);
        MP_UNROLL_BY(1)
        for (; step < steps; ++step) {
            if constexpr (ahead) {
                [[maybe_unused]] constexpr int unrolled = Policy::products > 4 ? 1 : Policy::products / 2;
                MP_UNROLL_BY(unrolled)
                for (int number = 0; number < Policy::products; number += 2) {
                    load(number + 1, other);
                    if (number == 0) begin_copies();
                    Policy::multiply(thread, one, sum);
                    const bool last = number + 2 == Policy::products;
                    if (last) go_to_next_stage();
                    load(last ? 0 : number + 2, one);
                    Policy::multiply(thread, other, sum);
                }
            } else {
                MP_UNROLL_BY(1)
                for (int number = 0; number < Policy::products; ++number) {
                    load(number, one);
                    if (number == 0) begin_copies();
                    if (number + 1 == Policy::products) go_to_next_stage();
                    Policy::multiply(thread, one, sum);
                }
            }
            if constexpr (has_scales) {
                if (ends_scale(step, steps)) {
                    Policy::end_scaled(thread, simt::shared_pointer<float>{scale_reads}, warp_row,
                                       tile::rows + warp_column, scales.same_for_columns(tile::columns), sum);
                }
                scale_reads = next_in_ring<scales_bytes, stages + 1>(scale_reads, scales_begin);
                scale_writes = next_in_ring<scales_bytes, stages + 1>(scale_writes, scales_begin);
            } else {
                Policy::end_step(thread, step + 1, step + 1 == steps, sum);
            }
        }
        Policy::finish(thread, sum);
        // The epilogue tiles of the output lie where the stages are.
        thread.template wait_copies<0>();
        thread.sync_block();
    }

    /// Passes a warp's sums through its epilogue_tile, 16 rows at a time, to C.
    MP_ANY_EXECUTION_SPACE
    template <class Thread, class Sums, class Target, class End>
    MP_HOST_DEVICE MP_KERNEL_INLINE static void write_sums(Thread thread, const Sums& sum, std::ptrdiff_t row,
                                                           std::ptrdiff_t column,
                                                           const product_output<Target, End>& c) {
        constexpr int count = output_chunk<Target>;
        constexpr int chunks_across = tile::warp_columns / count;
        const simt::shared_pointer<float> epilogue_tile{
            static_cast<std::uint32_t>(thread.warp() * epilogue_tile_bytes)};
        tile_state<End> state;
        MP_UNROLL
        for (int i = 0; i < tile::warp_rows / epilogue_tile_rows; ++i) {
            Policy::store_epilogue_tile(thread, sum, i, epilogue_tile, epilogue_tile_pitch);
            thread.sync_warp();
            // A loop, so that the compiler has four of them to do with and not up to thirty-two.
            MP_UNROLL_BY(1)
            for (int n = 0; n < epilogue_tile_rows * chunks_across / simt::warp_size; ++n) {
                const int number = n * simt::warp_size + thread.lane();
                const int tile_row = number / chunks_across;
                const int position = number % chunks_across * count;
                float product[std::size_t{count}];
                load_chunk_of_sums(thread, epilogue_tile + (tile_row * epilogue_tile_pitch + position),
                                   product);
                const std::ptrdiff_t row_of_chunk = row + i * epilogue_tile_rows + tile_row;
                convert_sums<typename sum_type_of<Policy>::type, Target>(product);
                finish_chunk(thread, c, product, row_of_chunk, column + position, state);
            }
            thread.sync_warp();
        }
        tile_epilogue<End>::finish(thread, c.epilogue, state);
    }
};

}}  // namespace mp::detail
