// SPDX-License-Identifier: MIT
/// \file
/// Normalization of the rows of a matrix, forward and backward: to mean 0 and deviation 1, or to root mean
/// square 1.
#pragma once

#include <mp/base/contiguous.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/autocast/library_op.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/matrix_operand.hpp>
#include <mp/numbers/format/classification.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#if MP_CORE_BODIES
#include <mp/nn/ops/normalization/rows.hpp>
#endif

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

struct normalization_options {
    /// Added to the variance or the mean square; finite and not negative. Rounded to float unless x is of
    /// doubles. With 0 a constant row (in rms_norm a row of zeros) gives NaN.
    double epsilon = 1e-5;
};

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Around the mean (layer_norm) or around zero (rms_norm).
template <bool Centered>
struct row_normalization {};

/// Statistics have the type that an op computes in, so they are known to be of doubles by x.
template <class X, class... Others>
constexpr void check_norm_of_doubles() {
    static_assert(any_double<X> || !any_double<Others...>,
                  "mp::ops: a norm with an operand of doubles has an x of doubles");
}

/// Checks x, the options and the statistics.
template <executor Executor>
void check_normalization(std::string_view function, const Executor& exec, const named_operand& x,
                         const ops::normalization_options& options, const named_operand& statistics) {
    check_executor(function, exec);
    check_operand(function, x);
    if (x.extent.columns == 0) throw_argument(function, "x.columns", 0, "must be at least 1");
    // In float as well, which it is rounded to.
    if (!isfinite(static_cast<float>(options.epsilon)) || options.epsilon < 0.0) {
        throw_argument(function, "options.epsilon", options.epsilon, "must be finite and not negative");
    }
    if (!statistics.extent.empty()) check_size(function, statistics, x.extent.rows, "x.rows");
}

/// Checks an array with an element for each column of x, if it is there.
void check_column_array(std::string_view function, const auto& operand, const named_operand& array,
                        const named_operand& x) {
    if (is_present(operand)) check_size(function, array, x.extent.columns, "x.columns");
}

void check_normalize_rows(std::string_view function, const auto& exec, const auto& x, const auto& gamma,
                          const auto& beta, const auto& y, const ops::normalization_options& options,
                          const auto& statistics) {
    const auto input = named("x", x);
    const auto scale = named("gamma", gamma);
    const auto shift = named("beta", beta);
    const auto output = named("y", y);
    const auto of_rows = named("statistics", statistics);
    check_normalization(function, exec, input, options, of_rows);
    check_column_array(function, gamma, scale, input);
    check_column_array(function, beta, shift, input);
    check_same_shape(function, output, input);
    check_separate_or_same(function, output, input);
    for (const auto& operand : {scale, shift}) check_separate(function, output, operand);
    for (const auto& operand : {input, scale, shift, output}) check_separate(function, of_rows, operand);
}

void check_normalize_rows_backward(std::string_view function, const auto& exec, const auto& x,
                                   const auto& gamma, const auto& dy, const auto& dx, const auto& dgamma,
                                   const auto& dbeta, const ops::normalization_options& options,
                                   const auto& statistics) {
    const auto input = named("x", x);
    const auto scale = named("gamma", gamma);
    const auto gradient = named("dy", dy);
    const auto of_rows = named("statistics", statistics);
    const named_operand results[] = {named("dx", dx), named("dgamma", dgamma), named("dbeta", dbeta)};
    check_normalization(function, exec, input, options, of_rows);
    check_column_array(function, gamma, scale, input);
    check_same_shape(function, gradient, input);
    if (is_present(dx)) check_same_shape(function, results[0], input);
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
        for (const auto& operand : {scale, of_rows}) check_separate(function, results[i], operand);
        for (int j = 0; j < i; ++j) check_separate(function, results[i], results[j]);
    }
}

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Tag of layer_norm(): sums and a root, so in float.
struct layer_norm_op : detail::library_op<layer_norm_op, "layer_norm"> {
    static constexpr auto category = op_category::full_precision;
    static constexpr std::array<std::string_view, 7> argument_names = {"exec", "x",       "gamma",     "beta",
                                                                       "y",    "options", "statistics"};
    static constexpr std::array<std::string_view, 2> known_as = {"native_layer_norm", "LayerNorm"};

