// SPDX-License-Identifier: MIT
/// \file
/// The kernel of the matrix product for AVX512_BF16. See bfloat16_dot_tiles.inl.
#pragma once

#include <mp/linalg/gemm/kernels/register_tiles.hpp>

#include <cstdint>
#include <cstring>

#define MP_HIGHEST_TARGET MP_TARGET_AVX512_BF16
#define MP_KERNEL_FILE <mp/linalg/gemm/kernels/bfloat16_dot_tiles.inl>
#include <mp/numbers/simd/for_each_target.inl>
