// SPDX-License-Identifier: MIT
/// \file
/// Pooling of images: the largest or the average value of a window, forward and backward.
#pragma once

#include <mp/autocast/dispatch.hpp>
#include <mp/detail/parallel.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/format/operations.hpp>
#include <mp/ops/arguments.hpp>
#include <mp/ops/convolution/patches.hpp>
#include <mp/ops/matrix_operand.hpp>
#include <mp/ops/parallel.hpp>
#include <mp/rules/rounded_doubles.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mp::ops::inline MP_ISA_NAMESPACE {

/// The windows that a pooling op looks through, in cells. Images are rows of a matrix as in conv2d_geometry,
/// and every channel is pooled by itself.
///
///     constexpr mp::ops::pool2d_geometry halves{.channels = 8, .height = 28, .width = 28, .kernel = {2, 2}};
struct pool2d_geometry {
    std::ptrdiff_t channels = 1;
    std::ptrdiff_t height = 1;          ///< of the input
    std::ptrdiff_t width = 1;           ///< of the input
    height_and_width kernel = {1, 1};   ///< cells of a window
    height_and_width stride = {0, 0};   ///< between two neighbouring windows; {0, 0} means kernel
    height_and_width padding = {0, 0};  ///< cells added on either side, at most half a window

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
    /// padding above half a window, with which a window could have no cell.
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
    whole_window,  ///< by the cells of the window, as if the padding were zeros
    cells_inside   ///< by the cells that lie inside the image
};

}  // namespace mp::ops::inline MP_ISA_NAMESPACE

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// The cells of an image that a window has: lines and columns of a channel.
struct window_cells {
    index_range lines;
    index_range columns;

    [[nodiscard]] std::ptrdiff_t count() const {
        return (lines.end - lines.begin) * (columns.end - columns.begin);
    }
};

/// Calls f(position, cells) for each window of a channel, line after line.
template <class Function>
void for_each_window(const ops::pool2d_geometry& geometry, Function f) {
    const ops::conv2d_geometry g = geometry.as_convolution();
    const ops::height_and_width out = g.output_size();
    std::ptrdiff_t position = 0;
    for (std::ptrdiff_t i = 0; i < out.height; ++i) {
        const std::ptrdiff_t top = i * g.stride.height - g.padding.height;
        for (std::ptrdiff_t j = 0; j < out.width; ++j) {
            const std::ptrdiff_t left = j * g.stride.width - g.padding.width;
            f(position++,
              window_cells{
                  {(std::max<std::ptrdiff_t>)(top, 0), (std::min)(top + g.kernel.height, g.height)},
                  {(std::max<std::ptrdiff_t>)(left, 0), (std::min)(left + g.kernel.width, g.width)}});
        }
    }
}

/// Calls f(cell) with the index in its channel of each cell of a window, line after line.
template <class Function>
void for_each_cell(const window_cells& window, std::ptrdiff_t width, Function f) {
    for (std::ptrdiff_t line = window.lines.begin; line < window.lines.end; ++line) {
        for (std::ptrdiff_t column = window.columns.begin; column < window.columns.end; ++column) {
            f(line * width + column);
        }
    }
}

/// Index in its channel of the largest cell of a window: the first of equals, and the first NaN where there
/// is one. `first` is the index of the channel in the row.
template <class Value>
std::ptrdiff_t largest_cell(matrix_view<const Value> x, std::ptrdiff_t row, std::ptrdiff_t first,
                            const window_cells& window, std::ptrdiff_t width) {
    std::ptrdiff_t best = window.lines.begin * width + window.columns.begin;
    for_each_cell(window, width, [&](std::ptrdiff_t cell) {
        const Value largest = x(row, first + best);
        const Value value = x(row, first + cell);
        if (!isnan(largest) && (isnan(value) || value > largest)) best = cell;
    });
    return best;
}

/// Calls f(row, channel) for every channel of every image, images on different threads.
template <class Function>
void for_each_channel(cpu exec, std::ptrdiff_t images, const ops::pool2d_geometry& g, Function f) {
    constexpr std::ptrdiff_t cells_per_chunk = 16384;  // some ten microseconds of work, as a thread costs
    const auto grain = static_cast<std::size_t>(1 + cells_per_chunk / (g.channels * g.height * g.width));
    parallel_arithmetic(exec, static_cast<std::size_t>(images), grain,
                        [&](std::size_t begin, std::size_t end) {
                            for (auto row = static_cast<std::ptrdiff_t>(begin);
                                 row < static_cast<std::ptrdiff_t>(end); ++row) {
                                for (std::ptrdiff_t channel = 0; channel < g.channels; ++channel)
                                    f(row, channel);
                            }
                        });
}

