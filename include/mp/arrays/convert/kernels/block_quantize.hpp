// SPDX-License-Identifier: MIT
/// \file
/// The scales of many blocks at a time, and quantisation of blocks of finite values to nearest even by vectors. See
/// block_scales.inl and block_quantize.inl.
#pragma once

#include <mp/arrays/convert/kernels/block_kernels.hpp>

#define MP_KERNEL_FILE <mp/arrays/convert/kernels/block_scales.inl>
#include <mp/numbers/simd/for_each_target.inl>
#define MP_KERNEL_FILE <mp/arrays/convert/kernels/block_quantize.inl>
#include <mp/numbers/simd/for_each_target.inl>
