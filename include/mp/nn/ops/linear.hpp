// SPDX-License-Identifier: MIT
/// \file
/// The plain matrix product; the linear layer, forward and backward, also with a fused activation that keeps what its
/// backward pass needs, and the backward pass of a layer together with that of the activation before it.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/activation.hpp>
#include <mp/nn/autocast/library_op.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/matrix_operand.hpp>
#include <mp/nn/ops/reductions.hpp>

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <type_traits>

#if MP_CORE_BODIES
#include <mp/nn/ops/linear/kernels.hpp>
#endif

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Names products and linear layers for GPUs, see <mp/nn/ops/linear/gpu.hpp>.
struct linear_function {};

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

using mp::activation;
/// Tag of matmul(): the product in the low precision of the policy.
struct matmul_op : detail::library_op<matmul_op, "matmul"> {
    static constexpr std::array<std::string_view, 7> known_as = {
        "mm", "__matmul__", "gemm", "MatMul", "BatchMatMulV2", "_npi_matmul", "_linalg_gemm2"};
    static constexpr std::array<std::string_view, 4> argument_names = {"exec", "a", "b", "c"};
    static constexpr std::array<std::string_view, 2> product_operands = {"a", "b"};
    static constexpr auto category = op_category::lower_precision;

    static void validate(const auto& exec, const auto& a, const auto& b, const auto& c) {
        detail::check_executor(function, exec);
        const auto left = detail::named("a", a);
        const auto right = detail::named("b", b);
        const auto product = detail::named("c", c);
        detail::check_operand(function, left);
        detail::check_shape(function, right, left.extent.columns, "a.columns", right.extent.columns,
                            "b.columns");
        detail::check_shape(function, product, left.extent.rows, "a.rows", right.extent.columns, "b.columns");
        detail::check_separate(function, product, left);
        detail::check_separate(function, product, right);
    }

    static autocast::product_size product(const auto&, const auto& a, const auto& b, const auto&) {
        return {a.rows, b.columns, a.columns};
    }

    static constexpr std::array<std::string_view, 1> sums = {"c"};

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_operand& a, const detail::any_operand& b,
                        const detail::any_operand& c) {
        multiply_matrices<Real>(exec, 1.0, a, b, c.beta(), c);
    }
    void operator()(const gpu_executor auto& exec, const auto&... operands) const {
        multiply_two(detail::linear_function{}, exec, operands...);
    }
};

/// c = a b. Shapes: a is m x k, b is k x n, c is m x n, in any storage order; transposed() costs nothing, so
/// the gradients are matmul(exec, dc, transposed(b), da) and matmul(exec, transposed(a), dc, db).
///
/// Policy decides the precision: by default the calling thread's autocast region, else a policy type such as
/// mp::autocast::fp16. Sums are in float; each element of c is rounded once. The results do not depend on the
/// number of threads. Throws argument_error for shapes that do not fit, invalid views and a c that overlaps
/// an input; c is then unchanged.
template <class Policy = autocast::by_region, executor Executor = cpu, matrix_argument A, matrix_argument B,
          matrix_result C>
void matmul(const Executor& exec, const A& a, const B& b, const C& c) {
    detail::call_op<Policy>(matmul_op{}, exec, detail::input_view(a), detail::input_view(b),
                            detail::output_view(c));
}

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Throws unless x, w and b, which has no elements if it is absent, give these results of a linear layer.
inline void check_linear(std::string_view function, const named_operand& x, const named_operand& w,
                         const named_operand& b, bool has_bias,
                         std::initializer_list<named_operand> results) {
    check_operand(function, x);
    check_shape(function, w, w.extent.rows, "w.rows", x.extent.columns, "x.columns");
    if (has_bias) check_size(function, b, w.extent.rows, "w.rows");
    for (const named_operand& result : results) {
        check_shape(function, result, x.extent.rows, "x.rows", w.extent.rows, "w.rows");
        for (const auto& operand : {x, w, b}) check_separate(function, result, operand);
    }
}

