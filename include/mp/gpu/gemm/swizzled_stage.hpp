// SPDX-License-Identifier: MIT
/// \file
/// A tile of an operand in shared memory: how it gets there, and how warps take fragments from it.
#pragma once

#include <mp/config.hpp>
#include <mp/gpu/chunks.hpp>
#include <mp/gpu/gemm/problem.hpp>
#include <mp/gpu/gemm/stage_copies.hpp>
#include <mp/simt/fragments.hpp>
#include <mp/simt/launch_shape.hpp>
#include <mp/simt/shared_pointer.hpp>
#include <mp/simt/swizzle.hpp>

#include <cstddef>
#include <cstdint>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// A tile of m x k of A (n x k of B) with m = `Extent` and 64 bytes of k, in the order of the elements in
/// memory, as swizzled rows of 64 or 128 bytes, so that neither copies nor load_matrix have bank conflicts.
/// With KMajor a swizzled row runs along k, one for each m. Else it runs along m, one for each k: 128 bytes
/// of m (64 if the tile has no more), in panels of all k.
template <class Input, int Extent, bool KMajor, int Threads>
struct swizzled_stage {
    static constexpr int size = static_cast<int>(sizeof(Input));
    static constexpr int k = stage_k_bytes / size;
    static constexpr int bytes = Extent * stage_k_bytes;
    static constexpr int row_bytes = KMajor ? stage_k_bytes : Extent * size < 128 ? Extent * size : 128;
    static constexpr int row_elements = row_bytes / size;
    static constexpr int rows_of_panel = KMajor ? Extent : k;
    static constexpr int panel_bytes = rows_of_panel * row_bytes;
    static constexpr int chunks = bytes / 16;
    static constexpr int chunks_across = row_bytes / 16;
    static constexpr int chunk_elements = 16 / size;

    static_assert(bytes % 1024 == 0, "mp: swizzled tiles begin at multiples of 1024 bytes");
    static_assert(chunks % Threads == 0, "mp: each thread copies as many chunks");

    using pointer = simt::shared_pointer<Input>;

    /// The element at a row of A (column of B) and k.
    [[nodiscard]] MP_HOST_DEVICE static constexpr pointer element(pointer stage, int outer, int p) {
        const int panel = KMajor ? 0 : outer / row_elements;
        const int row = KMajor ? outer : p;
        const int position = KMajor ? p : outer % row_elements;
        const auto offset = static_cast<std::uint32_t>(row * row_bytes + position * size);
        return {stage.offset + static_cast<std::uint32_t>(panel * panel_bytes) +
                simt::swizzled<row_bytes>(offset)};
    }

    /// Begins to copy the tile that starts at `outer` (row of A, column of B) and `k`; what lies outside of
    /// the operand becomes zero. All threads of the block call it.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE static MP_ALWAYS_INLINE void copy(Thread thread, pointer stage,
                                                     const operand_vectors<Input>& operand,
                                                     std::ptrdiff_t outer, std::ptrdiff_t p) {
        const std::ptrdiff_t first_row = KMajor ? outer : p;
        const std::ptrdiff_t first_position = KMajor ? p : outer;
        MP_UNROLL
        for (int i = 0; i < chunks / Threads; ++i) {
            const int chunk_number = thread.index() + i * Threads;
            const int panel = chunk_number / (chunks_across * rows_of_panel);
            const int row = chunk_number / chunks_across % rows_of_panel;
            const int position = panel * row_elements + chunk_number % chunks_across * chunk_elements;
            const pointer to = KMajor ? element(stage, row, position) : element(stage, position, row);
            copy_chunk(thread, to, operand, first_row + row, first_position + position);
        }
    }

    /// A fragment of A: 16 rows from `row` on, and 32 bytes of k from byte 32 * step on.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE static MP_ALWAYS_INLINE simt::registers<4> load_a(Thread thread, pointer stage, int row,
                                                                     int step) {
        const int lane = thread.lane();
        const int p = step * simt::mma_k<Input>;
        if constexpr (KMajor) {
            return thread.template load_matrix<4>(
                element(stage, row + lane % 16, p + lane / 16 * chunk_elements));
        } else if constexpr (size == 2) {
            return thread.template load_matrix_transposed<4>(
                element(stage, row + lane / 8 % 2 * 8, p + lane / 16 * 8 + lane % 8));
        } else {
            simt::registers<4> fragment;
            for (int i = 0; i < 4; ++i)
                fragment[i] = gather(thread, stage, simt::mma_a_coordinate(lane, i), row, p);
            return fragment;
        }
    }

    /// Two fragments of B: of 8 columns each, from `column` on, in registers 0 and 1, and 2 and 3.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE static MP_ALWAYS_INLINE simt::registers<4> load_b_pair(Thread thread, pointer stage,
                                                                          int column, int step) {
        const int lane = thread.lane();
        const int p = step * simt::mma_k<Input>;
        if constexpr (KMajor) {
            return thread.template load_matrix<4>(
                element(stage, column + lane / 16 * 8 + lane % 8, p + lane / 8 % 2 * chunk_elements));
        } else if constexpr (size == 2) {
            return thread.template load_matrix_transposed<4>(
                element(stage, column + lane / 16 * 8, p + lane / 8 % 2 * 8 + lane % 8));
        } else {
            simt::registers<4> fragments;
            for (int i = 0; i < 4; ++i) {
                fragments[i] =
                    gather(thread, stage, simt::mma_b_coordinate(lane, i % 2), column + i / 2 * 8, p);
            }
            return fragments;
        }
    }

private:
    /// A register of a fragment, element by element: what load_matrix does not transpose.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE static MP_ALWAYS_INLINE std::uint32_t gather(Thread thread, pointer stage,
                                                                simt::fragment_coordinate at, int outer,
                                                                int p) {
        chunk<Input, 4 / size> elements;
        for (int i = 0; i < 4 / size; ++i) {
            elements.values[i] = thread.load(element(stage, outer + at.row, p + at.position / size + i));
        }
        return bit_cast<std::uint32_t>(elements);
    }
};

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
