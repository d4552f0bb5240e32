// SPDX-License-Identifier: MIT
/// \file
/// Sums, products and other operations of two or three numbers, element by element.
#pragma once

#include <mp/arrays/array/arguments.hpp>
#include <mp/arrays/array/kernels/arithmetic.hpp>
#include <mp/arrays/array/kernels/selection.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Fewest elements of a cheap operation that are worth a thread.
inline constexpr std::size_t elementwise_grain = 1 << 16;

template <class Value, class Kernel, class... Operand>
MP_NEVER_INLINE void map_on_threads(const cpu& exec, std::size_t grain, Kernel kernel, std::span<Value> out,
                                    Operand... operands) {
    parallel_for(exec, out.size(), grain, [&](std::size_t begin, std::size_t end) {
        kernel(out.data() + begin, end - begin, operand_from(operands, begin)...);
    });
}
/// Inlined on one thread, with all that leads there: calls, and an executor that is copied through memory, would take
/// longer than a few elements do.
template <class Value, class Kernel, class... Operand>
MP_ALWAYS_INLINE void map_chunks(const cpu& exec, std::size_t grain, Kernel kernel, std::span<Value> out,
                                 Operand... operands) {
    if (exec.threads > 1) return map_on_threads(exec, grain, kernel, out, operands...);
    kernel(out.data(), out.size(), operands...);
}

template <class Operation, class Value, class... Operand>
MP_ALWAYS_INLINE void arithmetic(const cpu& exec, instruction_set isa, std::span<Value> out,
                                 Operand... operands) {
    map_chunks(exec, elementwise_grain, arithmetic_kernel<Operation, Value, Operand...>(isa), out,
               operands...);
}
template <class Operation, class Value, class... Operand>
MP_ALWAYS_INLINE void selection(const cpu& exec, instruction_set isa, std::span<Value> out,
                                Operand... operands) {
    map_chunks(exec, elementwise_grain, selection_kernel<Operation, Value, Operand...>(isa), out,
               operands...);
}

/// Checks and dispatch of functions of two arrays.
template <class Operation, class A, class B, class Out>
MP_ALWAYS_INLINE void binary_arithmetic(std::string_view function, const cpu& exec, const A& a, const B& b,
                                        Out& out) {
    static_assert(std::same_as<array_element<A>, array_element<Out>> &&
                      std::same_as<array_element<B>, array_element<Out>>,
                  "mp: the arrays must have elements of the same type; convert them with mp::convert");
    const std::span target = as_span(out);
    const auto x = input_array("a", a);
    const auto y = input_array("b", b);
    const instruction_set isa = check_elementwise(function, exec, target, x, y);
    if constexpr (requires { Operation::is_selection; }) {
        selection<Operation>(exec, isa, target, x.values.data(), y.values.data());
    } else {
        arithmetic<Operation>(exec, isa, target, x.values.data(), y.values.data());
    }
}

