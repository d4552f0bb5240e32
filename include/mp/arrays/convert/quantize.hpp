// SPDX-License-Identifier: MIT
/// \file
/// Matrices of numbers to block-scaled ones.
#pragma once

#include <mp/arrays/convert/block_quantizer.hpp>
#include <mp/arrays/convert/block_scale_search.hpp>
#include <mp/arrays/convert/block_vectors.hpp>
#include <mp/arrays/convert/kernels/block_quantize.hpp>
#include <mp/arrays/convert/kernels/vector_columns.hpp>
#include <mp/arrays/convert/number_range.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <cstdint>
#include <type_traits>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Quantises whole blocks of a contiguous vector, up to the first one that is not finite; how many these are.
template <class BlockScaled, class Number>
using quantize_kernel = std::size_t (*)(const Number*, std::size_t, typename BlockScaled::scale_type*,
                                        std::byte*, block_scaling, float);

/// The kernel that does what the options say, or null.
template <class BlockScaled, class Number>
quantize_kernel<BlockScaled, Number> quantize_kernel_for(instruction_set isa, const projection& element,
                                                         float tensor_scale) noexcept {
    quantize_kernel<BlockScaled, Number> kernel = nullptr;
    if constexpr (has_number_vectors<Number> && has_block_vectors<BlockScaled>) {
        if (element == projection{rounding::nearest_even, saturation::finite} &&
            (!BlockScaled::has_tensor_scale || quantizes_with(tensor_scale))) {
            kernel = MP_SELECT_TARGET(isa, kernel, quantize_blocks<BlockScaled, Number>);
        }
    }
    static_cast<void>(isa), static_cast<void>(element), static_cast<void>(tensor_scale);
    return kernel;
}

/// The function that gathers vectors that lie side by side, or null.
template <class Number>
auto gather_columns_for(instruction_set isa) noexcept {
    using function =
        void (*)(const Number*, std::ptrdiff_t, std::ptrdiff_t, std::ptrdiff_t, float*, std::ptrdiff_t);
    const function none = nullptr;
    if constexpr (has_number_vectors<Number>) return MP_SELECT_TARGET(isa, none, gather_columns<Number>);
    static_cast<void>(isa);
    return none;
}

/// Quantises the chunks of a tile's vectors that kernels leave out: what is not finite, or not a whole block, or
/// has no kernel.
template <class BlockScaled, class Quantizer, class Number>
class chunk_quantizer {
public:
    using chunk = typename Quantizer::chunk;

    chunk_quantizer(const Quantizer& quantize, const block_vectors<const Number>& vectors,
                    BlockScaled& result)
        : quantize_(quantize), vectors_(vectors), result_(result) {}

    /// The scales and elements of a vector from `begin` on, at a multiple of 8 elements and of a block.
    [[nodiscard]] auto* scales(std::ptrdiff_t vector, std::ptrdiff_t begin) const {
        return result_.scales().data() + vector * result_.blocks_per_vector() +
               begin / BlockScaled::block_size;
    }
    [[nodiscard]] std::byte* elements(std::ptrdiff_t vector, std::ptrdiff_t begin) const {
        return result_.bytes(vector).data() + begin / 8 * BlockScaled::element_width;
    }

    /// Up to chunk::elements of the tile's vectors from `begin` on; returns how many.
    std::ptrdiff_t operator()(const block_tile& tile, std::ptrdiff_t begin) const {
        const bool along_rows = result_.direction() == block_direction::along_rows;
        const auto columns = static_cast<std::uint64_t>(result_.columns());
        const std::ptrdiff_t count = (std::min)(chunk::elements, tile.end - begin);
        block_wide<Number> values[vectors_abreast][chunk::padded];
        std::uint8_t codes[chunk::padded];
        read_vectors(vectors_, tile, begin, count, values);
        for (std::ptrdiff_t vector = tile.first_vector; vector < tile.last_vector; ++vector) {
            const auto l = static_cast<std::uint64_t>(vector);
            const auto position = static_cast<std::uint64_t>(begin);
            quantize_.quantize(values[vector - tile.first_vector], static_cast<std::size_t>(count),
                               along_rows ? l * columns + position : position * columns + l,
                               along_rows ? 1 : columns, codes, scales(vector, begin));
            write_codes<BlockScaled::element_width>(result_.bytes(vector).data(), begin, codes,
                                                    static_cast<std::size_t>(count));
        }
        return count;
    }

private:
    const Quantizer& quantize_;
    const block_vectors<const Number>& vectors_;
    BlockScaled& result_;
};

