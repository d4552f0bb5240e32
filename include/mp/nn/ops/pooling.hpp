// SPDX-License-Identifier: MIT
/// \file
/// Pooling of images: the largest or the average value of a window, forward and backward.
#pragma once

#include <mp/arrays/array/parallel.hpp>
#include <mp/base/parallel.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/autocast/dispatch.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/convolution/patches.hpp>
#include <mp/nn/ops/matrix_operand.hpp>
#include <mp/nn/ops/pooling/windows.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Calls f(row, channel, room) for every channel of every image, images on different threads, of which each has
/// one of the rooms, if there are any.
template <class Function>
void for_each_channel(cpu exec, std::ptrdiff_t images, const ops::pool2d_geometry& g,
                      thread_buffers<double>* rooms, Function f) {
    constexpr std::ptrdiff_t pixels_per_chunk = 16384;  // some ten microseconds of work, as a thread costs
    const auto grain = static_cast<std::size_t>(1 + pixels_per_chunk / (g.channels * g.height * g.width));
    parallel_arithmetic(exec, static_cast<std::size_t>(images), grain,
                        [&](std::size_t begin, std::size_t end) {
                            double* const room = rooms == nullptr ? nullptr : rooms->take();
                            for (auto row = static_cast<std::ptrdiff_t>(begin);
                                 row < static_cast<std::ptrdiff_t>(end); ++row) {
                                for (std::ptrdiff_t channel = 0; channel < g.channels; ++channel)
                                    f(row, channel, room);
                            }
                        });
}

/// Writes dx from the windows: spread(row, channel, sums) adds what the windows of a channel give to each of
/// its pixels. The sums are in double and rounded once.
template <class DX, class Spread>
void write_pooling_gradient(cpu exec, matrix_view<DX> dx, const ops::pool2d_geometry& g, Spread spread) {
    const std::ptrdiff_t pixels = g.height * g.width;
    thread_buffers<double> rooms(exec, static_cast<std::size_t>(pixels));
    for_each_channel(exec, dx.rows, g, &rooms, [&](std::ptrdiff_t row, std::ptrdiff_t channel, double* sums) {
        std::fill_n(sums, pixels, 0.0);
        spread(row, channel, sums);
        for (std::ptrdiff_t i = 0; i < pixels; ++i) {
            dx(row, channel * pixels + i) = element_of_double<DX>(sums[i]);
        }
    });
}

/// Checks the shapes of a pooling op: x and what is like x have one row for each image, y and what is like y
/// one for its pooled image.
void check_pooling(std::string_view function, const auto& exec, const named_operand& x,
                   const named_operand& y, const ops::pool2d_geometry& geometry) {
    check_executor(function, exec);
    geometry.check(function);
    const ops::conv2d_geometry g = geometry.as_convolution();
    const std::string rows = std::string(x.name) + ".rows";
    check_shape(function, x, x.extent.rows, rows, g.image_size(),
                "geometry.channels * geometry.height * geometry.width");
    check_shape(function, y, x.extent.rows, rows, g.channels * g.output_positions(),
                "geometry.channels * the output positions of geometry");
}

inline void check_average_over(std::string_view function, ops::average_over over) {
    if (over > ops::average_over::pixels_inside) {
        throw_argument(function, "over", static_cast<unsigned>(over),
                       "must be an enumerator of mp::ops::average_over");
    }
}

/// What is taken of a window: names the walks of pooling, for pool() and pool_gradient().
struct largest_of_window {};
struct average_of_window {
    ops::average_over over;
};

/// y = the largest pixels of the windows of x, on the CPU; on a GPU the functions of these names in
/// <mp/nn/ops/pooling/gpu.hpp>.
template <class X, class Y>
void pool(largest_of_window, const cpu& exec, matrix_view<const X> x, matrix_view<Y> y,
          const ops::pool2d_geometry& g) {
    const pooling_windows windows(g);
    for_each_channel(exec, x.rows, g, nullptr,
                     [&](std::ptrdiff_t row, std::ptrdiff_t channel, double* /*room*/) {
                         const auto load = [&](std::ptrdiff_t pixel) {
                             return x(row, channel * windows.pixels() + pixel);
                         };
                         for_each_window(g, [&](std::ptrdiff_t position, const window_pixels& window) {
                             y(row, channel * windows.positions() + position) =
                                 as<Y>(load(largest_pixel(load, window, g.width)));
                         });
                     });
}
template <class X, class Y>
void pool(average_of_window average, const cpu& exec, matrix_view<const X> x, matrix_view<Y> y,
          const ops::pool2d_geometry& g) {
    const pooling_windows windows(g);
    for_each_channel(
        exec, x.rows, g, nullptr, [&](std::ptrdiff_t row, std::ptrdiff_t channel, double* /*room*/) {
            const auto load = [&](std::ptrdiff_t pixel) {
                return x(row, channel * windows.pixels() + pixel);
            };
            for_each_window(g, [&](std::ptrdiff_t position, const window_pixels& window) {
                const auto sum = window_sum(load, window, g.width);
                y(row, channel * windows.positions() + position) =
                    element_of_double<Y>((sum / window_divisor(windows, window, average.over)).value());
            });
        });
}

