// SPDX-License-Identifier: MIT
/// \file
/// Rows of a table chosen by integers on a GPU, and the gradient of the table.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/gpu/sorted_positions.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/embedding.hpp>
#include <mp/nn/ops/gpu_casts.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/float_float.hpp>
#include <mp/numbers/rules/float_functions.hpp>
#include <mp/workspace.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Bytes of the executor's workspace that embedding_backward() needs on a GPU for `indices` indices.
[[nodiscard]] constexpr std::size_t embedding_backward_workspace(std::size_t indices) {
    return indices == 0 ? 0 : detail::sort_bytes(indices) + workspace::alignment;
}

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Row i of y = row indices[i] of the table. Each thread has chunks of y.
template <class Table, class Index, class Y>
struct gather_kernel {
    static constexpr int threads = row_threads;
    static constexpr int width = row_chunk<Table, Y>;
    row_matrix<const Table> table;
    const Index* indices;
    row_matrix<Y> y;
    std::ptrdiff_t table_rows;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const std::ptrdiff_t across = (columns + width - 1) / width;
        const std::ptrdiff_t step = thread.blocks() * threads;
        for (std::ptrdiff_t i = thread.block() * threads + thread.index(); i < rows * across; i += step) {
            const std::ptrdiff_t row = i / across;
            const std::ptrdiff_t column = (i - row * across) * width;
            // As an unsigned number, a negative index is too large as well.
            const auto index = as<std::uint64_t>(thread.load(indices + row));
            if (index < static_cast<std::uint64_t>(table_rows)) {
                copy(thread, static_cast<std::ptrdiff_t>(index), row, column);
            } else {
                row_floats<width> nothing;
                MP_UNROLL
                for (int k = 0; k < width; ++k) nothing.values[k] = float_quiet_nan();
                store_row_floats(thread, y, row, column, columns, nothing);
            }
        }
    }

private:
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void copy(Thread thread, std::ptrdiff_t from_row, std::ptrdiff_t row,
                                              std::ptrdiff_t column) const {
        if constexpr (!std::same_as<Table, Y>) {
            store_row_floats(thread, y, row, column, columns,
                             load_row_floats<width>(thread, table, from_row, column, columns));
        } else {
            const Table* const from =
                table.data + (from_row * table.row_stride + column * table.column_stride);
            Y* const to = y.data + (row * y.row_stride + column * y.column_stride);
            if (table.wide && y.wide && column + width <= columns) {
                thread.store(chunk_at<width>(to), thread.load(chunk_at<width>(from)));
                return;
            }
            for (int k = 0; k < width && column + k < columns; ++k) {
                thread.store(to + k * y.column_stride, thread.load(from + k * table.column_stride));
            }
        }
    }
};

/// Row r of dtable = the sum of the rows of dy at the positions whose key is r, in their order. A group of
/// threads has a row.
template <class Group, class DY, class Written>
struct row_additions_kernel {
    static constexpr int threads = row_threads;
    static constexpr int width = row_chunk<DY, Written>;
    static constexpr int in_flight = 4;
    const keyed_position* sorted;
    row_matrix<const DY> dy;
    row_matrix<Written> dtable;
    std::ptrdiff_t count;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t padding;
    bool adds;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        for (std::ptrdiff_t row = Group::number(thread); row < rows; row += Group::count(thread)) {
            const std::ptrdiff_t begin = first_not_below(thread, static_cast<std::uint64_t>(row));
            const std::ptrdiff_t end =
                row == padding ? begin : first_not_below(thread, static_cast<std::uint64_t>(row) + 1);
            if (adds && begin == end) continue;
            for (std::ptrdiff_t c = Group::rank(thread) * width; c < columns; c += Group::size * width) {
                row_sums sum;
                std::ptrdiff_t i = begin;
                for (; i + in_flight <= end; i += in_flight) add<in_flight>(thread, i, c, sum);
                for (; i < end; ++i) add<1>(thread, i, c, sum);
                row_floats<width> result = sum.value();
                if (adds) {
                    const auto old = load_row_floats<width>(thread, dtable, row, c, columns);
                    MP_UNROLL
                    for (int j = 0; j < width; ++j) {
                        result.values[j] = float_add(result.values[j], old.values[j]);
                    }
                }
                store_row_floats(thread, dtable, row, c, columns, result);
            }
        }
    }

