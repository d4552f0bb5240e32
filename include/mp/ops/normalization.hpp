// SPDX-License-Identifier: MIT
/// \file
/// Normalization of the rows of a matrix, forward and backward: to mean 0 and deviation 1, or to root mean
/// square 1.
#pragma once

#include <mp/autocast/dispatch.hpp>
#include <mp/detail/contiguous.hpp>
#include <mp/detail/parallel.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/format/operations.hpp>
#include <mp/ops/arguments.hpp>
#include <mp/ops/matrix_operand.hpp>
#include <mp/ops/pieces.hpp>
#include <mp/rules/rounded_doubles.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mp::ops::inline MP_ISA_NAMESPACE {

struct normalization_options {
    /// Added to the variance or the mean square; finite and not negative. With 0 a constant row (in rms_norm
    /// a row of zeros) gives NaN.
    float epsilon = 1e-5F;
};

/// Memory of the caller for what a normalization found out about each row: one float a row, or an empty span
/// where it is not wanted. Autocast leaves it alone, so that it stays in float.
struct row_statistics {
    std::span<float> mean = {};               ///< layer_norm only; empty for rms_norm
    std::span<float> inverse_deviation = {};  ///< 1 / sqrt(variance or mean square + epsilon)
};

}  // namespace mp::ops::inline MP_ISA_NAMESPACE

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// A row is normalized as (x - center) * inverse.
struct row_scaling {
    double center;
    double inverse;

    [[nodiscard]] MP_ALWAYS_INLINE rounded_doubles<1> normalized(rounded_doubles<1> x) const {
        return (x - center) * inverse;
    }
};

/// The mean where Centered, else 0, and the inverse deviation from it: two passes in double.
template <bool Centered, class X>
row_scaling row_scaling_of(matrix_view<const X> x, std::ptrdiff_t row, float epsilon) {
    using number = rounded_doubles<1>;
    const number count = static_cast<double>(x.columns);
    number center = 0.0;
    if constexpr (Centered) {
        for (std::ptrdiff_t c = 0; c < x.columns; ++c) center += static_cast<double>(x(row, c));
        center = center / count;
    }
    number squares = 0.0;
    for (std::ptrdiff_t c = 0; c < x.columns; ++c) {
        const number distance = number(static_cast<double>(x(row, c))) - center;
        squares += distance * distance;
    }
    const number square = squares / count + static_cast<double>(epsilon);
    return {center.value(), double_divide(1.0, double_sqrt(square.value()))};
}

/// Element c of gamma or beta, or what stands for it where it is absent.
inline double value_or(const ops::absent_t& /*absent*/, std::ptrdiff_t /*c*/, double otherwise) {
    return otherwise;
}
template <class Value>
double value_or(std::span<const Value> values, std::ptrdiff_t c, double /*otherwise*/) {
    return static_cast<double>(values[static_cast<std::size_t>(c)]);
}

/// Calls f(row) for each row, rows on different threads.
template <class Function>
void for_each_row(cpu exec, std::ptrdiff_t rows, std::ptrdiff_t columns, Function f) {
    constexpr std::ptrdiff_t elements_per_piece = 8192;  // some ten microseconds of work, as a thread costs
    parallel_arithmetic(exec, static_cast<std::size_t>(rows),
                        static_cast<std::size_t>(1 + elements_per_piece / columns),
                        [&](std::size_t begin, std::size_t end) {
                            for (std::size_t i = begin; i < end; ++i) f(static_cast<std::ptrdiff_t>(i));
                        });
}

