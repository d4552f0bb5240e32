// SPDX-License-Identifier: MIT
/// \file
/// mp::bfloat16: the upper 16 bits of a float. 8 bits of precision with the range of float, subnormals
/// included.
#pragma once

#include <mp/numbers/format/limits.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/format/text.hpp>

namespace mp { inline namespace MP_ISA_NAMESPACE {

using bfloat16 = basic_float<formats::bfloat16>;

inline namespace literals {
/// A bfloat16 literal, decimal or hexadecimal, rounded once from its digits: 0.1_bf16.
template <char... Digits>
consteval bfloat16 operator""_bf16() {
    return detail::parse_literal<bfloat16, Digits...>();
}
}  // namespace literals

}}  // namespace mp
