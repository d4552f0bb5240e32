// SPDX-License-Identifier: MIT
/// \file
/// Values of block-scaled rows by vectors. See block_dequantize.inl.
#pragma once

#include <mp/convert/kernels/block_kernels.hpp>
#include <mp/simd/memory.hpp>
#include <mp/simd/square.hpp>

#define MP_KERNEL_FILE <mp/convert/kernels/block_dequantize.inl>
#include <mp/simd/for_each_target.inl>
