// SPDX-License-Identifier: MIT
/// \file
/// The convolution of images on a GPU, forward and backward.
#pragma once

#include <mp/device/gpu/convolution.hpp>
#include <mp/device/gpu/gemm.hpp>
#include <mp/device/gpu/map_elements.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/convolution.hpp>
#include <mp/nn/ops/gpu_casts.hpp>
#include <mp/workspace.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

[[nodiscard]] inline patch_layout layout_of_patches(const ops::conv2d_geometry& g) {
    const ops::height_and_width out = g.output_size();
    // Rows begin at multiples of 16 bytes in every format, for the copies of the product.
    constexpr std::ptrdiff_t aligned = 16;
    return {{g.height, g.kernel.height, g.stride.height, g.padding.height, g.dilation.height, out.height},
            {g.width, g.kernel.width, g.stride.width, g.padding.width, g.dilation.width, out.width},
            g.channels / g.groups,
            (out.height * out.width + aligned - 1) / aligned * aligned};
}

/// How many images are taken at a time, and what memory that needs.
struct convolution_memory {
    std::ptrdiff_t images;
    std::size_t bytes;

    /// Enough images to fill a device, without memory that grows with the batch.
    static constexpr std::size_t most_bytes = std::size_t{64} << 20;

    convolution_memory(std::ptrdiff_t batch, std::size_t of_image, std::size_t of_all) {
        const auto room = static_cast<std::ptrdiff_t>(most_bytes / (std::max)(of_image, std::size_t{1}));
        images = (std::max)((std::min)(batch, room), std::ptrdiff_t{1});
        // What is taken apart is aligned apart: patches, a copy, sums; weights, totals.
        bytes = workspace::aligned_size(static_cast<std::size_t>(images) * of_image + of_all) +
                5 * workspace::alignment;
    }

    /// For patches of 4 bytes, as a mix of formats has them, and a copy of y, as column-major ones need; `backward` for
    /// the gradient of the weights of each image as well.
    static convolution_memory of(std::ptrdiff_t batch, std::ptrdiff_t out_channels,
                                 const ops::conv2d_geometry& g, bool backward) {
        const patch_layout layout = layout_of_patches(g);
        const auto output = static_cast<std::size_t>(out_channels * layout.positions());
        const auto weights = static_cast<std::size_t>(out_channels * layout.cells());
        const auto patches = static_cast<std::size_t>(layout.image_stride());
        return {batch, 4 * (patches + output + (backward ? weights : 0)), 4 * weights};
    }
};

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Bytes of the executor's workspace that conv2d() needs on a GPU, casts not included: the patches of one
/// group and a copy of y, in 4 bytes an element, of as many images as fit into 64 MiB, at least one; and a
/// copy of w.
[[nodiscard]] inline std::size_t conv2d_workspace(std::ptrdiff_t batch, std::ptrdiff_t out_channels,
                                                  const conv2d_geometry& geometry) {
    return workspace::alignment + detail::convolution_memory::of(batch, out_channels, geometry, false).bytes;
}
/// The same of conv2d_backward(), which has the gradient of w of each of these images there, too.
[[nodiscard]] inline std::size_t conv2d_backward_workspace(std::ptrdiff_t batch, std::ptrdiff_t out_channels,
                                                           const conv2d_geometry& geometry) {
    return workspace::alignment + detail::convolution_memory::of(batch, out_channels, geometry, true).bytes;
}

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Throws unless so much memory can be taken at once, before anything is launched; what is taken part by
/// part afterwards then fits.
template <class Executor>
void check_workspace(std::string_view function, const Executor& exec, std::size_t bytes) {
    const workspace::frame frame(workspace_of(exec));
    static_cast<void>(take_workspace<std::byte>(function, exec, bytes));
}

/// The matrix itself where it has this format and its rows are contiguous; else a copy in the workspace.
template <class To, class Executor, class Value>
[[nodiscard]] matrix_view<const To> dense_rows(std::string_view function, const Executor& exec,
                                               matrix_view<const Value> matrix) {
    if constexpr (std::is_same_v<To, Value>) {
        if (matrix.column_stride() == 1) return matrix;
    }
    auto* const memory =
        take_workspace<To>(function, exec, static_cast<std::size_t>(matrix.rows * matrix.columns));
    map_elements(identity_function{}, exec, row_major(memory, matrix.rows, matrix.columns), matrix);
    return row_major(static_cast<const To*>(memory), matrix.rows, matrix.columns);
}

/// What the products of a convolution multiply: the operands' own format where the product takes both.
template <class A, class B>
using convolution_input = std::conditional_t<gpu_gemm_pair<A, B> && std::is_same_v<A, B>, A, float>;

