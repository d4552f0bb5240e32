// SPDX-License-Identifier: MIT
/// \file
/// Functions of the elements of matrices on a GPU.
#pragma once

#include <mp/arrays/array/for_each_element.hpp>
#include <mp/base/bits.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/rules/elementwise.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A function of <mp/numbers/rules/elementwise.hpp> as an object that kernels call.
template <class Function>
struct elementwise_call {
    template <class... Float>
    MP_HOST_DEVICE MP_ALWAYS_INLINE float operator()(Float... x) const {
        return apply_elementwise<Function>(x...);
    }
};

/// to = function(from...), element by element. Each thread loads several chunks before it calculates, to keep
/// enough of them on their way.
template <class Function, class To, class... From>
struct map_kernel;

template <class Function, class To, class From>
struct map_kernel<Function, To, From> {
    static constexpr int threads = row_threads;
    static constexpr int width = row_chunk<To, From>;
    static constexpr int in_flight = 4;
    Function function;
    row_matrix<To> to;
    row_matrix<const From> from;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const std::ptrdiff_t across = (columns + width - 1) / width;
        const std::ptrdiff_t step = thread.blocks() * threads;
        std::ptrdiff_t first = thread.block() * threads + thread.index();
        for (; first < rows * across; first += in_flight * step) {
            row_floats<width> values[in_flight] = {};
            MP_UNROLL
            for (int k = 0; k < in_flight; ++k) {
                const std::ptrdiff_t i = first + k * step;
                const std::ptrdiff_t row = rows == 1 ? 0 : i / across;
                if (row < rows && i < rows * across) {
                    values[k] =
                        load_row_floats<width>(thread, from, row, (i - row * across) * width, columns);
                }
            }
            MP_UNROLL
            for (int k = 0; k < in_flight; ++k) {
                const std::ptrdiff_t i = first + k * step;
                const std::ptrdiff_t row = rows == 1 ? 0 : i / across;
                if (i >= rows * across) break;
                MP_UNROLL
                for (int j = 0; j < width; ++j) values[k].values[j] = function(values[k].values[j]);
                store_row_floats(thread, to, row, (i - row * across) * width, columns, values[k]);
            }
        }
    }
};

template <class Function, class To, class First, class Second>
struct map_kernel<Function, To, First, Second> {
    static constexpr int threads = row_threads;
    static constexpr int width = row_chunk<To, First, Second>;
    static constexpr int in_flight = 2;
    Function function;
    row_matrix<To> to;
    row_matrix<const First> first;
    row_matrix<const Second> second;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const std::ptrdiff_t across = (columns + width - 1) / width;
        const std::ptrdiff_t step = thread.blocks() * threads;
        std::ptrdiff_t begin = thread.block() * threads + thread.index();
        for (; begin < rows * across; begin += in_flight * step) {
            row_floats<width> values[in_flight] = {};
            row_floats<width> others[in_flight] = {};
            MP_UNROLL
            for (int k = 0; k < in_flight; ++k) {
                const std::ptrdiff_t i = begin + k * step;
                const std::ptrdiff_t row = rows == 1 ? 0 : i / across;
                if (i < rows * across) {
                    const std::ptrdiff_t c = (i - row * across) * width;
                    values[k] = load_row_floats<width>(thread, first, row, c, columns);
                    others[k] = load_row_floats<width>(thread, second, row, c, columns);
                }
            }
            MP_UNROLL
            for (int k = 0; k < in_flight; ++k) {
                const std::ptrdiff_t i = begin + k * step;
                const std::ptrdiff_t row = rows == 1 ? 0 : i / across;
                if (i >= rows * across) break;
                MP_UNROLL
                for (int j = 0; j < width; ++j) {
                    values[k].values[j] = function(values[k].values[j], others[k].values[j]);
                }
                store_row_floats(thread, to, row, (i - row * across) * width, columns, values[k]);
            }
        }
    }
};

/// Whether views of one shape lie in memory in the same order and without gaps.
template <class First, class... Rest>
[[nodiscard]] bool is_one_vector(matrix_view<First> first, matrix_view<Rest>... rest) {
    const std::ptrdiff_t length = first.order == storage_order::row_major ? first.columns : first.rows;
    return first.leading_dimension == length &&
           ((rest.row_stride() == first.row_stride() && rest.column_stride() == first.column_stride()) &&
            ...);
}
/// The elements of such a view as one row.
template <class Value>
[[nodiscard]] matrix_view<Value> as_one_vector(matrix_view<Value> view) {
    return row_major(view.data, 1, view.rows * view.columns);
}

/// Writes function(from...), a float of floats, to every element of `to`, rounded once to its format.
/// Function is plain bytes with a call operator for devices. Matrices without gaps whose first elements lie
/// at multiples of 16 bytes are the fastest.
template <class Executor, class Function, class To, class... From>
void map_elements_by(std::string_view name, const Executor& exec, const Function& function,
                     matrix_view<To> to, matrix_view<const From>... from) {
    if (to.rows == 0 || to.columns == 0) return;
    if (to.order == storage_order::column_major) {
        return map_elements_by(name, exec, function, transposed(to), transposed(from)...);
    }
    if (to.rows > 1 && is_one_vector(to, from...)) {
        return map_elements_by(name, exec, function, as_one_vector(to), as_one_vector(from)...);
    }
    using kernel = map_kernel<Function, To, From...>;
    constexpr std::ptrdiff_t block_chunks = std::ptrdiff_t{kernel::threads} * kernel::in_flight;
    launch(
        name, exec, chunk_launch(to.rows, to.columns, kernel::width, block_chunks),
        kernel{function, rows_of<kernel::width>(to), rows_of<kernel::width>(from)..., to.rows, to.columns});
}

/// Writes Function(from...) of <mp/numbers/rules/elementwise.hpp> to every element of `to`, rounded once to its
/// format: map_elements() of the CPU, with its bits, but that signaling NaNs become quiet.
template <class Function, gpu_executor Executor, class To, class... From>
void map_elements(Function /*f*/, const Executor& exec, matrix_view<To> to, matrix_view<const From>... from) {
    map_elements_by("mp::ops", exec, elementwise_call<Function>{}, to, from...);
}

}}  // namespace mp::detail
