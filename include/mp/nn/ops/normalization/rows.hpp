// SPDX-License-Identifier: MIT
/// \file
/// Normalization of the rows of matrices of any formats and strides, on threads: what layer_norm and rms_norm
/// share.
#pragma once

#include <mp/arrays/array/for_each_element.hpp>
#include <mp/arrays/array/parallel.hpp>
#include <mp/arrays/array/staging_buffer.hpp>
#include <mp/base/parallel.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/numbers/rules/double_rows.hpp>
#include <mp/numbers/rules/normalization.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Some ten microseconds of work, as a thread costs, in elements.
inline constexpr std::ptrdiff_t normalization_grain = 32768;

/// Rows of a matrix as floats (or doubles): in place if they are contiguous Reals, else copies of a block of them, which
/// are read from the matrix and written to it. None for a result that is absent.
template <class Real>
class block_of_rows {
public:
    /// `room` has size_of_copies() Reals.
    block_of_rows(const any_matrix& matrix, Real* room)
        : matrix_(matrix), in_place_(size_of_copies(matrix) == 0), copies_(room) {}
    static std::size_t size_of_copies(const any_matrix& matrix) {
        if (!matrix || (holds_reals<Real>(matrix) && matrix.column_stride() == 1)) return 0;
        return static_cast<std::size_t>(normalization_block * matrix.columns);
    }
    [[nodiscard]] bool in_place() const { return in_place_; }

    /// From row `first` on; copies have room for a block.
    template <class Element = Real>
    [[nodiscard]] float_rows<Element> rows(std::ptrdiff_t first) const {
        if (!matrix_) return {};
        if (in_place_) return {reinterpret_cast<Element*>(matrix_.at(first, 0)), matrix_.row_stride()};
        return {copies_, matrix_.columns};
    }
    void read(std::ptrdiff_t first, std::ptrdiff_t count) const {
        for (std::ptrdiff_t r = 0; !in_place_ && r < count; ++r) {
            load_row(matrix_, first + r, copies_ + r * matrix_.columns);
        }
    }
    void write(std::ptrdiff_t first, std::ptrdiff_t count) const {
        for (std::ptrdiff_t r = 0; !in_place_ && r < count; ++r) {
            put_row(copies_ + r * matrix_.columns, matrix_, first + r);
        }
    }

private:
    any_matrix matrix_;
    bool in_place_;
    Real* copies_;
};

/// Calls f(first, count) for blocks of rows, or once for all of them.
template <class Function>
void for_each_block(std::ptrdiff_t begin, std::ptrdiff_t end, bool at_once, Function f) {
    const std::ptrdiff_t step = at_once ? end - begin : normalization_block;
    for (std::ptrdiff_t first = begin; first < end; first += step) f(first, (std::min)(step, end - first));
}

/// gamma or beta as Numbers, or one number where it is absent.
template <class Number>
staging_buffer<Number> column_array(const cpu& exec, const any_matrix& values, std::ptrdiff_t columns,
                                    Number otherwise) {
    const auto size = static_cast<std::size_t>(columns);
    staging_buffer<Number> result(exec, size);
    if (values) {
        load_elements(*values.type, values.at(0, 0), 1, size, result.data());
    } else {
        std::fill_n(result.data(), size, otherwise);
    }
    return result;
}

/// The part of an array from a row on, or null where the array is empty.
template <class Value>
Value* from_row(std::span<Value> values, std::ptrdiff_t row) {
    return values.empty() ? nullptr : values.data() + row;
}

/// The kernels of a type.
template <class Real>
auto normalization_kernel() {
    if constexpr (std::same_as<Real, double>) {
        return &normalize_rows_of_doubles;
    } else {
        return MP_SELECT_TARGET(best_instruction_set(), &portable_vectors::normalize_rows, normalize_rows);
    }
}
template <class Real>
auto normalization_backward_kernel() {
    if constexpr (std::same_as<Real, double>) {
        return &normalize_rows_of_doubles_backward;
    } else {
        return MP_SELECT_TARGET(best_instruction_set(), &portable_vectors::normalize_rows_backward,
                                normalize_rows_backward);
    }
}

/// The forward pass; on a GPU the function of this name in <mp/nn/ops/normalization/gpu.hpp>.
template <class Real>
void normalize_rows(bool is_centered, const cpu& exec, double epsilon, const any_matrix& x,
                    const any_matrix& gamma, const any_matrix& beta, const any_matrix& y,
                    std::span<ops::basic_normalization_statistics<Real>> statistics) {
    const auto kernel = normalization_kernel<Real>();
    const auto scales = column_array(exec, gamma, x.columns, 1.0);
    const auto shifts = column_array(exec, beta, x.columns, 0.0);
    using block = block_of_rows<Real>;
    const std::size_t of_x = block::size_of_copies(x);
    thread_buffers<Real> buffers(exec, of_x + block::size_of_copies(y));
    parallel_arithmetic(
        exec, static_cast<std::size_t>(x.rows), static_cast<std::size_t>(1 + normalization_grain / x.columns),
        [&](std::size_t begin, std::size_t end) {
            Real* const room = buffers.take();
            const block in(x, room);
            const block out(y, room + of_x);
            const auto run = [&](std::ptrdiff_t first, std::ptrdiff_t count) {
                in.read(first, count);
                kernel({static_cast<std::size_t>(x.columns), is_centered, as<Real>(epsilon),
                        in.template rows<const Real>(first)},
                       {scales.data(), shifts.data(), out.rows(first), from_row(statistics, first)}, count);
                out.write(first, count);
            };
            for_each_block(static_cast<std::ptrdiff_t>(begin), static_cast<std::ptrdiff_t>(end),
                           in.in_place() && out.in_place(), run);
        });
}