/// The patches of a group's channels of some images, in the workspace.
template <class Patch, class Executor, class X>
[[nodiscard]] Patch* unfold_images(std::string_view function, const Executor& exec,
                                   const patch_layout& layout, matrix_view<const X> images,
                                   std::ptrdiff_t first_element) {
    auto* const patches =
        take_workspace<Patch>(function, exec, static_cast<std::size_t>(images.rows * layout.image_stride()));
    launch(function, exec, row_launch<gpu::warp_group>(images.rows * layout.cells()),
           unfold_kernel<X, Patch>{layout, rows_of<1>(images), first_element, images.rows, patches});
    return patches;
}

/// The matrices that the products of a group multiply, and their batches, of an image each.
struct convolution_groups {
    patch_layout layout;
    std::ptrdiff_t channels;  ///< of the output, of a group
    std::ptrdiff_t image;     ///< elements of an image in a group

    convolution_groups(std::ptrdiff_t out_channels, const ops::conv2d_geometry& g)
        : layout(layout_of_patches(g)), channels(out_channels / g.groups), image(g.image_size() / g.groups) {}

    template <class Value>
    [[nodiscard]] matrix_view<Value> weights(matrix_view<Value> all, std::ptrdiff_t group) const {
        return all.block(group * channels, 0, channels, layout.cells());
    }
    template <class Value>
    [[nodiscard]] matrix_batch<Value> outputs(matrix_view<Value> images, std::ptrdiff_t group) const {
        const std::ptrdiff_t positions = layout.positions();
        return {row_major(images.data + group * channels * positions, channels, positions),
                images.leading_dimension};
    }
    template <class Value>
    [[nodiscard]] matrix_batch<Value> patches(Value* data) const {
        return {{data, layout.cells(), layout.positions(), layout.pitch, storage_order::row_major},
                layout.image_stride()};
    }
};

/// Calls f(first, count) for as many images at a time as there is memory for, which it may take anew each
/// time.
template <class Executor, class Function>
void for_each_images(const Executor& exec, std::ptrdiff_t batch, std::ptrdiff_t at_once, Function f) {
    for (std::ptrdiff_t first = 0; first < batch; first += at_once) {
        const workspace::frame frame(workspace_of(exec));
        f(first, (std::min)(at_once, batch - first));
    }
}

/// Enqueues the convolution: for some images at a time their patches, and products of the weights with them.
template <gpu_executor Executor, class X, class W, class Bias, class Y>
void convolve(convolution_function, const Executor& exec, matrix_view<const X> x, matrix_view<const W> w,
              const Bias& b, matrix_view<Y> y, const ops::conv2d_geometry& geometry) {
    constexpr std::string_view function = "mp::ops::conv2d";
    if (x.rows == 0 || w.rows == 0) return;
    using input = convolution_input<X, W>;
    const convolution_groups groups(w.rows, geometry);
    const auto memory = convolution_memory::of(x.rows, w.rows, geometry, false);
    check_workspace(function, exec, memory.bytes);
    const workspace::frame frame(workspace_of(exec));
    const matrix_view<const input> weights = dense_rows<input>(function, exec, w);
    for_each_images(exec, x.rows, memory.images, [&](std::ptrdiff_t first, std::ptrdiff_t count) {
        const matrix_view<const X> images = x.block(first, 0, count, x.columns);
        matrix_view<Y> results = y.block(first, 0, count, y.columns);
        if (y.column_stride() != 1) {
            auto* const copy = take_workspace<Y>(function, exec, static_cast<std::size_t>(count * y.columns));
            results = row_major(copy, count, y.columns);
        }
        for (std::ptrdiff_t group = 0; group < geometry.groups; ++group) {
            const workspace::frame of_group(workspace_of(exec));
            const input* const patches =
                unfold_images<input>(function, exec, groups.layout, images, group * groups.image);
            const auto multiply = [&](auto... epilogue) {
                gemm_batched(exec, count, 1.0F, matrix_batch{groups.weights(weights, group), 0},
                             groups.patches(patches), 0.0F, groups.outputs(results, group), epilogue...);
            };
            if constexpr (std::is_same_v<Bias, ops::absent_t>) {
                multiply();
            } else {
                multiply(bias_per_row(b.subspan(static_cast<std::size_t>(group * groups.channels),
                                                static_cast<std::size_t>(groups.channels))));
            }
        }
        if (y.column_stride() != 1) {
            map_elements(identity_function{}, exec, y.block(first, 0, count, y.columns),
                         matrix_view<const Y>(results));
        }
    });
}