/// Members of the tags of linear layers: matrix products, so in the low precision of the policy.
template <class Op, autocast::fixed_string Name>
struct linear_layer : library_op<Op, Name> {
    static constexpr std::array<std::string_view, 2> product_operands = {"x", "w"};
    static constexpr auto category = op_category::lower_precision;

    static autocast::product_size product(const auto&, const auto& x, const auto& w, const auto&...) {
        return {x.rows, w.rows, x.columns};
    }

    void operator()(const gpu_executor auto& exec, const auto&... operands) const {
        multiply_layer(linear_function{}, exec, operands...);
    }
};

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Tag of linear().
struct linear_op : detail::linear_layer<linear_op, "linear"> {
    static constexpr std::array<std::string_view, 5> known_as = {"addmm", "FullyConnected", "MatMul", "gemm",
                                                                 "_addmm_activation"};
    static constexpr std::array<std::string_view, 6> argument_names = {"exec", "x", "w", "b", "y", "act"};

    static void validate(const auto& exec, const auto& x, const auto& w, const auto& b, const auto& y,
                         activation act) {
        detail::check_executor(function, exec);
        if (act > activation::silu) {
            detail::throw_argument(function, "act", static_cast<unsigned>(act),
                                   "must be an enumerator of mp::ops::activation");
        }
        detail::check_linear(function, detail::named("x", x), detail::named("w", w), detail::named("b", b),
                             detail::is_present(b), {detail::named("y", y)});
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_operand& x, const detail::any_operand& w,
                        const detail::any_operand& b, const detail::any_operand& y, activation act) {
        compute_linear<Real>(exec, x, w, b, {}, y, act);
    }
};

/// y = act(x w^T + b), the linear layer.
///
/// Shapes: x is batch x in, w is out x in, y is batch x out, each a matrix view in any storage order with any
/// leading dimension; b is a contiguous range of `out` elements, or mp::ops::absent. Formats are any
/// mp::ops::element, in any mix.
///
/// w may be mp::autocast::cached(view, version): in a region its cast is then made once for each version.
///
/// Policy decides the precision: by default the calling thread's autocast region, else a policy type such as
/// mp::autocast::fp16. Under a low precision x, w and b are rounded to it, and so is y, whatever the format
/// of the memory it is written to. Sums, bias and activation are in float, and each element of y is rounded
/// once; NaN passes every activation. The results do not depend on the number of threads.
///
/// Throws argument_error for shapes that do not fit, invalid views and a y that overlaps an input; y is then
/// unchanged.
template <class Policy = autocast::by_region, executor Executor = cpu, element X, matrix_argument W,
          class Bias, matrix_result Y>
void linear(const Executor& exec, matrix_view<X> x, const W& w, const Bias& b, const Y& y,
            activation act = activation::none) {
    detail::call_op<Policy>(linear_op{}, exec, detail::input_view(x), detail::input_view(w),
                            detail::input_view(b), detail::output_view(y), act);
}

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Throws unless these are operands and results of the gradients of a linear layer, of which any may be absent.
void check_linear_backward(std::string_view function, std::string_view dx_name, const auto& exec,
                           const auto& x, const auto& w, const auto& dy, const auto& dx, const auto& dw,
                           const auto& db) {
    check_executor(function, exec);
    const auto input = named("x", x);
    const auto weights = named("w", w);
    const auto gradient = named("dy", dy);
    const named_operand results[] = {named(dx_name, dx), named("dw", dw), named("db", db)};
    const auto out = weights.extent.rows;
    check_operand(function, input);
    check_shape(function, weights, out, "w.rows", input.extent.columns, "x.columns");
    check_shape(function, gradient, input.extent.rows, "x.rows", out, "w.rows");
    if (is_present(dx)) check_same_shape(function, results[0], input);
    if (is_present(dw)) check_same_shape(function, results[1], weights);
    if (is_present(db)) check_size(function, results[2], out, "w.rows");
    check_separate_results(function, results, {input, weights, gradient});
}

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Tag of linear_backward(): matrix products, so in the low precision of the policy.
struct linear_backward_op : detail::library_op<linear_backward_op, "linear_backward"> {
    using forward_op = linear_op;
    static constexpr std::array<std::string_view, 7> argument_names = {"exec", "x",  "w", "dy",
                                                                       "dx",   "dw", "db"};
    static constexpr std::array<std::string_view, 3> product_operands = {"x", "w", "dy"};
    static constexpr std::array<std::string_view, 2> sums = {"dx", "dw"};
    static constexpr auto category = op_category::lower_precision;