private:
    /// Sums of neighbouring columns: those of row_sum on the CPU.
    struct row_sums {
        float_float sums[std::size_t{width}] = {};
        int terms = 0;

        MP_HOST_DEVICE MP_ALWAYS_INLINE void add(const row_floats<width>& more) {
            MP_UNROLL
            for (int j = 0; j < width; ++j) sums[j] = sums[j] + more.values[j];
            if (++terms < pair_terms) return;
            terms = 0;
            MP_UNROLL
            for (int j = 0; j < width; ++j) sums[j] = normalized(sums[j]);
        }
        [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE row_floats<width> value() const {
            row_floats<width> result;
            MP_UNROLL
            for (int j = 0; j < width; ++j) result.values[j] = sums[j].value();
            return result;
        }
    };

    /// How many keys are below this one.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE std::ptrdiff_t first_not_below(Thread thread, std::uint64_t key) const {
        std::ptrdiff_t begin = 0;
        std::ptrdiff_t end = count;
        while (begin < end) {
            const std::ptrdiff_t middle = begin + (end - begin) / 2;
            if (thread.load(sorted + middle).key < key) {
                begin = middle + 1;
            } else {
                end = middle;
            }
        }
        return begin;
    }

    /// The rows of some positions are loaded together and added in their order.
    MP_ANY_EXECUTION_SPACE
    template <int Count, class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void add(Thread thread, std::ptrdiff_t first, std::ptrdiff_t column,
                                             row_sums& sum) const {
        row_floats<width> terms[std::size_t{Count}];
        MP_UNROLL
        for (int k = 0; k < Count; ++k) {
            const auto row = static_cast<std::ptrdiff_t>(thread.load(sorted + (first + k)).position);
            terms[k] = load_row_floats<width>(thread, dy, row, column, columns);
        }
        MP_UNROLL
        for (int k = 0; k < Count; ++k) sum.add(terms[k]);
    }
};

/// gather_rows() of the CPU, enqueued.
template <gpu_executor Executor, class Table, class Index, class Y>
void gather_rows(table_rows, const Executor& exec, matrix_view<const Table> table,
                 std::span<const Index> indices, matrix_view<Y> y) {
    if (y.rows == 0 || y.columns == 0) return;
    using kernel = gather_kernel<Table, Index, Y>;
    constexpr int width = kernel::width;
    launch("mp::ops::embedding", exec, chunk_launch(y.rows, y.columns, width),
           kernel{rows_of<width>(table), indices.data(), rows_of<width>(y), table.rows, y.rows, y.columns});
}

/// add_rows() of the CPU, enqueued.
template <gpu_executor Executor, class Index, class DY, class Written>
void add_rows(table_rows, const Executor& exec, std::span<const Index> indices, matrix_view<const DY> dy,
              matrix_view<Written> dtable, bool adds, std::ptrdiff_t padding) {
    constexpr std::string_view function = "mp::ops::embedding_backward";
    if (dtable.rows == 0 || dtable.columns == 0 || (adds && indices.empty())) return;
    constexpr std::uint64_t most = (std::numeric_limits<std::uint32_t>::max)();
    if (indices.size() >= most) {
        throw_argument(function, "indices.size()", indices.size(), "must be below 2^32 on a GPU");
    }
    if (static_cast<std::uint64_t>(dtable.rows) >= most) {
        throw_argument(function, "dtable.rows", dtable.rows, "must be below 2^32 on a GPU");
    }
    const workspace::frame frame(workspace_of(exec));
    const keyed_position* sorted = nullptr;
    if (!indices.empty()) {
        const sort_memory memory(function, exec, indices.size());
        sorted = launch_sort(function, exec, indices, static_cast<std::uint32_t>(dtable.rows), memory);
    }
    constexpr int width = row_chunk<DY, Written>;
    launch_rows(function, exec, dtable.rows, dtable.columns, [&]<class Group>(Group) {
        return row_additions_kernel<Group, DY, Written>{sorted,
                                                        rows_of<width>(dy),
                                                        rows_of<width>(dtable),
                                                        static_cast<std::ptrdiff_t>(indices.size()),
                                                        dtable.rows,
                                                        dtable.columns,
                                                        padding,
                                                        adds};
    });
}

}}  // namespace mp::detail
