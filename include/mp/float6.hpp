// SPDX-License-Identifier: MIT
/// \file
/// The 6-bit floating-point formats of OCP MX: nothing but finite numbers. An object takes a byte;
/// packed_array.hpp holds four in three bytes.
#pragma once

#include <mp/numbers/format/limits.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/format/text.hpp>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// 4 bits of precision, subnormals from 2^-3, largest 7.5. What overflows becomes 7.5, and so does NaN.
using float6_e2m3fn = basic_float<formats::float6_e2m3fn>;

/// 3 bits of precision, subnormals from 2^-4, largest 28. What overflows becomes 28, and so does NaN.
using float6_e3m2fn = basic_float<formats::float6_e3m2fn>;

inline namespace literals {
/// A float6_e2m3fn literal, rounded once from its digits: 0.1_e2m3.
template <char... Digits>
consteval float6_e2m3fn operator""_e2m3() {
    return detail::parse_literal<float6_e2m3fn, Digits...>();
}
/// A float6_e3m2fn literal, rounded once from its digits: 0.1_e3m2.
template <char... Digits>
consteval float6_e3m2fn operator""_e3m2() {
    return detail::parse_literal<float6_e3m2fn, Digits...>();
}
}  // namespace literals

}}  // namespace mp
