// SPDX-License-Identifier: MIT
/// \file
/// Quantisation of blocks of finite values to nearest even by vectors. See block_quantize.inl.
#pragma once

#include <mp/arrays/convert/kernels/block_scales.hpp>

#define MP_KERNEL_FILE <mp/arrays/convert/kernels/block_quantize.inl>
#include <mp/numbers/simd/for_each_target.inl>
