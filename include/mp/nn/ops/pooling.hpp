// SPDX-License-Identifier: MIT
/// \file
/// Pooling of images: the largest or the average value of a window, forward and backward.
#pragma once

#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/autocast/library_op.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/convolution/geometry.hpp>
#include <mp/nn/ops/matrix_operand.hpp>
#include <mp/nn/ops/pooling/windows.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#if MP_CORE_BODIES
#include <mp/arrays/array/for_each_element.hpp>
#include <mp/arrays/array/parallel.hpp>
#endif

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

#if MP_CORE_BODIES
/// Memory of a thread, of the sizes that the op asks for.
template <class Real>
struct pooling_room {
    Real* input;   ///< elements of a channel
    Real* output;  ///< elements of its pooled channel
    double* sums;
};

/// Calls f(row, channel, room) for every channel of every image, images on different threads. Each thread has a room
/// with `sums` sums.
template <class Real, class Function>
void for_each_channel(const cpu& exec, std::ptrdiff_t images, const ops::pool2d_geometry& g,
                      const pooling_windows& windows, std::ptrdiff_t sums, Function f) {
    if (images == 0) return;
    constexpr std::ptrdiff_t pixels_per_chunk = 16384;  // some ten microseconds of work, as a thread costs
    const auto grain = static_cast<std::size_t>(1 + pixels_per_chunk / (g.channels * g.height * g.width));
    thread_buffers<Real> elements(exec, static_cast<std::size_t>(windows.pixels() + windows.positions()));
    thread_buffers<double> all_sums(exec, static_cast<std::size_t>(sums));
    parallel_arithmetic(exec, static_cast<std::size_t>(images), grain,
                        [&](std::size_t begin, std::size_t end) {
                            Real* const input = elements.take();
                            const pooling_room<Real> room{input, input + windows.pixels(), all_sums.take()};
                            for (auto row = static_cast<std::ptrdiff_t>(begin);
                                 row < static_cast<std::ptrdiff_t>(end); ++row) {
                                for (std::ptrdiff_t channel = 0; channel < g.channels; ++channel)
                                    f(row, channel, room);
                            }
                        });
}

/// Returns a channel of an image, of `size` elements, as a row.
inline any_matrix channel_of(const any_matrix& images, std::ptrdiff_t row, std::ptrdiff_t channel,
                             std::ptrdiff_t size) {
    return images.block(row, channel * size, 1, size);
}

/// Rounds sums to the elements of a row.
inline void put_sums(const double* sums, const any_matrix& row) {
    store_elements(*row.type, sums, static_cast<std::size_t>(row.columns), row.at(0, 0), row.column_stride());
}

/// Copies an element, bit by bit.
MP_ALWAYS_INLINE void copy_element(std::byte* to, const std::byte* from, std::size_t size) {
    if (size == 1) {
        *to = *from;
    } else if (size == 2) {
        std::memcpy(to, from, 2);
    } else {
        std::memcpy(to, from, size);
    }
}
#endif

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

/// What is taken of a window, for pool() and pool_gradient() of <mp/nn/ops/pooling/gpu.hpp>.
struct largest_of_window {};
struct average_of_window {
    ops::average_over over;
};

#if MP_CORE_BODIES
/// Writes the largest pixels of the windows of x.
template <class Real>
void pool(largest_of_window, const cpu& exec, const any_matrix& x, const any_matrix& y,
          const ops::pool2d_geometry& g) {
    const pooling_windows windows(g);
    const bool copies_bits = x.type->is_reduced && is_same_type(*x.type, *y.type);  // those of NaNs, too
    for_each_channel<Real>(exec, x.rows, g, windows, 0,
                           [&](std::ptrdiff_t row, std::ptrdiff_t channel, const pooling_room<Real>& room) {
                               const any_matrix from = channel_of(x, row, channel, windows.pixels());
                               const any_matrix to = channel_of(y, row, channel, windows.positions());
                               const Real* const pixels = reals_of_row(from, 0, room.input);
                               Real* const results = row_target(to, 0, room.output);
                               for_each_window(g, [&](std::ptrdiff_t position, const window_pixels& window) {
                                   const std::ptrdiff_t pixel = largest_pixel(
                                       [&](std::ptrdiff_t i) { return pixels[i]; }, window, g.width);
                                   if (copies_bits) {
                                       copy_element(to.at(0, position), from.at(0, pixel), to.type->size);
                                   } else {
                                       results[position] = pixels[pixel];
                                   }
                               });
                               if (!copies_bits) put_row(results, to, 0);
                           });
}

