// SPDX-License-Identifier: MIT
/// \file
/// Rows of softmax as the ops use them: exponentials, their sums, and what rows are that have no meaning.
#pragma once

#include <mp/arrays/array/for_each_element.hpp>
#include <mp/arrays/array/parallel.hpp>
#include <mp/base/bits.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/format/classification.hpp>
#include <mp/numbers/rules/double_rows.hpp>
#include <mp/numbers/rules/elementary.hpp>
#include <mp/numbers/rules/elementwise.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>
#include <mp/numbers/rules/row_statistics.hpp>
#include <mp/numbers/rules/softmax.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <limits>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The walks of <mp/numbers/rules/softmax.hpp> for the processor at hand.
struct softmax_kernels {
    row_maximum (*maximum)(const float*, std::size_t);
    double (*exponentials)(const float*, std::size_t, float, float*);
    void (*scale)(std::size_t, float*, const float*, float);
    void (*log_softmax)(const float*, std::size_t, float, double, float*);
    double (*dot)(const float*, const float*, std::size_t);
    double (*sum)(const float*, std::size_t);
    void (*scale_and_shift)(const float*, std::size_t, float, float, float*);
    void (*scaled_probabilities)(const float*, std::size_t, float, float, float, float*);
    void (*softmax_slopes)(const float*, const float*, std::size_t, double, float*);
    void (*log_softmax_slopes)(const float*, const float*, std::size_t, double, float*);
    void (*score_slopes)(const float*, std::size_t, float*);

    explicit softmax_kernels(instruction_set isa = best_instruction_set())
        : maximum(MP_SELECT_TARGET(isa, &portable_vectors::maximum_of_row, maximum_of_row)),
          exponentials(MP_SELECT_TARGET(isa, &portable_vectors::exponentials_of_row, exponentials_of_row)),
          scale(MP_SELECT_TARGET(isa, &portable_vectors::scale_array, scale_array)),
          log_softmax(MP_SELECT_TARGET(isa, &portable_vectors::log_softmax_row, log_softmax_row)),
          dot(MP_SELECT_TARGET(isa, &portable_vectors::dot_of_rows, dot_of_rows)),
          sum(MP_SELECT_TARGET(isa, &portable_vectors::sum_of_row, sum_of_row)),
          scale_and_shift(MP_SELECT_TARGET(isa, &portable_vectors::scale_and_shift_row, scale_and_shift_row)),
          scaled_probabilities(
              MP_SELECT_TARGET(isa, &portable_vectors::scaled_probabilities, scaled_probabilities)),
          softmax_slopes(MP_SELECT_TARGET(isa, &portable_vectors::softmax_slopes, softmax_slopes)),
          log_softmax_slopes(
              MP_SELECT_TARGET(isa, &portable_vectors::log_softmax_slopes, log_softmax_slopes)),
          score_slopes(MP_SELECT_TARGET(isa, &portable_vectors::score_slopes, score_slopes)) {}
};

template <class Real>
using softmax_kernels_of =
    std::conditional_t<std::same_as<Real, double>, double_softmax_kernels, softmax_kernels>;

/// values[i] = values[i] factor - shift, rounded to float, where the factor may be too large or too small for
/// a float.
inline void scale_by_double(const softmax_kernels& kernels, float* values, std::size_t count, double factor,
                            double shift) {
    if (factor > 0x1p-100 && factor < 0x1p100) {
        const auto rounded = static_cast<float>(factor);
        if (shift > 0) {
            return kernels.scale_and_shift(values, count, rounded, static_cast<float>(shift), values);
        }
        return kernels.scale(count, values, values, rounded);
    }
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = static_cast<float>(
            double_subtract(double_multiply(static_cast<double>(values[i]), factor), shift));
    }
}
inline void scale_by_double(const double_softmax_kernels& kernels, double* values, std::size_t count,
                            double factor, double shift) {
    kernels.scale_and_shift(values, count, factor, shift, values);
}

