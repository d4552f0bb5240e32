// SPDX-License-Identifier: MIT
/// \file
/// Numbers of any format in the vectors of the kernels: read as floats, and floats rounded to them. See
/// number_vectors.inl.
#pragma once

#include <mp/arrays/convert/portable.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Types of which the kernels read and write arrays through vectors of floats: float, and every reduced
/// format that fast_path_in float, with room for the sums of narrow_codes.
template <class Value>
inline constexpr bool has_number_vectors = [] {
    if constexpr (std::is_same_v<Value, float>) {
        return true;
    } else if constexpr (reduced<Value>) {
        using layout = layout_of<typename Value::format>;
        return fast_path_in<typename Value::format, float> &&
               (layout::exponent_bits == 8 || layout::max_exponent + 24 - layout::fraction_bits <= 127);
    } else {
        return false;
    }
}();

template <class Value>
inline constexpr bool is_half = false;
template <class Format>
inline constexpr bool is_half<basic_float<Format>> = is_binary16<Format>;

/// half and bfloat16.
template <class Value>
inline constexpr bool has_16_bits = false;
template <class Format>
inline constexpr bool has_16_bits<basic_float<Format>> = is_binary16<Format> || is_bfloat16<Format>;

}}  // namespace mp::detail

#define MP_HIGHEST_TARGET MP_TARGET_AVX512_FP16
#define MP_KERNEL_FILE <mp/arrays/convert/kernels/number_vectors.inl>
#include <mp/numbers/simd/for_each_target.inl>
