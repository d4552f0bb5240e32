// SPDX-License-Identifier: MIT
/// \file
/// The column of the largest value of each row on a GPU.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/reductions.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/argmax.hpp>
#include <mp/numbers/rules/ordered_key.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The value of a column by its key, which is 0 where there is none.
struct alignas(16) keyed_column {
    std::uint64_t column = 0;
    std::uint32_t key = 0;
    std::uint32_t unused = 0;
};

/// The larger one, and the first of equals.
struct larger_column {
    MP_HOST_DEVICE keyed_column operator()(const keyed_column& a, const keyed_column& b) const {
        return a.key > b.key || (a.key == b.key && a.column < b.column) ? a : b;
    }
};

template <class Group, class Value, class Index>
struct argmax_kernel {
    static constexpr int threads = row_threads;
    static constexpr int width = row_chunk<Value>;
    row_matrix<const Value> values;
    Index* indices;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        for (std::ptrdiff_t row = Group::number(thread); row < rows; row += Group::count(thread)) {
            keyed_column best;
            for (std::ptrdiff_t c = Group::rank(thread) * width; c < columns; c += Group::size * width) {
                const row_floats<width> loaded = load_row_floats<width>(thread, values, row, c, columns);
                MP_UNROLL
                for (int i = 0; i < width; ++i) {
                    const std::uint32_t key = c + i < columns ? ordered_key(loaded.values[i]) : 0;
                    if (key > best.key) best = {static_cast<std::uint64_t>(c + i), key, 0};
                }
            }
            best = Group::reduce(thread, best, larger_column{});
            if (Group::rank(thread) == 0) thread.store(indices + row, static_cast<Index>(best.column));
        }
    }
};

/// write_largest_columns() of the CPU, enqueued.
template <gpu_executor Executor, class Value, class Index>
void write_largest_columns(argmax_rows, const Executor& exec, matrix_view<const Value> values,
                           std::span<Index> indices) {
    if (indices.empty()) return;
    constexpr int width = row_chunk<Value>;
    launch_rows("mp::ops::argmax", exec, values.rows, values.columns, [&]<class Group>(Group) {
        return argmax_kernel<Group, Value, Index>{rows_of<width>(values), indices.data(), values.rows,
                                                  values.columns};
    });
}

}}  // namespace mp::detail
