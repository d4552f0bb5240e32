// SPDX-License-Identifier: MIT
/// \file
/// Kernels of the matrix product that hold their sums in vector registers. See register_tiles.inl.
#pragma once

#include <mp/linalg/gemm/product_kernel.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#define MP_KERNEL_FILE <mp/linalg/gemm/kernels/register_tiles.inl>
#include <mp/numbers/simd/for_each_target.inl>
