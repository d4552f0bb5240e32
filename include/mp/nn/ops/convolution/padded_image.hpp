// SPDX-License-Identifier: MIT
/// \file
/// An image with its padding, in which the cells that a kernel reads are found by adding: what the products of
/// a convolution on the CPU are packed from.
#pragma once

#include <mp/arrays/array/staging_buffer.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/indexed_operand.hpp>
#include <mp/nn/ops/convolution/patches.hpp>

#include <algorithm>
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

    /// Copies a group of channels of the image in this place, whose cells are `step` elements apart. What lies around
    /// them stays zero.
    template <class Value>
    void fill(const Value* from, std::ptrdiff_t step, std::ptrdiff_t place = 0) const {
        if (element_ == panel_element::float32) return fill_as<float>(from, step, place);
        fill_as<std::uint16_t>(from, step, place);
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

    template <class Element, class Value>
    void fill_as(const Value* cells, std::ptrdiff_t step, std::ptrdiff_t number) const {
        auto* const to = reinterpret_cast<Element*>(memory_.data()) + number * image();
        for (std::ptrdiff_t channel = 0; channel < g_.channels / g_.groups; ++channel) {
            for (std::ptrdiff_t y = 0; y < g_.height; ++y) {
                Element* const row = to + (channel * lines_ + g_.padding.height + y) * line();
                const Value* const from = cells + (channel * g_.height + y) * g_.width * step;
                if (g_.stride.width == 1 && step == 1) {
                    copy_line(from, row + g_.padding.width, g_.width);
                } else {
                    for (std::ptrdiff_t x = 0; x < g_.width; ++x) {
                        row[place(g_.padding.width + x)] = element_of<Element>(from[x * step]);
                    }
                }
            }
        }
    }
    template <class Element, class Value>
    static void copy_line(const Value* from, Element* to, std::ptrdiff_t count) {
        if constexpr (std::is_same_v<Value, Element> ||
                      (is_panel_code<Value> && !std::is_same_v<Element, float>)) {
            std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(Element));
        } else if constexpr (std::is_same_v<Element, float>) {
            widen_operands(from, to, count);
        } else {
            for (std::ptrdiff_t i = 0; i < count; ++i) to[i] = element_of<Element>(from[i]);
        }
    }
    /// Whether its codes are those of panels. (Another format of 16 bits is converted to what holds it.)
    template <class Value>
    static constexpr bool is_panel_code = [] {
        if constexpr (reduced<Value>) return holds_bfloat16<Value> || is_binary16<typename Value::format>;
        return false;
    }();

    /// A number as the kernels read it: a float, or the code of a half or of a bfloat16 that holds it.
    template <class Element, class Value>
    static Element element_of(Value x) {
        if constexpr (std::is_same_v<Element, float>) {
            return static_cast<float>(x);
        } else if constexpr (is_panel_code<Value>) {
            return bit_cast<std::uint16_t>(x);
        } else {
            return static_cast<std::uint16_t>(bit_cast<std::uint32_t>(static_cast<float>(x)) >> 16);
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
