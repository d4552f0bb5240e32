// SPDX-License-Identifier: MIT
/// \file
/// The scales of many blocks at a time. See block_scales.inl.
#pragma once

#include <mp/convert/kernels/block_kernels.hpp>

#define MP_KERNEL_FILE <mp/convert/kernels/block_scales.inl>
#include <mp/simd/for_each_target.inl>
