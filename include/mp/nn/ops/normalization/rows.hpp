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

/// Rows of a matrix as floats (or doubles): where they lie if they are floats side by side, else copies of a
/// block of them, which are read from the matrix and written to it.
template <class Value, class Real>
class block_of_rows {
public:
    using value = std::remove_const_t<Value>;

    /// `room` has size_of_copies() floats.
    block_of_rows(matrix_view<Value> matrix, Real* room)
        : matrix_(matrix), in_place_(is_read_in_place(matrix)), copies_(room) {}
    static std::size_t size_of_copies(matrix_view<Value> matrix) {
        return is_read_in_place(matrix) ? 0 : static_cast<std::size_t>(normalization_block * matrix.columns);
    }
    [[nodiscard]] bool in_place() const { return in_place_; }

    /// From row `first` on; copies have room for a block.
    [[nodiscard]] float_rows<std::conditional_t<std::is_const_v<Value>, const Real, Real>> rows(
        std::ptrdiff_t first) {
        if constexpr (std::same_as<value, Real>) {
            if (in_place_) return {matrix_.data + first * matrix_.row_stride(), matrix_.row_stride()};
        }
        return {copies_, matrix_.columns};
    }
    void read(std::ptrdiff_t first, std::ptrdiff_t count) {
        for (std::ptrdiff_t r = 0; !in_place_ && r < count; ++r) {
            load_row(matrix_view<const value>(matrix_), first + r, copies_ + r * matrix_.columns);
        }
    }
    void write(std::ptrdiff_t first, std::ptrdiff_t count) const {
        for (std::ptrdiff_t r = 0; !in_place_ && r < count; ++r) {
            put_row(copies_ + r * matrix_.columns, matrix_, first + r);
        }
    }

private:
    static bool is_read_in_place(matrix_view<Value> matrix) {
        return std::same_as<value, Real> && matrix.column_stride() == 1;
    }

    matrix_view<Value> matrix_;
    bool in_place_;
    Real* copies_;
};
/// No rows, of a result that is not wanted.
template <class Real>
class block_of_rows<ops::absent_t, Real> {
public:
    block_of_rows(ops::absent_t /*absent*/, Real* /*room*/) {}
    [[nodiscard]] static bool in_place() { return true; }
    [[nodiscard]] static float_rows<Real> rows(std::ptrdiff_t /*first*/) { return {}; }
    static void write(std::ptrdiff_t /*first*/, std::ptrdiff_t /*count*/) {}
};
template <class Value, class Real>
block_of_rows(matrix_view<Value>, Real*) -> block_of_rows<Value, Real>;
template <class Real>
block_of_rows(ops::absent_t, Real*) -> block_of_rows<ops::absent_t, Real>;

template <class Real, class Value>
std::size_t size_of_copies(matrix_view<Value> matrix) {
    return block_of_rows<Value, Real>::size_of_copies(matrix);
}
template <class Real>
std::size_t size_of_copies(ops::absent_t /*absent*/) {
    return 0;
}

/// Calls f(first, count) for blocks of rows, or once for all of them.
template <class Function>
void for_each_block(std::ptrdiff_t begin, std::ptrdiff_t end, bool at_once, Function f) {
    const std::ptrdiff_t step = at_once ? end - begin : normalization_block;
    for (std::ptrdiff_t first = begin; first < end; first += step) f(first, (std::min)(step, end - first));
}

/// gamma or beta as Numbers, or one number where it is absent.
template <class Number>
staging_buffer<Number> column_array(const cpu& exec, const ops::absent_t& /*absent*/, std::ptrdiff_t columns,
                                    Number otherwise) {
    staging_buffer<Number> result(exec, static_cast<std::size_t>(columns));
    std::fill_n(result.data(), columns, otherwise);
    return result;
}
template <class Number, class Value>
staging_buffer<Number> column_array(const cpu& exec, std::span<const Value> values,
                                    std::ptrdiff_t /*columns*/, Number /*otherwise*/) {
    staging_buffer<Number> result(exec, values.size());
    for (std::size_t c = 0; c < values.size(); ++c) result.data()[c] = as<Number>(values[c]);
    return result;
}

/// The part of an array from a row on, or null where the array is empty.
template <class Value>
Value* from_row(std::span<Value> values, std::ptrdiff_t row) {
    return values.empty() ? nullptr : values.data() + row;
}

/// Around the mean (layer_norm) or around zero (rms_norm).
template <bool Centered>
struct row_normalization {};

