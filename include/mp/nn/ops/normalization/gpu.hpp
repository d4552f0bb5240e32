// SPDX-License-Identifier: MIT
/// \file
/// Normalization of the rows of a matrix on a GPU, forward and backward; the statistics of a row, its center and the
/// inverse of its deviation, are in float with the rounding errors compensated.
#pragma once

#include <mp/device/gpu/matrix_sums.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/gpu_casts.hpp>
#include <mp/nn/ops/normalization.hpp>
#include <mp/numbers/rules/float_float.hpp>
#include <mp/numbers/rules/float_functions.hpp>
#include <mp/numbers/rules/row_statistics.hpp>
#include <mp/workspace.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// x times the row's factor, less its center.
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE float distance_from_center(
    const ops::normalization_statistics& row, float x) {
    return float_subtract(float_subtract(float_multiply(x, row.factor), row.center), row.center_tail);
}
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE float normalized_float(const ops::normalization_statistics& row,
                                                                     float x) {
    return float_multiply(distance_from_center(row, x), row.inverse);
}

/// The statistics of the row times the factor, and in `variance` the variance (or mean square) + epsilon of
/// that. Two passes: the mean, then the squares of the distances from it.
MP_ANY_EXECUTION_SPACE
template <class Group, int Width, bool Centered, class Thread, class Value>
[[nodiscard]] MP_HOST_DEVICE ops::normalization_statistics statistics_by_factor(
    Thread thread, const row_matrix<Value>& x, std::ptrdiff_t row, std::ptrdiff_t columns, float epsilon,
    float factor, float& variance) {
    ops::normalization_statistics result;
    result.factor = factor;
    const auto count = static_cast<float>(columns);
    if constexpr (Centered) {
        float_float sum{};
        for (std::ptrdiff_t c = Group::rank(thread) * Width; c < columns; c += Group::size * Width) {
            const row_floats<Width> values = load_row_floats<Width>(thread, x, row, c, columns);
            MP_UNROLL
            for (int i = 0; i < Width; ++i) sum = sum + float_multiply(values.values[i], factor);
        }
        const float_float mean = divided(Group::reduce(thread, sum, add_pairs{}), count);
        result.center = mean.high;
        result.center_tail = is_float_finite(mean.low) ? mean.low : 0.0F;
    }
    float_float squares{};
    for (std::ptrdiff_t c = Group::rank(thread) * Width; c < columns; c += Group::size * Width) {
        row_floats<Width> values = load_row_floats<Width>(thread, x, row, c, columns);
        MP_UNROLL
        for (int i = 0; i < Width; ++i) {
            const float distance = distance_from_center(result, values.values[i]);
            values.values[i] = c + i < columns ? float_multiply(distance, distance) : 0.0F;
        }
        squares = squares + sum_of_chunk(values);
    }
    squares = Group::reduce(thread, squares, add_pairs{});
    variance = float_add(float_divide(squares.value(), count),
                         float_multiply(float_multiply(epsilon, factor), factor));
    result.inverse = float_divide(1.0F, float_sqrt(variance));
    return result;
}

