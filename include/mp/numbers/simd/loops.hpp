// SPDX-License-Identifier: MIT
/// \file
/// Walks over arrays and sums over vec<T>: see loops.inl.
#pragma once

#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <cstddef>
#include <utility>

#define MP_KERNEL_FILE <mp/numbers/simd/loops.inl>
#include <mp/numbers/simd/for_each_loop.inl>
