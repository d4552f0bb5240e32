// SPDX-License-Identifier: MIT
/// \file
/// Activation functions, forward and backward: the rectifier, and the smooth ones gelu, silu, tanh, sigmoid.
#pragma once

#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/autocast/library_op.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/matrix_operand.hpp>
#include <mp/nn/ops/unary_op.hpp>
#include <mp/numbers/rules/function_names.hpp>

#include <array>
#include <string_view>

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Tag of relu(): right in any format, so nothing is cast.
struct relu_op : detail::elementwise_op<relu_op, "relu", detail::relu_function> {
    static constexpr std::array<std::string_view, 2> known_as = {"Relu", "_npx_relu"};
    static constexpr auto category = op_category::pass_through;
};

/// y = max(x, 0), element by element; -0 becomes +0 and NaN stays NaN. x and y are matrices of one shape, in
/// any storage order; y may be x, but not overlap it otherwise. Where y has another format, x is rounded to
/// it once. Throws argument_error for shapes that differ and invalid views; y is then unchanged.
template <class Policy = autocast::by_region, executor Executor = cpu, element X, matrix_result Y>
void relu(const Executor& exec, matrix_view<X> x, const Y& y) {
    detail::call_op<Policy>(relu_op{}, exec, detail::input_view(x), detail::output_view(y));
}

/// Tag of relu_backward(): right in any format, so nothing is cast.
struct relu_backward_op
    : detail::elementwise_backward_op<relu_backward_op, "relu_backward", relu_op, detail::relu_function,
                                      detail::gradient_from::result> {
    static constexpr std::array<std::string_view, 1> known_as = {"ReluGrad"};
};

/// The gradient of y = relu(x): dx = dy where y > 0 and +0 elsewhere; where y is NaN, dx = dy. y is the
/// result of relu, or its argument, which has the same signs. All are matrices of one shape, in any storage
/// order; dx may be dy or y, but not overlap them otherwise. Where dx has another format, dy is rounded to it
/// once. Throws argument_error for shapes that differ and invalid views; dx is then unchanged.
template <class Policy = autocast::by_region, executor Executor = cpu, element Y, element DY,
          matrix_result DX>
void relu_backward(const Executor& exec, matrix_view<Y> y, matrix_view<DY> dy, const DX& dx) {
    detail::call_op<Policy>(relu_backward_op{}, exec, detail::input_view(y), detail::input_view(dy),
                            detail::output_view(dx));
}

/// Which of two functions gelu() is.
enum class gelu_formula : unsigned char {
    exact,  ///< x Phi(x) with the normal distribution function Phi
    tanh    ///< x / 2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), which is up to 5e-4 away
};

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

inline void check_formula(std::string_view function, ops::gelu_formula formula) {
    if (formula > ops::gelu_formula::tanh) {
        throw_argument(function, "formula", static_cast<unsigned>(formula),
                       "must be an enumerator of mp::ops::gelu_formula");
    }
}

/// Calls f with the function of a formula.
template <class F>
void with_gelu_function(ops::gelu_formula formula, F f) {
    formula == ops::gelu_formula::exact ? f(gelu_function{}) : f(gelu_tanh_function{});
}

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Tag of gelu(): as accurate in any format as the format is, so nothing is cast.
struct gelu_op : detail::library_op<gelu_op, "gelu"> {
    static constexpr auto category = op_category::pass_through;
    static constexpr std::array<std::string_view, 4> argument_names{"exec", "x", "y", "formula"};
    static constexpr std::array<std::string_view, 0> known_as{};  // PyTorch has the same name

    static void validate(const auto& exec, const auto& x, const auto& y, gelu_formula formula) {
        detail::check_unary(function, exec, detail::named("x", x), detail::named("y", y));
        detail::check_formula(function, formula);
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_operand& x, const detail::any_operand& y,
                        gelu_formula formula) {
        detail::with_gelu_function(formula, [&]<class F>(F) { map_operands<F, Real>(exec, y, x); });
    }
    void operator()(const gpu_executor auto& exec, const auto& x, const auto& y, gelu_formula formula) const {
        detail::with_gelu_function(formula, [&](auto f) { map_elements(f, exec, y, x); });
    }
};

