// SPDX-License-Identifier: MIT
/// \file
/// The convolution on the CPU: products whose patches are packed from the padded image, block by block, or, on
/// processors without vectors and for doubles, are unfolded in memory.
#pragma once

#include <mp/arrays/array/element_type.hpp>
#include <mp/arrays/array/for_each_element.hpp>
#include <mp/arrays/array/parallel.hpp>
#include <mp/arrays/array/staging_buffer.hpp>
#include <mp/base/parallel.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/epilogue_runs.hpp>
#include <mp/linalg/gemm/indexed_operand.hpp>
#include <mp/linalg/gemm/multiply.hpp>
#include <mp/linalg/gemm/workspace.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/convolution/geometry.hpp>
#include <mp/nn/ops/convolution/padded_image.hpp>
#include <mp/nn/ops/product.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/double_functions.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>
#include <mp/workspace.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

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

/// Elements [first, first + count) of a row that lie next to each other: in the matrix itself, or copied.
class row_reader {
public:
    row_reader(const cpu& exec, const any_matrix& matrix, std::ptrdiff_t count)
        : matrix_(matrix),
          copy_(exec, matrix.column_stride() == 1 ? 0 : static_cast<std::size_t>(count) * matrix.type->size),
          count_(count) {}

    const std::byte* operator()(std::ptrdiff_t row, std::ptrdiff_t first) const {
        const std::byte* const from = matrix_.at(row, first);
        if (matrix_.column_stride() == 1) return from;
        copy_strided(matrix_.type->size, from, matrix_.column_stride(), copy_.data(), 1, count_);
        return copy_.data();
    }

private:
    const any_matrix& matrix_;
    staging_buffer<std::byte> copy_;
    std::ptrdiff_t count_;
};

/// Memory for elements [first, first + count) of a row next to each other: the matrix itself, or a copy.
class row_writer {
public:
    row_writer(const cpu& exec, const any_matrix& matrix, std::ptrdiff_t count)
        : matrix_(matrix),
          copy_(exec, matrix.column_stride() == 1 ? 0 : static_cast<std::size_t>(count) * matrix.type->size),
          count_(count) {}

    [[nodiscard]] std::byte* target(std::ptrdiff_t row, std::ptrdiff_t first) const {
        return matrix_.column_stride() == 1 ? matrix_.at(row, first) : copy_.data();
    }
    /// Moves what is in the copy to its place.
    void put(std::ptrdiff_t row, std::ptrdiff_t first) const {
        if (matrix_.column_stride() == 1) return;
        copy_strided(matrix_.type->size, copy_.data(), 1, matrix_.at(row, first), matrix_.column_stride(),
                     count_);
    }

private:
    const any_matrix& matrix_;
    staging_buffer<std::byte> copy_;
    std::ptrdiff_t count_;
};

/// A row-major matrix of elements that follow each other.
inline any_matrix dense_matrix(const element_type& type, const std::byte* data, std::ptrdiff_t rows,
                               std::ptrdiff_t columns) {
    return {{reinterpret_cast<std::uintptr_t>(data), static_cast<std::ptrdiff_t>(type.size), rows, columns,
             columns, true},
            &type};
}

/// Adds to each row of a row-major C its number of the bias, an array of floats: the epilogue of a product.
inline void add_bias_of_rows(const void* bias, const epilogue_runs& all) {
    all.for_each([&](float* values, std::ptrdiff_t row, std::ptrdiff_t /*column*/) {
        const float term = static_cast<const float*>(bias)[row];
        for (std::ptrdiff_t j = 0; j < all.count; ++j) values[j] = float_add(values[j], term);
    });
}