/// Enqueues dx: products of the weights with dy are the gradients of patches, which are added up where cells
/// are.
template <class Executor, class W, class DY, class DX>
void convolve_dx(const Executor& exec, const convolution_memory& memory, matrix_view<const W> w,
                 matrix_view<const DY> dy, matrix_view<DX> dx, const ops::conv2d_geometry& geometry) {
    constexpr std::string_view function = "mp::ops::conv2d_backward";
    using input = convolution_input<W, DY>;
    const convolution_groups groups(w.rows, geometry);
    const workspace::frame frame(workspace_of(exec));
    const matrix_view<const input> weights = dense_rows<input>(function, exec, w);
    for_each_images(exec, dy.rows, memory.images, [&](std::ptrdiff_t first, std::ptrdiff_t count) {
        const auto slopes = dense_rows<input>(function, exec, dy.block(first, 0, count, dy.columns));
        float* patches = nullptr;
        if (groups.channels != 0) {
            patches = take_workspace<float>(function, exec,
                                            static_cast<std::size_t>(count * groups.layout.image_stride()));
        }
        for (std::ptrdiff_t group = 0; group < geometry.groups; ++group) {
            if (groups.channels != 0) {
                gemm_batched(exec, count, 1.0F, matrix_batch{transposed(groups.weights(weights, group)), 0},
                             groups.outputs(slopes, group), 0.0F, groups.patches(patches));
            }
            launch(function, exec, row_launch<gpu::warp_group>(count * groups.layout.channels),
                   fold_kernel<DX>{groups.layout, patches, rows_of<1>(dx.block(first, 0, count, dx.columns)),
                                   group * groups.image, count});
        }
    });
}

/// Enqueues dw: products of dy with the patches of each image, which are added up in the order of the images.
template <class Executor, class X, class DY, class DW>
void convolve_dw(const Executor& exec, const convolution_memory& memory, matrix_view<const X> x,
                 matrix_view<const DY> dy, matrix_view<DW> dw, const ops::conv2d_geometry& geometry) {
    constexpr std::string_view function = "mp::ops::conv2d_backward";
    using input = convolution_input<X, DY>;
    const convolution_groups groups(dw.rows, geometry);
    const std::ptrdiff_t cells = groups.layout.cells();
    const std::ptrdiff_t size = dw.rows * cells;
    if (size == 0) return;
    const workspace::frame frame(workspace_of(exec));
    auto* const totals = take_workspace<float>(function, exec, static_cast<std::size_t>(size));
    const auto add_up = [&](const float* of_images, std::ptrdiff_t first, std::ptrdiff_t count) {
        const image_totals_kernel<DW> kernel{of_images, totals, rows_of<1>(dw), dw.rows,
                                             cells,     count,  first == 0,     first + count == x.rows};
        launch(function, exec, walk_launch(dw.rows * cells), kernel);
    };
    if (x.rows == 0) return add_up(nullptr, 0, 0);
    for_each_images(exec, x.rows, memory.images, [&](std::ptrdiff_t first, std::ptrdiff_t count) {
        const matrix_view<const X> images = x.block(first, 0, count, x.columns);
        const auto slopes = dense_rows<input>(function, exec, dy.block(first, 0, count, dy.columns));
        auto* const products = take_workspace<float>(function, exec, static_cast<std::size_t>(count * size));
        for (std::ptrdiff_t group = 0; group < geometry.groups; ++group) {
            const workspace::frame of_group(workspace_of(exec));
            const input* const patches =
                unfold_images<input>(function, exec, groups.layout, images, group * groups.image);
            const matrix_batch of_patches = groups.patches(patches);
            gemm_batched(
                exec, count, 1.0F, groups.outputs(slopes, group),
                matrix_batch{transposed(of_patches.first), of_patches.stride}, 0.0F,
                matrix_batch{row_major(products + group * groups.channels * cells, groups.channels, cells),
                             size});
        }
        add_up(products, first, count);
    });
}

/// Enqueues the gradients.
template <gpu_executor Executor, class X, class W, class DY, class DX, class DW, class DB>
void convolve_backward(convolution_function, const Executor& exec, matrix_view<const X> x,
                       matrix_view<const W> w, matrix_view<const DY> dy, const DX& dx, const DW& dw,
                       const DB& db, const ops::conv2d_geometry& geometry) {
    constexpr std::string_view function = "mp::ops::conv2d_backward";
    constexpr bool multiplies = !std::is_same_v<DX, ops::absent_t> || !std::is_same_v<DW, ops::absent_t>;
    const auto memory = convolution_memory::of(x.rows, w.rows, geometry, true);
    if constexpr (multiplies) check_workspace(function, exec, memory.bytes);
    if constexpr (!std::is_same_v<DX, ops::absent_t>) {
        if (x.rows != 0) convolve_dx(exec, memory, w, dy, dx, geometry);
    }
    if constexpr (!std::is_same_v<DW, ops::absent_t>) convolve_dw(exec, memory, x, dy, dw, geometry);
    if constexpr (!std::is_same_v<DB, ops::absent_t>) {
        if (db.empty()) return;
        using kernel = channel_sums_kernel<DY, typename DB::value_type>;
        const auto channels = static_cast<std::ptrdiff_t>(db.size());
        launch(function, exec, row_launch<gpu::block_group<row_threads>>(channels),
               kernel{rows_of<1>(dy), dy.rows, geometry.output_positions(), channels, db.data()});
    }
}

}}  // namespace mp::detail
