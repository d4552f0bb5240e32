// SPDX-License-Identifier: MIT
/// \file
/// Rows of a table chosen by integers, and the gradient of the table.
#pragma once

#include <mp/base/contiguous.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/autocast/library_op.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/matrix_operand.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#if MP_CORE_BODIES
#include <mp/arrays/array/for_each_element.hpp>
#include <mp/arrays/array/parallel.hpp>
#include <mp/arrays/array/staging_buffer.hpp>
#include <mp/numbers/rules/elementwise.hpp>
#include <mp/numbers/rules/float_float.hpp>
#include <mp/numbers/simd/processor.hpp>
#endif

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

struct embedding_options {
    /// An index whose row of the table is not trained, as it only fills sequences up: its gradient is zero.
    std::optional<std::ptrdiff_t> padding_index = std::nullopt;
};

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Checks that every index is a row of the table, of which `table` is the name; those in the memory of a GPU
/// are not read.
template <gpu_executor Executor, class Index>
void check_indices(std::string_view function, const Executor& /*exec*/, const named_operand& table,
                   std::span<const Index> indices) {
    check_operand(function, {"indices", extent_of(indices)});
    if (!indices.empty() && table.extent.rows == 0) {
        throw_argument(function, std::string(table.name) + ".rows", 0, "must be at least 1");
    }
}
inline void check_indices(std::string_view function, const cpu& /*exec*/, const named_operand& table,
                          const any_integers& indices) {
    check_operand(function, {"indices", extent_of_integers(indices)});
    for (std::size_t i = 0; i < indices.size; ++i) {
        if (indices[i] >= 0 && indices[i] < table.extent.rows) continue;
        if (table.extent.rows == 0) {
            throw_argument(function, join_text({table.name, ".rows"}), 0, "must be at least 1");
        }
        reject_integer(
            function, "indices", indices, i,
            join_text({"must be a row of ", table.name, ", from 0 to ", error_text(table.extent.rows - 1)}));
    }
}

/// Names the traversals of rows that indices choose, for gather_rows() and add_rows() of GPUs.
struct table_rows {};

#if MP_CORE_BODIES
/// The occurrences of each value among the indices, in ascending order: those of row r are
/// occurrences[starts[r]] to occurrences[starts[r + 1]], the end excluded.
class index_occurrences {
public:
    index_occurrences(const cpu& exec, const any_integers& indices, std::size_t rows)
        : starts_memory_(exec, rows + 1), occurrences_memory_(exec, indices.size) {
        // next[r] is where the next occurrence of row r goes: from the start of the row to that of the row behind.
        std::size_t* const next = starts_memory_.data() + 1;
        std::fill_n(starts_memory_.data(), rows + 1, std::size_t{0});
        for (std::size_t i = 0; i < indices.size; ++i) {
            const auto index = static_cast<std::size_t>(indices[i]);
            if (index + 1 < rows) ++next[index + 1];
        }
        for (std::size_t row = 1; row < rows; ++row) next[row] += next[row - 1];
        for (std::size_t i = 0; i < indices.size; ++i) {
            occurrences_memory_.data()[next[static_cast<std::size_t>(indices[i])]++] =
                static_cast<std::ptrdiff_t>(i);
        }
        starts = starts_memory_.data();
        occurrences = occurrences_memory_.data();
    }
    index_occurrences(const index_occurrences&) = delete;
    index_occurrences& operator=(const index_occurrences&) = delete;
    ~index_occurrences() = default;

    const std::size_t* starts = nullptr;
    const std::ptrdiff_t* occurrences = nullptr;

private:
    staging_buffer<std::size_t> starts_memory_;
    staging_buffer<std::ptrdiff_t> occurrences_memory_;
};

/// y = the rows of the table that the indices choose; those of the same type are copied. On a GPU the function of this name
/// in <mp/nn/ops/embedding/gpu.hpp> does it.
template <class Real>
void gather_rows(const cpu& exec, const any_matrix& table, const any_integers& indices, const any_matrix& y) {
    const auto columns = static_cast<std::size_t>(y.columns);
    const bool is_copy = is_same_type(*table.type, *y.type);
    thread_buffers<Real> buffers(exec, is_copy ? 0 : columns);
    const std::size_t grain = 1 + 65536 / (std::max<std::size_t>)(columns, 1);
    parallel_arithmetic(exec, indices.size, grain, [&](std::size_t begin, std::size_t end) {
        Real* const scratch = buffers.take();
        for (std::size_t i = begin; i < end; ++i) {
            const auto from = as<std::ptrdiff_t>(indices[i]);
            const auto to = static_cast<std::ptrdiff_t>(i);
            if (!is_copy) {
                put_row(reals_of_row(table, from, scratch), y, to);
            } else if (table.column_stride() == 1 && y.column_stride() == 1) {
                if (columns > 0) std::memcpy(y.at(to, 0), table.at(from, 0), columns * y.type->size);
            } else {
                for (std::ptrdiff_t c = 0; c < y.columns; ++c) {
                    std::memcpy(y.at(to, c), table.at(from, c), y.type->size);
                }
            }
        }
    });
}