/// Checks and dispatch of functions of one array.
template <class Operation, class X, class Out>
MP_ALWAYS_INLINE void unary_arithmetic(std::string_view function, const cpu& exec, const X& x, Out& out) {
    static_assert(std::same_as<array_element<X>, array_element<Out>>,
                  "mp: the arrays must have elements of the same type; convert them with mp::convert");
    const std::span target = as_span(out);
    const auto input = input_array("x", x);
    const instruction_set isa = check_elementwise(function, exec, target, input);
    if constexpr (requires { Operation::is_selection; }) {
        selection<Operation>(exec, isa, target, input.values.data());
    } else {
        arithmetic<Operation>(exec, isa, target, input.values.data());
    }
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// out[i] = a[i] + b[i], and so on, each with the bits of the scalar operator of the type: the exact result
/// rounded once to nearest even, with gradual underflow, whatever the instructions, the number of threads and
/// the floating-point modes of the caller. Which NaN an invalid operation or one on NaNs gives (its sign and
/// payload) is not said, as for the operators.
///
/// All functions of this file take contiguous ranges (vector, array, span) of float or of one reduced type,
/// the same for all arguments, with as many elements each. `out` may be one of the inputs; it must not
/// overlap them otherwise. They throw argument_error, with nothing written, if sizes differ, a range is null
/// but not empty, ranges overlap, exec.threads is less than one, or exec.instructions is more than the
/// processor has. They allocate nothing on one thread, and may be called from several threads on different
/// outputs.
///
///     std::vector<mp::half> x = ..., y = ...;
///     mp::add(mp::cpu{}, x, y, y);                       // y += x
///     mp::multiply(mp::cpu{.threads = 8}, x, x, y);      // y = x^2
template <detail::array_range A, detail::array_range B, detail::writable_array_range Out>
void add(cpu exec, const A& a, const B& b, Out&& out) {
    detail::binary_arithmetic<detail::addition>("mp::add", exec, a, b, out);
}
template <detail::array_range A, detail::array_range B, detail::writable_array_range Out>
void subtract(cpu exec, const A& a, const B& b, Out&& out) {
    detail::binary_arithmetic<detail::subtraction>("mp::subtract", exec, a, b, out);
}
template <detail::array_range A, detail::array_range B, detail::writable_array_range Out>
void multiply(cpu exec, const A& a, const B& b, Out&& out) {
    detail::binary_arithmetic<detail::multiplication>("mp::multiply", exec, a, b, out);
}
template <detail::array_range A, detail::array_range B, detail::writable_array_range Out>
void divide(cpu exec, const A& a, const B& b, Out&& out) {
    detail::binary_arithmetic<detail::division>("mp::divide", exec, a, b, out);
}

/// out[i] = a[i] b[i] + c[i], rounded once, as mp::fma of numbers and std::fma of floats. Otherwise like
/// add().
template <detail::array_range A, detail::array_range B, detail::array_range C,
          detail::writable_array_range Out>
void fma(cpu exec, const A& a, const B& b, const C& c, Out&& out) {
    using value = detail::array_element<Out>;
    static_assert(std::same_as<detail::array_element<A>, value> &&
                      std::same_as<detail::array_element<B>, value> &&
                      std::same_as<detail::array_element<C>, value>,
                  "mp: the arrays must have elements of the same type; convert them with mp::convert");
    const std::span target = detail::as_span(out);
    const auto x = detail::input_array("a", a);
    const auto y = detail::input_array("b", b);
    const auto z = detail::input_array("c", c);
    const instruction_set isa = detail::check_elementwise("mp::fma", exec, target, x, y, z);
    detail::arithmetic<detail::multiply_addition>(exec, isa, target, x.values.data(), y.values.data(),
                                                  z.values.data());
}

/// out[i] = alpha x[i], rounded once. Otherwise like add().
///
///     mp::scale(mp::cpu{}, mp::half(0.5f), x, x);
template <detail::array_range X, detail::writable_array_range Out>
void scale(cpu exec, detail::array_element<X> alpha, const X& x, Out&& out) {
    using value = detail::array_element<Out>;
    static_assert(std::same_as<detail::array_element<X>, value>,
                  "mp: the arrays must have elements of the same type; convert them with mp::convert");
    const std::span target = detail::as_span(out);
    const auto input = detail::input_array("x", x);
    const instruction_set isa = detail::check_elementwise("mp::scale", exec, target, input);
    detail::arithmetic<detail::multiplication>(exec, isa, target, detail::broadcast_value<value>{alpha},
                                               input.values.data());
}

/// y[i] = alpha x[i] + y[i], rounded once: a fused multiply-add, not two operations. Otherwise like add().
template <detail::array_range X, detail::writable_array_range Y>
void axpy(cpu exec, detail::array_element<X> alpha, const X& x, Y&& y) {
    using value = detail::array_element<Y>;
    static_assert(std::same_as<detail::array_element<X>, value>,
                  "mp: the arrays must have elements of the same type; convert them with mp::convert");
    const std::span target = detail::as_span(y);
    constexpr std::string_view function = "mp::axpy";
    detail::check_threads(function, exec);
    const instruction_set isa = detail::isa_of(function, exec);
    detail::check_not_null(function, "y", target.data(), target.size());
    const auto input = detail::input_array("x", x);
    detail::check_input(function, target, input, "y");
    const value* const addend = target.data();
    detail::arithmetic<detail::multiply_addition>(exec, isa, target, detail::broadcast_value<value>{alpha},
                                                  input.values.data(), addend);
}

/// out[i] = the smaller, or the larger, of a[i] and b[i]; -0 is smaller than +0, and NaN if either is NaN:
/// the bits of mp::minimum and mp::maximum of numbers, for float too. Otherwise like add().
template <detail::array_range A, detail::array_range B, detail::writable_array_range Out>
void minimum(cpu exec, const A& a, const B& b, Out&& out) {
    detail::binary_arithmetic<detail::min_operation>("mp::minimum", exec, a, b, out);
}
template <detail::array_range A, detail::array_range B, detail::writable_array_range Out>
void maximum(cpu exec, const A& a, const B& b, Out&& out) {
    detail::binary_arithmetic<detail::max_operation>("mp::maximum", exec, a, b, out);
}

/// out[i] = x[i], but not less than `low` and not more than `high`: minimum(maximum(x[i], low), high). A NaN
/// stays NaN, and so do all elements if a limit is NaN; `high` wins where it is less than `low`. Otherwise
/// like add().
template <detail::array_range X, detail::writable_array_range Out>
void clamp(cpu exec, const X& x, detail::array_element<X> low, detail::array_element<X> high, Out&& out) {
    using value = detail::array_element<Out>;
    static_assert(std::same_as<detail::array_element<X>, value>,
                  "mp: the arrays must have elements of the same type; convert them with mp::convert");
    const std::span target = detail::as_span(out);
    const auto input = detail::input_array("x", x);
    const instruction_set isa = detail::check_elementwise("mp::clamp", exec, target, input);
    detail::selection<detail::clamp_operation>(exec, isa, target, input.values.data(),
                                               detail::broadcast_value<value>{low},
                                               detail::broadcast_value<value>{high});
}

/// out[i] = -x[i], and out[i] = |x[i]|, by the sign bit alone, of NaNs too. The zero and the NaN of formats
/// without minus zero stay as they are. Otherwise like add().
template <detail::array_range X, detail::writable_array_range Out>
void negate(cpu exec, const X& x, Out&& out) {
    detail::unary_arithmetic<detail::negation>("mp::negate", exec, x, out);
}
template <detail::array_range X, detail::writable_array_range Out>
void abs(cpu exec, const X& x, Out&& out) {
    detail::unary_arithmetic<detail::magnitude>("mp::abs", exec, x, out);
}

/// out[i] = the square root of x[i], correctly rounded; NaN for negative numbers, -0 for -0. Otherwise like
/// add().
template <detail::array_range X, detail::writable_array_range Out>
void sqrt(cpu exec, const X& x, Out&& out) {
    detail::unary_arithmetic<detail::sqrt_operation>("mp::sqrt", exec, x, out);
}

}}  // namespace mp
