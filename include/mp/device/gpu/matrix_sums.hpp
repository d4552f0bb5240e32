// SPDX-License-Identifier: MIT
/// \file
/// Sums of terms over matrices without atomic operations: parts first, in the executor's workspace, then the parts. Over
/// the rows, one sum for each column: biases, gradients of weights. Over all elements, in double and in the order of
/// sum_all() of <mp/arrays/array/sums.hpp>, so with its bits.
#pragma once

#include <mp/arrays/array/sums.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/numbers/rules/float_float.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>
#include <mp/workspace.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Parts into which the rows are divided, and the rows of each: by the number of rows alone.
[[nodiscard]] constexpr std::ptrdiff_t column_sum_parts(std::ptrdiff_t rows) {
    constexpr std::ptrdiff_t rows_of_a_part = 64;
    constexpr std::ptrdiff_t most = 256;
    return std::clamp<std::ptrdiff_t>((rows + rows_of_a_part - 1) / rows_of_a_part, 1, most);
}

/// Bytes of the workspace for `sums` sums of each column.
[[nodiscard]] constexpr std::size_t column_sum_bytes(std::ptrdiff_t rows, std::ptrdiff_t columns, int sums) {
    return workspace::aligned_size(static_cast<std::size_t>(column_sum_parts(rows) * columns * sums) *
                                   sizeof(float_float));
}

/// Memory for the parts of `sums` sums of each column.
template <class Executor>
float_float* take_column_parts(std::string_view function, const Executor& exec, std::ptrdiff_t rows,
                               std::ptrdiff_t columns, int sums) {
    return take_workspace<float_float>(function, exec,
                                       static_cast<std::size_t>(column_sum_parts(rows) * columns * sums));
}

/// Sums of parts. A block has 32 chunks of columns, one for each lane, and a part of the rows: its eight
/// warps take one row after the other in turn. The sums of the warps are then added in their order.
///
/// Term has `width`, the columns of a chunk, `sums`, the number of sums, and
/// add(thread, row, column, columns, sums) for a chunk.
template <class Term>
struct column_parts_kernel {
    static constexpr int threads = row_threads;
    static constexpr int width = Term::width;
    static constexpr int warps = threads / simt::warp_size;
    static constexpr int block_columns = simt::warp_size * width;
    // In shared memory element i of lane l lies at i * stride + l. With this stride neighbouring columns,
    // which are read together, lie in different banks too.
    static constexpr int stride = simt::warp_size + 16 / width;
    static constexpr std::size_t shared_bytes = sizeof(float_float) * warps * width * stride;

    Term term;
    float_float* parts;  ///< [sum][part][column]
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t part_count;
    std::ptrdiff_t part_rows;

    /// Blocks side by side.
    [[nodiscard]] static std::ptrdiff_t column_blocks(std::ptrdiff_t columns) {
        return (columns + block_columns - 1) / block_columns;
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const std::ptrdiff_t across = (columns + block_columns - 1) / block_columns;
        const std::ptrdiff_t first_column = thread.block() % across * block_columns;
        const std::ptrdiff_t part = thread.block() / across;
        const std::ptrdiff_t first_row = part * part_rows;
        const std::ptrdiff_t end = first_row + part_rows < rows ? first_row + part_rows : rows;
        const std::ptrdiff_t column = first_column + thread.lane() * width;
        float_float sums[std::size_t{Term::sums}][std::size_t{width}] = {};
        if (column < columns) {
            for (std::ptrdiff_t row = first_row + thread.warp(); row < end; row += warps) {
                term.add(thread, row, column, columns, sums);
            }
        }
        const simt::shared_pointer<float_float> room{};
        MP_UNROLL
        for (int s = 0; s < Term::sums; ++s) {
            if (s != 0) thread.sync_block();
            MP_UNROLL
            for (int i = 0; i < width; ++i) {
                thread.store(room + ((thread.warp() * width + i) * stride + thread.lane()), sums[s][i]);
            }
            thread.sync_block();
            for (int c = thread.index(); c < block_columns; c += threads) {
                if (first_column + c >= columns) break;
                float_float total{};
                for (int w = 0; w < warps; ++w) {
                    total = total + thread.load(room + ((w * width + c % width) * stride + c / width));
                }
                thread.store(parts + ((s * part_count + part) * columns + first_column + c), total);
            }
        }
    }
};

/// results[c] = the sum of the parts in their order, rounded to float, divided by the divisor, and rounded
/// from there to Result.
template <class Result>
struct column_totals_kernel {
    static constexpr int threads = row_threads;
    const float_float* parts;
    Result* results;
    std::ptrdiff_t columns;
    std::ptrdiff_t part_count;
    float divisor;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const std::ptrdiff_t step = thread.blocks() * threads;
        for (std::ptrdiff_t c = thread.block() * threads + thread.index(); c < columns; c += step) {
            float_float total{};
            for (std::ptrdiff_t part = 0; part < part_count; ++part) {
                total = total + thread.load(parts + (part * columns + c));
            }
            thread.store(results + c, static_cast<Result>(float_divide(total.value(), divisor)));
        }
    }
};

