// SPDX-License-Identifier: MIT
/// \file
/// The convolution of images, forward and backward, as a matrix product with the patches of the images.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/autocast/dispatch.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/convolution/geometry.hpp>
#include <mp/nn/ops/matrix_operand.hpp>

#include <array>
#include <cstddef>
#include <string_view>

#if MP_CORE_BODIES
#include <mp/nn/ops/convolution/products.hpp>
#endif

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Names convolve() and convolve_backward(), which <mp/nn/ops/convolution/gpu.hpp> has.
struct convolution_function {};

/// The shapes of x, w and of the result of a convolution, of which `y` is the name. The views of x and w are
/// checked here.
inline void check_convolution(std::string_view function, const named_operand& x, const named_operand& w,
                              const named_operand& y, const ops::conv2d_geometry& geometry) {
    geometry.check(function);
    check_operand(function, x);
    check_equal_sizes(function, "x.columns", x.extent.columns,
                      "geometry.channels * geometry.height * geometry.width", geometry.image_size());
    check_operand(function, w);
    if (w.extent.rows % geometry.groups != 0) {
        throw_argument(function, "w.rows", w.extent.rows,
                       "must be a multiple of geometry.groups, which is " + error_text(geometry.groups));
    }
    check_equal_sizes(function, "w.columns", w.extent.columns,
                      "geometry.channels / geometry.groups * the cells of the kernel", geometry.patch_size());
    if (w.extent.rows > 0) {
        check_image_product(function, "w.rows", w.extent.rows, geometry.output_positions());
    }
    check_shape(function, y, x.extent.rows, "x.rows", w.extent.rows * geometry.output_positions(),
                "w.rows * the output positions of geometry");
}

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Tag of conv2d(): a matrix product, so in the low precision of the policy.
struct conv2d_op : detail::library_op<conv2d_op, "conv2d"> {
    static constexpr auto category = op_category::lower_precision;
    static constexpr std::array<std::string_view, 6> argument_names = {"exec", "x", "w",
                                                                       "b",    "y", "geometry"};
    static constexpr std::array<std::string_view, 5> known_as = {
        "convolution", "_convolution", "cudnn_convolution", "Conv2D", "Convolution"};
    static constexpr std::array<std::string_view, 2> product_operands = {"x", "w"};

    static void validate(const auto& exec, const auto& x, const auto& w, const auto& b, const auto& y,
                         const conv2d_geometry& geometry) {
        detail::check_executor(function, exec);
        const auto input = detail::named("x", x);
        const auto weights = detail::named("w", w);
        const auto bias = detail::named("b", b);
        const auto output = detail::named("y", y);
        detail::check_convolution(function, input, weights, output, geometry);
        if (detail::is_present(b)) {
            detail::check_size(function, bias, weights.extent.rows, "w.rows");
        }
        for (const auto& operand : {input, weights, bias}) detail::check_separate(function, output, operand);
    }

    /// Of one image and group; with the output channels as rows.
    static autocast::product_size product(const auto&, const auto&, const auto& w, const auto&, const auto&,
                                          const conv2d_geometry& geometry) {
        return {w.rows / geometry.groups, geometry.output_positions(), geometry.patch_size()};
    }

    void operator()(const gpu_executor auto& exec, const auto&... operands) const {
        convolve(detail::convolution_function{}, exec, operands...);
    }
    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_operand& x, const detail::any_operand& w,
                        const detail::any_operand& b, const detail::any_operand& y,
                        const conv2d_geometry& geometry) {
        compute_convolution<Real>(exec, x, w, b, y, geometry);
    }
};

/// y = the convolution of the images x with the kernels w, plus b: for each image, output channel o and place
/// (i, j),
///
///     y(o, i, j) = b(o) + sum over c, r, s of w(o, c, r, s) x(c, i * stride.height + r * dilation.height -
///                  padding.height, j * stride.width + s * dilation.width - padding.width)
///
/// where cells outside of the image are zero and c runs over the channels of the group of o. (What signal
/// processing calls a convolution runs through w backwards; networks do not.)
///
/// Shapes: x is batch x (channels * height * width), one image a row as conv2d_geometry says; w is
/// out_channels x (channels / groups * kernel.height * kernel.width), in the order (channel, line, column); y
/// is batch x (out_channels * output height * output width). They are matrix views in any storage order with
/// any leading dimension; row-major ones are the fast ones, others are copied image by image. b is a
/// contiguous range of out_channels elements, or mp::ops::absent. Formats are any mp::ops::element, in any
/// mix. geometry.output_size() gives the output height and width. out_channels is a multiple of groups, and
/// output channels [k * out_channels / groups, (k + 1) * out_channels / groups) read the k-th part of the
/// channels.
///
/// w may be mp::autocast::cached(view, version), as in linear().
///
/// Policy decides the precision: by default the calling thread's autocast region, else a policy type such as
/// mp::autocast::fp16. Under a low precision x, w and b are rounded to it, and so is y, whatever the format
/// of the memory it is written to. Sums are those of mp::gemm in float, in the order of w, bias included;
/// each element of y is rounded once. Infinity or NaN in a kernel that lies over the padding gives NaN there,
/// since 0 * infinity is NaN. The results do not depend on the number of threads. Each thread holds one
/// group of one image with its padding, or of several small ones, of 4 MiB in all (on processors without vectors,
/// and for doubles, the patches of one).
///
/// On a GPU (<mp/nn/ops/convolution/gpu.hpp>) it takes conv2d_workspace() of the workspace, for the patches of
/// as many images as fit into 64 MiB, and multiplies these images at once, a group at a time: sums are those
/// of mp::gemm on the device, in tensor cores where x and w are both of half, of bfloat16, of tfloat32 or of
/// one format of 8 bits, else of floats. The bits depend neither on the batch nor on how many images that
/// are.
///
/// Throws argument_error for a geometry that has no output (conv2d_geometry::check), shapes that do not fit,
/// invalid views and a y that overlaps an input; y is then unchanged.
template <class Policy = autocast::by_region, executor Executor = cpu, element X, matrix_argument W,
          class Bias, matrix_result Y>
