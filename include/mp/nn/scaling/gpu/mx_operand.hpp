// SPDX-License-Identifier: MIT
/// \file
/// Operands of products on a GPU that are rounded to MXFP8 and back, for layers of that policy.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/reductions.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/float8.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/scaling/gpu/tensor_scaling.hpp>
#include <mp/numbers/rules/quantised_operand.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A tile is as high as a block and a warp as wide as one, so that each lane has a block along its column, and the
/// warp one along each row.
template <class Value>
struct mx_operand_kernel {
    static constexpr int threads = row_threads;
    using element = float8_e4m3fn;
    const Value* from;
    std::ptrdiff_t from_stride;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    bfloat16* along_rows;
    std::ptrdiff_t along_rows_stride;
    bfloat16* along_columns;
    std::ptrdiff_t along_columns_stride;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const column_of_tile tile = load_column(thread, from, from_stride, rows, columns);
        bfloat16 rounded[std::size_t{column_tiles::rows}];
        std::uint32_t of_column = 0;
        MP_UNROLL
        for (int r = 0; r < column_tiles::rows; ++r) {
            const std::uint32_t magnitude = finite_magnitude_bits(tile.values[r]);
            of_column = larger_word{}(of_column, magnitude);
            const std::uint32_t of_row = gpu::warp_reduce(thread, magnitude, larger_word{});
            rounded[r] = rounded_to_block(tile.values[r], of_row);
        }
        store_column(thread, tile, rounded, along_rows, along_rows_stride);
        MP_UNROLL
        for (int r = 0; r < column_tiles::rows; ++r) rounded[r] = rounded_to_block(tile.values[r], of_column);
        store_column(thread, tile, rounded, along_columns, along_columns_stride);
    }

private:
    MP_HOST_DEVICE static bfloat16 rounded_to_block(float value, std::uint32_t amax) {
        return static_cast<bfloat16>(quantised<element>(value, scale_exponent_for<element>(amax)));
    }
};

/// Both operands that a matrix becomes, rounded in blocks along its rows and along its columns, in one pass: the
/// bits that quantise_mx() gives on the CPU. All row-major.
template <gpu_executor Executor, class Value>
void quantise_mx(mx_blocks, const Executor& exec, matrix_view<const Value> from,
                 matrix_view<bfloat16> along_rows, matrix_view<bfloat16> along_columns) {
    if (from.rows == 0 || from.columns == 0) return;
    launch("mp::layers::linear", exec,
           simt::launch_size{.blocks = column_tiles::blocks(from.rows, from.columns)},
           mx_operand_kernel<Value>{from.data, from.leading_dimension, from.rows, from.columns,
                                    along_rows.data, along_rows.leading_dimension, along_columns.data,
                                    along_columns.leading_dimension});
}

}}  // namespace mp::detail
