// SPDX-License-Identifier: MIT
/// \file
/// Smooth activation functions and their slopes in float, activation<Function>::value and slope over
/// vec<float>: the same bits on every processor and every GPU, one by one or in vectors.
///
/// Errors of values in ulp of the float result, in the negative tail and where it is subnormal, too (textbook
/// formulas lose all digits there); errors of slopes are absolute.
/// Measured over every float for which the function is neither its argument nor 0.
///
///     function     value    slope
///     gelu         6 ulp    2^-22
///     gelu_tanh    4 ulp    2^-21
///     silu         4 ulp    2^-22
///     tanh         3 ulp
///     sigmoid      3 ulp
///
/// Infinities give the limits of the functions: x, 0 with the sign of x (+0 for
/// sigmoid), 1 and -1. NaN stays NaN.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/numbers/rules/exponential.hpp>
#include <mp/numbers/rules/function_names.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <cstdint>

#define MP_KERNEL_FILE <mp/numbers/rules/activations.inl>
#include <mp/numbers/simd/for_each_vec.inl>