template <bool Centered, class X, class Gamma, class Beta, class Y>
void normalize_rows(cpu exec, matrix_view<const X> x, const Gamma& gamma, const Beta& beta, matrix_view<Y> y,
                    float epsilon, const ops::row_statistics& statistics) {
    for_each_row(exec, x.rows, x.columns, [&](std::ptrdiff_t row) {
        const row_scaling scaling = row_scaling_of<Centered>(x, row, epsilon);
        for (std::ptrdiff_t c = 0; c < x.columns; ++c) {
            const rounded_doubles<1> normalized = scaling.normalized(static_cast<double>(x(row, c)));
            y(row, c) =
                static_cast<Y>((normalized * value_or(gamma, c, 1.0) + value_or(beta, c, 0.0)).value());
        }
        const auto i = static_cast<std::size_t>(row);
        if (!statistics.mean.empty()) statistics.mean[i] = static_cast<float>(scaling.center);
        if (!statistics.inverse_deviation.empty()) {
            statistics.inverse_deviation[i] = static_cast<float>(scaling.inverse);
        }
    });
}

/// The scaling of every row: from the statistics where the forward pass saved them, else computed again.
template <bool Centered, class X>
std::vector<row_scaling> row_scalings(cpu exec, matrix_view<const X> x, float epsilon,
                                      const ops::row_statistics& statistics) {
    std::vector<row_scaling> scalings(static_cast<std::size_t>(x.rows));
    for_each_row(exec, x.rows, x.columns, [&](std::ptrdiff_t row) {
        const auto i = static_cast<std::size_t>(row);
        if (statistics.inverse_deviation.empty()) {
            scalings[i] = row_scaling_of<Centered>(x, row, epsilon);
        } else {
            scalings[i] = {Centered ? static_cast<double>(statistics.mean[i]) : 0.0,
                           static_cast<double>(statistics.inverse_deviation[i])};
        }
    });
    return scalings;
}

/// totals[c] = the sum over the rows of term(row, c), in double in the order of the rows, rounded once.
template <class Total, class Term>
void sum_columns(cpu exec, std::ptrdiff_t rows, std::span<Total> totals, Term term) {
    constexpr std::size_t width = 64;  // columns summed together: a few vector registers
    const std::size_t blocks = (totals.size() + width - 1) / width;
    const std::size_t work = width * static_cast<std::size_t>((std::max<std::ptrdiff_t>)(rows, 1));
    parallel_arithmetic(exec, blocks, 1 + 16384 / work, [&](std::size_t begin, std::size_t end) {
        for (std::size_t block = begin; block < end; ++block) {
            const std::size_t first = block * width;
            const std::size_t count = (std::min)(width, totals.size() - first);
            double sums[width] = {};
            for (std::ptrdiff_t row = 0; row < rows; ++row) {
                for (std::size_t c = 0; c < count; ++c) {
                    const rounded_doubles<1> sum = sums[c];
                    sums[c] = (sum + term(row, static_cast<std::ptrdiff_t>(first + c))).value();
                }
            }
            for (std::size_t c = 0; c < count; ++c) totals[first + c] = static_cast<Total>(sums[c]);
        }
    });
}

