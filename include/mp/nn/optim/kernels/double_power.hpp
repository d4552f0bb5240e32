// SPDX-License-Identifier: MIT
/// \file
/// Powers of doubles with the same bits everywhere.
#pragma once

#include <mp/config.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// base^exponent by squaring, with the same bits everywhere; of a base in [0, 1) to within
/// 2^-53 * exponent * base^exponent, which is at most 2^-54 / (1 - base).
MP_HOST_DEVICE inline double double_power(double base, std::uint64_t exponent) noexcept {
    double result = 1.0;
    for (; exponent != 0; exponent >>= 1) {
        if ((exponent & 1) != 0) result = double_multiply(result, base);
        base = double_multiply(base, base);
    }
    return result;
}

}}  // namespace mp::detail