    static void validate(const auto& exec, const auto& x, const auto& w, const auto& dy, const auto& dx,
                         const auto& dw, const auto& db) {
        detail::check_linear_backward("mp::ops::linear_backward", "dx", exec, x, w, dy, dx, dw, db);
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_operand& x, const detail::any_operand& w,
                        const detail::any_operand& dy, const detail::any_operand& dx,
                        const detail::any_operand& dw, const detail::any_operand& db) {
        if (dx) multiply_matrices<Real>(exec, 1.0, dy, w, dx.beta(), dx);
        if (dw) multiply_matrices<Real>(exec, 1.0, dy.transposed(), x, dw.beta(), dw);
        if (db) sum_per<Real>(exec, dy, db, per::column, 1);
    }
    void operator()(const gpu_executor auto& exec, const auto&... operands) const {
        multiply_layer_backward(detail::linear_function{}, exec, operands...);
    }
};

/// The gradients of y = x w^T + b, given dy = dL/dy: dx = dy w, dw = dy^T x, db = the sum of the rows of dy.
///
/// Shapes: x is batch x in, w is out x in, dy is batch x out, dx is like x, dw like w, and db has `out`
/// elements. Any of dx, dw and db may be mp::ops::absent, and is then not computed. A layer with a fused
/// activation first passes its gradient through the activation's backward op: relu_backward() takes the
/// layer's result y, but gelu_backward() and silu_backward() need what came before the activation, x w^T + b
/// (linear() without activation, in a format that keeps it well enough).
///
/// Each gradient is written in the format of its memory, or of the low precision that Policy computes in,
/// rounded once from a float sum (for db, one in double and then to float): values too small for the format
/// become zero, as they do on a tensor core, unless the loss is scaled. Any of them may be mp::ops::add_to()
/// of what is there, and is then not rounded to the low precision on the way. Precision, threads and errors
/// are as in linear().
template <class Policy = autocast::by_region, executor Executor = cpu, element X, matrix_argument W,
          element DY, class DX, class DW, class DB>
void linear_backward(const Executor& exec, matrix_view<X> x, const W& w, matrix_view<DY> dy, DX&& dx, DW&& dw,
                     DB&& db) {
    detail::call_op<Policy>(linear_backward_op{}, exec, detail::input_view(x), detail::input_view(w),
                            detail::input_view(dy), detail::output_view(dx), detail::output_view(dw),
                            detail::output_view(db));
}

}}  // namespace mp::ops

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

/// Tag of linear_with_preactivation().
struct linear_with_preactivation_op
    : detail::linear_layer<linear_with_preactivation_op, "linear_with_preactivation"> {
    static constexpr std::array<std::string_view, 6> known_as = {"linear", "addmm", "FullyConnected",
                                                                 "MatMul", "gemm",  "_addmm_activation"};
    static constexpr std::array<std::string_view, 7> argument_names = {"exec", "x", "w",  "b",
                                                                       "z",    "y", "act"};

    static void validate(const auto& exec, const auto& x, const auto& w, const auto& b, const auto& z,
                         const auto& y, activation act) {
        detail::check_executor(function, exec);
        detail::check_smooth_activation(function, act);
        const auto before = detail::named("z", z);
        const auto output = detail::named("y", y);
        detail::check_linear(function, detail::named("x", x), detail::named("w", w), detail::named("b", b),
                             detail::is_present(b), {before, output});
        detail::check_separate(function, output, before);
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
        detail::check_same_shape(function, before, detail::named("x", x));
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
    void operator()(const gpu_executor auto& exec, const auto&... operands) const {
        multiply_layer_backward(detail::linear_function{}, exec, operands...);
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
