// SPDX-License-Identifier: MIT
/// \file
/// The geometry of convolutions and pooling of images.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

namespace mp::ops {

/// A size or a distance in an image, in cells.
struct height_and_width {
    std::ptrdiff_t height = 1;
    std::ptrdiff_t width = 1;
};

/// What a convolution does with an image, apart from the values: sizes, all in cells. One image is a row of a
/// matrix, channel after channel, each line after line: cell (channel, line, column) is element
/// (channel * height + line) * width + column.
///
///     constexpr mp::ops::conv2d_geometry geometry{.channels = 3, .height = 32, .width = 32,
///                                                 .kernel = {5, 5}, .padding = {2, 2}};
struct conv2d_geometry {
    std::ptrdiff_t channels = 1;         ///< of the input; a multiple of groups
    std::ptrdiff_t height = 1;           ///< of the input
    std::ptrdiff_t width = 1;            ///< of the input
    height_and_width kernel = {1, 1};    ///< cells that a kernel reads in each channel
    height_and_width stride = {1, 1};    ///< between two neighbouring positions of the kernel
    height_and_width padding = {0, 0};   ///< zeros added on either side
    height_and_width dilation = {1, 1};  ///< between two neighbouring cells that a kernel reads
    std::ptrdiff_t groups = 1;           ///< parts of the channels that do not see each other

    /// Size of one output channel: floor((height + 2 padding - dilation (kernel - 1) - 1) / stride) + 1, and
    /// the same for the width. Throws argument_error for a geometry that has no output: see check().
    [[nodiscard]] height_and_width output_size() const;

    /// Elements of one input image: channels * height * width. Throws as check() does.
    [[nodiscard]] std::ptrdiff_t image_size() const;

    /// Elements of one output channel. Throws as check() does.
    [[nodiscard]] std::ptrdiff_t output_positions() const;

    /// Columns of the weights, the cells that one kernel reads: channels / groups * kernel.height *
    /// kernel.width. Throws as check() does.
    [[nodiscard]] std::ptrdiff_t patch_size() const;

    /// Throws argument_error in the name of `function` for sizes, strides, dilations and groups below 1, a
    /// negative padding, anything above 2^31 - 1, channels that groups do not divide, a kernel that does not
    /// fit into the padded image, and sizes that do not fit in memory.
    void check(std::string_view function = "mp::ops::conv2d_geometry") const;
};

}  // namespace mp::ops

namespace mp::detail {

/// Whether a size of a geometry lies between `smallest` and 2^31 - 1, so that products of two are safe.
constexpr bool is_image_number(std::ptrdiff_t value, std::ptrdiff_t smallest) {
    return value >= smallest && value <= std::ptrdiff_t{0x7FFF'FFFF};
}
/// Throws unless it is one.
inline void check_image_number(std::string_view function, std::string_view name, std::ptrdiff_t value,
                               std::ptrdiff_t smallest) {
    if (value < smallest) {
        throw_argument(function, name, value,
                       smallest == 0 ? "must not be negative" : "must be at least " + error_text(smallest));
    }
    if (value > std::ptrdiff_t{0x7FFF'FFFF}) {
        throw_argument(function, name, value, "must be at most 2147483647");
    }
}

/// Throws unless the product of some sizes, all positive, is a size in memory; `name` is the first of them.
template <class... Sizes>
void check_image_product(std::string_view function, std::string_view name, std::ptrdiff_t first,
                         Sizes... others) {
    constexpr std::ptrdiff_t most = (std::numeric_limits<std::ptrdiff_t>::max)() / 16;  // bytes of an element
    std::ptrdiff_t product = first;
    const auto times = [&](std::ptrdiff_t size) {
        if (product > most / size) {
            throw_argument(function, name, first, "must be small enough for an image to fit in memory");
        }
        product *= size;
    };
    (times(others), ...);
}

/// Places of a kernel along an axis; 0 where it does not fit.
constexpr std::ptrdiff_t output_size(std::ptrdiff_t size, std::ptrdiff_t kernel, std::ptrdiff_t stride,
                                     std::ptrdiff_t padding, std::ptrdiff_t dilation) {
    const std::ptrdiff_t free = size + 2 * padding - dilation * (kernel - 1) - 1;
    return free < 0 ? 0 : free / stride + 1;
}

/// The indices i in [0, count) for which start + i * stride lies in [0, size).
struct index_range {
    std::ptrdiff_t begin;
    std::ptrdiff_t end;
};

constexpr index_range positions_inside(std::ptrdiff_t start, std::ptrdiff_t stride, std::ptrdiff_t size,
                                       std::ptrdiff_t count) {
    const auto first_from = [&](std::ptrdiff_t bound) {  // the first i with start + i * stride >= bound
        return start >= bound ? std::ptrdiff_t{0} : (std::min)(count, (bound - start + stride - 1) / stride);
    };
    return {first_from(0), first_from(size)};
}

}  // namespace mp::detail

namespace mp::ops {

inline void conv2d_geometry::check(std::string_view function) const {
    const auto number = [&](std::string_view name, std::ptrdiff_t value, std::ptrdiff_t smallest) {
        if (detail::is_image_number(value, smallest)) return;  // without a string, which may take the heap
        detail::check_image_number(function, std::string("geometry.").append(name), value, smallest);
    };
    number("channels", channels, 1);
    number("height", height, 1);
    number("width", width, 1);
    number("kernel.height", kernel.height, 1);
    number("kernel.width", kernel.width, 1);
    number("stride.height", stride.height, 1);
    number("stride.width", stride.width, 1);
    number("padding.height", padding.height, 0);
    number("padding.width", padding.width, 0);
    number("dilation.height", dilation.height, 1);
    number("dilation.width", dilation.width, 1);
    number("groups", groups, 1);
    if (channels % groups != 0) {
        detail::throw_argument(function, "geometry.groups", groups,
                               "must divide geometry.channels, which is " + detail::error_text(channels));
    }
    const auto fits = [&](std::string_view name, std::ptrdiff_t size, std::ptrdiff_t k, std::ptrdiff_t s,
                          std::ptrdiff_t p, std::ptrdiff_t d) {
        const std::ptrdiff_t positions = detail::output_size(size, k, s, p, d);
        if (positions == 0) {
            detail::throw_argument(function, std::string("geometry.kernel.").append(name), k,
                                   "must, spread by the dilation, fit into the padded image, which has " +
                                       detail::error_text(size + 2 * p) + " cells there");
        }
        return positions;
    };
    const std::ptrdiff_t out_height =
        fits("height", height, kernel.height, stride.height, padding.height, dilation.height);
    const std::ptrdiff_t out_width =
        fits("width", width, kernel.width, stride.width, padding.width, dilation.width);
    detail::check_image_product(function, "geometry.channels", channels, height, width);
    detail::check_image_product(function, "geometry.channels", channels, kernel.height, kernel.width,
                                out_height, out_width);
}

inline height_and_width conv2d_geometry::output_size() const {
    check();
    return {detail::output_size(height, kernel.height, stride.height, padding.height, dilation.height),
            detail::output_size(width, kernel.width, stride.width, padding.width, dilation.width)};
}

inline std::ptrdiff_t conv2d_geometry::image_size() const {
    check();
    return channels * height * width;
}

inline std::ptrdiff_t conv2d_geometry::output_positions() const {
    const height_and_width size = output_size();
    return size.height * size.width;
}

inline std::ptrdiff_t conv2d_geometry::patch_size() const {
    check();
    return channels / groups * kernel.height * kernel.width;
}

}  // namespace mp::ops
