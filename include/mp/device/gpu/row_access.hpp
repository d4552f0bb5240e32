// SPDX-License-Identifier: MIT
/// \file
/// How kernels read and write the rows of matrices: in floats, several neighbours at a time, by accesses of
/// up to 16 bytes where the matrix lies so that they are aligned, and one by one where it does not. Which
/// thread has which elements depends on neither, so that sums have the same bits for every layout.
#pragma once

#include <mp/device/gpu/chunks.hpp>

#include <mp/config.hpp>
#include <mp/device/gpu/reductions.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/rules/float_float.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Neighbouring elements of a row that a thread works on together: 16 bytes of the widest format.
template <class... Values>
inline constexpr int row_chunk = static_cast<int>(16 / (std::max)({sizeof(Values)...}));

/// A matrix for kernels. `data` is null where an operand is absent.
template <class Value>
struct row_matrix {
    Value* data = nullptr;
    std::ptrdiff_t row_stride = 0;
    std::ptrdiff_t column_stride = 1;
    bool wide = false;  ///< whether chunks are aligned in every row
};

/// The matrix behind a view, to be read in chunks of `Width` columns.
template <int Width, class Value>
[[nodiscard]] row_matrix<Value> rows_of(matrix_view<Value> view) {
    const std::ptrdiff_t step = view.column_stride();
    const std::ptrdiff_t stride = view.row_stride();
    const bool aligned = reinterpret_cast<std::uintptr_t>(view.data) % (Width * sizeof(Value)) == 0;
    // In a matrix of one row its stride does not matter.
    const bool wide = step == 1 && aligned && (stride % Width == 0 || view.rows <= 1);
    return {view.data, stride, step, wide};
}
/// A 1-D array broadcast over rows.
template <int Width, class Value, std::size_t Extent>
[[nodiscard]] row_matrix<Value> rows_of(std::span<Value, Extent> array) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(array.data()) % (Width * sizeof(Value)) == 0;
    return {array.data(), 0, 1, aligned};
}

/// Floats of neighbouring elements.
template <int Width>
struct row_floats {
    float values[std::size_t{Width}];
};

/// Elements [column, column + Width) of a row as floats, exactly; `fill` stands for those from `columns` on.
MP_ANY_EXECUTION_SPACE
template <int Width, class Thread, class Value>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE row_floats<Width> load_row_floats(
    Thread thread, const row_matrix<Value>& from, std::ptrdiff_t row, std::ptrdiff_t column,
    std::ptrdiff_t columns, float fill = 0.0F) {
    using element = std::remove_const_t<Value>;
    using elements = chunk<element, Width>;
    row_floats<Width> result;
    const Value* at = from.data + (row * from.row_stride + column * from.column_stride);
    if (from.wide && column + Width <= columns) {
        const elements loaded = thread.load(reinterpret_cast<const elements*>(at));
        MP_UNROLL
        for (int i = 0; i < Width; ++i) result.values[i] = static_cast<float>(loaded.values[i]);
        return result;
    }
    MP_UNROLL
    for (int i = 0; i < Width; ++i) {
        result.values[i] = fill;
        if (column + i < columns) {
            result.values[i] = static_cast<float>(thread.load(at + i * from.column_stride));
        }
    }
    return result;
}

/// Writes them, each rounded once to nearest even.
MP_ANY_EXECUTION_SPACE
template <int Width, class Thread, class Value>
MP_HOST_DEVICE MP_ALWAYS_INLINE void store_row_floats(Thread thread, const row_matrix<Value>& to,
                                                      std::ptrdiff_t row, std::ptrdiff_t column,
                                                      std::ptrdiff_t columns,
                                                      const row_floats<Width>& values) {
    using elements = chunk<Value, Width>;
    Value* at = to.data + (row * to.row_stride + column * to.column_stride);
    if (to.wide && column + Width <= columns) {
        elements rounded;
        MP_UNROLL
        for (int i = 0; i < Width; ++i) rounded.values[i] = static_cast<Value>(values.values[i]);
        thread.store(reinterpret_cast<elements*>(at), rounded);
        return;
    }
    MP_UNROLL
    for (int i = 0; i < Width; ++i) {
        if (column + i < columns) {
            thread.store(at + i * to.column_stride, static_cast<Value>(values.values[i]));
        }
    }
}

/// The sum of a few floats as a tree: neighbours first.
template <int Width>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE float sum_of_chunk(row_floats<Width> terms) {
    MP_UNROLL
    for (int step = 1; step < Width; step *= 2) {
        MP_UNROLL
        for (int i = 0; i + step < Width; i += 2 * step) {
            terms.values[i] = float_add(terms.values[i], terms.values[i + step]);
        }
    }
    return terms.values[0];
}

/// For the reductions of groups.
struct add_pairs {
    MP_HOST_DEVICE float_float operator()(float_float a, float_float b) const { return a + b; }
};
struct two_float_floats {
    float_float first;
    float_float second;
};
struct add_two_pairs {
    MP_HOST_DEVICE two_float_floats operator()(const two_float_floats& a, const two_float_floats& b) const {
        return {a.first + b.first, a.second + b.second};
    }
};

/// Threads of the blocks of row kernels.
inline constexpr int row_threads = 256;
/// Rows of at most 1024 columns use one warp, longer rows one block.
inline constexpr std::ptrdiff_t columns_of_a_warp = 1024;

/// Launch configuration of a kernel whose blocks loop over items (at least one), `items_of_block` per iteration.
[[nodiscard]] inline simt::launch_size walk_launch(std::ptrdiff_t items,
                                                   std::ptrdiff_t items_of_block = row_threads) {
    return {.blocks = (std::min)((items - 1) / items_of_block + 1, static_cast<std::ptrdiff_t>(most_blocks))};
}
/// The launch of a kernel whose threads walk over chunks of `width` columns of a matrix.
[[nodiscard]] inline simt::launch_size chunk_launch(std::ptrdiff_t rows, std::ptrdiff_t columns, int width,
                                                    std::ptrdiff_t chunks_of_block = row_threads) {
    return walk_launch(rows * ((columns + width - 1) / width), chunks_of_block);
}

/// The launch of a kernel whose groups walk over rows.
template <class Group>
[[nodiscard]] simt::launch_size row_launch(std::ptrdiff_t rows) {
    simt::launch_size size = walk_launch(rows, Group::of_block(row_threads));
    size.shared_bytes = Group::shared_bytes(row_threads);
    return size;
}

/// Calls f(group) with the kind of group that rows of this length have.
template <class Function>
void with_row_group(std::ptrdiff_t columns, Function f) {
    if (columns <= columns_of_a_warp) {
        f(gpu::warp_group{});
    } else {
        f(gpu::block_group<row_threads>{});
    }
}

/// Launches make(group), a kernel whose groups walk over rows of this length.
template <class Executor, class Make>
void launch_rows(std::string_view function, const Executor& exec, std::ptrdiff_t rows, std::ptrdiff_t columns,
                 Make make) {
    with_row_group(
        columns, [&](auto group) { launch(function, exec, row_launch<decltype(group)>(rows), make(group)); });
}

}}  // namespace mp::detail