/// dx last, since it may lie in the memory of x or dy.
template <bool Centered, class X, class Gamma, class DY, class DX, class DGamma, class DBeta>
void normalize_rows_backward(cpu exec, matrix_view<const X> x, const Gamma& gamma, matrix_view<const DY> dy,
                             const DX& dx, const DGamma& dgamma, const DBeta& dbeta, float epsilon,
                             const ops::row_statistics& statistics) {
    const std::vector<row_scaling> scalings = row_scalings<Centered>(exec, x, epsilon, statistics);
    const auto normalized = [&](std::ptrdiff_t row, std::ptrdiff_t c) {
        return scalings[static_cast<std::size_t>(row)].normalized(static_cast<double>(x(row, c)));
    };
    const auto gradient = [&](std::ptrdiff_t row, std::ptrdiff_t c) {
        return rounded_doubles<1>(static_cast<double>(dy(row, c)));
    };
    if constexpr (!std::is_same_v<DGamma, ops::absent_t>) {
        sum_columns(exec, x.rows, dgamma, [&](std::ptrdiff_t row, std::ptrdiff_t c) {
            return gradient(row, c) * normalized(row, c);
        });
    }
    if constexpr (!std::is_same_v<DBeta, ops::absent_t>) sum_columns(exec, x.rows, dbeta, gradient);
    if constexpr (!std::is_same_v<DX, ops::absent_t>) {
        using result = typename DX::value_type;
        for_each_row(exec, x.rows, x.columns, [&](std::ptrdiff_t row) {
            using number = rounded_doubles<1>;
            const number count = static_cast<double>(x.columns);
            number mean = 0.0;   // of the gradient of the normalized row
            number along = 0.0;  // mean of its product with the normalized row
            for (std::ptrdiff_t c = 0; c < x.columns; ++c) {
                const number part = gradient(row, c) * value_or(gamma, c, 1.0);
                if constexpr (Centered) mean += part;
                along += part * normalized(row, c);
            }
            mean = mean / count;
            along = along / count;
            const number inverse = scalings[static_cast<std::size_t>(row)].inverse;
            for (std::ptrdiff_t c = 0; c < x.columns; ++c) {
                const number part = gradient(row, c) * value_or(gamma, c, 1.0);
                dx(row, c) =
                    static_cast<result>((inverse * (part - mean - normalized(row, c) * along)).value());
            }
        });
    }
}

/// Checks x, the options and the statistics. Saved statistics of layer_norm are two arrays or none.
inline void check_normalization(std::string_view function, cpu exec, const named_operand& x,
                                const ops::normalization_options& options, const named_operand& mean,
                                const named_operand& inverse, bool centered, bool saved) {
    check_threads(function, exec);
    check_operand(function, x);
    if (x.extent.columns == 0) throw_argument(function, "x.columns", 0, "must be at least 1");
    if (!isfinite(options.epsilon) || options.epsilon < 0.0F) {
        throw_argument(function, "options.epsilon", options.epsilon, "must be finite and not negative");
    }
    if (!centered && !mean.extent.empty()) {
        throw_argument(function, "statistics.mean.size()", mean.extent.columns,
                       "must be 0, since rms_norm has no use for means");
    }
    const bool paired = saved && centered && !(mean.extent.empty() && inverse.extent.empty());
    if (paired || !mean.extent.empty()) check_size(function, mean, x.extent.rows, "x.rows");
    if (paired || !inverse.extent.empty()) check_size(function, inverse, x.extent.rows, "x.rows");
}

/// Checks an array with an element for each column of x, if it is there.
template <class Operand>
void check_column_array(std::string_view function, const Operand& /*operand*/, const named_operand& array,
                        const named_operand& x) {
    if constexpr (!std::is_same_v<Operand, ops::absent_t>) {
        check_size(function, array, x.extent.columns, "x.columns");
    }
}

template <bool Centered>
void check_normalize_rows(std::string_view function, cpu exec, const auto& x, const auto& gamma,
                          const auto& beta, const auto& y, const ops::normalization_options& options,
                          const ops::row_statistics& statistics) {
    const auto input = named("x", x);
    const auto scale = named("gamma", gamma);
    const auto shift = named("beta", beta);
    const auto output = named("y", y);
    const auto mean = named("statistics.mean", statistics.mean);
    const auto inverse = named("statistics.inverse_deviation", statistics.inverse_deviation);
    check_normalization(function, exec, input, options, mean, inverse, Centered, false);
    check_column_array(function, gamma, scale, input);
    check_column_array(function, beta, shift, input);
    check_shape(function, output, input.extent.rows, "x.rows", input.extent.columns, "x.columns");
    check_separate_or_same(function, output, input);
    for (const auto& operand : {scale, shift}) check_separate(function, output, operand);
    for (const auto& operand : {input, scale, shift, output}) {
        check_separate(function, mean, operand);
        check_separate(function, inverse, operand);
    }
    check_separate(function, inverse, mean);
}