/// Writes dx from the windows: spread(row, channel, sums) adds what the windows of a channel give to each of
/// its cells. The sums are in double and rounded once.
template <class DX, class Spread>
void write_pooling_gradient(cpu exec, matrix_view<DX> dx, const ops::pool2d_geometry& g, Spread spread) {
    const std::ptrdiff_t cells = g.height * g.width;
    for_each_channel(exec, dx.rows, g, [&](std::ptrdiff_t row, std::ptrdiff_t channel) {
        std::vector<double> sums(static_cast<std::size_t>(cells));
        spread(row, channel, sums.data());
        for (std::ptrdiff_t i = 0; i < cells; ++i) {
            dx(row, channel * cells + i) = as<DX>(sums[static_cast<std::size_t>(i)]);
        }
    });
}

/// Checks the shapes of a pooling op: x and what is like x have one row for each image, y and what is like y
/// one for its pooled image.
inline void check_pooling(std::string_view function, cpu exec, const named_operand& x, const named_operand& y,
                          const ops::pool2d_geometry& geometry) {
    check_threads(function, exec);
    geometry.check(function);
    const ops::conv2d_geometry g = geometry.as_convolution();
    const std::string rows = std::string(x.name) + ".rows";
    check_shape(function, x, x.extent.rows, rows, g.image_size(),
                "geometry.channels * geometry.height * geometry.width");
    check_shape(function, y, x.extent.rows, rows, g.channels * g.output_positions(),
                "geometry.channels * the output positions of geometry");
}

inline double window_divisor(const ops::pool2d_geometry& g, const window_cells& window,
                             ops::average_over over) {
    return static_cast<double>(over == ops::average_over::whole_window ? g.kernel.height * g.kernel.width
                                                                       : window.count());
}

