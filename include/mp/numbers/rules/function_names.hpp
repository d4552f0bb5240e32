// SPDX-License-Identifier: MIT
/// \file
/// Names of the functions of one or two numbers that arrays are mapped by: see elementwise.hpp and activations.hpp.
#pragma once

#include <mp/config.hpp>

#include <type_traits>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// x itself, to be rounded to another format.
struct identity_function {};
/// max(x, 0); -0 becomes +0 and NaN stays.
struct relu_function {};
/// x times the normal distribution function.
struct gelu_function {};
/// x / (1 + e^-2z) with z = sqrt(2/pi) (x + 0.044715 x^3), the approximation of Hendrycks and Gimpel,
/// "Gaussian error linear units" (2016).
struct gelu_tanh_function {};
/// x / (1 + e^-x)
struct silu_function {};
struct tanh_function {};
/// 1 / (1 + e^-x)
struct sigmoid_function {};
struct sum_function {};
struct product_function {};
/// The slope of Function at x times dy; for relu and tanh also the result y serves in place of x.
template <class Function>
struct slope_of {};

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Type in which functions of these elements are computed: double if one of them is double, else float.
template <class... Elements>
inline constexpr bool any_double_element = (std::is_same_v<std::remove_const_t<Elements>, double> || ...);
template <class... Elements>
using real_of = std::conditional_t<any_double_element<Elements...>, double, float>;

}}  // namespace mp::detail
