// SPDX-License-Identifier: MIT
/// \file
/// What a classifier answers, and how often that is right.
#pragma once

#include <mp/base/contiguous.hpp>
#include <mp/config.hpp>
#include <mp/executor.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/softmax_cross_entropy.hpp>
#include <mp/numbers/format/operations.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#if MP_CORE_BODIES
#include <mp/arrays/array/for_each_element.hpp>
#include <mp/arrays/array/parallel.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#endif

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Writes the column of the largest value of each row, the first of equals, to integers of `bytes` bytes. NaN counts as larger
/// than any number.
MP_CORE_FUNCTION void find_largest_columns(const cpu& exec, const any_matrix& values, void* columns,
                                           std::size_t bytes);
/// Returns the fraction of rows of which the largest value is in the column of the label and no NaN.
[[nodiscard]] MP_CORE_FUNCTION double fraction_of_right_labels(const cpu& exec, const any_matrix& values,
                                                               const any_integers& labels);

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Tag by which write_largest_columns() of GPUs is found.
struct argmax_rows {};

#if MP_CORE_BODIES
template <class Real>
[[nodiscard]] std::ptrdiff_t largest_column(const Real* row, std::ptrdiff_t columns) {
    std::ptrdiff_t best = 0;
    for (std::ptrdiff_t c = 0; c < columns; ++c) {
        if (isnan(row[c])) return c;
        if (row[c] > row[best]) best = c;
    }
    return best;
}

/// Calls f(row, column of its largest value, whether that is NaN) for every row.
template <class Real, class Function>
void for_each_largest_column(const cpu& exec, const any_matrix& values, Function f) {
    const auto columns = static_cast<std::size_t>(values.columns);
    thread_buffers<Real> buffers(exec, columns);
    parallel_arithmetic(exec, static_cast<std::size_t>(values.rows), 1 + 16384 / columns,
                        [&](std::size_t begin, std::size_t end) {
                            Real* const scratch = buffers.take();
                            for (auto row = static_cast<std::ptrdiff_t>(begin);
                                 row < static_cast<std::ptrdiff_t>(end); ++row) {
                                const Real* const from = reals_of_row(values, row, scratch);
                                const std::ptrdiff_t best = largest_column(from, values.columns);
                                f(row, best, isnan(from[best]));
                            }
                        });
}
template <class Function>
void for_each_largest(const cpu& exec, const any_matrix& values, Function f) {
    if (values.type->is_double) {
        for_each_largest_column<double>(exec, values, f);
    } else {
        for_each_largest_column<float>(exec, values, f);
    }
}
#endif

}}  // namespace mp::detail

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION void find_largest_columns(const cpu& exec, const any_matrix& values, void* columns,
                                           std::size_t bytes) {
    for_each_largest(exec, values, [=](std::ptrdiff_t row, std::ptrdiff_t column, bool /*is_nan*/) {
        switch (bytes) {
            case 1:
                static_cast<std::uint8_t*>(columns)[row] = static_cast<std::uint8_t>(column);
                break;
            case 2:
                static_cast<std::uint16_t*>(columns)[row] = static_cast<std::uint16_t>(column);
                break;
            case 4:
                static_cast<std::uint32_t*>(columns)[row] = static_cast<std::uint32_t>(column);
                break;
            default:
                static_cast<std::uint64_t*>(columns)[row] = static_cast<std::uint64_t>(column);
                break;
        }
    });
}
MP_CORE_FUNCTION double fraction_of_right_labels(const cpu& exec, const any_matrix& values,
                                                 const any_integers& labels) {
    const default_floating_point_modes modes;
    cpu alone = exec;
    alone.threads = 1;
    std::size_t right = 0;
    for_each_largest(alone, values, [&](std::ptrdiff_t row, std::ptrdiff_t column, bool is_nan) {
        if (labels[static_cast<std::size_t>(row)] == column && !is_nan) ++right;
    });
    return modes.held(double_divide(static_cast<double>(right), static_cast<double>(labels.size)));
}

}}  // namespace mp::detail
#endif

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// indices[r] = the column of the largest value in row r; the first of equals, and the first NaN where there
/// is one. values is a matrix view with at least one column, in any storage order; indices is a contiguous
/// range of values.rows integers. Autocast has no part in it. Throws argument_error for sizes that do not fit,
/// invalid views and indices that overlap values; indices is then unchanged. On CPUs and, with
/// <mp/nn/ops/argmax/gpu.hpp>, on GPUs, where values are no doubles and indices lie in device memory, too.
template <executor Executor = cpu, element Value, detail::contiguous Indices>
void argmax(const Executor& exec, matrix_view<Value> values, Indices&& indices) {
    constexpr std::string_view function = "mp::ops::argmax";
    using index = detail::contiguous_element<Indices>;
    static_assert(std::integral<index>,
                  "mp::ops::argmax: indices is a range of integers that can be written");
    static_assert(!detail::any_double<Value> || std::same_as<Executor, cpu>,
                  "mp::ops::argmax: a GPU computes in float; doubles are for mp::cpu");
    const std::span<index> results = detail::as_span(indices);
    const matrix_view<const Value> input = detail::input_view(values);
    const auto operand = detail::named("values", input);
    detail::check_executor(function, exec);
    detail::check_operand(function, operand);
    if (values.columns == 0) detail::throw_argument(function, "values.columns", 0, "must be at least 1");
    const auto written = detail::named("indices", results);
    detail::check_size(function, written, values.rows, "values.rows");
    detail::check_separate(function, written, operand);
    if (!std::in_range<index>(values.columns - 1)) {
        detail::throw_argument(function, "values.columns", values.columns,
                               "must be small enough for the type of indices");
    }
    if constexpr (std::same_as<Executor, cpu>) {
        detail::find_largest_columns(exec, detail::any_matrix_of(input), results.data(), sizeof(index));
    } else {
        write_largest_columns(detail::argmax_rows{}, exec, input, results);
    }
}

/// The share of rows, from 0 to 1, whose largest value is in the column that labels names; the first of
/// equals, and a row with NaN is never right. Shapes and errors are those of softmax_cross_entropy().
template <element Logit, detail::contiguous Labels>
double accuracy(cpu exec, matrix_view<Logit> logits, const Labels& labels) {
    constexpr std::string_view function = "mp::ops::accuracy";
    const auto input = detail::input_view(logits);
    const auto expected = detail::integers_for<cpu>(labels);
    const auto operand = detail::named("logits", input);
    detail::check_threads(function, exec);
    detail::check_logits(function, operand);
    detail::check_labels(function, exec, operand, expected);
    return detail::fraction_of_right_labels(exec, detail::any_matrix_of(input), expected);
}

}}  // namespace mp::ops
