// SPDX-License-Identifier: MIT
/// \file
/// Kernels of the matrix product that hold their sums in vector registers. See register_tiles.inl and
/// bfloat16_dot_tiles.inl.
#pragma once

#include <mp/linalg/gemm/product_kernel.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#define MP_KERNEL_FILE <mp/linalg/gemm/kernels/register_tiles.inl>
#include <mp/numbers/simd/for_each_target.inl>

#define MP_HIGHEST_TARGET MP_TARGET_AVX512_BF16
#define MP_KERNEL_FILE <mp/linalg/gemm/kernels/bfloat16_dot_tiles.inl>
#include <mp/numbers/simd/for_each_target.inl>
