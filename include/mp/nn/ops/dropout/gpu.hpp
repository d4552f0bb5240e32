// SPDX-License-Identifier: MIT
/// \file
/// Dropout on a GPU: the mask and the bits of the CPU.
#pragma once

#include <mp/arrays/array/for_each_element.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/dropout.hpp>
#include <mp/nn/ops/dropout/mask.hpp>
#include <mp/nn/ops/gpu_casts.hpp>
#include <mp/numbers/format/philox.hpp>
#include <mp/numbers/rules/random_words.hpp>

#include <cstddef>
#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// to = from under a mask. Element (r, c) has the random word with the index
/// first + r * row_words + c * column_words, and what is at `added`.
template <class To, class From>
struct dropout_kernel {
    static constexpr int threads = row_threads;
    static constexpr int width = row_chunk<To, From>;
    row_matrix<To> to;
    row_matrix<const From> from;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::uint64_t first;
    const std::uint64_t* added;  ///< or null
    std::uint64_t row_words;
    std::uint64_t column_words;
    dropout_mask mask;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const std::ptrdiff_t across = (columns + width - 1) / width;
        const std::ptrdiff_t step = thread.blocks() * threads;
        const std::uint64_t begin = added == nullptr ? first : first + thread.load(added);
        for (std::ptrdiff_t i = thread.block() * threads + thread.index(); i < rows * across; i += step) {
            const std::ptrdiff_t row = rows == 1 ? 0 : i / across;
            const std::ptrdiff_t column = (i - row * across) * width;
            row_floats<width> values = load_row_floats<width>(thread, from, row, column, columns);
            const std::uint64_t word = begin + static_cast<std::uint64_t>(row) * row_words +
                                       static_cast<std::uint64_t>(column) * column_words;
            if (column_words == 1) {
                drop_neighbours(values, word);
            } else {
                MP_UNROLL
                for (int k = 0; k < width; ++k) {
                    const std::uint64_t index = word + static_cast<std::uint64_t>(k) * column_words;
                    values.values[k] = mask.applied(values.values[k], random_bits(mask.seed, index));
                }
            }
            store_row_floats(thread, to, row, column, columns, values);
        }
    }

private:
    /// With the words from this one on, of which four make a block.
    MP_HOST_DEVICE MP_ALWAYS_INLINE void drop_neighbours(row_floats<width>& values,
                                                         std::uint64_t word) const {
        const std::uint64_t block = word / 4;
        const auto skipped = static_cast<unsigned>(word % 4);
        philox4x32 words = random_block(mask.seed, block);
        MP_UNROLL
        for (int k = 0; k < width; k += 4) {
            // The words k to k + 3 are the rest of one block and the beginning of the next one.
            philox4x32 next = words;
            if (skipped != 0 || k + 4 < width) {
                const auto following = block + static_cast<std::uint64_t>(k / 4 + 1);
                next = random_block(mask.seed, following & last_random_block);
            }
            MP_UNROLL
            for (int j = 0; j < 4 && k + j < width; ++j) {
                // An index that is no constant would put the words into memory.
                std::uint32_t chosen = words.word[j];
                MP_UNROLL
                for (int by = 1; by < 4; ++by) {
                    const std::uint32_t shifted =
                        j + by < 4 ? words.word[(j + by) % 4] : next.word[(j + by) % 4];
                    if (skipped == static_cast<unsigned>(by)) chosen = shifted;
                }
                values.values[k + j] = mask.applied(values.values[k + j], chosen);
            }
            words = next;
        }
    }
};

/// apply_dropout() of the CPU, enqueued.
template <gpu_executor Executor, class From, class To>
void apply_dropout(dropout_walk, const Executor& exec, matrix_view<const From> from, matrix_view<To> to,
                   const ops::dropout_options& options) {
    if (to.rows == 0 || to.columns == 0) return;
    using kernel = dropout_kernel<To, From>;
    constexpr int width = kernel::width;
    const auto enqueue = [&](auto out, auto in, std::ptrdiff_t row_words, std::ptrdiff_t column_words) {
        launch("mp::ops::dropout", exec, chunk_launch(out.rows, out.columns, width),
               kernel{rows_of<width>(out), rows_of<width>(in), out.rows, out.columns, options.offset,
                      options.added_offset, static_cast<std::uint64_t>(row_words),
                      static_cast<std::uint64_t>(column_words), dropout_mask(options)});
    };
    if (to.order == storage_order::column_major) {
        enqueue(transposed(to), transposed(from), std::ptrdiff_t{1}, to.columns);
    } else if (to.rows > 1 && is_one_vector(to, from)) {
        enqueue(as_one_vector(to), as_one_vector(from), std::ptrdiff_t{0}, std::ptrdiff_t{1});
    } else {
        enqueue(to, from, to.columns, std::ptrdiff_t{1});
    }
}

}}  // namespace mp::detail
