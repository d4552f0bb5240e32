// SPDX-License-Identifier: MIT
/// \file
/// mp::half: IEEE 754 binary16. 11 bits of precision, normal from 2^-14 = 6.1e-5, down to 2^-24 = 6e-8 as
/// subnormals, largest 65504.
#pragma once

#include <mp/numbers/format/limits.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/format/text.hpp>

namespace mp { inline namespace MP_ISA_NAMESPACE {

using half = basic_float<formats::binary16>;

inline namespace literals {
/// A half literal, decimal or hexadecimal, rounded once from its digits: 0.1_h, 65504_h, 0x1p-24_h.
template <char... Digits>
consteval half operator""_h() {
    return detail::parse_literal<half, Digits...>();
}
}  // namespace literals

}}  // namespace mp
