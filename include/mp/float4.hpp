// SPDX-License-Identifier: MIT
/// \file
/// The 4-bit floating-point format of OCP MX and NVFP4. An object takes a byte; packed_array.hpp holds two
/// in a byte.
#pragma once

#include <mp/numbers/format/limits.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/format/text.hpp>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives. What overflows becomes 6, and so does NaN.
using float4_e2m1fn = basic_float<formats::float4_e2m1fn>;

inline namespace literals {
/// A float4_e2m1fn literal, rounded once from its digits: 0.5_e2m1.
template <char... Digits>
consteval float4_e2m1fn operator""_e2m1() {
    return detail::parse_literal<float4_e2m1fn, Digits...>();
}
}  // namespace literals

}}  // namespace mp
