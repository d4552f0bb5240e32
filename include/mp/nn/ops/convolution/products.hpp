// SPDX-License-Identifier: MIT
/// \file
/// The products of a convolution on the CPU, whose patches are packed from the padded image, block by block.
#pragma once

#include <mp/arrays/array/parallel.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/indexed_operand.hpp>
#include <mp/linalg/gemm/multiply.hpp>
#include <mp/linalg/gemm/packed_b.hpp>
#include <mp/linalg/gemm/workspace.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/convolution/padded_image.hpp>
#include <mp/nn/ops/convolution/patches.hpp>
#include <mp/workspace.hpp>

#include <algorithm>
#include <cstddef>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// y = the convolution of x with w and an ending that make_ending(first channel, channels) gives for each group:
/// for a processor with vectors, and no doubles.
template <class X, class W, class Y, class MakeEnding>
void convolve_packed(cpu exec, instruction_set isa, matrix_view<const X> x, matrix_view<const W> w,
                     matrix_view<Y> y, const ops::conv2d_geometry& g, MakeEnding make_ending) {
    const std::ptrdiff_t patch = g.patch_size();
    const std::ptrdiff_t positions = g.output_positions();
    const std::ptrdiff_t channels = w.rows / g.groups;  // of the output, in a group
    const std::ptrdiff_t image = g.image_size() / g.groups;
    const bool dense = y.column_stride() == 1;
    const product_kernel& kernel =
        choose_kernel(isa, exec.products, operand_facts_of<W>(), operand_facts_of<X>(), channels);
    const auto run = [&](cpu inner, std::ptrdiff_t begin, std::ptrdiff_t end) {
        const mp::workspace::frame frame(inner.workspace);
        gemm_workspace own;
        const padded_image padded(inner, g, kernel.b_element, dense ? end - begin : std::ptrdiff_t{1});
        const indexed_operand patches = padded.patches();
        const staging_buffer<Y> copy(inner, dense ? 0 : static_cast<std::size_t>(channels * positions));
        for (std::ptrdiff_t n = begin; n < end; n += padded.images()) {
            const std::ptrdiff_t images = (std::min)(padded.images(), end - n);
            for (std::ptrdiff_t group = 0; group < g.groups; ++group) {
                for (std::ptrdiff_t i = 0; i < images; ++i) {
                    padded.fill(&x(n + i, group * image), x.column_stride(), i);
                }
                const std::ptrdiff_t first = group * channels * positions;
                Y* const to = dense ? &y(n, first) : copy.data();
                const auto weights = w.block(group * channels, 0, channels, patch);
                const auto ending = make_ending(group * channels, channels);
                product_task task = make_product_task(
                    kernel, isa, {weights.data, weights.row_stride(), weights.column_stride()},
                    product_kernels<W>::of_operand, {&patches, 0, 0}, product_kernels<X>::of_operand,
                    make_tile_output(isa, to, positions, false, 1.0F, 0.0F, ending), channels,
                    images * positions, patch);
                if (images > 1) {
                    task.c.piece = positions;
                    task.c.piece_stride = &y(n + 1, 0) - &y(n, 0);
                }
                task.pack_b = pack_indexed_panels_for(isa, kernel.b_element);
                task.b_as_is = false;
                multiply_blocked(inner, task, inner.workspace == nullptr ? &own : nullptr);
                if (dense) continue;
                for (std::ptrdiff_t i = 0; i < channels * positions; ++i) y(n, first + i) = copy.data()[i];
            }
        }
    };
    for_each_task(exec, x.rows, patch * positions * w.rows, run);
}

/// The geometry of the convolution of dy that gives dx, where the kernel moves by single cells: its kernels are
/// those of the forward pass turned by half a circle.
inline ops::conv2d_geometry turned_geometry(const ops::conv2d_geometry& g, std::ptrdiff_t output_channels) {
    const ops::height_and_width out = g.output_size();
    return {.channels = output_channels,
            .height = out.height,
            .width = out.width,
            .kernel = g.kernel,
            .padding = {g.dilation.height * (g.kernel.height - 1) - g.padding.height,
                        g.dilation.width * (g.kernel.width - 1) - g.padding.width},
            .dilation = g.dilation,
            .groups = g.groups};
}

/// Whether dx is best computed so. With few channels there is little to multiply what is packed by.
inline bool can_turn(const ops::conv2d_geometry& g) {
    return g.stride.height == 1 && g.stride.width == 1 && g.channels / g.groups >= 8 &&
           g.padding.height <= g.dilation.height * (g.kernel.height - 1) &&
           g.padding.width <= g.dilation.width * (g.kernel.width - 1);
}

