// SPDX-License-Identifier: MIT
/// \file
/// An image with its padding, in which the cells that a kernel reads are found by adding: what the products of
/// a convolution on the CPU are packed from.
#pragma once

#include <mp/arrays/array/element_type.hpp>
#include <mp/arrays/array/for_each_element.hpp>
#include <mp/arrays/array/staging_buffer.hpp>
#include <mp/base/bits.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/indexed_operand.hpp>
#include <mp/linalg/gemm/operand_kernels.hpp>
#include <mp/nn/ops/convolution/geometry.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

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

}}  // namespace mp::detail
