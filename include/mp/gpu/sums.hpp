// SPDX-License-Identifier: MIT
/// \file
/// Sums of the rows or columns of a matrix on a GPU. The sum of each column is the gradient of a bias.
#pragma once

#include <mp/detail/contiguous.hpp>
#include <mp/error.hpp>
#include <mp/gpu/column_sums.hpp>
#include <mp/gpu/row_access.hpp>
#include <mp/matrix_view.hpp>
#include <mp/ops/arguments.hpp>
#include <mp/ops/reductions.hpp>
#include <mp/simt/gpu_executor.hpp>
#include <mp/simt/kernel_traits.hpp>

#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

namespace mp::detail::inline MP_ISA_NAMESPACE {

template <class X>
struct plain_column_terms {
    static constexpr int width = row_chunk<X>;
    static constexpr int sums = 1;
    row_matrix<const X> x;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void add(
        Thread thread, std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t columns,
        double_float (&totals)[std::size_t{sums}][std::size_t{width}]) const {
        const row_floats<width> values = load_row_floats<width>(thread, x, row, column, columns);
        MP_UNROLL
        for (int i = 0; i < width; ++i) totals[0][i] = totals[0][i] + values.values[i];
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

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        for (std::ptrdiff_t row = Group::number(thread); row < rows; row += Group::count(thread)) {
            double_float sum{};
            for (std::ptrdiff_t c = Group::rank(thread) * width; c < columns; c += Group::size * width) {
                const row_floats<width> values = load_row_floats<width>(thread, x, row, c, columns);
                MP_UNROLL
                for (int i = 0; i < width; ++i) sum = sum + values.values[i];
            }
            sum = Group::reduce(thread, sum, add_pairs{});
            if (Group::rank(thread) == 0) thread.store(sums + row, static_cast<Y>(sum.value()));
        }
    }
};

}  // namespace mp::detail::inline MP_ISA_NAMESPACE

namespace mp::ops::inline MP_ISA_NAMESPACE {

/// Floats of the workspace that sum() needs for a matrix of this shape: none for sums of rows, and 8 bytes a
/// column for every 64 rows, or for every 256th of the rows if there are more than 16384.
[[nodiscard]] constexpr std::size_t sum_workspace(std::ptrdiff_t rows, std::ptrdiff_t columns, per axis) {
    return axis == per::row ? 0 : detail::column_sum_floats(rows, columns, 1);
}

/// The sums of the rows or columns of x on a GPU, as sum() on the CPU: with per::column and the gradient of a
/// layer's output, the gradient of its bias. x and y lie in device memory, and so does the workspace of
/// sum_workspace(rows, columns, axis) floats, which begins at a multiple of 16 bytes.
///
/// A float sum is the CPU's, that is the exact one rounded, unless the sum of the magnitudes is more than
/// 2^20 / rows^2 times as large as the sum; the error is below 2^-24 of the sum and rows^2 2^-48 of the
/// magnitudes (columns^2 for sums of rows). Sums that leave float's range on the way are infinite or NaN.
/// There are no atomic operations: the order of the additions depends on the shape and the size of the
/// format, and on nothing else.
///
///     mp::ops::sum(stream, dy, dbias, mp::ops::per::column, workspace);
template <gpu_executor Executor, element X, detail::contiguous Y>
void sum(Executor exec, matrix_view<X> x, Y&& y, per axis, std::span<float> workspace) {
    constexpr std::string_view function = "mp::ops::sum";
    const std::span to = detail::as_span(y);
    using result = typename decltype(to)::element_type;
    const auto input = detail::named("x", x);
    const auto output = detail::named("y", to);
    detail::check_operand(function, input);
    detail::check_per(function, output, input, axis);
    detail::check_separate(function, output, input);
    detail::check_workspace(function, workspace, sum_workspace(x.rows, x.columns, axis));
    if (to.empty()) return;
    using value = std::remove_const_t<X>;
    constexpr int width = detail::row_chunk<value>;
    const matrix_view<const value> from = x;
    if (axis == per::column) {
        auto* parts = reinterpret_cast<detail::double_float*>(workspace.data());
        detail::launch_column_parts(function, exec,
                                    detail::plain_column_terms<value>{detail::rows_of<width>(from)}, x.rows,
                                    x.columns, parts);
        detail::launch_column_totals(function, exec, parts, 0, x.rows, std::span<result>(to));
        return;
    }
    detail::with_row_group(x.columns, [&](auto group) {
        using group_type = decltype(group);
        launch(function, exec, detail::row_launch<group_type>(x.rows),
               detail::row_sums_kernel<group_type, value, result>{detail::rows_of<width>(from), to.data(),
                                                                  x.rows, x.columns});
    });
}

}  // namespace mp::ops::inline MP_ISA_NAMESPACE
