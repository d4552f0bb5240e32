// SPDX-License-Identifier: MIT
/// \file
/// Walks over arrays and sums over vec<T>: see loops.inl.
#pragma once

#include <mp/format/float_arithmetic.hpp>
#include <mp/simd/vec.hpp>

#include <cstddef>

#if MP_PORTABLE_VECTORS
#define MP_TARGET portable_vectors
#include <mp/simd/loops.inl>
#undef MP_TARGET
#else
#define MP_TARGET single_lane
#include <mp/simd/loops.inl>
#undef MP_TARGET
#endif
#define MP_KERNEL_FILE <mp/simd/loops.inl>
#include <mp/simd/for_each_target.inl>