void conv2d(const Executor& exec, matrix_view<X> x, const W& w, const Bias& b, const Y& y,
            const conv2d_geometry& geometry) {
    autocast::call<Policy>(conv2d_op{}, exec, detail::input_view(x), detail::input_view(w),
                           detail::input_view(b), detail::output_view(y), geometry);
}

/// Tag of conv2d_backward(): matrix products, so in the low precision of the policy.
struct conv2d_backward_op : detail::library_op<conv2d_backward_op, "conv2d_backward"> {
    static constexpr auto category = op_category::lower_precision;
    using forward_op = conv2d_op;
    static constexpr std::array<std::string_view, 8> argument_names = {"exec", "x",  "w",  "dy",
                                                                       "dx",   "dw", "db", "geometry"};
    static constexpr std::array<std::string_view, 3> product_operands = {"x", "w", "dy"};
    /// TensorFlow has a node for dx and one for dw.
    static constexpr std::array<std::string_view, 3> known_as = {
        "convolution_backward", "Conv2DBackpropInput", "Conv2DBackpropFilter"};

    static void validate(const auto& exec, const auto& x, const auto& w, const auto& dy, const auto& dx,
                         const auto& dw, const auto& db, const conv2d_geometry& geometry) {
        detail::check_executor(function, exec);
        const auto input = detail::named("x", x);
        const auto weights = detail::named("w", w);
        const auto gradient = detail::named("dy", dy);
        const detail::named_operand results[] = {detail::named("dx", dx), detail::named("dw", dw),
                                                 detail::named("db", db)};
        detail::check_convolution(function, input, weights, gradient, geometry);
        if (detail::is_present(dx)) detail::check_same_shape(function, results[0], input);
        if (detail::is_present(dw)) detail::check_same_shape(function, results[1], weights);
        if (detail::is_present(db)) {
            detail::check_size(function, results[2], weights.extent.rows, "w.rows");
        }
        detail::check_separate_results(function, results, {input, weights, gradient});
    }

    void operator()(const gpu_executor auto& exec, const auto&... operands) const {
        convolve_backward(detail::convolution_function{}, exec, operands...);
    }
    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_operand& x, const detail::any_operand& w,
                        const detail::any_operand& dy, const detail::any_operand& dx,
                        const detail::any_operand& dw, const detail::any_operand& db,
                        const conv2d_geometry& geometry) {
        if (dx) write_dx<Real>(exec, w, dy, dx, geometry);
        if (dw) write_dw<Real>(exec, x, dy, dw, geometry);
        if (db) write_db<Real>(exec, dy, db, geometry.output_positions());
    }
};

/// The gradients of y = conv2d(x, w, b), given dy = dL/dy.
///
/// Shapes: x, w, dy (like y) and geometry are those of conv2d(); dx is like x, dw like w, and db has
/// out_channels elements. Any of dx, dw and db may be mp::ops::absent, and is then not computed.
///
/// Each gradient is written in the format of its memory, or of the low precision that Policy computes in,
/// rounded once. An element of dx is the float sum, over the cells of the kernel, of float sums over the
/// output channels, or, where the kernel moves by single cells and a group has 8 channels or more, one float sum
/// over channels and cells, in which infinity or NaN in a kernel over the padding of dy gives NaN, as in
/// conv2d(); one of dw the float sum, image after image, of float sums over the positions; one of db a
/// sum in double. Values too small for the format become zero unless the loss is scaled. Precision, threads
/// and errors are as in conv2d(). Threads share the images for dx and
/// the cells of the kernels for dw.
///
/// On a GPU it takes conv2d_backward_workspace(); sums are in the first order said above, products those of
/// conv2d(), and an element of db is a sum of 48 bits, rounded to float and from there to its format. No sum
/// is atomic: the results have the same bits every time.
template <class Policy = autocast::by_region, executor Executor = cpu, element X, matrix_argument W,
          element DY, class DX, class DW, class DB>
void conv2d_backward(const Executor& exec, matrix_view<X> x, const W& w, matrix_view<DY> dy, DX&& dx, DW&& dw,
                     DB&& db, const conv2d_geometry& geometry) {
    autocast::call<Policy>(conv2d_backward_op{}, exec, detail::input_view(x), detail::input_view(w),
                           detail::input_view(dy), detail::output_view(dx), detail::output_view(dw),
                           detail::output_view(db), geometry);
}

}}  // namespace mp::ops
