// SPDX-License-Identifier: MIT
/// \file
/// Exact references on Boost.Multiprecision: rounding to any format, ulp distances, error reports of arrays
/// and of matrix products; and gradients against central differences. Needs the headers of Boost 1.74 or later, but
/// for <mp/frontends/check/gradient_check.hpp>; nothing else of the library does.
#pragma once

#include <mp/frontends/check/error_report.hpp>
#include <mp/frontends/check/exact_value.hpp>
#include <mp/frontends/check/gemm_error_report.hpp>
#include <mp/frontends/check/gradient_check.hpp>
#include <mp/matrix_view.hpp>