/// The statistics of a row. All threads of a group call it for the same row; rows with squares beyond float's
/// range, or so small that they lose digits, are calculated again, scaled so that the largest is about 1.
MP_ANY_EXECUTION_SPACE
template <class Group, int Width, bool Centered, class Thread, class Value>
[[nodiscard]] MP_HOST_DEVICE ops::normalization_statistics float_row_statistics_of(
    Thread thread, const row_matrix<Value>& x, std::ptrdiff_t row, std::ptrdiff_t columns, float epsilon) {
    constexpr float smallest_variance = 0x1p-80F;
    float variance = 0;
    const ops::normalization_statistics plain =
        statistics_by_factor<Group, Width, Centered>(thread, x, row, columns, epsilon, 1.0F, variance);
    // The same for all threads of the group.
    if (is_float_finite(variance) && variance >= smallest_variance) return plain;
    std::uint32_t largest = 0;
    for (std::ptrdiff_t c = Group::rank(thread) * Width; c < columns; c += Group::size * Width) {
        const row_floats<Width> values = load_row_floats<Width>(thread, x, row, c, columns);
        MP_UNROLL
        for (int i = 0; i < Width; ++i) {
            largest = larger_word{}(largest, bit_cast<std::uint32_t>(values.values[i]) & 0x7FFF'FFFFU);
        }
    }
    largest = Group::reduce(thread, largest, larger_word{});
    const int of_row = static_cast<int>(largest >> 23) - 127;
    const int of_epsilon = (static_cast<int>(bit_cast<std::uint32_t>(epsilon) >> 23) - 127) / 2;
    int exponent = of_row < of_epsilon ? of_epsilon : of_row;
    exponent = exponent > 126 ? 126 : exponent < -126 ? -126 : exponent;
    return statistics_by_factor<Group, Width, Centered>(thread, x, row, columns, epsilon,
                                                        float_power_of_two(-exponent), variance);
}

/// gamma or beta as a row, with a null pointer where it is absent.
template <int Width>
row_matrix<const float> array_row(ops::absent_t /*absent*/) {
    return {};
}
template <int Width, class Value>
row_matrix<const Value> array_row(std::span<const Value> values) {
    return rows_of<Width>(values);
}
/// Its type of element; float stands for absent ones.
template <class Operand>
struct scaling_element {
    using type = std::remove_const_t<typename Operand::element_type>;
};
template <>
struct scaling_element<ops::absent_t> {
    using type = float;
};
template <class Operand>
using scaling_element_t = typename scaling_element<std::remove_cvref_t<Operand>>::type;

/// A chunk of gamma or beta, or what stands for it where it is absent.
MP_ANY_EXECUTION_SPACE
template <int Width, class Thread, class Value>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE row_floats<Width> load_or(Thread thread,
                                                                        const row_matrix<Value>& array,
                                                                        std::ptrdiff_t column,
                                                                        std::ptrdiff_t columns,
                                                                        float otherwise) {
    if (array.data != nullptr) return load_row_floats<Width>(thread, array, 0, column, columns);
    row_floats<Width> result;
    MP_UNROLL
    for (int i = 0; i < Width; ++i) result.values[i] = otherwise;
    return result;
}

template <class Group, bool Centered, class X, class Gamma, class Beta, class Y>
struct normalize_kernel {
    static constexpr int threads = row_threads;
    static constexpr int width = row_chunk<X, Gamma, Beta, Y>;
    row_matrix<const X> x;
    row_matrix<const Gamma> gamma;
    row_matrix<const Beta> beta;
    row_matrix<Y> y;
    ops::normalization_statistics* results;  ///< null where they are not wanted
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    float epsilon;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        for (std::ptrdiff_t row = Group::number(thread); row < rows; row += Group::count(thread)) {
            const ops::normalization_statistics statistics =
                float_row_statistics_of<Group, width, Centered>(thread, x, row, columns, epsilon);
            if (results != nullptr && Group::rank(thread) == 0) thread.store(results + row, statistics);
            for (std::ptrdiff_t c = Group::rank(thread) * width; c < columns; c += Group::size * width) {
                row_floats<width> values = load_row_floats<width>(thread, x, row, c, columns);
                const row_floats<width> scales = load_or<width>(thread, gamma, c, columns, 1.0F);
                const row_floats<width> shifts = load_or<width>(thread, beta, c, columns, 0.0F);
                MP_UNROLL
                for (int i = 0; i < width; ++i) {
                    values.values[i] = float_multiply_add(normalized_float(statistics, values.values[i]),
                                                          scales.values[i], shifts.values[i]);
                }
                store_row_floats(thread, y, row, c, columns, values);
            }
        }
    }
};

/// The statistics of all rows into a workspace.
template <class Group, bool Centered, class X>
struct row_statistics_kernel {
    static constexpr int threads = row_threads;
    static constexpr int width = row_chunk<X>;
    row_matrix<const X> x;
    ops::normalization_statistics* results;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    float epsilon;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        for (std::ptrdiff_t row = Group::number(thread); row < rows; row += Group::count(thread)) {
            const ops::normalization_statistics statistics =
                float_row_statistics_of<Group, width, Centered>(thread, x, row, columns, epsilon);
            if (Group::rank(thread) == 0) thread.store(results + row, statistics);
        }
    }
};

