// SPDX-License-Identifier: MIT
/// \file
/// Kernels of the matrix product that hold their sums in vector registers. See register_tiles.inl.
#pragma once

#include <mp/gemm/product_kernel.hpp>
#include <mp/simd/vec.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#define MP_KERNEL_FILE <mp/gemm/kernels/register_tiles.inl>
#include <mp/simd/for_each_target.inl>
