// SPDX-License-Identifier: MIT
/// \file
/// Linear layers on GPUs.
#pragma once

#include <mp/device/gpu/gemm.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/gpu_casts.hpp>
#include <mp/nn/ops/linear.hpp>
#include <mp/nn/ops/linear/kernels.hpp>
#include <mp/nn/ops/reductions/gpu.hpp>

#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// y = act(z) for gelu, gelu_tanh and silu.
template <gpu_executor Executor, class Y, class Z>
void activate(const Executor& exec, matrix_view<Y> y, matrix_view<const Z> z, ops::activation act) {
    switch (act) {
        case ops::activation::gelu:
            return map_elements(gelu_function{}, exec, y, z);
        case ops::activation::gelu_tanh:
            return map_elements(gelu_tanh_function{}, exec, y, z);
        default:
            return map_elements(silu_function{}, exec, y, z);
    }
}

/// c = a b.
template <gpu_executor Executor, class A, class B, class C>
void multiply_two(linear_function, const Executor& exec, matrix_view<const A> a, matrix_view<const B> b,
                  const C& c) {
    gemm(exec, 1.0F, a, b, result_beta(c), result_view(c));
}

/// y = act(x w^T + b).
template <gpu_executor Executor, class X, class W, class Bias, class Y>
void multiply_layer(linear_function, const Executor& exec, matrix_view<const X> x, matrix_view<const W> w,
                    const Bias& b, matrix_view<Y> y, ops::activation act) {
    const chosen_activation ending{act};
    if constexpr (std::is_same_v<Bias, ops::absent_t>) {
        gemm(exec, 1.0F, x, transposed(w), 0.0F, y, ending);
    } else {
        gemm(exec, 1.0F, x, transposed(w), 0.0F, y, compose(bias_per_column(b), ending));
    }
}

/// z = x w^T + b and y = act(z).
template <gpu_executor Executor, class X, class W, class Bias, class Z, class Y>
void multiply_layer(linear_function, const Executor& exec, matrix_view<const X> x, matrix_view<const W> w,
                    const Bias& b, matrix_view<Z> z, matrix_view<Y> y, ops::activation act) {
    const auto ending = compose(store_auxiliary(z), chosen_activation{act});
    if constexpr (std::is_same_v<Bias, ops::absent_t>) {
        gemm(exec, 1.0F, x, transposed(w), 0.0F, y, ending);
    } else {
        gemm(exec, 1.0F, x, transposed(w), 0.0F, y, compose(bias_per_column(b), ending));
    }
}

/// The gradients of a linear layer, of which any may be absent.
template <gpu_executor Executor, class X, class W, class DY, class DX, class DW, class DB>
void multiply_layer_backward(linear_function, const Executor& exec, matrix_view<const X> x,
                             matrix_view<const W> w, matrix_view<const DY> dy, const DX& dx, const DW& dw,
                             const DB& db) {
    if constexpr (!std::is_same_v<DX, ops::absent_t>) {
        gemm(exec, 1.0F, dy, w, result_beta(dx), result_view(dx));
    }
    if constexpr (!std::is_same_v<DW, ops::absent_t>) {
        gemm(exec, 1.0F, transposed(dy), x, result_beta(dw), result_view(dw));
    }
    if constexpr (!std::is_same_v<DB, ops::absent_t>) {
        sum_per(vector_sums{}, exec, dy, db, ops::per::column, 1);
    }
}

/// dz = (dy w) act'(z), and the gradients of the weights.
template <gpu_executor Executor, class X, class W, class DY, class Z, class DZ, class DW, class DB>
void multiply_layer_backward(linear_function, const Executor& exec, matrix_view<const X> x,
                             matrix_view<const W> w, matrix_view<const DY> dy, matrix_view<const Z> z,
                             matrix_view<DZ> dz, const DW& dw, const DB& db, ops::activation act) {
    gemm(exec, 1.0F, dy, w, 0.0F, dz, chosen_gradient(z, act));
    multiply_layer_backward(linear_function{}, exec, x, w, dy, ops::absent, dw, db);
}

}}  // namespace mp::detail
