// SPDX-License-Identifier: MIT
/// \file
/// The inverse of the error function in double, from which adaptive loss scaling has the scale that a share
/// of underflows allows.
#pragma once

#include <cmath>
#include <limits>

namespace mp {

/// The x with erf(x) = y: within 4 units in the last place for |y| up to 1 - 2^-53, the last double below
/// one, on a C library whose erf and erfc are accurate to one. Infinite for 1 and -1, and NaN for what is
/// beyond or NaN.
///
/// A first guess within 0.3% is improved by Halley's method on std::erf, or on std::erfc where y is above a
/// half and 1 - y exact; three steps cube the error thrice.
[[nodiscard]] inline double erfinv(double y) noexcept {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr double half_root_pi = 0.88622692545275801365;
    const double magnitude = y < 0.0 ? -y : y;
    if (!(magnitude <= 1.0)) return std::numeric_limits<double>::quiet_NaN();
    if (magnitude >= 1.0) return y < 0.0 ? -infinity : infinity;
    if (magnitude < 1e-9) return half_root_pi * y;  // the next term is pi / 12 y^2 of it
    double x = half_root_pi * magnitude;
    if (magnitude > 0.1) {
        // S. Winitzki, "A handy approximation for the error function and its inverse", 2008.
        constexpr double a = 0.147;
        constexpr double two_over_pi_a = 0.63661977236758134308 / a;
        const double logarithm = std::log1p(-magnitude * magnitude);
        const double sum = two_over_pi_a + logarithm / 2.0;
        x = std::sqrt(std::sqrt(sum * sum - logarithm / a) - sum);
    }
    for (int step = 0; step < 3; ++step) {
        const double excess = magnitude > 0.5 ? (1.0 - magnitude) - std::erfc(x) : std::erf(x) - magnitude;
        const double newton = excess * half_root_pi * std::exp(x * x);
        x -= newton / (1.0 + x * newton);
    }
    return y < 0.0 ? -x : x;
}

}  // namespace mp
