// SPDX-License-Identifier: MIT
/// \file
/// The sum of a term over all elements of matrices on a GPU, in double and in the order of sum_all() of
/// <mp/arrays/array/sums.hpp>, so with its bits: parts first, in the executor's workspace, then their sum.
#pragma once

#include <mp/arrays/array/sums.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>
#include <mp/workspace.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

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
