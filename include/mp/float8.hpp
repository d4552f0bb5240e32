// SPDX-License-Identifier: MIT
/// \file
/// The 8-bit floating-point formats: those of the OCP OFP8 specification, and the others that ML frameworks
/// know. Bits, largest number and specials are in the table of the README.
#pragma once

#include <mp/numbers/format/limits.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/format/text.hpp>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// OCP E4M3: 4 bits of precision, subnormals from 2^-9, largest 448, no infinities. Overflow gives NaN unless
/// the projection saturates: round_to<float8_e4m3fn>(x, {.saturate = saturation::finite}).
using float8_e4m3fn = basic_float<formats::float8_e4m3fn>;

/// OCP E5M2: 3 bits of precision, subnormals from 2^-16, largest 57344, infinities and NaNs as in IEEE 754.
using float8_e5m2 = basic_float<formats::float8_e5m2>;

/// E4M3 as IEEE 754 would have it: largest 240, with infinities.
using float8_e4m3 = basic_float<formats::float8_e4m3>;

/// E3M4 as IEEE 754 would have it: 5 bits of precision, subnormals from 2^-6, largest 15.5.
using float8_e3m4 = basic_float<formats::float8_e3m4>;

/// E4M3 of Graphcore and AMD MI300: bias 8, largest 240, one zero, one NaN.
using float8_e4m3fnuz = basic_float<formats::float8_e4m3fnuz>;

/// E5M2 of Graphcore and AMD MI300: bias 16, largest 57344, one zero, one NaN.
using float8_e5m2fnuz = basic_float<formats::float8_e5m2fnuz>;

/// E4M3 with bias 11: largest 30, one zero, one NaN.
using float8_e4m3b11fnuz = basic_float<formats::float8_e4m3b11fnuz>;

/// The scale of OCP MX blocks: a power of two from 2^-127 to 2^127 or NaN, without sign and without zero.
/// Zero and negative values convert to NaN, and to 2^-127 if the projection saturates; what is positive but
/// too small becomes 2^-127. Ties go to the even exponent field.
using float8_e8m0fnu = basic_float<formats::float8_e8m0fnu>;

inline namespace literals {
/// A float8_e4m3fn literal, rounded once from its digits: 0.1_e4m3.
template <char... Digits>
consteval float8_e4m3fn operator""_e4m3() {
    return detail::parse_literal<float8_e4m3fn, Digits...>();
}
/// A float8_e5m2 literal, rounded once from its digits: 0.1_e5m2.
template <char... Digits>
consteval float8_e5m2 operator""_e5m2() {
    return detail::parse_literal<float8_e5m2, Digits...>();
}
/// A float8_e4m3 literal, rounded once from its digits: 0.1_e4m3ieee.
template <char... Digits>
consteval float8_e4m3 operator""_e4m3ieee() {
    return detail::parse_literal<float8_e4m3, Digits...>();
}
/// A float8_e3m4 literal, rounded once from its digits: 0.1_e3m4.
template <char... Digits>
consteval float8_e3m4 operator""_e3m4() {
    return detail::parse_literal<float8_e3m4, Digits...>();
}
/// A float8_e4m3fnuz literal, rounded once from its digits: 0.1_e4m3fnuz.
template <char... Digits>
consteval float8_e4m3fnuz operator""_e4m3fnuz() {
    return detail::parse_literal<float8_e4m3fnuz, Digits...>();
}
/// A float8_e5m2fnuz literal, rounded once from its digits: 0.1_e5m2fnuz.
template <char... Digits>
consteval float8_e5m2fnuz operator""_e5m2fnuz() {
    return detail::parse_literal<float8_e5m2fnuz, Digits...>();
}
/// A float8_e4m3b11fnuz literal, rounded once from its digits: 0.1_e4m3b11fnuz.
template <char... Digits>
consteval float8_e4m3b11fnuz operator""_e4m3b11fnuz() {
    return detail::parse_literal<float8_e4m3b11fnuz, Digits...>();
}
/// A float8_e8m0fnu literal, rounded once from its digits: 1_e8m0.
template <char... Digits>
consteval float8_e8m0fnu operator""_e8m0() {
    return detail::parse_literal<float8_e8m0fnu, Digits...>();
}
}  // namespace literals

}}  // namespace mp
