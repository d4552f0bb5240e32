// SPDX-License-Identifier: MIT
/// \file
/// stochastic_codes: floats rounded to bfloat16 and half by 32 random bits each, for every kind of vec<float>.
#pragma once

#include <mp/numbers/format/exact.hpp>
#include <mp/numbers/format/hardware.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Formats for which stochastic_codes is.
template <class Format>
inline constexpr bool has_stochastic_codes = is_binary16<Format> || is_bfloat16<Format>;

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/numbers/rules/stochastic_rounding.inl>
#include <mp/numbers/simd/for_each_vec.inl>