    static void validate(const auto& exec, const auto& x, const auto& gamma, const auto& beta, const auto& y,
                         const normalization_options& options, const auto& statistics) {
        detail::check_normalize_rows("mp::ops::layer_norm", exec, x, gamma, beta, y, options, statistics);
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_operand& x, const detail::any_operand& gamma,
                        const detail::any_operand& beta, const detail::any_operand& y,
                        const normalization_options& options,
                        std::span<basic_normalization_statistics<Real>> statistics) {
        normalize_rows<Real>(true, exec, options.epsilon, x, gamma, beta, y, statistics);
    }
    void operator()(const gpu_executor auto& exec, const auto& x, const auto& gamma, const auto& beta,
                    const auto& y, const normalization_options& options, const auto& statistics) const {
        normalize_rows(detail::row_normalization<true>{}, exec, options.epsilon, x, gamma, beta, y,
                       statistics);
    }
};

/// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, row by row; the variance is the mean of the
/// squared distances from the mean.
///
/// Shapes: x and y are batch x features, in any storage order; y may be x, but not overlap it otherwise.
/// gamma and beta are contiguous ranges of `features` elements; either may be mp::ops::absent, which means 1
/// and 0. statistics, if not empty, receives the mean and 1 / sqrt(variance + epsilon) of each row for
/// layer_norm_backward(): the mean in two floats, the other one in one, or both in double for an x of doubles.
///
/// Accuracy: the mean, then the sum of the squared distances, in two passes in double, and everything else in
/// double; each element of y is rounded once to float, and from there to its format. Before that its error is
/// at most (n + 8) 2^-53 (max |x| / sqrt(variance + epsilon) + |normalized x|) |gamma|, to first order, for n
/// features: below 2^-23 |gamma| for 1000 features whose mean is a million times their deviation, where float
/// sums would leave no digit. Squares of floats do not overflow. NaN or infinity in a row
/// makes the whole row NaN. The results do not depend on the number of threads or the instruction set.
///
/// On a GPU, where the statistics lie in device memory, too, it is computed in float: the mean from a sum
/// that is as good as double's, the distances from it and the sum of their squares in two passes. A float
/// result differs from the exact one by at most 2^-21 |gamma n| and 2^-24 of itself, n being the normalized
/// element, also where the mean is a million times the deviation; squares do not overflow. Sums that leave
/// float's range, of elements beyond 10^38 / columns, give NaN only where elements are infinite or NaN. The
/// bits depend on the number of columns and the sizes of the formats only. Layouts are as for softmax().
///
/// Throws argument_error for shapes that do not fit, no features, an epsilon that is negative or not finite,
/// invalid views and overlaps; nothing is then written.
template <class Policy = autocast::by_region, executor Executor = cpu, element X, class Gamma, class Beta,
          matrix_result Y>
void layer_norm(const Executor& exec, matrix_view<X> x, const Gamma& gamma, const Beta& beta, const Y& y,
                const normalization_options& options = {},
                std::span<normalization_statistics_of<X>> statistics = {}) {
    detail::check_norm_of_doubles<X, decltype(detail::input_view(gamma)), decltype(detail::input_view(beta)),
                                  decltype(detail::output_view(y))>();
    detail::call_op<Policy>(layer_norm_op{}, exec, detail::input_view(x), detail::input_view(gamma),
                            detail::input_view(beta), detail::output_view(y), options, statistics);
}

/// Tag of layer_norm_backward(): sums over rows and columns, so in float.
struct layer_norm_backward_op : detail::library_op<layer_norm_backward_op, "layer_norm_backward"> {
    static constexpr auto category = op_category::full_precision;
    using forward_op = layer_norm_op;
    static constexpr std::array<std::string_view, 9> argument_names = {
        "exec", "x", "gamma", "dy", "dx", "dgamma", "dbeta", "options", "statistics"};
    static constexpr std::array<std::string_view, 1> known_as = {"native_layer_norm_backward"};

