// SPDX-License-Identifier: MIT
/// \file
/// Values of block-scaled rows by vectors. See block_dequantize.inl.
#pragma once

#include <mp/arrays/convert/kernels/block_kernels.hpp>
#include <mp/numbers/simd/memory.hpp>
#include <mp/numbers/simd/square.hpp>

#define MP_KERNEL_FILE <mp/arrays/convert/kernels/block_dequantize.inl>
#include <mp/numbers/simd/for_each_target.inl>
