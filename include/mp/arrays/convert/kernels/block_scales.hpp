// SPDX-License-Identifier: MIT
/// \file
/// The scales of many blocks at a time. See block_scales.inl.
#pragma once

#include <mp/arrays/convert/kernels/block_kernels.hpp>

#define MP_KERNEL_FILE <mp/arrays/convert/kernels/block_scales.inl>
#include <mp/numbers/simd/for_each_target.inl>
