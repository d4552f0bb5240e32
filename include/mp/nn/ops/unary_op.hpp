// SPDX-License-Identifier: MIT
/// \file
/// What tags of ops from one matrix to another of the same shape have in common, and those of their gradients:
/// a tag names its op and its rule; its base checks the arguments and walks over elements or rows.
///
///     struct silu_op : detail::elementwise_op<silu_op, detail::silu_function> {
///         static constexpr std::string_view name = "silu";
///         static constexpr auto category = op_category::pass_through;
///         static constexpr std::array<std::string_view, 0> known_as{};
///     };
///     struct silu_backward_op : detail::elementwise_backward_op<silu_backward_op, silu_op, detail::silu_function> { ... };
#pragma once

#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/autocast/library_op.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/numbers/rules/function_names.hpp>

#include <algorithm>
#include <array>
#include <cstddef>

#include <string_view>

#if MP_CORE_BODIES
#include <mp/arrays/array/for_each_element.hpp>
#endif

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Checks the arguments of y = f(x), or of a gradient that is such a function.
template <executor Executor>
void check_unary(std::string_view function, const Executor& exec, const named_operand& x,
                 const named_operand& y) {
    check_executor(function, exec);
    check_operand(function, x);
    check_same_shape(function, y, x);
    check_separate_or_same(function, y, x);
}

/// Checks the arguments of the gradient dx of a function of which `known` is the argument or the result.
template <executor Executor>
void check_unary_backward(std::string_view function, const Executor& exec, const named_operand& known,
                          const named_operand& dy, const named_operand& dx) {
    check_executor(function, exec);
    check_operand(function, known);
    check_same_shape(function, dy, known);
    check_same_shape(function, dx, known);
    check_separate_or_same(function, dx, known);
    check_separate_or_same(function, dx, dy);
}

/// y = f(x).
template <class Op, autocast::fixed_string Name>
struct unary_op : library_op<Op, Name> {
    static constexpr std::array<std::string_view, 3> argument_names{"exec", "x", "y"};

    static void validate(const auto& exec, const auto& x, const auto& y) {
        check_unary(Op::function, exec, named("x", x), named("y", y));
    }
};

/// Each element of y from one of x.
template <class Op, autocast::fixed_string Name, class Function>
struct elementwise_op : unary_op<Op, Name> {
    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const any_operand& x, const any_operand& y) {
        map_operands<Function, Real>(exec, y, x);
    }
    void operator()(const gpu_executor auto& exec, const auto& x, const auto& y) const {
        map_elements(Function{}, exec, y, x);
    }
};

/// Each row of y from one of x.
template <class Op, autocast::fixed_string Name, class Function>
struct rowwise_op : unary_op<Op, Name> {
    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const any_operand& x, const any_operand& y) {
        map_rows<Real>(Function{}, exec, y, x);
    }
    void operator()(const gpu_executor auto& exec, const auto& x, const auto& y) const {
        map_rows(Function{}, exec, y, x);
    }
};

/// What the gradient of a function is computed from besides the gradient of its result.
enum class gradient_from { argument, result };

template <class Op, autocast::fixed_string Name, class Forward, gradient_from From>
struct unary_backward_op : library_op<Op, Name> {
    using forward_op = Forward;
    static constexpr auto category = Forward::category;
    static constexpr std::string_view known = From == gradient_from::argument ? "x" : "y";
    static constexpr std::array<std::string_view, 4> argument_names{"exec", known, "dy", "dx"};

    static void validate(const auto& exec, const auto& x, const auto& dy, const auto& dx) {
        check_unary_backward(Op::function, exec, named(known, x), named("dy", dy), named("dx", dx));
    }
};

/// Each element of dx from one of x (or y) and one of dy.
template <class Op, autocast::fixed_string Name, class Forward, class Function,
          gradient_from From = gradient_from::argument>
struct elementwise_backward_op : unary_backward_op<Op, Name, Forward, From> {
    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const any_operand& x, const any_operand& dy, const any_operand& dx) {
        map_operands<slope_of<Function>, Real>(exec, dx, x, dy);
    }
    void operator()(const gpu_executor auto& exec, const auto& x, const auto& dy, const auto& dx) const {
        map_elements(slope_of<Function>{}, exec, dx, x, dy);
    }
};

/// Each row of dx from one of y and one of dy.
template <class Op, autocast::fixed_string Name, class Forward, class Function>
struct rowwise_backward_op : unary_backward_op<Op, Name, Forward, gradient_from::result> {
    /// Computes the op on a CPU, for operands of any type.
    template <class Real>
    static void compute(const cpu& exec, const any_operand& y, const any_operand& dy, const any_operand& dx) {
        map_rows<Real>(slope_of<Function>{}, exec, dx, y, dy);
    }
    void operator()(const gpu_executor auto& exec, const auto& y, const auto& dy, const auto& dx) const {
        map_rows(slope_of<Function>{}, exec, dx, y, dy);
    }
};

}}  // namespace mp::detail
