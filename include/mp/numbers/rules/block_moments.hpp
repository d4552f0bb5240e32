// SPDX-License-Identifier: MIT
/// \file
/// block_moments.inl for every namespace that has a vec<T>, and the codes.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/numbers/format/binary_conversion.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <cstddef>
#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Codes of numbers from -1 to 1: sign, 4 bits of exponent, 3 behind the point; down to 2^-17.
struct signed_moment_codes {
    static constexpr bool has_sign = true;
    static constexpr int fraction_bits = 3;
    static constexpr int min_exponent = -14;
};

/// Codes of numbers from 0 to 1: 4 bits of exponent, 4 behind the point; down to 2^-18.
struct square_moment_codes {
    static constexpr bool has_sign = false;
    static constexpr int fraction_bits = 4;
    static constexpr int min_exponent = -14;
};

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/numbers/rules/block_moments.inl>
#include <mp/numbers/simd/for_each_vec.inl>
