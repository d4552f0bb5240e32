// SPDX-License-Identifier: MIT
/// \file
/// Walks over arrays and sums over vec<T>: see loops.inl.
#pragma once

#include <mp/format/float_arithmetic.hpp>
#include <mp/simd/vec.hpp>

#include <cstddef>
#include <utility>

#define MP_KERNEL_FILE <mp/simd/loops.inl>
#include <mp/simd/for_each_loop.inl>