/// to[i] = e^(x[i] - largest) factor - shift.
inline void scaled_probabilities(const softmax_kernels& kernels, const float* x, std::size_t count,
                                 float largest, double factor, double shift, float* to) {
    if (factor > 0x1p-60 && factor < 0x1p100) {
        return kernels.scaled_probabilities(x, count, largest, static_cast<float>(factor),
                                            static_cast<float>(shift), to);
    }
    kernels.exponentials(x, count, largest, to);
    scale_by_double(kernels, to, count, factor, shift);
}
inline void scaled_probabilities(const double_softmax_kernels& kernels, const double* x, std::size_t count,
                                 double largest, double factor, double shift, double* to) {
    kernels.exponentials(x, count, largest, to);
    kernels.scale_and_shift(to, count, factor, shift, to);
}

/// A few rows, and room for what is computed from them. One thread uses it for block after block of rows: so
/// a row does not wait for the sum and the logarithm of the one before. Real is float, or double in an op of
/// doubles.
template <class Real>
class softmax_rows {
public:
    static constexpr std::ptrdiff_t longest_block = 16;
    /// A sum up to it loses digits of what is added to the 1 of the largest element that a Real has.
    static constexpr double nearly_one = std::same_as<Real, double> ? 1.5 : 1.0 + 0x1p-20;

    /// Rows of a block, by the number of columns: as many as make up 2048 elements.
    static std::ptrdiff_t most(std::ptrdiff_t columns) {
        return std::clamp<std::ptrdiff_t>(2048 / columns, 1, longest_block);
    }
    /// Numbers of memory that it needs.
    static std::size_t size_of_room(std::size_t columns) {
        return 2 * columns * static_cast<std::size_t>(most(static_cast<std::ptrdiff_t>(columns)));
    }
    softmax_rows(std::size_t columns, Real* room)
        : columns_(columns), input_(room), output_(room + size_of_room(columns) / 2) {}

    /// Reads rows and computes the sum of the exponentials of the distances from the largest element of each,
    /// which are written to where results of y go if there is a y. A row with NaN or +infinity, or of
    /// -infinity alone, has no meaning.
    void load(const any_matrix& x, std::ptrdiff_t first, std::ptrdiff_t count, const any_matrix& y = {}) {
        for (std::ptrdiff_t r = 0; r < count; ++r) {
            read(x, first, r);
            sum_exponentials(first, r, y);
        }
    }
    /// The first half of load(), for row r of the block alone: its elements and the largest of them.
    void read(const any_matrix& x, std::ptrdiff_t first, std::ptrdiff_t r) {
        const auto i = static_cast<std::size_t>(r);
        row_sum& row = rows_[i];
        row.values = reals_of_row(x, first + r, input_ + i * columns_);
        const auto largest = kernels_.maximum(row.values, columns_);
        row.has_meaning = !largest.is_bad && !isinf(largest.value);
        row.largest = largest.value;
    }
    /// The same with saved statistics, also in place of sum_exponentials() and find_others().
    template <class Saved>
    void read(const any_matrix& x, std::ptrdiff_t first, std::ptrdiff_t r,
              const ops::basic_softmax_statistics<Saved>& saved) {
        const auto i = static_cast<std::size_t>(r);
        row_sum& row = rows_[i];
        row.values = reals_of_row(x, first + r, input_ + i * columns_);
        row.has_meaning = isfinite(saved.max) && isfinite(saved.others);
        row.largest = as<Real>(saved.max);
        row.others = as<double>(saved.others);
        row.sum = double_add(1.0, row.others);
    }
    /// The second half. Where y is x, the elements are gone then. A sum alone has other last bits than one whose
    /// terms are written.
    void sum_exponentials(std::ptrdiff_t first, std::ptrdiff_t r, const any_matrix& y) {
        const auto i = static_cast<std::size_t>(r);
        row_sum& row = rows_[i];
        row.target = y ? row_target(y, first + r, output_ + i * columns_) : nullptr;
        row.sum = row.has_meaning ? kernels_.exponentials(row.values, columns_, row.largest, row.target)
                                  : std::numeric_limits<double>::quiet_NaN();
    }
    /// Finds the sum without the largest element of row r, whose sum is known. The sum itself keeps no digit of
    /// it where that element is nearly everything: then the exponentials are added up again without it.
    void find_others(std::ptrdiff_t r) {
        row_sum& row = rows_[static_cast<std::size_t>(r)];
        row.others = double_subtract(row.sum, 1.0);
        if (!row.has_meaning || row.sum > nearly_one) return;
        Real* terms = row.target;
        if (terms == nullptr) {
            terms = output_ + static_cast<std::size_t>(r) * columns_;
            kernels_.exponentials(row.values, columns_, row.largest, terms);
        }
        Real* const largest = std::find(terms, terms + columns_, Real{1});
        *largest = 0;
        row.others = kernels_.sum(terms, columns_);
        *largest = 1;
    }
    /// Calls f(r, row) for the rows that were loaded and have a meaning, and rounds what it has written to
    /// row.target to the format of y; writes NaN for the others.
    template <class Function>
    void write(const any_matrix& y, std::ptrdiff_t first, std::ptrdiff_t count, Function f) {
        for (std::ptrdiff_t r = 0; r < count; ++r) write_row(y, first, r, f);
    }
    template <class Function>
    void write_row(const any_matrix& y, std::ptrdiff_t first, std::ptrdiff_t r, Function f) {
        const auto i = static_cast<std::size_t>(r);
        row_sum& row = rows_[i];
        if (!row.has_meaning) return fill_row(y, first, r, std::numeric_limits<Real>::quiet_NaN());
        row.target = row_target(y, first + r, output_ + i * columns_);
        f(r, row);
        put_row(row.target, y, first + r);
    }
    /// Writes one value to all of a row.
    void fill_row(const any_matrix& y, std::ptrdiff_t first, std::ptrdiff_t r, Real value) {
        Real* const to = row_target(y, first + r, output_ + static_cast<std::size_t>(r) * columns_);
        std::fill(to, to + columns_, value);
        put_row(to, y, first + r);
    }

