// SPDX-License-Identifier: MIT
/// \file
/// What a classifier answers, and how often that is right.
#pragma once

#include <mp/arrays/array/parallel.hpp>
#include <mp/base/contiguous.hpp>
#include <mp/base/parallel.hpp>
#include <mp/executor.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/softmax_cross_entropy.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Column of the largest value of a row; the first of equals. NaN counts as larger than any number.
template <class Value>
std::ptrdiff_t largest_column(matrix_view<const Value> values, std::ptrdiff_t row) {
    std::ptrdiff_t best = 0;
    for (std::ptrdiff_t c = 0; c < values.columns; ++c) {
        if (isnan(values(row, c))) return c;
        if (values(row, c) > values(row, best)) best = c;
    }
    return best;
}

/// Names the walk over rows, for write_largest_columns().
struct argmax_walk {};

/// indices[r] = largest_column of row r, on the CPU; on a GPU the function of this name in
/// <mp/nn/ops/argmax/gpu.hpp>.
template <class Value, class Index>
void write_largest_columns(argmax_walk, const cpu& exec, matrix_view<const Value> values,
                           std::span<Index> indices) {
    parallel_arithmetic(
        exec, indices.size(), 1 + 16384 / static_cast<std::size_t>(values.columns),
        [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                indices[i] = static_cast<Index>(largest_column(values, static_cast<std::ptrdiff_t>(i)));
            }
        });
}

}}  // namespace mp::detail

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
    write_largest_columns(detail::argmax_walk{}, exec, input, results);
}

/// The share of rows, from 0 to 1, whose largest value is in the column that labels names; the first of
/// equals, and a row with NaN is never right. Shapes and errors are those of softmax_cross_entropy().
template <element Logit, detail::contiguous Labels>
double accuracy(cpu exec, matrix_view<Logit> logits, const Labels& labels) {
    constexpr std::string_view function = "mp::ops::accuracy";
    const auto input = detail::input_view(logits);
    const auto expected = detail::input_view(labels);
    const auto operand = detail::named("logits", input);
    detail::check_threads(function, exec);
    detail::check_logits(function, operand);
    detail::check_labels(function, exec, operand, expected);
    const detail::default_floating_point_modes modes;
    std::size_t right = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const auto row = static_cast<std::ptrdiff_t>(i);
        const std::ptrdiff_t column = detail::largest_column(input, row);
        if (std::cmp_equal(expected[i], column) && !isnan(input(row, column))) ++right;
    }
    return modes.held(
        detail::double_divide(static_cast<double>(right), static_cast<double>(expected.size())));
}

}}  // namespace mp::ops