/// Quantises vectors that lie side by side. Where some elements of each are whole blocks, they are gathered one after the
/// other, so that the kernel goes through all of them at once.
template <class BlockScaled, class Rest, class Number>
struct column_quantizer {
    const Rest& quantize_rest;
    const block_vectors<const Number>& vectors;
    quantize_kernel<BlockScaled, float> kernel;
    void (*gather)(const Number*, std::ptrdiff_t, std::ptrdiff_t, std::ptrdiff_t, float*, std::ptrdiff_t);
    block_scaling scaling;
    float tensor_scale;

    static constexpr std::ptrdiff_t block = BlockScaled::block_size;
    static constexpr std::ptrdiff_t length = columns_length;
    static constexpr std::ptrdiff_t blocks = length / block;  ///< of a vector
    static constexpr std::ptrdiff_t bytes = length / 8 * BlockScaled::element_width;

    void operator()(const block_tile& tile) const {
        float rows[columns_abreast][length];
        std::byte elements[columns_abreast * bytes];
        typename BlockScaled::scale_type scales[columns_abreast * blocks];
        const std::ptrdiff_t height = tile.last_vector - tile.first_vector;
        std::ptrdiff_t begin = tile.begin;
        for (; begin + length <= tile.end; begin += length) {
            gather(vectors.at(tile.first_vector, begin), vectors.position_stride, height, length, rows[0],
                   length);
            if (scaling.given) {
                for (std::ptrdiff_t v = 0; v < height; ++v) {
                    std::memcpy(static_cast<void*>(scales + v * blocks),
                                quantize_rest.scales(tile.first_vector + v, begin),
                                sizeof(scales[0]) * blocks);
                }
            }
            std::ptrdiff_t first = 0;  // of the vectors whose blocks the kernel goes on with
            while (first < height) {
                const auto done = static_cast<std::ptrdiff_t>(
                    kernel(rows[first], static_cast<std::size_t>((height - first) * blocks),
                           scales + first * blocks, elements + first * bytes, scaling, tensor_scale));
                const std::ptrdiff_t last = first + done / blocks;
                for (; first < last; ++first) copy(tile.first_vector + first, begin, first, elements, scales);
                if (first == height) break;
                // The vector with a block that is not finite.
                quantize_vector(tile, tile.first_vector + first, begin, begin + length);
                ++first;
            }
        }
        if (begin == tile.end) return;
        for (std::ptrdiff_t vector = tile.first_vector; vector < tile.last_vector; ++vector) {
            quantize_vector(tile, vector, begin, tile.end);
        }
    }

private:
    void copy(std::ptrdiff_t vector, std::ptrdiff_t begin, std::ptrdiff_t from, const std::byte* elements,
              const typename BlockScaled::scale_type* scales) const {
        std::memcpy(quantize_rest.elements(vector, begin), elements + from * bytes, bytes);
        std::memcpy(static_cast<void*>(quantize_rest.scales(vector, begin)), scales + from * blocks,
                    sizeof(scales[0]) * blocks);
    }
    void quantize_vector(const block_tile& tile, std::ptrdiff_t vector, std::ptrdiff_t begin,
                         std::ptrdiff_t end) const {
        const block_tile part{tile.index, vector, vector + 1, begin, end};
        while (begin < end) begin += quantize_rest(part, begin);
    }
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Quantises a matrix: a scale for every block from the largest magnitude in it, then every value divided by
/// its scale (exactly) and rounded once to an element. The same bits for every number of threads and every
/// instruction set.
///
/// A block of zeros has the smallest scale (2^-127 in the MX formats, as in torchao; 2^-9 in NVFP4), and so has
/// a block whose scale would be smaller; options.scale_floor selects another smallest scale. Signs of zeros are
/// kept. `BlockScaled` is one of the named formats (mxfp8_e4m3 ... nvfp4) or any other block_scaled.
///
/// Throws argument_error if the view is not that of a matrix, exec.threads is less than one, the processor
/// lacks exec.instructions, the tensor scale is given but not a positive normal float, or given to a format
/// that has none, or the format does not have options.rule, options.scale_floor or options.square_tiles.
///
///     auto q = mp::quantize<mp::mxfp8_e4m3>(mp::cpu{.threads = 4}, mp::row_major(x, rows, columns),
///                                           {.rule = mp::scale_rule::ceil});
///     constexpr mp::projection stochastic{mp::rounding::stochastic_a, mp::saturation::finite, 32};
///     auto r = mp::quantize<mp::nvfp4>(mp::cpu{}, mp::row_major(x, rows, columns),
///                                      {.element = stochastic, .seed = step});
template <class BlockScaled, class Value>
    requires number<std::remove_const_t<Value>>
[[nodiscard]] BlockScaled quantize(cpu exec, matrix_view<Value> from, const quantize_options& options = {}) {
    using number_type = std::remove_const_t<Value>;
    using wide = detail::block_wide<number_type>;
    using quantizer = detail::block_quantizer<BlockScaled, wide>;
    constexpr int block = BlockScaled::block_size;
    detail::check_threads("mp::quantize", exec);
    detail::check_block_view("mp::quantize", "from", from);
    detail::check_quantize_options<BlockScaled>("mp::quantize", options);
    const instruction_set isa = detail::isa_of("mp::quantize", exec);
    detail::block_vectors<const number_type> vectors(
        {from.data, from.rows, from.columns, from.leading_dimension, from.order}, options.direction);
    BlockScaled result(from.rows, from.columns, options.direction);
    if constexpr (BlockScaled::has_tensor_scale) {
        result.set_tensor_scale(
            is_zero(options.tensor_scale)
                ? detail::tensor_scale_for<typename BlockScaled::element_type,
                                           typename BlockScaled::scale_type>(
                      detail::largest_in<block>(exec, isa, vectors.as_they_lie()), options.rule)
                : options.tensor_scale);
    }
    const quantizer quantize_chunk(options, result.tensor_scale());
    if (detail::has_separate_scales(options)) {
        detail::choose_scales(exec, vectors, quantize_chunk, options, result);
    }
    const auto kernel =
        detail::quantize_kernel_for<BlockScaled, number_type>(isa, options.element, result.tensor_scale());
    if (kernel != nullptr) vectors.join(block);
    // Vectors side by side become rows of floats, which hold what has number vectors.
    const auto columns_kernel =
        vectors.vector_stride == 1 && vectors.position_stride != 1
            ? detail::quantize_kernel_for<BlockScaled, float>(isa, options.element, result.tensor_scale())
            : nullptr;
    const auto gather = detail::gather_columns_for<number_type>(isa);
    const detail::chunk_quantizer<BlockScaled, quantizer, number_type> quantize_rest(quantize_chunk, vectors,
                                                                                     result);
    const detail::column_quantizer<BlockScaled, decltype(quantize_rest), number_type> quantize_columns{
        quantize_rest, vectors, columns_kernel, gather, quantize_chunk.scaling(), result.tensor_scale()};
    const bool by_columns = columns_kernel != nullptr && gather != nullptr;
    const std::ptrdiff_t abreast = by_columns ? detail::columns_abreast : vectors.abreast();
    detail::for_tiles<block>(
        exec, vectors.count, vectors.length, abreast, [&](const detail::block_tile& tile) {
            const detail::default_floating_point_modes modes;
            if (by_columns) return quantize_columns(tile);
            std::ptrdiff_t begin = tile.begin;
            while (begin < tile.end) {
                if (kernel != nullptr && vectors.position_stride == 1) {
                    const std::ptrdiff_t vector = tile.first_vector;
                    const std::size_t done = kernel(
                        vectors.at(vector, begin), static_cast<std::size_t>((tile.end - begin) / block),
                        quantize_rest.scales(vector, begin), quantize_rest.elements(vector, begin),
                        quantize_chunk.scaling(), result.tensor_scale());
                    begin += static_cast<std::ptrdiff_t>(done) * block;
                    if (begin >= tile.end) break;
                }
                begin += quantize_rest(tile, begin);
            }
        });
    return result;
}

/// Overload for an array, as a matrix of one row.
template <class BlockScaled, detail::number_range Source>
[[nodiscard]] BlockScaled quantize(cpu exec, const Source& from, const quantize_options& options = {}) {
    const std::span source = detail::as_span(from);
    return quantize<BlockScaled>(
        exec, row_major(source.data(), 1, static_cast<std::ptrdiff_t>(source.size())), options);
}

}}  // namespace mp