/// The sum of rows of floats or doubles, in their order. Floats are added in pairs of floats, as on GPUs, whose
/// doubles are slow.
template <class Real>
class row_sum {
public:
    /// Begins with the terms in `high`. `low` is memory for as many, which doubles do not need.
    row_sum(Real* high, Real* low, std::size_t columns) : high_(high), low_(low), columns_(columns) {
        if constexpr (std::same_as<Real, float>) std::fill_n(low, columns, 0.0F);
    }
    void add(const Real* row) {
        ++terms_;
        if constexpr (std::same_as<Real, float>) {
            add_floats_to_pairs(isa_, columns_, high_, low_, row);
            if (terms_ % pair_terms == 0) normalize_pairs(isa_, columns_, high_, low_);
        } else {
            map_floats<sum_function>(isa_, columns_, high_, high_, row);
        }
    }
    /// Rounds the sums to Real, in `high`.
    void round() {
        if constexpr (std::same_as<Real, float>) normalize_pairs(isa_, columns_, high_, low_);
    }

private:
    Real* high_;
    Real* low_;
    std::size_t columns_;
    std::size_t terms_ = 0;
    instruction_set isa_ = best_instruction_set();
};

/// Row r of dtable = the sum of the rows i of dy with indices[i] == r, or that added to it; nothing for row
/// `padding`, which is negative where there is none. On a GPU the function of this name in
/// <mp/nn/ops/embedding/gpu.hpp> does it.
template <class Real>
void add_rows(const cpu& exec, const any_integers& indices, const any_matrix& terms, const any_matrix& result,
              bool adds, std::ptrdiff_t padding) {
    const auto rows = static_cast<std::size_t>(result.rows);
    const auto columns = static_cast<std::size_t>(result.columns);
    const index_occurrences chosen(exec, indices, rows);
    const instruction_set isa = best_instruction_set();
    // A row is written, and takes part in as many sums as there are indices, in the mean.
    const std::size_t work = columns * (1 + indices.size / (std::max<std::size_t>)(rows, 1));
    thread_buffers<Real> buffers(exec, 3 * columns);
    parallel_arithmetic(
        exec, rows, 1 + 16384 / (std::max<std::size_t>)(work, 1), [&](std::size_t begin, std::size_t end) {
            Real* const scratch = buffers.take();
            for (std::size_t i = begin; i < end; ++i) {
                const auto row = static_cast<std::ptrdiff_t>(i);
                const std::size_t first = chosen.starts[i];
                const std::size_t last = row == padding ? first : chosen.starts[i + 1];
                if (adds && first == last) continue;
                Real* const sums = adds ? scratch + columns : row_target(result, row, scratch + columns);
                std::fill_n(sums, columns, Real{0});
                if (last - first <= 2) {  // rounded once anyway
                    for (std::size_t n = first; n < last; ++n) {
                        map_floats<sum_function>(isa, columns, sums, sums,
                                                 reals_of_row(terms, chosen.occurrences[n], scratch));
                    }
                } else {
                    row_sum<Real> sum(sums, scratch + 2 * columns, columns);
                    for (std::size_t n = first; n < last; ++n) {
                        sum.add(reals_of_row(terms, chosen.occurrences[n], scratch));
                    }
                    sum.round();
                }
                if (adds) {
                    map_floats<sum_function>(isa, columns, sums, sums, reals_of_row(result, row, scratch));
                }
                put_row(sums, result, row);
            }
        });
}
#endif

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Tag of embedding(): a copy, right in any format, so nothing is cast.
struct embedding_op : detail::library_op<embedding_op, "embedding"> {
    static constexpr auto category = op_category::pass_through;
    static constexpr std::array<std::string_view, 4> argument_names = {"exec", "table", "indices", "y"};
    static constexpr std::array<std::string_view, 1> known_as = {"Embedding"};

    static void validate(const auto& exec, const auto& table, const auto& indices, const auto& y) {
        detail::check_executor(function, exec);
        const auto weights = detail::named("table", table);
        const detail::named_operand chosen{"indices", detail::extent_of_integers(indices)};
        const auto output = detail::named("y", y);
        detail::check_operand(function, weights);
        detail::check_indices(function, exec, weights, indices);
        detail::check_shape(function, output, chosen.extent.columns, "indices.size()", weights.extent.columns,
                            "table.columns");
        detail::check_separate(function, output, weights);
        detail::check_separate(function, output, chosen);
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_operand& table,
                        const detail::any_integers& indices, const detail::any_operand& y) {
        gather_rows<Real>(exec, table, indices, y);
    }
    void operator()(const gpu_executor auto& exec, const auto&... operands) const {
        gather_rows(detail::table_rows{}, exec, operands...);
    }
};

