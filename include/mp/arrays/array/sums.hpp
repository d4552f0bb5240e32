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
#include <concepts>
#include <cstddef>
#include <iterator>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The term of a plain sum.
struct itself {
    template <class T>
    MP_ALWAYS_INLINE T operator()(T x) const {
        return x;
    }
};

/// sums[c] += term(elements of `in` in column c...) over the given rows in their order, for up to
/// element_block columns.
template <class Term, class... In>
void add_block(double* sums, Term term, std::ptrdiff_t first_row, std::ptrdiff_t last_row,
               std::ptrdiff_t first_column, std::size_t columns, matrix_view<const In>... in) {
    using real = real_of<In...>;
    struct values {
        real value[element_block];
    };
    [[maybe_unused]] const instruction_set isa = best_instruction_set();
    const auto add_row = [&](std::ptrdiff_t row, auto... room) {
        const auto loaded = [&]<class Value>(matrix_view<const Value> view, real* to) -> const real* {
            const std::ptrdiff_t step = view.column_stride();
            const Value* const from = view.data + row * view.row_stride() + first_column * step;
            if constexpr (std::same_as<Value, real>) {
                if (step == 1) return from;
            }
            load_floats(from, step, columns, to);
            return to;
        };
        const auto add = [&](const auto*... from) {
            if constexpr (std::same_as<Term, itself> && std::same_as<real, float>) {
                add_floats_to_doubles(isa, columns, sums, from...);
            } else {
                for_each_double(columns, [&](auto kind, std::size_t c) {
                    using number = decltype(kind);
                    (number::load(sums + c) + term(number::load(from + c)...)).store(sums + c);
                });
            }
        };
        add(loaded(in, room.value)...);
    };
    for (std::ptrdiff_t row = first_row; row < last_row; ++row) {
        add_row(row, (static_cast<void>(in), values{})...);
    }
}

/// results[c] = the sum over the rows of term(elements of `in` in column c...), divided by `divisor` and
/// rounded to float and from there to Result (with doubles: to Result alone). `term` is a function of rounded_doubles of any number of lanes.
/// There are as many results as columns.
template <class Result, class Term, class... In>
void sum_columns(cpu exec, Term term, std::ptrdiff_t rows, std::size_t columns, double divisor,
                 Result* results, matrix_view<const In>... in) {
    const std::size_t blocks = (columns + element_block - 1) / element_block;
    const std::size_t block_size =
        element_block * static_cast<std::size_t>((std::max<std::ptrdiff_t>)(rows, 1));
    constexpr std::size_t together = 16;  // blocks, whose rows are read in one go
    // Elements of a column that share a cache line are read together.
    const std::ptrdiff_t height = ((in.column_stride() == 1) && ...) ? 1 : 64;
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
                    add_block(of_block, term, row, end_row, static_cast<std::ptrdiff_t>(column), count,
                              in...);
                });
            }
            for_each([&](std::size_t column, std::size_t count, const double* of_block) {
                real_of<Result, In...> rounded[element_block];
                for (std::size_t c = 0; c < count; ++c) {
                    rounded[c] = as<real_of<Result, In...>>(double_divide(of_block[c], divisor));
                }
                store_floats(rounded, count, results + column);
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

/// The sum of term(elements of `in` at the same place...) over all places of a matrix of this shape.
template <class Term, class... In>
double sum_all(cpu exec, Term term, std::ptrdiff_t rows, std::ptrdiff_t columns,
               matrix_view<const In>... in) {
    constexpr std::ptrdiff_t width = sum_part_columns;
    constexpr std::ptrdiff_t height = sum_part_rows;
    if (sums_transposed(rows, columns)) return sum_all(exec, term, columns, rows, transposed(in)...);
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
                                add_block(sums, term, row, (std::min)(rows, row + height), column,
                                          static_cast<std::size_t>((std::min)(width, columns - column)),
                                          in...);
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
