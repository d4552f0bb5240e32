// SPDX-License-Identifier: MIT
/// \file
/// Pooling of images on a GPU, forward and backward. Gradients are gathered: each pixel looks through the
/// windows that it is in, in their order, so that there are no atomic operations.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/gpu_casts.hpp>
#include <mp/nn/ops/pooling.hpp>
#include <mp/nn/ops/pooling/windows.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>

#include <cstddef>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The elements of a row from one on, for functions of windows.
template <class Thread, class Value>
struct row_elements {
    Thread thread;
    const Value* data;
    std::ptrdiff_t first;
    std::ptrdiff_t step;

    MP_ANY_EXECUTION_SPACE
    MP_HOST_DEVICE row_elements(Thread of, const row_matrix<const Value>& matrix, std::ptrdiff_t row,
                                std::ptrdiff_t column)
        : thread(of),
          data(matrix.data),
          first(row * matrix.row_stride + column * matrix.column_stride),
          step(matrix.column_stride) {}

    MP_ANY_EXECUTION_SPACE
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE Value operator()(std::ptrdiff_t i) const {
        return thread.load(data + (first + i * step));
    }
};

/// One element of y from its window. Each thread has elements of y.
template <class Kind, class X, class Y>
struct pool_kernel {
    static constexpr int threads = row_threads;
    Kind kind;
    row_matrix<const X> x;
    row_matrix<Y> y;
    pooling_windows windows;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;  ///< of y

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const std::ptrdiff_t step = thread.blocks() * threads;
        std::ptrdiff_t i = thread.block() * threads + thread.index();
        for (; i < rows * columns; i += step) {
            const std::ptrdiff_t row = i / columns;
            const std::ptrdiff_t column = i - row * columns;
            const std::ptrdiff_t channel = column / windows.positions();
            const window_pixels window = windows.window(column - channel * windows.positions());
            const row_elements<Thread, X> pixels(thread, x, row, channel * windows.pixels());
            thread.store(y.data + (row * y.row_stride + column * y.column_stride),
                         result(kind, pixels, window));
        }
    }

private:
    MP_ANY_EXECUTION_SPACE
    template <class Load>
    [[nodiscard]] MP_HOST_DEVICE Y result(largest_of_window, const Load& load,
                                          const window_pixels& window) const {
        return as<Y>(load(largest_pixel(load, window, windows.columns.size)));
    }
    MP_ANY_EXECUTION_SPACE
    template <class Load>
    [[nodiscard]] MP_HOST_DEVICE Y result(average_of_window average, const Load& load,
                                          const window_pixels& window) const {
        const rounded_doubles<1> sum = window_sum(load, window, windows.columns.size);
        return element_of_double<Y>((sum / window_divisor(windows, window, average.over)).value());
    }
};

/// One element of dx from the windows that it is in. Each thread has elements of dx.
template <class Kind, class X, class DY, class DX>
struct pool_gradient_kernel {
    static constexpr int threads = row_threads;
    Kind kind;
    row_matrix<const X> x;  ///< without data for averages
    row_matrix<const DY> dy;
    row_matrix<DX> dx;
    pooling_windows windows;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;  ///< of dx

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const std::ptrdiff_t step = thread.blocks() * threads;
        std::ptrdiff_t i = thread.block() * threads + thread.index();
        for (; i < rows * columns; i += step) {
            const std::ptrdiff_t row = i / columns;
            const std::ptrdiff_t column = i - row * columns;
            const std::ptrdiff_t channel = column / windows.pixels();
            const std::ptrdiff_t pixel = column - channel * windows.pixels();
            const row_elements<Thread, X> pixels(thread, x, row, channel * windows.pixels());
            const row_elements<Thread, DY> gradients(thread, dy, row, channel * windows.positions());
            const std::ptrdiff_t image_row = pixel / windows.columns.size;
            const index_range output_rows = windows.rows.outputs_of(image_row);
            const index_range output_columns =
                windows.columns.outputs_of(pixel - image_row * windows.columns.size);
            rounded_doubles<1> sum = 0.0;
            for (std::ptrdiff_t a = output_rows.begin; a < output_rows.end; ++a) {
                for (std::ptrdiff_t b = output_columns.begin; b < output_columns.end; ++b) {
                    const window_pixels window{windows.rows.pixels_of(a), windows.columns.pixels_of(b)};
                    add(kind, sum, pixels, gradients, window, pixel, a * windows.columns.outputs + b);
                }
            }
            thread.store(dx.data + (row * dx.row_stride + column * dx.column_stride),
                         element_of_double<DX>(sum.value()));
        }
    }

private:
    MP_ANY_EXECUTION_SPACE
    template <class Pixels, class Gradients>
    MP_HOST_DEVICE void add(largest_of_window, rounded_doubles<1>& sum, const Pixels& pixels,
                            const Gradients& gradients, const window_pixels& window, std::ptrdiff_t pixel,
                            std::ptrdiff_t position) const {
        if (largest_pixel(pixels, window, windows.columns.size) != pixel) return;
        sum += double_of_element(gradients(position));
    }
    MP_ANY_EXECUTION_SPACE
    template <class Pixels, class Gradients>
    MP_HOST_DEVICE void add(average_of_window average, rounded_doubles<1>& sum, const Pixels& /*pixels*/,
                            const Gradients& gradients, const window_pixels& window, std::ptrdiff_t /*pixel*/,
                            std::ptrdiff_t position) const {
        const rounded_doubles<1> gradient = double_of_element(gradients(position));
        sum += gradient / window_divisor(windows, window, average.over);
    }
};

/// pool() of the CPU, enqueued.
template <class Kind, gpu_executor Executor, class X, class Y>
void pool(Kind kind, const Executor& exec, matrix_view<const X> x, matrix_view<Y> y,
          const ops::pool2d_geometry& geometry) {
    if (y.rows == 0) return;
    launch("mp::ops::pool2d", exec, walk_launch(y.rows * y.columns),
           pool_kernel<Kind, X, Y>{kind, rows_of<1>(x), rows_of<1>(y), pooling_windows(geometry), y.rows,
                                   y.columns});
}

/// pool_gradient() of the CPU, enqueued.
template <gpu_executor Executor, class X, class DY, class DX>
void pool_gradient(largest_of_window kind, const Executor& exec, matrix_view<const X> x,
                   matrix_view<const DY> dy, matrix_view<DX> dx, const ops::pool2d_geometry& geometry) {
    if (dx.rows == 0) return;
    launch("mp::ops::pool2d_backward", exec, walk_launch(dx.rows * dx.columns),
           pool_gradient_kernel<largest_of_window, X, DY, DX>{kind, rows_of<1>(x), rows_of<1>(dy),
                                                              rows_of<1>(dx), pooling_windows(geometry),
                                                              dx.rows, dx.columns});
}
template <gpu_executor Executor, class DY, class DX>
void pool_gradient(average_of_window kind, const Executor& exec, matrix_view<const DY> dy, matrix_view<DX> dx,
                   const ops::pool2d_geometry& geometry) {
    if (dx.rows == 0) return;
    launch("mp::ops::pool2d_backward", exec, walk_launch(dx.rows * dx.columns),
           pool_gradient_kernel<average_of_window, DY, DY, DX>{kind, row_matrix<const DY>{}, rows_of<1>(dy),
                                                               rows_of<1>(dx), pooling_windows(geometry),
                                                               dx.rows, dx.columns});
}

}}  // namespace mp::detail
