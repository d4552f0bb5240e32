// SPDX-License-Identifier: MIT
/// \file
/// The sum of the slices of a product whose k was divided among blocks of threads.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/gemm/output.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/gemm/tile_epilogue.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <cstddef>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Adds the slices of the sums, in their order, and ends the elements of C. Slice s of matrix b of a batch is
/// a matrix of c.rows x c.columns floats, number b * splits + s behind `sums`. The float sums are rounded to
/// nearest even, from the first slice on; so the result depends on the number of slices, but not on the
/// schedule.
template <class Output, class Epilogue>
struct split_sum_kernel {
    static constexpr int threads = 256;
    static constexpr int count = output_chunk<Output>;

    product_output<Output, Epilogue> c;
    const float* sums;
    std::ptrdiff_t splits;
    std::ptrdiff_t batch;

    [[nodiscard]] MP_HOST_DEVICE std::ptrdiff_t chunks_across() const { return tile_count(c.columns, count); }
    [[nodiscard]] std::ptrdiff_t blocks() const {
        return tile_count(chunks_across() * c.rows * batch, threads);
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        tile_state<Epilogue> state;
        const std::ptrdiff_t number = thread.block() * threads + thread.index();
        if (number / chunks_across() < c.rows * batch) finish_number(thread, number, state);
        tile_epilogue<Epilogue>::finish(thread, c.epilogue, state);
    }

private:
    /// Ends the chunk of this number.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void finish_number(Thread thread, std::ptrdiff_t number,
                                                       tile_state<Epilogue>& state) const {
        const std::ptrdiff_t output_row = number / chunks_across();
        const std::ptrdiff_t matrix = output_row / c.rows;
        const std::ptrdiff_t row = output_row % c.rows;
        const std::ptrdiff_t column = number % chunks_across() * count;
        float total[std::size_t{count}] = {};
        for (std::ptrdiff_t split = 0; split < splits; ++split) {
            const float* const from =
                sums + (((matrix * splits + split) * c.rows + row) * c.columns + column);
            for (int i = 0; i < count; ++i) {
                if (column + i >= c.columns) continue;
                const float slice = thread.load(from + i);
                total[i] = split == 0 ? slice : float_add(total[i], slice);
            }
        }
        product_output<Output, Epilogue> output = c;
        output.data += matrix * c.batch_stride;
        finish_chunk(thread, output, total, row, column, state);
    }
};

}}  // namespace mp::detail
