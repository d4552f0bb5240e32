// SPDX-License-Identifier: MIT
/// \file
/// Scales that do not follow from the largest magnitude of one block alone: those of square tiles, and the better
/// one of two by its error. They are chosen before the elements are encoded.
#pragma once

#include <mp/arrays/convert/block_quantizer.hpp>
#include <mp/numbers/rules/block_scales.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Chooses the scales of tiles of `Height` blocks that lie side by side, of which the last ones may be missing.
template <class BlockScaled, class Wide>
class scale_search {
public:
    using quantizer = block_quantizer<BlockScaled, Wide>;
    using element = typename BlockScaled::element_type;
    using scale = typename BlockScaled::scale_type;
    using format = coding_format<element>;
    static constexpr int block = BlockScaled::block_size;
    /// Most blocks of a tile.
    static constexpr int most_rows = 32;

    scale_search(const quantizer& quantize, scale_rule rule, float tensor_scale)
        : quantize_(quantize), rule_(rule), tensor_scale_(tensor_scale) {}

    /// The code of the scale of rows[0] ... rows[count - 1], a block each.
    std::uint8_t operator()(const Wide* const* rows, std::ptrdiff_t count) const {
        storage_of<wide_format<Wide>> largest = 0;
        for (std::ptrdiff_t r = 0; r < count; ++r) {
            largest =
                (std::max)(largest, quantize_.amax(rows[r], largest_magnitude<std::size_t{block}>(rows[r])));
        }
        const std::uint8_t six = quantize_.scale_code_of(largest);
        if constexpr (has_four_over_six<BlockScaled>) {
            if (!is_four_over_six(rule_) || largest >= wide_infinity<Wide>) return six;
            const std::uint8_t four = quantize_.scale_code_of(largest, exact_value{false, 2, 1});
            return four != six && error(rows, count, four) < error(rows, count, six) ? four : six;
        } else {
            return six;
        }
    }

private:
    /// The sum of the errors of the finite values with this scale: of each block, and of these sums.
    [[nodiscard]] double error(const Wide* const* rows, std::ptrdiff_t count, std::uint8_t code) const {
        constexpr std::size_t padded = std::bit_ceil(static_cast<std::size_t>(block));
        const double divisor =
            static_cast<double>(scale::from_bits(code)) * static_cast<double>(tensor_scale_);
        double of_rows[most_rows] = {};
        for (std::ptrdiff_t r = 0; r < count; ++r) {
            double magnitudes[padded] = {};
            for (std::size_t i = 0; i < std::size_t{block}; ++i) {
                const auto magnitude = magnitude_of(rows[r][i]);
                if (magnitude < wide_infinity<Wide>)
                    magnitudes[i] = round_to<double>(bit_cast<Wide>(magnitude));
            }
            of_rows[r] = block_error<format>(magnitudes, divisor, rule_ == scale_rule::four_over_six_mse);
        }
        return count == 1 ? of_rows[0] : sum_by_halves(of_rows);
    }

    const quantizer& quantize_;
    scale_rule rule_;
    float tensor_scale_;
};

/// Writes the scales of all blocks of a matrix.
template <class Number, class Quantizer, class BlockScaled>
void choose_scales(cpu exec, const block_vectors<const Number>& vectors, const Quantizer& quantize,
                   const quantize_options& options, BlockScaled& result) {
    using wide = block_wide<Number>;
    using scale = typename BlockScaled::scale_type;
    using search_type = scale_search<BlockScaled, wide>;
    constexpr std::ptrdiff_t block = BlockScaled::block_size;
    using chunk = block_chunk<BlockScaled::block_size>;
    const search_type search(quantize, options.rule, result.tensor_scale());
    const std::ptrdiff_t height = options.square_tiles ? block : 1;
    const std::ptrdiff_t abreast = options.square_tiles ? block : vectors.abreast();
    const std::ptrdiff_t per_vector = result.blocks_per_vector();
    for_tiles<BlockScaled::block_size>(
        exec, vectors.count, vectors.length, abreast, [&](const block_tile& tile) {
            const default_floating_point_modes modes;
            wide values[vectors_abreast][chunk::padded];
            for (std::ptrdiff_t begin = tile.begin; begin < tile.end; begin += chunk::elements) {
                const std::ptrdiff_t count = (std::min)(chunk::elements, tile.end - begin);
                read_vectors(vectors, tile, begin, count, values);
                for (std::ptrdiff_t first = tile.first_vector; first < tile.last_vector; first += height) {
                    const std::ptrdiff_t rows = (std::min)(height, tile.last_vector - first);
                    for (std::ptrdiff_t at = 0; at < count; at += block) {
                        const wide* blocks[search_type::most_rows] = {};
                        for (std::ptrdiff_t r = 0; r < rows; ++r) {
                            blocks[r] = values[first + r - tile.first_vector] + at;
                        }
                        const scale chosen = scale::from_bits(search(blocks, rows));
                        for (std::ptrdiff_t r = first; r < first + rows; ++r) {
                            result.scales()[static_cast<std::size_t>(r * per_vector + (begin + at) / block)] =
                                chosen;
                        }
                    }
                }
            }
        });
}

}}  // namespace mp::detail
