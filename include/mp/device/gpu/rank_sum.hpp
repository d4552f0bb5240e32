// SPDX-License-Identifier: MIT
/// \file
/// Sums of what came from several ranks, on a GPU.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <cstddef>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// to[i] = the sum over r of parts[r][i] in float and in the order of the rows, over `divisor`, rounded once.
template <class Wire, class To>
struct rank_sum_kernel {
    static constexpr int threads = row_threads;
    static constexpr int width = row_chunk<Wire, To>;
    row_matrix<const Wire> parts;
    row_matrix<To> to;
    int ranks;
    std::ptrdiff_t count;
    float divisor;  ///< 1 for the sum

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const std::ptrdiff_t step = thread.blocks() * threads;
        for (std::ptrdiff_t i = thread.block() * threads + thread.index(); i * width < count; i += step) {
            row_floats<width> sum = load_row_floats<width>(thread, parts, 0, i * width, count);
            for (int r = 1; r < ranks; ++r) {
                const row_floats<width> term = load_row_floats<width>(thread, parts, r, i * width, count);
                MP_UNROLL
                for (int j = 0; j < width; ++j) sum.values[j] = float_add(sum.values[j], term.values[j]);
            }
            MP_UNROLL
            for (int j = 0; j < width; ++j) sum.values[j] = float_divide(sum.values[j], divisor);
            store_row_floats(thread, to, 0, i * width, count, sum);
        }
    }
};

/// The rows of `parts`, one a rank, become one row of the same length.
template <gpu_executor Executor, class Wire, class To>
void sum_over_ranks(std::string_view name, const Executor& exec, matrix_view<const Wire> parts,
                    matrix_view<To> to, bool mean) {
    if (parts.columns == 0) return;
    using kernel = rank_sum_kernel<Wire, To>;
    launch(name, exec, chunk_launch(1, parts.columns, kernel::width),
           kernel{rows_of<kernel::width>(parts), rows_of<kernel::width>(to), static_cast<int>(parts.rows),
                  parts.columns, mean ? static_cast<float>(parts.rows) : 1.0F});
}

}}  // namespace mp::detail
