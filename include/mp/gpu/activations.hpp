// SPDX-License-Identifier: MIT
/// \file
/// Activation functions on a GPU, forward and backward: relu, gelu, silu.
#pragma once

#include <mp/detail/bits.hpp>
#include <mp/executor.hpp>
#include <mp/gpu/row_access.hpp>
#include <mp/matrix_view.hpp>
#include <mp/ops/activations.hpp>
#include <mp/ops/arguments.hpp>
#include <mp/ops/for_each_element.hpp>
#include <mp/ops/relu.hpp>
#include <mp/ops/unary_checks.hpp>
#include <mp/rules/elementwise.hpp>
#include <mp/simt/gpu_executor.hpp>
#include <mp/simt/kernel_traits.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// to = Function(from...), element by element. Each thread loads the chunks
/// of a few places before it calculates, to keep enough of them on their way.
template <class Function, class To, class... From>
struct map_kernel;

template <class Function, class To, class From>
struct map_kernel<Function, To, From> {
    static constexpr int threads = row_threads;
    static constexpr int width = row_chunk<To, From>;
    static constexpr int in_flight = 4;
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
                for (int j = 0; j < width; ++j)
                    values[k].values[j] = apply_elementwise<Function>(values[k].values[j]);
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
                    values[k].values[j] =
                        apply_elementwise<Function>(values[k].values[j], others[k].values[j]);
                }
                store_row_floats(thread, to, row, (i - row * across) * width, columns, values[k]);
            }
        }
    }
};

/// Enqueues to = Function(from...) for matrices of one shape, along the lines of `to`.
template <class Function, class Executor, class To, class... From>
void launch_map(std::string_view function, Executor exec, matrix_view<To> to,
                matrix_view<const From>... from) {
    if (to.rows == 0 || to.columns == 0) return;
    if (to.order == storage_order::column_major) {
        return launch_map<Function>(function, exec, transposed(to), transposed(from)...);
    }
    if (to.rows > 1 && is_one_line(to, from...)) {
        return launch_map<Function>(function, exec, as_one_line(to), as_one_line(from)...);
    }
    using kernel = map_kernel<Function, To, From...>;
    constexpr std::ptrdiff_t share = std::ptrdiff_t{kernel::threads} * kernel::in_flight;
    const std::ptrdiff_t chunks = to.rows * ((to.columns + kernel::width - 1) / kernel::width);
    const std::ptrdiff_t blocks =
        (std::min)((chunks - 1) / share + 1, static_cast<std::ptrdiff_t>(most_blocks));
    launch(function, exec, simt::launch_size{.blocks = blocks},
           kernel{rows_of<kernel::width>(to), rows_of<kernel::width>(from)..., to.rows, to.columns});
}

template <class Function, class Executor, class X, class Y>
void launch_activation(std::string_view function, Executor exec, matrix_view<const X> x, matrix_view<Y> y) {
    check_unary(function, cpu{}, named("x", x), named("y", y));
    launch_map<Function>(function, exec, y, x);
}
template <class Function, class Executor, class X, class DY, class DX>
void launch_slope(std::string_view function, std::string_view known, Executor exec, matrix_view<const X> x,
                  matrix_view<const DY> dy, matrix_view<DX> dx) {
    check_unary_backward(function, cpu{}, named(known, x), named("dy", dy), named("dx", dx));
    launch_map<Function>(function, exec, dx, x, dy);
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE

namespace mp::ops::inline MP_ISA_NAMESPACE {

/// y = max(x, 0), element by element, on a GPU: the bits, arguments and errors of relu() on the CPU, but that
/// signaling NaNs become quiet. x and y lie in device memory; matrices without gaps whose first elements lie
/// at multiples of 16 bytes are the fastest.
template <gpu_executor Executor, element X, element Y>
void relu(Executor exec, matrix_view<X> x, matrix_view<Y> y) {
    detail::launch_activation<detail::relu_function>("mp::ops::relu", exec, detail::input_view(x), y);
}

/// The gradient of y = relu(x) on a GPU: the bits, arguments and errors of relu_backward() on the CPU,
/// but that signaling NaNs become quiet.
template <gpu_executor Executor, element Y, element DY, element DX>
void relu_backward(Executor exec, matrix_view<Y> y, matrix_view<DY> dy, matrix_view<DX> dx) {
    detail::launch_slope<detail::slope_of<detail::relu_function>>(
        "mp::ops::relu_backward", "y", exec, detail::input_view(y), detail::input_view(dy), dx);
}

/// y = gelu(x), element by element, on a GPU: the bits, arguments and errors of gelu() on the CPU.
template <gpu_executor Executor, element X, element Y>
void gelu(Executor exec, matrix_view<X> x, matrix_view<Y> y, gelu_formula formula = gelu_formula::exact) {
    constexpr std::string_view function = "mp::ops::gelu";
    detail::check_formula(function, formula);
    if (formula == gelu_formula::exact) {
        detail::launch_activation<detail::gelu_function>(function, exec, detail::input_view(x), y);
    } else {
        detail::launch_activation<detail::gelu_tanh_function>(function, exec, detail::input_view(x), y);
    }
}

/// The gradient of y = gelu(x) on a GPU: the bits, arguments and errors of gelu_backward() on the CPU.
template <gpu_executor Executor, element X, element DY, element DX>
void gelu_backward(Executor exec, matrix_view<X> x, matrix_view<DY> dy, matrix_view<DX> dx,
                   gelu_formula formula = gelu_formula::exact) {
    constexpr std::string_view function = "mp::ops::gelu_backward";
    detail::check_formula(function, formula);
    if (formula == gelu_formula::exact) {
        detail::launch_slope<detail::slope_of<detail::gelu_function>>(
            function, "x", exec, detail::input_view(x), detail::input_view(dy), dx);
    } else {
        detail::launch_slope<detail::slope_of<detail::gelu_tanh_function>>(
            function, "x", exec, detail::input_view(x), detail::input_view(dy), dx);
    }
}

/// y = x / (1 + e^-x), element by element, on a GPU: the bits, arguments and errors of silu() on the CPU.
template <gpu_executor Executor, element X, element Y>
void silu(Executor exec, matrix_view<X> x, matrix_view<Y> y) {
    detail::launch_activation<detail::silu_function>("mp::ops::silu", exec, detail::input_view(x), y);
}

/// The gradient of y = silu(x) on a GPU: the bits, arguments and errors of silu_backward() on the CPU.
template <gpu_executor Executor, element X, element DY, element DX>
void silu_backward(Executor exec, matrix_view<X> x, matrix_view<DY> dy, matrix_view<DX> dx) {
    detail::launch_slope<detail::slope_of<detail::silu_function>>(
        "mp::ops::silu_backward", "x", exec, detail::input_view(x), detail::input_view(dy), dx);
}

}  // namespace mp::ops::inline MP_ISA_NAMESPACE