/// Row i of y = row indices[i] of the table.
///
/// Shapes: table is rows x features, indices is a contiguous range of integers from 0 to rows - 1, y is
/// indices.size() x features, in any storage order. The values are those of the table, whatever autocast
/// does; where y has another format, each is rounded to it once. Throws argument_error for an index that is
/// no row of the table, shapes that do not fit, invalid views and a y that overlaps the table or the indices;
/// y is then unchanged.
///
/// On a GPU (<mp/nn/ops/embedding/gpu.hpp>) y has the same bits, but NaNs that are converted become quiet.
/// Indices lie in device memory, too, and cannot be checked before the launch: a row of y whose index is no
/// row of the table is all NaN.
template <class Policy = autocast::by_region, executor Executor = cpu, element Table,
          detail::contiguous Indices, matrix_result Y>
void embedding(const Executor& exec, matrix_view<Table> table, const Indices& indices, const Y& y) {
    static_assert(std::integral<detail::contiguous_element<const Indices>>,
                  "mp::ops::embedding: indices is a range of integers");
    detail::call_op<Policy>(embedding_op{}, exec, detail::input_view(table),
                            detail::integers_for<Executor>(indices), detail::output_view(y));
}

/// Tag of embedding_backward(): sums in two floats whatever the format, so nothing is cast.
struct embedding_backward_op : detail::library_op<embedding_backward_op, "embedding_backward"> {
    static constexpr auto category = op_category::pass_through;
    using forward_op = embedding_op;
    static constexpr std::array<std::string_view, 5> argument_names = {"exec", "indices", "dy", "dtable",
                                                                       "options"};
    static constexpr std::array<std::string_view, 1> known_as = {"embedding_dense_backward"};
    static constexpr std::array<std::string_view, 1> sums = {"dtable"};

    static void validate(const auto& exec, const auto& indices, const auto& dy, const auto& dtable,
                         const embedding_options& options) {
        detail::check_executor(function, exec);
        const detail::named_operand chosen{"indices", detail::extent_of_integers(indices)};
        const auto gradient = detail::named("dy", dy);
        const auto result = detail::named("dtable", dtable);
        detail::check_operand(function, result);
        detail::check_indices(function, exec, result, indices);
        detail::check_shape(function, gradient, chosen.extent.columns, "indices.size()",
                            result.extent.columns, "dtable.columns");
        if (options.padding_index &&
            (*options.padding_index < 0 || *options.padding_index >= result.extent.rows)) {
            detail::throw_argument(
                function, "options.padding_index", *options.padding_index,
                "must be a row of dtable, which has " + detail::error_text(result.extent.rows));
        }
        detail::check_separate(function, result, gradient);
        detail::check_separate(function, result, chosen);
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_integers& indices, const detail::any_operand& dy,
                        const detail::any_operand& dtable, const embedding_options& options) {
        add_rows<Real>(exec, indices, dy, dtable, dtable.beta() > 0, options.padding_index.value_or(-1));
    }
    void operator()(const gpu_executor auto& exec, const auto& indices, const auto& dy, const auto& result,
                    const embedding_options& options) const {
        const auto dtable = detail::result_view(result);
        add_rows(detail::table_rows{}, exec, indices, dy, dtable, detail::result_beta(result) > 0,
                 options.padding_index.value_or(-1));
    }
};

/// The gradient of the table of y = embedding(table, indices), given dy = dL/dy: row r of dtable is the sum
/// of the rows i of dy with indices[i] == r, and zero where there are none or r is options.padding_index.
///
/// Shapes: indices is that of embedding(), dy is indices.size() x features, dtable is like the table; all of
/// it is written. Where it is add_to() of what is there, rows of no index are not touched. Sums are in pairs of
/// floats, 48 bits, in the order of the indices, rounded to float and from there to the format of dtable: n terms
/// have an error of half a unit in the last place and n 2^-45 times the sum of the magnitudes. They do not depend
/// on the number of threads. Words that occur in every sentence keep their small gradients. Takes memory for
/// one integer for each index and two for each row of the table. Errors are those of embedding(), and a
/// padding_index that is no row of dtable; dtable is then unchanged.
///
/// On a GPU (<mp/nn/ops/embedding/gpu.hpp>) dtable has the same bits: indices are sorted on the device, in the
/// executor's workspace of embedding_backward_workspace(indices.size()) bytes, and rows are summed in the
/// order of the indices, without atomic operations on numbers. An index that is no row of dtable, which
/// cannot be checked before the launch, adds nothing.
template <class Policy = autocast::by_region, executor Executor = cpu, detail::contiguous Indices, element DY,
          matrix_result DTable>
void embedding_backward(const Executor& exec, const Indices& indices, matrix_view<DY> dy,
                        const DTable& dtable, const embedding_options& options = {}) {
    static_assert(std::integral<detail::contiguous_element<const Indices>>,
                  "mp::ops::embedding_backward: indices is a range of integers");
    detail::call_op<Policy>(embedding_backward_op{}, exec, detail::integers_for<Executor>(indices),
                            detail::input_view(dy), detail::output_view(dtable), options);
}

}}  // namespace mp::ops
