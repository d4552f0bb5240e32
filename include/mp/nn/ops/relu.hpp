// SPDX-License-Identifier: MIT
/// \file
/// The rectifier, forward and backward.
#pragma once

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

}}  // namespace mp::ops
