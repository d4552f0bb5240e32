// SPDX-License-Identifier: MIT
/// \file
/// The epilogue of products whose C is written by TMA: from accumulators to tiles in shared memory.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/gemm/output.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/gemm/round_results.hpp>
#include <mp/device/simt/fragments.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/matrix_descriptor.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/device/simt/tensor_map.hpp>
#include <mp/linalg/gemm/integer.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Tiles in which warps write C: 16 rows of 128 bytes, swizzled, so that the words which a warp writes at a
/// time fill the banks once (with floats twice).
template <class Output>
struct stored_tile {
    static constexpr int size = static_cast<int>(sizeof(Output));
    static constexpr int row_bytes = 128;
    static constexpr int rows = 16;
    static constexpr int columns = row_bytes / size;
    static constexpr int bytes = rows * row_bytes;
    /// Neighbouring columns of an accumulator: see simt::wgmma_coordinate.
    static constexpr int step_columns = 8;
    static constexpr int sums = columns / 2;  ///< of a thread

    /// Whether TMA takes C.
    template <class Epilogue>
    [[nodiscard]] static bool takes(const product_output<Output, Epilogue>& c, std::ptrdiff_t matrices) {
        constexpr std::ptrdiff_t most = 0x7FFF'0000;
        return vector_alignment(c.data, c.stride, c.batch_stride) == 16 && c.rows <= most &&
               c.columns <= most && (matrices == 1 || c.batch_stride > 0);
    }
    /// What it is told of C.
    template <class Epilogue>
    [[nodiscard]] static simt::tensor_tiles tiles(const product_output<Output, Epilogue>& c,
                                                  std::ptrdiff_t matrices) {
        return {c.data,  size, c.columns, c.rows,   c.stride * size,
                columns, rows, row_bytes, matrices, matrices == 1 ? 16 : c.batch_stride * size};
    }

    /// Writes the warp's sums of the columns from `first` on, times alpha, which is an integer where C is of integers.
    MP_ANY_EXECUTION_SPACE
    template <class Sum, std::size_t Count, class Thread, class Scale>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void write(Thread thread, simt::shared_pointer<Output> tile,
                                                      Scale alpha, const Sum (&sum)[Count], int first) {
        if constexpr (size == 2) {
            write_matrices(thread, tile, alpha, sum, first);
        } else {
            write_pairs(thread, tile, alpha, sum, first);
        }
    }

private:
    /// By matrices of 8 x 8, of which two lie below each other, and two beside these: sixteen columns at a time.
    MP_ANY_EXECUTION_SPACE
    template <class Sum, std::size_t Count, class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void write_matrices(Thread thread,
                                                               simt::shared_pointer<Output> tile, float alpha,
                                                               const Sum (&sum)[Count], int first) {
        const int lane = thread.lane();
        const std::uint32_t begin =
            simt::swizzled<row_bytes>(static_cast<std::uint32_t>(lane % rows * row_bytes + lane / rows * 16));
        MP_UNROLL
        for (int i = 0; i < sums; i += 8) {
            const Sum* const from = sum + (first / 2 + i);
            simt::registers<4> pairs;
            MP_UNROLL
            for (int n = 0; n < 4; ++n) {
                pairs[n] = bit_cast<std::uint32_t>(scaled(alpha, from[2 * n], from[2 * n + 1]));
            }
            // The bits of a step of columns are none of those that a place within it has.
            const std::uint32_t place = begin ^ static_cast<std::uint32_t>(i / 4 * step_columns * size);
            thread.store_matrix(simt::shared_pointer<Output>{tile.offset + place}, pairs);
        }
    }

    /// By two neighbours at a time.
    MP_ANY_EXECUTION_SPACE
    template <class Sum, std::size_t Count, class Thread, class Scale>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void write_pairs(Thread thread, simt::shared_pointer<Output> tile,
                                                            Scale alpha, const Sum (&sum)[Count], int first) {
        const simt::fragment_coordinate at = simt::mma_c_coordinate(thread.lane(), 0);
        const std::uint32_t begin =
            simt::swizzled<row_bytes>(static_cast<std::uint32_t>(at.row * row_bytes + at.position * size));
        MP_UNROLL
        for (int i = 0; i < sums; i += 4) {
            // The bits of a step of columns are none of those that a place within it has.
            const std::uint32_t place = begin ^ static_cast<std::uint32_t>(i / 4 * step_columns * size);
            MP_UNROLL
            for (int n = 0; n < 4; n += 2) {
                const simt::shared_pointer<chunk<Output, 2>> to{
                    tile.offset + place + static_cast<std::uint32_t>(n / 2 * 8 * row_bytes)};
                const Sum* const from = sum + (first / 2 + i + n);
                thread.store(to, scaled(alpha, from[0], from[1]));
            }
        }
    }

    template <class Sum, class Scale>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static chunk<Output, 2> scaled(Scale alpha, Sum first,
                                                                                 Sum second) {
        if constexpr (std::is_same_v<Scale, std::int32_t>) {
            return {{scale_integer(alpha, static_cast<std::uint32_t>(first), 0, 0),
                     scale_integer(alpha, static_cast<std::uint32_t>(second), 0, 0)}};
        } else {
            return round_products<Output>(float_multiply(alpha, static_cast<float>(first)),
                                          float_multiply(alpha, static_cast<float>(second)));
        }
    }
};

}}  // namespace mp::detail