/// Rows of a partial column sum. The partial sums are added up in their order, so that results depend on the
/// shape alone. A multiple of normalization_block, large enough to be worth a thread; at most 64 partial
/// sums.
inline std::ptrdiff_t rows_of_part(std::ptrdiff_t rows, std::ptrdiff_t columns) {
    const std::ptrdiff_t wanted =
        (std::max)({std::ptrdiff_t{32}, normalization_grain / 2 / columns, rows / 64});
    return (wanted + normalization_block - 1) / normalization_block * normalization_block;
}

/// The sums of the columns in parts, or nothing where they are not wanted.
class column_parts {
public:
    column_parts(const cpu& exec, const any_matrix& totals, std::size_t parts)
        : totals_(totals),
          columns_(static_cast<std::size_t>(totals.columns)),
          size_(totals ? parts * columns_ : 0),
          sums_(exec, size_) {
        std::fill_n(sums_.data(), size_, 0.0);
    }
    [[nodiscard]] double* part(std::size_t i) { return totals_ ? sums_.data() + i * columns_ : nullptr; }
    void finish(const cpu& exec) const {
        if (!totals_) return;
        const std::size_t grain = 1 + 16384 / (std::max<std::size_t>)(size_ / columns_, 1);
        parallel_arithmetic(exec, columns_, grain, [&](std::size_t begin, std::size_t end) {
            double rounded[run_block];
            for (std::size_t first = begin; first < end; first += run_block) {
                const std::size_t count = (std::min)(run_block, end - first);
                for (std::size_t c = 0; c < count; ++c) {
                    double sum = 0.0;
                    for (std::size_t i = first + c; i < size_; i += columns_) {
                        sum = double_add(sum, sums_.data()[i]);
                    }
                    rounded[c] = sum;
                }
                store_elements(*totals_.type, rounded, count,
                               totals_.at(0, static_cast<std::ptrdiff_t>(first)));
            }
        });
    }

private:
    any_matrix totals_;
    std::size_t columns_;
    std::size_t size_;
    staging_buffer<double> sums_;
};

/// Empty statistics are computed. dx may lie in the memory of x or dy.
template <class Real>
void normalize_rows_backward(bool is_centered, const cpu& exec, double epsilon, const any_matrix& x,
                             const any_matrix& gamma, const any_matrix& dy, const any_matrix& dx,
                             const any_matrix& dgamma, const any_matrix& dbeta,
                             std::span<const ops::basic_normalization_statistics<Real>> statistics) {
    const auto kernel = normalization_backward_kernel<Real>();
    const auto scales = column_array(exec, gamma, x.columns, Real{1});
    const std::ptrdiff_t height = rows_of_part(x.rows, x.columns);
    const auto parts = static_cast<std::size_t>((x.rows + height - 1) / height);
    column_parts of_gamma(exec, dgamma, parts);
    column_parts of_beta(exec, dbeta, parts);
    using block = block_of_rows<Real>;
    const auto of_kernel = static_cast<std::size_t>(normalization_block * x.columns);
    const std::size_t of_x = block::size_of_copies(x), of_dy = block::size_of_copies(dy);
    thread_buffers<Real> buffers(exec, of_kernel + of_x + of_dy + block::size_of_copies(dx));
    const auto grain = static_cast<std::size_t>(1 + normalization_grain / (height * x.columns));
    parallel_arithmetic(exec, parts, grain, [&](std::size_t begin, std::size_t end) {
        Real* const room = buffers.take();
        const block in(x, room + of_kernel);
        const block gradient(dy, room + of_kernel + of_x);
        const block out(dx, room + of_kernel + of_x + of_dy);
        for (std::size_t part = begin; part < end; ++part) {
            const auto run = [&](std::ptrdiff_t first, std::ptrdiff_t count) {
                in.read(first, count);
                gradient.read(first, count);
                kernel({static_cast<std::size_t>(x.columns), is_centered, as<Real>(epsilon),
                        in.template rows<const Real>(first)},
                       {scales.data(), gradient.template rows<const Real>(first), out.rows(first),
                        from_row(statistics, first), of_gamma.part(part), of_beta.part(part), room},
                       count);
                out.write(first, count);
            };
            const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(part) * height;
            for_each_block(first, (std::min)(x.rows, first + height),
                           in.in_place() && gradient.in_place() && out.in_place(), run);
        }
    });
    of_gamma.finish(exec);
    of_beta.finish(exec);
}

}}  // namespace mp::detail