/// Writes the averages of the windows of x.
template <class Real>
void pool(average_of_window kind, const cpu& exec, const any_matrix& x, const any_matrix& y,
          const ops::pool2d_geometry& g) {
    const pooling_windows windows(g);
    for_each_channel<Real>(
        exec, x.rows, g, windows, windows.positions(),
        [&](std::ptrdiff_t row, std::ptrdiff_t channel, const pooling_room<Real>& room) {
            const Real* const pixels =
                reals_of_row(channel_of(x, row, channel, windows.pixels()), 0, room.input);
            for_each_window(g, [&](std::ptrdiff_t position, const window_pixels& window) {
                const auto sum = window_sum([&](std::ptrdiff_t i) { return pixels[i]; }, window, g.width);
                room.sums[position] = (sum / window_divisor(windows, window, kind.over)).value();
            });
            put_sums(room.sums, channel_of(y, row, channel, windows.positions()));
        });
}

/// Writes the sums of what the windows give to each pixel.
template <class Real>
void pool_largest_gradient(const cpu& exec, const any_matrix& x, const any_matrix& dy, const any_matrix& dx,
                           const ops::pool2d_geometry& g) {
    const pooling_windows windows(g);
    for_each_channel<Real>(
        exec, x.rows, g, windows, windows.pixels(),
        [&](std::ptrdiff_t row, std::ptrdiff_t channel, const pooling_room<Real>& room) {
            const Real* const pixels =
                reals_of_row(channel_of(x, row, channel, windows.pixels()), 0, room.input);
            const Real* const gradients =
                reals_of_row(channel_of(dy, row, channel, windows.positions()), 0, room.output);
            std::fill_n(room.sums, windows.pixels(), 0.0);
            for_each_window(g, [&](std::ptrdiff_t position, const window_pixels& window) {
                double& sum =
                    room.sums[largest_pixel([&](std::ptrdiff_t i) { return pixels[i]; }, window, g.width)];
                sum = (rounded_doubles<1>(sum) + double_of_element(gradients[position])).value();
            });
            put_sums(room.sums, channel_of(dx, row, channel, windows.pixels()));
        });
}
template <class Real>
void pool_average_gradient(const cpu& exec, const any_matrix& dy, const any_matrix& dx,
                           const ops::pool2d_geometry& g, ops::average_over over) {
    const pooling_windows windows(g);
    for_each_channel<Real>(exec, dx.rows, g, windows, windows.pixels(),
                           [&](std::ptrdiff_t row, std::ptrdiff_t channel, const pooling_room<Real>& room) {
                               const Real* const gradients = reals_of_row(
                                   channel_of(dy, row, channel, windows.positions()), 0, room.output);
                               double* const sums = room.sums;
                               std::fill_n(sums, windows.pixels(), 0.0);
                               for_each_window(g, [&](std::ptrdiff_t position, const window_pixels& window) {
                                   const rounded_doubles<1> gradient = double_of_element(gradients[position]);
                                   const auto share = gradient / window_divisor(windows, window, over);
                                   for_each_pixel(window, g.width, [&](std::ptrdiff_t pixel) {
                                       sums[pixel] = (share + sums[pixel]).value();
                                   });
                               });
                               put_sums(sums, channel_of(dx, row, channel, windows.pixels()));
                           });
}
#endif

/// Members of the tags of pooling ops; `Over` is empty, or how averages are divided.
template <class Op, autocast::fixed_string Name, class Window, class... Over>
struct pooling_op : library_op<Op, Name> {
    static constexpr auto category = op_category::pass_through;

    static void validate(const auto& exec, const auto& x, const auto& y, const ops::pool2d_geometry& geometry,
                         Over... over) {
        const auto input = named("x", x);
        const auto output = named("y", y);
        check_pooling(Op::function, exec, input, output, geometry);
        (check_average_over(Op::function, over), ...);
        check_separate(Op::function, output, input);
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const any_operand& x, const any_operand& y,
                        const ops::pool2d_geometry& geometry, Over... over) {
        pool<Real>(Window{over...}, exec, x, y, geometry);
    }
    void operator()(const gpu_executor auto& exec, const auto& x, const auto& y,
                    const ops::pool2d_geometry& geometry, Over... over) const {
        pool(Window{over...}, exec, x, y, geometry);
    }
};

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Tag of max_pool2d(): a choice among values, right in any format, so nothing is cast.
struct max_pool2d_op : detail::pooling_op<max_pool2d_op, "max_pool2d", detail::largest_of_window> {
    static constexpr std::array<std::string_view, 4> argument_names = {"exec", "x", "y", "geometry"};
    static constexpr std::array<std::string_view, 2> known_as = {"max_pool2d_with_indices", "MaxPool"};
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
    detail::call_op<Policy>(max_pool2d_op{}, exec, detail::input_view(x), detail::output_view(y), geometry);
}