/// y = x Phi(x), the Gaussian error linear unit, element by element, or its approximation by tanh.
///
/// x and y are matrices of one shape, in any storage order and formats; y may be x, but not overlap it
/// otherwise. The value is computed in float, to 6 ulp (4 by tanh), and rounded from there to the format of
/// y; so it is in the negative tail, where textbook formulas lose all digits. The same bits on every
/// processor and GPU. NaN stays NaN, +infinity stays, and -infinity gives -0 (where PyTorch gives NaN).
/// Throws argument_error for shapes that differ, invalid views and no such formula; y is then unchanged.
template <class Policy = autocast::by_region, executor Executor = cpu, element X, matrix_result Y>
void gelu(const Executor& exec, matrix_view<X> x, const Y& y, gelu_formula formula = gelu_formula::exact) {
    detail::call_op<Policy>(gelu_op{}, exec, detail::input_view(x), detail::output_view(y), formula);
}

/// Tag of gelu_backward().
struct gelu_backward_op : detail::library_op<gelu_backward_op, "gelu_backward"> {
    static constexpr auto category = gelu_op::category;
    using forward_op = gelu_op;
    static constexpr std::array<std::string_view, 5> argument_names{"exec", "x", "dy", "dx", "formula"};

    static void validate(const auto& exec, const auto& x, const auto& dy, const auto& dx,
                         gelu_formula formula) {
        detail::check_unary_backward(function, exec, detail::named("x", x), detail::named("dy", dy),
                                     detail::named("dx", dx));
        detail::check_formula(function, formula);
    }

    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const detail::any_operand& x, const detail::any_operand& dy,
                        const detail::any_operand& dx, gelu_formula formula) {
        detail::with_gelu_function(
            formula, [&]<class F>(F) { map_operands<detail::slope_of<F>, Real>(exec, dx, x, dy); });
    }
    void operator()(const gpu_executor auto& exec, const auto& x, const auto& dy, const auto& dx,
                    gelu_formula formula) const {
        detail::with_gelu_function(formula,
                                   [&]<class F>(F) { map_elements(detail::slope_of<F>{}, exec, dx, x, dy); });
    }
};

/// The gradient of y = gelu(x): dx = dy gelu'(x). It needs the argument x: the result does not tell which of
/// two arguments it came from.
///
/// All are matrices of one shape, in any storage order and formats; dx may be dy or x, but not overlap them
/// otherwise. The slope has an absolute error below 2^-22 (2^-21 by tanh; it has a zero near -0.75), and dx
/// is rounded to float and from there to its format. A NaN in x or dy gives NaN. Throws argument_error as
/// gelu() does; dx is then unchanged.
template <class Policy = autocast::by_region, executor Executor = cpu, element X, element DY,
          matrix_result DX>
void gelu_backward(const Executor& exec, matrix_view<X> x, matrix_view<DY> dy, const DX& dx,
                   gelu_formula formula = gelu_formula::exact) {
    detail::call_op<Policy>(gelu_backward_op{}, exec, detail::input_view(x), detail::input_view(dy),
                            detail::output_view(dx), formula);
}

/// Tag of silu(): as accurate in any format as the format is, so nothing is cast.
struct silu_op : detail::elementwise_op<silu_op, "silu", detail::silu_function> {
    static constexpr auto category = op_category::pass_through;
    static constexpr std::array<std::string_view, 0> known_as{};  // PyTorch has the same name
};

/// y = x / (1 + e^-x), the sigmoid linear unit, element by element, to 4 ulp of float. Shapes, special values
/// and errors are those of gelu().
template <class Policy = autocast::by_region, executor Executor = cpu, element X, matrix_result Y>
void silu(const Executor& exec, matrix_view<X> x, const Y& y) {
    detail::call_op<Policy>(silu_op{}, exec, detail::input_view(x), detail::output_view(y));
}

/// Tag of silu_backward().
struct silu_backward_op
    : detail::elementwise_backward_op<silu_backward_op, "silu_backward", silu_op, detail::silu_function> {
    static constexpr std::array<std::string_view, 0> known_as{};
};