    static void validate(const auto& exec, const auto& x, const auto& gamma, const auto& dy, const auto& dx,
                         const auto& dgamma, const auto& dbeta, const normalization_options& options,
                         const auto& statistics) {
        detail::check_normalize_rows_backward("mp::ops::layer_norm_backward", exec, x, gamma, dy, dx, dgamma,
                                              dbeta, options, statistics);
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_operand& x, const detail::any_operand& gamma,
                        const detail::any_operand& dy, const detail::any_operand& dx,
                        const detail::any_operand& dgamma, const detail::any_operand& dbeta,
                        const normalization_options& options,
                        std::span<const basic_normalization_statistics<Real>> statistics) {
        normalize_rows_backward<Real>(true, exec, options.epsilon, x, gamma, dy, dx, dgamma, dbeta,
                                      statistics);
    }
    void operator()(const gpu_executor auto& exec, const auto& x, const auto& gamma, const auto& dy,
                    const auto& dx, const auto& dgamma, const auto& dbeta,
                    const normalization_options& options, const auto& statistics) const {
        normalize_rows_backward(detail::row_normalization<true>{}, exec, options.epsilon, x, gamma, dy, dx,
                                dgamma, dbeta, statistics);
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
/// With the statistics that layer_norm() saved that pass is spared, and their rounding changes n by at most
/// 2^-24 |n| + 2^-48 |mean| / sqrt(variance + epsilon).
///
/// n and the other terms are in float, sums of up to eight of them likewise, and these are added up in
/// double, column sums by the rows' order. The error, beyond that of the statistics and of rounding to the
/// results' formats, is at most 2^-20 (|g| + mean(|g|) + |n| mean(|g n|)) / sqrt(variance + epsilon) for dx,
/// 2^-20 times the sum of |dy n| for dgamma and 2^-21 times that of |dy| for dbeta, unless terms are below
/// 2^-126. The results do not depend on the number of threads or the instruction set.
///
/// On a GPU row sums have an error of 2^-21 of the sum of the magnitudes. Column sums add the rows in parts,
/// the order of which depends on the number of rows only, without atomic operations and as well as double
/// does; the terms of dgamma have an error of 2^-22 each before. At most five kernels are enqueued, and the
/// executor needs a workspace of normalization_backward_workspace(rows, columns) floats. Errors are those of
/// layer_norm().
template <class Policy = autocast::by_region, executor Executor = cpu, element X, class Gamma, element DY,
          class DX, class DGamma, class DBeta>
void layer_norm_backward(const Executor& exec, matrix_view<X> x, const Gamma& gamma, matrix_view<DY> dy,
                         DX&& dx, DGamma&& dgamma, DBeta&& dbeta, const normalization_options& options = {},
                         std::span<const normalization_statistics_of<X>> statistics = {}) {
    detail::check_norm_of_doubles<X, decltype(detail::input_view(gamma)), decltype(dy),
                                  decltype(detail::output_view(dx)), decltype(detail::output_view(dgamma)),
                                  decltype(detail::output_view(dbeta))>();
    detail::call_op<Policy>(layer_norm_backward_op{}, exec, detail::input_view(x), detail::input_view(gamma),
                            detail::input_view(dy), detail::output_view(dx), detail::output_view(dgamma),
                            detail::output_view(dbeta), options, statistics);
}

/// Tag of rms_norm(): a sum and a root, so in float.
struct rms_norm_op : detail::library_op<rms_norm_op, "rms_norm"> {
    static constexpr auto category = op_category::full_precision;
    static constexpr std::array<std::string_view, 6> argument_names = {"exec", "x",       "gamma",
                                                                       "y",    "options", "statistics"};
    static constexpr std::array<std::string_view, 1> known_as = {"_fused_rms_norm"};

    static void validate(const auto& exec, const auto& x, const auto& gamma, const auto& y,
                         const normalization_options& options, const auto& statistics) {
        detail::check_normalize_rows("mp::ops::rms_norm", exec, x, gamma, absent, y, options, statistics);
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_operand& x, const detail::any_operand& gamma,
                        const detail::any_operand& y, const normalization_options& options,
                        std::span<basic_normalization_statistics<Real>> statistics) {
        normalize_rows<Real>(false, exec, options.epsilon, x, gamma, {}, y, statistics);
    }
    void operator()(const gpu_executor auto& exec, const auto& x, const auto& gamma, const auto& y,
                    const normalization_options& options, const auto& statistics) const {
        normalize_rows(detail::row_normalization<false>{}, exec, options.epsilon, x, gamma, absent, y,
                       statistics);
    }
};

/// y = x / sqrt(mean(x^2) + epsilon) * gamma, row by row. Everything is as in layer_norm(), except that there is
/// no mean, whose place in the statistics is zero, and no beta. Infinity in a row makes its own place NaN and
/// the other ones zero.
template <class Policy = autocast::by_region, executor Executor = cpu, element X, class Gamma,
          matrix_result Y>
void rms_norm(const Executor& exec, matrix_view<X> x, const Gamma& gamma, const Y& y,
              const normalization_options& options = {},
              std::span<normalization_statistics_of<X>> statistics = {}) {
    detail::check_norm_of_doubles<X, decltype(detail::input_view(gamma)), decltype(detail::output_view(y))>();
    detail::call_op<Policy>(rms_norm_op{}, exec, detail::input_view(x), detail::input_view(gamma),
                            detail::output_view(y), options, statistics);
}

/// Tag of rms_norm_backward(): sums over rows and columns, so in float.
struct rms_norm_backward_op : detail::library_op<rms_norm_backward_op, "rms_norm_backward"> {
    static constexpr auto category = op_category::full_precision;
    using forward_op = rms_norm_op;
    static constexpr std::array<std::string_view, 8> argument_names = {
        "exec", "x", "gamma", "dy", "dx", "dgamma", "options", "statistics"};
    static constexpr std::array<std::string_view, 1> known_as = {"_fused_rms_norm_backward"};

    static void validate(const auto& exec, const auto& x, const auto& gamma, const auto& dy, const auto& dx,
                         const auto& dgamma, const normalization_options& options, const auto& statistics) {
        detail::check_normalize_rows_backward("mp::ops::rms_norm_backward", exec, x, gamma, dy, dx, dgamma,
                                              absent, options, statistics);
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_operand& x, const detail::any_operand& gamma,
                        const detail::any_operand& dy, const detail::any_operand& dx,
                        const detail::any_operand& dgamma, const normalization_options& options,
                        std::span<const basic_normalization_statistics<Real>> statistics) {
        normalize_rows_backward<Real>(false, exec, options.epsilon, x, gamma, dy, dx, dgamma, {}, statistics);
    }
    void operator()(const gpu_executor auto& exec, const auto& x, const auto& gamma, const auto& dy,
                    const auto& dx, const auto& dgamma, const normalization_options& options,
                    const auto& statistics) const {
        normalize_rows_backward(detail::row_normalization<false>{}, exec, options.epsilon, x, gamma, dy, dx,
                                dgamma, absent, statistics);
    }
};

/// The gradients of y = rms_norm(x), given dy: with n = the normalized row and g = dy * gamma,
/// dx = (g - n mean(g n)) / sqrt(mean(x^2) + epsilon), dgamma = the sum over the rows of dy n. Everything is
/// as in layer_norm_backward(); the rounding of the statistics to float changes n by at most 2^-24 |n|.
template <class Policy = autocast::by_region, executor Executor = cpu, element X, class Gamma, element DY,
          class DX, class DGamma>
void rms_norm_backward(const Executor& exec, matrix_view<X> x, const Gamma& gamma, matrix_view<DY> dy,
                       DX&& dx, DGamma&& dgamma, const normalization_options& options = {},
                       std::span<const normalization_statistics_of<X>> statistics = {}) {
    detail::check_norm_of_doubles<X, decltype(detail::input_view(gamma)), decltype(dy),
                                  decltype(detail::output_view(dx)), decltype(detail::output_view(dgamma))>();
    detail::call_op<Policy>(rms_norm_backward_op{}, exec, detail::input_view(x), detail::input_view(gamma),
                            detail::input_view(dy), detail::output_view(dx), detail::output_view(dgamma),
                            options, statistics);
}

}}  // namespace mp::ops