/// Tag of max_pool2d_backward().
struct max_pool2d_backward_op : detail::library_op<max_pool2d_backward_op, "max_pool2d_backward"> {
    static constexpr auto category = op_category::pass_through;
    using forward_op = max_pool2d_op;
    static constexpr std::array<std::string_view, 5> argument_names = {"exec", "x", "dy", "dx", "geometry"};
    static constexpr std::array<std::string_view, 2> known_as = {"max_pool2d_with_indices_backward",
                                                                 "MaxPoolGrad"};

    static void validate(const auto& exec, const auto& x, const auto& dy, const auto& dx,
                         const pool2d_geometry& geometry) {
        const auto input = detail::named("x", x);
        const auto gradient = detail::named("dy", dy);
        const auto result = detail::named("dx", dx);
        detail::check_pooling(function, exec, input, gradient, geometry);
        detail::check_same_shape(function, result, input);
        detail::check_separate(function, result, input);
        detail::check_separate(function, result, gradient);
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_operand& x, const detail::any_operand& dy,
                        const detail::any_operand& dx, const pool2d_geometry& geometry) {
        pool_largest_gradient<Real>(exec, x, dy, dx, geometry);
    }
    void operator()(const gpu_executor auto& exec, const auto&... operands) const {
        pool_gradient(detail::largest_of_window{}, exec, operands...);
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
    detail::call_op<Policy>(max_pool2d_backward_op{}, exec, detail::input_view(x), detail::input_view(dy),
                            detail::output_view(dx), geometry);
}

/// Tag of average_pool2d(): sums in wide precision whatever the format, so nothing is cast.
struct average_pool2d_op
    : detail::pooling_op<average_pool2d_op, "avg_pool2d", detail::average_of_window, average_over> {
    static constexpr std::string_view function = "mp::ops::average_pool2d";
    static constexpr std::array<std::string_view, 5> argument_names = {"exec", "x", "y", "geometry", "over"};
    static constexpr std::array<std::string_view, 1> known_as = {"AvgPool"};
};

/// y = the average of each window: the sum of its pixels, in double, divided as `over` says and rounded once.
/// Shapes, threads, executors and errors are those of max_pool2d().
template <class Policy = autocast::by_region, executor Executor = cpu, element X, matrix_result Y>
void average_pool2d(const Executor& exec, matrix_view<X> x, const Y& y, const pool2d_geometry& geometry,
                    average_over over = average_over::whole_window) {
    detail::call_op<Policy>(average_pool2d_op{}, exec, detail::input_view(x), detail::output_view(y),
                            geometry, over);
}

/// Tag of average_pool2d_backward().
struct average_pool2d_backward_op : detail::library_op<average_pool2d_backward_op, "avg_pool2d_backward"> {
    static constexpr std::string_view function = "mp::ops::average_pool2d_backward";
    static constexpr auto category = op_category::pass_through;
    using forward_op = average_pool2d_op;
    static constexpr std::array<std::string_view, 5> argument_names = {"exec", "dy", "dx", "geometry",
                                                                       "over"};
    static constexpr std::array<std::string_view, 1> known_as = {"AvgPoolGrad"};

    static void validate(const auto& exec, const auto& dy, const auto& dx, const pool2d_geometry& geometry,
                         average_over over) {
        const auto gradient = detail::named("dy", dy);
        const auto result = detail::named("dx", dx);
        detail::check_pooling(function, exec, result, gradient, geometry);
        detail::check_average_over(function, over);
        detail::check_separate(function, result, gradient);
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_operand& dy, const detail::any_operand& dx,
                        const pool2d_geometry& geometry, average_over over) {
        pool_average_gradient<Real>(exec, dy, dx, geometry, over);
    }
    void operator()(const gpu_executor auto& exec, const auto& dy, const auto& dx,
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
    detail::call_op<Policy>(average_pool2d_backward_op{}, exec, detail::input_view(dy),
                            detail::output_view(dx), geometry, over);
}

}}  // namespace mp::ops