/// Statistics have the type that an op computes in, so they are known to be of doubles by x.
template <class X, class... Others>
constexpr void check_norm_of_doubles() {
    static_assert(any_double<X> || !any_double<Others...>,
                  "mp::ops: a norm with an operand of doubles has an x of doubles");
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

/// The forward pass on the CPU; on a GPU the function of this name in <mp/nn/ops/normalization/gpu.hpp>.
template <bool Centered, class X, class Gamma, class Beta, class Y>
void normalize_rows(row_normalization<Centered>, const cpu& exec, double epsilon, matrix_view<const X> x,
                    const Gamma& gamma, const Beta& beta, matrix_view<Y> y,
                    std::span<ops::normalization_statistics_of<X>> statistics) {
    check_norm_of_doubles<X, Gamma, Beta, Y>();
    using real = arithmetic_type<X>;
    const auto kernel = normalization_kernel<real>();
    const auto scales = column_array(exec, gamma, x.columns, 1.0);
    const auto shifts = column_array(exec, beta, x.columns, 0.0);
    const std::size_t of_x = size_of_copies<real>(x);
    thread_buffers<real> buffers(exec, of_x + size_of_copies<real>(y));
    parallel_arithmetic(
        exec, static_cast<std::size_t>(x.rows), static_cast<std::size_t>(1 + normalization_grain / x.columns),
        [&](std::size_t begin, std::size_t end) {
            real* const room = buffers.take();
            block_of_rows in(x, room);
            block_of_rows out(y, room + of_x);
            const auto run = [&](std::ptrdiff_t first, std::ptrdiff_t count) {
                in.read(first, count);
                kernel({static_cast<std::size_t>(x.columns), Centered, as<real>(epsilon), in.rows(first)},
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
template <class Totals>
class column_parts {
public:
    column_parts(const cpu& exec, const Totals& totals, std::size_t parts) : totals_(totals) {
        if constexpr (wanted) {
            size_ = parts * totals.size();
            sums_ = staging_buffer<double>(exec, size_);
            std::fill_n(sums_.data(), size_, 0.0);
        }
    }
    [[nodiscard]] double* part(std::size_t i) {
        if constexpr (wanted) return sums_.data() + i * totals_.size();
        return nullptr;
    }
    void finish(cpu exec) const {
        if constexpr (wanted) {
            const std::size_t columns = totals_.size();
            const std::size_t grain = 1 + 16384 / (std::max<std::size_t>)(size_ / columns, 1);
            parallel_arithmetic(exec, columns, grain, [&](std::size_t begin, std::size_t end) {
                for (std::size_t c = begin; c < end; ++c) {
                    double sum = 0.0;
                    for (std::size_t i = c; i < size_; i += columns) sum = double_add(sum, sums_.data()[i]);
                    totals_[c] = as<typename Totals::value_type>(sum);
                }
            });
        }
    }

private:
    static constexpr bool wanted = !std::is_same_v<Totals, ops::absent_t>;
    const Totals& totals_;
    staging_buffer<double> sums_;
    std::size_t size_ = 0;
};

/// Empty statistics are computed. dx may lie in the memory of x or dy.
template <bool Centered, class X, class Gamma, class DY, class DX, class DGamma, class DBeta>
void normalize_rows_backward(row_normalization<Centered>, const cpu& exec, double epsilon,
                             matrix_view<const X> x, const Gamma& gamma, matrix_view<const DY> dy,
                             const DX& dx, const DGamma& dgamma, const DBeta& dbeta,
                             std::span<const ops::normalization_statistics_of<X>> statistics) {
    check_norm_of_doubles<X, Gamma, DY, DX, DGamma, DBeta>();
    using real = arithmetic_type<X>;
    const auto kernel = normalization_backward_kernel<real>();
    const auto scales = column_array(exec, gamma, x.columns, real{1});
    const std::ptrdiff_t height = rows_of_part(x.rows, x.columns);
    const auto parts = static_cast<std::size_t>((x.rows + height - 1) / height);
    column_parts<DGamma> of_gamma(exec, dgamma, parts);
    column_parts<DBeta> of_beta(exec, dbeta, parts);
    const auto of_kernel = static_cast<std::size_t>(normalization_block * x.columns);
    const std::size_t of_x = size_of_copies<real>(x), of_dy = size_of_copies<real>(dy);
    thread_buffers<real> buffers(exec, of_kernel + of_x + of_dy + size_of_copies<real>(dx));
    const auto grain = static_cast<std::size_t>(1 + normalization_grain / (height * x.columns));
    parallel_arithmetic(exec, parts, grain, [&](std::size_t begin, std::size_t end) {
        real* const room = buffers.take();
        block_of_rows in(x, room + of_kernel);
        block_of_rows gradient(dy, room + of_kernel + of_x);
        block_of_rows out(dx, room + of_kernel + of_x + of_dy);
        for (std::size_t part = begin; part < end; ++part) {
            const auto run = [&](std::ptrdiff_t first, std::ptrdiff_t count) {
                in.read(first, count);
                gradient.read(first, count);
                kernel({static_cast<std::size_t>(x.columns), Centered, as<real>(epsilon), in.rows(first)},
                       {scales.data(), gradient.rows(first), out.rows(first), from_row(statistics, first),
                        of_gamma.part(part), of_beta.part(part), room},
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
