// SPDX-License-Identifier: MIT
/// \file
/// A tile of an operand in shared memory as TMA brings it and wgmma reads it.
#pragma once

#include <mp/config.hpp>
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

}}  // namespace mp::detail
