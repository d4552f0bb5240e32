// SPDX-License-Identifier: MIT
/// \file
/// Long sums for the ops, in double and in an order that depends on the shape of the matrices alone: not on
/// storage order or threads.
///
/// A float is exact in double, so the error of a sum of n terms is below n 2^-53 times the sum of their
/// magnitudes: less than a hundredth of a rounding to float up to n = 2^22, and no more than one up to 2^29.
/// Sums beyond float's range are infinite only if the result is.
#pragma once

#include <mp/arrays/array/for_each_element.hpp>
#include <mp/arrays/array/parallel.hpp>
#include <mp/base/parallel.hpp>
#include <mp/config.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/rules/elementwise.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <utility>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// sums[c] += term(elements of `in` in column c...) over the given rows in their order, for up to
/// element_block columns.
template <class Real, class Term, class... In>
void add_block(double* sums, Term term, std::ptrdiff_t first_row, std::ptrdiff_t last_row,
               std::ptrdiff_t first_column, std::size_t columns, const In&... in) {
    Real scratch[sizeof...(In)][element_block];
    [[maybe_unused]] const instruction_set isa = best_instruction_set();
    const auto add = [&](const auto*... from) {
        if constexpr (std::same_as<Term, itself> && std::same_as<Real, float>) {
            add_floats_to_doubles(isa, columns, sums, from...);
        } else {
            for_each_double(columns, [&](auto kind, std::size_t c) {
                using number = decltype(kind);
                (number::load(sums + c) + term(number::load(from + c)...)).store(sums + c);
            });
        }
    };
    for (std::ptrdiff_t row = first_row; row < last_row; ++row) {
        std::size_t next = 0;
        const auto loaded = [&](const any_matrix& view) -> const Real* {
            Real* const to = scratch[next++];
            const std::byte* const from = view.at(row, first_column);
            if (holds_reals<Real>(view) && view.column_stride() == 1) {
                return reinterpret_cast<const Real*>(from);
            }
            load_elements(*view.type, from, view.column_stride(), columns, to);
            return to;
        };
        const std::array<const Real*, sizeof...(In)> from{loaded(in)...};
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            add(from[I]...);
        }(std::index_sequence_for<In...>{});
    }
}

/// results[c] = the sum over the rows of term(elements of `in` in column c...), divided by `divisor` and
/// rounded to float and from there to the type of the result (with doubles: to that alone). `term` is a function of
/// rounded_doubles of any number of lanes. `results` is a vector with an element for each column.
template <class Real, class Term, class... In>
void sum_columns(const cpu& exec, Term term, double divisor, const any_matrix& results,
                 const any_matrix& first_of, const In&... in) {
    const std::ptrdiff_t rows = first_of.rows;
    const auto columns = static_cast<std::size_t>(results.columns);
    const std::size_t blocks = (columns + element_block - 1) / element_block;
    const std::size_t block_size =
        element_block * static_cast<std::size_t>((std::max<std::ptrdiff_t>)(rows, 1));
    constexpr std::size_t together = 16;  // blocks, whose rows are read in one go
    // Elements of a column that share a cache line are read together.
    const bool has_rows = first_of.column_stride() == 1 && ((in.column_stride() == 1) && ...);
    const std::ptrdiff_t height = has_rows ? 1 : 64;
    parallel_arithmetic(exec, blocks, 1 + 16384 / block_size, [&](std::size_t begin, std::size_t end) {
        double sums[together * element_block];
        for (std::size_t first_block = begin; first_block < end; first_block += together) {
            const std::size_t first = first_block * element_block;
            const std::size_t last = (std::min)({columns, end * element_block, first + std::size(sums)});
            std::fill(sums, sums + (last - first), 0.0);
            const auto for_each = [&](auto f) {
                for (std::size_t c = first; c < last; c += element_block) {
                    f(c, (std::min)(element_block, last - c), sums + (c - first));
                }
            };
            for (std::ptrdiff_t row = 0; row < rows; row += height) {
                const std::ptrdiff_t end_row = (std::min)(rows, row + height);
                for_each([&](std::size_t column, std::size_t count, double* of_block) {
                    add_block<Real>(of_block, term, row, end_row, static_cast<std::ptrdiff_t>(column), count,
                                    first_of, in...);
                });
            }
            for_each([&](std::size_t column, std::size_t count, const double* of_block) {
                Real rounded[element_block];
                for (std::size_t c = 0; c < count; ++c) {
                    rounded[c] = as<Real>(double_divide(of_block[c], divisor));
                }
                store_elements(*results.type, rounded, count,
                               results.at(0, static_cast<std::ptrdiff_t>(column)));
            });
        }
    });
}

/// Parts of the sum of all elements: rows of which element_block columns are added up, one column after the
/// other. Kernels for GPUs keep to them, too.
inline constexpr std::ptrdiff_t sum_part_rows = 256;
inline constexpr auto sum_part_columns = static_cast<std::ptrdiff_t>(element_block);

/// Whether columns are added up, and not rows.
[[nodiscard]] constexpr bool sums_transposed(std::ptrdiff_t rows, std::ptrdiff_t columns) {
    return columns < sum_part_columns && rows > columns;
}

/// The sum of term(elements of `in` at the same place...) over all places of matrices of one shape.
template <class Real, class Term, class... In>
double sum_all(const cpu& exec, Term term, const any_matrix& first, const In&... in) {
    const std::ptrdiff_t rows = first.rows;
    const std::ptrdiff_t columns = first.columns;
    constexpr std::ptrdiff_t width = sum_part_columns;
    constexpr std::ptrdiff_t height = sum_part_rows;
    if (sums_transposed(rows, columns)) {
        return sum_all<Real>(exec, term, first.transposed(), in.transposed()...);
    }
    const std::ptrdiff_t across = (columns + width - 1) / width;
    const std::ptrdiff_t down = (rows + height - 1) / height;
    const auto count = static_cast<std::size_t>(across * down);
    const staging_buffer<double> parts(exec, count);
    const std::ptrdiff_t part_size = width * std::clamp<std::ptrdiff_t>(rows, 1, height);
    parallel_arithmetic(exec, count, static_cast<std::size_t>(1 + 16384 / part_size),
                        [&](std::size_t begin, std::size_t end) {
                            for (std::size_t i = begin; i < end; ++i) {
                                const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(i) / across * height;
                                const std::ptrdiff_t column = static_cast<std::ptrdiff_t>(i) % across * width;
                                double sums[element_block] = {};
                                add_block<Real>(sums, term, row, (std::min)(rows, row + height), column,
                                                static_cast<std::size_t>((std::min)(width, columns - column)),
                                                first, in...);
                                rounded_doubles<1> part = 0.0;
                                for (const double sum : sums) part += sum;
                                parts.data()[i] = part.value();
                            }
                        });
    rounded_doubles<1> total = 0.0;
    for (const double part : parts.elements()) total += part;
    return total.value();
}

}}  // namespace mp::detail