template <class Group, bool Centered, class X, class Gamma, class DY, class DX>
struct normalize_backward_kernel {
    static constexpr int threads = row_threads;
    static constexpr int width = row_chunk<X, Gamma, DY, DX>;
    row_matrix<const X> x;
    row_matrix<const Gamma> gamma;
    row_matrix<const DY> dy;
    row_matrix<DX> dx;
    const ops::normalization_statistics* saved;  ///< of all rows
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        for (std::ptrdiff_t row = Group::number(thread); row < rows; row += Group::count(thread)) {
            const ops::normalization_statistics statistics = thread.load(saved + row);
            two_float_floats
                sums{};  // of the gradient of the normalized row, and of its product with that row
            for (std::ptrdiff_t c = Group::rank(thread) * width; c < columns; c += Group::size * width) {
                row_floats<width> normalized{};
                row_floats<width> parts{};
                load(thread, statistics, row, c, normalized, parts);
                MP_UNROLL
                for (int i = 0; i < width; ++i) {
                    const float along = float_multiply(parts.values[i], normalized.values[i]);
                    normalized.values[i] = c + i < columns ? along : 0.0F;
                }
                if constexpr (Centered) sums.first = sums.first + sum_of_chunk(parts);
                sums.second = sums.second + sum_of_chunk(normalized);
            }
            sums = Group::reduce(thread, sums, add_two_pairs{});
            const auto count = static_cast<float>(columns);
            const float mean = float_divide(sums.first.value(), count);
            const float along = float_divide(sums.second.value(), count);
            for (std::ptrdiff_t c = Group::rank(thread) * width; c < columns; c += Group::size * width) {
                row_floats<width> normalized{};
                row_floats<width> parts{};
                load(thread, statistics, row, c, normalized, parts);
                MP_UNROLL
                for (int i = 0; i < width; ++i) {
                    const float rest = float_multiply_add(-normalized.values[i], along,
                                                          float_subtract(parts.values[i], mean));
                    parts.values[i] =
                        float_multiply(float_multiply(rest, statistics.inverse), statistics.factor);
                }
                store_row_floats(thread, dx, row, c, columns, parts);
            }
        }
    }

private:
    /// A chunk of the normalized row and of its gradient.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void load(Thread thread, const ops::normalization_statistics& statistics,
                                              std::ptrdiff_t row, std::ptrdiff_t c,
                                              row_floats<width>& normalized, row_floats<width>& parts) const {
        normalized = load_row_floats<width>(thread, x, row, c, columns);
        parts = load_row_floats<width>(thread, dy, row, c, columns);
        const row_floats<width> scales = load_or<width>(thread, gamma, c, columns, 1.0F);
        MP_UNROLL
        for (int i = 0; i < width; ++i) {
            normalized.values[i] = normalized_float(statistics, normalized.values[i]);
            parts.values[i] = float_multiply(parts.values[i], scales.values[i]);
        }
    }
};

/// The terms of the gradients of gamma, dy times the normalized row, and of beta, dy.
template <bool OfGamma, bool OfBeta, class X, class DY>
struct normalization_terms {
    static constexpr int width = row_chunk<X, DY>;
    static constexpr int sums = (OfGamma ? 1 : 0) + (OfBeta ? 1 : 0);
    row_matrix<const X> x;
    row_matrix<const DY> dy;
    const ops::normalization_statistics* saved;  ///< of all rows

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void add(
        Thread thread, std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t columns,
        float_float (&totals)[std::size_t{sums}][std::size_t{width}]) const {
        const row_floats<width> gradients = load_row_floats<width>(thread, dy, row, column, columns);
        if constexpr (OfGamma) {
            const ops::normalization_statistics statistics = thread.load(saved + row);
            const row_floats<width> values = load_row_floats<width>(thread, x, row, column, columns);
            MP_UNROLL
            for (int i = 0; i < width; ++i) {
                totals[0][i] = totals[0][i] + float_multiply(gradients.values[i],
                                                             normalized_float(statistics, values.values[i]));
            }
        }
        if constexpr (OfBeta) {
            MP_UNROLL
            for (int i = 0; i < width; ++i) {
                totals[sums - 1][i] = totals[sums - 1][i] + gradients.values[i];
            }
        }
    }
};

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Bytes of the executor's workspace that layer_norm_backward() and rms_norm_backward() need on a GPU for
/// matrices of this shape, whichever gradients are asked for, casts not included: 16 bytes a row, and 16
/// bytes a column for every 64 rows, or for every 256th of the rows if there are more than 16384.
[[nodiscard]] constexpr std::size_t normalization_backward_workspace(std::ptrdiff_t rows,
                                                                     std::ptrdiff_t columns) {
    return workspace::aligned_size(static_cast<std::size_t>(rows) * sizeof(normalization_statistics)) +
           detail::column_sum_bytes(rows, columns, 2) + workspace::alignment;
}

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// normalize_rows() of the CPU, enqueued.
template <bool Centered, gpu_executor Executor, class X, class Gamma, class Beta, class Y>
void normalize_rows(row_normalization<Centered>, const Executor& exec, double epsilon, matrix_view<const X> x,
                    const Gamma& gamma, const Beta& beta, matrix_view<Y> y,
                    std::span<ops::normalization_statistics> statistics) {
    if (x.rows == 0) return;
    using scale = scaling_element_t<Gamma>;
    using shift = scaling_element_t<Beta>;
    constexpr int width = row_chunk<X, scale, shift, Y>;
    launch_rows(Centered ? "mp::ops::layer_norm" : "mp::ops::rms_norm", exec, x.rows, x.columns,
                [&]<class Group>(Group) {
                    return normalize_kernel<Group, Centered, X, scale, shift, Y>{
                        rows_of<width>(x),
                        array_row<width>(gamma),
                        array_row<width>(beta),
                        rows_of<width>(y),
                        statistics.empty() ? nullptr : statistics.data(),
                        x.rows,
                        x.columns,
                        static_cast<float>(epsilon)};
                });
}

