// SPDX-License-Identifier: MIT
/// \file
/// mp::tfloat32, the input format of tensor cores for float matrices.
#pragma once

#include <mp/numbers/format/limits.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/format/text.hpp>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The range of float at the 11 bits of precision of half. In memory it is the float of the same value: an
/// array of tfloat32 is an array of floats, and may be read as one. (A float read as a tfloat32 loses its
/// last 13 bits, as in a tensor core; converting it rounds.)
using tfloat32 = basic_float<formats::tfloat32>;

inline namespace literals {
/// A tfloat32 literal, rounded once from its digits: 0.1_tf32.
template <char... Digits>
consteval tfloat32 operator""_tf32() {
    return detail::parse_literal<tfloat32, Digits...>();
}
}  // namespace literals

}}  // namespace mp