inline void check_average_over(std::string_view function, ops::average_over over) {
    if (over > ops::average_over::cells_inside) {
        throw_argument(function, "over", static_cast<unsigned>(over),
                       "must be an enumerator of mp::ops::average_over");
    }
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE

namespace mp::ops::inline MP_ISA_NAMESPACE {

/// Tag of max_pool2d(): a choice among values, right in any format, so nothing is cast.
struct max_pool2d_op {
    static constexpr std::string_view name = "max_pool2d";
    static constexpr auto category = op_category::pass_through;
    static constexpr bool computes_in_float = true;
    static constexpr std::array<std::string_view, 4> argument_names = {"exec", "x", "y", "geometry"};
    static constexpr std::array<std::string_view, 2> known_as = {"max_pool2d_with_indices", "MaxPool"};

    static void validate(cpu exec, const auto& x, const auto& y, const pool2d_geometry& geometry) {
        constexpr std::string_view function = "mp::ops::max_pool2d";
        const auto input = detail::named("x", x);
        const auto output = detail::named("y", y);
        detail::check_pooling(function, exec, input, output, geometry);
        detail::check_separate(function, output, input);
    }

    template <element X, element Y>
    void operator()(cpu exec, matrix_view<const X> x, matrix_view<Y> y, const pool2d_geometry& g) const {
        const std::ptrdiff_t cells = g.height * g.width;
        const std::ptrdiff_t positions = g.as_convolution().output_positions();
        detail::for_each_channel(exec, x.rows, g, [&](std::ptrdiff_t row, std::ptrdiff_t channel) {
            detail::for_each_window(g, [&](std::ptrdiff_t position, const detail::window_cells& window) {
                const auto cell = detail::largest_cell(x, row, channel * cells, window, g.width);
                y(row, channel * positions + position) = detail::as<Y>(x(row, channel * cells + cell));
            });
        });
    }
};

/// y = the largest cell of each window; a window with NaN gives NaN. Padding takes no part.
///
/// Shapes: x is batch x (channels * height * width), y is batch x (channels * output height * output width),
/// in any storage order. The values are those of x; where y has another format, each is rounded to it once.
/// y must not overlap x. Throws argument_error for a geometry that has no output, shapes that do not fit and
/// invalid views; y is then unchanged.
template <class Policy = autocast::by_region, element X, matrix_result Y>
void max_pool2d(cpu exec, matrix_view<X> x, const Y& y, const pool2d_geometry& geometry) {
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

    static void validate(cpu exec, const auto& x, const auto& dy, const auto& dx,
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

    template <element X, element DY, element DX>
    void operator()(cpu exec, matrix_view<const X> x, matrix_view<const DY> dy, matrix_view<DX> dx,
                    const pool2d_geometry& g) const {
        const std::ptrdiff_t cells = g.height * g.width;
        const std::ptrdiff_t positions = g.as_convolution().output_positions();
        detail::write_pooling_gradient(
            exec, dx, g, [&](std::ptrdiff_t row, std::ptrdiff_t channel, double* sums) {
                detail::for_each_window(g, [&](std::ptrdiff_t position, const detail::window_cells& window) {
                    double& sum = sums[detail::largest_cell(x, row, channel * cells, window, g.width)];
                    const auto gradient = detail::as<double>(dy(row, channel * positions + position));
                    sum = (detail::rounded_doubles<1>(sum) + gradient).value();
                });
            });
    }
};

/// The gradient of y = max_pool2d(x), given dy: each element of dy goes to the cell that its window chose,
/// the first of equals and the first NaN, found again in x. Where windows overlap, a cell gets their sum, in
/// double in the order of the windows, rounded once; cells that no window chose get +0. Shapes are those of
/// max_pool2d(), dx is like x and overlaps neither x nor dy. Errors are those of max_pool2d().
template <class Policy = autocast::by_region, element X, element DY, matrix_result DX>
void max_pool2d_backward(cpu exec, matrix_view<X> x, matrix_view<DY> dy, const DX& dx,
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

    static void validate(cpu exec, const auto& x, const auto& y, const pool2d_geometry& geometry,
                         average_over over) {
        constexpr std::string_view function = "mp::ops::average_pool2d";
        const auto input = detail::named("x", x);
        const auto output = detail::named("y", y);
        detail::check_pooling(function, exec, input, output, geometry);
        detail::check_average_over(function, over);
        detail::check_separate(function, output, input);
    }

    template <element X, element Y>
    void operator()(cpu exec, matrix_view<const X> x, matrix_view<Y> y, const pool2d_geometry& g,
                    average_over over) const {
        const std::ptrdiff_t cells = g.height * g.width;
        const std::ptrdiff_t positions = g.as_convolution().output_positions();
        detail::for_each_channel(exec, x.rows, g, [&](std::ptrdiff_t row, std::ptrdiff_t channel) {
            detail::for_each_window(g, [&](std::ptrdiff_t position, const detail::window_cells& window) {
                detail::rounded_doubles<1> sum = 0.0;
                detail::for_each_cell(window, g.width, [&](std::ptrdiff_t cell) {
                    sum += detail::as<double>(x(row, channel * cells + cell));
                });
                y(row, channel * positions + position) =
                    detail::as<Y>((sum / detail::window_divisor(g, window, over)).value());
            });
        });
    }
};

/// y = the average of each window: the sum of its cells, in double, divided as `over` says and rounded once.
/// Shapes, threads and errors are those of max_pool2d().
template <class Policy = autocast::by_region, element X, matrix_result Y>
void average_pool2d(cpu exec, matrix_view<X> x, const Y& y, const pool2d_geometry& geometry,
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

    static void validate(cpu exec, const auto& dy, const auto& dx, const pool2d_geometry& geometry,
                         average_over over) {
        constexpr std::string_view function = "mp::ops::average_pool2d_backward";
        const auto gradient = detail::named("dy", dy);
        const auto result = detail::named("dx", dx);
        detail::check_pooling(function, exec, result, gradient, geometry);
        detail::check_average_over(function, over);
        detail::check_separate(function, result, gradient);
    }

    template <element DY, element DX>
    void operator()(cpu exec, matrix_view<const DY> dy, matrix_view<DX> dx, const pool2d_geometry& g,
                    average_over over) const {
        const std::ptrdiff_t positions = g.as_convolution().output_positions();
        detail::write_pooling_gradient(
            exec, dx, g, [&](std::ptrdiff_t row, std::ptrdiff_t channel, double* sums) {
                detail::for_each_window(g, [&](std::ptrdiff_t position, const detail::window_cells& window) {
                    const detail::rounded_doubles<1> share = detail::rounded_doubles<1>(detail::as<double>(
                                                                 dy(row, channel * positions + position))) /
                                                             detail::window_divisor(g, window, over);
                    detail::for_each_cell(window, g.width, [&](std::ptrdiff_t cell) {
                        sums[cell] = (share + sums[cell]).value();
                    });
                });
            });
    }
};

/// The gradient of y = average_pool2d(x), given dy: each cell gets the share of every window that it is in,
/// summed in double and rounded once. Shapes are those of average_pool2d(), dx is like x and does not overlap
/// dy. Errors are those of max_pool2d().
template <class Policy = autocast::by_region, element DY, matrix_result DX>
void average_pool2d_backward(cpu exec, matrix_view<DY> dy, const DX& dx, const pool2d_geometry& geometry,
                             average_over over = average_over::whole_window) {
    autocast::call<Policy>(average_pool2d_backward_op{}, exec, detail::input_view(dy),
                           detail::output_view(dx), geometry, over);
}

}  // namespace mp::ops::inline MP_ISA_NAMESPACE
