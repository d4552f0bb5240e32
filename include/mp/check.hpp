// SPDX-License-Identifier: MIT
/// \file
/// Exact references on Boost.Multiprecision: rounding to any format, ulp distances, error reports of arrays
/// and of matrix products; and gradients against central differences. Needs the headers of Boost 1.74 or later, but
/// for <mp/check/gradient_check.hpp>; nothing else of the library does.
#pragma once

#include <mp/check/error_report.hpp>
#include <mp/check/exact_dot.hpp>
#include <mp/check/exact_value.hpp>
#include <mp/check/gemm_error_report.hpp>
#include <mp/check/gradient_check.hpp>
#include <mp/check/round_to_format.hpp>
#include <mp/check/ulp.hpp>
#include <mp/matrix_view.hpp>
