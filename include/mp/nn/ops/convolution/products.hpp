// SPDX-License-Identifier: MIT
/// \file
/// The convolution on the CPU: products whose patches are packed from the padded image, in which the cells that a kernel
/// reads are found by adding, block by block, or, on processors without vectors and for doubles, are unfolded in memory.
#pragma once

#include <mp/arrays/array/element_type.hpp>
#include <mp/arrays/array/for_each_element.hpp>
#include <mp/arrays/array/parallel.hpp>
#include <mp/arrays/array/staging_buffer.hpp>
#include <mp/base/bits.hpp>
#include <mp/base/parallel.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/epilogue_runs.hpp>
#include <mp/linalg/gemm/indexed_operand.hpp>
#include <mp/linalg/gemm/multiply.hpp>
#include <mp/linalg/gemm/operand_kernels.hpp>
#include <mp/linalg/gemm/workspace.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/convolution/patches.hpp>
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

/// The channels of a group, each with lines of zeros above and below, and cells of zeros beside its lines: of one image,
/// or of as many as have columns for a product of full panels and take little memory.
///
/// Where the kernel moves by more than one cell, a line is stored by its remainders: cells 0, s, 2 s ..., then
/// 1, s + 1 ..., so that what a cell of the kernel sees at neighbouring positions are neighbours.
class padded_image {
public:
    padded_image(const cpu& exec, const ops::conv2d_geometry& g, panel_element element,
                 std::ptrdiff_t most_images = 1)
        : g_(g),
          element_(element),
          lines_(g.height + 2 * g.padding.height),
          part_((g.width + 2 * g.padding.width + g.stride.width - 1) / g.stride.width),
          images_((std::min)(most_images, images_at_once())),
          memory_(exec, bytes()),
          offsets_(exec, static_cast<std::size_t>(g.patch_size())) {
        std::ptrdiff_t cell = 0;
        for (std::ptrdiff_t channel = 0; channel < g.channels / g.groups; ++channel) {
            for (std::ptrdiff_t i = 0; i < g.kernel.height; ++i) {
                for (std::ptrdiff_t j = 0; j < g.kernel.width; ++j) {
                    offsets_.data()[cell++] =
                        (channel * lines_ + i * g.dilation.height) * line() + place(j * g.dilation.width);
                }
            }
        }
        std::memset(memory_.data(), 0, bytes());
    }

    [[nodiscard]] std::ptrdiff_t images() const { return images_; }

    /// Copies a group of channels, from element `first` of a row of x on, to the image in this place. What lies around
    /// them stays zero.
    void fill(const any_matrix& x, std::ptrdiff_t row, std::ptrdiff_t first, std::ptrdiff_t place = 0) const {
        if (element_ == panel_element::float32) return fill_as<float>(x, row, first, place);
        fill_as<std::uint16_t>(x, row, first, place);
    }

    /// As B, whose steps of k are the cells of a patch and whose columns the positions, image after image; as A, the
    /// cells are the rows, from `first` on.
    [[nodiscard]] indexed_operand patches(std::ptrdiff_t first = 0) const {
        const ops::height_and_width output = g_.output_size();
        return {memory_.data(), offsets_.data() + first,
                output.width,   g_.stride.height * line(),
                output.height,  image()};
    }

private:
    [[nodiscard]] std::ptrdiff_t images_at_once() const {
        constexpr std::ptrdiff_t columns = 50 * panel_width;
        constexpr std::ptrdiff_t elements = 1 << 20;
        const std::ptrdiff_t wanted = columns / g_.output_positions();
        return (std::max)((std::min)(wanted, elements / (std::max)(image(), std::ptrdiff_t{1})),
                          std::ptrdiff_t{1});
    }
    [[nodiscard]] std::size_t size() const { return element_ == panel_element::float32 ? 4 : 2; }
    [[nodiscard]] std::size_t bytes() const {
        return static_cast<std::size_t>(images_ * image()) * size() + 64;
    }
    [[nodiscard]] std::ptrdiff_t line() const { return part_ * g_.stride.width; }
    [[nodiscard]] std::ptrdiff_t image() const { return g_.channels / g_.groups * lines_ * line(); }
    /// Of a cell in its line.
    [[nodiscard]] std::ptrdiff_t place(std::ptrdiff_t cell) const {
        return cell % g_.stride.width * part_ + cell / g_.stride.width;
    }

    template <class Element>
    void fill_as(const any_matrix& x, std::ptrdiff_t row, std::ptrdiff_t first, std::ptrdiff_t number) const {
        constexpr auto most = static_cast<std::ptrdiff_t>(run_block);
        auto* const to = reinterpret_cast<Element*>(memory_.data()) + number * image();
        // Lines without padding follow each other.
        const std::ptrdiff_t together = g_.stride.width == 1 && line() == g_.width ? g_.height : 1;
        for (std::ptrdiff_t channel = 0; channel < g_.channels / g_.groups; ++channel) {
            for (std::ptrdiff_t y = 0; y < g_.height; y += together) {
                Element* const cells = to + (channel * lines_ + g_.padding.height + y) * line();
                const std::ptrdiff_t from = first + (channel * g_.height + y) * g_.width;
                if (g_.stride.width == 1) {
                    read_cells(x, row, from, together * g_.width, cells + g_.padding.width);
                    continue;
                }
                for (std::ptrdiff_t begin = 0; begin < g_.width; begin += most) {
                    Element scratch[run_block];
                    const std::ptrdiff_t count = (std::min)(most, g_.width - begin);
                    read_cells(x, row, from + begin, count, scratch);
                    for (std::ptrdiff_t i = 0; i < (std::min)(g_.stride.width, count); ++i) {
                        Element* next = cells + place(g_.padding.width + begin + i);
                        for (std::ptrdiff_t j = i; j < count; j += g_.stride.width) *next++ = scratch[j];
                    }
                }
            }
        }
    }

    /// Reads elements of a row as floats.
    static void read_cells(const any_matrix& x, std::ptrdiff_t row, std::ptrdiff_t first,
                           std::ptrdiff_t count, float* to) {
        load_elements(*x.type, x.at(row, first), x.column_stride(), static_cast<std::size_t>(count), to);
    }
    /// Reads elements of a row as codes of a half, or of a bfloat16 that holds them.
    static void read_cells(const any_matrix& x, std::ptrdiff_t row, std::ptrdiff_t first,
                           std::ptrdiff_t count, std::uint16_t* to) {
        const operand_facts& facts = x.type->factor->facts;
        if (facts.holds_bfloat16 || facts.panel == panel_element::binary16) {
            copy_strided(sizeof *to, x.at(row, first), x.column_stride(), reinterpret_cast<std::byte*>(to), 1,
                         count);
            return;
        }
        constexpr auto most = static_cast<std::ptrdiff_t>(run_block);
        for (std::ptrdiff_t begin = 0; begin < count; begin += most) {
            float floats[run_block];
            const std::ptrdiff_t length = (std::min)(most, count - begin);
            read_cells(x, row, first + begin, length, floats);
            for (std::ptrdiff_t i = 0; i < length; ++i) {
                to[begin + i] = static_cast<std::uint16_t>(bit_cast<std::uint32_t>(floats[i]) >> 16);
            }
        }
    }

    const ops::conv2d_geometry& g_;
    panel_element element_;
    std::ptrdiff_t lines_;
    std::ptrdiff_t part_;  ///< of a line, for each remainder
    std::ptrdiff_t images_;
    staging_buffer<std::byte> memory_;
    staging_buffer<std::ptrdiff_t> offsets_;
};

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