/// Enqueues the sums of parts of a term into the workspace, which has room for them.
template <class Executor, class Term>
void launch_column_parts(std::string_view function, const Executor& exec, const Term& term,
                         std::ptrdiff_t rows, std::ptrdiff_t columns, float_float* parts) {
    using kernel = column_parts_kernel<Term>;
    const std::ptrdiff_t count = column_sum_parts(rows);
    launch(function, exec,
           simt::launch_size{.blocks = kernel::column_blocks(columns) * count,
                             .shared_bytes = kernel::shared_bytes},
           kernel{term, parts, rows, columns, count, (rows + count - 1) / count});
}
/// Enqueues the sums of the parts of sum number `sum`.
template <class Executor, class Result>
void launch_column_totals(std::string_view function, const Executor& exec, const float_float* parts, int sum,
                          std::ptrdiff_t rows, std::span<Result> results, float divisor = 1.0F) {
    const auto columns = static_cast<std::ptrdiff_t>(results.size());
    const std::ptrdiff_t count = column_sum_parts(rows);
    launch(
        function, exec, simt::launch_size{.blocks = (columns - 1) / row_threads + 1},
        column_totals_kernel<Result>{parts + sum * count * columns, results.data(), columns, count, divisor});
}

/// The parts of a matrix, which has been transposed where sums_transposed() says so.
struct sum_parts {
    std::ptrdiff_t across;
    std::ptrdiff_t count;

    constexpr sum_parts(std::ptrdiff_t rows, std::ptrdiff_t columns)
        : across((columns + sum_part_columns - 1) / sum_part_columns),
          count(across * ((rows + sum_part_rows - 1) / sum_part_rows)) {}
};

/// Bytes of the workspace for the sum over a matrix of this shape.
[[nodiscard]] constexpr std::size_t sum_all_bytes(std::ptrdiff_t rows, std::ptrdiff_t columns) {
    const sum_parts parts =
        sums_transposed(rows, columns) ? sum_parts(columns, rows) : sum_parts(rows, columns);
    return workspace::aligned_size(static_cast<std::size_t>(parts.count) * sizeof(double));
}

/// Sums of parts. A thread adds up a column of a part, and then one of them the columns.
///
/// Term has value(thread, row, column), a double.
template <class Term>
struct sum_parts_kernel {
    static constexpr int threads = row_threads;
    static constexpr auto part_threads = static_cast<int>(sum_part_columns);
    static constexpr int parts_of_block = threads / part_threads;
    static constexpr std::size_t shared_bytes = threads * sizeof(double);
    static constexpr int in_flight = 8;
    Term term;
    double* sums;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t across;
    std::ptrdiff_t count;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        using number = rounded_doubles<1>;
        const std::ptrdiff_t part = thread.block() * parts_of_block + thread.index() / part_threads;
        const std::ptrdiff_t column = part % across * sum_part_columns + thread.index() % part_threads;
        const std::ptrdiff_t first = part / across * sum_part_rows;
        const std::ptrdiff_t end = first + sum_part_rows < rows ? first + sum_part_rows : rows;
        number sum = 0.0;
        if (part < count && column < columns) {
            std::ptrdiff_t row = first;
            for (; row + in_flight <= end; row += in_flight) {
                double terms[in_flight];
                MP_UNROLL
                for (int k = 0; k < in_flight; ++k) terms[k] = term.value(thread, row + k, column);
                MP_UNROLL
                for (int k = 0; k < in_flight; ++k) sum += terms[k];
            }
            for (; row < end; ++row) sum += term.value(thread, row, column);
        }
        const simt::shared_pointer<double> room{};
        thread.store(room + thread.index(), sum.value());
        thread.sync_block();
        if (part >= count || thread.index() % part_threads != 0) return;
        number total = 0.0;
        for (int k = 0; k < part_threads; ++k) total += thread.load(room + (thread.index() + k));
        thread.store(sums + part, total.value());
    }
};

/// *result = finish(the sum of the parts in their order). One block, of which one thread adds.
///
/// Finish is a function of a double.
template <class Result, class Finish>
struct sum_total_kernel {
    static constexpr int threads = row_threads;
    static constexpr std::size_t shared_bytes = threads * sizeof(double);
    const double* sums;
    Result* result;
    std::ptrdiff_t count;
    Finish finish;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const simt::shared_pointer<double> room{};
        rounded_doubles<1> total = 0.0;
        for (std::ptrdiff_t first = 0; first < count; first += threads) {
            // What is past the end changes no sum, which is never -0.
            const std::ptrdiff_t i = first + thread.index();
            thread.store(room + thread.index(), i < count ? thread.load(sums + i) : 0.0);
            thread.sync_block();
            if (thread.index() == 0) {
                for (int k = 0; k < threads; ++k) total += thread.load(room + k);
            }
            thread.sync_block();
        }
        if (thread.index() == 0) thread.store(result, static_cast<Result>(finish(total.value())));
    }
};

/// Enqueues *result = finish(the sum of the terms). The shape is that after sums_transposed().
template <class Executor, class Term, class Result, class Finish>
void launch_sum_all(std::string_view function, const Executor& exec, const Term& term, std::ptrdiff_t rows,
                    std::ptrdiff_t columns, Result* result, const Finish& finish) {
    using kernel = sum_parts_kernel<Term>;
    using total_kernel = sum_total_kernel<Result, Finish>;
    const sum_parts parts(rows, columns);
    const workspace::frame frame(workspace_of(exec));
    auto* const sums = take_workspace<double>(function, exec, static_cast<std::size_t>(parts.count));
    launch(function, exec,
           simt::launch_size{.blocks = (parts.count - 1) / kernel::parts_of_block + 1,
                             .shared_bytes = kernel::shared_bytes},
           kernel{term, sums, rows, columns, parts.across, parts.count});
    launch(function, exec, simt::launch_size{.shared_bytes = total_kernel::shared_bytes},
           total_kernel{sums, result, parts.count, finish});
}

}}  // namespace mp::detail
