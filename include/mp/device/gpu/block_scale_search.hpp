// SPDX-License-Identifier: MIT
/// \file
/// Scales of blocks on a GPU that do not follow from the largest magnitude of one block alone: those of square
/// tiles, and the better one of two by its error, with the bits of <mp/arrays/convert/block_scale_search.hpp>.
#pragma once

#include <mp/arrays/convert/block_quantizer.hpp>
#include <mp/device/gpu/block_encoding.hpp>
#include <mp/device/gpu/block_scaled_span.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/rules/block_scales.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A thread has a block. Neighbouring threads have the blocks of a tile, and combine what they find by shuffles.
template <class BlockScaled, class Value>
struct block_scale_kernel {
    using element = typename BlockScaled::element_type;
    using scale = typename BlockScaled::scale_type;
    static constexpr int threads = row_threads;
    static constexpr int block = BlockScaled::block_size;
    static constexpr int width = (std::min)(row_chunk<Value>, block);

    row_matrix<const Value> vectors;
    std::ptrdiff_t count;
    std::ptrdiff_t length;
    scale* scales;
    const float* tensor_scale;  ///< null for 1
    block_scale_choice<BlockScaled> choice;
    int height;  ///< blocks of a tile, 1 or block

    [[nodiscard]] MP_HOST_DEVICE std::ptrdiff_t blocks_per_vector() const {
        return (length + block - 1) / block;
    }
    /// Threads that have work, or would have if the last tiles were whole.
    [[nodiscard]] MP_HOST_DEVICE std::ptrdiff_t items() const {
        return (count + height - 1) / height * height * blocks_per_vector();
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        float tensor = 1.0F;
        if constexpr (BlockScaled::has_tensor_scale) tensor = thread.load(tensor_scale);
        const std::ptrdiff_t step = thread.blocks() * threads;
        // All lanes of a warp repeat the loop equally often.
        for (std::ptrdiff_t first = thread.block() * threads + thread.index() - thread.lane();
             first < items(); first += step) {
            const std::ptrdiff_t item = first + thread.lane();
            const std::ptrdiff_t tile = item / height;
            const std::ptrdiff_t vector = tile / blocks_per_vector() * height + item % height;
            const std::ptrdiff_t b = tile % blocks_per_vector();
            const bool exists = item < items() && vector < count;
            double magnitudes[std::size_t{block}] = {};
            std::uint32_t largest = 0;
            if (exists) largest = load(thread, vector, b * block, magnitudes);
            for (int distance = height / 2; distance != 0; distance /= 2) {
                const std::uint32_t other = thread.shuffle_xor(largest, distance);
                largest = largest < other ? other : largest;
            }
            std::uint8_t code = choice.code(largest, tensor);
            if constexpr (has_four_over_six<BlockScaled>) {
                if (is_four_over_six(choice.scaling.rule)) {
                    const std::uint8_t four =
                        largest == 0 || largest >= 0x7F80'0000U
                            ? code
                            : float_scale_code<element, scale>(largest, tensor, choice.scaling, 4.0);
                    const double error_of_six = error(thread, magnitudes, code, tensor);
                    if (error(thread, magnitudes, four, tensor) < error_of_six) code = four;
                }
            }
            if (exists) thread.store(scales + (vector * blocks_per_vector() + b), scale::from_bits(code));
        }
    }

private:
    /// The finite magnitudes of a block, and the largest code that counts for the scale.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE std::uint32_t load(
        Thread thread, std::ptrdiff_t vector, std::ptrdiff_t begin,
        double (&magnitudes)[std::size_t{block}]) const {
        std::uint32_t largest = 0;
        MP_UNROLL
        for (int i = 0; i < block; i += width) {
            const row_floats<width> values =
                load_row_floats<width>(thread, vectors, vector, begin + i, length);
            MP_UNROLL
            for (int k = 0; k < width; ++k) {
                const std::uint32_t code = choice.magnitude(values.values[k]);
                largest = largest < code ? code : largest;
                const std::uint32_t bits = bit_cast<std::uint32_t>(values.values[k]) & 0x7FFF'FFFFU;
                if (bits < 0x7F80'0000U) magnitudes[i + k] = double_from_float(bit_cast<float>(bits));
            }
        }
        return largest;
    }

    /// The error of the tile with this scale, which is NaN if that is, and then less than no other.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE double error(Thread thread,
                                                               const double (&magnitudes)[std::size_t{block}],
                                                               std::uint8_t code, float tensor) const {
        const double divisor = double_multiply(double_from_float(static_cast<float>(scale::from_bits(code))),
                                               double_from_float(tensor));
        double sum = block_error<coding_format<element>>(
            magnitudes, divisor, choice.scaling.rule == scale_rule::four_over_six_mse);
        for (int distance = height / 2; distance != 0; distance /= 2) {
            sum = double_add(sum, thread.shuffle_xor(sum, distance));
        }
        return sum;
    }
};

/// Writes the scales of all blocks of a matrix.
template <class Executor, class Value, class BlockScaled>
void choose_block_scales(Executor exec, matrix_view<const Value> from,
                         const block_scaled_span<BlockScaled>& to, const quantize_options& options) {
    using kernel_type = block_scale_kernel<BlockScaled, Value>;
    const kernel_type kernel{
        rows_of<kernel_type::width>(to.direction == block_direction::along_rows ? from : transposed(from)),
        to.vector_count(),
        to.vector_length(),
        to.scales.data(),
        to.tensor_scale,
        block_scale_choice<BlockScaled>(options),
        options.square_tiles ? kernel_type::block : 1};
    const std::ptrdiff_t blocks = (kernel.items() - 1) / row_threads + 1;
    launch("mp::quantize", exec,
           simt::launch_size{.blocks = (std::min)(blocks, static_cast<std::ptrdiff_t>(most_blocks))}, kernel);
}

}}  // namespace mp::detail