template <bool Centered>
void check_normalize_rows_backward(std::string_view function, cpu exec, const auto& x, const auto& gamma,
                                   const auto& dy, const auto& dx, const auto& dgamma, const auto& dbeta,
                                   const ops::normalization_options& options,
                                   const ops::row_statistics& statistics) {
    const auto input = named("x", x);
    const auto scale = named("gamma", gamma);
    const auto gradient = named("dy", dy);
    const auto mean = named("statistics.mean", statistics.mean);
    const auto inverse = named("statistics.inverse_deviation", statistics.inverse_deviation);
    const named_operand results[] = {named("dx", dx), named("dgamma", dgamma), named("dbeta", dbeta)};
    check_normalization(function, exec, input, options, mean, inverse, Centered, true);
    check_column_array(function, gamma, scale, input);
    check_shape(function, gradient, input.extent.rows, "x.rows", input.extent.columns, "x.columns");
    if constexpr (!std::is_same_v<decltype(dx), const ops::absent_t&>) {
        check_shape(function, results[0], input.extent.rows, "x.rows", input.extent.columns, "x.columns");
    }
    check_column_array(function, dgamma, results[1], input);
    check_column_array(function, dbeta, results[2], input);
    for (int i = 0; i < 3; ++i) {
        for (const auto& operand : {input, gradient}) {
            if (i == 0) {
                check_separate_or_same(function, results[i], operand);
            } else {
                check_separate(function, results[i], operand);
            }
        }
        for (const auto& operand : {scale, mean, inverse}) check_separate(function, results[i], operand);
        for (int j = 0; j < i; ++j) check_separate(function, results[i], results[j]);
    }
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE

namespace mp::ops::inline MP_ISA_NAMESPACE {

/// Tag of layer_norm(): sums and a root, so in float.
struct layer_norm_op {
    static constexpr std::string_view name = "layer_norm";
    static constexpr auto category = op_category::full_precision;
    static constexpr bool computes_in_float = true;
    static constexpr std::array<std::string_view, 7> argument_names = {"exec", "x",       "gamma",     "beta",
                                                                       "y",    "options", "statistics"};
    static constexpr std::array<std::string_view, 2> known_as = {"native_layer_norm", "LayerNorm"};

    static void validate(cpu exec, const auto& x, const auto& gamma, const auto& beta, const auto& y,
                         const normalization_options& options, const row_statistics& statistics) {
        detail::check_normalize_rows<true>("mp::ops::layer_norm", exec, x, gamma, beta, y, options,
                                           statistics);
    }

    template <element X, class Gamma, class Beta, element Y>
    void operator()(cpu exec, matrix_view<const X> x, const Gamma& gamma, const Beta& beta, matrix_view<Y> y,
                    const normalization_options& options, const row_statistics& statistics) const {
        detail::normalize_rows<true>(exec, x, gamma, beta, y, options.epsilon, statistics);
    }
};

/// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, row by row; the variance is the mean of the
/// squared distances from the mean.
///
/// Shapes: x and y are batch x features, in any storage order; y may be x, but not overlap it otherwise.
/// gamma and beta are contiguous ranges of `features` elements; either may be mp::ops::absent, which means 1
/// and 0. statistics, if its spans are not empty, receives the mean and 1 / sqrt(variance + epsilon) of each
/// row, rounded to float, for layer_norm_backward().
///
/// Accuracy: the mean, then the sum of the squared distances, in two passes in double, and everything else in
/// double; each element of y is rounded once. Before that rounding its error is at most
/// (n + 8) 2^-53 (max |x| / sqrt(variance + epsilon) + |normalized x|) |gamma|, to first order, for n
/// features: below 2^-23 |gamma| for 1000 features whose mean is a million times their deviation, where float
/// sums would leave no digit. Squares of floats do not overflow. NaN or infinity in a row
/// makes the whole row NaN. The results do not depend on the number of threads.
///
/// Throws argument_error for shapes that do not fit, no features, an epsilon that is negative or not finite,
/// invalid views and overlaps; nothing is then written.
template <class Policy = autocast::by_region, element X, class Gamma, class Beta, element Y>
void layer_norm(cpu exec, matrix_view<X> x, const Gamma& gamma, const Beta& beta, matrix_view<Y> y,
                const normalization_options& options = {}, const row_statistics& statistics = {}) {
    autocast::call<Policy>(layer_norm_op{}, exec, detail::input_view(x), detail::input_view(gamma),
                           detail::input_view(beta), detail::output_view(y), options, statistics);
}

/// Tag of layer_norm_backward(): sums over rows and columns, so in float.
struct layer_norm_backward_op {
    static constexpr std::string_view name = "layer_norm_backward";
    static constexpr auto category = op_category::full_precision;
    static constexpr bool computes_in_float = true;
    using forward_op = layer_norm_op;
    static constexpr std::array<std::string_view, 9> argument_names = {
        "exec", "x", "gamma", "dy", "dx", "dgamma", "dbeta", "options", "statistics"};
    static constexpr std::array<std::string_view, 1> known_as = {"native_layer_norm_backward"};

    static void validate(cpu exec, const auto& x, const auto& gamma, const auto& dy, const auto& dx,
                         const auto& dgamma, const auto& dbeta, const normalization_options& options,
                         const row_statistics& statistics) {
        detail::check_normalize_rows_backward<true>("mp::ops::layer_norm_backward", exec, x, gamma, dy, dx,
                                                    dgamma, dbeta, options, statistics);
    }

    template <element X, class Gamma, element DY, class DX, class DGamma, class DBeta>
    void operator()(cpu exec, matrix_view<const X> x, const Gamma& gamma, matrix_view<const DY> dy,
                    const DX& dx, const DGamma& dgamma, const DBeta& dbeta,
                    const normalization_options& options, const row_statistics& statistics) const {
        detail::normalize_rows_backward<true>(exec, x, gamma, dy, dx, dgamma, dbeta, options.epsilon,
                                              statistics);
    }
};

/// The gradients of y = layer_norm(x), given dy = dL/dy. With n = the normalized row and g = dy * gamma:
/// dx = (g - mean(g) - n mean(g n)) / sqrt(variance + epsilon), dgamma = the sum over the rows of dy n, dbeta
/// that of dy.
///
/// Shapes: x, gamma (or mp::ops::absent) and options are those of layer_norm(); dy is like y, dx like x, and
/// dgamma and dbeta have `features` elements. Any of dx, dgamma and dbeta may be mp::ops::absent. dx may be x
/// or dy, but not overlap them otherwise; the others overlap nothing.
///
/// With empty statistics those of the rows are computed again in double, with the accuracy of layer_norm().
/// With the statistics that layer_norm() saved that pass is spared, and their rounding to float changes n by
/// at most 2^-24 (|mean| / sqrt(variance + epsilon) + |n|): give none where rows have large means. Sums are
/// in double, column sums in the order of the rows, and each result is rounded once. The results do not
/// depend on the number of threads. Errors are those of layer_norm(), and saved statistics of which only one
/// span is empty.
template <class Policy = autocast::by_region, element X, class Gamma, element DY, class DX, class DGamma,
          class DBeta>
void layer_norm_backward(cpu exec, matrix_view<X> x, const Gamma& gamma, matrix_view<DY> dy, DX&& dx,
                         DGamma&& dgamma, DBeta&& dbeta, const normalization_options& options = {},
                         const row_statistics& statistics = {}) {
    autocast::call<Policy>(layer_norm_backward_op{}, exec, detail::input_view(x), detail::input_view(gamma),
                           detail::input_view(dy), detail::output_view(dx), detail::output_view(dgamma),
                           detail::output_view(dbeta), options, statistics);
}

/// Tag of rms_norm(): a sum and a root, so in float.
struct rms_norm_op {
    static constexpr std::string_view name = "rms_norm";
    static constexpr auto category = op_category::full_precision;
    static constexpr bool computes_in_float = true;
    static constexpr std::array<std::string_view, 6> argument_names = {"exec", "x",       "gamma",
                                                                       "y",    "options", "statistics"};
    static constexpr std::array<std::string_view, 1> known_as = {"_fused_rms_norm"};

    static void validate(cpu exec, const auto& x, const auto& gamma, const auto& y,
                         const normalization_options& options, const row_statistics& statistics) {
        detail::check_normalize_rows<false>("mp::ops::rms_norm", exec, x, gamma, absent, y, options,
                                            statistics);
    }

    template <element X, class Gamma, element Y>
    void operator()(cpu exec, matrix_view<const X> x, const Gamma& gamma, matrix_view<Y> y,
                    const normalization_options& options, const row_statistics& statistics) const {
        detail::normalize_rows<false>(exec, x, gamma, absent, y, options.epsilon, statistics);
    }
};

/// y = x / sqrt(mean(x^2) + epsilon) * gamma, row by row. Everything is as in layer_norm(), but that there is
/// no mean and no beta: of the statistics only inverse_deviation is written, and mean must be empty. Infinity
/// in a row makes its own place NaN and the other ones zero.
template <class Policy = autocast::by_region, element X, class Gamma, element Y>
void rms_norm(cpu exec, matrix_view<X> x, const Gamma& gamma, matrix_view<Y> y,
              const normalization_options& options = {}, const row_statistics& statistics = {}) {
    autocast::call<Policy>(rms_norm_op{}, exec, detail::input_view(x), detail::input_view(gamma),
                           detail::output_view(y), options, statistics);
}

/// Tag of rms_norm_backward(): sums over rows and columns, so in float.
struct rms_norm_backward_op {
    static constexpr std::string_view name = "rms_norm_backward";
    static constexpr auto category = op_category::full_precision;
    static constexpr bool computes_in_float = true;
    using forward_op = rms_norm_op;
    static constexpr std::array<std::string_view, 8> argument_names = {
        "exec", "x", "gamma", "dy", "dx", "dgamma", "options", "statistics"};
    static constexpr std::array<std::string_view, 1> known_as = {"_fused_rms_norm_backward"};

    static void validate(cpu exec, const auto& x, const auto& gamma, const auto& dy, const auto& dx,
                         const auto& dgamma, const normalization_options& options,
                         const row_statistics& statistics) {
        detail::check_normalize_rows_backward<false>("mp::ops::rms_norm_backward", exec, x, gamma, dy, dx,
                                                     dgamma, absent, options, statistics);
    }

    template <element X, class Gamma, element DY, class DX, class DGamma>
    void operator()(cpu exec, matrix_view<const X> x, const Gamma& gamma, matrix_view<const DY> dy,
                    const DX& dx, const DGamma& dgamma, const normalization_options& options,
                    const row_statistics& statistics) const {
        detail::normalize_rows_backward<false>(exec, x, gamma, dy, dx, dgamma, absent, options.epsilon,
                                               statistics);
    }
};

/// The gradients of y = rms_norm(x), given dy: with n = the normalized row and g = dy * gamma,
/// dx = (g - n mean(g n)) / sqrt(mean(x^2) + epsilon), dgamma = the sum over the rows of dy n. Everything is
/// as in layer_norm_backward(); the rounding of the statistics to float changes n by at most 2^-24 |n|.
template <class Policy = autocast::by_region, element X, class Gamma, element DY, class DX, class DGamma>
void rms_norm_backward(cpu exec, matrix_view<X> x, const Gamma& gamma, matrix_view<DY> dy, DX&& dx,
                       DGamma&& dgamma, const normalization_options& options = {},
                       const row_statistics& statistics = {}) {
    autocast::call<Policy>(rms_norm_backward_op{}, exec, detail::input_view(x), detail::input_view(gamma),
                           detail::input_view(dy), detail::output_view(dx), detail::output_view(dgamma),
                           options, statistics);
}

}  // namespace mp::ops::inline MP_ISA_NAMESPACE