    struct row_sum {
        const Real* values;
        Real* target;
        Real largest;
        bool has_meaning;
        double sum;
        double others;  ///< sum without the largest element, once found

        [[nodiscard]] double log_sum() const { return has_meaning ? double_log1p(others) : others; }
        /// x less the largest element.
        [[nodiscard]] rounded_doubles<1> distance(rounded_doubles<1> x) const {
            return x - as<double>(largest);
        }
    };
    [[nodiscard]] const row_sum& row(std::ptrdiff_t r) const { return rows_[static_cast<std::size_t>(r)]; }
    [[nodiscard]] std::size_t columns() const { return columns_; }
    [[nodiscard]] const softmax_kernels_of<Real>& kernels() const { return kernels_; }

private:
    softmax_kernels_of<Real> kernels_;
    std::size_t columns_;
    Real* input_;
    Real* output_;
    row_sum rows_[longest_block] = {};
};

/// Calls f(first, count, rows) for blocks of rows, on the threads of `exec`.
template <class Real, class Function>
void for_each_softmax_block(cpu exec, std::ptrdiff_t rows, std::ptrdiff_t columns, Function f) {
    if (columns == 0 || rows == 0) return;
    const std::ptrdiff_t block = softmax_rows<Real>::most(columns);
    const auto blocks = static_cast<std::size_t>((rows - 1) / block + 1);
    const auto grain = static_cast<std::size_t>(1 + 16384 / (block * columns));
    thread_buffers<Real> buffers(exec, softmax_rows<Real>::size_of_room(static_cast<std::size_t>(columns)));
    parallel_arithmetic(exec, blocks, grain, [&](std::size_t begin, std::size_t end) {
        softmax_rows<Real> room(static_cast<std::size_t>(columns), buffers.take());
        for (auto i = static_cast<std::ptrdiff_t>(begin); i < static_cast<std::ptrdiff_t>(end); ++i) {
            f(i * block, (std::min)(block, rows - i * block), room);
        }
    });
}

}}  // namespace mp::detail
