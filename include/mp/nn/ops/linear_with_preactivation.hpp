// SPDX-License-Identifier: MIT
/// \file
/// The linear layer with a fused activation that keeps what the backward pass of the activation needs, and the backward
/// pass of a linear layer together with that of the activation before it.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/autocast/library_op.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/linear.hpp>
#include <mp/nn/ops/matrix_operand.hpp>
#include <mp/nn/ops/reductions.hpp>

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Throws unless the gradient of an activation needs what came before it.
inline void check_smooth_activation(std::string_view function, ops::activation act) {
    if (act >= ops::activation::gelu && act <= ops::activation::silu) return;
    throw_argument(function, "act", static_cast<unsigned>(act),
                   "must be gelu, gelu_tanh or silu, whose gradients need what came before them");
}
/// Throws unless it is an activation at all.
inline void check_activation(std::string_view function, ops::activation act) {
    if (act >= ops::activation::relu && act <= ops::activation::silu) return;
    throw_argument(function, "act", static_cast<unsigned>(act), "must be relu, gelu, gelu_tanh or silu");
}

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Tag of linear_with_preactivation(): a matrix product, so in the low precision of the policy.
struct linear_with_preactivation_op
    : detail::library_op<linear_with_preactivation_op, "linear_with_preactivation"> {
    static constexpr std::array<std::string_view, 6> known_as = {"linear", "addmm", "FullyConnected",
                                                                 "MatMul", "gemm",  "_addmm_activation"};
    static constexpr std::array<std::string_view, 7> argument_names = {"exec", "x", "w",  "b",
                                                                       "z",    "y", "act"};
    static constexpr std::array<std::string_view, 2> product_operands = {"x", "w"};
    static constexpr auto category = op_category::lower_precision;

    static void validate(const auto& exec, const auto& x, const auto& w, const auto& b, const auto& z,
                         const auto& y, activation act) {
        detail::check_executor(function, exec);
        detail::check_smooth_activation(function, act);
        const auto input = detail::named("x", x);
        const auto weights = detail::named("w", w);
        const auto bias = detail::named("b", b);
        const auto before = detail::named("z", z);
        const auto output = detail::named("y", y);
        detail::check_operand(function, input);
        detail::check_shape(function, weights, weights.extent.rows, "w.rows", input.extent.columns,
                            "x.columns");
        if (detail::is_present(b)) {
            detail::check_size(function, bias, weights.extent.rows, "w.rows");
        }
        for (const auto& result : {before, output}) {
            detail::check_shape(function, result, input.extent.rows, "x.rows", weights.extent.rows, "w.rows");
            for (const auto& operand : {input, weights, bias}) {
                detail::check_separate(function, result, operand);
            }
        }
        detail::check_separate(function, output, before);
    }

    static autocast::product_size product(const auto&, const auto& x, const auto& w, const auto&, const auto&,
                                          const auto&, activation) {
        return {x.rows, w.rows, x.columns};
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_operand& x, const detail::any_operand& w,
                        const detail::any_operand& b, const detail::any_operand& z,
                        const detail::any_operand& y, activation act) {
        if (std::is_same_v<Real, float> && holds_reals<Real>(z)) {
            // The same bits, 5 % faster on CPUs: z is not narrower than what it is computed in.
            compute_linear<Real>(exec, x, w, b, {}, z, activation::none);
            activate<Real>(exec, z, y, act);
        } else {
            compute_linear<Real>(exec, x, w, b, z, y, act);
        }
    }
    template <gpu_executor Executor, element X, element W, class Bias, element Z, element Y>
    void operator()(const Executor& exec, matrix_view<const X> x, matrix_view<const W> w, const Bias& b,
                    matrix_view<Z> z, matrix_view<Y> y, activation act) const {
        multiply_layer(detail::linear_function{}, exec, x, w, b, z, y, act);
    }
};

/// y = act(z) with z = x w^T + b, which is kept, too, for gelu_backward() or silu_backward(): linear() and the op of the
/// activation without the pass over z in between.
///
///     mp::ops::linear_with_preactivation(exec, x, w, b, z, y, mp::ops::activation::gelu);
///     ...
///     mp::ops::gelu_backward(exec, z, dy, dz);
///     mp::ops::linear_backward(exec, x, w, dz, dx, dw, db);
///
/// Shapes and formats are those of linear(), and z is like y; the activation is gelu, gelu_tanh or silu. It is applied to
/// the float of which z is the rounding, so y does not have the bits of an op that reads a narrow z: it is closer to
/// the exact value. Precision, threads and errors are those of linear(): y and z must not overlap either.
template <class Policy = autocast::by_region, executor Executor = cpu, element X, matrix_argument W,
          class Bias, matrix_result Z, matrix_result Y>
