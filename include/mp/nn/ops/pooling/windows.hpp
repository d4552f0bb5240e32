// SPDX-License-Identifier: MIT
/// \file
/// The windows of pooling ops, and what is taken of their pixels: one text for CPUs and GPUs.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/nn/ops/convolution/geometry.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/rules/ordered_key.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>

#include <concepts>
#include <cstddef>
#include <string_view>

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// The windows that a pooling op looks through, in pixels. Images are rows of a matrix as in conv2d_geometry,
/// and every channel is pooled by itself.
///
///     constexpr mp::ops::pool2d_geometry halves{.channels = 8, .height = 28, .width = 28, .kernel = {2, 2}};
struct pool2d_geometry {
    std::ptrdiff_t channels = 1;
    std::ptrdiff_t height = 1;          ///< of the input
    std::ptrdiff_t width = 1;           ///< of the input
    height_and_width kernel = {1, 1};   ///< pixels of a window
    height_and_width stride = {0, 0};   ///< between two neighbouring windows; {0, 0} means kernel
    height_and_width padding = {0, 0};  ///< pixels added on either side, at most half a window

    /// The convolution whose kernels lie where the windows do. It is not checked.
    [[nodiscard]] constexpr conv2d_geometry as_convolution() const {
        return {.channels = channels,
                .height = height,
                .width = width,
                .kernel = kernel,
                .stride = stride.height == 0 && stride.width == 0 ? kernel : stride,
                .padding = padding};
    }

    /// Size of one output channel: floor((height + 2 padding - kernel) / stride) + 1, and the same for the
    /// width. Throws as check() does.
    [[nodiscard]] height_and_width output_size() const {
        check();
        return as_convolution().output_size();
    }

    /// Throws argument_error in the name of `function` for what conv2d_geometry::check() refuses, and for a
    /// padding above half a window, with which a window could have no pixel.
    void check(std::string_view function = "mp::ops::pool2d_geometry") const {
        as_convolution().check(function);
        if (padding.height > kernel.height / 2) {
            detail::throw_argument(function, "geometry.padding.height", padding.height,
                                   "must be at most half of geometry.kernel.height, which is " +
                                       detail::error_text(kernel.height));
        }
        if (padding.width > kernel.width / 2) {
            detail::throw_argument(function, "geometry.padding.width", padding.width,
                                   "must be at most half of geometry.kernel.width, which is " +
                                       detail::error_text(kernel.width));
        }
    }
};

/// What an average in a window that reaches into the padding is divided by.
enum class average_over : unsigned char {
    whole_window,  ///< by the pixels of the window, as if the padding were zeros
    pixels_inside  ///< by the pixels that lie inside the image
};

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The pixels of an image that a window has: rows and columns of a channel.
struct window_pixels {
    index_range rows;
    index_range columns;

    [[nodiscard]] MP_HOST_DEVICE constexpr std::ptrdiff_t count() const {
        return (rows.end - rows.begin) * (columns.end - columns.begin);
    }
};

/// Along one axis: the pixels of the window of an output, and the outputs whose windows have a pixel.
struct window_axis {
    std::ptrdiff_t size;  ///< of the image
    std::ptrdiff_t outputs;
    std::ptrdiff_t kernel;
    std::ptrdiff_t stride;
    std::ptrdiff_t padding;

    [[nodiscard]] MP_HOST_DEVICE constexpr index_range pixels_of(std::ptrdiff_t output) const {
        const std::ptrdiff_t begin = output * stride - padding;
        const std::ptrdiff_t end = begin + kernel;
        return {begin < 0 ? 0 : begin, end < size ? end : size};
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr index_range outputs_of(std::ptrdiff_t pixel) const {
        const std::ptrdiff_t first = pixel + padding - kernel + 1;
        const std::ptrdiff_t end = (pixel + padding) / stride + 1;
        return {first <= 0 ? 0 : (first + stride - 1) / stride, end < outputs ? end : outputs};
    }
};

/// The windows of a geometry that has been checked.
struct pooling_windows {
    window_axis rows;
    window_axis columns;

    explicit pooling_windows(const ops::pool2d_geometry& geometry) {
        const ops::conv2d_geometry g = geometry.as_convolution();
        const ops::height_and_width out = g.output_size();
        rows = {g.height, out.height, g.kernel.height, g.stride.height, g.padding.height};
        columns = {g.width, out.width, g.kernel.width, g.stride.width, g.padding.width};
    }

