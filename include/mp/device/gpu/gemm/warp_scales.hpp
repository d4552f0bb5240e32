// SPDX-License-Identifier: MIT
/// \file
/// Scales of blocks of k for warps that multiply by wgmma.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/gemm/multistage_kernel.hpp>
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

}}  // namespace mp::detail
