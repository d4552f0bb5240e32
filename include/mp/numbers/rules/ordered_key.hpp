// SPDX-License-Identifier: MIT
/// \file
/// Floats as integers of the same order, so that comparisons depend on no flag and no mode: subnormals count,
/// -0 equals +0, and NaN is larger than any number.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>

#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// At least 0x007F'FFFF, which is that of -infinity.
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr std::uint32_t ordered_key(float x) {
    constexpr std::uint32_t sign = 0x8000'0000U;
    const auto bits = bit_cast<std::uint32_t>(x);
    const std::uint32_t magnitude = bits & ~sign;
    if (magnitude > 0x7F80'0000U) return 0xFFFF'FFFFU;
    return bits > sign ? ~bits : magnitude | sign;  // -0 is sign itself
}

/// a > b by their keys.
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr bool is_larger_by_key(float a, float b) {
    return ordered_key(a) > ordered_key(b);
}

}}  // namespace mp::detail