/// y = the convolution of x with w, plus the bias unless that is null: for a processor with vectors, and no doubles.
inline void convolve_packed(const cpu& exec, instruction_set isa, const any_matrix& x, const any_matrix& w,
                            const float* bias, const any_matrix& y, const ops::conv2d_geometry& g) {
    const std::ptrdiff_t patch = g.patch_size();
    const std::ptrdiff_t positions = g.output_positions();
    const std::ptrdiff_t channels = w.rows / g.groups;  // of the output, in a group
    const std::ptrdiff_t image = g.image_size() / g.groups;
    const product_kernel& kernel =
        choose_kernel(isa, exec.products, w.type->factor->facts, x.type->factor->facts, channels);
    const auto run = [&](const cpu& inner, std::ptrdiff_t begin, std::ptrdiff_t end) {
        const mp::workspace::frame frame(inner.workspace);
        gemm_workspace own;
        const padded_image padded(inner, g, kernel.b_element, y.column_stride() == 1 ? end - begin : 1);
        const indexed_operand patches = padded.patches();
        const row_writer results(inner, y, channels * positions);
        for (std::ptrdiff_t n = begin; n < end; n += padded.images()) {
            const std::ptrdiff_t images = (std::min)(padded.images(), end - n);
            for (std::ptrdiff_t group = 0; group < g.groups; ++group) {
                for (std::ptrdiff_t i = 0; i < images; ++i) padded.fill(x, n + i, group * image, i);
                const std::ptrdiff_t first = group * channels * positions;
                const any_matrix weights = w.block(group * channels, 0, channels, patch);
                const float* const terms = bias == nullptr ? nullptr : bias + group * channels;
                product_task task = make_product_task(
                    kernel, isa, {memory_of(weights), weights.row_stride(), weights.column_stride()},
                    *w.type->factor, {&patches, 0, 0}, *x.type->factor,
                    make_tile_output(isa, *y.type->result, results.target(n, first), positions, false, 1.0F,
                                     0.0F, terms, terms == nullptr ? nullptr : &add_bias_of_rows),
                    channels, images * positions, patch);
                if (images > 1) {
                    task.c.piece = positions;
                    task.c.piece_stride = y.row_stride();
                }
                task.pack_b = pack_indexed_panels_for(isa, kernel.b_element);
                task.b_as_is = false;
                multiply_blocked(inner, task, inner.workspace == nullptr ? &own : nullptr);
                results.put(n, first);
            }
        }
    };
    for_each_task(exec, x.rows, patch * positions * w.rows, run);
}

/// y = the convolution of x with w, plus the bias unless that is null, by products with the patches in memory.
template <class Real>
void convolve_unfolded(const cpu& exec, const any_matrix& x, const any_matrix& w, const Real* bias,
                       const any_matrix& y, const ops::conv2d_geometry& g) {
    const std::ptrdiff_t patch = g.patch_size();
    const std::ptrdiff_t positions = g.output_positions();
    const std::ptrdiff_t channels = w.rows / g.groups;  // of the output, in a group
    const std::ptrdiff_t image = g.image_size() / g.groups;
    const auto run = [&](const cpu& inner, std::ptrdiff_t begin, std::ptrdiff_t end) {
        const mp::workspace::frame frame(inner.workspace);
        gemm_workspace own;
        gemm_workspace* const workspace = inner.workspace == nullptr ? &own : nullptr;
        const row_reader read(inner, x, image);
        const staging_buffer<std::byte> patches(inner,
                                                static_cast<std::size_t>(patch * positions) * x.type->size);
        const row_writer results(inner, y, channels * positions);
        for (std::ptrdiff_t n = begin; n < end; ++n) {
            for (std::ptrdiff_t group = 0; group < g.groups; ++group) {
                const mp::workspace::frame of_product(inner.workspace);
                const std::ptrdiff_t first = group * channels * positions;
                unfold_image(g, x.type->size, read(n, group * image), patches.data());
                const any_matrix weights = w.block(group * channels, 0, channels, patch);
                const any_matrix cells = dense_matrix(*x.type, patches.data(), patch, positions);
                const Real* const terms = bias == nullptr ? nullptr : bias + group * channels;
                const any_matrix result =
                    dense_matrix(*y.type, results.target(n, first), channels, positions);
                if constexpr (std::same_as<Real, double>) {
                    product_in_double(inner, 1.0, weights, cells, 0.0, result,
                                      [&](double value, std::ptrdiff_t channel, std::ptrdiff_t /*position*/) {
                                          return terms == nullptr ? value : double_add(value, terms[channel]);
                                      });
                } else {
                    multiply_in_float(inner, 1.0, weights, cells, 0.0, result, workspace, terms,
                                      terms == nullptr ? nullptr : &add_bias_of_rows);
                }
                results.put(n, first);
            }
        }
    };
    for_each_task(exec, x.rows, patch * positions * w.rows, run);
}

