// SPDX-License-Identifier: MIT
/// \file
/// The checks of ops from one matrix to another of the same shape, and of their gradients.
#pragma once

#include <mp/executor.hpp>
#include <mp/ops/arguments.hpp>

#include <string>
#include <string_view>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// Checks the arguments of y = f(x).
template <executor Executor>
void check_unary(std::string_view function, const Executor& exec, const named_operand& x,
                 const named_operand& y) {
    check_executor(function, exec);
    check_operand(function, x);
    check_shape(function, y, x.extent.rows, "x.rows", x.extent.columns, "x.columns");
    check_separate_or_same(function, y, x);
}

/// Checks the arguments of the gradient dx of a function of which `known` is the argument or the result.
template <executor Executor>
void check_unary_backward(std::string_view function, const Executor& exec, const named_operand& known,
                          const named_operand& dy, const named_operand& dx) {
    check_executor(function, exec);
    check_operand(function, known);
    const std::string rows = std::string(known.name) + ".rows";
    const std::string columns = std::string(known.name) + ".columns";
    check_shape(function, dy, known.extent.rows, rows, known.extent.columns, columns);
    check_shape(function, dx, known.extent.rows, rows, known.extent.columns, columns);
    check_separate_or_same(function, dx, known);
    check_separate_or_same(function, dx, dy);
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
