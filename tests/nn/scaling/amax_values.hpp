// SPDX-License-Identifier: MIT
/// \file
/// Floats that largest magnitudes of tensors can be.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <random>

namespace amax_values {

inline constexpr float infinity = std::numeric_limits<float>::infinity();
inline constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
inline constexpr float largest = std::numeric_limits<float>::max();
inline constexpr float smallest = std::numeric_limits<float>::denorm_min();

inline std::uint32_t bits(float x) {
    return std::bit_cast<std::uint32_t>(x);
}

/// A positive float with any exponent, now and then 0, infinite or NaN.
inline float any_amax(std::mt19937& random) {
    switch (random() % 12) {
        case 0:
            return 0.0F;
        case 1:
            return infinity;
        case 2:
            return not_a_number;
        case 3:
            return std::bit_cast<float>(static_cast<std::uint32_t>(random() % 0x01000000U));
        default:
            return std::bit_cast<float>(static_cast<std::uint32_t>(random() % 0x7f800000U));
    }
}

}  // namespace amax_values