/// normalize_rows_backward() of the CPU, enqueued.
template <bool Centered, gpu_executor Executor, class X, class Gamma, class DY, class DX, class DGamma,
          class DBeta>
void normalize_rows_backward(row_normalization<Centered>, const Executor& exec, double epsilon,
                             matrix_view<const X> x, const Gamma& gamma, matrix_view<const DY> dy,
                             const DX& dx, const DGamma& dgamma, const DBeta& dbeta,
                             std::span<const ops::normalization_statistics> statistics) {
    constexpr std::string_view function =
        Centered ? "mp::ops::layer_norm_backward" : "mp::ops::rms_norm_backward";
    constexpr bool of_gamma = !std::is_same_v<DGamma, ops::absent_t>;
    constexpr bool of_beta = !std::is_same_v<DBeta, ops::absent_t>;
    constexpr int sums = (of_gamma ? 1 : 0) + (of_beta ? 1 : 0);
    const workspace::frame frame(workspace_of(exec));
    // Before anything is launched, since it may throw.
    auto* const computed = statistics.empty() ? take_workspace<ops::normalization_statistics>(
                                                    function, exec, static_cast<std::size_t>(x.rows))
                                              : nullptr;
    [[maybe_unused]] auto* const parts =
        sums == 0 ? nullptr : take_column_parts(function, exec, x.rows, x.columns, sums);
    const ops::normalization_statistics* const saved = statistics.empty() ? computed : statistics.data();
    if (statistics.empty() && x.rows != 0) {
        launch_rows(function, exec, x.rows, x.columns, [&]<class Group>(Group) {
            return row_statistics_kernel<Group, Centered, X>{rows_of<row_chunk<X>>(x), computed, x.rows,
                                                             x.columns, static_cast<float>(epsilon)};
        });
    }
    if constexpr (sums != 0) {
        constexpr int width = row_chunk<X, DY>;
        launch_column_parts(
            function, exec,
            normalization_terms<of_gamma, of_beta, X, DY>{rows_of<width>(x), rows_of<width>(dy), saved},
            x.rows, x.columns, parts);
        if constexpr (of_gamma) launch_column_totals(function, exec, parts, 0, x.rows, dgamma);
        if constexpr (of_beta) launch_column_totals(function, exec, parts, sums - 1, x.rows, dbeta);
    }
    // Last, since dx may lie in the memory of x or dy.
    if constexpr (!std::is_same_v<DX, ops::absent_t>) {
        if (x.rows == 0) return;
        using scale = scaling_element_t<Gamma>;
        using result = typename DX::value_type;
        constexpr int width = row_chunk<X, scale, DY, result>;
        launch_rows(function, exec, x.rows, x.columns, [&]<class Group>(Group) {
            return normalize_backward_kernel<Group, Centered, X, scale, DY, result>{rows_of<width>(x),
                                                                                    array_row<width>(gamma),
                                                                                    rows_of<width>(dy),
                                                                                    rows_of<width>(dx),
                                                                                    saved,
                                                                                    x.rows,
                                                                                    x.columns};
        });
    }
}

}}  // namespace mp::detail
