// SPDX-License-Identifier: MIT
/// \file
/// fpclassify, in a header of its own because of C's macros for its results.
#pragma once

#include <mp/numbers/format/classification.hpp>

#include <cmath>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// FP_NAN, FP_INFINITE, FP_ZERO, FP_SUBNORMAL or FP_NORMAL, as the number is in its own format.
template <reduced T>
[[nodiscard]] MP_HOST_DEVICE constexpr int fpclassify(T x) noexcept {
    if (isnan(x)) return FP_NAN;
    if (isinf(x)) return FP_INFINITE;
    if (is_zero(x)) return FP_ZERO;
    return is_subnormal(x) ? FP_SUBNORMAL : FP_NORMAL;
}

}}  // namespace mp
