// SPDX-License-Identifier: MIT
/// \file
/// The heads of attention as kernels see them, and tiles of them in shared memory.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/matrix_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Rows of a head that a block of threads takes at a time, of queries and of keys: 16 a warp.
inline constexpr int attention_tile = 64;
inline constexpr int attention_threads = 128;

/// The format that tiles have in shared memory, which holds every operand's numbers exactly: a format of the
/// tensor cores where all operands have it, half for those of 8 bits, else float.
template <class... Values>
using attention_input = std::conditional_t<
    (... && std::is_same_v<Values, bfloat16>), bfloat16,
    std::conditional_t<(... && (std::is_same_v<Values, half> || std::is_same_v<Values, float8_e4m3fn> ||
                                std::is_same_v<Values, float8_e5m2>)),
                       half, float>>;

/// Heads of `rows` x `columns` elements in a matrix, `per_row` of them side by side.
template <class Value>
struct head_matrix {
    Value* data = nullptr;  ///< null where an operand is absent
    std::ptrdiff_t row_stride = 0;
    std::ptrdiff_t column_stride = 1;
    std::ptrdiff_t per_row = 1;
    std::ptrdiff_t rows = 0;
    std::ptrdiff_t columns = 0;
    int alignment = 1;  ///< bytes that divide the address of every row of every head: vector_alignment

    /// One head by itself, its first row at `data`: once for all tiles of it, for the sake of the divisions.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE head_matrix head(std::ptrdiff_t number) const {
        head_matrix one = *this;
        one.per_row = 1;
        if (data != nullptr) {
            one.data += number / per_row * rows * row_stride + number % per_row * columns * column_stride;
        }
        return one;
    }
    /// To be accessed in chunks of `Width` elements; of one head.
    template <int Width>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE row_matrix<Value> in_chunks() const {
        const bool wide = column_stride == 1 && alignment >= Width * static_cast<int>(sizeof(Value));
        return {data, row_stride, column_stride, wide};
    }
};

template <class Value>
[[nodiscard]] head_matrix<Value> heads_in(matrix_view<Value> view, std::ptrdiff_t per_row,
                                          std::ptrdiff_t rows) {
    const std::ptrdiff_t columns = view.columns / per_row;
    const std::ptrdiff_t next_head = per_row == 1 ? 0 : columns;
    // In a matrix of one row its stride does not matter.
    const std::ptrdiff_t stride = view.rows <= 1 ? 0 : view.row_stride();
    return {view.data,
            view.row_stride(),
            view.column_stride(),
            per_row,
            rows,
            columns,
            vector_alignment(view.data, stride, next_head)};
}

/// A tile of `attention_tile` rows and `Width` columns of a head. Rows are 16 bytes longer than that, so that
/// the eight rows of a column of chunks, which load_matrix reads at a time, fill all banks once.
template <class Input, int Width>
struct attention_stage {
    static constexpr int chunk_elements = 16 / static_cast<int>(sizeof(Input));
    static constexpr int pitch = Width + chunk_elements;
    static constexpr int bytes = attention_tile * pitch * static_cast<int>(sizeof(Input));

    using pointer = simt::shared_pointer<Input>;

    [[nodiscard]] MP_HOST_DEVICE static constexpr pointer element(pointer stage, int row, int column) {
        return stage + (row * pitch + column);
    }

    /// Begins to copy the tile that starts at `row` and `column` of one head; what lies outside of the head
    /// becomes zero. All threads of the block call it.
    MP_ANY_EXECUTION_SPACE
    template <class Thread, class Value>
    MP_HOST_DEVICE static MP_ALWAYS_INLINE void copy(Thread thread, pointer stage,
                                                     const head_matrix<const Value>& from, std::ptrdiff_t row,
                                                     std::ptrdiff_t column) {
        constexpr int across = Width / chunk_elements;
        // The columns behind those that are there, up to the next multiple of 16, are multiplied as well.
        const int columns = left_of((from.columns - column + 15) / 16 * 16, Width) / chunk_elements;
        MP_UNROLL_BY(1)
        for (int i = thread.index(); i < attention_tile * across; i += attention_threads) {
            const int line = i / across;
            const int position = i % across * chunk_elements;
            if (i % across >= columns) continue;
            const int inside =
                row + line < from.rows ? left_of(from.columns - column - position, chunk_elements) : 0;
            const Value* const at =
                inside > 0
                    ? from.data + ((row + line) * from.row_stride + (column + position) * from.column_stride)
                    : from.data;
            copy_elements(thread, element(stage, line, position), from, at, inside);
        }
    }

private:
    MP_ANY_EXECUTION_SPACE
    template <class Thread, class Value>
    MP_HOST_DEVICE static MP_ALWAYS_INLINE void copy_elements(Thread thread, pointer to,
                                                              const head_matrix<const Value>& from,
                                                              const Value* at, int inside) {
        if constexpr (std::is_same_v<Value, Input>) {
            if (from.alignment == 16 && from.column_stride == 1) {
                thread.template copy_async<16>(to, at, inside * static_cast<int>(sizeof(Input)));
                return;
            }
        }
        // No asynchronous copy converts, or takes other addresses.
        chunk<Input, chunk_elements> values{};
        MP_UNROLL
        for (int i = 0; i < chunk_elements; ++i) {
            if (i < inside) values.values[i] = static_cast<Input>(thread.load(at + i * from.column_stride));
        }
        thread.store(to.template as<chunk<Input, chunk_elements>>(), values);
    }
};

}}  // namespace mp::detail
