// SPDX-License-Identifier: MIT
/// \file
/// Heads brought into the other layout on a GPU, all of them in one launch. (Parts that are put together or
/// taken apart are a launch each, of <mp/device/gpu/map_elements.hpp>.)
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/map_elements.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/gpu_casts.hpp>
#include <mp/nn/ops/rearrange.hpp>

#include <cstddef>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Each thread has chunks of rows of the stacked heads, which lie side by side in the other matrix.
template <class X, class Y>
struct permute_heads_kernel {
    static constexpr int threads = row_threads;
    static constexpr int width = row_chunk<X, Y>;
    row_matrix<const X> from;
    row_matrix<Y> to;
    std::ptrdiff_t stacked_rows;
    std::ptrdiff_t heads;
    std::ptrdiff_t tokens;
    std::ptrdiff_t head_dim;
    bool to_stacked;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const std::ptrdiff_t across = (head_dim + width - 1) / width;
        const std::ptrdiff_t step = thread.blocks() * threads;
        std::ptrdiff_t i = thread.block() * threads + thread.index();
        for (; i < stacked_rows * across; i += step) {
            const std::ptrdiff_t row = i / across;
            const std::ptrdiff_t column = (i - row * across) * width;
            const std::ptrdiff_t sequence_head = row / tokens;  // the head of a sequence
            const std::ptrdiff_t sequence = sequence_head / heads;
            const std::ptrdiff_t other_row = sequence * tokens + (row - sequence_head * tokens);
            const std::ptrdiff_t first = (sequence_head - sequence * heads) * head_dim;
            if (to_stacked) {
                store_row_floats(
                    thread, to, row, column, head_dim,
                    load_row_floats<width>(thread, from, other_row, first + column, first + head_dim));
            } else {
                store_row_floats(thread, to, other_row, first + column, first + head_dim,
                                 load_row_floats<width>(thread, from, row, column, head_dim));
            }
        }
    }
};

/// permute() of the CPU, enqueued.
template <gpu_executor Executor, class X, class Y>
void permute(head_permutation, const Executor& exec, matrix_view<const X> x, matrix_view<Y> y,
             const ops::permute_heads_options& options, bool to_stacked) {
    if (x.rows == 0 || x.columns == 0) return;
    using kernel = permute_heads_kernel<X, Y>;
    constexpr int width = kernel::width;
    const std::ptrdiff_t stacked_rows = to_stacked ? y.rows : x.rows;
    const std::ptrdiff_t head_dim = to_stacked ? y.columns : x.columns;
    row_matrix<const X> from = rows_of<width>(x);
    row_matrix<Y> to = rows_of<width>(y);
    // Heads that lie side by side begin at chunks, too.
    const bool fits = head_dim % width == 0;
    from.wide = from.wide && fits;
    to.wide = to.wide && fits;
    launch("mp::ops::permute_heads", exec, chunk_launch(stacked_rows, head_dim, width),
           kernel{from, to, stacked_rows, options.heads, stacked_rows / (options.batch * options.heads),
                  head_dim, to_stacked});
}

}}  // namespace mp::detail
