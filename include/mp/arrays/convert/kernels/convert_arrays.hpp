// SPDX-License-Identifier: MIT
/// \file
/// Conversion of arrays to nearest even for one instruction set. See convert_arrays.inl.
#pragma once

#include <mp/arrays/convert/kernels/number_vectors.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Whether convert_array exists for a pair of types: all formats whose numbers are floats, float and double.
template <class From, class To>
inline constexpr bool has_convert_array = (has_number_vectors<From> || std::same_as<From, double>) &&
                                          (has_number_vectors<To> || std::same_as<To, double>);

/// Elements that convert_array_streaming converts at a time: whole cache lines of every type.
inline constexpr std::size_t streamed_elements = 64;

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/arrays/convert/kernels/convert_arrays.inl>
#include <mp/numbers/simd/for_each_target.inl>

#define MP_HIGHEST_TARGET MP_TARGET_AVX512_FP16
#define MP_KERNEL_FILE <mp/arrays/convert/kernels/narrow_by_instruction.inl>
#include <mp/numbers/simd/for_each_target.inl>