/// dx = the sums of what the windows give to each pixel.
template <class X, class DY, class DX>
void pool_gradient(largest_of_window, const cpu& exec, matrix_view<const X> x, matrix_view<const DY> dy,
                   matrix_view<DX> dx, const ops::pool2d_geometry& g) {
    const pooling_windows windows(g);
    write_pooling_gradient(exec, dx, g, [&](std::ptrdiff_t row, std::ptrdiff_t channel, double* sums) {
        const auto load = [&](std::ptrdiff_t pixel) { return x(row, channel * windows.pixels() + pixel); };
        for_each_window(g, [&](std::ptrdiff_t position, const window_pixels& window) {
            double& sum = sums[largest_pixel(load, window, g.width)];
            const double gradient = double_of_element(dy(row, channel * windows.positions() + position));
            sum = (rounded_doubles<1>(sum) + gradient).value();
        });
    });
}
template <class DY, class DX>
void pool_gradient(average_of_window average, const cpu& exec, matrix_view<const DY> dy, matrix_view<DX> dx,
                   const ops::pool2d_geometry& g) {
    const pooling_windows windows(g);
    write_pooling_gradient(exec, dx, g, [&](std::ptrdiff_t row, std::ptrdiff_t channel, double* sums) {
        for_each_window(g, [&](std::ptrdiff_t position, const window_pixels& window) {
            const rounded_doubles<1> gradient =
                double_of_element(dy(row, channel * windows.positions() + position));
            const auto share = gradient / window_divisor(windows, window, average.over);
            for_each_pixel(window, g.width,
                           [&](std::ptrdiff_t pixel) { sums[pixel] = (share + sums[pixel]).value(); });
        });
    });
}

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Tag of max_pool2d(): a choice among values, right in any format, so nothing is cast.
struct max_pool2d_op {
    static constexpr std::string_view name = "max_pool2d";
    static constexpr auto category = op_category::pass_through;
    static constexpr bool computes_in_float = true;
    static constexpr std::array<std::string_view, 4> argument_names = {"exec", "x", "y", "geometry"};
    static constexpr std::array<std::string_view, 2> known_as = {"max_pool2d_with_indices", "MaxPool"};

    static void validate(const auto& exec, const auto& x, const auto& y, const pool2d_geometry& geometry) {
        constexpr std::string_view function = "mp::ops::max_pool2d";
        const auto input = detail::named("x", x);
        const auto output = detail::named("y", y);
        detail::check_pooling(function, exec, input, output, geometry);
        detail::check_separate(function, output, input);
    }

    template <executor Executor, element X, element Y>
    void operator()(const Executor& exec, matrix_view<const X> x, matrix_view<Y> y,
                    const pool2d_geometry& geometry) const {
        pool(detail::largest_of_window{}, exec, x, y, geometry);
    }
};

/// y = the largest pixel of each window; a window with NaN gives NaN. Padding takes no part.
///
/// Shapes: x is batch x (channels * height * width), y is batch x (channels * output height * output width),
/// in any storage order. The values are those of x; where y has another format, each is rounded to it once. y
/// must not overlap x. Throws argument_error for a geometry that has no output, shapes that do not fit and
/// invalid views; y is then unchanged. Runs on CPUs and, with <mp/nn/ops/pooling/gpu.hpp>, on GPUs, with the
/// same bits.
template <class Policy = autocast::by_region, executor Executor = cpu, element X, matrix_result Y>
void max_pool2d(const Executor& exec, matrix_view<X> x, const Y& y, const pool2d_geometry& geometry) {
    autocast::call<Policy>(max_pool2d_op{}, exec, detail::input_view(x), detail::output_view(y), geometry);
}

/// Tag of max_pool2d_backward().
struct max_pool2d_backward_op {
    static constexpr std::string_view name = "max_pool2d_backward";
    static constexpr auto category = op_category::pass_through;
    static constexpr bool computes_in_float = true;
    using forward_op = max_pool2d_op;
    static constexpr std::array<std::string_view, 5> argument_names = {"exec", "x", "dy", "dx", "geometry"};
    static constexpr std::array<std::string_view, 2> known_as = {"max_pool2d_with_indices_backward",
                                                                 "MaxPoolGrad"};

    static void validate(const auto& exec, const auto& x, const auto& dy, const auto& dx,
                         const pool2d_geometry& geometry) {
        constexpr std::string_view function = "mp::ops::max_pool2d_backward";
        const auto input = detail::named("x", x);
        const auto gradient = detail::named("dy", dy);
        const auto result = detail::named("dx", dx);
        detail::check_pooling(function, exec, input, gradient, geometry);
        detail::check_shape(function, result, input.extent.rows, "x.rows", input.extent.columns, "x.columns");
        detail::check_separate(function, result, input);
        detail::check_separate(function, result, gradient);
    }

