// SPDX-License-Identifier: MIT
// The largest errors of a function of floats, against doubles of the C library.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "larger_error.hpp"

namespace float_sweep {

/// A unit in the last place of a float at x.
inline double unit(double x) {
    return x == 0 ? 0x1p-149 : std::ldexp(1.0, std::max(std::ilogb(x) - 23, -149));
}

struct deviation {
    double units = 0;
    double absolute = 0;
};

/// Over every 4099th float of an interval.
template <class Function, class Exact>
deviation sweep(float low, float high, Function f, Exact exact) {
    deviation worst;
    for (std::uint64_t code = 0; code < (std::uint64_t{1} << 32); code += 4099) {
        const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(code));
        if (!(x >= low && x <= high)) continue;
        const double expected = exact(static_cast<double>(x));
        const double error = std::fabs(static_cast<double>(f(x)) - expected);
        worst.units = tests::larger_error(worst.units, error / unit(expected));
        worst.absolute = tests::larger_error(worst.absolute, error);
    }
    return worst;
}

}  // namespace float_sweep