    [[nodiscard]] MP_HOST_DEVICE constexpr std::ptrdiff_t pixels() const { return rows.size * columns.size; }
    [[nodiscard]] MP_HOST_DEVICE constexpr std::ptrdiff_t positions() const {
        return rows.outputs * columns.outputs;
    }
    /// The window at a position, counted row after row.
    [[nodiscard]] MP_HOST_DEVICE constexpr window_pixels window(std::ptrdiff_t position) const {
        const std::ptrdiff_t row = position / columns.outputs;
        return {rows.pixels_of(row), columns.pixels_of(position - row * columns.outputs)};
    }
};

/// Calls f(position, pixels) for each window of a channel, row after row.
template <class Function>
void for_each_window(const ops::pool2d_geometry& geometry, Function f) {
    const pooling_windows windows(geometry);
    std::ptrdiff_t position = 0;
    for (std::ptrdiff_t i = 0; i < windows.rows.outputs; ++i) {
        const index_range rows = windows.rows.pixels_of(i);
        for (std::ptrdiff_t j = 0; j < windows.columns.outputs; ++j) {
            f(position++, window_pixels{rows, windows.columns.pixels_of(j)});
        }
    }
}

/// Calls f(pixel) with the index in its channel of each pixel of a window, row after row.
template <class Function>
void for_each_pixel(const window_pixels& window, std::ptrdiff_t width, Function f) {
    for (std::ptrdiff_t row = window.rows.begin; row < window.rows.end; ++row) {
        for (std::ptrdiff_t column = window.columns.begin; column < window.columns.end; ++column) {
            f(row * width + column);
        }
    }
}

/// Whether a is to be chosen instead of b: NaN before any number.
template <class Value>
MP_HOST_DEVICE MP_ALWAYS_INLINE bool is_chosen_before(Value a, Value b) {
#if MP_DEVICE_CODE
    // The comparison of devices may take subnormals for zeros.
    return is_larger_by_key(static_cast<float>(a), static_cast<float>(b));
#else
    return !isnan(b) && (isnan(a) || a > b);
#endif
}

/// Index in its channel of the largest pixel of a window: the first of equals, and the first NaN where there
/// is one. `load` is a function of such an index.
MP_ANY_EXECUTION_SPACE
template <class Load>
MP_HOST_DEVICE std::ptrdiff_t largest_pixel(Load load, const window_pixels& window, std::ptrdiff_t width) {
    std::ptrdiff_t best = window.rows.begin * width + window.columns.begin;
    auto largest = load(best);
    for (std::ptrdiff_t row = window.rows.begin; row < window.rows.end; ++row) {
        for (std::ptrdiff_t column = window.columns.begin; column < window.columns.end; ++column) {
            const auto value = load(row * width + column);
            if (!is_chosen_before(value, largest)) continue;
            best = row * width + column;
            largest = value;
        }
    }
    return best;
}

/// An element as a double, exactly, and a double rounded once to an element.
template <class Value>
MP_HOST_DEVICE MP_ALWAYS_INLINE double double_of_element(Value x) {
    if constexpr (std::same_as<Value, double>) {
        return x;
    } else {
        return double_from_float(static_cast<float>(x));
    }
}
template <class Value>
MP_HOST_DEVICE MP_ALWAYS_INLINE Value element_of_double(double x) {
    if constexpr (std::same_as<Value, float>) {
        return float_from_double(x);
    } else {
        return as<Value>(x);
    }
}

/// The sum of the pixels of a window in double, row after row.
MP_ANY_EXECUTION_SPACE
template <class Load>
MP_HOST_DEVICE rounded_doubles<1> window_sum(Load load, const window_pixels& window, std::ptrdiff_t width) {
    rounded_doubles<1> sum = 0.0;
    for (std::ptrdiff_t row = window.rows.begin; row < window.rows.end; ++row) {
        for (std::ptrdiff_t column = window.columns.begin; column < window.columns.end; ++column) {
            sum += double_of_element(load(row * width + column));
        }
    }
    return sum;
}

/// What the sum of a window is divided by.
MP_HOST_DEVICE inline double window_divisor(const pooling_windows& windows, const window_pixels& window,
                                            ops::average_over over) {
    return static_cast<double>(over == ops::average_over::whole_window
                                   ? windows.rows.kernel * windows.columns.kernel
                                   : window.count());
}

}}  // namespace mp::detail
