// SPDX-License-Identifier: MIT
/// \file
/// Mathematical functions of reduced numbers, each the exact result rounded once:
///
///     cbrt rsqrt rootn hypot pow powr pown compoundn      sqrt, fma, fmod and remainder come with the numbers
///     exp exp2 exp10 expm1 exp2m1 exp10m1    log log2 log10 log1p logp1 log2p1 log10p1
///     sin cos tan sincos    asin acos atan atan2
///     sinpi cospi tanpi    asinpi acospi atanpi atan2pi        in half turns
///     sinh cosh tanh    asinh acosh atanh
///     erf erfc tgamma lgamma
///
/// The last argument is a projection (by default nearest-even without saturation), or an environment, which
/// collects flags:
///
///     mp::exp(x);
///     mp::exp(x, {.round = mp::rounding::upward});
///     mp::environment env;
///     mp::log(x, env);                          // divide_by_zero if x is zero
///
/// Results are the same bits on host and device, in constant expressions, and under -ffast-math: they are
/// computed in integers, and where double arithmetic with a proven error is sure of the same bits, on the
/// host to nearest even, by that. Special values are those of IEEE 754-2019, 9.2.1, and C's annex F; a format
/// that lacks infinity or NaN has in their place what conversions put there.
///
/// Stochastic rounding compares its random bits with evaluated bits, which are good to 2^-50 of the result or
/// better: up to 16 bits of precision all 32 random bits mean something.
#pragma once

#include <mp/numbers/format/math/error_function.hpp>
#include <mp/numbers/format/math/exponential.hpp>
#include <mp/numbers/format/math/fpclassify.hpp>
#include <mp/numbers/format/math/gamma.hpp>
#include <mp/numbers/format/math/hyperbolic.hpp>
#include <mp/numbers/format/math/inverse_trigonometric.hpp>
#include <mp/numbers/format/math/logarithm.hpp>
#include <mp/numbers/format/math/mixed_math.hpp>
#include <mp/numbers/format/math/power.hpp>
#include <mp/numbers/format/math/shifted_by_one.hpp>
#include <mp/numbers/format/math/trigonometric.hpp>