/// y = the convolution of x with w, plus b unless that is absent, computed in Real.
template <class Real>
void compute_convolution(const cpu& exec, const any_matrix& x, const any_matrix& w, const any_matrix& b,
                         const any_matrix& y, const ops::conv2d_geometry& g) {
    if (w.rows == 0) return;
    const bool copies = b && !holds_reals<Real>(b);
    const staging_buffer<Real> room(exec, copies ? static_cast<std::size_t>(w.rows) : 0);
    const Real* const bias = b ? reals_of_row(b, 0, room.data()) : nullptr;
    if constexpr (std::same_as<Real, float>) {
        const instruction_set isa = isa_of("conv2d", exec);
        if (isa != instruction_set::portable) return convolve_packed(exec, isa, x, w, bias, y, g);
    }
    convolve_unfolded(exec, x, w, bias, y, g);
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
inline void turn_kernels(const any_matrix& w, const ops::conv2d_geometry& g, std::byte* to) {
    const std::ptrdiff_t inputs = g.channels / g.groups;
    const std::ptrdiff_t outputs = w.rows / g.groups;
    const std::ptrdiff_t cells = g.kernel.height * g.kernel.width;
    const std::ptrdiff_t step = w.column_stride() * w.element_size;
    with_element_size(w.type->size, [&]<std::size_t Size>(std::integral_constant<std::size_t, Size>) {
        for (std::ptrdiff_t group = 0; group < g.groups; ++group) {
            for (std::ptrdiff_t input = 0; input < inputs; ++input) {
                for (std::ptrdiff_t output = 0; output < outputs; ++output) {
                    const std::byte* const from = w.at(group * outputs + output, input * cells);
                    for (std::ptrdiff_t cell = cells - 1; cell >= 0; --cell, to += Size) {
                        std::memcpy(to, from + cell * step, Size);
                    }
                }
            }
        }
    });
}

/// dx, where the kernel moves by single cells the convolution of dy with turned kernels, else the sums of the patches
/// that are products of w and dy.
template <class Real>
void write_dx(const cpu& exec, const any_matrix& w, const any_matrix& dy, const any_matrix& dx,
              const ops::conv2d_geometry& g) {
    const std::ptrdiff_t patch = g.patch_size();
    const std::ptrdiff_t positions = g.output_positions();
    const std::ptrdiff_t channels = w.rows / g.groups;
    const std::ptrdiff_t image = g.image_size() / g.groups;
    if constexpr (std::same_as<Real, float>) {
        if (channels > 0 && can_turn(g)) {
            const staging_buffer<std::byte> turned(
                exec, static_cast<std::size_t>(w.rows * w.columns) * w.type->size);
            turn_kernels(w, g, turned.data());
            const any_matrix kernels =
                dense_matrix(*w.type, turned.data(), g.channels, channels * g.kernel.height * g.kernel.width);
            return compute_convolution<float>(exec, dy, kernels, {}, dx, turned_geometry(g, w.rows));
        }
    }
    const auto run = [&](const cpu& inner, std::ptrdiff_t begin, std::ptrdiff_t end) {
        const mp::workspace::frame frame(inner.workspace);
        gemm_workspace own;
        gemm_workspace* const workspace = inner.workspace == nullptr ? &own : nullptr;
        const row_reader read(inner, dy, channels * positions);
        const staging_buffer<Real> patches(inner, static_cast<std::size_t>(patch * positions));
        const staging_buffer<Real> sums(inner, static_cast<std::size_t>(image));
        for (std::ptrdiff_t n = begin; n < end; ++n) {
            for (std::ptrdiff_t group = 0; group < g.groups; ++group) {
                std::fill_n(sums.data(), image, Real{0});
                if (channels > 0) {
                    const mp::workspace::frame of_product(inner.workspace);
                    const std::byte* const slopes = read(n, group * channels * positions);
                    multiply_matrices<Real>(
                        inner, 1.0, w.block(group * channels, 0, channels, patch).transposed(),
                        dense_matrix(*dy.type, slopes, channels, positions), 0.0,
                        matrix_of_product(row_major(patches.data(), patch, positions)), workspace);
                    fold_patches(g, patches.data(), sums.data());
                }
                store_elements(*dx.type, sums.data(), static_cast<std::size_t>(image),
                               dx.at(n, group * image), dx.column_stride());
            }
        }
    };
    for_each_task(exec, dx.rows, patch * positions * w.rows, run);
}

/// Whether dw is best computed with the cells of the patches as rows: output channels fill a part of a panel.
inline bool suits_rows_of_cells(std::ptrdiff_t channels) {
    return channels >= panel_width / 4;
}

/// Rounds sums with the cells [begin, end) as rows and some channels as columns to elements of dw.
inline void write_transposed_sums(const float* sums, const any_matrix& dw, std::ptrdiff_t begin,
                                  std::ptrdiff_t end) {
    // Channels that are a cache line of each row.
    constexpr std::ptrdiff_t together = 16;
    constexpr auto most = static_cast<std::ptrdiff_t>(element_block);
    float room[together][element_block];
    for (std::ptrdiff_t first = 0; first < dw.rows; first += together) {
        const std::ptrdiff_t channels = (std::min)(together, dw.rows - first);
        for (std::ptrdiff_t cell = begin; cell < end; cell += most) {
            const std::ptrdiff_t cells = (std::min)(most, end - cell);
            for (std::ptrdiff_t i = 0; i < cells; ++i) {
                const float* const row = sums + (cell - begin + i) * dw.rows + first;
                for (std::ptrdiff_t channel = 0; channel < channels; ++channel)
                    room[channel][i] = row[channel];
            }
            for (std::ptrdiff_t channel = 0; channel < channels; ++channel) {
                store_elements(*dw.type, room[channel], static_cast<std::size_t>(cells),
                               dw.at(first + channel, cell), dw.column_stride());
            }
        }
    }
}

/// dw, with the cells of the patches as rows: the sum, image after image, of sums over the positions. Threads
/// have parts of the cells.
inline void write_packed_dw(const cpu& exec, instruction_set isa, const any_matrix& x, const any_matrix& dy,
                            const any_matrix& dw, const ops::conv2d_geometry& g) {
    const std::ptrdiff_t patch = g.patch_size();
    const std::ptrdiff_t positions = g.output_positions();
    const std::ptrdiff_t channels = dw.rows / g.groups;
    const std::ptrdiff_t image = g.image_size() / g.groups;
    const operand_kernels& of_x = *x.type->factor;
    const operand_kernels& of_dy = *dy.type->factor;
    const result_kernels& of_sums = product_kernels<float>::of_result;
    const product_kernel& kernel = choose_kernel(isa, exec.products, of_x.facts, of_dy.facts, patch);
    const auto run = [&](const cpu& inner, std::ptrdiff_t begin, std::ptrdiff_t end) {
        const mp::workspace::frame frame(inner.workspace);
        gemm_workspace own;
        const padded_image padded(inner, g, kernel.a_element);
        const staging_buffer<float> sums(inner, static_cast<std::size_t>((end - begin) * dw.rows));
        const row_reader read(inner, dy, channels * positions);
        const indexed_operand patches = padded.patches(begin);
        for (std::ptrdiff_t n = 0; n < x.rows; ++n) {
            for (std::ptrdiff_t group = 0; group < g.groups; ++group) {
                padded.fill(x, n, group * image);
                float* const to = sums.data() + group * (end - begin) * channels;
                product_task task =
                    make_product_task(kernel, isa, {&patches, 0, 0}, of_x,
                                      {read(n, group * channels * positions), positions, 1}, of_dy,
                                      make_tile_output(isa, of_sums, to, channels, false, 1.0F,
                                                       n == 0 ? 0.0F : 1.0F, nullptr, nullptr),
                                      end - begin, channels, positions);
                task.pack_a = pack_indexed_rows_for(isa, kernel);
                task.a_as_is = false;
                multiply_blocked(inner, task, inner.workspace == nullptr ? &own : nullptr);
            }
        }
        for (std::ptrdiff_t group = 0; group < g.groups; ++group) {
            write_transposed_sums(sums.data() + group * (end - begin) * channels,
                                  dw.block(group * channels, 0, channels, patch), begin, end);
        }
    };
    for_each_task(exec, patch, x.rows * positions * dw.rows, run);
}

/// dw, one image after the other, since they add to the same sums.
template <class Real>
void write_dw(const cpu& exec, const any_matrix& x, const any_matrix& dy, const any_matrix& dw,
              const ops::conv2d_geometry& g) {
    const std::ptrdiff_t patch = g.patch_size();
    const std::ptrdiff_t positions = g.output_positions();
    const std::ptrdiff_t channels = dw.rows / g.groups;
    const std::ptrdiff_t image = g.image_size() / g.groups;
    if (channels == 0) return;
    if constexpr (std::same_as<Real, float>) {
        const instruction_set isa = isa_of("conv2d_backward", exec);
        if (isa != instruction_set::portable && x.rows > 0 && suits_rows_of_cells(channels)) {
            return write_packed_dw(exec, isa, x, dy, dw, g);
        }
    }
    const staging_buffer<Real> sums(exec, static_cast<std::size_t>(dw.rows * patch));
    std::fill_n(sums.data(), dw.rows * patch, Real{0});
    const any_matrix totals = matrix_of_product(row_major(sums.data(), dw.rows, patch));
    gemm_workspace own;
    gemm_workspace* const workspace = exec.workspace == nullptr ? &own : nullptr;
    const row_reader read_x(exec, x, image);
    const row_reader read_dy(exec, dy, channels * positions);
    const staging_buffer<std::byte> patches(exec, static_cast<std::size_t>(patch * positions) * x.type->size);
    const any_matrix cells = dense_matrix(*x.type, patches.data(), patch, positions);
    for (std::ptrdiff_t n = 0; n < x.rows; ++n) {
        for (std::ptrdiff_t group = 0; group < g.groups; ++group) {
            const mp::workspace::frame of_product(exec.workspace);
            unfold_image(g, x.type->size, read_x(n, group * image), patches.data());
            const std::byte* const slopes = read_dy(n, group * channels * positions);
            multiply_matrices<Real>(exec, 1.0, dense_matrix(*dy.type, slopes, channels, positions),
                                    cells.transposed(), 1.0,
                                    totals.block(group * channels, 0, channels, patch), workspace);
        }
    }
    for (std::ptrdiff_t row = 0; row < dw.rows; ++row) put_row(sums.data() + row * patch, dw, row);
}

/// db, sums in double.
template <class Real>
void write_db(const cpu& exec, const any_matrix& dy, const any_matrix& db, std::ptrdiff_t positions) {
    constexpr auto most = static_cast<std::ptrdiff_t>(run_block);
    const auto work = static_cast<std::size_t>((std::max<std::ptrdiff_t>)(dy.rows * positions, 1));
    parallel_arithmetic(exec, static_cast<std::size_t>(db.columns), 1 + 16384 / work,
                        [&](std::size_t begin, std::size_t end) {
                            Real terms[run_block];
                            for (auto channel = static_cast<std::ptrdiff_t>(begin);
                                 channel < static_cast<std::ptrdiff_t>(end); ++channel) {
                                rounded_doubles<1> sum = 0.0;
                                for (std::ptrdiff_t n = 0; n < dy.rows; ++n) {
                                    for (std::ptrdiff_t first = 0; first < positions; first += most) {
                                        const auto count =
                                            static_cast<std::size_t>((std::min)(most, positions - first));
                                        load_elements(*dy.type, dy.at(n, channel * positions + first),
                                                      dy.column_stride(), count, terms);
                                        for (std::size_t i = 0; i < count; ++i)
                                            sum += static_cast<double>(terms[i]);
                                    }
                                }
                                const double total = sum.value();
                                store_elements(*db.type, &total, 1, db.at(0, channel));
                            }
                        });
}

}}  // namespace mp::detail
