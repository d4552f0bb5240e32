// SPDX-License-Identifier: MIT
/// \file
/// Sums of the rows or columns of a matrix on a GPU. The sum of each column is the gradient of a bias.
#pragma once

#include <mp/device/gpu/map_elements.hpp>
#include <mp/device/gpu/matrix_sums.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/arithmetic.hpp>
#include <mp/nn/ops/gpu_casts.hpp>
#include <mp/nn/ops/reductions.hpp>
#include <mp/numbers/rules/float_float.hpp>
#include <mp/workspace.hpp>

#include <cstddef>
#include <span>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class X>
struct plain_column_terms {
    static constexpr int width = row_chunk<X>;
    static constexpr int sums = 1;
    row_matrix<const X> x;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void add(
        Thread thread, std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t columns,
        float_float (&totals)[std::size_t{sums}][std::size_t{width}]) const {
        const row_floats<width> values = load_row_floats<width>(thread, x, row, column, columns);
        MP_UNROLL
        for (int i = 0; i < width; ++i) totals[0][i] = totals[0][i] + values.values[i];
    }
};

/// The products of the elements at the same places.
template <class X, class Y>
struct product_column_terms {
    static constexpr int width = row_chunk<X, Y>;
    static constexpr int sums = 1;
    row_matrix<const X> x;
    row_matrix<const Y> y;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void add(
        Thread thread, std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t columns,
        float_float (&totals)[std::size_t{sums}][std::size_t{width}]) const {
        const row_floats<width> values = load_row_floats<width>(thread, x, row, column, columns);
        const row_floats<width> factors = load_row_floats<width>(thread, y, row, column, columns);
        MP_UNROLL
        for (int i = 0; i < width; ++i) {
            totals[0][i] = totals[0][i] + exact_product(values.values[i], factors.values[i]);
        }
    }
};

template <class Group, class X, class Y>
struct row_sums_kernel {
    static constexpr int threads = row_threads;
    static constexpr int width = row_chunk<X>;
    row_matrix<const X> x;
    Y* sums;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    float divisor;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        for (std::ptrdiff_t row = Group::number(thread); row < rows; row += Group::count(thread)) {
            float_float sum{};
            for (std::ptrdiff_t c = Group::rank(thread) * width; c < columns; c += Group::size * width) {
                const row_floats<width> values = load_row_floats<width>(thread, x, row, c, columns);
                MP_UNROLL
                for (int i = 0; i < width; ++i) sum = sum + values.values[i];
            }
            sum = Group::reduce(thread, sum, add_pairs{});
            if (Group::rank(thread) == 0)
                thread.store(sums + row, static_cast<Y>(float_divide(sum.value(), divisor)));
        }
    }
};

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Bytes of the executor's workspace that sum() and mean() need on a GPU for a matrix of this shape, casts
/// not included: none for sums of rows, and 8 bytes a column for every 64 rows, or for every 256th of the
/// rows if there are more than 16384.
[[nodiscard]] constexpr std::size_t sum_workspace(std::ptrdiff_t rows, std::ptrdiff_t columns, per axis) {
    return axis == per::row ? 0 : detail::column_sum_bytes(rows, columns, 1) + workspace::alignment;
}

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Enqueues result[c] = the sum of the terms of column c, divided by the divisor.
template <class Executor, class Terms, class Result>
void launch_column_sums(const Executor& exec, const Terms& terms, std::ptrdiff_t rows,
                        std::span<Result> result, std::ptrdiff_t divisor) {
    constexpr std::string_view function = "mp::ops::sum";
    const auto columns = static_cast<std::ptrdiff_t>(result.size());
    if (columns == 0) return;
    const workspace::frame frame(workspace_of(exec));
    auto* const parts = take_column_parts(function, exec, rows, columns, 1);
    launch_column_parts(function, exec, terms, rows, columns, parts);
    launch_column_totals(function, exec, parts, 0, rows, result, static_cast<float>(divisor));
}

/// Sums of columns as gradients of rows that were repeated.
template <gpu_executor Executor, class Result, class X>
void sum_column_terms(itself, const Executor& exec, std::span<Result> result, matrix_view<const X> x) {
    launch_column_sums(exec, plain_column_terms<X>{rows_of<row_chunk<X>>(x)}, x.rows, result, 1);
}
template <gpu_executor Executor, class Result, class X, class Y>
void sum_column_terms(product_term, const Executor& exec, std::span<Result> result, matrix_view<const X> x,
                      matrix_view<const Y> y) {
    constexpr int width = row_chunk<X, Y>;
    launch_column_sums(exec, product_column_terms<X, Y>{rows_of<width>(x), rows_of<width>(y)}, x.rows, result,
                       1);
}

/// sum_per() of the CPU, enqueued.
template <gpu_executor Executor, class X, class Y>
void sum_per(vector_sums, const Executor& exec, matrix_view<const X> x, std::span<Y> y, ops::per axis,
             std::ptrdiff_t divisor) {
    constexpr int width = row_chunk<X>;
    if (y.empty()) return;
    if (axis == ops::per::column) {
        return launch_column_sums(exec, plain_column_terms<X>{rows_of<width>(x)}, x.rows, y, divisor);
    }
    launch_rows("mp::ops::sum", exec, x.rows, x.columns, [&]<class Group>(Group) {
        return row_sums_kernel<Group, X, Y>{rows_of<width>(x), y.data(), x.rows, x.columns,
                                            static_cast<float>(divisor)};
    });
}

/// broadcast_per() of the CPU, enqueued.
template <gpu_executor Executor, class Function, class DY, class DX>
void broadcast_per(vector_sums, const Executor& exec, const Function& f, matrix_view<const DY> dy,
                   matrix_view<DX> dx) {
    map_elements_by("mp::ops::sum_backward", exec, f, dx, dy);
}

}}  // namespace mp::detail