    template <executor Executor, element X, element DY, element DX>
    void operator()(const Executor& exec, matrix_view<const X> x, matrix_view<const DY> dy,
                    matrix_view<DX> dx, const pool2d_geometry& geometry) const {
        pool_gradient(detail::largest_of_window{}, exec, x, dy, dx, geometry);
    }
};

/// The gradient of y = max_pool2d(x), given dy: each element of dy goes to the pixel that its window chose,
/// the first of equals and the first NaN, found again in x. Where windows overlap, a pixel gets their sum, in
/// double in the order of the windows, rounded once; pixels that no window chose get +0. Shapes are those of
/// max_pool2d(), dx is like x and overlaps neither x nor dy. Executors and errors are those of max_pool2d().
template <class Policy = autocast::by_region, executor Executor = cpu, element X, element DY,
          matrix_result DX>
void max_pool2d_backward(const Executor& exec, matrix_view<X> x, matrix_view<DY> dy, const DX& dx,
                         const pool2d_geometry& geometry) {
    autocast::call<Policy>(max_pool2d_backward_op{}, exec, detail::input_view(x), detail::input_view(dy),
                           detail::output_view(dx), geometry);
}

/// Tag of average_pool2d(): sums in wide precision whatever the format, so nothing is cast.
struct average_pool2d_op {
    static constexpr std::string_view name = "avg_pool2d";
    static constexpr auto category = op_category::pass_through;
    static constexpr bool computes_in_float = true;
    static constexpr std::array<std::string_view, 5> argument_names = {"exec", "x", "y", "geometry", "over"};
    static constexpr std::array<std::string_view, 1> known_as = {"AvgPool"};

    static void validate(const auto& exec, const auto& x, const auto& y, const pool2d_geometry& geometry,
                         average_over over) {
        constexpr std::string_view function = "mp::ops::average_pool2d";
        const auto input = detail::named("x", x);
        const auto output = detail::named("y", y);
        detail::check_pooling(function, exec, input, output, geometry);
        detail::check_average_over(function, over);
        detail::check_separate(function, output, input);
    }

    template <executor Executor, element X, element Y>
    void operator()(const Executor& exec, matrix_view<const X> x, matrix_view<Y> y,
                    const pool2d_geometry& geometry, average_over over) const {
        pool(detail::average_of_window{over}, exec, x, y, geometry);
    }
};

/// y = the average of each window: the sum of its pixels, in double, divided as `over` says and rounded once.
/// Shapes, threads, executors and errors are those of max_pool2d().
template <class Policy = autocast::by_region, executor Executor = cpu, element X, matrix_result Y>
void average_pool2d(const Executor& exec, matrix_view<X> x, const Y& y, const pool2d_geometry& geometry,
                    average_over over = average_over::whole_window) {
    autocast::call<Policy>(average_pool2d_op{}, exec, detail::input_view(x), detail::output_view(y), geometry,
                           over);
}

/// Tag of average_pool2d_backward().
struct average_pool2d_backward_op {
    static constexpr std::string_view name = "avg_pool2d_backward";
    static constexpr auto category = op_category::pass_through;
    static constexpr bool computes_in_float = true;
    using forward_op = average_pool2d_op;
    static constexpr std::array<std::string_view, 5> argument_names = {"exec", "dy", "dx", "geometry",
                                                                       "over"};
    static constexpr std::array<std::string_view, 1> known_as = {"AvgPoolGrad"};

    static void validate(const auto& exec, const auto& dy, const auto& dx, const pool2d_geometry& geometry,
                         average_over over) {
        constexpr std::string_view function = "mp::ops::average_pool2d_backward";
        const auto gradient = detail::named("dy", dy);
        const auto result = detail::named("dx", dx);
        detail::check_pooling(function, exec, result, gradient, geometry);
        detail::check_average_over(function, over);
        detail::check_separate(function, result, gradient);
    }

    template <executor Executor, element DY, element DX>
    void operator()(const Executor& exec, matrix_view<const DY> dy, matrix_view<DX> dx,
                    const pool2d_geometry& geometry, average_over over) const {
        pool_gradient(detail::average_of_window{over}, exec, dy, dx, geometry);
    }
};

/// The gradient of y = average_pool2d(x), given dy: each pixel gets the share of every window that it is in,
/// summed in double and rounded once. Shapes are those of average_pool2d(), dx is like x and does not overlap
/// dy. Executors and errors are those of max_pool2d().
template <class Policy = autocast::by_region, executor Executor = cpu, element DY, matrix_result DX>
void average_pool2d_backward(const Executor& exec, matrix_view<DY> dy, const DX& dx,
                             const pool2d_geometry& geometry,
                             average_over over = average_over::whole_window) {
    autocast::call<Policy>(average_pool2d_backward_op{}, exec, detail::input_view(dy),
                           detail::output_view(dx), geometry, over);
}

}}  // namespace mp::ops
