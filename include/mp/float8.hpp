// SPDX-License-Identifier: MIT
/// \file
/// The 8-bit floating-point formats of the OCP OFP8 specification.
#pragma once

#include <mp/format/limits.hpp>
#include <mp/format/operations.hpp>
#include <mp/format/text.hpp>

namespace mp {

/// 4 bits of precision, subnormals from 2^-9, largest 448, no infinities. Overflow gives NaN unless the
/// projection saturates: round_to<float8_e4m3fn>(x, {.saturate = saturation::finite}).
using float8_e4m3fn = basic_float<formats::float8_e4m3fn>;

/// 3 bits of precision, subnormals from 2^-16, largest 57344, with infinities and NaNs as in IEEE 754.
using float8_e5m2 = basic_float<formats::float8_e5m2>;

inline namespace literals {
/// A float8_e4m3fn literal, rounded once from its digits: 0.1_e4m3.
consteval float8_e4m3fn operator""_e4m3(const char* digits) {
    return detail::parse_literal<float8_e4m3fn>(digits);
}
/// A float8_e5m2 literal, rounded once from its digits: 0.1_e5m2.
consteval float8_e5m2 operator""_e5m2(const char* digits) {
    return detail::parse_literal<float8_e5m2>(digits);
}
}  // namespace literals

}  // namespace mp
