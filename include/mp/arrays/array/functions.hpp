// SPDX-License-Identifier: MIT
/// \file
/// Exponentials and the like, element by element.
#pragma once

#include <mp/arrays/array/elementwise.hpp>
#include <mp/arrays/array/kernels/functions.hpp>
#include <mp/arrays/array/sigmoid.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Fewest elements of a function that are worth a thread.
inline constexpr std::size_t function_grain = 1 << 14;

template <class Function, class X, class Out>
MP_ALWAYS_INLINE void map_function(std::string_view function, const cpu& exec, const X& x, Out& out) {
    using value = array_element<Out>;
    static_assert(std::same_as<array_element<X>, value>,
                  "mp: the arrays must have elements of the same type; convert them with mp::convert");
    static_assert(reduced<value>,
                  "mp: functions of arrays are for reduced formats; float has std::exp and so on");
    const std::span target = as_span(out);
    const auto input = input_array("x", x);
    const instruction_set isa = check_elementwise(function, exec, target, input);
    map_chunks(exec, function_grain, function_kernel<Function, value>(isa), target, input.values.data());
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// out[i] = mp::exp(x[i]), and so on, each with the bits of the function of one number in <mp/math.hpp>:
/// correctly rounded to nearest even for formats of up to 16 bits, whatever the instructions, the number of
/// threads and the floating-point modes of the caller.
///
/// They take contiguous ranges of one reduced type with as many elements each. `out` may be x; it must not
/// overlap it otherwise. They throw and allocate as mp::add does.
///
///     mp::exp(mp::cpu{}, scores, scores);
template <detail::array_range X, detail::writable_array_range Out>
void exp(cpu exec, const X& x, Out&& out) {
    detail::map_function<detail::natural_exponential>("mp::exp", exec, x, out);
}
template <detail::array_range X, detail::writable_array_range Out>
void log(cpu exec, const X& x, Out&& out) {
    detail::map_function<detail::natural_logarithm>("mp::log", exec, x, out);
}
template <detail::array_range X, detail::writable_array_range Out>
void tanh(cpu exec, const X& x, Out&& out) {
    detail::map_function<detail::hyperbolic_tangent>("mp::tanh", exec, x, out);
}
/// 1 / sqrt(x); infinite at zero, with its sign, and NaN below.
template <detail::array_range X, detail::writable_array_range Out>
void rsqrt(cpu exec, const X& x, Out&& out) {
    detail::map_function<detail::reciprocal_root>("mp::rsqrt", exec, x, out);
}
/// 1 / (1 + e^-x): see the function of one number.
template <detail::array_range X, detail::writable_array_range Out>
void sigmoid(cpu exec, const X& x, Out&& out) {
    detail::map_function<detail::logistic_function>("mp::sigmoid", exec, x, out);
}

}}  // namespace mp
