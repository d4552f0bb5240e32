// SPDX-License-Identifier: MIT
/// \file
/// Matrix products of ops: mp::gemm, or, where an operand has doubles, a plain product in double.
#pragma once

#include <mp/arrays/array/parallel.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/gemm.hpp>
#include <mp/linalg/gemm/workspace.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/autocast/operand.hpp>
#include <mp/nn/ops/matrix_operand.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/double_functions.hpp>

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// c = ending(alpha a b + beta c, row, column), a sum in ascending k and everything in double, rounded once.
/// Where beta is 0, c is not read.
template <class A, class B, class C, class Ending>
void product_in_double(const cpu& exec, double alpha, matrix_view<A> a, matrix_view<B> b, double beta,
                       matrix_view<C> c, const Ending& ending) {
    const auto work = static_cast<std::size_t>((std::max<std::ptrdiff_t>)(1, a.columns * c.columns));
    parallel_arithmetic(
        exec, static_cast<std::size_t>(c.rows), 1 + 16384 / work, [&](std::size_t begin, std::size_t end) {
            for (auto i = static_cast<std::ptrdiff_t>(begin); i < static_cast<std::ptrdiff_t>(end); ++i) {
                for (std::ptrdiff_t j = 0; j < c.columns; ++j) {
                    rounded_doubles<1> sum = 0.0;
                    for (std::ptrdiff_t k = 0; k < a.columns; ++k) {
                        sum += rounded_doubles<1>(as<double>(a(i, k))) * as<double>(b(k, j));
                    }
                    sum = sum * alpha;
                    if (beta > 0) sum += rounded_doubles<1>(beta) * as<double>(c(i, j));
                    c(i, j) = as<C>(ending(sum.value(), i, j));
                }
            }
        });
}

/// Ends a product in double: leaves the value as it is.
struct double_identity {
    double operator()(double value, std::ptrdiff_t /*row*/, std::ptrdiff_t /*column*/) const { return value; }
};

/// c = alpha a b + beta c, on any executor; beta is 0 or positive.
template <class Executor, class A, class B, class C>
void multiply_matrices(const Executor& exec, double alpha, matrix_view<A> a, matrix_view<B> b, double beta,
                       matrix_view<C> c) {
    if constexpr (any_double<A, B, C>) {
        product_in_double(exec, alpha, a, b, beta, c, double_identity{});
    } else {
        gemm(exec, static_cast<float>(alpha), a, b, static_cast<float>(beta), c);
    }
}
/// Overload with memory for packed blocks, or null.
template <class A, class B, class C>
void multiply_matrices(const cpu& exec, double alpha, matrix_view<A> a, matrix_view<B> b, double beta,
                       matrix_view<C> c, gemm_workspace* workspace) {
    if constexpr (any_double<A, B, C>) {
        product_in_double(exec, alpha, a, b, beta, c, double_identity{});
    } else {
        gemm_of_views(exec, static_cast<float>(alpha), a, b, static_cast<float>(beta), c, identity_epilogue{},
                      workspace);
    }
}

}}  // namespace mp::detail