/// The kernels for it: of w, with the channels of input and output exchanged within their groups.
template <class W>
void turn_kernels(matrix_view<const W> w, const ops::conv2d_geometry& g, W* to) {
    const std::ptrdiff_t inputs = g.channels / g.groups;
    const std::ptrdiff_t outputs = w.rows / g.groups;
    const std::ptrdiff_t cells = g.kernel.height * g.kernel.width;
    for (std::ptrdiff_t group = 0; group < g.groups; ++group) {
        for (std::ptrdiff_t input = 0; input < inputs; ++input) {
            for (std::ptrdiff_t output = 0; output < outputs; ++output) {
                for (std::ptrdiff_t cell = cells - 1; cell >= 0; --cell) {
                    *to++ = w(group * outputs + output, input * cells + cell);
                }
            }
        }
    }
}

/// Whether dw is best computed with the cells of the patches as rows: output channels fill a part of a panel.
inline bool suits_rows_of_cells(std::ptrdiff_t channels) {
    return channels >= panel_width / 4;
}

/// dw, with the cells of the patches as rows: the sum, image after image, of sums over the positions. Threads
/// have parts of the cells.
template <class X, class DY, class DW>
void write_packed_dw(cpu exec, instruction_set isa, matrix_view<const X> x, matrix_view<const DY> dy,
                     matrix_view<DW> dw, const ops::conv2d_geometry& g) {
    const std::ptrdiff_t patch = g.patch_size();
    const std::ptrdiff_t positions = g.output_positions();
    const std::ptrdiff_t channels = dw.rows / g.groups;
    const std::ptrdiff_t image = g.image_size() / g.groups;
    const product_kernel& kernel =
        choose_kernel(isa, exec.products, operand_facts_of<X>(), operand_facts_of<DY>(), patch);
    const auto run = [&](cpu inner, std::ptrdiff_t begin, std::ptrdiff_t end) {
        const mp::workspace::frame frame(inner.workspace);
        gemm_workspace own;
        const padded_image padded(inner, g, kernel.a_element);
        const staging_buffer<float> sums(inner,
                                         static_cast<std::size_t>(g.groups * (end - begin) * channels));
        const bool dense = dy.column_stride() == 1;
        const staging_buffer<DY> copy(inner, dense ? 0 : static_cast<std::size_t>(channels * positions));
        const indexed_operand patches = padded.patches(begin);
        for (std::ptrdiff_t n = 0; n < x.rows; ++n) {
            for (std::ptrdiff_t group = 0; group < g.groups; ++group) {
                padded.fill(&x(n, group * image), x.column_stride());
                const std::ptrdiff_t first = group * channels * positions;
                for (std::ptrdiff_t i = 0; !dense && i < channels * positions; ++i) {
                    copy.data()[i] = dy(n, first + i);
                }
                const DY* const slopes = dense ? &dy(n, first) : copy.data();
                float* const to = sums.data() + group * (end - begin) * channels;
                product_task task =
                    make_product_task(kernel, isa, {&patches, 0, 0}, product_kernels<X>::of_operand,
                                      {slopes, positions, 1}, product_kernels<DY>::of_operand,
                                      make_tile_output(isa, to, channels, false, 1.0F, n == 0 ? 0.0F : 1.0F,
                                                       identity_epilogue{}),
                                      end - begin, channels, positions);
                task.pack_a = pack_indexed_rows_for(isa, kernel);
                task.a_as_is = false;
                multiply_blocked(inner, task, inner.workspace == nullptr ? &own : nullptr);
            }
        }
        // The sums have the cells as rows. Some channels at a time, which are a cache line of each.
        constexpr std::ptrdiff_t together = 16;
        for (std::ptrdiff_t group = 0; group < g.groups; ++group) {
            const float* const from = sums.data() + group * (end - begin) * channels;
            for (std::ptrdiff_t first = 0; first < channels; first += together) {
                const std::ptrdiff_t last = (std::min)(first + together, channels);
                for (std::ptrdiff_t cell = begin; cell < end; ++cell) {
                    for (std::ptrdiff_t channel = first; channel < last; ++channel) {
                        dw(group * channels + channel, cell) =
                            as<DW>(from[(cell - begin) * channels + channel]);
                    }
                }
            }
        }
    };
    for_each_task(exec, patch, x.rows * positions * dw.rows, run);
}

}}  // namespace mp::detail