/// The gradient of y = silu(x): dx = dy silu'(x), from the argument x. Shapes, accuracy and errors are those
/// of gelu_backward().
template <class Policy = autocast::by_region, executor Executor = cpu, element X, element DY,
          matrix_result DX>
void silu_backward(const Executor& exec, matrix_view<X> x, matrix_view<DY> dy, const DX& dx) {
    detail::call_op<Policy>(silu_backward_op{}, exec, detail::input_view(x), detail::input_view(dy),
                            detail::output_view(dx));
}

/// Tag of tanh(): as accurate in any format as the format is, so nothing is cast.
struct tanh_op : detail::elementwise_op<tanh_op, "tanh", detail::tanh_function> {
    static constexpr auto category = op_category::pass_through;
    static constexpr std::array<std::string_view, 2> known_as{"Tanh", "_npi_tanh"};
};

/// y = tanh(x), element by element, to 3 ulp of float. Shapes and errors are those of gelu(); infinities give
/// 1 and -1, and -0 stays.
template <class Policy = autocast::by_region, executor Executor = cpu, element X, matrix_result Y>
void tanh(const Executor& exec, matrix_view<X> x, const Y& y) {
    detail::call_op<Policy>(tanh_op{}, exec, detail::input_view(x), detail::output_view(y));
}

/// Tag of tanh_backward().
struct tanh_backward_op
    : detail::elementwise_backward_op<tanh_backward_op, "tanh_backward", tanh_op, detail::tanh_function,
                                      detail::gradient_from::result> {
    static constexpr std::array<std::string_view, 1> known_as{"TanhGrad"};
};

/// The gradient of y = tanh(x): dx = dy (1 - y^2), from the result y. Where y was rounded to a narrow format,
/// the gradient is that of the rounded y: it is zero where y is 1. Shapes and errors are those of
/// gelu_backward(), and dx is computed in float, to 2.5 ulp, and rounded to its format.
template <class Policy = autocast::by_region, executor Executor = cpu, element Y, element DY,
          matrix_result DX>
void tanh_backward(const Executor& exec, matrix_view<Y> y, matrix_view<DY> dy, const DX& dx) {
    detail::call_op<Policy>(tanh_backward_op{}, exec, detail::input_view(y), detail::input_view(dy),
                            detail::output_view(dx));
}

/// Tag of sigmoid(): as accurate in any format as the format is, so nothing is cast.
struct sigmoid_op : detail::elementwise_op<sigmoid_op, "sigmoid", detail::sigmoid_function> {
    static constexpr auto category = op_category::pass_through;
    static constexpr std::array<std::string_view, 2> known_as{"Sigmoid", "_npx_sigmoid"};
};

/// y = 1 / (1 + e^-x), element by element, to 3 ulp of float, in the tail of negative x, too. Shapes and errors are
/// those of gelu(); infinities give 1 and +0. Before a logarithm, a loss of x itself is better.
template <class Policy = autocast::by_region, executor Executor = cpu, element X, matrix_result Y>
void sigmoid(const Executor& exec, matrix_view<X> x, const Y& y) {
    detail::call_op<Policy>(sigmoid_op{}, exec, detail::input_view(x), detail::output_view(y));
}

/// Tag of sigmoid_backward().
struct sigmoid_backward_op
    : detail::elementwise_backward_op<sigmoid_backward_op, "sigmoid_backward", sigmoid_op,
                                      detail::sigmoid_function, detail::gradient_from::result> {
    static constexpr std::array<std::string_view, 1> known_as{"SigmoidGrad"};
};

/// The gradient of y = sigmoid(x): dx = dy y (1 - y), from the result y; where that was rounded to a narrow format,
/// it is zero where y is 1. Shapes and errors are those of gelu_backward(), and dx is computed in float, to 2.5 ulp,
/// and rounded to its format.
template <class Policy = autocast::by_region, executor Executor = cpu, element Y, element DY,
          matrix_result DX>
void sigmoid_backward(const Executor& exec, matrix_view<Y> y, matrix_view<DY> dy, const DX& dx) {
    detail::call_op<Policy>(sigmoid_backward_op{}, exec, detail::input_view(y), detail::input_view(dy),
                            detail::output_view(dx));
}

}}  // namespace mp::ops