void linear_with_preactivation(const Executor& exec, matrix_view<X> x, const W& w, const Bias& b, const Z& z,
                               const Y& y, activation act) {
    detail::call_op<Policy>(linear_with_preactivation_op{}, exec, detail::input_view(x),
                            detail::input_view(w), detail::input_view(b), detail::output_view(z),
                            detail::output_view(y), act);
}

}}  // namespace mp::ops

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Tag of linear_backward_with_preactivation(): matrix products, so in the low precision of the policy.
struct linear_backward_with_preactivation_op
    : detail::library_op<linear_backward_with_preactivation_op, "linear_backward_with_preactivation"> {
    using forward_op = linear_op;
    static constexpr std::array<std::string_view, 9> argument_names = {"exec", "x",  "w",  "dy", "z",
                                                                       "dz",   "dw", "db", "act"};
    static constexpr std::array<std::string_view, 3> product_operands = {"x", "w", "dy"};
    static constexpr std::array<std::string_view, 1> sums = {"dw"};
    static constexpr auto category = op_category::lower_precision;

    static void validate(const auto& exec, const auto& x, const auto& w, const auto& dy, const auto& z,
                         const auto& dz, const auto& dw, const auto& db, activation act) {
        detail::check_activation(function, act);
        detail::check_linear_backward(function, "dz", exec, x, w, dy, dz, dw, db);
        const auto before = detail::named("z", z);
        detail::check_shape(function, before, detail::named("x", x).extent.rows, "x.rows",
                            detail::named("x", x).extent.columns, "x.columns");
        for (const auto& result :
             {detail::named("dz", dz), detail::named("dw", dw), detail::named("db", db)}) {
            detail::check_separate(function, result, before);
        }
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_operand& x, const detail::any_operand& w,
                        const detail::any_operand& dy, const detail::any_operand& z,
                        const detail::any_operand& dz, const detail::any_operand& dw,
                        const detail::any_operand& db, activation act) {
        multiply_by_slope<Real>(exec, dy, w, z, dz, act);
        linear_backward_op::compute<Real>(exec, x, w, dy, {}, dw, db);
    }
    template <gpu_executor Executor, element X, element W, element DY, element Z, element DZ, class DW,
              class DB>
    void operator()(const Executor& exec, matrix_view<const X> x, matrix_view<const W> w,
                    matrix_view<const DY> dy, matrix_view<const Z> z, matrix_view<DZ> dz, const DW& dw,
                    const DB& db, activation act) const {
        multiply_layer_backward(detail::linear_function{}, exec, x, w, dy, z, dz, dw, db, act);
    }
};

/// The gradients of y = act(z) w^T + b, given dy = dL/dy and x = act(z): dz = (dy w) act'(z), and dw and db of
/// linear_backward(). That and the backward op of the activation, without the pass over dx = dy w in between.
///
///     mp::ops::linear_with_preactivation(exec, x, w1, b1, z, h, mp::ops::activation::gelu);
///     mp::ops::linear(exec, h, w2, b2, y);
///     ...
///     mp::ops::linear_backward_with_preactivation(exec, h, w2, dy, z, dz, dw2, db2, mp::ops::activation::gelu);
///     mp::ops::linear_backward(exec, x, w1, dz, dx, dw1, db1);
///
/// Shapes and formats are those of linear_backward(), z and dz are like x; for relu z may be x itself. The slope
/// multiplies the float sum of dy w, which the two ops round to the type of dx first: for float the bits are theirs,
/// and for others dz is closer to the exact value. Precision, threads and errors are those of linear_backward(); act
/// is not none.
template <class Policy = autocast::by_region, executor Executor = cpu, element X, matrix_argument W,
          element DY, element Z, matrix_result DZ, class DW, class DB>
void linear_backward_with_preactivation(const Executor& exec, matrix_view<X> x, const W& w,
                                        matrix_view<DY> dy, matrix_view<Z> z, const DZ& dz, DW&& dw, DB&& db,
                                        activation act) {
    detail::call_op<Policy>(linear_backward_with_preactivation_op{}, exec, detail::input_view(x),
                            detail::input_view(w), detail::input_view(dy), detail::input_view(z),
                            detail::output_view(dz), detail::output_view(dw), detail::output_view(db), act);
}

}}  // namespace mp::ops
