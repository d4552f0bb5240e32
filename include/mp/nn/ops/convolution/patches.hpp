// SPDX-License-Identifier: MIT
/// \file
/// The matrix of the patches of an image that the kernel of a convolution reads (im2col), and its transpose (col2im).
#pragma once

#include <mp/arrays/array/for_each_element.hpp>
#include <mp/arrays/array/parallel.hpp>
#include <mp/config.hpp>
#include <mp/nn/ops/convolution/geometry.hpp>

#include <cstddef>
#include <cstring>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Calls f(line, positions, cell) for each line of the matrix of patches of some channels and each line of the
/// output, in the order of the matrix: `line` is the index of its first element in the matrix of
/// patch_size x output_positions elements, `positions` are the output columns whose cell lies inside the image,
/// and `cell` is the index of the cell of output column 0, which may itself lie outside.
template <class Function>
void for_each_patch_row(const ops::conv2d_geometry& g, std::ptrdiff_t channels, Function f) {
    const ops::height_and_width out = g.output_size();
    std::ptrdiff_t line = 0;
    for (std::ptrdiff_t channel = 0; channel < channels; ++channel) {
        for (std::ptrdiff_t i = 0; i < g.kernel.height; ++i) {
            for (std::ptrdiff_t j = 0; j < g.kernel.width; ++j) {
                const std::ptrdiff_t top = i * g.dilation.height - g.padding.height;
                const std::ptrdiff_t left = j * g.dilation.width - g.padding.width;
                const index_range columns = positions_inside(left, g.stride.width, g.width, out.width);
                for (std::ptrdiff_t y = 0; y < out.height; ++y, line += out.width) {
                    const std::ptrdiff_t row = top + y * g.stride.height;
                    const bool inside = row >= 0 && row < g.height;
                    f(line, inside ? columns : index_range{0, 0},
                      (channel * g.height + row) * g.width + left);
                }
            }
        }
    }
}

/// Writes the patches of a group of channels, im2col: element (cell of the kernel, output position) of a
/// row-major matrix is the cell that the kernel reads there, and zero in the padding. `image` points to the
/// first of the g.channels / g.groups channels, whose elements have `size` bytes. Nothing is converted.
inline void unfold_image(const ops::conv2d_geometry& g, std::size_t size, const std::byte* image,
                         std::byte* patches) {
    const std::ptrdiff_t width = g.output_size().width;
    const auto bytes = static_cast<std::ptrdiff_t>(size);
    for_each_patch_row(
        g, g.channels / g.groups, [&](std::ptrdiff_t line, index_range inside, std::ptrdiff_t cell) {
            std::byte* const to = patches + line * bytes;
            std::memset(to, 0, static_cast<std::size_t>(inside.begin * bytes));
            if (inside.begin < inside.end) {
                copy_strided(size, image + (cell + inside.begin * g.stride.width) * bytes, g.stride.width,
                             to + inside.begin * bytes, 1, inside.end - inside.begin);
            }
            std::memset(to + inside.end * bytes, 0, static_cast<std::size_t>((width - inside.end) * bytes));
        });
}

/// The transpose of unfold_image(), col2im: adds every element of the matrix of patches to the cell that it
/// stands for, in float (or double) in the order of the matrix. The sums are not set to zero first.
template <class Real>
void fold_patches(const ops::conv2d_geometry& g, const Real* patches, Real* image) {
    for_each_patch_row(g, g.channels / g.groups,
                       [&](std::ptrdiff_t line, index_range inside, std::ptrdiff_t cell) {
                           for (std::ptrdiff_t i = inside.begin; i < inside.end; ++i) {
                               image[cell + i * g.stride.width] += patches[line + i];
                           }
                           keep_order();
                       });
}

}}  // namespace mp::detail
